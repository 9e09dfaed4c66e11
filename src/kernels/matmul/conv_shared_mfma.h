/* The wave's part of conv_shared.h on AMD chips with MFMA: 64 channels of 32 outputs by instructions of 16 x 16. That is half
 * as much as a wave of matmul_fast_* has, so a block has twice as many waves, which load its pixels in half the time. A lane
 * has two outputs and finds their pixels at each tap. Pieces of 16 bytes are read and multiplied as in matrix_f16_amd.h.
 */
#ifndef WW_KERNELS_MATMUL_CONV_SHARED_MFMA_H
#define WW_KERNELS_MATMUL_CONV_SHARED_MFMA_H

#include "kernels/matmul/conv_tiles.h"

enum {
    CONV_THREADS = 512,
    CONV_WAVE_COLUMNS = 32,
    CONV_PLACES = CONV_WAVE_COLUMNS / FAST_TILE,
    CONV_SUMS = 32,
    CONV_ROW_TILES = FAST_ROWS / FAST_TILE,
};

/* The wave's first output in the block's tile. */
DEVICE uint32_t conv_first_column(void)
{
    return wave_index() * CONV_WAVE_COLUMNS;
}

DEVICE uint32_t conv_place_column(uint32_t place)
{
    return place * FAST_TILE + lane() % FAST_TILE;
}

/* Multiplies a tap's weights with the pixels of the wave's outputs. */
DEVICE void conv_multiply(int32_t type, const uint32_t *weights, const uint32_t *pixels, const uint32_t *places, float *sums)
{
    const uint32_t *from = weights + fast_piece(lane() % FAST_TILE, lane() / FAST_TILE);
    fast_words x[CONV_ROW_TILES], q[CONV_PLACES];
    UNROLL for (uint32_t i = 0; i < CONV_PLACES; i++) q[i] = fast_load(pixels + fast_piece(places[i], lane() / FAST_TILE));
    UNROLL for (uint32_t i = 0; i < CONV_ROW_TILES; i++) x[i] = fast_load(from + i * FAST_TILE * FAST_WORDS);
    UNROLL for (uint32_t step = 0; step < fast_steps(type); step++)
    {
        UNROLL for (uint32_t tile = 0; tile < CONV_ROW_TILES * CONV_PLACES; tile++)
        {
            fast_four_sums *sum = (fast_four_sums *)(sums + tile * 4);
            *sum = fast_mfma(type, x[tile % CONV_ROW_TILES], q[tile / CONV_ROW_TILES], step, *sum);
        }
    }
}

/* Writes a column of the lane's sums starting at `to`; the first is row `row`. With `part`, only rows that exist are
 * written. */
DEVICE void conv_write_column(int32_t type, const matmul_args *product, bool part, int32_t row, char *to, const float *sums)
{
    const int64_t row_bytes = product->c_row * element_bytes(type);
    const int32_t rows = product->m;
    UNROLL for (int32_t i = 0; i < 4 * CONV_ROW_TILES; i++)
    {
        const int32_t on = i % 4 == 3 ? FAST_TILE - 3 : 1; /* a lane has four rows of each tile */
        if (!part || row < rows)
            conv_put_one(type, to, 0, sums[i] + 0.0f);
        row += on;
        to += on * row_bytes;
    }
}

DEVICE void conv_write(int32_t type, const matmul_args *product, bool pairs, int32_t first_row, int32_t first_column,
                       const float *sums)
{
    const matmul_shape shape = {FAST_ROWS, CONV_COLUMNS, 32, true, true};
    const int32_t row = first_row + (int32_t)(lane() / FAST_TILE) * 4;
    (void)pairs;
    UNROLL for (uint32_t p = 0; p < CONV_PLACES; p++)
    {
        const int32_t column = first_column + (int32_t)(conv_first_column() + conv_place_column(p));
        if (column >= product->n)
            return;
        const int64_t at = matmul_column_at(shape, product, column) + row * product->c_row;
        char *to = (char *)product->c + at * element_bytes(type);
        if (first_row + FAST_ROWS <= product->m)
            conv_write_column(type, product, false, row, to, sums + p * 4 * CONV_ROW_TILES);
        else
            conv_write_column(type, product, true, row, to, sums + p * 4 * CONV_ROW_TILES);
    }
}

#endif
