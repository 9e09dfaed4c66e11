/* Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, 2011) and the distributions made from its words.
 *
 * Block n of a seed is four words. This file defines which words make which element, so every device gives the same bits in any
 * order. In an f32 kind, element i uses word i mod 4 of block i / 4; two normal elements share words 0 and 1, or 2 and 3. In
 * f64, element i uses pair i mod 2 of block i / 2; two normal elements share all four words.
 */
#ifndef WW_ARITHMETIC_PHILOX_H
#define WW_ARITHMETIC_PHILOX_H

#include "arithmetic/math/f32.h"
#include "arithmetic/math/f64.h"

enum { RANDOM_UNIFORM, RANDOM_NORMAL };

typedef struct philox_block {
    uint32_t word[4];
} philox_block;

MATH_FUNCTION philox_block philox(uint64_t seed, uint64_t number)
{
    philox_block c = {{(uint32_t)number, (uint32_t)(number >> 32), 0, 0}};
    uint32_t k0 = (uint32_t)seed;
    uint32_t k1 = (uint32_t)(seed >> 32);
    for (int32_t round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)c.word[0] * 0xd2511f53u;
        const uint64_t b = (uint64_t)c.word[2] * 0xcd9e8d57u;
        const philox_block next = {
            {(uint32_t)(b >> 32) ^ c.word[1] ^ k0, (uint32_t)b, (uint32_t)(a >> 32) ^ c.word[3] ^ k1, (uint32_t)a}};
        c = next;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    return c;
}

/* low + u * span, where u is a multiple of 2^-24 in [0, 1). */
MATH_FUNCTION float random_uniform_f32(uint32_t word, float low, float span)
{
    return canon_fma_f32((float)(word >> 8) * 0x1p-24f, span, low);
}

MATH_FUNCTION double random_uniform_f64(uint32_t high, uint32_t low_word, double low, double span)
{
    const uint64_t bits = ((uint64_t)high << 32 | low_word) >> 11;
    return canon_fma_f64((double)(int64_t)bits * 0x1p-53, span, low);
}

/* Box-Muller: a radius from u in (0, 1] and an angle in [0, 2 pi) give two numbers from two words. The radius reaches 6.8
 * standard deviations with 32 bits, 8.6 with 53. */
typedef struct normal_f32 {
    float first, second;
} normal_f32;

MATH_FUNCTION normal_f32 random_normal_f32(uint32_t radius_word, uint32_t angle_word, float mean, float deviation)
{
    const float u = canon_fma_f32((float)radius_word, 0x1p-32f, 0x1p-33f);
    const float radius = canon_sqrt_f32(-2.0f * canon_log_f32(u)) * deviation;
    const float angle = (float)(angle_word >> 8) * (0x1p-24f * 6.28318531f);
    const normal_f32 pair = {canon_fma_f32(radius, canon_cos_near_f32(angle), mean),
                             canon_fma_f32(radius, canon_sin_near_f32(angle), mean)};
    return pair;
}

typedef struct normal_f64 {
    double first, second;
} normal_f64;

MATH_FUNCTION normal_f64 random_normal_f64(philox_block words, double mean, double deviation)
{
    const uint64_t radius_bits = ((uint64_t)words.word[0] << 32 | words.word[1]) >> 11;
    const uint64_t angle_bits = ((uint64_t)words.word[2] << 32 | words.word[3]) >> 11;
    const double u = (double)(int64_t)(radius_bits + 1) * 0x1p-53;
    const double radius = canon_sqrt_f64(-2.0 * canon_log_f64(u)) * deviation;
    const double angle = (double)(int64_t)angle_bits * (0x1p-53 * 6.283185307179586);
    const normal_f64 pair = {canon_fma_f64(radius, canon_cos_near_f64(angle), mean),
                             canon_fma_f64(radius, canon_sin_near_f64(angle), mean)};
    return pair;
}

/* The four elements of an f32 block, and the two of an f64 block. a and b are low and span, or mean and deviation. */
typedef struct random_four {
    float v[4];
} random_four;
typedef struct random_two {
    double v[2];
} random_two;

MATH_FUNCTION random_four random_block_f32(int32_t what, uint64_t seed, uint64_t number, float a, float b)
{
    const philox_block words = philox(seed, number);
    random_four made;
    if (what == RANDOM_UNIFORM) {
        for (int32_t j = 0; j < 4; j++)
            made.v[j] = random_uniform_f32(words.word[j], a, b);
        return made;
    }
    const normal_f32 front = random_normal_f32(words.word[0], words.word[1], a, b);
    const normal_f32 back = random_normal_f32(words.word[2], words.word[3], a, b);
    made.v[0] = front.first;
    made.v[1] = front.second;
    made.v[2] = back.first;
    made.v[3] = back.second;
    return made;
}

MATH_FUNCTION random_two random_block_f64(int32_t what, uint64_t seed, uint64_t number, double a, double b)
{
    const philox_block words = philox(seed, number);
    random_two made;
    if (what == RANDOM_UNIFORM) {
        made.v[0] = random_uniform_f64(words.word[0], words.word[1], a, b);
        made.v[1] = random_uniform_f64(words.word[2], words.word[3], a, b);
        return made;
    }
    const normal_f64 pair = random_normal_f64(words, a, b);
    made.v[0] = pair.first;
    made.v[1] = pair.second;
    return made;
}

#endif
