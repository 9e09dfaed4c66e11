/* Contiguous slices: which rows of a whole belong to which rank. */
#ifndef WW_CLUSTER_SLICES_H
#define WW_CLUSTER_SLICES_H

#include <stdint.h>

/* The first of `count` things that is rank `rank`'s among `ranks`; rank + 1 gives the end. Shares differ by one at most. */
static inline int64_t slice_first(int64_t count, int32_t rank, int32_t ranks)
{
    const int64_t each = count / ranks, rest = count % ranks;
    return rank * each + rank * rest / ranks;
}

#endif
