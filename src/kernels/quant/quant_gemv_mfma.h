/* A gemv on the matrix units of gfx908, gfx90a and gfx942 (quant_gemv.h): MFMA 16x16 of bytes.
 * A wave has one class; if there are only four waves, it has two, one after the other. Each 16 lanes of a wave have a quarter
 * of a piece, and lane i of them has row i of the tile and column i % width. Of the results, lanes 0 to 15 have columns 0 to 3
 * of their row and lanes 16 to 31 columns 4 to 7; lanes 32 to 63 have the same again. One column is multiplied like eight.
 */
#ifndef WW_KERNELS_QUANT_QUANT_GEMV_MFMA_H
#define WW_KERNELS_QUANT_QUANT_GEMV_MFMA_H

#include "kernels/simt/matrix_i8.h"

enum { GEMV_MFMA = 1, GEMV_LANE_ROWS = 16, GEMV_CLASSES = QUANT_CLASSES * 64 / GEMV_THREADS, GEMV_LANE_SUMS = 4 };

/* Limited to half of the registers, the compiler keeps sums in registers that every instruction can use (KERNEL_MATRIX). */
#define GEMV_ENTRY(kernel, resident)                                                                                           \
    extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, GEMV_THREADS), amdgpu_waves_per_eu(2))) void kernel(      \
        const quant_gemv_args args)

/* Four results of a lane, in pairs, which one instruction computes. */
typedef float gemv_pair __attribute__((ext_vector_type(2)));

typedef struct gemv_four {
    gemv_pair low, high;
} gemv_four;

DEVICE uint32_t gemv_quarter(void)
{
    return lane() / GEMV_LANE_ROWS;
}

DEVICE matrix_two gemv_activations_at(const uint32_t *codes, uint32_t width)
{
    return *(const matrix_two *)(codes + gemv_pair_at(lane() % GEMV_LANE_ROWS % width, width, gemv_quarter()));
}

/* Multiplies four codes of each quarter. */
DEVICE matrix_four gemv_mfma_16(uint32_t columns, uint32_t row)
{
    const matrix_four none = {0, 0, 0, 0};
#if defined(SIMT_CDNA3)
    const matrix_two x = {columns, 0}, q = {row, 0};
    return matrix_mfma_four(x, q, none);
#else
    return __builtin_amdgcn_mfma_i32_16x16x16i8((int)columns, (int)row, none, 0, 0, 0);
#endif
}

/* The factors of four columns. With a single column, all four are its factor. */
DEVICE gemv_four gemv_column_factors(const float *factors, bool single)
{
    gemv_four four;
    if (single) {
        four.low = four.high = factors[0];
        return four;
    }
    const f32x4 all = load_f32x4(factors + gemv_quarter() % 2 * 4);
    four.low = (gemv_pair){all.x, all.y};
    four.high = (gemv_pair){all.z, all.w};
    return four;
}

/* acc += (d * factor) * x. With a single column, only for the first of the four. */
DEVICE void gemv_add(float d, gemv_four factor, gemv_four x, bool single, float *acc)
{
    if (single) {
        acc[0] = fma_f32(d * factor.low.x, x.low.x, acc[0]);
        return;
    }
    gemv_pair *sums = (gemv_pair *)(void *)acc;
    const gemv_pair low = sums[0], high = sums[1];
    sums[0] = __builtin_elementwise_fma(factor.low * d, x.low, low);
    sums[1] = __builtin_elementwise_fma(factor.high * d, x.high, high);
}

DEVICE gemv_four gemv_floats(matrix_four x)
{
    gemv_four four;
    four.low = (gemv_pair){(float)x.x, (float)x.y};
    four.high = (gemv_pair){(float)x.z, (float)x.w};
    return four;
}

/* The integers above GEMV_ONE_AND_A_HALF, as floats. */
DEVICE gemv_four gemv_floats_above(matrix_four x)
{
    gemv_four four;
    four.low = (gemv_pair){canon_bits_float((uint32_t)x.x), canon_bits_float((uint32_t)x.y)} - 12582912.0f;
    four.high = (gemv_pair){canon_bits_float((uint32_t)x.z), canon_bits_float((uint32_t)x.w)} - 12582912.0f;
    return four;
}

/* The sum of two i16. */
DEVICE int32_t gemv_both_sums(uint32_t sums)
{
    return (int16_t)sums + (int16_t)(sums >> 16);
}

DEVICE void gemv_block32(int32_t type, const uint8_t *row, gemv_columns columns, gemv_thread here, float *acc)
{
    const gemv_four factors = gemv_column_factors(columns.factors, here.single);
    const matrix_two x = gemv_activations_at(columns.codes, here.width);
    const words_two words = gemv_words(type, row, 0, here, (int32_t)gemv_quarter());
    const matrix_two q = {words.x, words.y};
    const matrix_four from = {GEMV_ONE_AND_A_HALF, GEMV_ONE_AND_A_HALF, GEMV_ONE_AND_A_HALF, GEMV_ONE_AND_A_HALF};
    const matrix_four j = matrix_mfma_four(x, q, from);
    const dot_factors d = gemv_row_factors(type, row);
    gemv_add(d.d, factors, gemv_floats_above(j), here.single, acc);
    if (dot_has_min(type)) {
        const u32x4 sums = load_u32x4(columns.sums + gemv_quarter() % 2 * 4);
        const matrix_four m = {gemv_both_sums(sums.x), gemv_both_sums(sums.y), gemv_both_sums(sums.z), gemv_both_sums(sums.w)};
        gemv_add(d.min, factors, gemv_floats(m), here.single, acc);
    }
}

/* j += scale * x. Both factors fit in 24 bits, so the multiplication runs at full rate, unlike one of 32 bits. */
DEVICE matrix_four gemv_scaled(int32_t scale, matrix_four x, matrix_four j)
{
    return j + scale * (x << 8 >> 8);
}

DEVICE matrix_four gemv_sum_codes(int32_t type, const uint8_t *row, const words_scales *scales, const uint32_t *codes,
                                  gemv_thread here)
{
    const bool scaled = type != BLOCK_Q8_K;
    const matrix_four none = {0, 0, 0, 0};
    matrix_four j = none;
    UNROLL
    for (int32_t p = 0; p < dot_pieces(type); p++) {
        const matrix_two x = gemv_activations_at(codes + (uint32_t)p * here.width * 8, here.width);
        const words_two words = gemv_words(type, row, p, here, (int32_t)gemv_quarter());
        if (words_sub_blocks_of_16(type)) {
            j = gemv_scaled(words_byte(scales->scales, 2 * p), gemv_mfma_16(x.x, words.x), j);
            j = gemv_scaled(words_byte(scales->scales, 2 * p + 1), gemv_mfma_16(x.y, words.y), j);
        } else {
            const matrix_two q = {words.x, words.y};
            const matrix_four sum = matrix_mfma_four(x, q, scaled ? none : j);
            j = scaled ? gemv_scaled(words_byte(scales->scales, p), sum, j) : sum;
        }
    }
    return j >> words_shift(type);
}

DEVICE void gemv_kblock(int32_t type, const uint8_t *row, gemv_columns columns, gemv_thread here, float *acc)
{
    const gemv_four factors = gemv_column_factors(columns.factors, here.single);
    const words_scales scales = words_scales_aligned(type, here.alignment, row);
    const matrix_four j = gemv_sum_codes(type, row, &scales, columns.codes, here);
    const dot_factors d = gemv_row_factors(type, row);
    gemv_add(d.d, factors, gemv_floats(j), here.single, acc);
    if (dot_has_min(type)) {
        const uint32_t mins = words_mins(type, &scales, gemv_quarter());
        const matrix_two sums = gemv_activations_at(columns.sums, QUANT_GEMV_COLUMNS);
        gemv_add(d.min, factors, gemv_floats(gemv_mfma_16(sums.x, mins) + 128 * gemv_mfma_16(sums.y, mins)), here.single, acc);
    }
}

/* A lane's work in a stage: the first block of a class in its row, and the activations for it. */
typedef struct gemv_position {
    const uint8_t *row;
    uint32_t place; /* its offset in a stage; rounds are multiples of 16 bytes */
    gemv_columns columns;
} gemv_position;

DEVICE void gemv_block(int32_t type, const gemv_position *at, uint32_t blocks, gemv_thread here, float *acc)
{
    const uint32_t bytes = (uint32_t)block_bytes(type), pieces = (uint32_t)dot_pieces(type);
    const gemv_columns columns = gemv_columns_behind(type, at->columns, blocks, here);
    here.alignment = words_shifted(type, at->place);
    if (pieces == 1)
        gemv_block32(type, at->row + blocks * bytes, columns, here, acc);
    else
        gemv_kblock(type, at->row + blocks * bytes, columns, here, acc);
}

/* The rounds of a stage; in the last stage only the blocks that exist. */
DEVICE void gemv_rounds(int32_t type, const quant_gemv_args *args, const uint8_t *stage, uint32_t blocks, gemv_rows rows,
                        gemv_thread here, float *acc)
{
    const uint32_t bytes = (uint32_t)block_bytes(type), first = wave_index() * GEMV_CLASSES;
    gemv_position at[GEMV_CLASSES];
    UNROLL
    for (uint32_t c = 0; c < GEMV_CLASSES; c++) {
        at[c].row = stage + rows.upper + (first + c) * bytes;
        at[c].place = rows.upper + (first + c) * bytes;
        SETTLE(at[c].place);
        at[c].columns = gemv_columns_of(type, stage, first + c, here);
    }
    if (here.unrolled && blocks >= stage_blocks(type) && args->splits == 1) {
        UNROLL
        for (uint32_t o = 0; o < stage_rounds(type); o++) {
            UNROLL
            for (uint32_t c = 0; c < GEMV_CLASSES; c++)
                gemv_block(type, &at[c], o * 8, here, acc + c * GEMV_LANE_SUMS);
        }
        return;
    }
    const uint32_t end = blocks < stage_blocks(type) ? blocks : stage_blocks(type);
    UNROLL_BY(1)
    for (uint32_t o = 0; first + o < end; o += 8) {
        UNROLL
        for (uint32_t c = 0; c < GEMV_CLASSES; c++) {
            if (first + c + o < end && stage_has_class(args, first + c))
                gemv_block(type, &at[c], o, here, acc + c * GEMV_LANE_SUMS);
        }
    }
}

/* Writes the accumulators to shared memory, where they are added up. */
DEVICE void gemv_meet(float *meeting, bool single, const float *acc)
{
    if (gemv_quarter() >= (single ? 1 : 2))
        return;
    UNROLL
    for (uint32_t c = 0; c < GEMV_CLASSES; c++) {
        UNROLL
        for (uint32_t i = 0; i < GEMV_LANE_SUMS; i++) {
            const uint32_t column = gemv_quarter() * 4 + i, number = wave_index() * GEMV_CLASSES + c;
            if (i == 0 || !single)
                AT(meeting, (number * QUANT_GEMV_COLUMNS + column) * QUANT_GEMV_ROWS + lane() % GEMV_LANE_ROWS) =
                    acc[c * GEMV_LANE_SUMS + i];
        }
    }
}

#endif
