/* Products of weights, decoded as they are read, with f32 activations: canonical dot products (canon.h).
 *
 * Sixteen threads hold the 64 accumulators of a result: thread t those of elements t, t + 16, t + 32, t + 48. Several columns
 * share the decoded weights. The switch over formats is outside the loop.
 */
#include "kernels/quant/quant.h"
#include "kernels/simt/simt.h"

#include "arithmetic/blocks/decode.h"

/* The columns of a thread block: adjacent ones from `column` on. */
typedef struct float_columns {
    const float *x; /* the first column */
    uint32_t count;
} float_columns;

/* Multiplies a row with all columns. `type` is a constant here. */
DEVICE void float_row(int32_t type, const quant_float_args *args, const uint8_t *weights, float_columns columns,
                      float acc[QUANT_FLOAT_COLUMNS][4])
{
    const uint64_t bytes = (uint64_t)block_bytes(type), elements = (uint64_t)block_elements(type);
    UNROLL_BY(1)
    for (uint64_t chunk = 0; chunk < args->cols; chunk += CANON_LANES) {
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            const uint64_t at = chunk + thread_index() % 16 + 16 * i;
            const bool exists = at < args->cols;
            float w = 0.0f;
            if (exists)
                w = decode_element(type, weights + at / elements * bytes, (int32_t)(at % elements));
            UNROLL
            for (uint32_t c = 0; c < QUANT_FLOAT_COLUMNS; c++)
                if (c < columns.count)
                    acc[c][i] = fma_f32(w, exists ? columns.x[c * args->cols + at] : 0.0f, acc[c][i]);
        }
    }
}

DEVICE void float_any_row(const quant_float_args *args, const uint8_t *weights, float_columns columns,
                          float acc[QUANT_FLOAT_COLUMNS][4])
{
    switch (args->type) {
#define QUANT_FORMAT(name, type, ...)                                                                                          \
    case type:                                                                                                                 \
        float_row(type, args, weights, columns, acc);                                                                          \
        break;
        QUANT_FORMAT(f32, BLOCK_F32)
        QUANT_FORMAT(f16, BLOCK_F16)
        QUANT_FORMAT(bf16, BLOCK_BF16)
        BLOCK_FORMATS(QUANT_FORMAT)
#undef QUANT_FORMAT
    default:
        break;
    }
}

DEVICE float float_fold(const float acc[4])
{
    float sum = (acc[0] + acc[2]) + (acc[1] + acc[3]);
    sum = sum + wave_shuffle_xor_f32(sum, 8);
    sum = sum + wave_shuffle_xor_f32(sum, 4);
    sum = sum + wave_shuffle_xor_f32(sum, 2);
    return sum + wave_shuffle_xor_f32(sum, 1);
}

KERNEL(quant_float_product, quant_float_args, QUANT_THREADS)
{
    const uint64_t thread = (uint64_t)block_index() * QUANT_THREADS + thread_index(), row = thread / 16;
    const uint64_t column = args.first_column + (uint64_t)block_index_y() * args.together, left = args.columns - column;
    const float_columns columns = {args.x + column * args.cols, left < args.together ? (uint32_t)left : args.together};
    const uint64_t first = args.first_rows ? args.first_rows[column] : 0;
    const bool has_row = first != QUANT_NO_ROW && first != QUANT_SKIPPED, exists = row < args.rows;
    float acc[QUANT_FLOAT_COLUMNS][4];
    UNROLL
    for (uint32_t c = 0; c < QUANT_FLOAT_COLUMNS; c++) {
        UNROLL
        for (uint32_t i = 0; i < 4; i++)
            acc[c][i] = 0.0f;
    }
    if (exists && has_row)
        float_any_row(&args, args.weights + (first + row) * args.weights_stride, columns, acc);
    UNROLL
    for (uint32_t c = 0; c < QUANT_FLOAT_COLUMNS; c++) {
        const float sum = float_fold(acc[c]);
        if (exists && c < columns.count && thread % 16 == 0)
            args.y[(column + c) * args.rows + row] = first == QUANT_NO_ROW ? __builtin_nanf("") : sum;
    }
}
