/* Shared by the two convolutions in fast mode (conv_fast.c, conv_shared.c): packs elements for the matrix units and writes
 * results, in tiles of 64 channels of 256 outputs. */
#ifndef WW_KERNELS_MATMUL_CONV_TILES_H
#define WW_KERNELS_MATMUL_CONV_TILES_H

#include "kernels/matmul/matmul_f32.h"

#include "kernels/simt/matrix_f16.h"

enum { CONV_COLUMNS = MATMUL_THREADS };

/* An unconverted element in a word. */
DEVICE uint32_t conv_word(int32_t type, const void *data, int64_t at)
{
    return type == TYPE_F32 ? canon_float_bits(((const float *)data)[at]) : ((const uint16_t *)data)[at];
}

/* Packs elements into 16 bytes. */
DEVICE u32x4 conv_piece(int32_t type, const uint32_t *e)
{
    if (type == TYPE_F32) {
        const u32x4 rounded = {fast_round(e[0]), fast_round(e[1]), fast_round(e[2]), fast_round(e[3])};
        return rounded;
    }
    const u32x4 pairs = {e[0] | e[1] << 16, e[2] | e[3] << 16, e[4] | e[5] << 16, e[6] | e[7] << 16};
    return pairs;
}

DEVICE void conv_put_one(int32_t type, void *c, int64_t at, float x)
{
    if (type == TYPE_F32)
        ((float *)c)[at] = one_nan_f32(x);
    else
        ((uint16_t *)c)[at] = type == TYPE_F16 ? narrow_f16(x) : narrow_bf16(x);
}

/* Writes a tile of sums to the matrix that starts at `begin`. With `pairs`, two adjacent 16-bit results are written at once.
 * All threads call it. */
DEVICE void conv_put(int32_t type, const matmul_args *product, int64_t begin, bool pairs, int32_t first_row,
                     int32_t first_column, const float *sums)
{
    const matmul_shape shape = {FAST_ROWS, CONV_COLUMNS, 32, true, true};
    SETTLE(first_row); /* otherwise all addresses would be computed before the sums and kept in registers */
    SETTLE(first_column);
    UNROLL for (uint32_t c = 0; c < FAST_LANE_COLUMNS; c += 2)
    {
        const int32_t column = first_column + (int32_t)(wave_index() * wave_size() + fast_column(c));
        const int32_t next = first_column + (int32_t)(wave_index() * wave_size() + fast_column(c + 1));
        const int64_t at = begin + (column < product->n ? matmul_column_at(shape, product, column) : 0);
        const int64_t next_at = begin + (next < product->n ? matmul_column_at(shape, product, next) : 0);
        const bool together = type != TYPE_F32 && pairs && next == column + 1 && next < product->n;
        UNROLL for (uint32_t r = 0; r < FAST_LANE_ROWS; r++)
        {
            const int32_t row = first_row + (int32_t)fast_row(r);
            const float low = sums[fast_sum(r, c)] + 0.0f, high = sums[fast_sum(r, c + 1)] + 0.0f;
            if (row >= product->m)
                continue;
            if (together) {
                const uint32_t lower = type == TYPE_F16 ? narrow_f16(low) : narrow_bf16(low);
                const uint32_t upper = type == TYPE_F16 ? narrow_f16(high) : narrow_bf16(high);
                *(uint32_t *)((uint16_t *)product->c + at + row * product->c_row) = lower | upper << 16;
                continue;
            }
            if (column < product->n)
                conv_put_one(type, product->c, at + row * product->c_row, low);
            if (next < product->n)
                conv_put_one(type, product->c, next_at + row * product->c_row, high);
        }
    }
}

#endif
