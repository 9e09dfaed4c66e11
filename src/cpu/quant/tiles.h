/* Products with many columns: a panel of 16 rows and tiles of 16 columns.
 *
 * The eight accumulators of a result are computed one after the other, so that each stays in a register for all its blocks, and
 * then folded (tile_fold.h). The blocks of one accumulator are few enough to stay in the first-level cache for all tiles.
 */
#ifndef WW_CPU_QUANT_TILES_H
#define WW_CPU_QUANT_TILES_H

#include "cpu/quant/tile_activations.h"
#include "cpu/quant/tile_fold.h"

#ifndef TILES_ALL_BY_SET /* otherwise the set has its own tiles_all */

/* ---- one accumulator of 16 x 16 results ---------------------------------------------------------------------------------- */

DOT_FUNCTION void accumulate_small(int32_t type, const panel_small *panel, const tile_small *tile, int64_t blocks,
                                   tile_floats acc[TILE_SIDE])
{
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
                    sums[k] = tile_fma(tile_load_floats(p->min) * x->d[c + k], tile_all_floats(x->sums[c + k]), sums[k]);
            }
        }
        for (int32_t k = 0; k < TILE_TOGETHER; k++)
            acc[c + k] = sums[k];
    }
}

DOT_FUNCTION void accumulate_large(int32_t type, const panel_large *panel, const tile_large *tile, int64_t blocks,
                                   tile_floats acc[TILE_SIDE])
{
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
            acc[c + k] = sums[k];
    }
}
/* ---- all of them, folded ------------------------------------------------------------------------------------------------- */

DOT_FUNCTION void accumulate(int32_t type, const quant_tiles *piece, int64_t first, int64_t count, int64_t tile,
                             tile_floats acc[TILE_SIDE])
{
    const int64_t at = tile * piece->blocks + first;
    if (block_elements(type) == BLOCK32_ELEMENTS)
        accumulate_small(type, (const panel_small *)piece->panel + first, (const tile_small *)(const void *)piece->tiles + at,
                         count, acc);
    else
        accumulate_large(type, (const panel_large *)piece->panel + first, (const tile_large *)(const void *)piece->tiles + at,
                         count, acc);
}

DOT_FUNCTION void tiles_all(int32_t type, const quant_tiles *piece)
{
    const int64_t blocks = piece->blocks, tiles = (piece->columns + TILE_SIDE - 1) / TILE_SIDE;
    for (int32_t n = 0; n < DOT_ACCUMULATORS; n++) {
        const int32_t j = fold_order[n];
        const int64_t first = accumulator_begin(blocks, j), count = accumulator_begin(blocks, j + 1) - first;
        for (int64_t t = 0; t < tiles; t++) {
            tile_floats acc[TILE_SIDE];
            accumulate(type, piece, first, count, t, acc);
            fold_step(n, acc, piece->sums + t * TILE_SUMS);
            if (n == DOT_ACCUMULATORS - 1)
                tile_out(piece, t, acc);
        }
    }
}

#endif

#endif
