/* Adjacent sub-blocks, one per lane of a register: the vector type of arithmetic/blocks/encode_k.h for CPUs. Sixteen sub-blocks
 * are processed together, in one, two or four registers. Compilers would put wider vectors through memory, element by element.
 */
#ifndef WW_CPU_QUANT_LANES16_H
#define WW_CPU_QUANT_LANES16_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "arithmetic/blocks/blocks.h"
#include "cpu/quant/layout.h"

#define LANES 16
#if defined(__AVX512F__)
#define LANES_REGISTERS 1
#elif defined(__AVX2__)
#define LANES_REGISTERS 2
#else
#define LANES_REGISTERS 4
#endif
#define REGISTER_LANES (LANES / LANES_REGISTERS)

typedef float lanes __attribute__((vector_size(4 * REGISTER_LANES)));
typedef int32_t lanes_mask __attribute__((vector_size(4 * REGISTER_LANES)));

typedef uint8_t lanes_bytes __attribute__((vector_size(LANES)));

/* Always inlined, so that such values are never passed between functions, for which compilers have different conventions. */
#define LANES_FUNCTION  static inline __attribute__((always_inline))
#define SEARCH_FUNCTION LANES_FUNCTION
#define SEARCH_LOOP     static __attribute__((noinline))

LANES_FUNCTION lanes lanes_all(float value)
{
    return (lanes){0} + value;
}

LANES_FUNCTION lanes lanes_select(lanes_mask where, lanes a, lanes b)
{
    return (lanes)(((lanes_mask)a & where) | ((lanes_mask)b & ~where));
}

/* Minimum and maximum are a < b ? a : b and a > b ? a : b, also for NaN; x86 has instructions for exactly that. */
#if defined(__AVX512F__)
LANES_FUNCTION lanes lanes_min(lanes a, lanes b)
{
    return (lanes)_mm512_min_ps((__m512)a, (__m512)b);
}
LANES_FUNCTION lanes lanes_max(lanes a, lanes b)
{
    return (lanes)_mm512_max_ps((__m512)a, (__m512)b);
}
#elif defined(__AVX2__)
LANES_FUNCTION lanes lanes_min(lanes a, lanes b)
{
    return (lanes)_mm256_min_ps((__m256)a, (__m256)b);
}
LANES_FUNCTION lanes lanes_max(lanes a, lanes b)
{
    return (lanes)_mm256_max_ps((__m256)a, (__m256)b);
}
#else
LANES_FUNCTION lanes lanes_min(lanes a, lanes b)
{
    return lanes_select(a < b, a, b);
}
LANES_FUNCTION lanes lanes_max(lanes a, lanes b)
{
    return lanes_select(a > b, a, b);
}
#endif

/* a * b + c, rounded once, or twice if the set has no fma: only for exact products. */
LANES_FUNCTION lanes lanes_fma(lanes a, lanes b, lanes c)
{
#if defined(__AVX512F__)
    return (lanes)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
    return (lanes)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return a * b + c;
#endif
}

/* Rounds each lane to an f16. */
LANES_FUNCTION lanes lanes_f16(lanes a)
{
#if defined(__AVX512F__)
    return (lanes)_mm512_cvtph_ps(_mm512_cvtps_ph((__m512)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#elif defined(__F16C__)
    return (lanes)_mm256_cvtph_ps(_mm256_cvtps_ph((__m256)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#else
    float values[REGISTER_LANES];
    memcpy(values, &a, sizeof values);
    for (int i = 0; i < REGISTER_LANES; i++)
        values[i] = block_f32_from_f16(block_f16_from_f32(values[i]));
    memcpy(&a, values, sizeof values);
    return a;
#endif
}

/* Lane i of the result is lane i ^ `by`, a constant below REGISTER_LANES. */
LANES_FUNCTION lanes lanes_xor(lanes a, int32_t by)
{
#if defined(__AVX512F__)
    return by == 8   ? __builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7)
           : by == 4 ? __builtin_shufflevector(a, a, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11)
           : by == 2 ? __builtin_shufflevector(a, a, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13)
                     : __builtin_shufflevector(a, a, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
#elif defined(__AVX2__)
    return by == 4   ? __builtin_shufflevector(a, a, 4, 5, 6, 7, 0, 1, 2, 3)
           : by == 2 ? __builtin_shufflevector(a, a, 2, 3, 0, 1, 6, 7, 4, 5)
                     : __builtin_shufflevector(a, a, 1, 0, 3, 2, 5, 4, 7, 6);
#else
    return by == 2 ? __builtin_shufflevector(a, a, 2, 3, 0, 1) : __builtin_shufflevector(a, a, 1, 0, 3, 2);
#endif
}

/* Combines each of the sixteen lanes with the lane `by` away. */
#define LANES_STEP(a, by, operation)                                                                                           \
    do {                                                                                                                       \
        lanes joined[LANES_REGISTERS];                                                                                         \
        for (int32_t p = 0; p < LANES_REGISTERS; p++)                                                                          \
            joined[p] = operation((a)[p], (by) >= REGISTER_LANES ? (a)[p ^ (by) / REGISTER_LANES] : lanes_xor((a)[p], by));    \
        memcpy(a, joined, sizeof joined);                                                                                      \
    } while (0)

/* Combines the 8 or 16 lanes of a block; all its lanes get the result. */
#define LANES_OVER_BLOCK(name, operation)                                                                                      \
    LANES_FUNCTION void name(lanes a[LANES_REGISTERS], int32_t subs)                                                           \
    {                                                                                                                          \
        if (subs == LANES)                                                                                                     \
            LANES_STEP(a, 8, operation);                                                                                       \
        LANES_STEP(a, 4, operation);                                                                                           \
        LANES_STEP(a, 2, operation);                                                                                           \
        LANES_STEP(a, 1, operation);                                                                                           \
    }
#define LANES_SUM(a, b) ((a) + (b))
LANES_OVER_BLOCK(lanes_block_max, lanes_max)
LANES_OVER_BLOCK(lanes_block_sum, LANES_SUM)

/* Truncates to integers; below, the lowest eight bits of sixteen integers. */
LANES_FUNCTION lanes_mask lanes_cut(lanes a)
{
    return __builtin_convertvector(a, lanes_mask);
}

LANES_FUNCTION lanes_bytes mask_to_bytes(const lanes_mask a[LANES_REGISTERS])
{
#if LANES_REGISTERS == 2
    const __m256i low = (__m256i)(a[0] & 255), high = (__m256i)(a[1] & 255);
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
    return (lanes_bytes)_mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
#elif LANES_REGISTERS == 1
    return __builtin_convertvector(a[0], lanes_bytes);
#else
    lanes_bytes b[LANES_REGISTERS];
    memcpy(b, a, sizeof b);
    const lanes_bytes low = __builtin_shufflevector(b[0], b[1], 0, 4, 8, 12, 16, 20, 24, 28, 0, 0, 0, 0, 0, 0, 0, 0);
    const lanes_bytes high = __builtin_shufflevector(b[2], b[3], 0, 4, 8, 12, 16, 20, 24, 28, 0, 0, 0, 0, 0, 0, 0, 0);
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
#endif
}

LANES_FUNCTION lanes_bytes lanes_to_bytes(const lanes a[LANES_REGISTERS])
{
    lanes_mask cut[LANES_REGISTERS];
    for (int32_t p = 0; p < LANES_REGISTERS; p++)
        cut[p] = lanes_cut(a[p]);
    return mask_to_bytes(cut);
}

/* Pairs of neighbours from two vectors, alternately: the step of a transposition, which takes four of them. */
#define LANES_LOW_PAIRS  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define LANES_HIGH_PAIRS 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31

/* Transposes as many sub-blocks as a register has lanes, `length` floats each: to[l] has element l of each. */
#if LANES_REGISTERS == 1
LANES_FUNCTION void lanes_transpose(lanes *to, const float *from, int32_t length)
{
    for (int32_t l = 0; l < length; l += LANES) {
        lanes a[LANES], b[LANES];
        for (int i = 0; i < LANES; i++)
            memcpy(&a[i], from + i * length + l, sizeof a[i]);
        for (int step = 0; step < 4; step++) {
            for (int i = 0; i < LANES / 2; i++) {
                b[2 * i] = __builtin_shufflevector(a[i], a[i + LANES / 2], LANES_LOW_PAIRS);
                b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + LANES / 2], LANES_HIGH_PAIRS);
            }
            memcpy(a, b, sizeof a);
        }
        memcpy(to + l, a, sizeof a);
    }
}
#elif LANES_REGISTERS == 2
LANES_FUNCTION void lanes_transpose(lanes *to, const float *from, int32_t length)
{
    for (int32_t l = 0; l < length; l += 4) {
        group_words v[4];
        for (int i = 0; i < 4; i++) {
            const __m128 low = _mm_loadu_ps(from + i * length + l), high = _mm_loadu_ps(from + (i + 4) * length + l);
            v[i] = (group_words)_mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
        }
        words_transpose(v);
        memcpy(to + l, v, sizeof v);
    }
}
#else
LANES_FUNCTION void lanes_transpose(lanes *to, const float *from, int32_t length)
{
    for (int32_t l = 0; l < length; l += 4) {
        lanes a[4];
        for (int i = 0; i < 4; i++)
            memcpy(&a[i], from + i * length + l, sizeof a[i]);
        const lanes b = __builtin_shufflevector(a[0], a[2], 0, 4, 1, 5), c = __builtin_shufflevector(a[0], a[2], 2, 6, 3, 7);
        const lanes d = __builtin_shufflevector(a[1], a[3], 0, 4, 1, 5), e = __builtin_shufflevector(a[1], a[3], 2, 6, 3, 7);
        to[l] = __builtin_shufflevector(b, d, 0, 4, 1, 5);
        to[l + 1] = __builtin_shufflevector(b, d, 2, 6, 3, 7);
        to[l + 2] = __builtin_shufflevector(c, e, 0, 4, 1, 5);
        to[l + 3] = __builtin_shufflevector(c, e, 2, 6, 3, 7);
    }
}
#endif

/* The reverse for bytes: sub-block r gets byte r of each vector. Sub-blocks are `stride` apart. */
LANES_FUNCTION void bytes_transpose(uint8_t *to, int32_t stride, const lanes_bytes *from)
{
    lanes_bytes a[LANES], b[LANES];
    memcpy(a, from, sizeof a);
    for (int step = 0; step < 4; step++) {
        for (int i = 0; i < LANES / 2; i++) {
            b[2 * i] = __builtin_shufflevector(a[i], a[i + LANES / 2], LANES_LOW_PAIRS);
            b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + LANES / 2], LANES_HIGH_PAIRS);
        }
        memcpy(a, b, sizeof a);
    }
    for (int r = 0; r < LANES; r++)
        memcpy(to + r * stride, &a[r], sizeof a[r]);
}

#endif
