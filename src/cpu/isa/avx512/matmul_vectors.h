/* AVX-512's vectors for cpu/matmul/tile_template.h. */
#ifndef WW_CPU_ISA_AVX512_MATMUL_VECTORS_H
#define WW_CPU_ISA_AVX512_MATMUL_VECTORS_H

#include <immintrin.h>
#include <string.h>

#include "cpu/matmul/tile_template.h"

typedef __m512 f32_vector;
typedef __m512d f64_vector;
typedef __m512i i8_vector;

static inline __m512 f32_zero(void)
{
    return _mm512_setzero_ps();
}
static inline __m512 f32_load(const float *from)
{
    return _mm512_loadu_ps(from);
}
static inline __m512 f32_load_panel(const float *from)
{
    return _mm512_load_ps(from);
}
static inline __m512 f32_set(const float *from)
{
    return _mm512_set1_ps(*from);
}
static inline __m512 f32_fma(__m512 a, __m512 b, __m512 c)
{
    return _mm512_fmadd_ps(a, b, c);
}
static inline __m512 f32_add(__m512 a, __m512 b)
{
    return _mm512_add_ps(a, b);
}
static inline void f32_store(float *to, __m512 v)
{
    _mm512_storeu_ps(to, v);
}
static inline __m512 f32_one_nan(__m512 v)
{
    const __mmask16 unordered = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_mask_mov_ps(v, unordered, _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000)));
}

static inline __m512d f64_zero(void)
{
    return _mm512_setzero_pd();
}
static inline __m512d f64_load(const double *from)
{
    return _mm512_loadu_pd(from);
}
static inline __m512d f64_load_panel(const double *from)
{
    return _mm512_load_pd(from);
}
static inline __m512d f64_set(const double *from)
{
    return _mm512_set1_pd(*from);
}
static inline __m512d f64_fma(__m512d a, __m512d b, __m512d c)
{
    return _mm512_fmadd_pd(a, b, c);
}
static inline __m512d f64_add(__m512d a, __m512d b)
{
    return _mm512_add_pd(a, b);
}
static inline void f64_store(double *to, __m512d v)
{
    _mm512_storeu_pd(to, v);
}
static inline __m512d f64_one_nan(__m512d v)
{
    const __mmask8 unordered = _mm512_cmp_pd_mask(v, v, _CMP_UNORD_Q);
    return _mm512_mask_mov_pd(v, unordered, _mm512_castsi512_pd(_mm512_set1_epi64(0x7ff8000000000000)));
}

static inline __m512i i8_zero(void)
{
    return _mm512_setzero_si512();
}
static inline __m512i i8_load(const int32_t *from)
{
    return _mm512_loadu_si512(from);
}
static inline __m512i i8_load_panel(const int16_t *from)
{
    return _mm512_load_si512(from);
}
static inline __m512i i8_set(const int16_t *from)
{
    int32_t pair;
    memcpy(&pair, from, sizeof pair);
    return _mm512_set1_epi32(pair);
}
static inline __m512i i8_fma(__m512i a, __m512i b, __m512i c)
{
    return _mm512_add_epi32(c, _mm512_madd_epi16(a, b));
}
static inline __m512i i8_add(__m512i a, __m512i b)
{
    return _mm512_add_epi32(a, b);
}
static inline void i8_store(int32_t *to, __m512i v)
{
    _mm512_storeu_si512(to, v);
}
static inline __m512i i8_one_nan(__m512i v)
{
    return v;
}

#endif
