/* Gemv with registers of four lanes, replacing parts of cpu/quant/gemv.h. It processes the two halves of a group's eight lanes
 * one after the other, because compilers would put vectors of eight lanes through memory.
 *
 * Blocks of 32, four rows at a time: activations are loaded once for all four. The last blocks of the rows and the sum of the
 * accumulators use one lane per row.
 */
#ifndef WW_CPU_ISA_NEON_QUANT_GEMV_H
#define WW_CPU_ISA_NEON_QUANT_GEMV_H

#include <arm_neon.h>

#include "cpu/isa/neon/quant_dot.h"

/* Converts one f16 to a float. */
DOT_FUNCTION float neon_half(const void *from)
{
    __fp16 half;
    memcpy(&half, from, sizeof half);
    return (float)half;
}
#define GEMV_HALF neon_half
#include "cpu/quant/gemv_rest.h"

/* The functions that cpu/quant/gemv.h uses from here. */
#define GEMV_SMALL_ROWS        neon_rows
#define GEMV_LARGE_GROUP       neon_large_group
#define GEMV_PREFETCH_LOCALITY 2

/* Bytes between reading weights and prefetching others, into the second-level cache: the loads themselves bring them into the
 * first. On a Neoverse-V1, both plain reads and gemv of q8_0 reach 23 GB/s with this; with prefetches 1.5 KiB ahead into the
 * first level, gemv reached 15. */
enum { NEON_PREFETCH = 8192 };

DOT_FUNCTION void neon_prefetch(const char *from, int64_t bytes)
{
    _Pragma("GCC unroll 32") for (int64_t at = 0; at < bytes; at += 64)
        __builtin_prefetch(from + at, 0, GEMV_PREFETCH_LOCALITY);
}

#define UNROLLED_16 _Pragma("GCC unroll 16")

/* ---- codes of blocks 4h to 4h + 3 of a group ----------------------------------------------------------------------------- */

DOT_FUNCTION uint8x16_t neon_word(int32_t type, const char *group, int32_t i, int32_t h)
{
    return vld1q_u8((const uint8_t *)group + (int64_t)BLOCK_GROUP * (words_begin(type) + 4 * i) + (int64_t)16 * h);
}

/* Bits [first, first + count) of each byte. */
DOT_FUNCTION uint8x16_t neon_bits(uint8x16_t bytes, int32_t first, int32_t count)
{
    const uint8x16_t low = first ? bytes >> (uint8_t)first : bytes;
    return first + count == 8 ? low : low & (uint8_t)((1 << count) - 1);
}

DOT_FUNCTION uint8x16_t neon_fifth(int32_t type, const char *group, int32_t i, int32_t h)
{
    const uint32x4_t bits = vreinterpretq_u32_u8(neon_word(type, group, 0, h)) >> (uint32_t)(4 * i) & 15u;
    return vreinterpretq_u8_u32(bits * 0x02040810u) & (uint8_t)0x10;
}

DOT_FUNCTION uint8x16_t neon_lookup(int32_t type, uint8x16_t codes)
{
    const uint32_t table[4] = {codebook_word(type, 0), codebook_word(type, 1), codebook_word(type, 2), codebook_word(type, 3)};
    return vqtbl1q_u8(vreinterpretq_u8_u32(vld1q_u32(table)), codes);
}

/* Word i of piece p, like group_codes(). */
DOT_FUNCTION int8x16_t neon_codes(int32_t type, const char *group, int32_t word, int32_t h)
{
    const int32_t p = word / 8, i = word % 8;
    uint8x16_t codes;
    switch (type) {
    case BLOCK_Q4_0:
    case BLOCK_Q4_1:
        codes = neon_bits(neon_word(type, group, i % 4, h), 4 * (i / 4), 4);
        break;
    case BLOCK_Q5_0:
    case BLOCK_Q5_1:
        codes = neon_bits(neon_word(type, group, 1 + i % 4, h), 4 * (i / 4), 4) | neon_fifth(type, group, i, h);
        break;
    case BLOCK_Q2_K:
        codes = neon_bits(neon_word(type, group, 4 + 8 * (p / 4) + i, h), 2 * (p % 4), 2);
        break;
    case BLOCK_Q3_K:
        codes = neon_bits(neon_word(type, group, 8 + 8 * (p / 4) + i, h), 2 * (p % 4), 2) |
                neon_bits(neon_word(type, group, i, h), p, 1) << 2;
        break;
    case BLOCK_Q4_K:
        codes = neon_bits(neon_word(type, group, 3 + 8 * (p / 2) + i, h), 4 * (p % 2), 4);
        break;
    case BLOCK_Q5_K:
        codes = neon_bits(neon_word(type, group, 11 + 8 * (p / 2) + i, h), 4 * (p % 2), 4) |
                neon_bits(neon_word(type, group, 3 + i, h), p, 1) << 4;
        break;
    case BLOCK_Q6_K:
        codes = neon_bits(neon_word(type, group, 16 * (p / 4) + 8 * (p % 2) + i, h), 4 * (p % 4 / 2), 4) |
                neon_bits(neon_word(type, group, 32 + 8 * (p / 4) + i, h), 2 * (p % 4), 2) << 4;
        break;
    case BLOCK_Q8_K:
        codes = neon_word(type, group, 1 + word, h);
        break;
    case BLOCK_IQ4_NL:
    case BLOCK_MXFP4:
        codes = neon_lookup(type, neon_bits(neon_word(type, group, i % 4, h), 4 * (i / 4), 4));
        break;
    case BLOCK_IQ4_XS:
        codes = neon_lookup(type, neon_bits(neon_word(type, group, 1 + 4 * p + i % 4, h), 4 * (i / 4), 4));
        break;
    default: /* q8_0, q8_1 */
        codes = neon_word(type, group, i, h);
        break;
    }
    return vreinterpretq_s8_u8(codes);
}

DOT_FUNCTION int8x16_t neon_activations(const int32_t *words)
{
    return vreinterpretq_s8_s32(vld1q_s32(words));
}

/* f16 number h of blocks 4k to 4k + 3. */
DOT_FUNCTION float32x4_t neon_halves(int32_t type, const char *group, int32_t h, int32_t k)
{
    float16x4_t halves;
    memcpy(&halves, group + (int64_t)BLOCK_GROUP * half_offset(type, h) + (int64_t)8 * k, sizeof halves);
    return vcvt_f32_f16(halves);
}

/* ---- blocks of 32, four rows at a time ----------------------------------------------------------------------------------- */

enum { FOUR = 4 };

typedef struct four_rows {
    const char *row[FOUR];
} four_rows;

/* The activations of blocks 4h to 4h + 3 of a group. */
typedef struct neon_column {
    int8x16_t codes[8];
    int32x4_t start;
    float32x4_t d, sums;
} neon_column;

DOT_FUNCTION neon_column neon_column_of(int32_t type, const gemv_small *x, int32_t h)
{
    neon_column column;
    const int32x4_t sums = vld1q_s32(x->sums + (int64_t)4 * h);
    UNROLLED_16 for (int32_t i = 0; i < 8; i++) column.codes[i] = neon_activations(x->codes[i] + (int64_t)4 * h);
    column.start = dot_offset(type) ? sums : vdupq_n_s32(0);
    column.d = vld1q_f32(x->d + (int64_t)4 * h);
    column.sums = vcvtq_f32_s32(sums);
    return column;
}

/* Four unpacked blocks of a row's group. */
typedef struct neon_blocks {
    int8x16_t codes[8];
    float32x4_t d, min;
} neon_blocks;

DOT_FUNCTION neon_blocks neon_blocks_of(int32_t type, const char *group, int32_t h)
{
    neon_blocks blocks;
    UNROLLED_16 for (int32_t i = 0; i < 8; i++) blocks.codes[i] = neon_codes(type, group, i, h);
    if (type == BLOCK_MXFP4) {
        const dot_floats both = group_factor(type, group);
        memcpy(&blocks.d, (const char *)&both + (int64_t)16 * h, sizeof blocks.d);
    } else {
        blocks.d = neon_halves(type, group, 0, h);
    }
    blocks.min = dot_has_min(type) ? neon_halves(type, group, 1, h) : blocks.d;
    return blocks;
}

DOT_FUNCTION float32x4_t neon_add(int32_t type, const neon_blocks *blocks, const neon_column *x, float32x4_t acc)
{
    int32x4_t sum = x->start;
    UNROLLED_16 for (int32_t i = 0; i < 8; i++) sum = dot_four(sum, blocks->codes[i], x->codes[i]);
    acc = vfmaq_f32(acc, vmulq_f32(blocks->d, x->d), vcvtq_f32_s32(sum));
    return dot_has_min(type) ? vfmaq_f32(acc, vmulq_f32(blocks->min, x->d), x->sums) : acc;
}

/* Multiplies the whole groups of four rows with one column, whose activations are loaded once for all four. Meanwhile it
 * prefetches another four rows, which are contiguous. Compilers that load the codes of several rows at once spill sums. */
DOT_FUNCTION void neon_one_column(int32_t type, const quant_gemv *piece, four_rows rows, float32x4_t (*acc)[2])
{
    const int64_t whole = piece->blocks / BLOCK_GROUP, group_bytes = (int64_t)BLOCK_GROUP * block_bytes(type);
    const gemv_small *x = (const gemv_small *)(const void *)piece->activations;
    const int64_t four_bytes = FOUR * piece->weights_stride;
    const char *ahead = rows.row[0] + (NEON_PREFETCH + four_bytes - 1) / four_bytes * four_bytes;
    float32x4_t sums[FOUR][2];
    UNROLLED_16 for (int32_t r = 0; r < FOUR; r++) sums[r][0] = sums[r][1] = vdupq_n_f32(0.0f);
    for (int64_t e = 0; e < whole; e++, x++) {
        neon_prefetch(ahead, FOUR * group_bytes);
        ahead += FOUR * group_bytes;
        UNROLLED_16 for (int32_t h = 0; h < 2; h++)
        {
            const neon_column column = neon_column_of(type, x, h);
            UNROLLED_16 for (int32_t r = 0; r < FOUR; r++)
            {
                const neon_blocks blocks = neon_blocks_of(type, rows.row[r], h);
                sums[r][h] = neon_add(type, &blocks, &column, sums[r][h]);
                __asm__ volatile("" ::: "memory");
            }
        }
        UNROLLED_16 for (int32_t r = 0; r < FOUR; r++) rows.row[r] += group_bytes;
    }
    neon_prefetch(ahead, four_bytes - whole * FOUR * group_bytes);
    UNROLLED_16 for (int32_t r = 0; r < FOUR; r++)
    {
        acc[r][0] = sums[r][0];
        acc[r][1] = sums[r][1];
    }
}

/* The same with several columns: the codes of a row are unpacked once for all columns. Those of row r start at acc[r *
 * GEMV_COLUMNS]. */
DOT_FUNCTION void neon_columns(int32_t type, const quant_gemv *piece, four_rows rows, float32x4_t (*acc)[2])
{
    const int64_t whole = piece->blocks / BLOCK_GROUP, group_bytes = (int64_t)BLOCK_GROUP * block_bytes(type);
    memset(acc, 0, FOUR * GEMV_COLUMNS * sizeof *acc);
    for (int32_t r = 0; r < FOUR; r++) {
        const char *group = rows.row[r];
        for (int64_t e = 0; e < whole; e++, group += group_bytes) {
            neon_prefetch(group + NEON_PREFETCH, group_bytes);
            UNROLLED_16 for (int32_t h = 0; h < 2; h++)
            {
                const neon_blocks blocks = neon_blocks_of(type, group, h);
                for (int64_t c = 0; c < piece->columns; c++) {
                    const char *x = piece->activations + c * piece->activations_stride;
                    const neon_column column = neon_column_of(type, (const gemv_small *)(const void *)x + e, h);
                    float32x4_t *sum = &acc[r * GEMV_COLUMNS + c][h];
                    *sum = neon_add(type, &blocks, &column, *sum);
                }
            }
        }
    }
}

DOT_FUNCTION void neon_transpose(const float32x4_t in[FOUR], float32x4_t out[FOUR])
{
    const float64x2_t a = vreinterpretq_f64_f32(vtrn1q_f32(in[0], in[1])), b = vreinterpretq_f64_f32(vtrn2q_f32(in[0], in[1]));
    const float64x2_t c = vreinterpretq_f64_f32(vtrn1q_f32(in[2], in[3])), d = vreinterpretq_f64_f32(vtrn2q_f32(in[2], in[3]));
    out[0] = vreinterpretq_f32_f64(vzip1q_f64(a, c));
    out[1] = vreinterpretq_f32_f64(vzip1q_f64(b, d));
    out[2] = vreinterpretq_f32_f64(vzip2q_f64(a, c));
    out[3] = vreinterpretq_f32_f64(vzip2q_f64(b, d));
}

/* Adds block l after the last whole group of each of four rows; the lanes of acc are accumulators l of the rows. */
DOT_FUNCTION float32x4_t neon_rest_add(int32_t type, four_rows rows, int64_t l, const gemv_rest *x, float32x4_t acc)
{
    const int8x16_t first = vld1q_s8(x->codes[l]), second = vld1q_s8(x->codes[l] + 16);
    int32x4_t sums[FOUR];
    float d[FOUR], min[FOUR];
    UNROLLED_16 for (int32_t r = 0; r < FOUR; r++)
    {
        const char *block = rows.row[r] + l * block_bytes(type);
        const dot_factors factors = gemv_rest_factors(type, block);
        dot_piece piece;
        int8x16_t codes[2];
        dot_load(type, block, 0, &piece);
        memcpy(codes, piece.words, sizeof codes);
        sums[r] = dot_four(dot_four(vdupq_n_s32(0), codes[0], first), codes[1], second);
        d[r] = factors.d;
        min[r] = factors.min;
    }
    const float32x4_t da = vdupq_n_f32(x->d[l]);
    int32x4_t j = vpaddq_s32(vpaddq_s32(sums[0], sums[1]), vpaddq_s32(sums[2], sums[3]));
    if (dot_offset(type))
        j = vaddq_s32(j, vdupq_n_s32(x->sums[l]));
    const float32x4_t ds = {d[0], d[1], d[2], d[3]}, mins = {min[0], min[1], min[2], min[3]};
    acc = vfmaq_f32(acc, vmulq_f32(ds, da), vcvtq_f32_s32(j));
    return dot_has_min(type) ? vfmaq_f32(acc, vmulq_f32(mins, da), vdupq_n_f32((float)x->sums[l])) : acc;
}

/* The results of four rows with one column, from their accumulators, `apart` from row to row, and the last blocks. */
DOT_FUNCTION float32x4_t neon_results(int32_t type, const float32x4_t (*acc)[2], int64_t apart, four_rows last, int64_t rest,
                                      const gemv_rest *x)
{
    float32x4_t rows[FOUR], lanes[DOT_ACCUMULATORS];
    UNROLLED_16 for (int32_t h = 0; h < 2; h++)
    {
        UNROLLED_16 for (int32_t r = 0; r < FOUR; r++) rows[r] = acc[r * apart][h];
        neon_transpose(rows, lanes + (int64_t)4 * h);
    }
    for (int64_t l = 0; l < rest; l++)
        lanes[l] = neon_rest_add(type, last, l, x, lanes[l]);
    UNROLLED_16 for (int32_t l = 0; l < 4; l++) lanes[l] = vaddq_f32(lanes[l], lanes[l + 4]);
    return vaddq_f32(vaddq_f32(lanes[0], lanes[2]), vaddq_f32(lanes[1], lanes[3])); /* like dot_fold() */
}

DOT_FUNCTION void neon_rows(int32_t type, const quant_gemv *piece)
{
    const int64_t whole = piece->blocks / BLOCK_GROUP, rest = piece->blocks % BLOCK_GROUP;
    gemv_rest x[GEMV_COLUMNS];
    for (int64_t c = 0; c < piece->columns; c++) {
        const char *activations = piece->activations + c * piece->activations_stride;
        gemv_rest_prepare((const gemv_small *)(const void *)activations + whole, rest, &x[c]);
    }
    for (int64_t first = 0; first < piece->rows; first += FOUR) {
        const int64_t count = piece->rows - first < FOUR ? piece->rows - first : FOUR;
        four_rows rows, last;
        float32x4_t acc[FOUR * GEMV_COLUMNS][2];
        for (int64_t r = 0; r < FOUR; r++) { /* past the last row, the last one is computed again and not written */
            rows.row[r] = piece->weights + (first + (r < count ? r : count - 1)) * piece->weights_stride;
            last.row[r] = rows.row[r] + whole * BLOCK_GROUP * block_bytes(type);
        }
        if (piece->columns == 1)
            neon_one_column(type, piece, rows, acc);
        else
            neon_columns(type, piece, rows, acc);
        for (int64_t c = 0; c < piece->columns; c++) {
            const int64_t apart = piece->columns == 1 ? 1 : GEMV_COLUMNS;
            const float32x4_t results = neon_results(type, acc + c, apart, last, rest, &x[c]);
            float *out = piece->out + piece->places[c] * piece->out_stride + first;
            if (count == FOUR)
                memcpy(out, &results, sizeof results);
            else
                memcpy(out, &results, (size_t)count * sizeof(float));
        }
    }
}

/* ---- blocks of 256 ------------------------------------------------------------------------------------------------------- */

/* The factors of the sums of sub-blocks. */
typedef struct neon_scales {
    dot_lanes scale[16], min[16];
    dot_floats d, min_d;
} neon_scales;

DOT_FUNCTION void neon_scales_of(int32_t type, const char *group, neon_scales *out)
{
    const int32_t subs = sub_blocks(type) > 1 ? sub_blocks(type) : 0;
    for (int32_t r = 0; r < subs; r++) {
        out->scale[r] = group_scale(type, group, r);
        if (dot_has_min(type))
            out->min[r] = group_min(type, group, r);
    }
    out->d = group_factor(type, group);
    if (dot_has_min(type))
        out->min_d = group_min_factor(type, group);
}

DOT_FUNCTION int32x4_t neon_lanes(const dot_lanes *both, int32_t h)
{
    int32x4_t lanes;
    memcpy(&lanes, (const char *)both + (int64_t)16 * h, sizeof lanes);
    return lanes;
}

/* Computes each column's sum of products of sub-block r in `sums`, four words at a time. */
DOT_FUNCTION void neon_sub_block(int32_t type, const char *group, const char *activations, int64_t stride, int64_t columns,
                                 int32_t r, int32_t h, int32x4_t *sums)
{
    const int32_t words = 64 / sub_blocks(type);
    UNROLLED_16 for (int32_t first = 0; first < words; first += 4)
    {
        int8x16_t codes[4];
        UNROLLED_16 for (int32_t i = 0; i < 4; i++) codes[i] = neon_codes(type, group, words * r + first + i, h);
        for (int64_t c = 0; c < columns; c++) {
            const gemv_large *x = (const gemv_large *)(const void *)(activations + c * stride);
            int32x4_t sum = first ? sums[c] : dot_offset(type) ? vld1q_s32(x->sums[r] + (int64_t)4 * h) : vdupq_n_s32(0);
            UNROLLED_16 for (int32_t i = 0; i < 4; i++) sum =
                dot_four(sum, codes[i], neon_activations(x->codes[words * r + first + i] + (int64_t)4 * h));
            sums[c] = sum;
        }
    }
}

/* Multiplies a group with the columns of a piece; only the first `count` lanes of acc[c] change. */
DOT_FUNCTION void neon_large_group(int32_t type, const char *group, const char *activations, int64_t stride, int64_t columns,
                                   int64_t count, dot_floats *acc)
{
    neon_scales scales;
    neon_scales_of(type, group, &scales);
    for (int32_t h = 0; 4 * h < count; h++) {
        int32x4_t j[GEMV_COLUMNS], m[GEMV_COLUMNS], sums[GEMV_COLUMNS];
        for (int64_t c = 0; c < columns; c++)
            j[c] = m[c] = vdupq_n_s32(0);
        UNROLLED_16 for (int32_t r = 0; r < sub_blocks(type); r++)
        {
            neon_sub_block(type, group, activations, stride, columns, r, h, sums);
            for (int64_t c = 0; c < columns; c++) {
                const gemv_large *x = (const gemv_large *)(const void *)(activations + c * stride);
                j[c] = sub_blocks(type) > 1 ? vmlaq_s32(j[c], sums[c], neon_lanes(&scales.scale[r], h)) : sums[c];
                if (dot_has_min(type))
                    m[c] = vmlaq_s32(m[c], vld1q_s32(x->sums[r] + (int64_t)4 * h), neon_lanes(&scales.min[r], h));
            }
        }
        for (int64_t c = 0; c < columns; c++) {
            const gemv_large *x = (const gemv_large *)(const void *)(activations + c * stride);
            const float32x4_t da = vld1q_f32(x->d + (int64_t)4 * h);
            float32x4_t d, min, sum;
            memcpy(&d, (const char *)&scales.d + (int64_t)16 * h, sizeof d);
            memcpy(&sum, (const char *)&acc[c] + (int64_t)16 * h, sizeof sum);
            sum = vfmaq_f32(sum, vmulq_f32(d, da), vcvtq_f32_s32(j[c]));
            if (dot_has_min(type)) {
                memcpy(&min, (const char *)&scales.min_d + (int64_t)16 * h, sizeof min);
                sum = vfmaq_f32(sum, vmulq_f32(min, da), vcvtq_f32_s32(m[c]));
            }
            const int64_t kept = count - 4 * h < 4 ? count - 4 * h : 4; /* like gemv_keep() */
            memcpy((char *)&acc[c] + (int64_t)16 * h, &sum, (size_t)kept * sizeof(float));
        }
    }
}

#endif
