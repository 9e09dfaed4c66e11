/* One accumulator of 16 x 16 results by AMX: the tile unit makes the sums of products, vectors scale and add them.
 *
 * The unit works on blocks ahead while vectors are at those before: a store waits for the last product of its tile, and would
 * leave the unit idle. A tile of activations has the codes of 16 columns, 32 or 64 of each; a tile of weights the same codes of
 * 16 rows. Included by cpu/quant_tiles.h. The numbers of tiles must be written out.
 */
#ifndef WW_CPU_AMX_QUANT_TILES_H
#define WW_CPU_AMX_QUANT_TILES_H

#include <immintrin.h>

enum { TILE_INTS = TILE_SIDE * TILE_SIDE, ROW_BYTES = 64, AHEAD = 4 };

#define MULTIPLY_BLOCK(sum, a, b, p, x)                                                                                        \
    do {                                                                                                                       \
        _tile_loadd(a, (x)->codes, sizeof(x)->codes[0]);                                                                       \
        _tile_loadd(b, (p)->codes, ROW_BYTES);                                                                                 \
        _tile_zero(sum);                                                                                                       \
        _tile_dpbssd(sum, a, b);                                                                                               \
    } while (0)

/* The sums of up to four blocks. */
DOT_FUNCTION void multiply_small(const panel_small *p, const tile_small *x, int64_t blocks, int32_t *sums)
{
    if (blocks >= AHEAD) {
        MULTIPLY_BLOCK(0, 4, 6, p, x);
        MULTIPLY_BLOCK(1, 5, 7, p + 1, x + 1);
        MULTIPLY_BLOCK(2, 4, 6, p + 2, x + 2);
        MULTIPLY_BLOCK(3, 5, 7, p + 3, x + 3);
        _tile_stored(0, sums, ROW_BYTES);
        _tile_stored(1, sums + TILE_INTS, ROW_BYTES);
        _tile_stored(2, sums + 2 * TILE_INTS, ROW_BYTES);
        _tile_stored(3, sums + 3 * TILE_INTS, ROW_BYTES);
        return;
    }
    for (int64_t b = 0; b < blocks; b++) {
        MULTIPLY_BLOCK(0, 4, 6, p + b, x + b);
        _tile_stored(0, sums + b * TILE_INTS, ROW_BYTES);
    }
}

DOT_FUNCTION void add_small(int32_t type, const panel_small *p, const tile_small *x, const int32_t *sums,
                            tile_floats acc[TILE_SIDE])
{
    const tile_floats d = tile_take_floats(p->d), min = tile_take_floats(p->min);
    _Pragma("GCC unroll 16") for (int32_t c = 0; c < TILE_SIDE; c++)
    {
        const tile_lanes j = tile_take(sums + c * TILE_SIDE);
        acc[c] = tile_fma(d * x->d[c], __builtin_convertvector(j, tile_floats), acc[c]);
        if (dot_has_min(type))
            acc[c] = tile_fma(min * x->d[c], (tile_floats){0} + (float)x->sums[c], acc[c]);
    }
}

DOT_FUNCTION void class_small(int32_t type, const panel_small *panel, const tile_small *tile, int64_t blocks,
                              tile_floats acc[TILE_SIDE])
{
    _Alignas(64) int32_t sums[2][AHEAD * TILE_INTS];
    tile_floats result[TILE_SIDE] = {{0}};
    multiply_small(panel, tile, blocks, sums[0]);
    for (int64_t b = 0; b < blocks; b += AHEAD) {
        const int32_t *here = sums[b / AHEAD % 2];
        multiply_small(panel + b + AHEAD, tile + b + AHEAD, blocks - b - AHEAD, sums[(b / AHEAD + 1) % 2]);
        for (int64_t k = 0; k < AHEAD && b + k < blocks; k++)
            add_small(type, panel + b + k, tile + b + k, here + k * TILE_INTS, result);
    }
    memcpy(acc, result, sizeof result);
}

/* Steps of 64 codes, two accumulators in turn for each part. */
#define MULTIPLY_STEP(low_sum, high_sum, a, step)                                                                              \
    do {                                                                                                                       \
        _tile_loadd(a, x->codes[0] + 64 * (step), sizeof x->codes[0]);                                                         \
        _tile_loadd(7, p->high[16 * (step)], ROW_BYTES);                                                                       \
        _tile_dpbssd(high_sum, a, 7);                                                                                          \
        if (two_parts(type)) {                                                                                                 \
            _tile_loadd(6, p->low[16 * (step)], ROW_BYTES);                                                                    \
            _tile_dpbssd(low_sum, a, 6);                                                                                       \
        }                                                                                                                      \
    } while (0)

DOT_FUNCTION void multiply_large(int32_t type, const panel_large *p, const tile_large *x, int32_t *sums)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    MULTIPLY_STEP(0, 1, 4, 0);
    MULTIPLY_STEP(2, 3, 5, 1);
    MULTIPLY_STEP(0, 1, 4, 2);
    MULTIPLY_STEP(2, 3, 5, 3);
    _tile_stored(1, sums, ROW_BYTES);
    _tile_stored(3, sums + TILE_INTS, ROW_BYTES);
    if (two_parts(type)) {
        _tile_stored(0, sums + 2 * TILE_INTS, ROW_BYTES);
        _tile_stored(2, sums + 3 * TILE_INTS, ROW_BYTES);
    }
}

DOT_FUNCTION void add_large(int32_t type, const panel_large *p, const tile_large *x, const int32_t *sums,
                            tile_floats acc[TILE_SIDE])
{
    const tile_floats d = tile_take_floats(p->d), min = tile_take_floats(p->min);
    tile_lanes mins[8];
    for (int32_t q = 0; q < 8; q++)
        mins[q] = tile_take(p->mins[q]);
    _Pragma("GCC unroll 16") for (int32_t c = 0; c < TILE_SIDE; c++)
    {
        const int32_t *at = sums + c * TILE_SIDE;
        tile_lanes j = tile_take(at) + tile_take(at + TILE_INTS);
        if (two_parts(type))
            j = (j << 7) + (tile_take(at + 2 * TILE_INTS) + tile_take(at + 3 * TILE_INTS));
        acc[c] = tile_fma(d * x->d[c], __builtin_convertvector(j, tile_floats), acc[c]);
        if (!dot_has_min(type))
            continue;
        tile_lanes m = tile_all(0);
        for (int32_t q = 0; q < runs_of(type) / 2; q++)
            m = tile_pairs(m, mins[q], x->pairs[c][q]);
        acc[c] = tile_fma(min * x->d[c], __builtin_convertvector(m, tile_floats), acc[c]);
    }
}

DOT_FUNCTION void class_large(int32_t type, const panel_large *panel, const tile_large *tile, int64_t blocks,
                              tile_floats acc[TILE_SIDE])
{
    _Alignas(64) int32_t sums[2][4 * TILE_INTS];
    tile_floats result[TILE_SIDE] = {{0}};
    if (blocks > 0)
        multiply_large(type, panel, tile, sums[0]);
    for (int64_t b = 0; b < blocks; b++) {
        if (b + 1 < blocks)
            multiply_large(type, panel + b + 1, tile + b + 1, sums[(b + 1) % 2]);
        add_large(type, panel + b, tile + b, sums[b % 2], result);
    }
    memcpy(acc, result, sizeof result);
}

#endif
