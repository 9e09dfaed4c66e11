/* Floats to blocks of 32, and to q8_k blocks for activations. Each format has one algorithm, which gives the bytes of the
 * reference. Each function returns true if the block cannot hold its elements: one is not finite, or a scale is too large for
 * f16. The bytes are then written but meaningless.
 *
 * A code is rounded after one fused multiply-add, as in the reference build; ties depend on this.
 *
 * The largest and smallest elements are found by comparing their bits as integers. The result does not depend on the order, so
 * compilers can vectorize it and every device finds the same element.
 */
#ifndef WW_ARITHMETIC_BLOCKS_ENCODE_H
#define WW_ARITHMETIC_BLOCKS_ENCODE_H

#include "arithmetic/blocks/blocks.h"

#define BLOCK_INFINITE 0x7f800000 /* magnitude bits at or above this are not finite */

CANON_FUNCTION int32_t magnitude_bits(float x)
{
    return (int32_t)(canon_float_bits(x) & 0x7fffffffu);
}

/* The bits of the largest magnitude. */
CANON_FUNCTION int32_t block_largest(const float *x, int32_t count)
{
    int32_t largest = 0;
    for (int32_t i = 0; i < count; i++) {
        const int32_t magnitude = magnitude_bits(x[i]);
        largest = magnitude > largest ? magnitude : largest;
    }
    return largest;
}

/* The first element of that magnitude; +0 if all are zero. */
CANON_FUNCTION float block_extreme(const float *x, int32_t count, int32_t largest)
{
    int32_t first = count - 1;
    for (int32_t i = count - 1; i >= 0; i--)
        first = magnitude_bits(x[i]) == largest ? i : first;
    return largest == 0 ? 0.0f : x[first];
}

/* Maps floats to integers that sort the same way, and back. */
CANON_FUNCTION int32_t block_ordered(float x)
{
    const int32_t bits = (int32_t)canon_float_bits(x);
    return bits < 0 ? bits ^ 0x7fffffff : bits;
}

CANON_FUNCTION float block_unordered(int32_t ordered)
{
    return canon_bits_float((uint32_t)(ordered < 0 ? ordered ^ 0x7fffffff : ordered));
}

/* 1 / d; 0 for 0. */
CANON_FUNCTION float block_inverse(float d)
{
    return d != 0.0f ? 1.0f / d : 0.0f;
}

/* Clamps to 0..max and truncates. The inverse of a denormal scale may be infinite; the result is then 0 or max. */
CANON_FUNCTION int32_t block_cut(float x, float max)
{
    const float low = x > 0.0f ? x : 0.0f;
    return (int32_t)(low < max ? low : max);
}

/* Nearest integer, halves away from zero, clamped to +-127. */
CANON_FUNCTION int32_t block_round_away(float x)
{
    const float low = x > -127.0f ? x : -127.0f;
    const float within = low < 127.0f ? low : 127.0f;
    const int32_t cut = (int32_t)within;
    const float rest = within - (float)cut; /* exact */
    return cut + (rest >= 0.5f ? 1 : 0) - (rest <= -0.5f ? 1 : 0);
}

/* The same in fewer instructions, for |x| < 127.5: moves x away from 0 by the largest float below 1/2 and truncates. If the
 * fraction is 1/2 or more, the sum rounds up to the next integer; if less, it stays below by at least the last bit of x. */
CANON_FUNCTION int32_t block_round_away_quick(float x)
{
    return (int32_t)(x + __builtin_copysignf(0x1.fffffep-2f, x));
}

/* x / 127, correctly rounded, for finite x >= 0. The remainder is exact, and no quotient is so close to the midpoint of two
 * floats that 48 bits could not decide. */
CANON_FUNCTION float block_by_127(float x)
{
    const float q = x * 0x1.020408p-7f;
    return __builtin_fmaf(__builtin_fmaf(-127.0f, q, x), 0x1.020408p-7f, q);
}

CANON_FUNCTION int encode_q4_0(const float *x, block_q4_0 *b)
{
    const int32_t largest = block_largest(x, BLOCK32_ELEMENTS);
    const float d = block_extreme(x, BLOCK32_ELEMENTS, largest) / -8.0f, inverse = block_inverse(d);
    b->d = (block_f16)block_f16_from_f32(d);
    for (int32_t l = 0; l < 16; l++) {
        const int32_t low = block_cut(__builtin_fmaf(x[l], inverse, 8.5f), 15.0f),
                      high = block_cut(__builtin_fmaf(x[l + 16], inverse, 8.5f), 15.0f);
        b->codes[l] = (uint8_t)(low | high << 4);
    }
    return (largest >= BLOCK_INFINITE) | block_f16_bad(b->d);
}

CANON_FUNCTION int encode_q5_0(const float *x, block_q5_0 *b)
{
    const int32_t largest = block_largest(x, BLOCK32_ELEMENTS);
    const float d = block_extreme(x, BLOCK32_ELEMENTS, largest) / -16.0f, inverse = block_inverse(d);
    uint32_t fifth = 0;
    b->d = (block_f16)block_f16_from_f32(d);
    for (int32_t l = 0; l < 16; l++) {
        const int32_t low = block_cut(__builtin_fmaf(x[l], inverse, 16.5f), 31.0f),
                      high = block_cut(__builtin_fmaf(x[l + 16], inverse, 16.5f), 31.0f);
        b->codes[l] = (uint8_t)((low & 15) | (high & 15) << 4);
        fifth |= (uint32_t)(low >> 4) << l | (uint32_t)(high >> 4) << (l + 16);
    }
    for (int32_t i = 0; i < 4; i++)
        b->fifth[i] = (uint8_t)(fifth >> 8 * i);
    return (largest >= BLOCK_INFINITE) | block_f16_bad(b->d);
}

typedef struct block_range {
    float min, max;
    int bad;
} block_range;

CANON_FUNCTION block_range block_range_of(const float *x)
{
    int32_t min = 0x7fffffff, max = -0x7fffffff;
    for (int32_t i = 0; i < BLOCK32_ELEMENTS; i++) {
        const int32_t here = block_ordered(x[i]);
        min = here < min ? here : min;
        max = here > max ? here : max;
    }
    block_range range;
    range.min = block_unordered(min);
    range.max = block_unordered(max);
    range.bad = magnitude_bits(range.min) >= BLOCK_INFINITE || magnitude_bits(range.max) >= BLOCK_INFINITE;
    return range;
}

CANON_FUNCTION int encode_q4_1(const float *x, block_q4_1 *b)
{
    const block_range range = block_range_of(x);
    const float d = (range.max - range.min) / 15.0f, inverse = block_inverse(d);
    b->d = (block_f16)block_f16_from_f32(d);
    b->m = (block_f16)block_f16_from_f32(range.min);
    for (int32_t l = 0; l < 16; l++) {
        const int32_t low = block_cut(__builtin_fmaf(x[l] - range.min, inverse, 0.5f), 15.0f);
        const int32_t high = block_cut(__builtin_fmaf(x[l + 16] - range.min, inverse, 0.5f), 15.0f);
        b->codes[l] = (uint8_t)(low | high << 4);
    }
    return range.bad | block_f16_bad(b->d) | block_f16_bad(b->m);
}

CANON_FUNCTION int encode_q5_1(const float *x, block_q5_1 *b)
{
    const block_range range = block_range_of(x);
    const float d = (range.max - range.min) / 31.0f, inverse = block_inverse(d);
    uint32_t fifth = 0;
    b->d = (block_f16)block_f16_from_f32(d);
    b->m = (block_f16)block_f16_from_f32(range.min);
    for (int32_t l = 0; l < 16; l++) {
        const int32_t low = block_cut(__builtin_fmaf(x[l] - range.min, inverse, 0.5f), 31.0f);
        const int32_t high = block_cut(__builtin_fmaf(x[l + 16] - range.min, inverse, 0.5f), 31.0f);
        b->codes[l] = (uint8_t)((low & 15) | (high & 15) << 4);
        fifth |= (uint32_t)(low >> 4) << l | (uint32_t)(high >> 4) << (l + 16);
    }
    for (int32_t i = 0; i < 4; i++)
        b->fifth[i] = (uint8_t)(fifth >> 8 * i);
    return range.bad | block_f16_bad(b->d) | block_f16_bad(b->m);
}

CANON_FUNCTION int encode_q8_0(const float *x, block_q8_0 *b)
{
    const int32_t largest = block_largest(x, BLOCK32_ELEMENTS);
    const float d = canon_bits_float((uint32_t)largest) / 127.0f, inverse = block_inverse(d);
    b->d = (block_f16)block_f16_from_f32(d);
    for (int32_t i = 0; i < BLOCK32_ELEMENTS; i++)
        b->codes[i] = (int8_t)block_round_away(x[i] * inverse);
    return (largest >= BLOCK_INFINITE) | block_f16_bad(b->d);
}

CANON_FUNCTION int encode_q8_1(const float *x, block_q8_1 *b)
{
    const int32_t largest = block_largest(x, BLOCK32_ELEMENTS);
    const float d = canon_bits_float((uint32_t)largest) / 127.0f, inverse = block_inverse(d);
    int32_t sum = 0;
    b->d = (block_f16)block_f16_from_f32(d);
    for (int32_t i = 0; i < BLOCK32_ELEMENTS; i++) {
        const int32_t code = block_round_away(x[i] * inverse);
        b->codes[i] = (int8_t)code;
        sum += code;
    }
    b->sum = (block_f16)block_f16_from_f32((float)sum * d);
    return (largest >= BLOCK_INFINITE) | block_f16_bad(b->d);
}

/* The element of the largest magnitude becomes -127. Codes are the nearest integers, ties to even. If no element is above
 * 2^-120, the block is encoded as zeros because the inverse scale would overflow. */
CANON_FUNCTION int encode_q8_k(const float *x, block_q8_k *b)
{
    const int32_t largest = block_largest(x, KBLOCK_ELEMENTS);
    const float inverse = largest > 0x03800000 ? -127.0f / block_extreme(x, KBLOCK_ELEMENTS, largest) : 0.0f;
    b->d = block_inverse(inverse);
    for (int32_t r = 0; r < 16; r++) {
        int32_t sum = 0;
        for (int32_t l = 0; l < 16; l++) {
            const float scaled = x[16 * r + l] * inverse;
            const int32_t code = (int32_t)(canon_float_bits(scaled + 0x1.8p23f) - canon_float_bits(0x1.8p23f));
            b->codes[16 * r + l] = (int8_t)code; /* |scaled| <= 127 (1 + 2^-23): no clamp is needed */
            sum += b->codes[16 * r + l];
        }
        b->sums[r] = (int16_t)sum;
    }
    return largest >= BLOCK_INFINITE;
}

#endif
