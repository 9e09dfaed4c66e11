/* AVX2 with FMA: eight floats per register, sixteen registers. */
#ifndef WW_CPU_ISA_AVX2_VEC_H
#define WW_CPU_ISA_AVX2_VEC_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#define VEC_LANES     8
#define VEC_TILE_VECS 2 /* twelve registers hold 16 of the 64 lanes of six pairs; four are left for operands */

typedef __m256 vec;

static inline bool vec_present(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static inline vec vec_zero(void)
{
    return _mm256_setzero_ps();
}

static inline vec vec_set(float value)
{
    return _mm256_set1_ps(value);
}

static inline vec vec_load(const float *from)
{
    return _mm256_loadu_ps(from);
}

static inline void vec_store(float *to, vec v)
{
    _mm256_storeu_ps(to, v);
}

/* Keeps a loaded vector in its register: otherwise a compiler may load it again for each use, and loads are the bottleneck. */
static inline vec vec_keep(vec v)
{
    __asm__("" : "+x"(v));
    return v;
}

static inline vec vec_add(vec a, vec b)
{
    return _mm256_add_ps(a, b);
}

static inline vec vec_sub(vec a, vec b)
{
    return _mm256_sub_ps(a, b);
}

static inline vec vec_mul(vec a, vec b)
{
    return _mm256_mul_ps(a, b);
}

static inline vec vec_fma(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}

static inline vec vec_min(vec a, vec b)
{
    return _mm256_min_ps(a, b);
}

static inline vec vec_max(vec a, vec b)
{
    return _mm256_max_ps(a, b);
}

static inline vec vec_abs(vec a)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}

/* Returns the largest lane; below, the lanes folded 4, 2, 1. */
static inline float vec_largest(vec v)
{
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

static inline float vec_fold_lanes(vec v)
{
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* Folds the lanes of each of four vectors 4, 2, 1 and multiplies the four results by `scale`. */
#define VEC_FOLDS_FOUR
static inline void vec_fold_four(const vec v[4], float scale, float *out)
{
    __m128 four[4];
    for (int i = 0; i < 4; i++)
        four[i] = _mm_add_ps(_mm256_castps256_ps128(v[i]), _mm256_extractf128_ps(v[i], 1));
    const __m128 first = _mm_add_ps(_mm_movelh_ps(four[0], four[1]), _mm_movehl_ps(four[1], four[0]));
    const __m128 second = _mm_add_ps(_mm_movelh_ps(four[2], four[3]), _mm_movehl_ps(four[3], four[2]));
    _mm_storeu_ps(out, _mm_mul_ps(_mm_hadd_ps(first, second), _mm_set1_ps(scale)));
}

/* Integers in lanes. In this order: round to the nearest, ties to even; convert back; load; maximum; store 64 as bytes, if they
 * fit. */
typedef __m256i ivec;

static inline ivec ivec_nearest(vec v)
{
    return _mm256_cvtps_epi32(v);
}

static inline vec vec_of(ivec v)
{
    return _mm256_cvtepi32_ps(v);
}

static inline ivec ivec_load(const int32_t *from)
{
    return _mm256_loadu_si256((const __m256i *)from);
}

/* Loads lane i from from[i * stride]. */
static inline ivec ivec_load_apart(const int32_t *from, int stride)
{
    return _mm256_setr_epi32(from[0], from[stride], from[2 * stride], from[3 * stride], from[4 * stride], from[5 * stride],
                             from[6 * stride], from[7 * stride]);
}

static inline ivec ivec_max(ivec a, ivec b)
{
    return _mm256_max_epi32(a, b);
}

static inline void ivec_store_bytes(int8_t *to, const ivec v[8])
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for (int half = 0; half < 8; half += 4, to += 32) {
        const __m256i low = _mm256_packs_epi32(v[half], v[half + 1]), high = _mm256_packs_epi32(v[half + 2], v[half + 3]);
        _mm256_storeu_si256((__m256i *)to, _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order));
    }
}

/* Loads elements of other types as floats: one vector of them, or 16. */
static inline vec vec_load_f16(const uint16_t *from)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from));
}

static inline vec vec_load_bf16(const uint16_t *from)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from)), 16));
}

static inline void vec_widen_f16(const uint16_t *from, vec to[2])
{
    to[0] = vec_load_f16(from);
    to[1] = vec_load_f16(from + 8);
}

static inline void vec_widen_bf16(const uint16_t *from, vec to[2])
{
    to[0] = vec_load_bf16(from);
    to[1] = vec_load_bf16(from + 8);
}

static inline void vec_widen_bytes(const int8_t *from, int32_t offset, vec to[2])
{
    const __m256i more = _mm256_set1_epi32(offset);
    for (int i = 0; i < 2; i++) {
        const __m256i wide = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(from + 8 * i)));
        to[i] = _mm256_cvtepi32_ps(_mm256_add_epi32(wide, more));
    }
}

/* Bit i is set if a > b in lane i. */
static inline uint32_t vec_greater(vec a, vec b)
{
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ));
}

/* Folds two vectors of 16 lanes, 8 then 4, into one register, with a half for each. */
static inline __m256 vec_fold_two(const float *v0, const float *v1)
{
    const __m256 a = _mm256_add_ps(_mm256_loadu_ps(v0), _mm256_loadu_ps(v0 + 8));
    const __m256 b = _mm256_add_ps(_mm256_loadu_ps(v1), _mm256_loadu_ps(v1 + 8));
    return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}

/* Folds 16 vectors of 16 lanes, stored one after the other, to one float each: 8, 4, 2, 1, the end of the canonical order. */
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
