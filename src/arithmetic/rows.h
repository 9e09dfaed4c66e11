/* What softmax, norms and rotary embedding do to one element, in f32 and f64. Shared by CPU code and kernels. */
#ifndef WW_ARITHMETIC_ROWS_H
#define WW_ARITHMETIC_ROWS_H

#include "arithmetic/math/f32.h"
#include "arithmetic/math/f64.h"

/* ---- exponentials of softmax --------------------------------------------------------------------------------------------- */

/* The larger of two numbers. With one NaN it returns either: the NaN is also in the sum of exponentials. */
#ifdef MATH_MAX_F32 /* the chip's own */
MATH_FUNCTION float row_larger_f32(float a, float b)
{
    return MATH_MAX_F32(a, b);
}
#else
MATH_FUNCTION float row_larger_f32(float a, float b)
{
    return a < b ? b : a;
}
#endif

/* e^(x - less) for x up to `less`, the largest of the row. Shorter than canon_exp_f32, because no result is above 1. NaN if
 * either argument is NaN or both are infinite.
 *
 * With k the integer nearest to t / ln 2 and r = t - k ln 2, the result is 2^k e^r. The upper part of ln 2 has 21 bits, so the
 * first step to r is exact. The low bits of `shifted` hold k + 127. Moved to the exponent field they are 2^k, or +0 for k =
 * -127, the limit for t. So the result is 0 from -87.68 down. The polynomial is within 2^-28.2 of e^r; with the roundings of r
 * and of the last two steps the error is below one unit in the last place of a result that is not subnormal. */
MATH_FUNCTION float row_exponential_f32(float x, float less)
{
    const float shift = MATH_ROUNDER_F32 + 127.0f;
    const float t = row_larger_f32(x - less, -88.0f);
    const float shifted = canon_fma_f32(t, 0x1.715476p0f, shift);
    const float k = shifted - shift;
    const float r = canon_fma_f32(k, 0x1.05c610p-29f, canon_fma_f32(k, -0x1.62e43p-1f, t));
    float e = 0x1.6a3fb6p-10f;
    e = canon_fma_f32(e, r, 0x1.1239ep-7f);
    e = canon_fma_f32(e, r, 0x1.5558bep-5f);
    e = canon_fma_f32(e, r, 0x1.555492p-3f);
    e = canon_fma_f32(e, r, 0x1.fffffcp-2f);
    e = canon_fma_f32(e, r, 1.0f);
    e = canon_fma_f32(e, r, 1.0f);
    return e * canon_bits_float(canon_float_bits(shifted) << 23);
}

MATH_FUNCTION double row_exponential_f64(double x, double less)
{
    return canon_exp_f64(x - less);
}

/* ---- norms and rotary embedding ------------------------------------------------------------------------------------------ */

#define ROWS_ARITHMETIC(T, kind)                                                                                               \
    MATH_FUNCTION T row_square_##kind(T sum, T x, T center)                                                                    \
    {                                                                                                                          \
        const T t = x - center;                                                                                                \
        return canon_fma_##kind(t, t, sum);                                                                                    \
    }                                                                                                                          \
    MATH_FUNCTION T row_affine_##kind(T x, T weight, T bias)                                                                   \
    {                                                                                                                          \
        return canon_fma_##kind(x, weight, bias);                                                                              \
    }                                                                                                                          \
    MATH_FUNCTION T row_turn_first_##kind(T a, T b, T cosine, T sine)                                                          \
    {                                                                                                                          \
        return canon_fma_##kind(a, cosine, -(b * sine));                                                                       \
    }                                                                                                                          \
    MATH_FUNCTION T row_turn_second_##kind(T a, T b, T cosine, T sine)                                                         \
    {                                                                                                                          \
        return canon_fma_##kind(a, sine, b * cosine);                                                                          \
    }

ROWS_ARITHMETIC(float, f32)
ROWS_ARITHMETIC(double, f64)
#undef ROWS_ARITHMETIC

#endif
