/* Merges the keys that the parts of a search have left for a query into the k best, in order.
 *
 * The keys stream through a buffer in shared memory. Keys worse than the threshold are skipped. When the buffer is full, it is
 * cut to k, and the k-th key is the new threshold. A last cut gives the result. A cut sorts; for a small k it selects, in a
 * tenth of the time (select_keys.h).
 */
#ifndef WW_KERNELS_SEARCH_MERGE_KEYS_H
#define WW_KERNELS_SEARCH_MERGE_KEYS_H

#include "kernels/simt/simt.h"

#include "kernels/search/search_args.h"
#include "kernels/search/select_keys.h"
#include "kernels/search/sort_keys.h"

/* Keys that each thread loads at once. After a cut to k the next round fits, because room - 4 * 256 >= k. */
enum { MERGE_LOADS = 4, MERGE_ROUND = MERGE_LOADS * SEARCH_THREADS };

/* The buffer's size: 4096 keys, or 2048 if that is enough for k, which leaves more shared memory. */
#define MERGE_ROOM(k) ((k) > SEARCH_MERGE_KEYS / 4 ? SEARCH_MERGE_KEYS : SEARCH_MERGE_KEYS / 2)

/* What merge_best() needs in shared memory. */
typedef struct merge_shared {
    uint64_t *keys;   /* MERGE_ROOM(k) */
    uint32_t *length; /* one */
    select_shared select;
} merge_shared;

/* Declares a merge_shared that keeps its keys in `buffer`. */
#define MERGE_SHARED(name, buffer)                                                                                             \
    SHARED(uint32_t, name##_length, 1);                                                                                        \
    SELECT_SHARED(name##_select);                                                                                              \
    const merge_shared name = {buffer, name##_length, name##_select}

/* Loads MERGE_LOADS of `total` keys per thread, starting at key `first`. */
DEVICE void merge_load(const uint64_t *found, uint32_t first, uint32_t total, canon_key *taken)
{
    UNROLL
    for (uint32_t i = 0; i < MERGE_LOADS; i++) {
        const uint32_t at = first + i * SEARCH_THREADS + thread_index();
        taken[i] = at < total ? atomic_load_u64(&found[at]) : CANON_KEY_WORST;
    }
}

/* Appends the wave's keys that are not worse than the threshold to the buffer. The threshold is not CANON_KEY_WORST. */
DEVICE void merge_append(const canon_key *taken, canon_key threshold, const merge_shared *at)
{
    uint32_t count = 0, first = 0;
    UNROLL
    for (uint32_t i = 0; i < MERGE_LOADS; i++)
        count += (uint32_t)__builtin_popcountll(wave_ballot(taken[i] <= threshold));
    if (lane() == 0 && count > 0)
        first = atomic_add_u32(&AT(at->length, 0), count);
    first = wave_shuffle_u32(first, 0);
    UNROLL
    for (uint32_t i = 0; i < MERGE_LOADS; i++) {
        const uint64_t ballot = wave_ballot(taken[i] <= threshold);
        if (taken[i] <= threshold)
            AT(at->keys, first + (uint32_t)__builtin_popcountll(ballot & (((uint64_t)1 << lane()) - 1))) = taken[i];
        first += (uint32_t)__builtin_popcountll(ballot);
    }
}

/* Cuts `count` keys in the buffer to the k best, plus a few others if that is faster; none is worse than the new threshold.
 * Returns how many are left. Called by all threads; ends with a barrier. */
DEVICE uint32_t merge_cut(uint32_t count, uint32_t k, canon_key *threshold, const merge_shared *at)
{
    if (k <= SELECT_K_MAX)
        return select_among(at->keys, count, k, threshold, &at->select);
    sort_keys(at->keys, count);
    if (count < k)
        return count;
    *threshold = AT(at->keys, k - 1);
    return k;
}

/* Writes the k best of `total` keys, none worse than `threshold`, to `best`, which may be polled by the host. Called by all
 * threads of a block of SEARCH_THREADS. Other, finished blocks may have written the keys, so they are read past the caches that
 * are not coherent with those blocks. */
DEVICE void merge_best(const uint64_t *found, uint32_t total, canon_key threshold, uint32_t k, const merge_shared *at,
                       uint64_t *best)
{
    canon_key next[MERGE_LOADS];
    merge_load(found, 0, total, next);
    threshold = threshold < CANON_KEY_WORST ? threshold : CANON_KEY_WORST - 1;
    if (thread_index() == 0)
        AT(at->length, 0) = 0;
    barrier();
    for (uint32_t first = 0; first < total; first += MERGE_ROUND) {
        canon_key taken[MERGE_LOADS];
        UNROLL
        for (uint32_t i = 0; i < MERGE_LOADS; i++)
            taken[i] = next[i];
        merge_load(found, first + MERGE_ROUND, total, next);
        merge_append(taken, threshold, at);
        barrier();
        const uint32_t count = AT(at->length, 0);
        barrier();
        if (count > (uint32_t)MERGE_ROOM(k) - MERGE_ROUND) {
            const uint32_t left = merge_cut(count, k, &threshold, at);
            if (thread_index() == 0)
                AT(at->length, 0) = left;
            barrier();
        }
    }
    const uint32_t count = merge_cut(AT(at->length, 0), k, &threshold, at);
    if (k <= SELECT_K_MAX)
        select_write(at->keys, count, k, best);
    for (uint32_t i = thread_index(); k > SELECT_K_MAX && i < k; i += SEARCH_THREADS)
        store_host_u64(&best[i], i < count ? AT(at->keys, i) : CANON_KEY_WORST);
}

#endif
