/* Eight lanes of products of codes with AVX2, or with AVX-512 VNNI if QUANT_VNNI is defined (cpu/quant/dot_types.h). */
#ifndef WW_CPU_ISA_AVX2_QUANT_DOT_H
#define WW_CPU_ISA_AVX2_QUANT_DOT_H

#include <immintrin.h>

#include "cpu/quant/dot_types.h"

/* Weights are 0..127, so two products fit in 16 bits: 2 * 127 * 127. */
DOT_FUNCTION dot_lanes dot_unsigned(dot_lanes sum, dot_lanes weights, dot_lanes activations)
{
#if defined(QUANT_VNNI)
    return (dot_lanes)_mm256_dpbusd_epi32((__m256i)sum, (__m256i)weights, (__m256i)activations);
#else
    const __m256i pairs = _mm256_maddubs_epi16((__m256i)weights, (__m256i)activations);
    return sum + (dot_lanes)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#endif
}

/* Weights can be negative: their signs are moved to the activations. Two products are at most 2 * 128 * 127. */
DOT_FUNCTION dot_lanes dot_signed(dot_lanes sum, dot_lanes weights, dot_lanes activations)
{
    const __m256i w = (__m256i)weights;
    return dot_unsigned(sum, (dot_lanes)_mm256_abs_epi8(w), (dot_lanes)_mm256_sign_epi8((__m256i)activations, w));
}

/* Multiplies the two 16-bit numbers of each lane with those of the other vector. */
DOT_FUNCTION dot_lanes dot_pairs(dot_lanes sum, dot_lanes a, dot_lanes b)
{
    return sum + (dot_lanes)_mm256_madd_epi16((__m256i)a, (__m256i)b);
}

DOT_FUNCTION dot_floats dot_fma(dot_floats a, dot_floats b, dot_floats c)
{
    return (dot_floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}

/* Looks up bytes 0..15 in a table of 16 bytes. */
DOT_FUNCTION dot_words dot_lookup(dot_words codes, const uint32_t table[4])
{
    const __m128i entries = _mm_loadu_si128((const __m128i *)(const void *)table);
    return (dot_words)_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(entries), (__m256i)codes);
}

/* Loads eight f16 numbers. */
DOT_FUNCTION dot_floats dot_halves(const void *from)
{
    const __m128i halves = _mm_loadu_si128((const __m128i *)from);
#if defined(__AVX512F__) && !defined(QUANT_VNNI) /* compiled without F16C; a wide register slows down the code around it */
    return (dot_floats)_mm512_castps512_ps256(_mm512_cvtph_ps(_mm256_castsi128_si256(halves)));
#else
    return (dot_floats)_mm256_cvtph_ps(halves);
#endif
}

#endif
