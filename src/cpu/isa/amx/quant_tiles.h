/* Panels times tiles with AMX, replacing cpu/quant/tiles.h: the tile unit computes the sums of products; vector instructions
 * scale and add them.
 *
 * The tile unit runs ahead of the vector instructions. A store waits for the last product of its tile, and its data can be read
 * after it has left the processor's queues. A tile of activations has 32 or 64 codes of each of 16 columns; a tile of weights
 * has the same codes of 16 rows. The numbers of tiles must be literals.
 */
#ifndef WW_CPU_ISA_AMX_QUANT_TILES_H
#define WW_CPU_ISA_AMX_QUANT_TILES_H

#include <immintrin.h>

#include "cpu/quant/tile_activations.h"
#include "cpu/quant/tile_fold.h"

enum { TILE_INTS = TILE_SIDE * TILE_SIDE, ROW_BYTES = 64 };

#define TILES_ALL_BY_SET

/* ---- blocks of 32 ---------------------------------------------------------------------------------------------------------
 *
 * An accumulator has so few blocks (two or three for a row of 576) that the vectors would wait for the unit at each. So the
 * blocks of all accumulators and of all tiles of columns form one sequence, and the unit is four to eight blocks ahead.
 */

enum { AHEAD = 4, BLOCKS_MAX = 1024 }; /* longer rows take gemv (PANEL_BYTES_MAX of cpu/quant/product.c) */

/* The blocks of a row in the order in which they are added, and after each the number of accumulators that are then
 * complete. */
typedef struct block_order {
    int16_t place[BLOCKS_MAX];
    uint8_t complete[BLOCKS_MAX];
} block_order;

DOT_FUNCTION void order_blocks(int64_t blocks, block_order *order)
{
    int64_t at = 0;
    for (int32_t n = 0; n < DOT_ACCUMULATORS; n++) {
        for (int64_t b = accumulator_begin(blocks, fold_order[n]); b < accumulator_begin(blocks, fold_order[n] + 1); b++) {
            order->place[at] = (int16_t)b;
            order->complete[at++] = 0;
        }
        order->complete[at - 1]++; /* the first accumulator has a block; one without any is complete with the accumulator before
                                      it */
    }
}

DOT_FUNCTION void add_small(int32_t type, const panel_small *p, const tile_small *x, const int32_t *sums,
                            tile_floats acc[TILE_SIDE])
{
    const tile_floats d = tile_load_floats(p->d), min = tile_load_floats(p->min);
    _Pragma("GCC unroll 16") for (int32_t c = 0; c < TILE_SIDE; c++)
    {
        const tile_lanes j = tile_load(sums + c * TILE_SIDE);
        acc[c] = tile_fma(d * tile_all_floats(x->d[c]), __builtin_convertvector(j, tile_floats), acc[c]);
        if (dot_has_min(type))
            acc[c] = tile_fma(min * tile_all_floats(x->d[c]), tile_all_floats(x->sums[c]), acc[c]);
    }
}

DOT_FUNCTION void clear(tile_floats acc[TILE_SIDE])
{
    _Pragma("GCC unroll 16") for (int32_t c = 0; c < TILE_SIDE; c++) acc[c] = tile_all_floats(0.0f);
}

/* Step n of the fold. n is a constant in each case. Then the next accumulator starts at 0. */
#define FOLD_CASE(n)                                                                                                           \
    case n:                                                                                                                    \
        fold_step(n, acc, sums);                                                                                               \
        break;

DOT_FUNCTION void fold_next(int32_t n, tile_floats acc[TILE_SIDE], float *sums)
{
    switch (n) {
        FOLD_CASE(0)
        FOLD_CASE(1)
        FOLD_CASE(2)
        FOLD_CASE(3)
        FOLD_CASE(4)
        FOLD_CASE(5)
    default:
        fold_step(6, acc, sums);
        break;
    }
    clear(acc);
}

/* Starts the products of block step + k in tile k, and stores their sums. */
#define SMALL_PRODUCT(k, a, w)                                                                                                 \
    do {                                                                                                                       \
        if (step + (k) < steps) {                                                                                              \
            const int32_t place = order.place[ahead];                                                                          \
            _tile_loadd(a, tile_ahead[place].codes, sizeof tile_ahead->codes[0]);                                              \
            _tile_loadd(w, panel[place].codes, ROW_BYTES);                                                                     \
            _tile_zero(k);                                                                                                     \
            _tile_dpbssd(k, a, w);                                                                                             \
            _tile_stored(k, sums[(step + (k)) % (2 * AHEAD)], ROW_BYTES);                                                      \
            if (++ahead == blocks) {                                                                                           \
                ahead = 0;                                                                                                     \
                tile_ahead += blocks;                                                                                          \
            }                                                                                                                  \
        }                                                                                                                      \
    } while (0)

DOT_FUNCTION void tiles_small(int32_t type, const quant_tiles *piece)
{
    const panel_small *panel = piece->panel;
    const tile_small *tile = (const tile_small *)(const void *)piece->tiles, *tile_ahead = tile;
    const int64_t blocks = piece->blocks, steps = (piece->columns + TILE_SIDE - 1) / TILE_SIDE * blocks;
    _Alignas(64) int32_t sums[2 * AHEAD][TILE_INTS];
    tile_floats acc[TILE_SIDE];
    block_order order;
    int64_t at = 0, ahead = 0, done = 0;
    int32_t n = 0;
    order_blocks(blocks, &order);
    clear(acc);
    for (int64_t step = 0; step < steps + AHEAD; step += AHEAD) {
        SMALL_PRODUCT(0, 4, 6);
        SMALL_PRODUCT(1, 5, 7);
        SMALL_PRODUCT(2, 4, 6);
        SMALL_PRODUCT(3, 5, 7);
        for (const int64_t end = step < steps ? step : steps; done < end; done++) {
            const int32_t place = order.place[at];
            add_small(type, panel + place, tile + place, sums[done % (2 * AHEAD)], acc);
            for (int32_t more = order.complete[at]; more > 0 && n < DOT_ACCUMULATORS - 1; more--)
                fold_next(n++, acc, piece->sums);
            if (++at < blocks)
                continue;
            tile_floats result[TILE_SIDE];
            fold_step(DOT_ACCUMULATORS - 1, acc, piece->sums);
            memcpy(result, acc, sizeof result);
            tile_out(piece, done / blocks, result);
            clear(acc);
            at = n = 0;
            tile += blocks;
        }
    }
}

/* ---- blocks of 256 ------------------------------------------------------------------------------------------------------- */

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

/* Computes the sums of one block with two tiles of columns: high and low of the first, then of the second. */
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

/* Computes one accumulator of two tiles of columns, which share the loads of weights. */
DOT_FUNCTION void accumulate_large(int32_t type, const panel_large *panel, const tile_large *const tiles[2], int64_t blocks,
                                   tile_floats acc[2][TILE_SIDE])
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

DOT_FUNCTION void tiles_large(int32_t type, const quant_tiles *piece)
{
    const int64_t blocks = piece->blocks, tiles = (piece->columns + TILE_SIDE - 1) / TILE_SIDE;
    for (int32_t n = 0; n < DOT_ACCUMULATORS; n++) {
        const int32_t j = fold_order[n];
        const int64_t first = accumulator_begin(blocks, j), count = accumulator_begin(blocks, j + 1) - first;
        for (int64_t t = 0; t < tiles; t += 2) {
            const int64_t next = t + 1 < tiles ? t + 1 : t; /* after an odd number of tiles the last is computed twice */
            const tile_large *all = (const tile_large *)(const void *)piece->tiles + first;
            const tile_large *const both[2] = {all + t * blocks, all + next * blocks};
            tile_floats acc[2][TILE_SIDE];
            accumulate_large(type, (const panel_large *)piece->panel + first, both, count, acc);
            for (int64_t k = t; k <= next; k++) {
                fold_step(n, acc[k - t], piece->sums + k * TILE_SUMS);
                if (n == DOT_ACCUMULATORS - 1)
                    tile_out(piece, k, acc[k - t]);
            }
        }
    }
}

DOT_FUNCTION void tiles_all(int32_t type, const quant_tiles *piece)
{
    if (block_elements(type) == BLOCK32_ELEMENTS)
        tiles_small(type, piece);
    else
        tiles_large(type, piece);
}

#endif
