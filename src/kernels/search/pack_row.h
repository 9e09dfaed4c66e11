/* Packs one row with a group of sixteen lanes. Used for rows and for queries. */
#ifndef WW_KERNELS_SEARCH_PACK_ROW_H
#define WW_KERNELS_SEARCH_PACK_ROW_H

#include "kernels/simt/simt.h"

#include "kernels/search/packed_layout.h"

/* A group of sixteen lanes works on a row together; groups never straddle a wave. */
DEVICE int32_t group_lane(void)
{
    return (int32_t)(thread_index() % PACKED_GROUPS);
}

DEVICE uint32_t group_index(void)
{
    return thread_index() / PACKED_GROUPS;
}

DEVICE float pack_element(const float *from, int32_t given, int32_t element)
{
    return element < given ? from[element] : 0.0f;
}

/* The first level of the fold: the sum of one group's four accumulators. */
DEVICE float fold_group(f32x4 acc)
{
    return (acc.x + acc.y) + (acc.z + acc.w);
}

/* The whole fold: returns the sum of a row in all lanes of the group. Each lane holds four accumulators. Called by a whole
 * wave. */
DEVICE float fold_row(f32x4 acc)
{
    float sum = fold_group(acc);
    sum += wave_shuffle_xor_f32(sum, 1);
    sum += wave_shuffle_xor_f32(sum, 2);
    sum += wave_shuffle_xor_f32(sum, 4);
    sum += wave_shuffle_xor_f32(sum, 8);
    return sum;
}

/* Writes a row of dim elements to `to`: the first `given` from `from`, the rest zero. Returns dot(x,x) in all lanes of the
 * group. Called by a whole wave; a group that is not `active` reads and writes nothing. */
DEVICE float pack_row(bool active, const float *from, int32_t dim, int32_t given, float *to)
{
    const int32_t chunks = packed_chunks(dim);
    const int32_t group = group_lane();
    f32x4 acc = F32X4_ZERO;
    for (int32_t chunk = 0; active && chunk < chunks; chunk++) {
        const int32_t first = chunk * CANON_LANES + packed_first(group);
        const f32x4 x = make_f32x4(pack_element(from, given, first), pack_element(from, given, first + 32),
                                   pack_element(from, given, first + 16), pack_element(from, given, first + 48));
        store_f32x4(to + packed_at(chunks, chunk, group), x);
        acc = f32x4_fma(x, x, acc);
    }
    return fold_row(acc);
}

#endif
