/* Element functions of f32: sin and cos, atan2.
 *
 * sin and cos have a far range that is rare and takes a branch. For vectorized loops each has a near form, which gives the same
 * bits inside its range: use it for a block of elements, and use the complete function for elements that MATH_SIN_FAR_F32
 * reports as outside. rem_f32.h does the same.
 */
#ifndef WW_ARITHMETIC_MATH_TRIG_F32_H
#define WW_ARITHMETIC_MATH_TRIG_F32_H

#include "arithmetic/math/exp_log_f32.h"

/* ---- sin and cos --------------------------------------------------------------------------------------------------------- */

/* x = r + lo + quarter pi/2, |r| at most 0.79. */
typedef struct math_angle_f32 {
    float r;
    float lo;
    uint32_t quarter; /* only the two low bits count */
} math_angle_f32;

#define MATH_ANGLE_NEAR_F32 0x1p17f
#define MATH_SIN_FAR_F32(x) (!(canon_abs_f32(x) <= MATH_ANGLE_NEAR_F32))

/* For |x| up to 2^17, so fewer than 2^17 quarters. pi/2 is the sum of three floats. x minus quarters times the first is exact:
 * a multiple of 2^-23 (or of x's last bit, if smaller) below 1. fma makes the product with the second exact, and the rounding
 * error of the difference goes into lo. Rounding 2/pi shifts the boundaries of quarters by at most 2^-8, hence 0.79. */
MATH_FUNCTION math_angle_f32 math_angle_near_f32(float x)
{
    const float shifted = canon_fma_f32(x, 0x1.45f306p-1f, MATH_ROUNDER_F32);
    const float k = shifted - MATH_ROUNDER_F32;
    const float first = canon_fma_f32(-k, 0x1.921fb6p0f, x);
    const float second = k * 0x1.777a5cp-25f; /* pi/2 minus its first float is negative */
    const float second_lo = canon_fma_f32(k, 0x1.777a5cp-25f, -second);
    math_angle_f32 angle;
    angle.r = first + second;
    const float part = angle.r - first;
    const float lost = (first - (angle.r - part)) + (second - part);
    angle.lo = lost + canon_fma_f32(k, 0x1.ee59dap-50f, second_lo);
    angle.quarter = canon_float_bits(shifted);
    return angle;
}

/* 96 bits of 2/pi; the first has the weight 2^(1 - e). For multiples of 2^e, earlier bits contribute only multiples of 4
 * quarters and later bits less than 2^-70. */
MATH_FUNCTION void math_two_over_pi_f32(uint32_t e, uint32_t window[3])
{
    static const uint32_t bits[8] = {0,           0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                     0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};
    const uint32_t word = e >> 5;
    const uint32_t shift = e & 31;
    for (uint32_t i = 0; i < 3; i++) {
        const uint64_t two = (uint64_t)bits[word + i] << 32 | bits[word + i + 1];
        window[i] = (uint32_t)(two >> (32 - shift));
    }
}

/* For larger finite x: the 24 bits of x times 2/pi, modulo 4, in integers. The fraction of a quarter then has 64 bits, and no
 * float is closer to a multiple of pi/2 than 2^-30. */
MATH_FUNCTION math_angle_f32 math_angle_far_f32(float x)
{
    const uint32_t bits = canon_float_bits(x);
    const uint32_t mantissa = (bits & 0x7fffffu) | 0x800000u;
    uint32_t window[3];
    math_two_over_pi_f32(((bits >> 23) & 255) - 150 + 30, window);
    const uint64_t low = (uint64_t)mantissa * window[2];
    const uint64_t middle = (uint64_t)mantissa * window[1] + (low >> 32);
    const uint64_t high = (uint64_t)mantissa * window[0] + (middle >> 32);
    const uint64_t top = high << 32 | (uint32_t)middle;
    const uint64_t fraction = top << 2 | (uint32_t)low >> 30;
    const int64_t rest = (int64_t)fraction >> 2; /* distance to the nearest quarter, in units of 2^-62 */
    const float hi = (float)rest;
    const float lo = (float)(rest - (int64_t)hi);
    const float sign = bits >> 31 ? -1.0f : 1.0f;
    const uint32_t quarter = (uint32_t)(top >> 62) + (uint32_t)(fraction >> 63);
    math_angle_f32 angle;
    const float r = hi * 0x1.921fb6p-62f;
    const float r_lo = canon_fma_f32(hi, 0x1.921fb6p-62f, -r) + canon_fma_f32(hi, -0x1.777a5cp-87f, lo * 0x1.921fb6p-62f);
    angle.r = sign * r;
    angle.lo = sign * r_lo;
    angle.quarter = bits >> 31 ? 0u - quarter : quarter;
    return angle;
}

/* sin for an even quarter, cos for an odd one, with its sign. Errors: S 2^-27.8, C 2^-32.9. */
MATH_FUNCTION float math_sin_of_f32(math_angle_f32 angle)
{
    const float r = angle.r;
    const float square = canon_fma_f32(r, r, (r + r) * angle.lo);
    float s = -0x1.991c28p-13f;
    s = canon_fma_f32(s, square, 0x1.1106c6p-7f);
    s = canon_fma_f32(s, square, -0x1.555544p-3f);
    const float sine = r + canon_fma_f32(r * square, s, angle.lo);
    float c = 0x1.99e336p-16f;
    c = canon_fma_f32(c, square, -0x1.6c0c1ep-10f);
    c = canon_fma_f32(c, square, 0x1.55554ap-5f);
    c = canon_fma_f32(c, square, -0.5f);
    const float cosine = canon_fma_f32(c, square, 1.0f);
    const float value = angle.quarter & 1 ? cosine : sine;
    return canon_bits_float(canon_float_bits(value) ^ (angle.quarter & 2) << 30);
}

MATH_FUNCTION float canon_sin_near_f32(float x)
{
    const float value = math_sin_of_f32(math_angle_near_f32(x));
    return x == 0.0f ? x : value;
}

MATH_FUNCTION float canon_cos_near_f32(float x)
{
    math_angle_f32 angle = math_angle_near_f32(x);
    angle.quarter++;
    return math_sin_of_f32(angle);
}

/* Branches. */
MATH_FUNCTION float canon_sin_f32(float x)
{
    if (!MATH_SIN_FAR_F32(x))
        return canon_sin_near_f32(x);
    if (!(canon_abs_f32(x) < MATH_INF_F32))
        return MATH_NAN_F32;
    return math_sin_of_f32(math_angle_far_f32(x));
}

/* Branches. */
MATH_FUNCTION float canon_cos_f32(float x)
{
    if (!MATH_SIN_FAR_F32(x))
        return canon_cos_near_f32(x);
    if (!(canon_abs_f32(x) < MATH_INF_F32))
        return MATH_NAN_F32;
    math_angle_f32 angle = math_angle_far_f32(x);
    angle.quarter++;
    return math_sin_of_f32(angle);
}

/* ---- atan2 --------------------------------------------------------------------------------------------------------------- */

/* Neither is NaN or infinite, and the larger magnitude needs no scaling. */
#define MATH_ATAN2_PLAIN_F32(y, x) math_within_range_f32(canon_max_f32(canon_abs_f32(x), canon_abs_f32(y)), 0x1p-62f, 0x1p124f)

MATH_FUNCTION int math_within_range_f32(float x, float min, float max)
{
    return (x >= min) & (x <= max);
}

enum { MATH_PLAIN = 1, MATH_PLAIN_16 = 2 };

/* The correctly rounded inverse of a 16-bit number: no such mantissa has all f32 bits set. */
MATH_FUNCTION float math_inverse_of_16_f32(float d)
{
    return MATH_SHORT_INVERSE_F32(d);
}

/* The angle of the point (x, y). With q = the smaller over the larger of |x|, |y|: atan q = q + q^3 A(q^2), A with an error of
 * 2^-31, plus the rounding error of the quotient. It is then subtracted from pi/2 or pi, each in two parts. The larger number
 * is scaled so that its inverse exists; if one is infinite, q is 0, and if both are, q is 1. A constant `plain` rules out these
 * cases; MATH_PLAIN_16 also means that both are 16-bit numbers. */
MATH_FUNCTION float math_atan2_f32(float y, float x, int plain)
{
    const float x_size = canon_abs_f32(x);
    const float y_size = canon_abs_f32(y);
    const int steep = y_size > x_size;
    const float larger_of_16 = steep ? y_size : x_size;
    const float larger_of_32 = plain ? canon_max_f32(x_size, y_size) : math_larger_f32(x_size, y_size);
    const float larger = plain == MATH_PLAIN_16 ? larger_of_16 : larger_of_32;
    const float smaller_of_16 = steep ? x_size : y_size;
    const float smaller = plain == MATH_PLAIN_16 ? smaller_of_16 : math_smaller_f32(x_size, y_size);
    const float down = larger > 0x1p124f ? 0x1p-4f : 1.0f;
    const float of_finite = larger < 0x1p-62f ? 0x1p64f : down;
    const float scale = larger == MATH_INF_F32 ? 0.0f : of_finite;
    const float d_scaled = math_larger_f32(larger * scale, 0x1p-126f);
    const float n_scaled = smaller == MATH_INF_F32 ? d_scaled : smaller * scale;
    const float d = plain ? larger : d_scaled;
    const float n = plain ? smaller : n_scaled;
    const float inverse = plain == MATH_PLAIN_16 ? math_inverse_of_16_f32(d) : MATH_INVERSE_F32(d);
    const float q = n * inverse;
    const float q_lo = canon_fma_f32(q, canon_fma_f32(-d, inverse, 1.0f), canon_fma_f32(n, inverse, -q));
    const float square = q * q;
    float a = 0x1.29685ep-10f;
    a = canon_fma_f32(a, square, -0x1.e6a0dcp-8f);
    a = canon_fma_f32(a, square, 0x1.75303ep-6f);
    a = canon_fma_f32(a, square, -0x1.7080bap-5f);
    a = canon_fma_f32(a, square, 0x1.150a00p-4f);
    a = canon_fma_f32(a, square, -0x1.6953bcp-4f);
    a = canon_fma_f32(a, square, 0x1.c51170p-4f);
    a = canon_fma_f32(a, square, -0x1.247620p-3f);
    a = canon_fma_f32(a, square, 0x1.99981cp-3f);
    a = canon_fma_f32(a, square, -0x1.555552p-2f);
    const float bend = canon_fma_f32(q * square, a, canon_fma_f32(q_lo, -0.5f * square, q_lo));

    /* The angle is base + way q: 0 + q, pi/2 - q, pi/2 + q or pi - q. */
    const float of_steep = steep ? -1.0f : 1.0f;
    const float way = canon_bits_float(canon_float_bits(of_steep) ^ (canon_float_bits(x) & 0x80000000u));
    const float base = canon_fma_f32(steep ? 0.0f : way, -0x1.921fb6p0f, 0x1.921fb6p0f);
    const float base_lo = base * -0x1.de12cap-26f; /* the relative error of pi/2 as a float */
    const float sum = canon_fma_f32(q, way, base);
    const float angle = sum + (canon_fma_f32(q, way, base - sum) + canon_fma_f32(bend, way, base_lo));
    const float value = math_with_sign_f32(angle, y);
    return !plain && (x != x || y != y) ? x + y : value;
}

MATH_FUNCTION float canon_atan2_f32(float y, float x)
{
    return math_atan2_f32(y, x, 0);
}

#endif
