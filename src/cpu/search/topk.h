/* The k best keys seen so far: a heap with the worst of them on top, so that one comparison rejects most new keys.
 *
 * The array of k keys belongs to the caller. The final keys do not depend on the order in which keys were added.
 */
#ifndef WW_CPU_SEARCH_TOPK_H
#define WW_CPU_SEARCH_TOPK_H

#include <stdint.h>

#include "arithmetic/canon.h"

/* Empties the heap: every row's key is better than what it contains. */
static inline void topk_clear(canon_key *heap, int32_t k)
{
    for (int32_t i = 0; i < k; i++)
        heap[i] = CANON_KEY_WORST;
}

/* Returns the key that a new key must beat; CANON_KEY_WORST while there are fewer than k. */
static inline canon_key topk_worst(const canon_key *heap)
{
    return heap[0];
}

/* Replaces the worst key by `key`, which must be better. */
void topk_replace_worst(canon_key *heap, int32_t k, canon_key key);

/* Adds all keys of another heap with the same k. */
void topk_merge(canon_key *heap, const canon_key *other, int32_t k);

/* Turns the heap into a sorted array, best first. */
void topk_sort(canon_key *heap, int32_t k);

#endif
