/* Which of two ways is quicker on this device, by trial: searches that the model cannot tell apart alternate between
 * the ways, and their times are kept for the next search of that shape. Every trial is a search that a caller asked for, and
 * answers it.
 */
#ifndef WW_GPU_SEARCH_CHOICE_SEARCH_TRIALS_H
#define WW_GPU_SEARCH_CHOICE_SEARCH_TRIALS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { TRIALS_KEPT = 256 };

/* What is known of a shape. */
typedef struct search_trial {
    uint64_t shape;  /* 0: of none */
    float best[2];   /* the least microseconds of the plain and of the screened way, */
    uint8_t runs[2]; /* and of how many */
} search_trial;

/* Zeros to begin with. Any thread may use it. */
typedef struct search_trials {
    atomic_flag busy;
    search_trial kept[TRIALS_KEPT];
} search_trials;

/* Should this search be screened: as the times say or, while there are too few, the way that was tried less often, `guess`
 * first. `shape` is not 0. */
bool search_trials_choose(search_trials *trials, uint64_t shape, bool guess);

/* A search of that shape took so long. */
void search_trials_tell(search_trials *trials, uint64_t shape, bool screened, double microseconds);

#endif
