/* The order of a row's elements on a GPU.
 *
 * Canonical arithmetic folds 64 accumulators in halves: j with j+32, then j+16, and so on. Here the 64 elements of a chunk are
 * in bit-reversed order, so that accumulators that fold together are neighbours. The four of one 16-byte load fold to one, and
 * the sixteen such groups fold as a tree over neighbours. Either sixteen lanes hold a row, one group each, or one thread goes
 * through all groups of a row with a short stack of sums.
 *
 * One thread wants all chunks of a group together; sixteen lanes want all groups of a chunk together. Interleaving two chunks
 * serves both: group g of chunks 2p and 2p+1 share 32 bytes, the smallest transfer of memory. A last odd chunk is not
 * interleaved.
 */
#ifndef WW_KERNELS_SEARCH_PACKED_LAYOUT_H
#define WW_KERNELS_SEARCH_PACKED_LAYOUT_H

#include "arithmetic/canon.h"

#define PACKED_GROUPS 16 /* of four accumulators each */

/* The number of chunks of a row of `dim` elements. */
CANON_FUNCTION int32_t packed_chunks(int32_t dim)
{
    return (dim + CANON_LANES - 1) / CANON_LANES;
}

/* The offset of the four floats of `group` in `chunk`, in a row of `chunks` chunks. */
CANON_FUNCTION int32_t packed_at(int32_t chunks, int32_t chunk, int32_t group)
{
    const int32_t pair = chunk / 2 * (2 * CANON_LANES);
    return (chunk | 1) < chunks ? pair + group * 8 + (chunk & 1) * 4 : pair + group * 4;
}

/* The first element of `group` within its chunk; the other three are 32, 16 and 48 elements after it. */
CANON_FUNCTION int32_t packed_first(int32_t group)
{
    return (group & 1) << 3 | (group & 2) << 1 | (group & 4) >> 1 | (group & 8) >> 3;
}

#endif
