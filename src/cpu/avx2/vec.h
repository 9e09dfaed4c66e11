/* Sixteen floats as AVX2 holds them: two registers. */
#ifndef WW_CPU_VEC_H
#define WW_CPU_VEC_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#define VEC_SET_NAME    "avx2"
#define VEC_SET_TABLE   instruction_set_avx2
#define VEC_TILE_GROUPS 1 /* 16 registers: twelve hold 16 of the 64 lanes of six pairs */

typedef struct vec {
    __m256 low, high;
} vec;

static inline bool vec_present(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static inline vec vec_zero(void)
{
    return (vec){_mm256_setzero_ps(), _mm256_setzero_ps()};
}

static inline vec vec_load(const float *from)
{
    return (vec){_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)};
}

static inline void vec_store(float *to, vec v)
{
    _mm256_storeu_ps(to, v.low);
    _mm256_storeu_ps(to + 8, v.high);
}

static inline vec vec_add(vec a, vec b)
{
    return (vec){_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}

static inline vec vec_sub(vec a, vec b)
{
    return (vec){_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}

static inline vec vec_fma(vec a, vec b, vec c)
{
    return (vec){_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}

static inline vec vec_set(float value)
{
    return (vec){_mm256_set1_ps(value), _mm256_set1_ps(value)};
}

static inline vec vec_mul(vec a, vec b)
{
    return (vec){_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}

static inline vec vec_min(vec a, vec b)
{
    return (vec){_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}

/* Bit i: a > b in lane i. */
static inline uint32_t vec_greater(vec a, vec b)
{
    const int low = _mm256_movemask_ps(_mm256_cmp_ps(a.low, b.low, _CMP_GT_OQ));
    const int high = _mm256_movemask_ps(_mm256_cmp_ps(a.high, b.high, _CMP_GT_OQ));
    return (uint32_t)low | (uint32_t)high << 8;
}

/* Folds two vectors, 8 then 4, into one register with a half for each. */
static inline __m256 vec_fold_two(const float *v0, const float *v1)
{
    const __m256 a = _mm256_add_ps(_mm256_loadu_ps(v0), _mm256_loadu_ps(v0 + 8));
    const __m256 b = _mm256_add_ps(_mm256_loadu_ps(v1), _mm256_loadu_ps(v1 + 8));
    return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}

/* Folds 16 vectors of 16 lanes, one behind the other, each to one float: 8, 4, 2, 1, as the canonical order ends. */
static inline void vec_fold(const float *v, float *out)
{
    for (int half = 0; half < 2; half++, v += 8 * 16, out += 8) {
        const __m256 x0 = vec_fold_two(v, v + 64), x1 = vec_fold_two(v + 16, v + 80);
        const __m256 x2 = vec_fold_two(v + 32, v + 96), x3 = vec_fold_two(v + 48, v + 112);
        const __m256 y0 = _mm256_add_ps(_mm256_shuffle_ps(x0, x1, 0x44), _mm256_shuffle_ps(x0, x1, 0xee));
        const __m256 y1 = _mm256_add_ps(_mm256_shuffle_ps(x2, x3, 0x44), _mm256_shuffle_ps(x2, x3, 0xee));
        _mm256_storeu_ps(out, _mm256_add_ps(_mm256_shuffle_ps(y0, y1, 0x88), _mm256_shuffle_ps(y0, y1, 0xdd)));
    }
}

#endif
