/* The results of a search in the caller's arrays: row numbers and scores, and padding if there are fewer rows than k. Every
 * backend writes them with these functions. */
#ifndef WW_DEVICE_RESULTS_H
#define WW_DEVICE_RESULTS_H

#include <math.h>
#include <stdint.h>

#include "arithmetic/canon.h"

/* Pads `count` results: row -1 with the worst score of the metric. */
static inline void results_pad(int32_t metric, int64_t count, int64_t *rows, float *scores)
{
    for (int64_t i = 0; i < count; i++) {
        rows[i] = -1;
        scores[i] = metric == CANON_L2 ? INFINITY : -INFINITY;
    }
}

/* Converts k keys, best first, to rows and scores. CANON_KEY_WORST, which can only be at the end, becomes padding. */
static inline void results_from_keys(int32_t metric, int32_t k, const canon_key *keys, int64_t *rows, float *scores)
{
    int32_t found = 0;
    for (; found < k && keys[found] != CANON_KEY_WORST; found++) {
        rows[found] = (int64_t)canon_key_row(keys[found]);
        scores[found] = canon_key_score(metric, keys[found]);
    }
    results_pad(metric, k - found, rows + found, scores + found);
}

#endif
