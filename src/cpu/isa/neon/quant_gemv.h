/* Gemv in registers of four lanes, in the place of parts of cpu/quant/gemv.h: the two halves of a group's eight lanes are taken
 * one after the other, so that nothing is left to the compiler that would go through memory.
 */
#ifndef WW_CPU_ISA_NEON_QUANT_GEMV_H
#define WW_CPU_ISA_NEON_QUANT_GEMV_H

#include <arm_neon.h>

#include "cpu/isa/neon/quant_dot.h"

/* One f16 as a float. */
DOT_FUNCTION float neon_half(const void *from)
{
    __fp16 half;
    memcpy(&half, from, sizeof half);
    return (float)half;
}
#define GEMV_HALF neon_half
#include "cpu/quant/gemv_rest.h"

/* What cpu/quant/gemv.h takes from here. */
#define GEMV_SMALL_ROWS  neon_rows
#define GEMV_LARGE_GROUP neon_large_group

enum { NEON_PREFETCH = 4096 }; /* how far ahead weights are prefetched */

#define UNROLLED_16 _Pragma("GCC unroll 16")

/* ---- codes, of blocks 4h to 4h + 3 of a group -----------------------------------------------------------------------------
 */

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

/* As group_codes(): word i of piece p. */
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

/* Half number h of blocks 4k to 4k + 3. */
DOT_FUNCTION float32x4_t neon_halves(int32_t type, const char *group, int32_t h, int32_t k)
{
    float16x4_t halves;
    memcpy(&halves, group + (int64_t)BLOCK_GROUP * half_offset(type, h) + (int64_t)8 * k, sizeof halves);
    return vcvt_f32_f16(halves);
}

/* ---- blocks of 32 ---------------------------------------------------------------------------------------------------------
 */

/* Four blocks of a group with the columns of a piece; acc has two vectors for each column. */
DOT_FUNCTION void neon_small(int32_t type, const quant_gemv *piece, const char *group, int64_t e, int64_t columns, int32_t h,
                             float32x4_t (*acc)[2])
{
    int8x16_t codes[8];
    float32x4_t d;
    UNROLLED_16 for (int32_t i = 0; i < 8; i++) codes[i] = neon_codes(type, group, i, h);
    if (type == BLOCK_MXFP4) {
        const dot_floats both = group_factor(type, group);
        memcpy(&d, (const char *)&both + (int64_t)16 * h, sizeof d);
    } else {
        d = neon_halves(type, group, 0, h);
    }
    const float32x4_t min = dot_has_min(type) ? neon_halves(type, group, 1, h) : d;
    for (int64_t c = 0; c < columns; c++) {
        const gemv_small *x = (const gemv_small *)(const void *)(piece->activations + c * piece->activations_stride) + e;
        const float32x4_t da = vld1q_f32(x->d + (int64_t)4 * h);
        const int32x4_t sums = vld1q_s32(x->sums + (int64_t)4 * h);
        int32x4_t even = dot_offset(type) ? sums : vdupq_n_s32(0), odd = vdupq_n_s32(0);
        UNROLLED_16 for (int32_t i = 0; i < 8; i += 2)
        {
            even = dot_four(even, codes[i], neon_activations(x->codes[i] + (int64_t)4 * h));
            odd = dot_four(odd, codes[i + 1], neon_activations(x->codes[i + 1] + (int64_t)4 * h));
        }
        acc[c][h] = vfmaq_f32(acc[c][h], vmulq_f32(d, da), vcvtq_f32_s32(vaddq_s32(even, odd)));
        if (dot_has_min(type))
            acc[c][h] = vfmaq_f32(acc[c][h], vmulq_f32(min, da), vcvtq_f32_s32(sums));
    }
}

DOT_FUNCTION void neon_row(int32_t type, const quant_gemv *piece, int64_t row, int64_t columns, const gemv_rest *rest)
{
    const int64_t whole = piece->blocks / BLOCK_GROUP, group_bytes = (int64_t)BLOCK_GROUP * block_bytes(type);
    const char *group = piece->weights + row * piece->weights_stride;
    float32x4_t acc[GEMV_COLUMNS][2];
    for (int64_t c = 0; c < columns; c++)
        acc[c][0] = acc[c][1] = vdupq_n_f32(0.0f);
    for (int64_t e = 0; e < whole; e++, group += group_bytes) {
        for (int32_t at = 0; at < group_bytes; at += 64)
            __builtin_prefetch(group + at + NEON_PREFETCH);
        neon_small(type, piece, group, e, columns, 0, acc);
        neon_small(type, piece, group, e, columns, 1, acc);
    }
    for (int64_t c = 0; c < columns; c++) {
        float sums[DOT_ACCUMULATORS];
        memcpy(sums, acc[c], sizeof sums);
        gemv_rest_add(type, group, piece->blocks % BLOCK_GROUP, rest + c, sums);
        piece->out[piece->places[c] * piece->out_stride + row] = dot_fold(sums);
    }
}

DOT_FUNCTION void neon_rows(int32_t type, const quant_gemv *piece)
{
    const int64_t whole = piece->blocks / BLOCK_GROUP;
    gemv_rest rest[GEMV_COLUMNS];
    for (int64_t c = 0; c < piece->columns; c++) {
        const char *activations = piece->activations + c * piece->activations_stride;
        gemv_rest_prepare((const gemv_small *)(const void *)activations + whole, piece->blocks % BLOCK_GROUP, &rest[c]);
    }
    for (int64_t r = 0; r < piece->rows && piece->columns == 1; r++)
        neon_row(type, piece, r, 1, rest);
    for (int64_t r = 0; r < piece->rows && piece->columns > 1; r++)
        neon_row(type, piece, r, piece->columns, rest);
}

/* ---- blocks of 256 --------------------------------------------------------------------------------------------------------
 */

/* What multiplies the sums of sub-blocks. */
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

/* Four words of a sub-block at a time, each column's sum of the sub-block in `sums` on the way. */
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

/* A group with the columns of a piece; acc[c] gets its first `count` lanes. */
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
            const int64_t kept = count - 4 * h < 4 ? count - 4 * h : 4; /* as gemv_keep() */
            memcpy((char *)&acc[c] + (int64_t)16 * h, &sum, (size_t)kept * sizeof(float));
        }
    }
}

#endif
