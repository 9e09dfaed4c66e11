/* Panels times tiles with NEON, replacing cpu/quant/tiles.h: 8 rows and 4 columns at a time, so that the sums of products,
 * their operands and the accumulator they are added to all stay in registers.
 *
 * With SMMLA (QUANT_I8MM) a vector has two rows and two columns, [r0c0, r0c1, r1c0, r1c1], from the products to the results;
 * panels and tiles then have codes in pairs of rows and columns (TILE_PAIRS). Otherwise, a vector has four rows of a column.
 */
#ifndef WW_CPU_ISA_NEON_QUANT_TILES_H
#define WW_CPU_ISA_NEON_QUANT_TILES_H

#include <arm_neon.h>

#include "cpu/isa/neon/quant_dot.h"
#if defined(QUANT_I8MM)
#define TILE_PAIRS 1
#endif
#include "cpu/quant/tile_activations.h"

#define TILES_ALL_BY_SET

enum { ROWS_AT_ONCE = 8, COLUMNS_AT_ONCE = 4, VECTORS = ROWS_AT_ONCE * COLUMNS_AT_ONCE / 4 };

#define EACH_VECTOR _Pragma("GCC unroll 8") for (int32_t v = 0; v < VECTORS; v++)

/* The first row and column of a piece, in its panel and tile. */
typedef struct corner {
    int64_t row, column;
} corner;

/* ---- the contents of a vector -------------------------------------------------------------------------------------------- */

#if defined(QUANT_I8MM)

/* Vector v has rows 2 (v / 2) and the next, columns 2 (v % 2) and the next. */
enum { WORDS_STEP = 2 };

DOT_FUNCTION float32x4_t by_rows(const float *of_rows, int32_t v)
{
    const float32x4_t four = vld1q_f32(of_rows + v / 4 * 4);
    return v / 2 % 2 ? vzip2q_f32(four, four) : vzip1q_f32(four, four);
}

DOT_FUNCTION float32x4_t by_columns(float32x4_t columns, int32_t v)
{
    const float32x2_t two = v % 2 ? vget_high_f32(columns) : vget_low_f32(columns);
    return vcombine_f32(two, two);
}

/* Adds the products of the next WORDS_STEP words. `codes` are those of the first column; columns are `stride` apart. */
DOT_FUNCTION void add_words(int32x4_t sums[VECTORS], const int32_t *words, const int8_t *codes, int64_t stride)
{
    int8x16_t w[4], x[2];
    for (int32_t i = 0; i < 4; i++)
        w[i] = vreinterpretq_s8_s32(vld1q_s32(words + 4 * i));
    for (int32_t i = 0; i < 2; i++)
        x[i] = vld1q_s8(codes + 2 * i * stride);
    EACH_VECTOR sums[v] = vmmlaq_s32(sums[v], w[v / 2], x[v % 2]);
}

/* Where the words and the codes of step s start. */
DOT_FUNCTION const int32_t *step_words(const int32_t (*words)[TILE_SIDE], int64_t row, int32_t s)
{
    return words[2 * s] + 2 * row;
}
DOT_FUNCTION const int8_t *step_codes(const int8_t *codes, int32_t s)
{
    return codes + 16 * s;
}

#else

/* Vector v has rows 4 (v / 4) and the next three, column v % 4. */
enum { WORDS_STEP = 4 };

DOT_FUNCTION float32x4_t by_rows(const float *of_rows, int32_t v)
{
    return vld1q_f32(of_rows + v / 4 * 4);
}

DOT_FUNCTION float32x4_t by_columns(float32x4_t columns, int32_t v)
{
    switch (v % 4) {
    case 0:
        return vdupq_laneq_f32(columns, 0);
    case 1:
        return vdupq_laneq_f32(columns, 1);
    case 2:
        return vdupq_laneq_f32(columns, 2);
    default:
        return vdupq_laneq_f32(columns, 3);
    }
}

#define ADD_WORD(i)                                                                                                            \
    do {                                                                                                                       \
        const int8x16_t w[2] = {vreinterpretq_s8_s32(vld1q_s32(words + TILE_SIDE * (i))),                                      \
                                vreinterpretq_s8_s32(vld1q_s32(words + TILE_SIDE * (i) + 4))};                                 \
        EACH_VECTOR sums[v] = dot_four(sums[v], w[v / 4], vreinterpretq_s8_s32(vdupq_laneq_s32(x[v % 4], i)));                 \
    } while (0)

DOT_FUNCTION void add_words(int32x4_t sums[VECTORS], const int32_t *words, const int8_t *codes, int64_t stride)
{
    int32x4_t x[4];
    for (int32_t c = 0; c < 4; c++)
        x[c] = vreinterpretq_s32_s8(vld1q_s8(codes + c * stride));
    ADD_WORD(0);
    ADD_WORD(1);
    ADD_WORD(2);
    ADD_WORD(3);
}

DOT_FUNCTION const int32_t *step_words(const int32_t (*words)[TILE_SIDE], int64_t row, int32_t s)
{
    return words[4 * s] + row;
}
DOT_FUNCTION const int8_t *step_codes(const int8_t *codes, int32_t s)
{
    return codes + 16 * s;
}

#endif

/* acc + (factors of rows * factors of columns) * j. */
DOT_FUNCTION float32x4_t add_scaled(float32x4_t acc, float32x4_t of_rows, float32x4_t of_columns, float32x4_t j)
{
    return vfmaq_f32(acc, vmulq_f32(of_rows, of_columns), j);
}

/* ---- one block ----------------------------------------------------------------------------------------------------------- */

DOT_FUNCTION void add_small(int32_t type, const panel_small *p, const tile_small *x, corner at, float32x4_t acc[VECTORS])
{
    const int64_t row = at.row, column = at.column;
    int32x4_t sums[VECTORS];
    EACH_VECTOR sums[v] = vdupq_n_s32(0);
    _Pragma("GCC unroll 8") for (int32_t s = 0; s < 8 / WORDS_STEP; s++)
        add_words(sums, step_words(p->codes, row, s), step_codes(x->codes[column], s), sizeof x->codes[0]);
    const float32x4_t d = vld1q_f32(x->d + column);
    EACH_VECTOR acc[v] = add_scaled(acc[v], by_rows(p->d + row, v), by_columns(d, v), vcvtq_f32_s32(sums[v]));
    if (!dot_has_min(type))
        return;
    const float32x4_t total = vld1q_f32(x->sums + column);
    EACH_VECTOR acc[v] = add_scaled(acc[v], by_rows(p->min + row, v), by_columns(d, v), by_columns(total, v));
}

/* The sum over sub-blocks of minimum times sum of activations. A word has two 16-bit numbers of each. */
DOT_FUNCTION int32x4_t add_pairs(int32x4_t sum, float32x4_t mins, float32x4_t pairs)
{
    const int16x8_t a = vreinterpretq_s16_f32(mins), b = vreinterpretq_s16_f32(pairs);
    const int32x4_t low = vmull_s16(vget_low_s16(a), vget_low_s16(b)), high = vmull_high_s16(a, b);
    return vaddq_s32(sum, vpaddq_s32(low, high));
}

DOT_FUNCTION void add_mins(int32_t type, const panel_large *p, const tile_large *x, corner at, float32x4_t acc[VECTORS])
{
    const int64_t row = at.row, column = at.column;
    int32x4_t m[VECTORS];
    EACH_VECTOR m[v] = vdupq_n_s32(0);
    for (int32_t q = 0; q < sub_blocks(type) / 2; q++) {
        float of_rows[ROWS_AT_ONCE], of_columns[COLUMNS_AT_ONCE]; /* bits of pairs: vectors of floats only move them */
        memcpy(of_rows, p->mins[q] + row, sizeof of_rows);
        for (int32_t c = 0; c < COLUMNS_AT_ONCE; c++)
            memcpy(&of_columns[c], &x->pairs[column + c][q], sizeof of_columns[c]);
        const float32x4_t columns = vld1q_f32(of_columns);
        EACH_VECTOR m[v] = add_pairs(m[v], by_rows(of_rows, v), by_columns(columns, v));
    }
    const float32x4_t d = vld1q_f32(x->d + column);
    EACH_VECTOR acc[v] = add_scaled(acc[v], by_rows(p->min + row, v), by_columns(d, v), vcvtq_f32_s32(m[v]));
}

DOT_FUNCTION void add_large(int32_t type, const panel_large *p, const tile_large *x, corner at, float32x4_t acc[VECTORS])
{
    const int64_t row = at.row, column = at.column;
    int32x4_t high[VECTORS], low[VECTORS];
    EACH_VECTOR high[v] = low[v] = vdupq_n_s32(0);
    for (int32_t s = 0; s < 64 / WORDS_STEP; s++) {
        const int8_t *codes = step_codes(x->codes[column], s);
        add_words(high, step_words(p->high, row, s), codes, sizeof x->codes[0]);
        if (two_bytes(type))
            add_words(low, step_words(p->low, row, s), codes, sizeof x->codes[0]);
    }
    const float32x4_t d = vld1q_f32(x->d + column);
    EACH_VECTOR
    {
        const int32x4_t j = two_bytes(type) ? vaddq_s32(vshlq_n_s32(high[v], 7), low[v]) : high[v];
        acc[v] = add_scaled(acc[v], by_rows(p->d + row, v), by_columns(d, v), vcvtq_f32_s32(j));
    }
    if (dot_has_min(type))
        add_mins(type, p, x, at, acc);
}

/* ---- all blocks, folded -------------------------------------------------------------------------------------------------- */

/* Folds the eight accumulators of each vector to one. */
DOT_FUNCTION float32x4_t fold_parts(float32x4_t parts[DOT_ACCUMULATORS][VECTORS], int32_t v)
{
    const float32x4_t even = vaddq_f32(vaddq_f32(parts[0][v], parts[4][v]), vaddq_f32(parts[2][v], parts[6][v]));
    const float32x4_t odd = vaddq_f32(vaddq_f32(parts[1][v], parts[5][v]), vaddq_f32(parts[3][v], parts[7][v]));
    return vaddq_f32(even, odd);
}

/* Transposes results from vectors to columns of eight rows. */
DOT_FUNCTION void to_columns(const float32x4_t all[VECTORS], float columns[COLUMNS_AT_ONCE][ROWS_AT_ONCE])
{
    for (int32_t c = 0; c < COLUMNS_AT_ONCE; c++)
        for (int32_t half = 0; half < 2; half++) {
#if defined(QUANT_I8MM)
            const float32x4_t a = all[4 * half + c / 2], b = all[4 * half + 2 + c / 2];
            vst1q_f32(columns[c] + 4 * half, c % 2 ? vuzp2q_f32(a, b) : vuzp1q_f32(a, b));
#else
            vst1q_f32(columns[c] + 4 * half, all[4 * half + c]);
#endif
        }
}

DOT_FUNCTION void multiply_some(int32_t type, const quant_tiles *piece, int64_t tile, corner at)
{
    float32x4_t parts[DOT_ACCUMULATORS][VECTORS], all[VECTORS];
    const int64_t blocks = piece->blocks;
    for (int32_t n = 0; n < DOT_ACCUMULATORS; n++) {
        float32x4_t acc[VECTORS];
        EACH_VECTOR acc[v] = vdupq_n_f32(0.0f);
        for (int64_t b = accumulator_begin(blocks, n); b < accumulator_begin(blocks, n + 1); b++)
            if (block_elements(type) == BLOCK32_ELEMENTS)
                add_small(type, (const panel_small *)piece->panel + b,
                          (const tile_small *)(const void *)piece->tiles + tile * blocks + b, at, acc);
            else
                add_large(type, (const panel_large *)piece->panel + b,
                          (const tile_large *)(const void *)piece->tiles + tile * blocks + b, at, acc);
        EACH_VECTOR parts[n][v] = acc[v];
    }
    float columns[COLUMNS_AT_ONCE][ROWS_AT_ONCE];
    EACH_VECTOR all[v] = fold_parts(parts, v);
    to_columns(all, columns);
    const int64_t first = tile * TILE_SIDE + at.column, rows = piece->rows - at.row;
    for (int64_t c = 0; c < COLUMNS_AT_ONCE && first + c < piece->columns; c++) {
        float *out = piece->out + piece->places[first + c] * piece->out_stride + at.row;
        if (rows >= ROWS_AT_ONCE)
            memcpy(out, columns[c], sizeof columns[c]);
        else
            memcpy(out, columns[c], (size_t)rows * sizeof(float));
    }
}

DOT_FUNCTION void tiles_all(int32_t type, const quant_tiles *piece)
{
    for (int64_t c = 0; c < piece->columns; c += COLUMNS_AT_ONCE)
        for (int64_t row = 0; row < piece->rows; row += ROWS_AT_ONCE)
            multiply_some(type, piece, c / TILE_SIDE, (corner){row, c % TILE_SIDE});
}

#endif
