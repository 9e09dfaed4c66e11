/* The order of numbers inside a row on a GPU.
 *
 * Canonical arithmetic has 64 accumulators that are folded in halves: j with j+32, then j+16, and so on. Here the 64 elements
 * of a chunk stand in bit-reversed order, so that accumulators which fold together are neighbours: the four of one 16-byte
 * load fold to one, and the sixteen such groups fold as a tree over neighbours. A lane can hold a group (sixteen lanes a row),
 * or a thread can walk over all groups of a row, one after the other, with a short stack of sums.
 *
 * The walker wants all chunks of one group together, the sixteen lanes want all groups of one chunk together. Two chunks are
 * interleaved for both: group g of chunks 2p and 2p+1 share 32 bytes, the smallest piece that memory moves. A last odd chunk
 * stands alone.
 */
#ifndef WW_KERNELS_SEARCH_PACKED_LAYOUT_H
#define WW_KERNELS_SEARCH_PACKED_LAYOUT_H

#include "arithmetic/canon.h"

#define PACKED_GROUPS 16 /* of four accumulators each */

/* Chunks of 64 in a row of `dim` elements. */
CANON_FUNCTION int32_t packed_chunks(int32_t dim)
{
    return (dim + CANON_LANES - 1) / CANON_LANES;
}

/* Where the four floats of `group` in `chunk` begin, in a row of `chunks`. */
CANON_FUNCTION int32_t packed_at(int32_t chunks, int32_t chunk, int32_t group)
{
    const int32_t pair = chunk / 2 * (2 * CANON_LANES);
    return (chunk | 1) < chunks ? pair + group * 8 + (chunk & 1) * 4 : pair + group * 4;
}

/* The element of a chunk that stands first in `group`; 32, 16 and 48 behind it stand the other three. */
CANON_FUNCTION int32_t packed_first(int32_t group)
{
    return (group & 1) << 3 | (group & 2) << 1 | (group & 4) >> 1 | (group & 8) >> 3;
}

#endif
