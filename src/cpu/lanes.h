/* Sixteen runs side by side: the word that kernels/blocks_search.h is written in, for CPUs. Compilers make of it whatever the
 * instruction set has: one register, two or four. */
#ifndef WW_CPU_LANES_H
#define WW_CPU_LANES_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "kernels/blocks.h"

enum { LANES = 16 };

typedef float lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t lanes_mask __attribute__((vector_size(4 * LANES)));

typedef uint8_t lanes_bytes __attribute__((vector_size(LANES)));

/* Always inlined, so that no call has to agree on how such a value is passed. */
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

/* What one register holds of them. The least and the largest are a < b ? a : b and a > b ? a : b, NaN and all, which x86 has
 * instructions for. */
#if defined(__AVX512F__)
typedef lanes lanes_part;
LANES_FUNCTION lanes_part part_min(lanes_part a, lanes_part b)
{
    return (lanes_part)_mm512_min_ps((__m512)a, (__m512)b);
}
LANES_FUNCTION lanes_part part_max(lanes_part a, lanes_part b)
{
    return (lanes_part)_mm512_max_ps((__m512)a, (__m512)b);
}
#elif defined(__AVX2__)
typedef float lanes_part __attribute__((vector_size(32)));
LANES_FUNCTION lanes_part part_min(lanes_part a, lanes_part b)
{
    return (lanes_part)_mm256_min_ps((__m256)a, (__m256)b);
}
LANES_FUNCTION lanes_part part_max(lanes_part a, lanes_part b)
{
    return (lanes_part)_mm256_max_ps((__m256)a, (__m256)b);
}
#else
typedef float lanes_part __attribute__((vector_size(16)));
typedef int32_t part_mask __attribute__((vector_size(16)));
LANES_FUNCTION lanes_part part_min(lanes_part a, lanes_part b)
{
    const part_mask where = a < b;
    return (lanes_part)(((part_mask)a & where) | ((part_mask)b & ~where));
}
LANES_FUNCTION lanes_part part_max(lanes_part a, lanes_part b)
{
    const part_mask where = a > b;
    return (lanes_part)(((part_mask)a & where) | ((part_mask)b & ~where));
}
#endif

/* One where the set's lanes are no wider than a part. NOLINTNEXTLINE(bugprone-sizeof-expression) */
enum { LANES_PARTS = (int)(sizeof(lanes) / sizeof(lanes_part)) };

LANES_FUNCTION lanes_part part_all(float value)
{
    return (lanes_part){0} + value;
}

LANES_FUNCTION lanes_part part_of(const lanes *from, int32_t p)
{
    lanes_part part;
    memcpy(&part, (const char *)from + (size_t)p * sizeof part, sizeof part);
    return part;
}

LANES_FUNCTION void part_put(lanes *to, int32_t p, lanes_part part)
{
    memcpy((char *)to + (size_t)p * sizeof part, &part, sizeof part);
}

#define LANES_BY_PARTS(name, operation)                                                                                        \
    LANES_FUNCTION lanes name(lanes a, lanes b)                                                                                \
    {                                                                                                                          \
        lanes result;                                                                                                          \
        for (int32_t p = 0; p < LANES_PARTS; p++)                                                                              \
            part_put(&result, p, operation(part_of(&a, p), part_of(&b, p)));                                                   \
        return result;                                                                                                         \
    }
LANES_BY_PARTS(lanes_min, part_min)
LANES_BY_PARTS(lanes_max, part_max)
#undef LANES_BY_PARTS

/* Each rounded to an f16. */
LANES_FUNCTION lanes lanes_f16(lanes a)
{
    float values[LANES];
    memcpy(values, &a, sizeof values);
    for (int i = 0; i < LANES; i++)
        values[i] = block_f32_from_f16(block_f16_from_f32(values[i]));
    memcpy(&a, values, sizeof values);
    return a;
}

/* Lane i of the result is lane i ^ 8, 4, 2, 1. */
#define LANES_XOR_8(a) __builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7)
#define LANES_XOR_4(a) __builtin_shufflevector(a, a, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11)
#define LANES_XOR_2(a) __builtin_shufflevector(a, a, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13)
#define LANES_XOR_1(a) __builtin_shufflevector(a, a, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14)

/* Over the lanes of a block, 8 or 16, in all of them. */
LANES_FUNCTION lanes lanes_block_max(lanes a, int32_t runs)
{
    if (runs == LANES)
        a = lanes_max(a, LANES_XOR_8(a));
    a = lanes_max(a, LANES_XOR_4(a));
    a = lanes_max(a, LANES_XOR_2(a));
    return lanes_max(a, LANES_XOR_1(a));
}

LANES_FUNCTION lanes lanes_block_sum(lanes a, int32_t runs)
{
    if (runs == LANES)
        a = a + LANES_XOR_8(a);
    a = a + LANES_XOR_4(a);
    a = a + LANES_XOR_2(a);
    return a + LANES_XOR_1(a);
}

/* The last eight bits of whole numbers. */
LANES_FUNCTION lanes_bytes lanes_to_bytes(lanes a)
{
    return __builtin_convertvector(__builtin_convertvector(a, lanes_mask), lanes_bytes);
}

/* Neighbours of two vectors, a pair after the other: the step of which a transposition is made, four times. */
#define LANES_LOW_PAIRS  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define LANES_HIGH_PAIRS 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31

/* Vector l has place l of 16 runs, `stride` apart. */
LANES_FUNCTION void lanes_transpose(lanes *to, const float *from, int32_t stride)
{
#if defined(__AVX512F__)
    lanes a[LANES], b[LANES];
    for (int i = 0; i < LANES; i++)
        memcpy(&a[i], from + i * stride, sizeof a[i]);
    for (int step = 0; step < 4; step++) {
        for (int i = 0; i < LANES / 2; i++) {
            b[2 * i] = __builtin_shufflevector(a[i], a[i + LANES / 2], LANES_LOW_PAIRS);
            b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + LANES / 2], LANES_HIGH_PAIRS);
        }
        memcpy(a, b, sizeof a);
    }
    memcpy(to, a, sizeof a);
#else
    for (int l = 0; l < LANES; l++)
        for (int r = 0; r < LANES; r++)
            to[l][r] = from[r * stride + l];
#endif
}

/* And bytes back: run r, `stride` apart, gets byte r of each vector. */
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
