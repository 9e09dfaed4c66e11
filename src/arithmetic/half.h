/* The 16-bit floats, f16 (IEEE binary16) and bf16, to f32 and back.
 *
 * Widening is exact. Narrowing rounds to nearest, ties to even, and overflows to infinity. A NaN keeps its sign and leading
 * payload bits and becomes quiet, as with the conversion instructions of x86 (F16C) and Arm, so code that uses them agrees.
 * There are no branches, so compilers can vectorize loops.
 */
#ifndef WW_ARITHMETIC_HALF_H
#define WW_ARITHMETIC_HALF_H

#include <stdint.h>

#include "arithmetic/function.h"

CANON_FUNCTION uint32_t half_f32_bits(float value)
{
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

CANON_FUNCTION float half_bits_f32(uint32_t bits)
{
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

/* Multiplying by 2^112 raises the exponent, exactly even for denormals; infinity and NaN are corrected afterwards. */
CANON_FUNCTION float f32_from_f16(uint16_t half)
{
    const uint32_t sign = (half & 0x8000u) << 16, magnitude = (half & 0x7fffu) << 13;
    const uint32_t finite = half_f32_bits(half_bits_f32(magnitude) * 0x1p112f);
    const uint32_t special = magnitude | 0x7f800000u | (magnitude > 0x0f800000u ? 0x400000u : 0u);
    return half_bits_f32(sign | (magnitude >= 0x0f800000u ? special : finite));
}

/* Below 2^-14 the last bits of 0.5 + x count units of 2^-24, the smallest f16. Above, a carry propagates into the exponent.
 * From 65520 on, halfway between the largest f16 and the next power of two, the result is infinity. */
CANON_FUNCTION uint16_t f16_from_f32(float value)
{
    const uint32_t bits = half_f32_bits(value), magnitude = bits & 0x7fffffffu;
    const uint32_t small = half_f32_bits(half_bits_f32(magnitude) + 0.5f) - 0x3f000000u;
    const uint32_t normal = (magnitude + 0xfffu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13;
    const uint32_t nan = 0x7e00u | (magnitude >> 13 & 0x3ffu);
    uint32_t half = magnitude < 0x38800000u ? small : normal;
    half = magnitude >= 0x477ff000u ? 0x7c00u : half;
    half = magnitude > 0x7f800000u ? nan : half;
    return (uint16_t)((bits >> 16 & 0x8000u) | half);
}

CANON_FUNCTION float f32_from_bf16(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    return half_bits_f32((bits & 0x7fffffffu) > 0x7f800000u ? bits | 0x400000u : bits);
}

CANON_FUNCTION uint16_t bf16_from_f32(float value)
{
    const uint32_t bits = half_f32_bits(value);
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

#endif
