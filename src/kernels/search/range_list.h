/* Lists keys within a bound. */
#ifndef WW_KERNELS_SEARCH_RANGE_LIST_H
#define WW_KERNELS_SEARCH_RANGE_LIST_H

#include "kernels/simt/simt.h"

#include "arithmetic/canon.h"
#include "kernels/search/range_args.h"

/* Counts the keys of the lanes that have one, and lists those that are wanted, with one atomic addition to the length per wave.
 * Called by a whole wave. */
DEVICE void range_add(const range_list *list, bool has, uint32_t query, canon_key key)
{
    const bool within = has && key <= list->last;
    if (!wave_any(within))
        return;
    if (within)
        atomic_add_u32(&list->counts[query], 1);
    const bool listed = within && (list->cuts == NULL || key <= list->cuts[query]);
    const uint64_t ballot = wave_ballot(listed);
    if (ballot == 0)
        return;
    uint64_t first = 0;
    if (lane() == 0)
        first = atomic_add_u64(list->length, (uint64_t)__builtin_popcountll(ballot));
    first = (uint64_t)wave_shuffle_u32((uint32_t)(first >> 32), 0) << 32 | wave_shuffle_u32((uint32_t)first, 0);
    const uint64_t at = first + (uint64_t)__builtin_popcountll(ballot & (((uint64_t)1 << lane()) - 1));
    if (listed && at < list->room) {
        list->entries[at].key = key;
        list->entries[at].query = query;
    }
}

#endif
