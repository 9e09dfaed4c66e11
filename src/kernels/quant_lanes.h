/* One run a thread: the word that blocks_search.h is written in, for GPUs. The runs of a block are neighbouring lanes of a
 * wave, 8 or 16 of them, which divides every wave. */
#ifndef WW_KERNELS_QUANT_LANES_H
#define WW_KERNELS_QUANT_LANES_H

#include "kernels/simt.h"

#include "kernels/blocks.h"

typedef float lanes;
typedef float lanes_part;

#define LANES_PARTS 1

DEVICE lanes lanes_all(float value)
{
    return value;
}

DEVICE lanes lanes_select(bool where, lanes a, lanes b)
{
    return where ? a : b;
}

DEVICE lanes lanes_min(lanes a, lanes b)
{
    return a < b ? a : b;
}

DEVICE lanes lanes_max(lanes a, lanes b)
{
    return a > b ? a : b;
}

DEVICE lanes lanes_f16(lanes a)
{
    return block_f32_from_f16(block_f16_from_f32(a));
}

DEVICE lanes lanes_block_max(lanes a, int32_t runs)
{
    for (int32_t mask = runs / 2; mask > 0; mask /= 2)
        a = lanes_max(a, wave_shuffle_xor_f32(a, (uint32_t)mask));
    return a;
}

DEVICE lanes lanes_block_sum(lanes a, int32_t runs)
{
    for (int32_t mask = runs / 2; mask > 0; mask /= 2)
        a = a + wave_shuffle_xor_f32(a, (uint32_t)mask);
    return a;
}

DEVICE lanes_part part_all(float value)
{
    return value;
}

DEVICE lanes_part part_min(lanes_part a, lanes_part b)
{
    return a < b ? a : b;
}

DEVICE lanes_part part_max(lanes_part a, lanes_part b)
{
    return a > b ? a : b;
}

DEVICE lanes_part part_of(const lanes *from, int32_t part)
{
    return from[part];
}

DEVICE void part_put(lanes *to, int32_t part, lanes_part value)
{
    to[part] = value;
}

#endif
