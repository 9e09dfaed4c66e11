/* Sixteen lanes of products of codes: the rows of a tile with one column, in two halves of eight lanes.
 *
 * A set that has something better includes it before this:
 *   TILE_VECTORS      it has tile_unsigned, tile_signed, tile_pairs and tile_fma for sixteen lanes, and TILE_FLIP
 *   TILE_TOGETHER     columns that share the loads of weights; default 2
 *   TILE_FLIP         what signed weights are combined with when they are stored. If products need unsigned weights, 128 is
 *                     added, and a sum starts at -128 times the sum of the activations
 *   TILE_PAIRS        1: eight codes of a row or column are next to the eight of the next one, for products of two with two
 *   TILES_ALL_BY_SET  it has tiles_all (cpu/quant/tiles.h), and needs none of the vectors here
 */
#ifndef WW_CPU_QUANT_TILE_VECTORS_H
#define WW_CPU_QUANT_TILE_VECTORS_H

#include "cpu/quant/dot_types.h"

#ifndef TILE_FLIP
#define TILE_FLIP 0u
#endif
#ifndef TILE_PAIRS
#define TILE_PAIRS 0
#endif
#ifndef TILE_TOGETHER
#define TILE_TOGETHER 2
#endif

DOT_FUNCTION tile_lanes tile_all(int32_t value)
{
    return (tile_lanes){0} + value;
}

DOT_FUNCTION tile_floats tile_all_floats(float value)
{
    return (tile_floats){value, value, value, value, value, value, value, value,
                         value, value, value, value, value, value, value, value};
}

DOT_FUNCTION tile_lanes tile_load(const int32_t *from)
{
    tile_lanes lanes;
    memcpy(&lanes, from, sizeof lanes);
    return lanes;
}

DOT_FUNCTION tile_floats tile_load_floats(const float *from)
{
    tile_floats floats;
    memcpy(&floats, from, sizeof floats);
    return floats;
}

#ifndef TILE_VECTORS
#define TILE_BY_HALVES(name, operation)                                                                                        \
    DOT_FUNCTION tile_lanes name(tile_lanes sum, tile_lanes weights, int32_t activations)                                      \
    {                                                                                                                          \
        dot_lanes s[2], w[2];                                                                                                  \
        memcpy(s, &sum, sizeof s);                                                                                             \
        memcpy(w, &weights, sizeof w);                                                                                         \
        for (int i = 0; i < 2; i++)                                                                                            \
            s[i] = operation(s[i], w[i], (dot_lanes){0} + activations);                                                        \
        memcpy(&sum, s, sizeof s);                                                                                             \
        return sum;                                                                                                            \
    }
TILE_BY_HALVES(tile_unsigned, dot_unsigned)
TILE_BY_HALVES(tile_signed, dot_signed)
TILE_BY_HALVES(tile_pairs, dot_pairs)
#undef TILE_BY_HALVES

DOT_FUNCTION tile_floats tile_fma(tile_floats a, tile_floats b, tile_floats c)
{
    dot_floats x[2], y[2], z[2];
    memcpy(x, &a, sizeof x);
    memcpy(y, &b, sizeof y);
    memcpy(z, &c, sizeof z);
    for (int i = 0; i < 2; i++)
        z[i] = dot_fma(x[i], y[i], z[i]);
    memcpy(&c, z, sizeof z);
    return c;
}
#endif

/* Adds the products of some words of 16 rows with TILE_TOGETHER columns, whose codes are `stride` apart. */
DOT_FUNCTION void tile_sums(const int32_t (*weights)[16], int32_t words, int any_sign, const int8_t *codes, int64_t stride,
                            tile_lanes j[TILE_TOGETHER])
{
    _Pragma("GCC unroll 8") for (int32_t i = 0; i < words; i++)
    {
        tile_lanes w;
        memcpy(&w, weights[i], sizeof w);
        for (int32_t k = 0; k < TILE_TOGETHER; k++) {
            int32_t word;
            memcpy(&word, codes + k * stride + (int64_t)4 * i, sizeof word);
            j[k] = any_sign ? tile_signed(j[k], w, word) : tile_unsigned(j[k], w, word);
        }
    }
}

#endif
