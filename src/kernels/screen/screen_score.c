/* The steps after the screen for many queries (screen_exact.h): thresholds from samples, and results or all rows within a range
 * from lists. One or more blocks per query.
 */
#include "kernels/screen/screen_exact.h"
#include "kernels/search/range_list.h"
#include "kernels/simt/last_block.h"

KERNEL(screen_pick, screen_pick_args, SCREEN_THREADS)
{
    EXACT_SHARED(at);
    exact_pick(&args.rows, &args.queries, block_index(), args.samples + (size_t)block_index() * args.buckets, args.buckets,
               args.k, &at);
}

/* Keeps the `found` best of a list, so that more can be appended, and makes the k-th the threshold. A list that was full stays
 * unchanged. All threads call it. */
DEVICE void score_again(const screen_score_args *args, uint32_t query, uint32_t kept, uint32_t found, const exact_shared *at)
{
    uint64_t *list = args->lists + (size_t)query * args->capacity;
    const bool full = kept > args->capacity;
    for (uint32_t i = thread_index(); !full && i < found; i += block_size())
        list[i] = AT(at->keys, i);
    if (thread_index() != 0)
        return;
    const screen_queries *queries = &args->queries;
    queries->scored[query] = full ? args->capacity : found;
    queries->blocks_ready[query] = 0;
    if (!full) {
        queries->counts[query] = found;
        queries->before[query] += kept - found;
    }
    if (found == args->k && AT(at->keys, found - 1) < queries->thresholds[query])
        queries->thresholds[query] = AT(at->keys, found - 1);
}

/* Four blocks per multiprocessor: by default ptxas aims at the six that shared memory allows, and spills. */
KERNEL_RESIDENT(screen_score, screen_score_args, SCREEN_THREADS, 4)
{
    EXACT_SHARED(at);
    SHARED(uint32_t, ticket, 1);
    const uint32_t query = block_index_y();
    uint64_t *list = args.lists + (size_t)query * args.capacity;
    const uint32_t kept = args.queries.counts[query], count = kept < args.capacity ? kept : args.capacity;
    for (uint32_t first = args.queries.scored[query] + block_index() * SCREEN_SCORE_GROUPS; first < count;
         first += block_count() * SCREEN_SCORE_GROUPS) {
        const uint32_t i = first + group_index();
        const bool active = i < count;
        const canon_key key = exact_key(active, &args.rows, &args.queries, query, active ? (uint32_t)list[i] : 0);
        if (active && group_lane() == 0)
            atomic_store_u64(&list[i], key);
    }
    if (!block_is_last(&args.queries.blocks_ready[query], block_count(), ticket))
        return;
    const uint32_t found = exact_finish(query, list, count, args.k, args.best, &at);
    if (args.more)
        score_again(&args, query, kept, found, &at);
}

/* Scores the rows that the screen kept for a range search exactly, and lists those within the bound. A list that was full is
 * left alone: its query is searched again. */
KERNEL_RESIDENT(screen_range, screen_range_args, SCREEN_THREADS, 4)
{
    const uint32_t query = block_index_y(), kept = args.queries.counts[query];
    const uint64_t *list = args.lists + (size_t)query * args.capacity;
    const uint32_t count = kept > args.capacity ? 0 : kept;
    if (block_index() == 0 && thread_index() == 0)
        args.list.kept[query] = kept;
    for (uint32_t first = block_index() * SCREEN_SCORE_GROUPS; first < count; first += block_count() * SCREEN_SCORE_GROUPS) {
        const uint32_t i = first + group_index();
        const bool active = i < count;
        const canon_key key = exact_key(active, &args.rows, &args.queries, query, active ? (uint32_t)list[i] : 0);
        range_add(&args.list, active && group_lane() == 0, query, key);
    }
}
