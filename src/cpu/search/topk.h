/* The k best keys seen so far: a heap with the worst of them on top, so that one comparison rejects most newcomers.
 *
 * The array of k keys belongs to the caller. The final keys do not depend on the order in which they came.
 */
#ifndef WW_CPU_SEARCH_TOPK_H
#define WW_CPU_SEARCH_TOPK_H

#include <stdint.h>

#include "arithmetic/canon.h"

/* Makes the heap empty: all keys worse than every row's. */
static inline void topk_clear(canon_key *heap, int32_t k)
{
    for (int32_t i = 0; i < k; i++)
        heap[i] = CANON_KEY_WORST;
}

/* The key that a newcomer has to beat; CANON_KEY_WORST as long as there are fewer than k. */
static inline canon_key topk_worst(const canon_key *heap)
{
    return heap[0];
}

/* Puts `key` in place of the worst, which must be worse than it. */
void topk_replace_worst(canon_key *heap, int32_t k, canon_key key);

/* Takes in what another heap of the same k holds. */
void topk_merge(canon_key *heap, const canon_key *other, int32_t k);

/* Turns the heap into a sorted array, best first. */
void topk_sort(canon_key *heap, int32_t k);

#endif
