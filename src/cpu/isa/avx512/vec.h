/* AVX-512: sixteen floats per register, thirty-two registers. */
#ifndef WW_CPU_ISA_AVX512_VEC_H
#define WW_CPU_ISA_AVX512_VEC_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#define VEC_LANES     16
#define VEC_TILE_VECS 4 /* 24 registers hold all 64 lanes of six pairs */

typedef __m512 vec;

static inline bool vec_present(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
}

static inline vec vec_zero(void)
{
    return _mm512_setzero_ps();
}

static inline vec vec_set(float value)
{
    return _mm512_set1_ps(value);
}

static inline vec vec_load(const float *from)
{
    return _mm512_loadu_ps(from);
}

static inline void vec_store(float *to, vec v)
{
    _mm512_storeu_ps(to, v);
}

/* Keeps a loaded vector in its register: otherwise a compiler may load it again for each use, and loads are the bottleneck. */
static inline vec vec_keep(vec v)
{
    __asm__("" : "+v"(v));
    return v;
}

static inline vec vec_add(vec a, vec b)
{
    return _mm512_add_ps(a, b);
}

static inline vec vec_sub(vec a, vec b)
{
    return _mm512_sub_ps(a, b);
}

static inline vec vec_mul(vec a, vec b)
{
    return _mm512_mul_ps(a, b);
}

static inline vec vec_fma(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}

static inline vec vec_min(vec a, vec b)
{
    return _mm512_min_ps(a, b);
}

static inline vec vec_max(vec a, vec b)
{
    return _mm512_max_ps(a, b);
}

static inline vec vec_abs(vec a)
{
    return _mm512_abs_ps(a);
}

/* Returns the largest lane; below, the lanes folded 8, 4, 2, 1. */
static inline float vec_largest(vec v)
{
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

static inline float vec_fold_lanes(vec v)
{
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* Loads eight floats into both halves; below, folds the lanes of each half of four vectors 4, 2, 1 and multiplies the eight
 * results by `scale`. */
static inline vec vec_load_half_twice(const float *from)
{
    return _mm512_broadcast_f32x8(_mm256_loadu_ps(from));
}

static inline void vec_fold_halves(const vec v[4], float scale, float *out)
{
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 2, 6, 10, 14, 0, 4, 8, 12, 2, 6, 10, 14);
    const vec a = _mm512_add_ps(_mm512_shuffle_f32x4(v[0], v[1], 0x88), _mm512_shuffle_f32x4(v[0], v[1], 0xdd));
    const vec b = _mm512_add_ps(_mm512_shuffle_f32x4(v[2], v[3], 0x88), _mm512_shuffle_f32x4(v[2], v[3], 0xdd));
    const vec two = _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee)); /* halves 0 to 3, 4 to 7 */
    const vec one = _mm512_add_ps(two, _mm512_permute_ps(two, 0xb1)); /* the results are in lanes 0 and 2 of each quarter */
    const __m256 all = _mm512_castps512_ps256(_mm512_permutexvar_ps(order, one));
    _mm256_storeu_ps(out, _mm256_mul_ps(all, _mm256_set1_ps(scale)));
}

/* Integers in lanes. In this order: round to the nearest, ties to even; convert back; load; maximum; store 64 as bytes, if they
 * fit. */
typedef __m512i ivec;

static inline ivec ivec_nearest(vec v)
{
    return _mm512_cvtps_epi32(v);
}

static inline vec vec_of(ivec v)
{
    return _mm512_cvtepi32_ps(v);
}

static inline ivec ivec_load(const int32_t *from)
{
    return _mm512_loadu_si512(from);
}

/* Loads lane i from from[i * stride]. */
static inline ivec ivec_load_apart(const int32_t *from, int stride)
{
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_i32gather_epi32(_mm512_mullo_epi32(lanes, _mm512_set1_epi32(stride)), from, sizeof *from);
}

static inline ivec ivec_max(ivec a, ivec b)
{
    return _mm512_max_epi32(a, b);
}

static inline void ivec_store_bytes(int8_t *to, const ivec v[4])
{
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i bytes = _mm512_packs_epi16(_mm512_packs_epi32(v[0], v[1]), _mm512_packs_epi32(v[2], v[3]));
    _mm512_storeu_si512(to, _mm512_permutexvar_epi32(order, bytes));
}

/* Loads elements of other types as floats: one vector of them, or 16, which is the same. */
static inline vec vec_load_f16(const uint16_t *from)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from));
}

static inline vec vec_load_bf16(const uint16_t *from)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)from)), 16));
}

static inline void vec_widen_f16(const uint16_t *from, vec to[1])
{
    to[0] = vec_load_f16(from);
}

static inline void vec_widen_bf16(const uint16_t *from, vec to[1])
{
    to[0] = vec_load_bf16(from);
}

static inline void vec_widen_bytes(const int8_t *from, int32_t offset, vec to[1])
{
    const __m512i wide = _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)from));
    to[0] = _mm512_cvtepi32_ps(_mm512_add_epi32(wide, _mm512_set1_epi32(offset)));
}

/* Bit i is set if a > b in lane i. */
static inline uint32_t vec_greater(vec a, vec b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}

/* Folds four vectors of 16 lanes, 8 then 4, into one register, with a quarter for each. */
static inline __m512 vec_fold_four(const float *v0, const float *v1, const float *v2, const float *v3)
{
    const __m512 a = _mm512_loadu_ps(v0), b = _mm512_loadu_ps(v1), c = _mm512_loadu_ps(v2), d = _mm512_loadu_ps(v3);
    const __m512 ab = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
    const __m512 cd = _mm512_add_ps(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xee));
    return _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
}

/* Folds 16 vectors of 16 lanes, stored one after the other, to one float each: 8, 4, 2, 1, the end of the canonical order. */
static inline void vec_fold(const float *v, float *out)
{
    const __m512 x0 = vec_fold_four(v, v + 64, v + 128, v + 192); /* vectors 0, 4, 8, 12: then the results end up in order */
    const __m512 x1 = vec_fold_four(v + 16, v + 80, v + 144, v + 208);
    const __m512 x2 = vec_fold_four(v + 32, v + 96, v + 160, v + 224);
    const __m512 x3 = vec_fold_four(v + 48, v + 112, v + 176, v + 240);
    const __m512 y0 = _mm512_add_ps(_mm512_shuffle_ps(x0, x1, 0x44), _mm512_shuffle_ps(x0, x1, 0xee));
    const __m512 y1 = _mm512_add_ps(_mm512_shuffle_ps(x2, x3, 0x44), _mm512_shuffle_ps(x2, x3, 0xee));
    _mm512_storeu_ps(out, _mm512_add_ps(_mm512_shuffle_ps(y0, y1, 0x88), _mm512_shuffle_ps(y0, y1, 0xdd)));
}

#endif
