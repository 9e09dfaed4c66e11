/* The vector type that blocks/encode_k.h is written in, for GPUs: one sub-block a thread. The sub-blocks of a block are
 * neighbouring lanes of a wave, 8 or 16 of them, which divides every wave. */
#ifndef WW_KERNELS_QUANT_QUANT_LANES_H
#define WW_KERNELS_QUANT_QUANT_LANES_H

#include "kernels/simt/simt.h"

#include "arithmetic/blocks/blocks.h"

typedef float lanes;

#define LANES_REGISTERS 1

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

DEVICE lanes lanes_fma(lanes a, lanes b, lanes c)
{
    return fma_f32(a, b, c);
}

DEVICE lanes lanes_f16(lanes a)
{
    return block_f32_from_f16(block_f16_from_f32(a));
}

DEVICE void lanes_block_max(lanes a[LANES_REGISTERS], int32_t sub_blocks)
{
    for (int32_t mask = sub_blocks / 2; mask > 0; mask /= 2)
        a[0] = lanes_max(a[0], wave_shuffle_xor_f32(a[0], (uint32_t)mask));
}

DEVICE void lanes_block_sum(lanes a[LANES_REGISTERS], int32_t sub_blocks)
{
    for (int32_t mask = sub_blocks / 2; mask > 0; mask /= 2)
        a[0] = a[0] + wave_shuffle_xor_f32(a[0], (uint32_t)mask);
}

#endif
