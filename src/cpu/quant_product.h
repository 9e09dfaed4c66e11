/* Products of quantized weights with quantized activations for one instruction set (kernels/blocks_dot.h says what they are).
 *
 * Blocks of 32 go eight at a time, one for each accumulator: their sums of products are eight numbers in one vector, and so are
 * their factors, and one fma adds them up. Blocks of 256 go one at a time, each in eight pieces of 32. Weights are unpacked
 * once for all columns of activations. Codes of weights stay as they are in memory, from 0 up; what that adds, the offset times
 * the sum of the activations' codes, is taken off afterwards: those sums are known before.
 */
#ifndef WW_CPU_QUANT_PRODUCT_H
#define WW_CPU_QUANT_PRODUCT_H

#include <string.h>

#define DOT_FUNCTION static inline __attribute__((always_inline))
#include "cpu/quant.h"
#include "kernels/blocks_dot.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

typedef int32_t dot_lanes __attribute__((vector_size(32)));
typedef float dot_floats __attribute__((vector_size(32)));
typedef int16_t dot_shorts __attribute__((vector_size(32)));

/* ---- what instruction sets have -------------------------------------------------------------------------------------------
 */

#if defined(__AVX2__)
/* In each of eight words the products of four codes of weights, not negative, with four of activations. A pair of products is
 * at most 2 * 63 * 127: nothing saturates. */
DOT_FUNCTION dot_lanes dot_unsigned(dot_lanes weights, dot_lanes activations)
{
#if defined(QUANT_VNNI)
    return (dot_lanes)_mm256_dpbusd_epi32(_mm256_setzero_si256(), (__m256i)weights, (__m256i)activations);
#else
    const __m256i pairs = _mm256_maddubs_epi16((__m256i)weights, (__m256i)activations);
    return (dot_lanes)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#endif
}

/* The same for weights of any sign, which goes to the activations. Those are never -128, so a pair is at most 2 * 128 * 127. */
DOT_FUNCTION dot_lanes dot_signed(dot_lanes weights, dot_lanes activations)
{
    const __m256i w = (__m256i)weights;
    return dot_unsigned((dot_lanes)_mm256_abs_epi8(w), (dot_lanes)_mm256_sign_epi8((__m256i)activations, w));
}

/* The sum of the lanes of each of eight vectors. */
DOT_FUNCTION dot_lanes dot_sums(const dot_lanes v[8])
{
    const __m256i a = _mm256_hadd_epi32((__m256i)v[0], (__m256i)v[1]), b = _mm256_hadd_epi32((__m256i)v[2], (__m256i)v[3]);
    const __m256i c = _mm256_hadd_epi32((__m256i)v[4], (__m256i)v[5]), d = _mm256_hadd_epi32((__m256i)v[6], (__m256i)v[7]);
    const __m256i low = _mm256_hadd_epi32(a, b), high = _mm256_hadd_epi32(c, d);
    return (dot_lanes)_mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x20), _mm256_permute2x128_si256(low, high, 0x31));
}

DOT_FUNCTION int32_t dot_total(dot_lanes v)
{
    const __m128i half = _mm_add_epi32(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
    const __m128i two = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}

/* Sums of pairs of products of 16 numbers each. */
DOT_FUNCTION dot_lanes dot_pairs(dot_shorts a, dot_shorts b)
{
    return (dot_lanes)_mm256_madd_epi16((__m256i)a, (__m256i)b);
}

DOT_FUNCTION dot_floats dot_fma(dot_floats a, dot_floats b, dot_floats c)
{
    return (dot_floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
#else
DOT_FUNCTION dot_lanes dot_signed(dot_lanes weights, dot_lanes activations)
{
    int8_t w[32], a[32];
    int32_t sums[8];
    memcpy(w, &weights, sizeof w);
    memcpy(a, &activations, sizeof a);
    for (int i = 0; i < 8; i++)
        sums[i] = w[4 * i] * a[4 * i] + w[4 * i + 1] * a[4 * i + 1] + w[4 * i + 2] * a[4 * i + 2] + w[4 * i + 3] * a[4 * i + 3];
    dot_lanes result;
    memcpy(&result, sums, sizeof result);
    return result;
}

DOT_FUNCTION dot_lanes dot_unsigned(dot_lanes weights, dot_lanes activations)
{
    return dot_signed(weights, activations);
}

DOT_FUNCTION int32_t dot_total(dot_lanes v)
{
    return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7]));
}

DOT_FUNCTION dot_lanes dot_sums(const dot_lanes v[8])
{
    dot_lanes sums;
    for (int i = 0; i < 8; i++)
        sums[i] = dot_total(v[i]);
    return sums;
}

DOT_FUNCTION dot_lanes dot_pairs(dot_shorts a, dot_shorts b)
{
    dot_lanes sums;
    for (int i = 0; i < 8; i++)
        sums[i] = a[2 * i] * b[2 * i] + a[2 * i + 1] * b[2 * i + 1];
    return sums;
}

DOT_FUNCTION dot_floats dot_fma(dot_floats a, dot_floats b, dot_floats c)
{
    dot_floats result;
    for (int i = 0; i < 8; i++)
        result[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return result;
}
#endif

DOT_FUNCTION dot_lanes dot_take(const void *from)
{
    dot_lanes words;
    memcpy(&words, from, sizeof words);
    return words;
}

/* Eight accumulators to one number. */
DOT_FUNCTION float dot_fold(const float *acc)
{
    return ((acc[0] + acc[4]) + (acc[2] + acc[6])) + ((acc[1] + acc[5]) + (acc[3] + acc[7]));
}

/* ---- blocks of 32, up to eight of them ------------------------------------------------------------------------------------
 */

typedef struct dot_eight {
    dot_lanes words[8];
    dot_floats d, min;
} dot_eight;

DOT_FUNCTION void eight_load(int32_t type, const char *blocks, int64_t count, dot_eight *eight)
{
    memset(eight, 0, sizeof *eight); /* a block that is not there is zeros, and adds fma(0, 0, acc) */
    for (int64_t i = 0; i < count; i++) {
        dot_piece piece;
        const void *block = blocks + i * block_bytes(type);
        dot_load(type, block, 0, &piece);
        eight->words[i] = dot_take(piece.words);
        const dot_factors factors = dot_factors_of(type, block);
        eight->d[i] = factors.d;
        eight->min[i] = factors.min;
    }
}

/* What is known of eight blocks of activations before. */
typedef struct dot_known {
    float d[8];
    int32_t sums[8];
} dot_known;

DOT_FUNCTION void eight_add(int32_t type, const dot_eight *eight, const char *activations, int32_t count,
                            const dot_known *known, float *acc)
{
    dot_lanes dots[8];
    for (int64_t i = 0; i < 8; i++) {
        const dot_lanes codes = i < count ? dot_take(activations + i * (int64_t)sizeof(block_q8_1) + 4) : (dot_lanes){0};
        dots[i] = type == BLOCK_Q8_0 || type == BLOCK_Q8_1 ? dot_signed(eight->words[i], codes)
                                                           : dot_unsigned(eight->words[i], codes);
    }
    dot_floats sum, da;
    memcpy(&sum, acc, sizeof sum);
    memcpy(&da, known->d, sizeof da);
    const dot_lanes sums = dot_take(known->sums), j = dot_sums(dots) - sums * dot_offset(type);
    sum = dot_fma(eight->d * da, __builtin_convertvector(j, dot_floats), sum);
    if (dot_has_min(type))
        sum = dot_fma(eight->min * da, __builtin_convertvector(sums, dot_floats), sum);
    memcpy(acc, &sum, sizeof sum);
}

DOT_FUNCTION void small_known(const char *activations, int32_t count, dot_known *known)
{
    memset(known, 0, sizeof *known);
    for (int32_t i = 0; i < count; i++) {
        const block_q8_1 *block = (const block_q8_1 *)(const void *)activations + i;
        known->d[i] = block_f32_from_f16(block->d);
        for (int32_t l = 0; l < BLOCK_SMALL; l++)
            known->sums[i] += block->codes[l];
    }
}

/* A fold over blocks that are not there would turn an accumulator of -0 to +0: the last eight are done as far as they go. */
DOT_FUNCTION void small_rows(int32_t type, const quant_product_piece *piece, dot_known *known, float (*acc)[8])
{
    const int64_t eights = (piece->blocks + 7) / 8;
    for (int64_t c = 0; c < piece->columns; c++)
        for (int64_t e = 0; e < eights; e++)
            small_known(piece->activations + c * piece->activations_stride + e * 8 * (int64_t)sizeof(block_q8_1),
                        (int32_t)(piece->blocks - 8 * e < 8 ? piece->blocks - 8 * e : 8), &known[c * eights + e]);
    for (int64_t r = 0; r < piece->rows; r++) {
        const char *row = piece->weights + r * piece->weights_stride;
        memset(acc, 0, (size_t)piece->columns * sizeof *acc);
        for (int64_t e = 0; e < eights; e++) {
            const int32_t count = (int32_t)(piece->blocks - 8 * e < 8 ? piece->blocks - 8 * e : 8);
            dot_eight eight;
            if (count == 8)
                eight_load(type, row + e * 8 * block_bytes(type), 8, &eight);
            else
                eight_load(type, row + e * 8 * block_bytes(type), count, &eight);
            for (int64_t c = 0; c < piece->columns; c++) {
                float before[8];
                const char *activations =
                    piece->activations + c * piece->activations_stride + e * 8 * (int64_t)sizeof(block_q8_1);
                memcpy(before, acc[c], sizeof before);
                if (count == 8) {
                    eight_add(type, &eight, activations, 8, &known[c * eights + e], acc[c]);
                    continue;
                }
                eight_add(type, &eight, activations, count, &known[c * eights + e], acc[c]);
                memcpy(acc[c] + count, before + count, (size_t)(8 - count) * sizeof(float));
            }
        }
        for (int64_t c = 0; c < piece->columns; c++)
            piece->out[c * piece->out_stride + r] = dot_fold(acc[c]);
    }
}

/* ---- blocks of 256 --------------------------------------------------------------------------------------------------------
 */

typedef struct dot_large {
    dot_lanes words[8], scales[8];
    dot_shorts run_scales, run_mins; /* of 16 runs of 16 */
    dot_factors factors;
} dot_large;

DOT_FUNCTION void large_load(int32_t type, const void *block, dot_large *large)
{
    int16_t scales[16], mins[16];
    for (int32_t p = 0; p < 8; p++) {
        dot_piece piece;
        dot_load(type, block, p, &piece);
        large->words[p] = dot_take(piece.words);
        large->scales[p] = (dot_lanes){piece.scale[0], piece.scale[0], piece.scale[0], piece.scale[0],
                                       piece.scale[1], piece.scale[1], piece.scale[1], piece.scale[1]};
        scales[2 * p] = (int16_t)piece.scale[0];
        scales[2 * p + 1] = (int16_t)piece.scale[1];
        mins[2 * p] = (int16_t)piece.min[0];
        mins[2 * p + 1] = (int16_t)piece.min[1];
    }
    memcpy(&large->run_scales, scales, sizeof scales);
    memcpy(&large->run_mins, mins, sizeof mins);
    large->factors = dot_factors_of(type, block);
}

DOT_FUNCTION void large_add(int32_t type, const dot_large *large, const block_q8_k *activations, float *acc)
{
    dot_lanes j = {0};
    dot_shorts sums;
    int32_t m = 0;
    memcpy(&sums, activations->sums, sizeof sums);
    for (int32_t p = 0; p < 8; p++) {
        const dot_lanes codes = dot_take(activations->codes + (int64_t)32 * p);
        j += type == BLOCK_Q8_K ? dot_signed(large->words[p], codes) : dot_unsigned(large->words[p], codes) * large->scales[p];
    }
    if (dot_offset(type))
        j -= dot_pairs(large->run_scales, sums) * dot_offset(type);
    if (dot_has_min(type))
        m = dot_total(dot_pairs(large->run_mins, sums));
    *acc = dot_add(large->factors, activations->d, dot_total(j), m, dot_has_min(type), *acc);
}

DOT_FUNCTION void large_rows(int32_t type, const quant_product_piece *piece, float (*acc)[8])
{
    for (int64_t r = 0; r < piece->rows; r++) {
        memset(acc, 0, (size_t)piece->columns * sizeof *acc);
        for (int64_t b = 0; b < piece->blocks; b++) {
            dot_large large;
            large_load(type, piece->weights + r * piece->weights_stride + b * block_bytes(type), &large);
            for (int64_t c = 0; c < piece->columns; c++)
                large_add(type, &large,
                          (const block_q8_k *)(const void *)(piece->activations + c * piece->activations_stride) + b,
                          &acc[c][b % 8]);
        }
        for (int64_t c = 0; c < piece->columns; c++)
            piece->out[c * piece->out_stride + r] = dot_fold(acc[c]);
    }
}

/* ---- the table ------------------------------------------------------------------------------------------------------------
 */

#define QUANT_PRODUCT(name, type)                                                                                              \
    static void product_##name(const quant_product_piece *piece, void *scratch)                                                \
    {                                                                                                                          \
        float(*acc)[8] = scratch;                                                                                              \
        if (block_elements(type) == BLOCK_SMALL)                                                                               \
            small_rows(type, piece, (dot_known *)(void *)(acc + piece->columns), acc);                                         \
        else                                                                                                                   \
            large_rows(type, piece, acc);                                                                                      \
    }
QUANT_PRODUCT(q4_0, BLOCK_Q4_0)
QUANT_PRODUCT(q4_1, BLOCK_Q4_1)
QUANT_PRODUCT(q5_0, BLOCK_Q5_0)
QUANT_PRODUCT(q5_1, BLOCK_Q5_1)
QUANT_PRODUCT(q8_0, BLOCK_Q8_0)
QUANT_PRODUCT(q8_1, BLOCK_Q8_1)
QUANT_PRODUCT(q2_k, BLOCK_Q2_K)
QUANT_PRODUCT(q3_k, BLOCK_Q3_K)
QUANT_PRODUCT(q4_k, BLOCK_Q4_K)
QUANT_PRODUCT(q5_k, BLOCK_Q5_K)
QUANT_PRODUCT(q6_k, BLOCK_Q6_K)
QUANT_PRODUCT(q8_k, BLOCK_Q8_K)
#undef QUANT_PRODUCT

#define QUANT_PRODUCTS                                                                                                         \
    {                                                                                                                          \
        [BLOCK_Q4_0] = product_q4_0, [BLOCK_Q4_1] = product_q4_1, [BLOCK_Q5_0] = product_q5_0, [BLOCK_Q5_1] = product_q5_1,    \
        [BLOCK_Q8_0] = product_q8_0, [BLOCK_Q8_1] = product_q8_1, [BLOCK_Q2_K] = product_q2_k, [BLOCK_Q3_K] = product_q3_k,    \
        [BLOCK_Q4_K] = product_q4_k, [BLOCK_Q5_K] = product_q5_k, [BLOCK_Q6_K] = product_q6_k, [BLOCK_Q8_K] = product_q8_k,    \
    }

#endif
