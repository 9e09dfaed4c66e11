/* The kernel that lays out columns for a gemv (quant_gemv_activations.h). It quantizes floats, after a norm or gate if wanted.
 * Blocks of q8_1 or q8_k are only rearranged, one word per thread.
 */
#include "kernels/quant/quant_gemv_activations.h"

#include "arithmetic/blocks/blocks.h"

/* ---- columns that are already quantized ---------------------------------------------------------------------------------- */

/* Word `word` of the codes of a column; 0 past the last. Blocks have a multiple of four bytes, and so has the part before their
 * codes. `type` is a constant here and below. */
DEVICE uint32_t coded_word(int32_t type, const quant_gemv_activations_args *args, uint32_t source, uint32_t word)
{
    const uint32_t words = (uint32_t)block_length(type) / 4, bytes = (uint32_t)block_bytes(type);
    const uint32_t block = word / words;
    const uint8_t *column = (const uint8_t *)(const void *)args->from + source * args->from_stride;
    if (block >= args->blocks)
        return 0;
    return *(const uint32_t *)(const void *)(column + (uint64_t)block * bytes + 4 + (uint64_t)(word % words) * 4);
}

/* The factor of a block; 0 past the last. */
DEVICE float coded_factor(int32_t type, const quant_gemv_activations_args *args, uint32_t source, uint32_t block)
{
    const uint8_t *column = (const uint8_t *)(const void *)args->from + source * args->from_stride;
    const uint8_t *at = column + (uint64_t)block * (uint32_t)block_bytes(type);
    if (block >= args->blocks)
        return 0.0f;
    return type == BLOCK_Q8_1 ? block_f32_from_f16(*(const uint16_t *)(const void *)at) : *(const float *)(const void *)at;
}

/* Writes the same layout as code_block32. */
DEVICE void lay_block32(const quant_gemv_activations_args *args, uint32_t column, uint32_t source, uint32_t unit,
                        uint32_t thread)
{
    const uint32_t word = unit * 32 + thread, block = word / 8, codes = coded_word(BLOCK_Q8_1, args, source, word);
    const int32_t sum = sum_codes(codes);
    if (block >= args->blocks_padded)
        return;
    put_codes(args, column, args->blocks_padded, block, word % 8, codes);
    if (thread % 4 == 0)
        put_sum(args, column, args->blocks_padded, block, thread / 4 % 2, sum);
    if (thread % 8 == 0)
        put_factor(args, column, source, block, coded_factor(BLOCK_Q8_1, args, source, block), false);
}

/* Writes the same layout as code_kblock. */
DEVICE void lay_kblock(const quant_gemv_activations_args *args, uint32_t column, uint32_t source, uint32_t block,
                       uint32_t thread)
{
    UNROLL
    for (uint32_t h = 0; h < 2; h++) {
        const uint32_t codes = coded_word(BLOCK_Q8_K, args, source, block * 64 + h * 32 + thread);
        const int32_t sum = sum_codes(codes);
        put_codes(args, column, args->blocks_padded * 8, block * 8 + h * 4 + thread / 8, thread % 8, codes);
        if (thread % 4 == 0)
            put_sum_bytes(args, column, block, h * 8 + thread / 4, sum);
    }
    if (thread == 0)
        put_factor(args, column, source, block, coded_factor(BLOCK_Q8_K, args, source, block), false);
}

DEVICE void lay_unit(const quant_gemv_activations_args *args, uint32_t column, uint32_t source, uint32_t unit, uint32_t thread)
{
    if (args->type == BLOCK_Q8_1)
        lay_block32(args, column, source, unit, thread);
    else
        lay_kblock(args, column, source, unit, thread);
}

/* ---- all ----------------------------------------------------------------------------------------------------------------- */

/* Handles the unit of this thread's team, if there is one. */
DEVICE void code_or_lay_unit(const quant_gemv_activations_args *args)
{
    const uint64_t thread = (uint64_t)block_index() * QUANT_THREADS + thread_index(), team = thread / QUANT_TEAM;
    const uint32_t units = code_units(args->type, args->blocks_padded), own = (uint32_t)(thread % QUANT_TEAM);
    const uint32_t column = (uint32_t)(team / units), unit = (uint32_t)(team % units);
    if (column >= args->columns_padded)
        return;
    const uint32_t source = args->source ? args->source[column] : column;
    if (source >= args->columns)
        return;
    if (args->coded)
        lay_unit(args, column, source, unit, own);
    else
        code_unit(args, (code_place){column, source, 0, 0, true}, unit, own);
}

/* Even if `independent`, it does not end before the kernel queued before it, so the next kernel need not wait for both. */
KERNEL(quant_gemv_activations, quant_gemv_activations_args, QUANT_THREADS)
{
    SHARED(float, lanes, QUANT_NORM_LANES);
    launches_next();
    if (!args.independent)
        launches_wait();
    if (args.input.kind == INPUT_NORM)
        code_column(&args, args.blocks * (args.type == BLOCK_Q8_1 ? 32 : 256), block_index(), true, lanes);
    else
        code_or_lay_unit(&args);
    if (args.independent)
        launches_wait();
}
