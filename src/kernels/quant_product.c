/* Products of quantized weights with quantized activations (blocks_dot.h), and of plain ones.
 *
 * Eight threads share a row of weights, one for each accumulator: thread j takes blocks j, j + 8, ... whole, so no integer ever
 * leaves a thread, and three shuffles fold the accumulators. What a thread unpacks of a block serves several columns.
 */
#include "kernels/quant.h"
#include "kernels/simt.h"

#include "kernels/blocks_dot.h"

/* Block `block` of the weights times the same of up to QUANT_COLUMNS columns. */
DEVICE void product_block(const quant_product_args *args, const uint8_t *weights, uint64_t column, uint32_t columns,
                          uint64_t block, float *acc)
{
    const int32_t type = args->type, activation = dot_activations(type), offset = dot_offset(type);
    const int has_min = dot_has_min(type);
    const uint8_t *here = weights + block * (uint64_t)block_bytes(type);
    const uint8_t *codes = args->activations + column * args->activations_stride + block * (uint64_t)block_bytes(activation);
    const dot_factors factors = dot_factors_of(type, here);
    int32_t j[QUANT_COLUMNS], m[QUANT_COLUMNS];
    UNROLL
    for (uint32_t c = 0; c < QUANT_COLUMNS; c++)
        j[c] = m[c] = 0;
    UNROLL_BY(1)
    for (int32_t p = 0; p < dot_pieces(type); p++) {
        dot_piece piece;
        dot_load(type, here, p, &piece);
        UNROLL
        for (uint32_t c = 0; c < QUANT_COLUMNS; c++) {
            if (c >= columns)
                continue;
            const uint32_t *words = dot_activation_words(activation, codes + c * args->activations_stride, p);
            UNROLL
            for (int32_t half = 0; half < 2; half++) {
                int32_t dots = 0, sum = 0;
                UNROLL
                for (int32_t i = 4 * half; i < 4 * half + 4; i++) {
                    dots = dot4_i8(piece.words[i], words[i], dots);
                    sum = dot4_i8(0x01010101u, words[i], sum);
                }
                j[c] += piece.scale[half] * (dots - offset * sum);
                m[c] += piece.min[half] * sum;
            }
        }
    }
    UNROLL
    for (uint32_t c = 0; c < QUANT_COLUMNS; c++)
        if (c < columns)
            acc[c] = dot_add(factors, dot_activation_factor(activation, codes + c * args->activations_stride), j[c], m[c],
                             has_min, acc[c]);
}

KERNEL(quant_product, quant_product_args, QUANT_THREADS)
{
    const uint64_t thread = (uint64_t)block_index() * QUANT_THREADS + thread_index();
    const uint64_t row = thread / QUANT_OCTET, together = args.first_rows ? 1 : QUANT_COLUMNS;
    const uint64_t column = args.first_column + block_index_y() * together;
    const uint64_t left = args.columns - column;
    const uint32_t columns = (uint32_t)(left < together ? left : together);
    const bool there = row < args.rows;
    const uint64_t first = args.first_rows ? args.first_rows[column] : 0;
    const uint8_t *weights = args.weights + (first + (there ? row : 0)) * args.weights_stride;
    float acc[QUANT_COLUMNS];
    UNROLL
    for (uint32_t c = 0; c < QUANT_COLUMNS; c++)
        acc[c] = 0.0f;
    for (uint64_t block = thread % QUANT_OCTET; there && block < args.blocks; block += QUANT_OCTET)
        product_block(&args, weights, column, columns, block, acc);
    UNROLL
    for (uint32_t c = 0; c < QUANT_COLUMNS; c++) {
        acc[c] = acc[c] + wave_shuffle_xor_f32(acc[c], 4);
        acc[c] = acc[c] + wave_shuffle_xor_f32(acc[c], 2);
        acc[c] = acc[c] + wave_shuffle_xor_f32(acc[c], 1);
        if (there && c < columns && thread % QUANT_OCTET == 0)
            args.y[(column + c) * args.rows + row] = acc[c];
    }
}

/* Sixteen threads hold the 64 accumulators of a canonical dot product: thread t those of elements t, t + 16, t + 32, t + 48. */
KERNEL(quant_product_plain, quant_product_args, QUANT_THREADS)
{
    const uint64_t thread = (uint64_t)block_index() * QUANT_THREADS + thread_index();
    const uint64_t row = thread / 16, column = args.first_column + block_index_y();
    const bool there = row < args.rows;
    const uint64_t first = args.first_rows ? args.first_rows[column] : 0;
    const uint8_t *weights = args.weights + (first + (there ? row : 0)) * args.weights_stride;
    const float *x = (const float *)(args.activations + column * args.activations_stride);
    const uint64_t bytes = (uint64_t)block_bytes(args.type);
    float acc[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (uint64_t run = 0; there && run < args.blocks; run += CANON_LANES) {
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            const uint64_t at = run + thread % 16 + 16 * i;
            const float w = at < args.blocks ? decode_element(args.type, weights + at * bytes, 0) : 0.0f;
            acc[i] = fma_f32(w, at < args.blocks ? x[at] : 0.0f, acc[i]);
        }
    }
    float sum = (acc[0] + acc[2]) + (acc[1] + acc[3]);
    sum = sum + wave_shuffle_xor_f32(sum, 8);
    sum = sum + wave_shuffle_xor_f32(sum, 4);
    sum = sum + wave_shuffle_xor_f32(sum, 2);
    sum = sum + wave_shuffle_xor_f32(sum, 1);
    if (there && thread % 16 == 0)
        args.y[column * args.rows + row] = sum;
}
