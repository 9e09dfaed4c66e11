/* Before and after the scoring: queries into packed order, and the candidates of all parts into the k best.
 *
 * The merge streams the lists of one query through a buffer in shared memory. What is behind the threshold is not taken in;
 * when the buffer is full it is sorted, cut to k, and the k-th key is the new threshold. At the end one more sort gives the
 * order.
 */
#include "kernels/search.h"
#include "kernels/order.h"
#include "kernels/pack.h"

/* Keys that each thread of search_merge fetches at once. A cut leaves k <= 2048 keys, so that the next round always fits:
 * 4096 - 4 * 256 = 3072. */
enum { MERGE_LOADS = 4 };

KERNEL(search_prepare, search_prepare_args, SEARCH_THREADS)
{
    const uint32_t query = block_index() * (SEARCH_THREADS / PACKED_GROUPS) + group_index();
    const uint32_t together = (uint32_t)args.queries.together;
    const size_t floats = (size_t)packed_runs(args.dim) * CANON_LANES;
    const bool there = query < args.queries.slots, real = query < args.queries.count;
    /* A slot without a query is a query of zeros: none of its elements is there. */
    const float sum =
        pack_row(there, args.from + (real ? query * (size_t)args.dim : 0), args.dim, real ? args.dim : 0,
                 args.queries.packed + query / together * together * floats, (int32_t)together, (int32_t)(query % together));
    if (there && group_lane() == 0) {
        args.queries.norms[query] = sqrt_f32(sum);
        args.queries.worst[query] = CANON_KEY_WORST;
    }
    if (query == 0 && group_lane() == 0)
        store_f32x4(args.queries.zeros, F32X4_ZERO);
}

/* Slot `at` of the lists of the block's query, laid end to end. */
DEVICE uint64_t merge_key(const search_merge_args *args, uint64_t at, uint64_t total)
{
    if (at >= total)
        return CANON_KEY_WORST;
    const uint32_t part = (uint32_t)(at / args->lists.kept_max), slot = (uint32_t)(at % args->lists.kept_max);
    const size_t list = (size_t)part * args->slots + block_index();
    return slot < args->lists.counts[list] ? args->lists.keys[list * args->lists.capacity + slot] : CANON_KEY_WORST;
}

KERNEL(search_merge, search_merge_args, SEARCH_THREADS)
{
    SHARED(uint64_t, keys, SEARCH_MERGE_KEYS);
    SHARED(uint32_t, length, 1);
    const uint32_t k = args.lists.k;
    uint64_t threshold = args.worst[block_index()];
    if (thread_index() == 0)
        AT(length, 0) = 0;
    barrier();
    const uint64_t total = (uint64_t)args.lists.parts * args.lists.kept_max;
    for (uint64_t first = 0; first < total; first += MERGE_LOADS * block_size()) {
        uint64_t taken[MERGE_LOADS];
        UNROLL
        for (uint32_t i = 0; i < MERGE_LOADS; i++)
            taken[i] = merge_key(&args, first + i * block_size() + thread_index(), total);
        UNROLL
        for (uint32_t i = 0; i < MERGE_LOADS; i++)
            if (taken[i] <= threshold && taken[i] != CANON_KEY_WORST)
                AT(keys, atomic_add_u32(&AT(length, 0), 1)) = taken[i];
        barrier();
        const uint32_t count = AT(length, 0);
        barrier();
        if (count > SEARCH_MERGE_KEYS - MERGE_LOADS * block_size()) {
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
    for (uint32_t i = thread_index(); i < k; i += block_size())
        args.best[(size_t)block_index() * k + i] = i < count ? AT(keys, i) : CANON_KEY_WORST;
}
