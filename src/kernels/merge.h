/* The k best of the keys that the parts of a search have left for a query, in order.
 *
 * They are streamed through a buffer in shared memory. What is behind the threshold is not taken in; when the buffer is full it
 * is sorted, cut to k, and the k-th key is the new threshold. At the end one more sort gives the order. A few keys of a small k
 * are not sorted but selected (select.h).
 */
#ifndef WW_KERNELS_MERGE_H
#define WW_KERNELS_MERGE_H

#include "kernels/simt.h"

#include "kernels/order.h"
#include "kernels/search.h"
#include "kernels/select.h"

/* Keys that each thread fetches at once. A cut leaves k, and there are k to leave, and the next round fits, because
 * room - 4 * 256 >= k. */
enum { MERGE_LOADS = SELECT_HELD, MERGE_ROUND = MERGE_LOADS * SEARCH_THREADS };

/* The buffer's size: 4096 keys, or 2048, which leave more shared memory to others, where those do for k. */
#define MERGE_ROOM(k) ((k) > SEARCH_MERGE_KEYS / 4 ? SEARCH_MERGE_KEYS : SEARCH_MERGE_KEYS / 2)

/* What merge_best() needs in shared memory beside its buffer. */
typedef struct merge_shared {
    uint32_t *length; /* one */
    select_shared select;
} merge_shared;

#define MERGE_SHARED(name)                                                                                                     \
    SHARED(uint32_t, name##_length, 1);                                                                                        \
    SELECT_SHARED(name##_select);                                                                                              \
    const merge_shared name = {name##_length, name##_select}

/* MERGE_LOADS of `total` keys for each thread, from number `first` on; those behind the threshold are left out. */
DEVICE void merge_load(const uint64_t *found, uint32_t first, uint32_t total, uint64_t threshold, canon_key *taken)
{
    UNROLL
    for (uint32_t i = 0; i < MERGE_LOADS; i++) {
        const uint32_t at = first + i * SEARCH_THREADS + thread_index();
        const canon_key key = at < total ? atomic_load_u64(&found[at]) : CANON_KEY_WORST;
        taken[i] = key <= threshold ? key : CANON_KEY_WORST;
    }
}

/* Brings `total` keys through the buffer, and leaves the k best in order in it, if there are so many. Returns how many are
 * there. */
DEVICE uint32_t merge_sorted(const uint64_t *found, uint32_t total, uint64_t threshold, uint32_t k, uint64_t *keys,
                             uint32_t *length)
{
    if (thread_index() == 0)
        AT(length, 0) = 0;
    barrier();
    for (uint32_t first = 0; first < total; first += MERGE_ROUND) {
        canon_key taken[MERGE_LOADS];
        merge_load(found, first, total, threshold, taken);
        UNROLL
        for (uint32_t i = 0; i < MERGE_LOADS; i++)
            if (taken[i] != CANON_KEY_WORST)
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
    return count;
}

/* Writes the k best of `total` keys, none of them behind `threshold`, to `best`, where the host may look for them. `keys` (room
 * for MERGE_ROOM(k)) is shared. By all threads of a block of SEARCH_THREADS. The keys may be other blocks' that are done: they
 * are read past the caches that those do not write to. */
DEVICE void merge_best(const uint64_t *found, uint32_t total, uint64_t threshold, uint32_t k, uint64_t *keys,
                       const merge_shared *at, uint64_t *best)
{
    if (k <= SELECT_K_MAX && total <= MERGE_ROUND) {
        canon_key taken[MERGE_LOADS];
        merge_load(found, 0, total, threshold, taken);
        select_write(keys, select_few(taken, k, keys, &at->select), k, best);
        return;
    }
    const uint32_t count = merge_sorted(found, total, threshold, k, keys, at->length);
    for (uint32_t i = thread_index(); i < k; i += SEARCH_THREADS)
        store_host_u64(&best[i], i < count ? AT(keys, i) : CANON_KEY_WORST);
}

#endif
