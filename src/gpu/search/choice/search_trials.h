/* Measures which of two ways is faster on this device. Searches that the model finds equally fast alternate between the ways,
 * and their times are kept for the next search of that shape, also of later processes (trials_file.h). Every trial is a search
 * that a caller asked for, and answers it: both ways give the same bits. In the first second after a device is opened nothing
 * is tried, because everything is loaded for the first time then and a process may be short: the model decides.
 */
#ifndef WW_GPU_SEARCH_CHOICE_SEARCH_TRIALS_H
#define WW_GPU_SEARCH_CHOICE_SEARCH_TRIALS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
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
    bool changed;      /* a shape was settled since the times were read */
    int64_t begins_ns; /* nothing is tried before; set when the device is opened */
    search_trial kept[TRIALS_KEPT];
} search_trials;

/* Sets when trials may begin. */
void search_trials_begin(search_trials *trials);

/* Returns true if trials may begin by now. */
bool search_trials_may_run(const search_trials *trials);

/* Returns true if this search should be screened: by the times or, while there are too few, the way that was tried less often,
 * `guess` first. Without `trying` an unsettled shape gets `guess`. `shape` is not 0. */
bool search_trials_choose(search_trials *trials, uint64_t shape, bool guess, bool trying);

/* Records the time of a search of that shape. */
void search_trials_record(search_trials *trials, uint64_t shape, bool screened, double microseconds);

/* Takes the times of a shape that another process has settled, unless this one has them. */
void search_trials_settle(search_trials *trials, const search_trial *settled);

/* Copies the times in place `i` of the table. Returns false if they are not settled. */
bool search_trials_settled(search_trials *trials, size_t i, search_trial *settled);

#endif
