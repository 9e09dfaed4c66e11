/* What instruction sets have for products of codes, as a few words: eight lanes for groups, sixteen for tiles.
 *
 * A word adds to each lane the products of four codes of weights with four of activations. Codes of activations are never -128.
 */
#ifndef WW_CPU_QUANT_DOT_VECTORS_H
#define WW_CPU_QUANT_DOT_VECTORS_H

#include <stdint.h>
#include <string.h>

#define DOT_FUNCTION static inline __attribute__((always_inline))
#include "arithmetic/blocks/dot.h"

#if defined(__AVX2__)
#include <immintrin.h>
#else
#include <arm_neon.h>
#endif

typedef int32_t dot_lanes __attribute__((vector_size(32)));
typedef uint32_t dot_words __attribute__((vector_size(32)));
typedef float dot_floats __attribute__((vector_size(32)));

typedef int32_t tile_lanes __attribute__((vector_size(64)));
typedef float tile_floats __attribute__((vector_size(64)));

DOT_FUNCTION dot_lanes dot_take(const void *from)
{
    dot_lanes taken;
    memcpy(&taken, from, sizeof taken);
    return taken;
}

DOT_FUNCTION dot_floats dot_take_floats(const void *from)
{
    dot_floats taken;
    memcpy(&taken, from, sizeof taken);
    return taken;
}

/* ---- eight lanes ----------------------------------------------------------------------------------------------------------
 */

#if defined(__AVX2__)
/* Weights 0..127, so that two products fit 16 bits: 2 * 127 * 127. */
DOT_FUNCTION dot_lanes dot_unsigned(dot_lanes sum, dot_lanes weights, dot_lanes activations)
{
#if defined(QUANT_VNNI)
    return (dot_lanes)_mm256_dpbusd_epi32((__m256i)sum, (__m256i)weights, (__m256i)activations);
#else
    const __m256i pairs = _mm256_maddubs_epi16((__m256i)weights, (__m256i)activations);
    return sum + (dot_lanes)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#endif
}

/* Weights of any sign, which goes to the activations: 2 * 128 * 127 at most. */
DOT_FUNCTION dot_lanes dot_signed(dot_lanes sum, dot_lanes weights, dot_lanes activations)
{
    const __m256i w = (__m256i)weights;
    return dot_unsigned(sum, (dot_lanes)_mm256_abs_epi8(w), (dot_lanes)_mm256_sign_epi8((__m256i)activations, w));
}

/* Two numbers of 16 bits in each lane, times two others. */
DOT_FUNCTION dot_lanes dot_pairs(dot_lanes sum, dot_lanes a, dot_lanes b)
{
    return sum + (dot_lanes)_mm256_madd_epi16((__m256i)a, (__m256i)b);
}

DOT_FUNCTION dot_floats dot_fma(dot_floats a, dot_floats b, dot_floats c)
{
    return (dot_floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}

/* Eight f16 numbers. */
DOT_FUNCTION dot_floats dot_halves(const void *from)
{
    const __m128i halves = _mm_loadu_si128((const __m128i *)from);
#if defined(__AVX512F__) && !defined(QUANT_VNNI) /* compiled without F16C; a wide register slows its neighbours down */
    return (dot_floats)_mm512_castps512_ps256(_mm512_cvtph_ps(_mm256_castsi128_si256(halves)));
#else
    return (dot_floats)_mm256_cvtph_ps(halves);
#endif
}
#else /* NEON */

DOT_FUNCTION int32x4_t dot_four(int32x4_t sum, int8x16_t w, int8x16_t a)
{
#if defined(QUANT_DOTPROD)
    return vdotq_s32(sum, w, a);
#else
    const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(w), vget_low_s8(a)));
    const int32x4_t high = vpaddlq_s16(vmull_s8(vget_high_s8(w), vget_high_s8(a)));
    return vaddq_s32(sum, vpaddq_s32(low, high));
#endif
}

DOT_FUNCTION dot_floats dot_fma(dot_floats a, dot_floats b, dot_floats c)
{
    float32x4_t x[2], y[2], z[2];
    memcpy(x, &a, sizeof x);
    memcpy(y, &b, sizeof y);
    memcpy(z, &c, sizeof z);
    for (int i = 0; i < 2; i++)
        z[i] = vfmaq_f32(z[i], x[i], y[i]);
    memcpy(&c, z, sizeof z);
    return c;
}

DOT_FUNCTION dot_floats dot_halves(const void *from)
{
    float16x8_t halves;
    memcpy(&halves, from, sizeof halves);
    const float32x4_t both[2] = {vcvt_f32_f16(vget_low_f16(halves)), vcvt_f32_f16(vget_high_f16(halves))};
    return dot_take_floats(both);
}

DOT_FUNCTION dot_lanes dot_signed(dot_lanes sum, dot_lanes weights, dot_lanes activations)
{
    int32x4_t s[2];
    int8x16_t w[2], a[2];
    memcpy(s, &sum, sizeof s);
    memcpy(w, &weights, sizeof w);
    memcpy(a, &activations, sizeof a);
    for (int i = 0; i < 2; i++)
        s[i] = dot_four(s[i], w[i], a[i]);
    memcpy(&sum, s, sizeof s);
    return sum;
}
DOT_FUNCTION dot_lanes dot_unsigned(dot_lanes sum, dot_lanes weights, dot_lanes activations)
{
    return dot_signed(sum, weights, activations);
}

DOT_FUNCTION dot_lanes dot_pairs(dot_lanes sum, dot_lanes a, dot_lanes b)
{
    return sum + (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
}
#endif

/* Eight accumulators to one number. */
DOT_FUNCTION float dot_fold(const float *acc)
{
    return ((acc[0] + acc[4]) + (acc[2] + acc[6])) + ((acc[1] + acc[5]) + (acc[3] + acc[7]));
}

/* ---- sixteen lanes: rows of a tile, against one column --------------------------------------------------------------------
 */

DOT_FUNCTION tile_lanes tile_all(int32_t value)
{
    return (tile_lanes){0} + value;
}

/* TILE_FLIP is what weights of any sign are stored with: where products want unsigned weights 128 is added to them, and a sum
 * begins with -128 times the sum of the activations. */
#if defined(__AVX512F__) && defined(QUANT_VNNI)
#if defined(QUANT_AMX)
#define TILE_FLIP 0u
#else
#define TILE_FLIP 0x80808080u
#endif
DOT_FUNCTION tile_lanes tile_unsigned(tile_lanes sum, tile_lanes weights, int32_t activations)
{
    return (tile_lanes)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)weights, _mm512_set1_epi32(activations));
}
DOT_FUNCTION tile_lanes tile_signed(tile_lanes sum, tile_lanes weights, int32_t activations)
{
    return tile_unsigned(sum, weights, activations);
}
DOT_FUNCTION tile_lanes tile_pairs(tile_lanes sum, tile_lanes a, int32_t b)
{
    return (tile_lanes)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)a, _mm512_set1_epi32(b));
}
DOT_FUNCTION tile_floats tile_fma(tile_floats a, tile_floats b, tile_floats c)
{
    return (tile_floats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
#else
#define TILE_FLIP 0u
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

/* ---- sums of products of some words of 16 rows with TILE_TOGETHER columns, `stride` codes apart
 * ---------------------------------- */

#if defined(__AVX512F__) || defined(QUANT_I8MM)
enum { TILE_TOGETHER = 4 }; /* columns that share what is loaded of the weights */
#else
enum { TILE_TOGETHER = 2 };
#endif

#if defined(QUANT_I8MM)
/* Eight codes of two rows against eight of two columns in one instruction. */
DOT_FUNCTION void tile_sums(const int32_t (*weights)[16], int32_t words, int any_sign, const int8_t *codes, int64_t stride,
                            tile_lanes j[TILE_TOGETHER])
{
    int32x4_t sums[TILE_TOGETHER / 2][8];
    (void)any_sign;
    memset(sums, 0, sizeof sums);
    for (int32_t w = 0; w < words; w += 2) {
        int8x16_t two[TILE_TOGETHER / 2];
        for (int32_t k = 0; k < TILE_TOGETHER / 2; k++)
            two[k] = vcombine_s8(vld1_s8(codes + 2 * k * stride + 4 * w), vld1_s8(codes + (2 * k + 1) * stride + 4 * w));
        _Pragma("GCC unroll 4") for (int32_t r = 0; r < 4; r++)
        {
            const int32x4_t a = vld1q_s32(weights[w] + 4 * r), b = vld1q_s32(weights[w + 1] + 4 * r);
            const int8x16_t low = vreinterpretq_s8_s32(vzip1q_s32(a, b)), high = vreinterpretq_s8_s32(vzip2q_s32(a, b));
            for (int32_t k = 0; k < TILE_TOGETHER / 2; k++) {
                sums[k][2 * r] = vmmlaq_s32(sums[k][2 * r], low, two[k]);
                sums[k][2 * r + 1] = vmmlaq_s32(sums[k][2 * r + 1], high, two[k]);
            }
        }
    }
    for (int32_t k = 0; k < TILE_TOGETHER / 2; k++)
        for (int32_t r = 0; r < 4; r++) {
            const int32x4_t first = vuzp1q_s32(sums[k][2 * r], sums[k][2 * r + 1]);
            const int32x4_t second = vuzp2q_s32(sums[k][2 * r], sums[k][2 * r + 1]);
            memcpy((char *)&j[2 * k] + 16 * r, &first, sizeof first);
            memcpy((char *)&j[2 * k + 1] + 16 * r, &second, sizeof second);
        }
}
#else
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

#endif
