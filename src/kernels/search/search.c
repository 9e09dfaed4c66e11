/* The first and last kernel of a full scan: packing the queries, and merging the keys of all parts into the k best. */
#include "kernels/search/merge_keys.h"
#include "kernels/search/pack_row.h"
#include "kernels/search/search_args.h"

KERNEL(search_prepare, search_prepare_args, SEARCH_THREADS)
{
    const uint32_t query = block_index() * (SEARCH_THREADS / PACKED_GROUPS) + group_index();
    const size_t floats = (size_t)packed_chunks(args.dim) * CANON_LANES;
    const bool active = query < args.queries.slots, real = query < args.queries.count;
    /* A slot without a query becomes a query of zeros. */
    const float sum = pack_row(active, args.from + (real ? query * (size_t)args.dim : 0), args.dim, real ? args.dim : 0,
                               args.queries.packed + query * floats);
    if (active && group_lane() == 0) {
        args.queries.norms[query] = sqrt_f32(sum);
        args.queries.worst[query] = CANON_KEY_WORST;
        args.taken[query] = 0;
    }
}

KERNEL(search_merge, search_merge_args, SEARCH_THREADS)
{
    SHARED(uint64_t, keys, SEARCH_MERGE_KEYS);
    MERGE_SHARED(at, keys);
    const uint32_t query = block_index(), k = args.lists.k;
    const uint64_t *found = args.lists.found + (size_t)query * args.lists.parts * args.lists.trigger;
    merge_best(found, args.lists.taken[query], args.worst[query], k, &at, args.best + (size_t)query * k);
}
