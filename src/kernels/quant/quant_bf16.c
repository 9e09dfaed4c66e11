/* Converts weights and activations to bf16 for the vendor's BLAS. Fast products are close to the canonical ones, but need not
 * have the same bits.
 *
 * Memory-bound: a thread writes eight adjacent elements, 16 bytes.
 */
#include "kernels/quant/quant.h"
#include "kernels/quant/quant_words.h"

/* Scale and minimum of 16 elements of a block. */
DEVICE block_line bf16_line(int32_t type, const uint8_t *block, int32_t p, int32_t half)
{
    const dot_factors factors = words_factors(type, block);
    block_line line;
    line.scale = factors.d;
    line.min = factors.min;
    if (dot_pieces(type) == 1 || type == BLOCK_Q8_K)
        return line;
    const words_scales s = words_scales_of(type, block);
    const int32_t sub_block = words_sub_blocks_of_16(type) ? 2 * p + half : p;
    const uint32_t shift = (uint32_t)sub_block % 4 * 8, word = (uint32_t)sub_block / 4;
    const uint32_t scales = word < 2 ? word < 1 ? s.scales[0] : s.scales[1] : word < 3 ? s.scales[2] : s.scales[3];
    const uint32_t mins = word < 2 ? word < 1 ? s.mins[0] : s.mins[1] : word < 3 ? s.mins[2] : s.mins[3];
    line.scale = factors.d * (float)(int8_t)(scales >> shift);
    line.min = factors.min * (float)(int8_t)(mins >> shift);
    return line;
}

DEVICE uint32_t bf16_two(block_line line, uint32_t codes)
{
    const float low = fma_f32(line.scale, (float)(int8_t)codes, line.min);
    const float high = fma_f32(line.scale, (float)(int8_t)(codes >> 8), line.min);
    return block_bf16_from_f32(low) | block_bf16_from_f32(high) << 16;
}

DEVICE void bf16_eight(int32_t type, const quant_weights_bf16_args *args, uint64_t eight)
{
    const uint32_t eights = (uint32_t)block_elements(type) / 8, within = (uint32_t)(eight % eights);
    const uint8_t *block = args->from + eight / eights * (uint32_t)block_bytes(type);
    const int32_t p = (int32_t)within / 4, half = (int32_t)within % 4 / 2, at = (int32_t)within % 2 * 2;
    const block_line line = bf16_line(type, block, p, half);
    const uint32_t first = words_of(type, block, p, half, at), second = words_of(type, block, p, half, at + 1);
    const u32x4 out = {bf16_two(line, first), bf16_two(line, first >> 16), bf16_two(line, second),
                       bf16_two(line, second >> 16)};
    *(u32x4 *)(void *)(args->to + eight * 8) = out;
}

KERNEL(quant_weights_bf16, quant_weights_bf16_args, QUANT_THREADS)
{
    const uint64_t eight = (uint64_t)block_index() * QUANT_THREADS + thread_index();
    if (eight >= args.eights)
        return;
    switch (args.type) {
#define QUANT_FORMAT(name, type, ...)                                                                                          \
    case type:                                                                                                                 \
        bf16_eight(type, &args, eight);                                                                                        \
        break;
        BLOCK_FORMATS(QUANT_FORMAT)
#undef QUANT_FORMAT
    default:
        break;
    }
}

KERNEL(quant_activations_bf16, quant_activations_bf16_args, QUANT_THREADS)
{
    const uint64_t at = (uint64_t)block_index() * QUANT_THREADS + thread_index();
    if (at < args.count)
        args.to[at] = (uint16_t)block_bf16_from_f32(args.from[at]);
}
