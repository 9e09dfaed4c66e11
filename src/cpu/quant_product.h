/* Products of quantized weights with quantized activations for one instruction set (kernels/blocks_dot.h says what they are).
 *
 * A piece of 32 codes is eight words: the loops over them become one or two vector instructions. A tile is one row of weights
 * and up to four of activations, so that what is unpacked is used four times.
 */
#ifndef WW_CPU_QUANT_PRODUCT_H
#define WW_CPU_QUANT_PRODUCT_H

#include <string.h>

#define DOT_FUNCTION static inline __attribute__((always_inline))
#include "cpu/quant.h"
#include "kernels/blocks_dot.h"

enum { TILE = 4 };

typedef int32_t dot_lanes __attribute__((vector_size(32)));

/* sums + the products of four pairs of signed bytes, in each of eight words. */
#if defined(__AVX2__)
#include <immintrin.h>
DOT_FUNCTION dot_lanes dot_words(dot_lanes weights, dot_lanes activations)
{
    /* No instruction multiplies signed with signed bytes: the weights' signs go to the activations. A pair of products is at
     * most 2 * 128 * 127 < 2^15: activations are never -128. */
    const __m256i w = (__m256i)weights, a = (__m256i)activations;
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(a, w));
    return (dot_lanes)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}
#else
DOT_FUNCTION dot_lanes dot_words(dot_lanes weights, dot_lanes activations)
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
#endif

DOT_FUNCTION int32_t dot_total(dot_lanes v)
{
    return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7]));
}

DOT_FUNCTION dot_lanes dot_halves(int32_t first, int32_t second)
{
    return (dot_lanes){first, first, first, first, second, second, second, second};
}

/* One block of weights against `count` of activations, `stride` bytes apart. */
DOT_FUNCTION void dot_block(int32_t type, const void *block, const char *activations, int64_t stride, int32_t count,
                            float (*acc)[8], int32_t slot)
{
    const int32_t activation = dot_activations(type), pieces = dot_pieces(type), offset = dot_offset(type);
    const int has_min = dot_has_min(type);
    const dot_lanes ones = (dot_lanes){0} + 0x01010101;
    dot_lanes j[TILE] = {{0}}, m[TILE] = {{0}};
    for (int32_t p = 0; p < pieces; p++) {
        dot_piece piece;
        dot_lanes words;
        dot_load(type, block, p, &piece);
        memcpy(&words, piece.words, sizeof words);
        const dot_lanes scale = dot_halves(piece.scale[0], piece.scale[1]), min = dot_halves(piece.min[0], piece.min[1]);
        for (int32_t c = 0; c < count; c++) {
            dot_lanes codes;
            memcpy(&codes, dot_activation_words(activation, activations + c * stride, p), sizeof codes);
            dot_lanes dots = dot_words(words, codes);
            if (offset || has_min) {
                const dot_lanes sums = dot_words(ones, codes);
                dots -= sums * offset;
                m[c] += has_min ? sums * min : sums;
            }
            j[c] += dots * scale;
        }
    }
    const dot_factors factors = dot_factors_of(type, block);
    for (int32_t c = 0; c < count; c++)
        acc[c][slot] = dot_add(factors, dot_activation_factor(activation, activations + c * stride), dot_total(j[c]),
                               dot_total(m[c]), has_min, acc[c][slot]);
}

DOT_FUNCTION void dot_tile(int32_t type, const char *row, int64_t blocks, const char *activations, int64_t stride,
                           int64_t activation_bytes, int32_t count, float *out, int64_t out_stride)
{
    float acc[TILE][DOT_ACCUMULATORS] = {{0}};
    for (int64_t b = 0; b < blocks; b++)
        dot_block(type, row + b * block_bytes(type), activations + b * activation_bytes, stride, count, acc,
                  (int32_t)(b % DOT_ACCUMULATORS));
    for (int32_t c = 0; c < count; c++) {
        for (int32_t s = DOT_ACCUMULATORS / 2; s > 0; s /= 2)
            for (int32_t i = 0; i < s; i++)
                acc[c][i] = acc[c][i] + acc[c][i + s];
        out[c * out_stride] = acc[c][0];
    }
}

#define QUANT_PRODUCT(name, type)                                                                                              \
    static void product_##name(const quant_product_piece *piece)                                                               \
    {                                                                                                                          \
        const int64_t bytes = block_bytes(dot_activations(type));                                                              \
        for (int64_t r = 0; r < piece->rows; r++)                                                                              \
            for (int64_t c = 0; c < piece->columns; c += TILE) {                                                               \
                const char *row = piece->weights + r * piece->weights_stride;                                                  \
                const char *activations = piece->activations + c * piece->activations_stride;                                  \
                float *out = piece->out + c * piece->out_stride + r;                                                           \
                if (piece->columns - c >= TILE)                                                                                \
                    dot_tile(type, row, piece->blocks, activations, piece->activations_stride, bytes, TILE, out,               \
                             piece->out_stride);                                                                               \
                else                                                                                                           \
                    for (int64_t k = c; k < piece->columns; k++)                                                               \
                        dot_tile(type, row, piece->blocks, piece->activations + k * piece->activations_stride,                 \
                                 piece->activations_stride, bytes, 1, piece->out + k * piece->out_stride + r,                  \
                                 piece->out_stride);                                                                           \
            }                                                                                                                  \
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
