/* Folds the eight accumulators of a result as they are completed: in the order 0, 4, 2, 6, 1, 5, 3, 7, at most three numbers
 * wait. */
#ifndef WW_CPU_QUANT_TILE_FOLD_H
#define WW_CPU_QUANT_TILE_FOLD_H

#include "cpu/quant/quant_set.h"
#include "cpu/quant/tile_vectors.h"

static const int32_t fold_order[DOT_ACCUMULATORS] = {0, 4, 2, 6, 1, 5, 3, 7};

/* Step n of eight of the fold: acc is complete. `sums` are three numbers for each result. The last step gives the result. */
DOT_FUNCTION void fold_step(int32_t n, tile_floats acc[TILE_SIDE], float *sums)
{
    _Pragma("GCC unroll 16") for (int32_t c = 0; c < TILE_SIDE; c++)
    {
        float *s0 = sums + c * TILE_SIDE, *s1 = s0 + TILE_SIDE * TILE_SIDE, *s2 = s1 + TILE_SIDE * TILE_SIDE;
        tile_floats a = acc[c];
        if (n == 7)
            a = tile_load_floats(s2) + a;
        if (n == 3 || n == 5 || n == 7)
            a = tile_load_floats(s1) + a;
        if (n == 1 || n == 3 || n == 7)
            a = tile_load_floats(s0) + a;
        acc[c] = a;
        if (n != 7)
            memcpy(n <= 1 || n == 3 ? s0 : n == 6 ? s2 : s1, &a, sizeof a);
    }
}

DOT_FUNCTION void tile_out(const quant_tiles *piece, int64_t tile, const tile_floats acc[TILE_SIDE])
{
    for (int64_t c = tile * TILE_SIDE; c < piece->columns && c < (tile + 1) * TILE_SIDE; c++) {
        float *out = piece->out + piece->places[c] * piece->out_stride;
        if (piece->rows == TILE_SIDE)
            memcpy(out, &acc[c % TILE_SIDE], sizeof *acc);
        else
            memcpy(out, &acc[c % TILE_SIDE], (size_t)piece->rows * sizeof(float));
    }
}

#endif
