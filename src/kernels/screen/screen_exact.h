/* Exact scores of chosen rows, and the best of them: a sample's rows give a threshold; the rows that the screen kept give the
 * result.
 *
 * Sixteen lanes score a row (packed_layout.h). Rows are scattered, so each is a few loads of adjacent memory, and this code
 * mostly waits for memory. A block finds the best k of many keys without sorting them all: at least k keys, and few more, are
 * at or before the k-th of the threads' smallest keys.
 */
#ifndef WW_KERNELS_SCREEN_SCREEN_EXACT_H
#define WW_KERNELS_SCREEN_SCREEN_EXACT_H

#include "kernels/screen/screen_limits.h"
#include "kernels/search/pack_row.h"
#include "kernels/search/select_keys.h"
#include "kernels/search/sort_keys.h"

/* Keys that fit in shared memory, twice the largest k; and how many more each thread may add before they are cut to k. */
enum { EXACT_KEYS = 4096, EXACT_LOADS = 4 };

/* Chunks of a row whose loads are in flight together. */
enum { EXACT_AHEAD = 2 };

/* What a block needs in shared memory to find the best keys. */
typedef struct exact_shared {
    uint64_t *keys;   /* EXACT_KEYS */
    uint64_t *worst;  /* one */
    uint32_t *length; /* one */
    select_shared select;
} exact_shared;

#define EXACT_SHARED(name)                                                                                                     \
    SHARED(uint64_t, name##_keys, EXACT_KEYS);                                                                                 \
    SHARED(uint64_t, name##_worst, 1);                                                                                         \
    SHARED(uint32_t, name##_length, 1);                                                                                        \
    SELECT_SHARED(name##_select);                                                                                              \
    const exact_shared name = {name##_keys, name##_worst, name##_length, name##_select}

/* ---- scores -------------------------------------------------------------------------------------------------------------- */

/* The row at a position. */
typedef struct exact_row {
    const float *numbers;
    float norm;
    uint32_t row;
} exact_row;

DEVICE exact_row exact_row_at(const kernel_rows *rows, uint32_t position)
{
    const segment_place place = segment_place_of(rows, position / 64);
    const uint32_t within = position - place.word_begin * 64;
    exact_row found;
    const uint32_t first = row_type_is_f32(ROW_TYPE(rows)) ? within : within / 64 * 64; /* for other row types, the word */
    found.numbers = IN_GLOBAL(const float, place.segment->rows) + (size_t)first * (size_t)ROW_FLOATS(rows);
    found.norm = IN_GLOBAL(const float, place.segment->norms)[within];
    found.row = place.segment->first_row + within;
    return found;
}

/* Adds one chunk of a row that was loaded. */
DEVICE f32x4 exact_add(int32_t metric, f32x4 a, f32x4 b, f32x4 acc)
{
    const f32x4 t = metric == CANON_L2 ? f32x4_sub(a, b) : a;
    return f32x4_fma(t, metric == CANON_L2 ? t : b, acc);
}

/* This lane's accumulators of query and row, with the loads of several chunks in flight. */
DEVICE f32x4 exact_sums(const kernel_rows *rows, const float *query, const float *row)
{
    const int32_t chunks = rows->chunks, group = group_lane();
    f32x4 acc = F32X4_ZERO;
    int32_t chunk = 0;
    for (; chunk + EXACT_AHEAD <= chunks; chunk += EXACT_AHEAD) {
        f32x4 a[EXACT_AHEAD], b[EXACT_AHEAD];
        UNROLL
        for (int32_t i = 0; i < EXACT_AHEAD; i++) {
            b[i] = load_f32x4_readonly(row + packed_at(chunks, chunk + i, group));
            a[i] = load_f32x4_readonly(query + packed_at(chunks, chunk + i, group));
        }
        UNROLL
        for (int32_t i = 0; i < EXACT_AHEAD; i++)
            acc = exact_add(rows->metric, a[i], b[i], acc);
    }
    for (; chunk < chunks; chunk++) {
        const int32_t at = packed_at(chunks, chunk, group);
        acc = exact_add(rows->metric, load_f32x4_readonly(query + at), load_f32x4_readonly(row + at), acc);
    }
    return acc;
}

/* The same for row `row` of the 64 of another type at `word`. */
DEVICE f32x4 exact_sums_typed(const kernel_rows *rows, const float *query, const float *word, uint32_t row)
{
    const int32_t type = ROW_TYPE(rows), chunks = rows->chunks, group = group_lane();
    const uint32_t *from = (const uint32_t *)word;
    f32x4 acc = F32X4_ZERO;
    int32_t chunk = 0;
    for (; chunk + EXACT_AHEAD <= chunks; chunk += EXACT_AHEAD) {
        f32x4 a[EXACT_AHEAD];
        u32x2 b[EXACT_AHEAD];
        UNROLL
        for (int32_t i = 0; i < EXACT_AHEAD; i++) {
            b[i] = typed_load(type, from + typed_at(type, chunks, row, chunk + i, group));
            a[i] = load_f32x4_readonly(query + packed_at(chunks, chunk + i, group));
        }
        UNROLL
        for (int32_t i = 0; i < EXACT_AHEAD; i++)
            acc = exact_add(rows->metric, a[i], typed_floats(type, b[i]), acc);
    }
    for (; chunk < chunks; chunk++)
        acc = exact_add(rows->metric, load_f32x4_readonly(query + packed_at(chunks, chunk, group)),
                        typed_floats(type, typed_load(type, from + typed_at(type, chunks, row, chunk, group))), acc);
    return acc;
}

/* The key of the row at `position` for a query, in all lanes of the group. A whole wave calls it; groups that are not `active`
 * read nothing. */
DEVICE canon_key exact_key(bool active, const kernel_rows *rows, const screen_queries *queries, uint32_t query,
                           uint32_t position)
{
    f32x4 acc = F32X4_ZERO;
    exact_row x;
    x.norm = 0.0f;
    x.row = 0;
    if (active) {
        x = exact_row_at(rows, position);
        const float *numbers = IN_GLOBAL(const float, queries->packed) + (size_t)query * (size_t)(rows->chunks * CANON_LANES);
        acc = row_type_is_f32(ROW_TYPE(rows)) ? exact_sums(rows, numbers, x.numbers)
                                              : exact_sums_typed(rows, numbers, x.numbers, position % 64);
    }
    const float sum = fold_row(acc);
    return canon_make_key(rows->metric, canon_score(rows->metric, sum, queries->numbers[query].norm, x.norm), x.row);
}

/* ---- the best of many ---------------------------------------------------------------------------------------------------- */

/* Sorts `count` keys in shared memory. A few are sorted by counting, with two barriers instead of dozens. All threads call it;
 * it ends with a barrier. */
DEVICE void exact_sort(uint64_t *keys, uint32_t count)
{
    if (count > SELECT_CANDIDATES) {
        sort_keys(keys, count);
        return;
    }
    const bool active = thread_index() < count;
    const uint32_t rank = active ? select_rank(keys, count, thread_index()) : 0;
    const canon_key key = active ? AT(keys, thread_index()) : 0;
    barrier();
    if (active)
        AT(keys, rank) = key;
    barrier();
}

/* Returns a key such that at least k of `count` keys are at or before it; CANON_KEY_WORST if there are fewer. k is at most the
 * number of threads of the block. All threads call it. */
DEVICE canon_key exact_bound(const uint64_t *from, uint32_t count, uint32_t k, const exact_shared *at)
{
    canon_key best = CANON_KEY_WORST;
    for (uint32_t i = thread_index(); i < count; i += block_size()) {
        const canon_key key = atomic_load_u64(&from[i]);
        best = key < best ? key : best;
    }
    AT(at->keys, thread_index()) = best;
    sort_power_of_two(at->keys, block_size());
    const canon_key bound = AT(at->keys, k - 1);
    barrier();
    return bound;
}

/* Copies the keys at or before `bound`, and at least the k best of them, to shared memory. If there are many, it cuts them to
 * k. Returns their number. All threads call it. */
DEVICE uint32_t exact_collect(const uint64_t *from, uint32_t count, uint32_t k, canon_key bound, const exact_shared *at)
{
    if (thread_index() == 0)
        AT(at->length, 0) = 0;
    barrier();
    for (uint32_t first = 0; first < count; first += EXACT_LOADS * block_size()) {
        UNROLL
        for (uint32_t i = 0; i < EXACT_LOADS; i++) {
            const uint32_t number = first + i * block_size() + thread_index();
            const canon_key key = number < count ? atomic_load_u64(&from[number]) : CANON_KEY_WORST;
            if (key != CANON_KEY_WORST && key <= bound)
                AT(at->keys, atomic_add_u32(&AT(at->length, 0), 1)) = key;
        }
        barrier();
        const uint32_t found = AT(at->length, 0);
        barrier();
        if (found > EXACT_KEYS - EXACT_LOADS * block_size()) {
            sort_keys(at->keys, found);
            bound = AT(at->keys, k - 1) - 1; /* no two keys are equal */
            if (thread_index() == 0)
                AT(at->length, 0) = k;
            barrier();
        }
    }
    const uint32_t found = AT(at->length, 0);
    barrier();
    return found;
}

/* Leaves the k best of `count` keys, or all if there are fewer, in order in shared memory and returns their number. The keys
 * may come from other blocks. All threads call it; it ends with a barrier. */
DEVICE uint32_t exact_best(const uint64_t *from, uint32_t count, uint32_t k, const exact_shared *at)
{
    if (k <= SELECT_K_MAX && count <= SELECT_REGISTERS * block_size()) {
        canon_key taken[SELECT_REGISTERS];
        UNROLL
        for (uint32_t i = 0; i < SELECT_REGISTERS; i++) {
            const uint32_t number = i * block_size() + thread_index();
            taken[i] = number < count ? atomic_load_u64(&from[number]) : CANON_KEY_WORST;
        }
        canon_key bound = 0;
        const uint32_t candidates = select_candidates(taken, k, at->keys, &bound, &at->select);
        exact_sort(at->keys, candidates);
        return candidates < k ? candidates : k;
    }
    const canon_key bound = k <= block_size() && count > block_size() ? exact_bound(from, count, k, at) : CANON_KEY_WORST;
    const uint32_t found = exact_collect(from, count, k, bound, at);
    exact_sort(at->keys, found);
    return found < k ? found : k;
}

/* ---- results of a sample and of a list ----------------------------------------------------------------------------------- */

/* Sets a query's threshold from the sample: the worst exact score of the k rows with the best estimates. All threads call
 * it. */
DEVICE void exact_pick(const kernel_rows *rows, const screen_queries *queries, uint32_t query, const uint64_t *samples,
                       uint32_t buckets, uint32_t k, const exact_shared *at)
{
    const uint32_t found = exact_best(samples, buckets, k, at);
    if (found < k) /* no threshold */
        return;
    if (thread_index() == 0)
        AT(at->worst, 0) = UINT64_MAX;
    barrier();
    for (uint32_t first = 0; first < k; first += SCREEN_SCORE_GROUPS) {
        const uint32_t i = first + group_index();
        const bool active = i < k;
        const canon_key key = exact_key(active, rows, queries, query, active ? canon_key_row(AT(at->keys, i)) : 0);
        if (active && group_lane() == 0) /* complements, so that the smallest is the worst */
            atomic_min_u64(&AT(at->worst, 0), ~key);
    }
    barrier();
    if (thread_index() == 0)
        queries->thresholds[query] = ~AT(at->worst, 0);
    barrier();
}

/* Writes the k best keys of a query to `best`, where the host can read them. They also stay in shared memory. Returns their
 * number. All threads call it. */
DEVICE uint32_t exact_finish(uint32_t query, const uint64_t *list, uint32_t count, uint32_t k, uint64_t *best,
                             const exact_shared *at)
{
    const uint32_t found = exact_best(list, count, k, at);
    for (uint32_t i = thread_index(); i < k; i += block_size())
        store_host_u64(&best[(size_t)query * k + i], i < found ? AT(at->keys, i) : CANON_KEY_WORST);
    barrier();
    return found;
}

#endif
