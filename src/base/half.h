/* The 16-bit floats, f16 (IEEE binary16) and bf16, to f32 and back.
 *
 * Widening is exact. Narrowing rounds to nearest, ties to even, and overflows to infinity. It is all integer arithmetic, so it
 * does not depend on a rounding mode or on denormals being flushed. A NaN stays a NaN with its sign and leading payload bits
 * and becomes quiet, as the conversion instructions of x86 (F16C) and Arm have it, so that code that uses them agrees.
 */
#ifndef WW_BASE_HALF_H
#define WW_BASE_HALF_H

#include <stdint.h>

#ifndef HALF_FUNCTION /* device code has its own word for it */
#define HALF_FUNCTION static inline
#endif

HALF_FUNCTION uint32_t half_f32_bits(float value)
{
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

HALF_FUNCTION float half_bits_f32(uint32_t bits)
{
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

HALF_FUNCTION float f32_from_f16(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t exponent = half >> 10 & 0x1fu;
    uint32_t fraction = half & 0x3ffu;
    if (exponent == 0x1f)
        return half_bits_f32(sign | 0x7f800000u | (fraction ? 0x400000u : 0u) | fraction << 13);
    if (exponent != 0)
        return half_bits_f32(sign | (exponent + 112) << 23 | fraction << 13); /* the biases are 15 and 127 */
    if (fraction == 0)
        return half_bits_f32(sign);
    /* fraction x 2^-24, brought to the form 1.f: the leading one moves to bit 10, each step costs a power of two. */
    const uint32_t shift = (uint32_t)__builtin_clz(fraction) - 21;
    return half_bits_f32(sign | (113 - shift) << 23 | (fraction << shift & 0x3ffu) << 13);
}

HALF_FUNCTION uint16_t f16_from_f32(float value)
{
    const uint32_t bits = half_f32_bits(value);
    const uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
    if (magnitude >= 0x477ff000u) /* 65520, halfway from the largest f16 to the next power of two, and above */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude >= 0x38800000u) { /* 2^-14, the smallest normal; a carry runs on into the exponent, as it should */
        magnitude += 0xfffu + (magnitude >> 13 & 1u);
        return (uint16_t)(sign | (magnitude - 0x38000000u) >> 13);
    }
    if (magnitude < 0x33000000u) /* below 2^-25, half the smallest denormal */
        return (uint16_t)sign;
    /* m x 2^(e-150) in units of 2^-24 is m >> (126-e), rounded; e is 102..112 here, so the shift is 14..24. */
    const uint32_t shift = 126 - (magnitude >> 23);
    const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    return (uint16_t)(sign | (mantissa + (1u << (shift - 1)) - 1u + (mantissa >> shift & 1u)) >> shift);
}

HALF_FUNCTION float f32_from_bf16(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    return half_bits_f32((bits & 0x7fffffffu) > 0x7f800000u ? bits | 0x400000u : bits);
}

HALF_FUNCTION uint16_t bf16_from_f32(float value)
{
    const uint32_t bits = half_f32_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

#endif
