/* Exact scores of chosen rows: of a sample's best, which gives a threshold; of what the screen kept, which gives the result.
 *
 * Sixteen lanes score a row (packed.h); rows come from anywhere, so each is a few loads in a row of memory of their own. Lists
 * are short beside the rows, and both kernels wait for memory more than anything else.
 */
#include "kernels/order.h"
#include "kernels/pack.h"
#include "kernels/screen_words.h"

/* Keys that fit in shared memory, twice the largest k; and how many more each thread may bring before they are cut to k. */
enum { ORDER_KEYS = 4096, ORDER_LOADS = 4 };

/* The row at a position. */
typedef struct score_row {
    const float *numbers;
    float norm;
    uint32_t row;
} score_row;

DEVICE score_row score_row_at(const screen_rows *rows, uint32_t position)
{
    const screen_place place = screen_place_of(rows, position / 64);
    const uint32_t within = position - place.word_begin * 64;
    score_row found;
    found.numbers = IN_GLOBAL(const float, place.segment->rows) + (size_t)within * (size_t)(rows->runs * CANON_LANES);
    found.norm = IN_GLOBAL(const float, place.segment->norms)[within];
    found.row = place.segment->first_row + within;
    return found;
}

/* The key of the row at `position` for a query, in all lanes of the group. By a whole wave; groups that are not `there` read
 * nothing. */
DEVICE canon_key score_key(bool there, const screen_rows *rows, const screen_queries *queries, uint32_t query,
                           uint32_t position)
{
    f32x4 acc = F32X4_ZERO;
    score_row x;
    x.norm = 0.0f;
    x.row = 0;
    if (there) {
        x = score_row_at(rows, position);
        const float *q = IN_GLOBAL(const float, queries->packed) + (size_t)query * (size_t)(rows->runs * CANON_LANES);
        for (int32_t run = 0; run < rows->runs; run++) {
            const int32_t at = packed_at(rows->runs, run, group_lane());
            const f32x4 a = load_f32x4_readonly(q + at), b = load_f32x4_readonly(x.numbers + at);
            const f32x4 t = rows->metric == CANON_L2 ? f32x4_sub(a, b) : a;
            acc = f32x4_fma(t, rows->metric == CANON_L2 ? t : b, acc);
        }
    }
    const float sum = fold_row(acc);
    return canon_make_key(rows->metric, canon_score(rows->metric, sum, queries->numbers[query].norm, x.norm), x.row);
}

KERNEL(screen_pick, screen_pick_args, SCREEN_THREADS)
{
    SHARED(uint64_t, keys, SCREEN_BUCKETS_MAX);
    SHARED(uint64_t, worst, 1);
    const uint32_t query = block_index();
    if (thread_index() == 0)
        AT(worst, 0) = UINT64_MAX;
    for (uint32_t i = thread_index(); i < args.buckets; i += block_size())
        AT(keys, i) = args.samples[(size_t)query * args.buckets + i];
    barrier();
    order_keys(keys, args.buckets);
    if (AT(keys, args.k - 1) == CANON_KEY_WORST) /* fewer than k: no threshold */
        return;
    for (uint32_t first = 0; first < args.k; first += SCREEN_SCORE_GROUPS) {
        const uint32_t i = first + group_index();
        const bool there = i < args.k;
        const canon_key key = score_key(there, &args.rows, &args.queries, query, there ? canon_key_row(AT(keys, i)) : 0);
        if (there && group_lane() == 0) /* complements, so that the least of them is the worst */
            atomic_min_u64(&AT(worst, 0), ~key);
    }
    barrier();
    if (thread_index() == 0)
        args.queries.thresholds[query] = ~AT(worst, 0);
}

/* Puts the keys of a query's list, `count` of them, in order, and the first k in their place. By a whole block. */
DEVICE void score_order(const screen_score_args *args, uint32_t query, uint32_t count, uint64_t *keys, uint32_t *length)
{
    const uint64_t *list = args->lists + (size_t)query * args->capacity;
    const uint32_t k = args->k;
    canon_key threshold = CANON_KEY_WORST;
    if (thread_index() == 0)
        AT(length, 0) = 0;
    barrier();
    for (uint32_t first = 0; first < count; first += ORDER_LOADS * block_size()) {
        UNROLL
        for (uint32_t i = 0; i < ORDER_LOADS; i++) {
            const uint32_t at = first + i * block_size() + thread_index();
            const canon_key key = at < count ? atomic_load_u64(&list[at]) : CANON_KEY_WORST;
            if (key < threshold)
                AT(keys, atomic_add_u32(&AT(length, 0), 1)) = key;
        }
        barrier();
        const uint32_t held = AT(length, 0);
        barrier();
        if (held > ORDER_KEYS - ORDER_LOADS * block_size()) {
            order_keys(keys, held);
            threshold = AT(keys, k - 1);
            if (thread_index() == 0)
                AT(length, 0) = k;
            barrier();
        }
    }
    const uint32_t held = AT(length, 0);
    barrier();
    order_keys(keys, held);
    for (uint32_t i = thread_index(); i < k; i += block_size())
        args->best[(size_t)query * k + i] = i < held ? AT(keys, i) : CANON_KEY_WORST;
}

KERNEL(screen_score, screen_score_args, SCREEN_THREADS)
{
    SHARED(uint64_t, keys, ORDER_KEYS);
    SHARED(uint32_t, length, 1);
    SHARED(uint32_t, ready, 1);
    const uint32_t query = block_index_y();
    uint64_t *list = args.lists + (size_t)query * args.capacity;
    const uint32_t kept = args.queries.counts[query], count = kept < args.capacity ? kept : args.capacity;
    for (uint32_t first = block_index() * SCREEN_SCORE_GROUPS; first < count; first += block_count() * SCREEN_SCORE_GROUPS) {
        const uint32_t i = first + group_index();
        const bool there = i < count;
        const canon_key key = score_key(there, &args.rows, &args.queries, query, there ? (uint32_t)list[i] : 0);
        if (there && group_lane() == 0)
            atomic_store_u64(&list[i], key);
    }
    memory_fence_device();
    barrier();
    if (thread_index() == 0)
        AT(ready, 0) = atomic_add_u32(&args.queries.blocks_ready[query], 1);
    barrier();
    if (AT(ready, 0) != block_count() - 1)
        return;
    memory_fence_device();
    score_order(&args, query, count, keys, length);
}
