/* pow and atan2 of numbers converted from f16 or bf16 and back: two bounds that enclose the canonical result.
 *
 * With two arguments there are too many inputs to test short forms on all of them, as half_f32.h does. But if both bounds round
 * to the same 16 bits, everything between them does too, and that is nearly always so; the few other inputs take the canonical
 * form. So the result only depends on the bounds being right, and a chip's own inverse, logarithm and power of two are accurate
 * enough.
 *
 * Errors are counted in u = 2^-24, half a unit in the last place: a rounding is at most one u, and the canonical forms are
 * within two (docs/evidence/accuracy.md). `is_f16` is a constant: f16, else bf16. Inputs that the forms cannot handle give NaN,
 * infinity or bounds far apart, so the bounds do not agree.
 */
#ifndef WW_ARITHMETIC_MATH_HALF_BOUNDS_F32_H
#define WW_ARITHMETIC_MATH_HALF_BOUNDS_F32_H

#include "arithmetic/math/f32.h"

/* A chip's own functions for x >= 0, with the errors that its manual allows: 1 / x within 3 u; log2 x within a relative error
 * of 4 u, or an absolute one below 1; 2^x within 5 u. Subnormal inputs and results may be treated as 0. */
#ifndef MATH_QUICK_INVERSE_F32
#define MATH_QUICK_INVERSE_F32(x) (1.0f / (x))
#define MATH_QUICK_LOG2_F32(x)    (canon_log_f32(x) * 0x1.715476p0f)
#define MATH_QUICK_POWER_F32(x)   ((x) == (x) ? math_exp2_two_f32(x, 0.0f) : (x))
#endif

typedef struct math_bounds_f32 {
    float low, high; /* bounds of the magnitude of the result, in either order */
    float value;     /* the result with its sign, if the bounds agree */
} math_bounds_f32;

/* With q = the smaller over the larger of |x|, |y|: atan q = q A(q^2), where A has an error of 2 u, or 12 u for bf16. The angle
 * is subtracted from pi/2, and that from pi, as needed. The errors: 4 u for q, 0.2 u more for its square, 1 u for the last
 * steps of A, 1 u for the product, and 2 u for the differences and their constants, whose results are never below the angle
 * before. With 2 u for the canonical form and a rounding of the bound that is 13.2 u, or 23.2 u for bf16. For bf16 the larger
 * number is multiplied by 1/4 so that its inverse is normal, and the coefficients compensate. Its bounds are moved apart by
 * more than what is lost at the end of the range of floats, and by less than a bf16 can show. */
MATH_FUNCTION math_bounds_f32 math_atan2_bounds_f32(float y, float x, int is_f16)
{
    const float x_size = canon_abs_f32(x);
    const float y_size = canon_abs_f32(y);
    const float larger = canon_max_f32(x_size, y_size);
    const float smaller = math_smaller_f32(x_size, y_size);
    float a;
    float q;
    if (is_f16) {
        q = smaller * MATH_QUICK_INVERSE_F32(larger);
        const float square = q * q;
        a = canon_fma_f32(-0x1.33941cp-8f, square, 0x1.8d59f4p-6f);
        a = canon_fma_f32(a, square, -0x1.e75002p-5f);
        a = canon_fma_f32(a, square, 0x1.9616e6p-4f);
        a = canon_fma_f32(a, square, -0x1.1f1e74p-3f);
        a = canon_fma_f32(a, square, 0x1.98fadep-3f);
        a = canon_fma_f32(a, square, -0x1.5551d0p-2f);
        a = canon_fma_f32(a, square, 0x1.fffffcp-1f);
    } else {
        q = smaller * MATH_QUICK_INVERSE_F32(0.25f * larger);
        const float square = q * q;
        a = canon_fma_f32(0x1.01aacap-33f, square, -0x1.2f35e4p-27f);
        a = canon_fma_f32(a, square, 0x1.578952p-22f);
        a = canon_fma_f32(a, square, -0x1.1437bap-17f);
        a = canon_fma_f32(a, square, 0x1.972c3ap-13f);
        a = canon_fma_f32(a, square, -0x1.554376p-8f);
        a = canon_fma_f32(a, square, 0x1.ffffeap-3f);
    }
    const float flat = q * a;
    const float right = y_size > x_size ? 0x1.921fb6p0f - flat : flat;
    const float angle = x < 0.0f ? 0x1.921fb6p1f - right : right;
    const float part = is_f16 ? 14 * 0x1p-24f : 24 * 0x1p-24f;
    math_bounds_f32 bounds;
    bounds.low = canon_fma_f32(angle, -part, is_f16 ? angle : angle - 0x1p-140f);
    bounds.high = canon_fma_f32(angle, part, is_f16 ? angle : angle + 0x1p-140f);
    bounds.value = math_with_sign_f32(bounds.high, y);
    return bounds;
}

/* 2^(y log2 |x|). The errors: 4 u (1 + |l|) for the logarithm l, |p| u more for the exponent p, 5 u for the power. An error of
 * the exponent counts ln 2 times in the result. With 2 u for the canonical form and the roundings of the bounds that is 8 + 2.8
 * |y| + 3.5 |p|. When this is no longer small, its square counts too; the constants leave room for that. Beyond the range of
 * floats, p is so far out that the error cannot bring it back. For an f16 0 the logarithm is a number from which every y gives
 * a power of 0. The chip may flush a power that is still a subnormal bf16: such bounds are moved apart, and those of 0 with
 * them.
 *
 * y is an integer if adding the rounder leaves it unchanged; the last bit then tells whether it is odd. Neither holds beyond
 * 2^22, but there the bounds are apart. */
MATH_FUNCTION math_bounds_f32 math_pow_bounds_f32(float x, float y, int is_f16)
{
    const float log = MATH_QUICK_LOG2_F32(canon_abs_f32(x));
    const float exponent = y * (is_f16 ? math_clamp_min_f32(log, -0x1p40f) : log);
    const float power = MATH_QUICK_POWER_F32(exponent);
    const float part =
        canon_fma_f32(canon_abs_f32(exponent), 4 * 0x1p-24f, canon_fma_f32(canon_abs_f32(y), 3 * 0x1p-24f, 9 * 0x1p-24f));
    const float rounded = y + MATH_ROUNDER_F32;
    const int whole = rounded - MATH_ROUNDER_F32 == y;
    const uint32_t odd = canon_float_bits(rounded) << 31;
    math_bounds_f32 bounds;
    bounds.low = canon_fma_f32(power, -part, power);
    bounds.high = canon_fma_f32(power, part, is_f16 ? power : power + 0x1p-126f);
    const float of_whole = canon_bits_float(canon_float_bits(bounds.high) ^ (canon_float_bits(x) & odd));
    const float of_fraction = x < 0.0f ? MATH_NAN_F32 : bounds.high;
    bounds.value = whole ? of_whole : of_fraction;
    return bounds;
}

/* pow without a chip's functions, for plain x and y (MATH_POW_PLAIN_F32) and |y| up to 2^22. The logarithm of a 16-bit number
 * 2^k (1 + f) is k + f P(f), with a relative error of at most 3 u, as a test of all of them shows
 * (tests/arithmetic/test_math_half.c). The exponent p adds one u: 2.8 |p| u of the power. The power adds 1.8 u: 0.1 for the
 * polynomial, a product that is half of it, and a sum. With 2 u for the canonical form and a rounding of the bound it is 4.8 +
 * 2.8 |p|. Both bounds have the sign of the result. Like the canonical form they scale by a power of two last, so a rounding to
 * subnormal does not change their order. */
typedef struct math_ends_f32 {
    float low, high;
    int none; /* the result is NaN */
} math_ends_f32;

MATH_FUNCTION float math_short_log2_f32(float x)
{
    const uint32_t k = math_log_exponent_f32(x);
    const float f = canon_bits_float(canon_float_bits(x) - k) - 1.0f;
    float p = canon_fma_f32(0x1.9f4d86p-3f, f, -0x1.c71c1cp-3f);
    p = canon_fma_f32(p, f, 0x1.9d4924p-3f);
    p = canon_fma_f32(p, f, -0x1.e4f04cp-3f);
    p = canon_fma_f32(p, f, 0x1.27a3eep-2f);
    p = canon_fma_f32(p, f, -0x1.7172d2p-2f);
    p = canon_fma_f32(p, f, 0x1.ec6ffep-2f);
    p = canon_fma_f32(p, f, -0x1.715456p-1f);
    p = canon_fma_f32(p, f, 0x1.715476p0f);
    return canon_fma_f32((float)(int32_t)k, 0x1p-23f, f * p);
}

/* 2^x is value 2^k; the low bits of `shifted` hold k. Where x is clamped, every f16 and bf16 result is 0 or infinite. */
MATH_FUNCTION math_exp2_parts_f32 math_short_exp2_f32(float x, int is_f16)
{
    const float bounded = __builtin_fminf(__builtin_fmaxf(x, is_f16 ? -100.0f : -170.0f), is_f16 ? 100.0f : 140.0f);
    const float shifted = bounded + MATH_ROUNDER_F32;
    const float f = bounded - (shifted - MATH_ROUNDER_F32);
    math_exp2_parts_f32 parts;
    parts.value = canon_fma_f32(math_exp2_tail_f32(f), f, 1.0f);
    parts.shifted = canon_float_bits(shifted);
    return parts;
}

MATH_FUNCTION math_ends_f32 math_pow_ends_f32(float x, float y, int is_f16)
{
    const float exponent = y * math_short_log2_f32(canon_abs_f32(x));
    const math_exp2_parts_f32 power = math_short_exp2_f32(exponent, is_f16);
    const float part = canon_fma_f32(canon_abs_f32(exponent), 3 * 0x1p-24f, 5 * 0x1p-24f);
    const float rounded = y + MATH_ROUNDER_F32; /* to an integer; its lowest bit is the last bit of the float */
    const uint32_t sign = canon_float_bits(x) & canon_float_bits(rounded) << 31;
    const uint32_t half = is_f16 ? power.shifted : power.shifted >> 1;
    const float value = canon_bits_float((canon_float_bits(power.value) + (half << 23)) ^ (is_f16 ? sign : 0u));
    const float scale = is_f16 ? 1.0f : canon_bits_float((((power.shifted - half) << 23) + 0x3f800000u) ^ sign);
    math_ends_f32 ends;
    ends.low = canon_fma_f32(value, -part, value) * scale;
    ends.high = canon_fma_f32(value, part, value) * scale;
    ends.none = (x < 0.0f) & (rounded - MATH_ROUNDER_F32 != y);
    return ends;
}

#endif
