/* Products with many columns: a panel of 16 rows against tiles of 16 columns.
 *
 * Of the eight accumulators of a result one is done after the other, so that it stays in a register while its blocks go by; the
 * order 0, 4, 2, 6, 1, 5, 3, 7 lets their tree be folded as they come, with three numbers kept at most. The blocks of one
 * accumulator are few enough to stay in the first-level cache while all tiles pass by.
 */
#ifndef WW_CPU_QUANT_TILES_H
#define WW_CPU_QUANT_TILES_H

#include "cpu/quant/tile_activations.h"

#ifndef TILES_ALL_BY_SET /* else the set has tiles_all of its own */

/* ---- one accumulator of 16 x 16 results -----------------------------------------------------------------------------------
 */

#ifndef TILES_AT_ONCE /* else the set has accumulate_small and accumulate_large of its own */
#define TILES_AT_ONCE(type) 1

DOT_FUNCTION void accumulate_small(int32_t type, const panel_small *panel, const tile_small *const tiles[], int64_t blocks,
                                   tile_floats acc[][TILE_SIDE])
{
    const tile_small *tile = tiles[0];
    for (int32_t c = 0; c < TILE_SIDE; c += TILE_TOGETHER) {
        tile_floats sums[TILE_TOGETHER] = {{0}};
        for (int64_t b = 0; b < blocks; b++) {
            const panel_small *p = panel + b;
            const tile_small *x = tile + b;
            tile_lanes j[TILE_TOGETHER];
            for (int32_t k = 0; k < TILE_TOGETHER; k++)
                j[k] = tile_all(TILE_FLIP ? x->start[c + k] : 0);
            tile_sums(p->codes, 8, 1, x->codes[c], sizeof x->codes[c], j);
            for (int32_t k = 0; k < TILE_TOGETHER; k++) {
                sums[k] = tile_fma(tile_load_floats(p->d) * x->d[c + k], __builtin_convertvector(j[k], tile_floats), sums[k]);
                if (dot_has_min(type))
                    sums[k] =
                        tile_fma(tile_load_floats(p->min) * x->d[c + k], (tile_floats){0} + (float)x->sums[c + k], sums[k]);
            }
        }
        for (int32_t k = 0; k < TILE_TOGETHER; k++)
            acc[0][c + k] = sums[k];
    }
}

DOT_FUNCTION void accumulate_large(int32_t type, const panel_large *panel, const tile_large *const tiles[], int64_t blocks,
                                   tile_floats acc[][TILE_SIDE])
{
    const tile_large *tile = tiles[0];
    for (int32_t c = 0; c < TILE_SIDE; c += TILE_TOGETHER) {
        tile_floats sums[TILE_TOGETHER] = {{0}};
        for (int64_t b = 0; b < blocks; b++) {
            const panel_large *p = panel + b;
            const tile_large *x = tile + b;
            tile_lanes high[TILE_TOGETHER], low[TILE_TOGETHER];
            for (int32_t k = 0; k < TILE_TOGETHER; k++) {
                high[k] = tile_all(TILE_FLIP ? x->start[c + k] : 0);
                low[k] = tile_all(0);
            }
            tile_sums(p->high, 64, 1, x->codes[c], sizeof x->codes[c], high);
            if (two_bytes(type))
                tile_sums(p->low, 64, 0, x->codes[c], sizeof x->codes[c], low);
            for (int32_t k = 0; k < TILE_TOGETHER; k++) {
                const tile_lanes j = two_bytes(type) ? high[k] * 128 + low[k] : high[k];
                sums[k] = tile_fma(tile_load_floats(p->d) * x->d[c + k], __builtin_convertvector(j, tile_floats), sums[k]);
                if (!dot_has_min(type))
                    continue;
                tile_lanes m = tile_all(0);
                for (int32_t q = 0; q < sub_blocks(type) / 2; q++)
                    m = tile_pairs(m, tile_load(p->mins[q]), x->pairs[c + k][q]);
                sums[k] = tile_fma(tile_load_floats(p->min) * x->d[c + k], __builtin_convertvector(m, tile_floats), sums[k]);
            }
        }
        for (int32_t k = 0; k < TILE_TOGETHER; k++)
            acc[0][c + k] = sums[k];
    }
}
#endif

/* ---- all of them, folded --------------------------------------------------------------------------------------------------
 */

/* Step n of eight of the fold: acc has come; sums are three numbers for each result. The last gives the result. */
DOT_FUNCTION void fold_step(int32_t n, tile_floats acc[TILE_SIDE], float *sums)
{
    for (int32_t c = 0; c < TILE_SIDE; c++) {
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

/* One accumulator of tile t and, where two go together, the next; the last again where there is none. */
DOT_FUNCTION void accumulate(int32_t type, const quant_tiles *piece, int64_t first, int64_t count, int64_t t, int64_t next,
                             tile_floats acc[][TILE_SIDE])
{
    const int64_t a = t * piece->blocks + first, b = next * piece->blocks + first;
    if (block_elements(type) == BLOCK32_ELEMENTS) {
        const tile_small *all = (const tile_small *)(const void *)piece->tiles, *const tiles[] = {all + a, all + b};
        accumulate_small(type, (const panel_small *)piece->panel + first, tiles, count, acc);
    } else {
        const tile_large *all = (const tile_large *)(const void *)piece->tiles, *const tiles[] = {all + a, all + b};
        accumulate_large(type, (const panel_large *)piece->panel + first, tiles, count, acc);
    }
}

DOT_FUNCTION void tiles_all(int32_t type, const quant_tiles *piece)
{
    static const int8_t order[DOT_ACCUMULATORS] = {0, 4, 2, 6, 1, 5, 3, 7};
    const int64_t blocks = piece->blocks, tiles = (piece->columns + TILE_SIDE - 1) / TILE_SIDE;
    for (int32_t n = 0; n < DOT_ACCUMULATORS; n++) {
        const int64_t first = accumulator_begin(blocks, order[n]), count = accumulator_begin(blocks, order[n] + 1) - first;
        for (int64_t t = 0; t < tiles; t += TILES_AT_ONCE(type)) {
            tile_floats acc[2][TILE_SIDE];
            accumulate(type, piece, first, count, t, t + 1 < tiles ? t + 1 : t, acc);
            for (int64_t k = t; k < tiles && k < t + TILES_AT_ONCE(type); k++) {
                fold_step(n, acc[k - t], piece->sums + k * TILE_SUMS);
                if (n == DOT_ACCUMULATORS - 1)
                    tile_out(piece, k, acc[k - t]);
            }
        }
    }
}

#endif

#endif
