/* Selects the k best of some keys, in a block that everything else waits for.
 *
 * The last block of a search is alone on the device, and barriers take most of its time. Sorting a thousand keys takes 55
 * barriers. Here the keys stay in registers, and halving their range, with one barrier each time, leaves the k best and a few
 * dozen others after a handful of barriers. Those few are put in order by counting how many come before each.
 */
#ifndef WW_KERNELS_SEARCH_SELECT_KEYS_H
#define WW_KERNELS_SEARCH_SELECT_KEYS_H

#include "kernels/simt/simt.h"

enum {
    SELECT_REGISTERS = 8,   /* keys that a thread has in registers */
    SELECT_CANDIDATES = 64, /* keys that are left, at most */
    SELECT_K_MAX = 32       /* the largest k; the gap between the two means that the range need not be halved to its end */
};

/* What a block needs in shared memory. */
typedef struct select_shared {
    uint64_t *range;  /* two: the smallest key, and the complement of the largest */
    uint32_t *counts; /* SELECT_COUNTS: the number of keys; then, for each halving, how many are in the better half; last, how
                         many are left */
} select_shared;

/* A range of 64 bits can be halved 60 times before fewer than SELECT_CANDIDATES - SELECT_K_MAX keys fit in it. */
enum { SELECT_COUNTS = 64, SELECT_LEFT = SELECT_COUNTS - 1 };

#define SELECT_SHARED(name)                                                                                                    \
    SHARED(uint64_t, name##_range, 2);                                                                                         \
    SHARED(uint32_t, name##_counts, SELECT_COUNTS);                                                                            \
    const select_shared name = {name##_range, name##_counts}

/* Prepares a selection. Called by all threads, with a barrier since the previous selection; ends with a barrier. */
DEVICE void select_begin(const select_shared *at)
{
    for (uint32_t i = thread_index(); i < SELECT_COUNTS; i += block_size())
        AT(at->counts, i) = 0;
    if (thread_index() < 2)
        AT(at->range, thread_index()) = UINT64_MAX;
    barrier();
}

/* Adds how many of the wave's keys are at or before `bound` to counts[number]. */
DEVICE void select_count(const canon_key *own, canon_key bound, uint32_t number, const select_shared *at)
{
    uint32_t mine = 0;
    UNROLL
    for (uint32_t i = 0; i < SELECT_REGISTERS; i++)
        mine += (uint32_t)__builtin_popcountll(wave_ballot(own[i] <= bound));
    if (lane() == 0 && mine > 0)
        atomic_add_u32(&AT(at->counts, number), mine);
}

/* Extends the range to include the wave's keys. */
DEVICE void select_range(const canon_key *own, const select_shared *at)
{
    canon_key low = UINT64_MAX, high = UINT64_MAX; /* of complements */
    UNROLL
    for (uint32_t i = 0; i < SELECT_REGISTERS; i++) {
        const canon_key key = own[i];
        low = key < low ? key : low;
        high = key != CANON_KEY_WORST && ~key < high ? ~key : high;
    }
    for (uint32_t mask = wave_size() / 2; mask > 0; mask /= 2) {
        const canon_key other_low = wave_shuffle_xor_u64(low, mask), other_high = wave_shuffle_xor_u64(high, mask);
        low = other_low < low ? other_low : low;
        high = other_high < high ? other_high : high;
    }
    if (lane() == 0) {
        atomic_min_u64(&AT(at->range, 0), low);
        atomic_min_u64(&AT(at->range, 1), high);
    }
}

/* Writes the k best of the keys that the block has in registers, and a few others, to `keys` in shared memory, in any order:
 * those not larger than `*bound`. k is at most SELECT_K_MAX; a register without a key holds CANON_KEY_WORST. Returns how many:
 * at most SELECT_CANDIDATES, and fewer than k only if there were no more. The keys may have been loaded from `keys`. Called by
 * all threads; ends with a barrier. */
DEVICE uint32_t select_candidates(const canon_key *own, uint32_t k, uint64_t *keys, canon_key *bound, const select_shared *at)
{
    select_begin(at);
    select_range(own, at);
    select_count(own, CANON_KEY_WORST - 1, 0, at);
    barrier();
    /* Fewer than k keys are at or before `low`; `count` keys, k or more or all, are at or before `high`. */
    canon_key low = AT(at->range, 0) - 1, high = ~AT(at->range, 1);
    uint32_t count = AT(at->counts, 0);
    for (uint32_t step = 1; count > SELECT_CANDIDATES; step++) {
        const canon_key middle = low + (high - low) / 2;
        select_count(own, middle, step, at);
        barrier();
        const uint32_t before = AT(at->counts, step);
        if (before >= k) {
            high = middle;
            count = before;
        } else {
            low = middle;
        }
    }
    UNROLL
    for (uint32_t i = 0; i < SELECT_REGISTERS; i++)
        if (own[i] <= high && own[i] != CANON_KEY_WORST)
            AT(keys, atomic_add_u32(&AT(at->counts, SELECT_LEFT), 1)) = own[i];
    barrier();
    *bound = high;
    return count;
}

/* Like select_candidates(), for `count` keys in shared memory, at most SELECT_REGISTERS per thread. */
DEVICE uint32_t select_among(uint64_t *keys, uint32_t count, uint32_t k, canon_key *bound, const select_shared *at)
{
    canon_key own[SELECT_REGISTERS];
    UNROLL
    for (uint32_t i = 0; i < SELECT_REGISTERS; i++) {
        const uint32_t number = i * block_size() + thread_index();
        own[i] = number < count ? AT(keys, number) : CANON_KEY_WORST;
    }
    return select_candidates(own, k, keys, bound, at);
}

/* How many of `count` keys in shared memory come before key number `mine`; equal ones in the order of their numbers. */
DEVICE uint32_t select_rank(const uint64_t *keys, uint32_t count, uint32_t mine)
{
    const canon_key key = AT(keys, mine);
    uint32_t rank = 0;
    for (uint32_t i = 0; i < count; i++) {
        const canon_key other = AT(keys, i);
        rank += other < key || (other == key && i < mine) ? 1 : 0;
    }
    return rank;
}

/* Writes the k best of `count` keys in shared memory in order to `best`, which may be polled by the host, followed by
 * CANON_KEY_WORST. `count` is at most the number of threads. Called by all threads. */
DEVICE void select_write(const uint64_t *keys, uint32_t count, uint32_t k, uint64_t *best)
{
    if (thread_index() < count) {
        const uint32_t rank = select_rank(keys, count, thread_index());
        if (rank < k)
            store_host_u64(&best[rank], AT(keys, thread_index()));
    }
    for (uint32_t i = count + thread_index(); i < k; i += block_size())
        store_host_u64(&best[i], CANON_KEY_WORST);
}

#endif
