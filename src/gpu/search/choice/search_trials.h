/* Measures which of two ways is faster on this device. Searches that the model finds equally fast alternate between the ways,
 * and their times are kept for the next search of that shape. Every trial is a search that a caller asked for, and answers it.
 */
#ifndef WW_GPU_SEARCH_CHOICE_SEARCH_TRIALS_H
#define WW_GPU_SEARCH_CHOICE_SEARCH_TRIALS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { TRIALS_KEPT = 256 };

/* The times of a shape. */
typedef struct search_trial {
    uint64_t shape;  /* 0 if unused */
    float best[2];   /* the shortest full scan and the shortest screened search, in microseconds */
    uint8_t runs[2]; /* how many of each were measured */
} search_trial;

/* Initially zero. Any thread may use it. */
typedef struct search_trials {
    atomic_flag busy;
    search_trial kept[TRIALS_KEPT];
} search_trials;

/* Returns true if this search should be screened: by the times or, while there are too few, the way that was tried less often,
 * `guess` first. `shape` is not 0. */
bool search_trials_choose(search_trials *trials, uint64_t shape, bool guess);

/* Records the time of a search of that shape. */
void search_trials_record(search_trials *trials, uint64_t shape, bool screened, double microseconds);

#endif
