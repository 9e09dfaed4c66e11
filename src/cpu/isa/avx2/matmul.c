/* Matrix products for AVX2: tiles of 6 rows by two vectors use 12 of the 16 registers for sums. */
#include <immintrin.h>
#include <string.h>

#include "cpu/matmul/tile_template.h"

typedef __m256 f32_vector;
typedef __m256d f64_vector;
typedef __m256i i8_vector;

static inline __m256 f32_zero(void)
{
    return _mm256_setzero_ps();
}
static inline __m256 f32_load(const float *from)
{
    return _mm256_loadu_ps(from);
}
static inline __m256 f32_load_panel(const float *from)
{
    return _mm256_load_ps(from);
}
static inline __m256 f32_set(const float *from)
{
    return _mm256_broadcast_ss(from);
}
static inline __m256 f32_fma(__m256 a, __m256 b, __m256 c)
{
    return _mm256_fmadd_ps(a, b, c);
}
static inline __m256 f32_add(__m256 a, __m256 b)
{
    return _mm256_add_ps(a, b);
}
static inline void f32_store(float *to, __m256 v)
{
    _mm256_storeu_ps(to, v);
}
static inline __m256 f32_one_nan(__m256 v)
{
    return _mm256_blendv_ps(v, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000)), _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
}

static inline __m256d f64_zero(void)
{
    return _mm256_setzero_pd();
}
static inline __m256d f64_load(const double *from)
{
    return _mm256_loadu_pd(from);
}
static inline __m256d f64_load_panel(const double *from)
{
    return _mm256_load_pd(from);
}
static inline __m256d f64_set(const double *from)
{
    return _mm256_broadcast_sd(from);
}
static inline __m256d f64_fma(__m256d a, __m256d b, __m256d c)
{
    return _mm256_fmadd_pd(a, b, c);
}
static inline __m256d f64_add(__m256d a, __m256d b)
{
    return _mm256_add_pd(a, b);
}
static inline void f64_store(double *to, __m256d v)
{
    _mm256_storeu_pd(to, v);
}
static inline __m256d f64_one_nan(__m256d v)
{
    return _mm256_blendv_pd(v, _mm256_castsi256_pd(_mm256_set1_epi64x(0x7ff8000000000000)), _mm256_cmp_pd(v, v, _CMP_UNORD_Q));
}

static inline __m256i i8_zero(void)
{
    return _mm256_setzero_si256();
}
static inline __m256i i8_load(const int32_t *from)
{
    return _mm256_loadu_si256((const __m256i *)from);
}
static inline __m256i i8_load_panel(const int16_t *from)
{
    return _mm256_load_si256((const __m256i *)from);
}
static inline __m256i i8_set(const int16_t *from)
{
    int32_t pair;
    memcpy(&pair, from, sizeof pair);
    return _mm256_set1_epi32(pair);
}
static inline __m256i i8_fma(__m256i a, __m256i b, __m256i c)
{
    return _mm256_add_epi32(c, _mm256_madd_epi16(a, b));
}
static inline __m256i i8_add(__m256i a, __m256i b)
{
    return _mm256_add_epi32(a, b);
}
static inline void i8_store(int32_t *to, __m256i v)
{
    _mm256_storeu_si256((__m256i *)to, v);
}
static inline __m256i i8_one_nan(__m256i v)
{
    return v;
}

MATMUL_TILES(matmul_tiles_avx2, 6, 2, 8, .fast_present = NULL)
