/* The building blocks of element functions: bits, fused multiply-add, powers of two, exact sums of two.
 *
 * f32.h and f64.h are compiled for the host and for devices and give the same bits everywhere, because they use only operations
 * that IEEE 754 defines to the bit: + - * /, square root, explicit fma, conversions, and integer arithmetic on the bits. They
 * call no math library. Choices are selects, not branches, so compilers can vectorize loops over elements; the few functions
 * that do branch say so.
 *
 * Whether a result is NaN is defined; the payload and sign of a NaN depend on the machine.
 */
#ifndef WW_ARITHMETIC_MATH_PRIMITIVES_H
#define WW_ARITHMETIC_MATH_PRIMITIVES_H

#include <stdint.h>

#include "arithmetic/canon.h"

/* Always inlined: a call in a loop would prevent vectorization. */
#define MATH_FUNCTION CANON_FUNCTION __attribute__((always_inline))

/* Goes before a table and says where it is stored. Constant memory of a GPU may be the wrong place (simt_nvidia.h). */
#ifndef MATH_TABLE
#define MATH_TABLE static const
#endif

/* The correctly rounded square root of a double. */
#ifndef CANON_SQRT_F64
#define CANON_SQRT_F64 __builtin_sqrt
#endif

/* 1 / d for d from 1/2 to 2^96, correctly rounded. Defined by chips where it is shorter than general division
 * (simt_nvidia.h). */
#ifndef MATH_INVERSE_F32
#define MATH_INVERSE_F32(d) (1.0f / (d))
#endif

/* The same, but possibly one unit too small if all mantissa bits of d are set. That is the result of a chip's inverse, off by
 * less than a unit, and one Newton step (simt_amd.h). */
#ifndef MATH_SHORT_INVERSE_F32
#define MATH_SHORT_INVERSE_F32(d) MATH_INVERSE_F32(d)
#endif

/* 1 over the square root, each rounded correctly, for x from 2^-64 on and for 0, infinity, NaN and negative numbers. */
#ifndef MATH_INVERSE_ROOT_F32
#define MATH_INVERSE_ROOT_F32(x) (1.0f / CANON_SQRT(x))
#endif

MATH_FUNCTION float canon_fma_f32(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}

MATH_FUNCTION double canon_fma_f64(double a, double b, double c)
{
    return __builtin_fma(a, b, c);
}

MATH_FUNCTION uint64_t canon_double_bits(double value)
{
    uint64_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

MATH_FUNCTION double canon_bits_double(uint64_t bits)
{
    double value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

/* condition (0 or 1) ? a : b without a jump that a compiler could thread through others. For long chains of special values,
 * which gcc does not vectorize otherwise. */
MATH_FUNCTION float math_choose_f32(int condition, float a, float b)
{
    const uint32_t mask = 0u - (uint32_t)condition;
    return canon_bits_float((canon_float_bits(a) & mask) | (canon_float_bits(b) & ~mask));
}

MATH_FUNCTION double math_choose_f64(int condition, double a, double b)
{
    const uint64_t mask = (uint64_t)0 - (uint64_t)condition;
    return canon_bits_double((canon_double_bits(a) & mask) | (canon_double_bits(b) & ~mask));
}

/* 2^k, k from -126 to 127. */
MATH_FUNCTION float math_power_f32(int32_t k)
{
    return canon_bits_float((uint32_t)(k + 127) << 23);
}

/* 2^k, k from -1022 to 1023. */
MATH_FUNCTION double math_power_f64(int32_t k)
{
    return canon_bits_double((uint64_t)(int64_t)(k + 1023) << 52);
}

/* x 2^k, rounded once where it is subnormal, k from -252 to 254. */
MATH_FUNCTION float math_scale_f32(float x, int32_t k)
{
    const int32_t half = k >> 1;
    return x * math_power_f32(half) * math_power_f32(k - half);
}

/* The same, k from -2044 to 2046. */
MATH_FUNCTION double math_scale_f64(double x, int32_t k)
{
    const int32_t half = k >> 1;
    return x * math_power_f64(half) * math_power_f64(k - half);
}

MATH_FUNCTION float math_with_sign_f32(float magnitude, float sign)
{
    return canon_bits_float((canon_float_bits(magnitude) & 0x7fffffffu) | (canon_float_bits(sign) & 0x80000000u));
}

MATH_FUNCTION double math_with_sign_f64(double magnitude, double sign)
{
    return canon_bits_double((canon_double_bits(magnitude) & 0x7fffffffffffffffu) |
                             (canon_double_bits(sign) & 0x8000000000000000u));
}

/* hi + lo, |lo| at most half a unit of hi. */
typedef struct math_two_f64 {
    double hi;
    double lo;
} math_two_f64;

#endif
