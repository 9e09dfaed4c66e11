/* Element functions of f32, the same bits on every device (math_words.h says how). This file: the simple ones, exponentials and
 * logarithms; math_f32_more.h: sin, cos, pow, atan2, rem and the gaussian gelu.
 *
 * No f64 is used: consumer GPUs have it at 1/64 of the speed. Where one f32 is not enough a value is a sum of two, hi + lo,
 * with |lo| at most half a unit of hi. Polynomials are minimax fits, made with mpmath by the exchange method under the weight
 * that makes the error relative to the function, the coefficients rounded one after another and the rest fitted again; the
 * error that is left stands beside each. What the functions as a whole are worth is measured over all 2^32 inputs
 * (docs/accuracy.md, made by bench/ulp.c): exp, log, sin, cos, tanh, erf, sigmoid and sqrt stay within one unit in the last
 * place.
 */
#ifndef WW_KERNELS_MATH_F32_H
#define WW_KERNELS_MATH_F32_H

#include "kernels/math_words.h"

#define MATH_INF_F32 __builtin_inff()
#define MATH_NAN_F32 __builtin_nanf("")

/* Adding it rounds to an integer, which then stands in the low bits: |x| below 2^22. */
#define MATH_ROUNDER_F32 0x1.8p23f

/* ---- simple ones ----------------------------------------------------------------------------------------------------------
 */

MATH_FUNCTION float canon_abs_f32(float x)
{
    return canon_bits_float(canon_float_bits(x) & 0x7fffffffu);
}

MATH_FUNCTION float canon_neg_f32(float x)
{
    return -x;
}

MATH_FUNCTION float canon_sqr_f32(float x)
{
    return x * x;
}

MATH_FUNCTION float canon_recip_f32(float x)
{
    return 1.0f / x;
}

MATH_FUNCTION float canon_sqrt_f32(float x)
{
    return CANON_SQRT(x);
}

/* 1 / root with the root's rounding error taken out again: x = (s + e)^2, so e is (x - s^2) / 2s, and 1/(s+e) = y - y^2 e.
 * Small x is scaled, so that the difference does not vanish. 0 gives the infinity of its sign. */
MATH_FUNCTION float canon_rsqrt_f32(float x)
{
    const int small = x < 0x1p-64f;
    const float scaled = small ? x * 0x1p64f : x;
    const float y = 1.0f / CANON_SQRT(scaled);
    const float root = scaled * y;
    const float left = canon_fma_f32(-root, y, 1.0f) - canon_fma_f32(scaled, y, -root) * y; /* 1 - scaled y^2 */
    const float fixed = canon_fma_f32(0.5f * left, y, y);
    const float rescaled = small ? fixed * 0x1p32f : fixed;
    return x > 0.0f && x < MATH_INF_F32 ? rescaled : y;
}

/* 0 of either sign gives +0, NaN itself. */
MATH_FUNCTION float canon_sign_f32(float x)
{
    const float negative_or_zero = x < 0.0f ? -1.0f : 0.0f;
    const float sign = x > 0.0f ? 1.0f : negative_or_zero;
    return x != x ? x : sign;
}

/* NaN stays NaN; -0 gives +0. */
MATH_FUNCTION float canon_relu_f32(float x)
{
    return x <= 0.0f ? 0.0f : x;
}

/* NaN if one is; +0 is larger than -0, so that the order of many does not matter. */
#ifdef MATH_MAX_F32 /* the chip's own */
MATH_FUNCTION float canon_max_f32(float a, float b)
{
    return MATH_MAX_F32(a, b);
}

MATH_FUNCTION float canon_min_f32(float a, float b)
{
    return MATH_MIN_F32(a, b);
}
#else
MATH_FUNCTION float canon_max_f32(float a, float b)
{
    const float larger = a > b ? a : b;
    const float equal = canon_bits_float(canon_float_bits(a) & canon_float_bits(b));
    const float number = a == b ? equal : larger;
    return a != a ? a : number;
}

MATH_FUNCTION float canon_min_f32(float a, float b)
{
    const float smaller = a < b ? a : b;
    const float equal = canon_bits_float(canon_float_bits(a) | canon_float_bits(b));
    const float number = a == b ? equal : smaller;
    return a != a ? a : number;
}
#endif

MATH_FUNCTION float canon_floor_f32(float x)
{
    return __builtin_floorf(x);
}

MATH_FUNCTION float canon_ceil_f32(float x)
{
    return __builtin_ceilf(x);
}

/* To the nearest integer, halves away from zero. x less its integer part is exact. */
MATH_FUNCTION float canon_round_f32(float x)
{
    const float whole = __builtin_truncf(x);
    const float away = whole + math_with_sign_f32(1.0f, x);
    return canon_abs_f32(x - whole) >= 0.5f ? away : whole;
}

/* ---- exponentials ---------------------------------------------------------------------------------------------------------
 */

/* e^x = 2^k (1 + hi + lo). */
typedef struct math_exp_f32 {
    float hi;
    float lo;
    int32_t k;
} math_exp_f32;

/* (e^r - 1 - r) / r^2 for |r| <= 0.3475, with an error of 2^-28.2 of e^r - 1. */
MATH_FUNCTION float math_exp_tail_f32(float r)
{
    float q = 0x1.3b90ccp-13f;
    q = canon_fma_f32(q, r, 0x1.6d2e4cp-10f);
    q = canon_fma_f32(q, r, 0x1.1155a6p-7f);
    q = canon_fma_f32(q, r, 0x1.555502p-5f);
    q = canon_fma_f32(q, r, 0x1.55552cp-3f);
    return canon_fma_f32(q, r, 0.5f);
}

/* The parts of e^(x + x_lo), |x| at most 200. k is the integer nearest to x / ln 2. The upper part of ln 2 has 21 bits: x less
 * k of it is a multiple of 2^-21 or of x's last bit and below 0.35, so exact. hi holds half a unit of error, which lo takes up.
 */
MATH_FUNCTION math_exp_f32 math_exp_parts_f32(float x, float x_lo)
{
    const float shifted = canon_fma_f32(x, 0x1.715476p0f, MATH_ROUNDER_F32);
    const float k = shifted - MATH_ROUNDER_F32;
    const float exact = canon_fma_f32(k, -0x1.62e43p-1f, x);
    const float rest = canon_fma_f32(k, -0x1.05c610p-29f, -x_lo);
    const float r = exact - rest;
    const float r_lo = (exact - r) - rest;
    const float bend = r * r * math_exp_tail_f32(r);
    math_exp_f32 parts;
    parts.hi = r + bend;
    parts.lo = ((r - parts.hi) + bend) + r_lo;
    parts.k = (int32_t)(canon_float_bits(shifted) - 0x4b400000u);
    return parts;
}

/* The bounds give 0 and infinity, whatever lies beyond them. */
MATH_FUNCTION float canon_exp_f32(float x)
{
    const float above = x < -105.0f ? -105.0f : x;
    const float bounded = above > 89.5f ? 89.5f : above;
    const math_exp_f32 e = math_exp_parts_f32(bounded, 0.0f);
    return math_scale_f32(1.0f + (e.hi + e.lo), e.k);
}

/* 2^k (hi + lo) + (2^k - 1). Where the 1 does not fit beside 2^k it goes to the small part, and where 2^k is near the largest
 * number all is four times smaller until the end. */
MATH_FUNCTION float canon_expm1_f32(float x)
{
    const float above = x < -20.0f ? -20.0f : x;
    const float bounded = above > 89.5f ? 89.5f : above;
    const math_exp_f32 e = math_exp_parts_f32(bounded, 0.0f);
    const int32_t k = e.k > 120 ? e.k - 2 : e.k;
    const float power = math_power_f32(k);
    const float base = e.k > 24 ? power : power - 1.0f;
    const float step = power * e.hi;
    const float sum = base + step;
    const float small = ((base - sum) + step) + power * e.lo;
    const float value = sum + (e.k > 24 ? small - 1.0f : small);
    const float whole = e.k > 120 ? value * 4.0f : value;
    return x == 0.0f ? x : whole;
}

MATH_FUNCTION float canon_elu_f32(float x, float alpha)
{
    const float below = alpha * canon_expm1_f32(x);
    return x > 0.0f ? x : below;
}

/* factor / (1 + e^-x) for x of the sign that `positive` says and |x| = -(a + a_lo), rounded into the subnormal range only at
 * its end. With E = e^-|x| it is factor / (1 + E) or factor E / (1 + E). The remainder of the quotient is had exactly by fma,
 * and the parts of E that 1 + E loses are taken into it. Products with a power of two are exact, so that fma may take them in.
 */
MATH_FUNCTION float math_sigmoid_times_f32(int positive, float a, float a_lo, float factor)
{
    const float bounded = a < -155.0f ? -155.0f : a; /* from there on it is 0, with the power below in its range */
    const math_exp_f32 e = math_exp_parts_f32(bounded, a_lo);
    const float m = 1.0f + e.hi;
    const float m_lo = ((1.0f - m) + e.hi) + e.lo;
    const int32_t k = e.k < -100 ? -100 : e.k; /* less does not show beside 1 */
    const float power = math_power_f32(k);
    const float d = canon_fma_f32(power, m, 1.0f);
    const float d_lo = canon_fma_f32(power, m_lo, canon_fma_f32(power, m, 1.0f - d));
    const float inverse = MATH_INVERSE_F32(d);
    const float n = positive ? 1.0f : m;
    const float n_lo = positive ? 0.0f : m_lo;
    const float hi = n * inverse;
    const float lo = (canon_fma_f32(-hi, d, n) + canon_fma_f32(-hi, d_lo, n_lo)) * inverse;
    const float finite = factor > 0x1p100f ? 0x1p100f : factor; /* the sigmoid is 1 there, without a second part */
    const float value = canon_fma_f32(factor, hi, finite * lo);
    const float scaled = value * power * math_power_f32(e.k - k);
    return positive ? value : scaled;
}

MATH_FUNCTION float canon_sigmoid_f32(float x)
{
    return math_sigmoid_times_f32(x > 0.0f, -canon_abs_f32(x), 0.0f, 1.0f);
}

/* x sigmoid(x); -infinity gives its limit, -0. */
MATH_FUNCTION float canon_silu_f32(float x)
{
    const float factor = x < -0x1p20f ? -0x1p20f : x;
    return math_sigmoid_times_f32(x > 0.0f, -canon_abs_f32(x), 0.0f, factor);
}

/* 0.5 x (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3), which is x sigmoid(2u). 2u = x (c + d x^2) is made in two parts,
 * since its error is multiplied by itself in the tail. Beyond |x| = 50 the sigmoid is 0 or 1. */
MATH_FUNCTION float canon_gelu_f32(float x)
{
    const float below = x > 50.0f ? 50.0f : x;
    const float b = below < -50.0f ? -50.0f : below;
    const float square = b * b;
    const float square_lo = canon_fma_f32(b, b, -square);
    const float c = 0x1.988454p0f;
    const float d = 0x1.2444f2p-4f;
    const float bent = square * d;
    const float bent_lo = canon_fma_f32(square, d, -bent) + canon_fma_f32(square_lo, d, square * 0x1.49b16ap-29f);
    const float sum = c + bent; /* |c| >= |bent| does not hold: the six operations of a general exact sum */
    const float part = sum - c;
    const float sum_lo = ((c - (sum - part)) + (bent - part)) + (bent_lo - 0x1.857936p-25f);
    const float u = b * sum;
    const float u_lo = canon_fma_f32(b, sum, -u) + b * sum_lo;
    const float factor = x < -0x1p20f ? -0x1p20f : x;
    const int positive = u > 0.0f;
    return math_sigmoid_times_f32(positive, -canon_abs_f32(u), positive ? -u_lo : u_lo, factor);
}

/* (1 - E) / (1 + E), E = e^-2|x|, with 1 - E and 1 + E in two parts each. */
MATH_FUNCTION float canon_tanh_f32(float x)
{
    const float size = canon_abs_f32(x);
    const float bounded = size > 20.0f ? 20.0f : size;
    const math_exp_f32 e = math_exp_parts_f32(-2.0f * bounded, 0.0f);
    const float power = math_power_f32(e.k);
    const float base = 1.0f - power;
    const float n = canon_fma_f32(-power, e.hi, base); /* products with powers of two are exact */
    const float n_lo = canon_fma_f32(-power, e.lo, ((1.0f - base) - power) + canon_fma_f32(-power, e.hi, base - n));
    const float d = 2.0f - n;
    const float d_lo = ((2.0f - d) - n) - n_lo;
    const float inverse = MATH_INVERSE_F32(d);
    const float hi = n * inverse;
    const float lo = (canon_fma_f32(-hi, d, n) + canon_fma_f32(-hi, d_lo, n_lo)) * inverse;
    return math_with_sign_f32(hi + lo, x);
}

/* Below 0.9: x + x Q(x^2), Q with an error of 2^-29. Above: 1 - e^-R(x), where R is -log(erfc) with an error of 2^-32.7 of erf;
 * at 4 erf is 1 to less than a quarter of a unit. */
MATH_FUNCTION float canon_erf_f32(float x)
{
    const float size = canon_abs_f32(x);
    const float bounded = size > 4.0f ? 4.0f : size;
    const float square = x * x;
    float q = 0x1.4a64c6p-14f;
    q = canon_fma_f32(q, square, -0x1.a4fed2p-11f);
    q = canon_fma_f32(q, square, 0x1.543858p-8f);
    q = canon_fma_f32(q, square, -0x1.b80044p-6f);
    q = canon_fma_f32(q, square, 0x1.ce2d60p-4f);
    q = canon_fma_f32(q, square, -0x1.812740p-2f);
    q = canon_fma_f32(q, square, 0x1.06eba8p-3f);
    const float near_zero = canon_fma_f32(x, q, x);

    float r = 0x1.5ec16ep-16f;
    r = canon_fma_f32(r, bounded, -0x1.c546b8p-12f);
    r = canon_fma_f32(r, bounded, 0x1.10a8b6p-8f);
    r = canon_fma_f32(r, bounded, -0x1.9b18c6p-6f);
    r = canon_fma_f32(r, bounded, 0x1.bb562ap-4f);
    r = canon_fma_f32(r, bounded, 0x1.444b44p-1f);
    r = canon_fma_f32(r, bounded, 0x1.212698p0f);
    const float product = -r * bounded; /* the last step exactly: e^-R multiplies its error by R */
    const float product_lo = canon_fma_f32(-r, bounded, -product);
    const math_exp_f32 e = math_exp_parts_f32(product, product_lo + 0x1.65adep-13f);
    const float power = math_power_f32(e.k);
    const float far_from_zero = (1.0f - power) - power * (e.hi + e.lo);
    return size < 0.9f ? near_zero : math_with_sign_f32(far_from_zero, x);
}

/* ---- logarithms -----------------------------------------------------------------------------------------------------------
 */

/* k ln 2 + log(1 + f + f_lo), |f| <= 1/3. The upper part of ln 2 has 14 bits, so that its product with k is exact, and what the
 * sum with f loses is kept. P: (log(1+f) - f + f^2/2) / f^3 with an error of 2^-27.6 of the logarithm. */
MATH_FUNCTION float math_log_sum_f32(float k, float f, float f_lo)
{
    float p = 0x1.e000a0p-4f;
    p = canon_fma_f32(p, f, -0x1.07ed72p-3f);
    p = canon_fma_f32(p, f, 0x1.bb41f2p-4f);
    p = canon_fma_f32(p, f, -0x1.f336f0p-4f);
    p = canon_fma_f32(p, f, 0x1.24d7b2p-3f);
    p = canon_fma_f32(p, f, -0x1.559bb0p-3f);
    p = canon_fma_f32(p, f, 0x1.99985ep-3f);
    p = canon_fma_f32(p, f, -0x1.ffff02p-3f);
    p = canon_fma_f32(p, f, 0x1.555556p-2f);
    const float square = f * f;
    const float bend = canon_fma_f32(f * square, p, -0.5f * square) + f_lo;
    const float whole = k * 0x1.62e4p-1f;
    const float sum = whole + f;
    return sum + ((f - (sum - whole)) + canon_fma_f32(k, 0x1.7f7d1cp-20f, bend));
}

/* x = 2^k m with m from 2/3 to 4/3; x is positive and normal. */
MATH_FUNCTION int32_t math_log_exponent_f32(float x)
{
    return (int32_t)(canon_float_bits(x) - 0x3f2aaaabu) >> 23;
}

MATH_FUNCTION float canon_log_f32(float x)
{
    const int subnormal = x < 0x1p-126f;
    const float normal = subnormal ? x * 0x1p23f : x;
    const int32_t k = math_log_exponent_f32(normal);
    const float m = canon_bits_float(canon_float_bits(normal) - ((uint32_t)k << 23));
    const float value = math_log_sum_f32((float)(subnormal ? k - 23 : k), m - 1.0f, 0.0f);
    const float positive = x == MATH_INF_F32 ? x : value;
    const float zero_or_less = x == 0.0f ? -MATH_INF_F32 : MATH_NAN_F32;
    return x > 0.0f ? positive : zero_or_less;
}

/* log(u + c) with u + c = 1 + x exactly; where u is near 1, f is x itself. c / m to two terms: c is half a unit of u at most.
 */
MATH_FUNCTION float canon_log1p_f32(float x)
{
    const float u = 1.0f + x;
    const float small_first = x - (u - 1.0f);
    const float c = x >= 1.0f ? 1.0f - (u - x) : small_first;
    const int32_t k = math_log_exponent_f32(u);
    const float m = canon_bits_float(canon_float_bits(u) - ((uint32_t)k << 23));
    const float f = k == 0 ? x : m - 1.0f;
    const float scaled = c * math_power_f32(k < -126 ? 126 : (k > 126 ? -126 : -k));
    const float f_lo = k == 0 ? 0.0f : canon_fma_f32(scaled, f * f - f, scaled);
    const float value = math_log_sum_f32((float)k, f, f_lo);
    const float in_range = x == MATH_INF_F32 || x == 0.0f ? x : value;
    const float out_of_range = x == -1.0f ? -MATH_INF_F32 : MATH_NAN_F32;
    return x > -1.0f ? in_range : out_of_range;
}

#include "kernels/math_f32_more.h"

#endif
