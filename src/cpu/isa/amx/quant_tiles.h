/* One accumulator of 16 x 16 results by AMX: the tile unit makes the sums of products, vectors scale and add them.
 *
 * The tile unit works ahead of the vectors: a store waits for the last product of its tile, and its data can be read once it
 * has left the processor's queues. A tile of activations has the codes of 16 columns, 32 or 64 of each; a tile of weights the
 * same codes of 16 rows. The numbers of tiles must be literals. This replaces what cpu/quant/tiles.h has for other sets.
 */
#ifndef WW_CPU_ISA_AMX_QUANT_TILES_H
#define WW_CPU_ISA_AMX_QUANT_TILES_H

#include <immintrin.h>

#include "cpu/quant/tile_activations.h"

enum { TILE_INTS = TILE_SIDE * TILE_SIDE, ROW_BYTES = 64 };

/* Two tiles of columns share what is loaded of the weights where that is much. */
#define TILES_AT_ONCE(type) (block_elements(type) == BLOCK32_ELEMENTS ? 1 : 2)

/* ---- blocks of 32 ---------------------------------------------------------------------------------------------------------
 */

DOT_FUNCTION void add_small(int32_t type, const panel_small *p, const tile_small *x, const int32_t *sums,
                            tile_floats acc[TILE_SIDE])
{
    const tile_floats d = tile_load_floats(p->d), min = tile_load_floats(p->min);
    _Pragma("GCC unroll 16") for (int32_t c = 0; c < TILE_SIDE; c++)
    {
        const tile_lanes j = tile_load(sums + c * TILE_SIDE);
        acc[c] = tile_fma(d * x->d[c], __builtin_convertvector(j, tile_floats), acc[c]);
        if (dot_has_min(type))
            acc[c] = tile_fma(min * x->d[c], (tile_floats){0} + (float)x->sums[c], acc[c]);
    }
}

enum { AHEAD = 4, RING = 8 }; /* blocks whose sums are made before they are added, and whose sums are kept */

/* Makes the sums of block b + k with tile k, and continues with the block that was AHEAD before. */
#define SMALL_STEP(k, a, w)                                                                                                    \
    do {                                                                                                                       \
        if (b + (k) < blocks) {                                                                                                \
            _tile_loadd(a, tile[b + (k)].codes, sizeof tile->codes[0]);                                                        \
            _tile_loadd(w, panel[b + (k)].codes, ROW_BYTES);                                                                   \
            _tile_zero(k);                                                                                                     \
            _tile_dpbssd(k, a, w);                                                                                             \
            _tile_stored(k, sums[(b + (k)) % RING], ROW_BYTES);                                                                \
        }                                                                                                                      \
        const int64_t done = b + (k) - AHEAD;                                                                                  \
        if (done >= 0 && done < blocks)                                                                                        \
            add_small(type, panel + done, tile + done, sums[done % RING], result);                                             \
    } while (0)

DOT_FUNCTION void accumulate_small(int32_t type, const panel_small *panel, const tile_small *const tiles[], int64_t blocks,
                                   tile_floats acc[][TILE_SIDE])
{
    const tile_small *tile = tiles[0];
    _Alignas(64) int32_t sums[RING][TILE_INTS];
    tile_floats result[TILE_SIDE] = {{0}};
    for (int64_t b = 0; b < blocks + AHEAD; b += 4) {
        SMALL_STEP(0, 4, 6);
        SMALL_STEP(1, 5, 7);
        SMALL_STEP(2, 4, 6);
        SMALL_STEP(3, 5, 7);
    }
    memcpy(acc[0], result, sizeof result);
}

/* ---- blocks of 256 --------------------------------------------------------------------------------------------------------
 */

#define LARGE_STEP(step)                                                                                                       \
    do {                                                                                                                       \
        _tile_loadd(4, x->codes[0] + 64 * (step), sizeof x->codes[0]);                                                         \
        _tile_loadd(6, p->high[16 * (step)], ROW_BYTES);                                                                       \
        _tile_dpbssd(0, 4, 6);                                                                                                 \
        _tile_loadd(5, y->codes[0] + 64 * (step), sizeof y->codes[0]);                                                         \
        _tile_dpbssd(1, 5, 6);                                                                                                 \
        if (two_bytes(type)) {                                                                                                 \
            _tile_loadd(7, p->low[16 * (step)], ROW_BYTES);                                                                    \
            _tile_dpbssd(2, 4, 7);                                                                                             \
            _tile_dpbssd(3, 5, 7);                                                                                             \
        }                                                                                                                      \
    } while (0)

/* The sums of one block with two tiles of columns: high and low of the first, then of the second. */
DOT_FUNCTION void multiply_large(int32_t type, const panel_large *p, const tile_large *x, const tile_large *y, int32_t *sums)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    LARGE_STEP(0);
    LARGE_STEP(1);
    LARGE_STEP(2);
    LARGE_STEP(3);
    _tile_stored(0, sums, ROW_BYTES);
    _tile_stored(1, sums + 2 * TILE_INTS, ROW_BYTES);
    if (two_bytes(type)) {
        _tile_stored(2, sums + TILE_INTS, ROW_BYTES);
        _tile_stored(3, sums + 3 * TILE_INTS, ROW_BYTES);
    }
}

DOT_FUNCTION void add_large(int32_t type, const panel_large *p, const tile_large *x, const int32_t *sums,
                            tile_floats acc[TILE_SIDE])
{
    const tile_floats d = tile_load_floats(p->d), min = tile_load_floats(p->min);
    tile_lanes mins[8];
    for (int32_t q = 0; q < 8; q++)
        mins[q] = tile_load(p->mins[q]);
    _Pragma("GCC unroll 16") for (int32_t c = 0; c < TILE_SIDE; c++)
    {
        const int32_t *at = sums + c * TILE_SIDE;
        tile_lanes j = tile_load(at);
        if (two_bytes(type))
            j = (j << 7) + tile_load(at + TILE_INTS);
        acc[c] = tile_fma(d * x->d[c], __builtin_convertvector(j, tile_floats), acc[c]);
        if (!dot_has_min(type))
            continue;
        tile_lanes m = tile_all(0);
        for (int32_t q = 0; q < sub_blocks(type) / 2; q++)
            m = tile_pairs(m, mins[q], x->pairs[c][q]);
        acc[c] = tile_fma(min * x->d[c], __builtin_convertvector(m, tile_floats), acc[c]);
    }
}

DOT_FUNCTION void accumulate_large(int32_t type, const panel_large *panel, const tile_large *const tiles[], int64_t blocks,
                                   tile_floats acc[][TILE_SIDE])
{
    _Alignas(64) int32_t sums[2][4 * TILE_INTS];
    memset(acc, 0, 2 * sizeof *acc);
    for (int64_t b = 0; b <= blocks; b++) {
        if (b < blocks)
            multiply_large(type, panel + b, tiles[0] + b, tiles[1] + b, sums[b % 2]);
        if (b == 0)
            continue;
        for (int32_t k = 0; k < 2; k++)
            add_large(type, panel + b - 1, tiles[k] + b - 1, sums[(b - 1) % 2] + (int64_t)2 * k * TILE_INTS, acc[k]);
    }
}

#endif
