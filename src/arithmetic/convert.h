/* Converts one element from one type to another. This file is the only definition.
 *
 * Floats round once, to nearest, ties to even. A conversion in two steps (f64 or an integer to 16 or 8 bits) first rounds to
 * odd: the last bit records whether anything was lost, so the second step rounds as if it saw the exact value. f16 and bf16
 * overflow to infinity. f8e4m3 has no infinity: larger values, including infinity, saturate at 448. A float becomes an integer
 * by truncation, with saturation; NaN becomes 0. A smaller integer type keeps the low bits. A NaN becomes the canonical NaN of
 * the type.
 */
#ifndef WW_ARITHMETIC_CONVERT_H
#define WW_ARITHMETIC_CONVERT_H

#include "arithmetic/canon.h"
#include "arithmetic/types.h"

#include "arithmetic/half.h"

/* ---- one NaN per type ----------------------------------------------------------------------------------------------------
 * Chips compute NaNs with different bits, so every NaN result is replaced by this one. */

CANON_FUNCTION float one_nan_f32(float x)
{
    return x == x ? x : canon_bits_float(0x7fc00000u);
}

CANON_FUNCTION double one_nan_f64(double x)
{
    double nan;
    const uint64_t bits = 0x7ff8000000000000u;
    __builtin_memcpy(&nan, &bits, sizeof nan);
    return x == x ? x : nan;
}

/* ---- the small floats to f32 and back ------------------------------------------------------------------------------------ */

/* The chip's own conversions agree with arithmetic/half.h except for NaNs, whose bits do not matter here. */
#if defined(__AMDGCN__) || defined(__NVPTX__)
CANON_FUNCTION float widen_f16(uint16_t bits)
{
    _Float16 half;
    __builtin_memcpy(&half, &bits, sizeof half);
    return (float)half;
}

CANON_FUNCTION uint16_t narrow_f16(float x)
{
#if defined(__AMDGCN__)
    /* Without this, clang fuses a product and its rounding into v_fma_mixlo_f16 and adds +0, which turns -0 into +0. */
    __asm__("" : "+v"(x));
#endif
    const _Float16 half = (_Float16)x;
    uint16_t bits;
    __builtin_memcpy(&bits, &half, sizeof bits);
    return x == x ? bits : (uint16_t)0x7e00u;
}
#else
CANON_FUNCTION float widen_f16(uint16_t bits)
{
    return f32_from_f16(bits);
}

CANON_FUNCTION uint16_t narrow_f16(float x)
{
    return f16_from_f32(one_nan_f32(x));
}
#endif

CANON_FUNCTION float widen_bf16(uint16_t bits)
{
    return canon_bits_float((uint32_t)bits << 16);
}

CANON_FUNCTION uint16_t narrow_bf16(float x)
{
    const uint32_t bits = canon_float_bits(x);
    const uint16_t rounded = (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
    return x == x ? rounded : (uint16_t)0x7fc0u;
}

/* Exponent and fraction moved to their f32 positions give the value times 2^-120: the biases are 7 and 127. This is exact, also
 * for denormals. */
CANON_FUNCTION float widen_f8e4m3(uint8_t bits)
{
    const uint32_t magnitude = bits & 0x7fu;
    const float value = canon_bits_float(magnitude << 20) * 0x1p120f;
    const uint32_t sign = (uint32_t)(bits & 0x80u) << 24;
    return magnitude == 0x7fu ? canon_bits_float(0x7fc00000u) : canon_bits_float(canon_float_bits(value) | sign);
}

/* Below 2^-6, the smallest normal number, the unit is 2^-9. That is the last place of 2^14, so adding 2^14 rounds to it. */
CANON_FUNCTION uint8_t narrow_f8e4m3(float x)
{
    const uint32_t bits = canon_float_bits(x);
    const uint32_t magnitude = bits & 0x7fffffffu;
    const uint32_t normal = (magnitude + 0x7ffffu + (magnitude >> 20 & 1u) - (120u << 23)) >> 20;
    const uint32_t small = canon_float_bits(canon_bits_float(magnitude) + 16384.0f) - 0x46800000u;
    uint32_t rounded = magnitude >= 0x3c800000u ? normal : small;
    rounded = magnitude >= 0x43e00000u ? 0x7eu : rounded; /* 448 and above */
    return (uint8_t)(x == x ? rounded | (bits >> 24 & 0x80u) : 0x7fu);
}

/* ---- to odd -------------------------------------------------------------------------------------------------------------- */

/* x as f32, rounded towards zero, with the last bit set if anything was lost. */
CANON_FUNCTION float odd_f32(double x)
{
    const float nearest = (float)x;
    const double back = (double)nearest;
    uint32_t bits = canon_float_bits(nearest);
    if (back == x || x != x)
        return nearest;
    bits -= __builtin_fabs(back) > __builtin_fabs(x) ? 1u : 0u;
    return canon_bits_float(bits | 1u);
}

/* The same from an integer to f64: 53 bits hold the upper part exactly. */
CANON_FUNCTION double odd_f64(int64_t x)
{
    const uint64_t magnitude = x < 0 ? 0u - (uint64_t)x : (uint64_t)x;
    if (magnitude >> 53 == 0)
        return (double)x;
    const uint64_t upper = magnitude >> 11 | ((magnitude & 0x7ffu) != 0 ? 1u : 0u);
    const double value = (double)(int64_t)upper * 2048.0;
    return x < 0 ? -value : value;
}

/* ---- floats to integers: towards zero, saturated, NaN as 0 --------------------------------------------------------------- */

CANON_FUNCTION int32_t i32_from_f32(float x)
{
    const float inside = x >= -0x1p31f && x < 0x1p31f ? x : 0.0f;
    const int32_t cut = x >= 0x1p31f ? INT32_MAX : x < -0x1p31f ? INT32_MIN : 0;
    return x >= -0x1p31f && x < 0x1p31f ? (int32_t)inside : cut;
}

CANON_FUNCTION int64_t i64_from_f32(float x)
{
    const float inside = x >= -0x1p63f && x < 0x1p63f ? x : 0.0f;
    const int64_t cut = x >= 0x1p63f ? INT64_MAX : x < -0x1p63f ? INT64_MIN : 0;
    return x >= -0x1p63f && x < 0x1p63f ? (int64_t)inside : cut;
}

CANON_FUNCTION int64_t i64_from_f64(double x)
{
    const double inside = x >= -0x1p63 && x < 0x1p63 ? x : 0.0;
    const int64_t cut = x >= 0x1p63 ? INT64_MAX : x < -0x1p63 ? INT64_MIN : 0;
    return x >= -0x1p63 && x < 0x1p63 ? (int64_t)inside : cut;
}

CANON_FUNCTION int64_t convert_clamp(int64_t x, int64_t min, int64_t max)
{
    return x < min ? min : x > max ? max : x;
}

CANON_FUNCTION int32_t convert_clamp_i32(int32_t x, int32_t min, int32_t max)
{
    return x < min ? min : x > max ? max : x;
}

/* ---- from each kind to each type: to_TYPE_KIND(x) ------------------------------------------------------------------------ */

CANON_FUNCTION uint8_t u8_of_f32(float x)
{
    return (uint8_t)convert_clamp_i32(i32_from_f32(x), 0, UINT8_MAX);
}
CANON_FUNCTION int8_t i8_of_f32(float x)
{
    return (int8_t)convert_clamp_i32(i32_from_f32(x), INT8_MIN, INT8_MAX);
}
CANON_FUNCTION int16_t i16_of_f32(float x)
{
    return (int16_t)convert_clamp_i32(i32_from_f32(x), INT16_MIN, INT16_MAX);
}
CANON_FUNCTION int32_t i32_of_f32(float x)
{
    return i32_from_f32(x);
}
CANON_FUNCTION uint32_t u32_of_f32(float x)
{
    return (uint32_t)convert_clamp(i64_from_f32(x), 0, UINT32_MAX);
}
CANON_FUNCTION int64_t i64_of_f32(float x)
{
    return i64_from_f32(x);
}
CANON_FUNCTION uint16_t bf16_of_f32(float x)
{
    return narrow_bf16(x);
}
CANON_FUNCTION uint16_t f16_of_f32(float x)
{
    return narrow_f16(x);
}
CANON_FUNCTION float f32_of_f32(float x)
{
    return one_nan_f32(x);
}
CANON_FUNCTION double f64_of_f32(float x)
{
    return one_nan_f64((double)x);
}
CANON_FUNCTION uint8_t f8e4m3_of_f32(float x)
{
    return narrow_f8e4m3(x);
}

CANON_FUNCTION uint8_t u8_of_f64(double x)
{
    return (uint8_t)convert_clamp(i64_from_f64(x), 0, UINT8_MAX);
}
CANON_FUNCTION int8_t i8_of_f64(double x)
{
    return (int8_t)convert_clamp(i64_from_f64(x), INT8_MIN, INT8_MAX);
}
CANON_FUNCTION int16_t i16_of_f64(double x)
{
    return (int16_t)convert_clamp(i64_from_f64(x), INT16_MIN, INT16_MAX);
}
CANON_FUNCTION int32_t i32_of_f64(double x)
{
    return (int32_t)convert_clamp(i64_from_f64(x), INT32_MIN, INT32_MAX);
}
CANON_FUNCTION uint32_t u32_of_f64(double x)
{
    return (uint32_t)convert_clamp(i64_from_f64(x), 0, UINT32_MAX);
}
CANON_FUNCTION int64_t i64_of_f64(double x)
{
    return i64_from_f64(x);
}
CANON_FUNCTION uint16_t bf16_of_f64(double x)
{
    return narrow_bf16(odd_f32(x));
}
CANON_FUNCTION uint16_t f16_of_f64(double x)
{
    return narrow_f16(odd_f32(x));
}
CANON_FUNCTION float f32_of_f64(double x)
{
    return one_nan_f32((float)x);
}
CANON_FUNCTION double f64_of_f64(double x)
{
    return one_nan_f64(x);
}
CANON_FUNCTION uint8_t f8e4m3_of_f64(double x)
{
    return narrow_f8e4m3(odd_f32(x));
}

CANON_FUNCTION uint8_t u8_of_i64(int64_t x)
{
    return (uint8_t)x;
}
CANON_FUNCTION int8_t i8_of_i64(int64_t x)
{
    return (int8_t)x;
}
CANON_FUNCTION int16_t i16_of_i64(int64_t x)
{
    return (int16_t)x;
}
CANON_FUNCTION int32_t i32_of_i64(int64_t x)
{
    return (int32_t)x;
}
CANON_FUNCTION uint32_t u32_of_i64(int64_t x)
{
    return (uint32_t)x;
}
CANON_FUNCTION int64_t i64_of_i64(int64_t x)
{
    return x;
}
CANON_FUNCTION uint16_t bf16_of_i64(int64_t x)
{
    return narrow_bf16(odd_f32(odd_f64(x)));
}
CANON_FUNCTION uint16_t f16_of_i64(int64_t x)
{
    return narrow_f16(odd_f32(odd_f64(x)));
}
CANON_FUNCTION float f32_of_i64(int64_t x)
{
    return (float)x;
}
CANON_FUNCTION double f64_of_i64(int64_t x)
{
    return (double)x;
}
CANON_FUNCTION uint8_t f8e4m3_of_i64(int64_t x)
{
    return narrow_f8e4m3(odd_f32(odd_f64(x)));
}

/* ---- from each type to the kind that its operations compute in: exact ---------------------------------------------------- */

CANON_FUNCTION int64_t kind_of_u8(uint8_t x)
{
    return x;
}
CANON_FUNCTION int64_t kind_of_i8(int8_t x)
{
    return x;
}
CANON_FUNCTION int64_t kind_of_i16(int16_t x)
{
    return x;
}
CANON_FUNCTION int64_t kind_of_i32(int32_t x)
{
    return x;
}
CANON_FUNCTION int64_t kind_of_u32(uint32_t x)
{
    return x;
}
CANON_FUNCTION int64_t kind_of_i64(int64_t x)
{
    return x;
}
CANON_FUNCTION float kind_of_bf16(uint16_t x)
{
    return widen_bf16(x);
}
CANON_FUNCTION float kind_of_f16(uint16_t x)
{
    return widen_f16(x);
}
CANON_FUNCTION float kind_of_f32(float x)
{
    return x;
}
CANON_FUNCTION double kind_of_f64(double x)
{
    return x;
}
CANON_FUNCTION float kind_of_f8e4m3(uint8_t x)
{
    return widen_f8e4m3(x);
}

#endif
