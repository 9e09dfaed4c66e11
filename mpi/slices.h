/* Divides rows into contiguous slices, one per rank. */
#ifndef WW_CLUSTER_SLICES_H
#define WW_CLUSTER_SLICES_H

#include <stdint.h>

/* Returns the first of `count` things that rank `rank` of `ranks` gets; rank + 1 gives the end. Slices differ by at most
 * one. */
static inline int64_t slice_first(int64_t count, int32_t rank, int32_t ranks)
{
    const int64_t each = count / ranks, rest = count % ranks;
    return rank * each + rank * rest / ranks;
}

#endif
