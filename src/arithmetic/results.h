/* Results of a search as callers get them: a row number and a score for each key, and row -1 with the worst score where there
 * are fewer than k rows. For the host; kernels stop at keys. */
#ifndef WW_ARITHMETIC_RESULTS_H
#define WW_ARITHMETIC_RESULTS_H

#include <math.h>

#include "arithmetic/canon.h"

static inline float results_worst_score(int32_t metric)
{
    return metric == CANON_L2 ? INFINITY : -INFINITY;
}

/* `count` results that are none. */
static inline void results_pad(int32_t metric, int64_t count, int64_t *rows, float *scores)
{
    for (int64_t i = 0; i < count; i++) {
        rows[i] = -1;
        scores[i] = results_worst_score(metric);
    }
}

/* The results of `count` keys in order; CANON_KEY_WORST stands for none. */
static inline void results_from_keys(int32_t metric, const canon_key *keys, int64_t count, int64_t *rows, float *scores)
{
    for (int64_t i = 0; i < count; i++) {
        const int found = keys[i] != CANON_KEY_WORST;
        rows[i] = found ? (int64_t)canon_key_row(keys[i]) : -1;
        scores[i] = found ? canon_key_score(metric, keys[i]) : results_worst_score(metric);
    }
}

#endif
