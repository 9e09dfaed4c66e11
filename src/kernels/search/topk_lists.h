/* The k best keys, found by a block while it computes scores: one top-k for every kernel and every wave size.
 *
 * For each query the block keeps a list of candidate keys in global memory (small enough for the cache), its length, and a
 * threshold: at least k keys are known to be at or before it, so worse keys are out. A score is first compared with the `gate`,
 * one float derived from the threshold; only scores that pass become keys. When a list is long, one wave cuts it: it searches
 * by halving for a key with at least k and not many more keys at or before it, drops the keys after it, and makes it the
 * threshold. Blocks share thresholds by an atomic minimum.
 *
 * Keys are unique (canon.h), so the final set does not depend on the order of anything. A list cannot overflow: between two
 * checks of its length a block scores fewer rows than the list has room for beyond the trigger.
 */
#ifndef WW_KERNELS_SEARCH_TOPK_LISTS_H
#define WW_KERNELS_SEARCH_TOPK_LISTS_H

#include "kernels/simt/simt.h"

#include "kernels/search/search_args.h"

/* Keys of a list that a lane holds in registers while the list is cut: ideally all, if k is not large. A kernel whose lists
 * grow by more rows at a time may define a larger number. */
#ifndef TOPK_REGISTERS
#define TOPK_REGISTERS 4
#endif

/* One block's lists. The first three members point to shared memory, one element for each query of the block. */
typedef struct topk {
    uint64_t *threshold;
    uint32_t *length;
    float *gate;
    uint64_t *keys;    /* the first list; the next is `capacity` keys further */
    uint64_t *worst;   /* the thresholds that all blocks share */
    uint32_t queries;  /* lists of the block */
    uint32_t admitted; /* lists in use */
    int32_t metric;
} topk;

DEVICE float float_above(float x) /* x >= 0 */
{
    return canon_bits_float(canon_float_bits(x) + 1);
}

DEVICE float float_below(float x) /* scores are never -0 */
{
    const uint32_t bits = canon_float_bits(x);
    return canon_bits_float(bits == 0 ? 0x80000001u : (bits >> 31) ? bits + 1 : bits - 1);
}

/* A bound for sums that follows from a bound for scores, never too strict, by the monotony of rounding:
 *   dot:    score >= s is sum >= s.
 *   l2:     sqrt(sum) <= s after rounding means sqrt(sum) < above(s), so sum <= above(s)^2 after rounding.
 *   cosine: sum/norms >= s after rounding means sum/norms > below(s), so sum >= below(s)*norms after rounding.
 * Neighbours of infinite scores give NaN, which opens the gate. */
DEVICE float topk_gate_for(int32_t metric, canon_key threshold)
{
    if (threshold == CANON_KEY_WORST)
        return canon_bits_float(metric == CANON_L2 ? 0x7f800000u : 0xff800000u);
    const float score = canon_key_score(metric, threshold);
    if (metric == CANON_DOT)
        return score;
    if (metric == CANON_COSINE)
        return float_below(score);
    return float_above(score) * float_above(score);
}

/* Returns false only if this sum cannot be among the best; may return true for others. */
DEVICE bool topk_gate_open(int32_t metric, float gate, float sum, float query_norm, float row_norm)
{
    if (metric == CANON_L2)
        return !(sum > gate);
    if (metric == CANON_DOT)
        return !(sum < gate);
    const float norms = query_norm * row_norm;
    return norms == 0.0f || !(sum < gate * norms);
}

/* Starts lists `first`, `first` + `step` and so on. Called by all threads of the block, or of the wave that owns the lists; a
 * barrier must follow.
 */
DEVICE void topk_begin_by(const topk *t, uint32_t first, uint32_t step)
{
    for (uint32_t q = first; q < t->queries; q += step) {
        AT(t->length, q) = 0;
        /* A slot without a query gets threshold 0; no key is at or before 0. */
        AT(t->threshold, q) = q < t->admitted ? atomic_load_u64(&t->worst[q]) : 0;
        AT(t->gate, q) = topk_gate_for(t->metric, AT(t->threshold, q));
    }
}

DEVICE void topk_begin(const topk *t)
{
    topk_begin_by(t, thread_index(), block_size());
}

/* Makes the key of a sum that passed the gate and appends it if it is still good enough. Returns the list's length then,
 * otherwise 0. Called by any thread. */
DEVICE uint32_t topk_offer(const topk *t, const search_lists *lists, uint32_t q, float sum, float query_norm, float row_norm,
                           uint32_t row)
{
    const canon_key key = canon_make_key(t->metric, canon_score(t->metric, sum, query_norm, row_norm), row);
    if (key > AT(t->threshold, q))
        return 0;
    const uint32_t at = atomic_add_u32(&AT(t->length, q), 1);
    t->keys[(size_t)q * lists->capacity + at] = key;
    return at + 1;
}

/* A list as a wave sees it: the first keys in registers, loaded once and together, the rest in memory. Places without a key
 * hold CANON_KEY_WORST. */
typedef struct topk_view {
    const uint64_t *keys;
    uint32_t length;
    canon_key first[TOPK_REGISTERS]; /* key i * wave_size() + lane() */
} topk_view;

DEVICE topk_view topk_look(const uint64_t *keys, uint32_t length)
{
    topk_view view;
    view.keys = keys;
    view.length = length;
    UNROLL
    for (uint32_t i = 0; i < TOPK_REGISTERS; i++) {
        const uint32_t at = i * wave_size() + lane();
        view.first[i] = at < length ? keys[at] : CANON_KEY_WORST;
    }
    return view;
}

/* Returns how many keys are at or before `bound`, which is not CANON_KEY_WORST, in all lanes. Called by a whole wave. */
DEVICE uint32_t topk_count(const topk_view *view, canon_key bound)
{
    uint32_t count = 0;
    UNROLL
    for (uint32_t i = 0; i < TOPK_REGISTERS; i++)
        count += (uint32_t)__builtin_popcountll(wave_ballot(view->first[i] <= bound));
    for (uint32_t first = TOPK_REGISTERS * wave_size(); first < view->length; first += wave_size()) {
        const uint32_t at = first + lane();
        const bool before = at < view->length && view->keys[at] <= bound;
        count += (uint32_t)__builtin_popcountll(wave_ballot(before));
    }
    return count;
}

/* Returns the smallest and the largest key in all lanes. Called by a whole wave. */
DEVICE void topk_range(const topk_view *view, canon_key *min, canon_key *max)
{
    canon_key low = CANON_KEY_WORST, high = 0;
    UNROLL
    for (uint32_t i = 0; i < TOPK_REGISTERS; i++) {
        const canon_key key = view->first[i];
        low = key < low ? key : low;
        high = key != CANON_KEY_WORST && key > high ? key : high;
    }
    for (uint32_t at = TOPK_REGISTERS * wave_size() + lane(); at < view->length; at += wave_size()) {
        const canon_key key = view->keys[at];
        low = key < low ? key : low;
        high = key > high ? key : high;
    }
    for (uint32_t mask = wave_size() / 2; mask > 0; mask /= 2) {
        const canon_key other_low = wave_shuffle_xor_u64(low, mask), other_high = wave_shuffle_xor_u64(high, mask);
        low = other_low < low ? other_low : low;
        high = other_high > high ? other_high : high;
    }
    *min = low;
    *max = high;
}

/* Appends the lanes' keys that are at or before `bound` to `to`, which has `*kept` keys. Called by a whole wave. */
DEVICE void topk_append(uint64_t *to, uint32_t *kept, canon_key key, canon_key bound)
{
    const uint64_t ballot = wave_ballot(key <= bound);
    if (key <= bound)
        to[*kept + (uint32_t)__builtin_popcountll(ballot & (((uint64_t)1 << lane()) - 1))] = key;
    *kept += (uint32_t)__builtin_popcountll(ballot);
}

/* Copies the keys at or before `bound`, which is not CANON_KEY_WORST, to `to`. `to` may be the list itself: the ballot makes
 * each lane hold its key before any is overwritten. Called by a whole wave. */
DEVICE void topk_keep(const topk_view *view, canon_key bound, uint64_t *to)
{
    uint32_t kept = 0;
    UNROLL
    for (uint32_t i = 0; i < TOPK_REGISTERS; i++)
        topk_append(to, &kept, view->first[i], bound);
    for (uint32_t first = TOPK_REGISTERS * wave_size(); first < view->length; first += wave_size()) {
        const uint32_t at = first + lane();
        topk_append(to, &kept, at < view->length ? view->keys[at] : CANON_KEY_WORST, bound);
    }
}

/* Cuts list q to at least k (if it had them) and at most `kept_max` keys and lowers its threshold. Called by a whole wave. */
DEVICE void topk_cut(const topk *t, const search_lists *lists, uint32_t q, uint32_t kept_max)
{
    uint64_t *keys = t->keys + (size_t)q * lists->capacity;
    wave_barrier();
    const topk_view view = topk_look(keys, AT(t->length, q));
    canon_key low, high;
    topk_range(&view, &low, &high);
    low--; /* fewer than k keys are at or before `low`; k or more, or all admitted ones, are at or before `high` */
    const canon_key threshold = AT(t->threshold, q);
    high = threshold < high ? threshold : high;
    uint32_t kept = topk_count(&view, high);
    while (kept > kept_max) {
        const canon_key middle = low + (high - low) / 2;
        const uint32_t count = topk_count(&view, middle);
        if (count >= lists->k) {
            high = middle;
            kept = count;
        } else {
            low = middle;
        }
    }
    topk_keep(&view, high, keys);
    wave_barrier();
    if (lane() == 0) {
        canon_key best = threshold;
        if (kept >= lists->k && high < best) {
            const canon_key others = atomic_min_u64(&t->worst[q], high);
            best = others < high ? others : high;
        }
        AT(t->length, q) = kept;
        AT(t->threshold, q) = best;
        AT(t->gate, q) = topk_gate_for(t->metric, best);
    }
    wave_barrier();
}

/* Maintains the lists between two rounds of offers: takes over better thresholds from other blocks and cuts lists that are
 * longer than `trigger`. Handles queries `first`, `first` + `step` and so on. Called by a whole wave. */
DEVICE void topk_tend_by(const topk *t, const search_lists *lists, uint32_t first, uint32_t step, uint32_t trigger,
                         uint32_t kept_max)
{
    for (; first < t->admitted; first += step * wave_size()) {
        const uint32_t q = first + lane() * step;
        bool long_list = false;
        if (q < t->admitted) {
            const canon_key others = atomic_load_u64(&t->worst[q]);
            if (others < AT(t->threshold, q)) {
                AT(t->threshold, q) = others;
                AT(t->gate, q) = topk_gate_for(t->metric, others);
            }
            long_list = AT(t->length, q) > trigger;
        }
        for (uint64_t left = wave_ballot(long_list); left != 0; left &= left - 1)
            topk_cut(t, lists, first + (uint32_t)__builtin_ctzll(left) * step, kept_max);
    }
}

/* Maintains all lists of the block, each wave its own queries. Called by all threads, between barriers. */
DEVICE void topk_tend(const topk *t, const search_lists *lists, uint32_t trigger, uint32_t kept_max)
{
    topk_tend_by(t, lists, wave_index(), waves_per_block(), trigger, kept_max);
}

/* Appends the keys of list q that are not worse than its threshold to found[*taken ..]. Called by a whole wave. */
DEVICE void topk_hand_over(const topk *t, const search_lists *lists, uint32_t q, uint64_t *found, uint32_t *taken)
{
    const topk_view view = topk_look(t->keys + (size_t)q * lists->capacity, AT(t->length, q));
    const canon_key threshold = AT(t->threshold, q) < CANON_KEY_WORST ? AT(t->threshold, q) : CANON_KEY_WORST - 1;
    const uint32_t count = topk_count(&view, threshold);
    uint32_t at = lane() == 0 ? atomic_add_u32(taken, count) : 0;
    at = wave_shuffle_u32(at, 0);
    topk_keep(&view, threshold, found + at);
}

/* Does that for queries `first`, `first` + `step` and so on. The first list belongs to query `first_query` of the search. */
DEVICE void topk_hand_over_by(const topk *t, const search_lists *lists, uint32_t first, uint32_t step, uint32_t first_query)
{
    for (uint32_t q = first; q < t->admitted; q += step)
        topk_hand_over(t, lists, q, lists->found + (size_t)(first_query + q) * lists->parts * lists->trigger,
                       &lists->taken[first_query + q]);
}

/* Hands the block's keys over to the merge. Its first query is `first_query` of the search. Called by all threads, with a
 * barrier since the last offer. */
DEVICE void topk_end(const topk *t, const search_lists *lists, uint32_t first_query)
{
    topk_tend(t, lists, lists->trigger, lists->kept_max);
    barrier();
    topk_hand_over_by(t, lists, wave_index(), waves_per_block(), first_query);
}

#endif
