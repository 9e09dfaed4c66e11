/* The k best of the keys that the parts of a search have left for a query, in order.
 *
 * They are streamed through a buffer in shared memory. What is behind the threshold is not taken in; when the buffer is full it
 * is sorted, cut to k, and the k-th key is the new threshold. At the end one more sort gives the order.
 */
#ifndef WW_KERNELS_MERGE_H
#define WW_KERNELS_MERGE_H

#include "kernels/simt.h"

#include "kernels/order.h"
#include "kernels/search.h"

/* Keys that each thread fetches at once. A cut leaves k, and there are k to leave, and the next round fits, because
 * room - 4 * 256 >= k. */
enum { MERGE_LOADS = 4, MERGE_ROUND = MERGE_LOADS * SEARCH_THREADS };

/* The buffer's size: 4096 keys, or 2048, which leave more shared memory to others, where those do for k. */
#define MERGE_ROOM(k) ((k) > SEARCH_MERGE_KEYS / 4 ? SEARCH_MERGE_KEYS : SEARCH_MERGE_KEYS / 2)

/* Writes the k best of `total` keys, none of them behind `threshold`, to `best`. `keys` (room for MERGE_ROOM(k)) and `length`
 * are shared. By all threads of a block of SEARCH_THREADS. The keys may be other blocks' that are done: they are read past the
 * caches that those do not write to. */
DEVICE void merge_best(const uint64_t *found, uint32_t total, uint64_t threshold, uint32_t k, uint64_t *keys, uint32_t *length,
                       uint64_t *best)
{
    if (thread_index() == 0)
        AT(length, 0) = 0;
    barrier();
    for (uint32_t first = 0; first < total; first += MERGE_ROUND) {
        uint64_t taken[MERGE_LOADS];
        UNROLL
        for (uint32_t i = 0; i < MERGE_LOADS; i++) {
            const uint32_t at = first + i * SEARCH_THREADS + thread_index();
            taken[i] = at < total ? atomic_load_u64(&found[at]) : CANON_KEY_WORST;
        }
        UNROLL
        for (uint32_t i = 0; i < MERGE_LOADS; i++)
            if (taken[i] <= threshold && taken[i] != CANON_KEY_WORST)
                AT(keys, atomic_add_u32(&AT(length, 0), 1)) = taken[i];
        barrier();
        const uint32_t count = AT(length, 0);
        barrier();
        if (count > (uint32_t)MERGE_ROOM(k) - MERGE_ROUND) {
            order_keys(keys, count);
            threshold = AT(keys, k - 1);
            if (thread_index() == 0)
                AT(length, 0) = k;
            barrier();
        }
    }
    const uint32_t count = AT(length, 0);
    barrier();
    order_keys(keys, count);
    for (uint32_t i = thread_index(); i < k; i += SEARCH_THREADS)
        best[i] = i < count ? AT(keys, i) : CANON_KEY_WORST;
}

#endif
