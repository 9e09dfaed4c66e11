/* What the screen kept of a range search: scored exactly, and listed where it is within the bound. */
#ifndef WW_KERNELS_SCREEN_SCREEN_RANGE_H
#define WW_KERNELS_SCREEN_SCREEN_RANGE_H

#include "kernels/screen/screen_exact.h"
#include "kernels/search/range_list.h"

/* A list that was full is left alone: its query is asked again. */
#define SCREEN_RANGE(name)                                                                                                     \
    KERNEL_RESIDENT(name, screen_range_args, SCREEN_THREADS, 4)                                                                \
    {                                                                                                                          \
        const uint32_t query = block_index_y(), kept = args.queries.counts[query];                                             \
        const uint64_t *list = args.lists + (size_t)query * args.capacity;                                                     \
        const uint32_t count = kept > args.capacity ? 0 : kept;                                                                \
        if (block_index() == 0 && thread_index() == 0)                                                                         \
            args.list.kept[query] = kept;                                                                                      \
        for (uint32_t first = block_index() * SCREEN_SCORE_GROUPS; first < count;                                              \
             first += block_count() * SCREEN_SCORE_GROUPS) {                                                                   \
            const uint32_t i = first + group_index();                                                                          \
            const bool active = i < count;                                                                                     \
            const canon_key key = exact_key(active, &args.rows, &args.queries, query, active ? (uint32_t)list[i] : 0);         \
            range_add(&args.list, active &&group_lane() == 0, query, key);                                                     \
        }                                                                                                                      \
    }

#endif
