/* Converts many 16-bit floats to f32 and back, f16 with the instructions of the set that the including file is compiled for.
 * The bits are those of arithmetic/convert.h: every NaN becomes the one NaN.
 */
#ifndef WW_CPU_ISA_CONVERT_HALF_H
#define WW_CPU_ISA_CONVERT_HALF_H

#include "arithmetic/convert.h"

#if defined(__F16C__) || defined(__AVX512F__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* Convert as many elements as fill whole vectors, and return their number. */
/* Sets without such instructions do not write `to`. NOLINTNEXTLINE(readability-non-const-parameter) */
static int64_t widen_f16_vectors(float *to, const uint16_t *from, int64_t count)
{
    int64_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= count; i += 16)
        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(from + i))));
#elif defined(__F16C__)
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
#elif defined(__aarch64__)
    for (; i + 4 <= count; i += 4)
        vst1q_f32(to + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from + i))));
#else
    (void)to;
    (void)from;
    (void)count;
#endif
    return i;
}

/* NOLINTNEXTLINE(readability-non-const-parameter) */
static int64_t narrow_f16_vectors(uint16_t *to, const float *from, int64_t count)
{
    int64_t i = 0;
#if defined(__AVX512F__)
    const __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000));
    for (; i + 16 <= count; i += 16) {
        const __m512 x = _mm512_loadu_ps(from + i);
        const __m512 one_nan = _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), nan);
        _mm256_storeu_si256((__m256i *)(to + i), _mm512_cvtps_ph(one_nan, _MM_FROUND_TO_NEAREST_INT));
    }
#elif defined(__F16C__)
    const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
    for (; i + 8 <= count; i += 8) {
        const __m256 x = _mm256_loadu_ps(from + i);
        const __m256 one_nan = _mm256_blendv_ps(x, nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
        _mm_storeu_si128((__m128i *)(to + i), _mm256_cvtps_ph(one_nan, _MM_FROUND_TO_NEAREST_INT));
    }
#elif defined(__aarch64__)
    const float32x4_t nan = vreinterpretq_f32_u32(vdupq_n_u32(0x7fc00000));
    for (; i + 4 <= count; i += 4) {
        const float32x4_t x = vld1q_f32(from + i);
        vst1_u16(to + i, vreinterpret_u16_f16(vcvt_f16_f32(vbslq_f32(vceqq_f32(x, x), x, nan))));
    }
#else
    (void)to;
    (void)from;
    (void)count;
#endif
    return i;
}

static void widen_f16_many(float *restrict to, const uint16_t *restrict from, int64_t count)
{
    for (int64_t i = widen_f16_vectors(to, from, count); i < count; i++)
        to[i] = widen_f16(from[i]);
}

static void narrow_f16_many(uint16_t *restrict to, const float *restrict from, int64_t count)
{
    for (int64_t i = narrow_f16_vectors(to, from, count); i < count; i++)
        to[i] = narrow_f16(from[i]);
}

static inline void widen_bf16_many(float *restrict to, const uint16_t *restrict from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = widen_bf16(from[i]);
}

static inline void narrow_bf16_many(uint16_t *restrict to, const float *restrict from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = narrow_bf16(from[i]);
}

#endif
