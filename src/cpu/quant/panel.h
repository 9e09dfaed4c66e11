/* Sixteen rows of weights unpacked for many columns: words of four codes, with the same word of all rows adjacent.
 *
 * Codes are signed here, without their offset. In blocks of 256 they are multiplied with the scale of their sub-block first, so
 * that nothing is left to do for each sub-block. The product is split into two bytes, code = 128 high + low, and both sums of
 * products of bytes over the whole block are exact. |scale (code - offset)| is at most 128 * 32, or 32 * 127 for iq4_xs.
 */
#ifndef WW_CPU_QUANT_PANEL_H
#define WW_CPU_QUANT_PANEL_H

#include "cpu/quant/quant_set.h"
#include "cpu/quant/tile_vectors.h"
#include "cpu/quant/unpack.h"

typedef struct panel_small {
    int32_t codes[8][TILE_SIDE];
    float d[TILE_SIDE], min[TILE_SIDE];
} panel_small;

typedef struct panel_large {
    int32_t high[64][TILE_SIDE], low[64][TILE_SIDE]; /* low is unused if one byte holds scale times code */
    int32_t mins[8][TILE_SIDE];                      /* two sub-blocks per word */
    float d[TILE_SIDE], min[TILE_SIDE];
} panel_large;

typedef int16_t dot_i16 __attribute__((vector_size(32)));
typedef int8_t dot_bytes __attribute__((vector_size(32)));

DOT_FUNCTION int two_bytes(int32_t type)
{
    return type == BLOCK_Q3_K || type == BLOCK_Q4_K || type == BLOCK_Q5_K || type == BLOCK_Q6_K || type == BLOCK_IQ4_XS;
}

/* Returns where the blocks of accumulator j of a row start: they are contiguous. */
DOT_FUNCTION int64_t accumulator_begin(int64_t blocks, int64_t j)
{
    const int64_t more = blocks % DOT_ACCUMULATORS;
    return j * (blocks / DOT_ACCUMULATORS) + (j < more ? j : more);
}

DOT_FUNCTION int64_t block_place(int64_t blocks, int64_t b)
{
    return accumulator_begin(blocks, b % DOT_ACCUMULATORS) + b / DOT_ACCUMULATORS;
}

/* ---- from eight blocks of each of eight rows to eight rows of each of eight blocks --------------------------------------- */

DOT_FUNCTION void transpose_words(const char *const rows[8], int64_t offset, char *transposed, int32_t group_bytes, int32_t to)
{
    group_words a[4], b[4];
    for (int32_t r = 0; r < 4; r++) {
        memcpy(&a[r], rows[r] + offset, sizeof a[r]);
        memcpy(&b[r], rows[r + 4] + offset, sizeof b[r]);
    }
    words_transpose(a);
    words_transpose(b);
    for (int32_t l = 0; l < 4; l++) { /* halves of four rows */
        memcpy(transposed + l * group_bytes + to, &a[l], 16);
        memcpy(transposed + l * group_bytes + to + 16, &b[l], 16);
        memcpy(transposed + (l + 4) * group_bytes + to, (const char *)&a[l] + 16, 16);
        memcpy(transposed + (l + 4) * group_bytes + to + 16, (const char *)&b[l] + 16, 16);
    }
}

DOT_FUNCTION void transpose_halves(const char *const rows[8], int64_t offset, char *transposed, int32_t group_bytes, int32_t to)
{
    group_halves a[8], b[8];
    for (int32_t r = 0; r < 8; r++)
        memcpy(&a[r], rows[r] + offset, sizeof a[r]);
    for (int32_t step = 0; step < 3; step++) {
        for (int32_t i = 0; i < 4; i++) {
            b[2 * i] = __builtin_shufflevector(a[i], a[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
            b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
        }
        memcpy(a, b, sizeof a);
    }
    for (int32_t l = 0; l < 8; l++)
        memcpy(transposed + l * group_bytes + to, &a[l], sizeof a[l]);
}

DOT_FUNCTION void transpose_groups(int32_t type, const char *const rows[8], int64_t offset, char *transposed)
{
    const int32_t group_bytes = BLOCK_GROUP * block_bytes(type);
    for (int32_t w = 0; w < words_of(type); w++) {
        const int32_t at = BLOCK_GROUP * (words_begin(type) + 4 * w);
        transpose_words(rows, offset + at, transposed, group_bytes, at);
    }
    for (int32_t h = 0; h < halves_before(type) + halves_after(type); h++) {
        const int32_t at = BLOCK_GROUP * half_offset(type, h);
        transpose_halves(rows, offset + at, transposed, group_bytes, at);
    }
    for (int32_t l = 0; l < BLOCK_GROUP && bytes_before(type); l++)
        for (int32_t r = 0; r < 8; r++)
            transposed[l * group_bytes + r] = rows[r][offset + l];
}

/* ---- one block of eight rows --------------------------------------------------------------------------------------------- */

DOT_FUNCTION void put(int32_t *to, dot_lanes lanes)
{
    memcpy(to, &lanes, sizeof lanes);
}

/* Stores words i and i + 1 of eight rows; with TILE_PAIRS, both words of a row are adjacent. */
DOT_FUNCTION void put_words(int32_t (*to)[TILE_SIDE], int32_t first, dot_lanes a, dot_lanes b)
{
    if (TILE_PAIRS) {
        put(to[0] + 2 * first, __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11));
        put(to[0] + 2 * first + 8, __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15));
    } else {
        put(to[0] + first, a);
        put(to[1] + first, b);
    }
}

DOT_FUNCTION void put_factors(int32_t type, const char *group, float *d, float *min)
{
    const dot_floats factor = group_factor(type, group);
    memcpy(d, &factor, sizeof factor);
    if (dot_has_min(type)) {
        const dot_floats min_factor = group_min_factor(type, group);
        memcpy(min, &min_factor, sizeof min_factor);
    }
}

/* `first` is 0 or 8: the first of these rows in the panel. */
DOT_FUNCTION void panel_put_small(int32_t type, const char *group, int32_t first, panel_small *to)
{
    for (int32_t i = 0; i < 8; i += 2) {
        const dot_bytes a = (dot_bytes)group_codes(type, group, 0, i) - (int8_t)dot_offset(type);
        const dot_bytes b = (dot_bytes)group_codes(type, group, 0, i + 1) - (int8_t)dot_offset(type);
        put_words(&to->codes[i], first, (dot_lanes)((dot_words)a ^ TILE_FLIP), (dot_lanes)((dot_words)b ^ TILE_FLIP));
    }
    put_factors(type, group, to->d + first, to->min + first);
}

DOT_FUNCTION void scale_word(int32_t type, dot_words codes, dot_i16 scale, dot_lanes *high, dot_lanes *low)
{
    const int16_t offset = (int16_t)dot_offset(type);
    const dot_i16 first_codes = codes_signed(type) ? (dot_i16)codes << 8 >> 8 : (dot_i16)(codes & 0x00ff00ffu);
    const dot_i16 second_codes = codes_signed(type) ? (dot_i16)codes >> 8 : (dot_i16)(codes >> 8 & 0x00ff00ffu);
    const dot_i16 even = (first_codes - offset) * scale, odd = (second_codes - offset) * scale;
    const int bits = two_bytes(type) ? 7 : 0;
    *high = (dot_lanes)((dot_words)((even >> bits & 255) | odd >> bits << 8) ^ TILE_FLIP);
    if (two_bytes(type))
        *low = (dot_lanes)((even & 127) | (odd & 127) << 8);
}

DOT_FUNCTION void panel_put_large(int32_t type, const char *group, int32_t first, panel_large *to)
{
    const int32_t subs = sub_blocks(type);
    for (int32_t p = 0; p < 8; p++) {
        _Pragma("GCC unroll 4") for (int32_t i = 0; i < 8; i += 2)
        {
            dot_lanes high[2], low[2];
            for (int32_t k = 0; k < 2; k++) {
                const dot_words codes = (dot_words)group_codes(type, group, p, i + k);
                high[k] = (dot_lanes)(codes ^ TILE_FLIP);
                if (subs == 1)
                    continue;
                const dot_words scale = (dot_words)group_scale(type, group, (8 * p + i + k) * subs / 64) & 0xffffu;
                scale_word(type, codes, (dot_i16)(scale | scale << 16), &high[k], &low[k]);
            }
            put_words(&to->high[8 * p + i], first, high[0], high[1]);
            if (two_bytes(type))
                put_words(&to->low[8 * p + i], first, low[0], low[1]);
        }
    }
    if (dot_has_min(type))
        for (int32_t q = 0; q < subs / 2; q++)
            put(to->mins[q] + first, group_min(type, group, 2 * q) | group_min(type, group, 2 * q + 1) << 16);
    put_factors(type, group, to->d + first, to->min + first);
}

/* ---- sixteen rows -------------------------------------------------------------------------------------------------------- */

DOT_FUNCTION void panel_put(int32_t type, const char *group, int32_t first, char *panel, int64_t place)
{
    if (block_elements(type) == BLOCK32_ELEMENTS)
        panel_put_small(type, group, first, (panel_small *)(void *)panel + place);
    else
        panel_put_large(type, group, first, (panel_large *)(void *)panel + place);
}

DOT_FUNCTION void panel_fill(int32_t type, const char *const rows[TILE_SIDE], int64_t blocks, char *panel)
{
    const int32_t group_bytes = BLOCK_GROUP * block_bytes(type);
    for (int32_t first = 0; first < TILE_SIDE; first += 8) {
        for (int64_t b = 0; b < blocks; b += BLOCK_GROUP) {
            _Alignas(32) char transposed[BLOCK_GROUP * GROUP_BYTES_MAX], rest[8][GROUP_BYTES_MAX];
            const int64_t here = blocks - b < BLOCK_GROUP ? blocks - b : BLOCK_GROUP;
            const char *sources[8];
            for (int32_t r = 0; r < 8; r++) {
                sources[r] = rows[first + r] + b / BLOCK_GROUP * group_bytes;
                if (here < BLOCK_GROUP) {
                    group_of_rest(type, sources[r], here, rest[r]);
                    sources[r] = rest[r];
                }
            }
            transpose_groups(type, sources, 0, transposed);
            for (int64_t l = 0; l < here; l++)
                panel_put(type, transposed + l * group_bytes, first, panel, block_place(blocks, b + l));
        }
    }
}

#endif
