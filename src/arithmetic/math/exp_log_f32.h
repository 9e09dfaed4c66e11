/* Element functions of f32: simple functions of a few operations, exponentials and logarithms.
 *
 * The code uses no f64, which runs at 1/64 of the speed on consumer GPUs. Where one f32 is not enough, a value is a sum of two,
 * hi + lo, with |lo| at most half a unit of hi. Polynomials are minimax fits, made with mpmath by the exchange method with
 * weights that make the error relative to the function. The coefficients were rounded one by one and the rest fitted again each
 * time. The comment of each function states the remaining error.
 */
#ifndef WW_ARITHMETIC_MATH_EXP_LOG_F32_H
#define WW_ARITHMETIC_MATH_EXP_LOG_F32_H

#include "arithmetic/math/primitives.h"

#define MATH_INF_F32 __builtin_inff()
#define MATH_NAN_F32 __builtin_nanf("")

/* Adding this rounds x to an integer and leaves it in the low bits, for |x| < 2^22. */
#define MATH_ROUNDER_F32 0x1.8p23f

/* ---- simple ones --------------------------------------------------------------------------------------------------------- */

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

/* 1 / root, corrected for the root's rounding error: x = (s + e)^2, so e is (x - s^2) / 2s, and 1/(s+e) = y - y^2 e. Small x is
 * scaled so that the difference does not vanish. 0 gives infinity with its sign. */
MATH_FUNCTION float canon_rsqrt_f32(float x)
{
    const int small = x < 0x1p-64f;
    const float scaled = small ? x * 0x1p64f : x;
    const float y = MATH_INVERSE_ROOT_F32(scaled);
    const float root = scaled * y;
    const float left = canon_fma_f32(-root, y, 1.0f) - canon_fma_f32(scaled, y, -root) * y; /* 1 - scaled y^2 */
    const float fixed = canon_fma_f32(0.5f * left, y, y);
    const float rescaled = small ? fixed * 0x1p32f : fixed;
    return x > 0.0f && x < MATH_INF_F32 ? rescaled : y;
}

/* Either zero gives +0; NaN gives NaN. */
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

/* NaN if either is NaN. +0 is larger than -0, so the result over many elements does not depend on their order. */
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

/* The smaller of x and `max`; NaN gives `max`. */
MATH_FUNCTION float math_within_f32(float x, float max)
{
#ifdef MATH_WITHIN_F32
    return MATH_WITHIN_F32(x, max);
#else
    return x < max ? x : max;
#endif
}

/* The larger and the smaller of two. If one is NaN, the result is either one, but b if b is a constant. */
MATH_FUNCTION float math_larger_f32(float a, float b)
{
#ifdef MATH_LARGER_F32
    return MATH_LARGER_F32(a, b);
#else
    return a > b ? a : b;
#endif
}

MATH_FUNCTION float math_smaller_f32(float a, float b)
{
    return math_within_f32(a, b);
}

/* x limited to at most `max`, or to at least `min`; NaN stays NaN. */
#ifdef MATH_MAX_F32
MATH_FUNCTION float math_clamp_max_f32(float x, float max)
{
    return MATH_MIN_F32(x, max);
}

MATH_FUNCTION float math_clamp_min_f32(float x, float min)
{
    return MATH_MAX_F32(x, min);
}
#else
MATH_FUNCTION float math_clamp_max_f32(float x, float max)
{
    return x > max ? max : x;
}

MATH_FUNCTION float math_clamp_min_f32(float x, float min)
{
    return x < min ? min : x;
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

/* To the nearest integer, halves away from zero. x minus its integer part is exact. */
MATH_FUNCTION float canon_round_f32(float x)
{
    const float whole = __builtin_truncf(x);
    const float away = whole + math_with_sign_f32(1.0f, x);
    return canon_abs_f32(x - whole) >= 0.5f ? away : whole;
}

/* ---- exponentials -------------------------------------------------------------------------------------------------------- */

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

/* The parts of e^(x + x_lo), |x| at most 200. k is the integer nearest to x / ln 2. The upper part of ln 2 has 21 bits: x minus
 * k times it is a multiple of 2^-21 or of x's last bit and below 0.35, so it is exact. lo holds the rounding error of hi, up to
 * half a unit. */
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

/* x is clamped to bounds that give 0 and infinity. */
MATH_FUNCTION float canon_exp_f32(float x)
{
    const float above = x < -105.0f ? -105.0f : x;
    const float bounded = above > 89.5f ? 89.5f : above;
    const math_exp_f32 e = math_exp_parts_f32(bounded, 0.0f);
    return math_scale_f32(1.0f + (e.hi + e.lo), e.k);
}

/* 2^k (hi + lo) + (2^k - 1). If the 1 is lost beside 2^k, it is added to the small part. If 2^k is near the largest number,
 * everything is scaled by 1/4 until the end. */
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

/* The parts of e^-h / (1 + e^-h), h >= 0. With e^-h = s (1 + g) and s = 2^k, it is s (1 + g) / d. */
typedef struct math_logistic_f32 {
    float power;  /* s 2^64: s itself may be too small */
    float square; /* r^2; g is r + square times the next field */
    float tail;
    float g;
    float d; /* 1 + s + s g, in two parts */
    float d_lo;
    float inverse; /* of d */
} math_logistic_f32;

/* -h is r + k ln 2. The low bits of `shifted` hold k, from -190 to 0. */
MATH_FUNCTION math_logistic_f32 math_logistic_parts_f32(float shifted, float r)
{
    math_logistic_f32 parts;
    parts.square = r * r;
    parts.tail = math_exp_tail_f32(r);
    parts.g = canon_fma_f32(parts.square, parts.tail, r);
    parts.power = canon_bits_float((canon_float_bits(shifted) << 23) + 0x5f800000u);
    const float s = parts.power * 0x1p-64f;
    parts.d = canon_fma_f32(s, parts.g, 1.0f + s);
    parts.d_lo = canon_fma_f32(s, parts.g, (1.0f - parts.d) + s);
    parts.inverse = MATH_INVERSE_F32(parts.d);
    return parts;
}

/* For x >= 0 it is 1 - sigmoid(-x). fma gives the rounding errors exactly; they are added to g. */
MATH_FUNCTION float canon_sigmoid_f32(float x)
{
    const float h = math_clamp_max_f32(canon_abs_f32(x), 105.0f); /* where it is 0 */
    const float shifted = canon_fma_f32(-h, 0x1.715476p0f, MATH_ROUNDER_F32);
    const float k = shifted - MATH_ROUNDER_F32;
    const float exact = canon_fma_f32(k, -0x1.62e43p-1f, -h);
    const float r = canon_fma_f32(k, 0x1.05c610p-29f, exact);
    const float r_lo = canon_fma_f32(k, 0x1.05c610p-29f, exact - r);
    const math_logistic_f32 of = math_logistic_parts_f32(shifted, r);
    const float of_d = canon_fma_f32(-of.d_lo, of.inverse, canon_fma_f32(-of.d, of.inverse, 1.0f));
    const float lost = canon_fma_f32(r_lo, of.inverse, of_d);
    const float step = r + canon_fma_f32(of.square, of.tail, canon_fma_f32(lost, of.g, lost));
    const float value = canon_fma_f32(of.inverse, step, of.inverse);
    const float below = value * of.power * 0x1p-64f;
    return x > 0.0f ? 1.0f - below : below;
}

/* x sigmoid(z) as max(x, 0) - h sigmoid(-|z|), h = |x|. fma gives the remainder of h / d exactly. */
MATH_FUNCTION float math_gated_f32(float x, float h, math_logistic_f32 of)
{
    const float n = h * of.power;
    const float hi = n * of.inverse;
    const float lo = canon_fma_f32(-hi, of.d_lo, canon_fma_f32(-hi, of.d, n)) * of.inverse;
    const float product = hi + canon_fma_f32(hi, of.g, canon_fma_f32(lo, of.g, lo));
    return canon_fma_f32(product, -0x1p-64f, math_clamp_min_f32(x, -0.0f));
}

/* x sigmoid(x); -infinity gives the limit, -0. */
MATH_FUNCTION float canon_silu_f32(float x)
{
    const float h = math_clamp_max_f32(canon_abs_f32(x), 112.0f); /* where it is 0 */
    const float shifted = canon_fma_f32(-h, 0x1.715476p0f, MATH_ROUNDER_F32);
    const float k = shifted - MATH_ROUNDER_F32;
    const float exact = canon_fma_f32(k, -0x1.62e43p-1f, -h);
    return math_gated_f32(x, h, math_logistic_parts_f32(shifted, canon_fma_f32(k, 0x1.05c610p-29f, exact)));
}

/* 0.5 x (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3), which is x sigmoid(2u). 2u = h q, q = c + d h^2, is computed in two
 * parts, since its error is multiplied by 2u itself in the tail. c has 20 fractional bits, so c - q is exact; the upper part of
 * ln 2 has 15 bits, so its product with k is exact. */
MATH_FUNCTION float canon_gelu_f32(float x)
{
    const float h = math_clamp_max_f32(canon_abs_f32(x), 11.0f); /* where it is 0 */
    const float square = h * h;
    const float square_lo = canon_fma_f32(h, h, -square);
    const float q = canon_fma_f32(square, 0x1.2444f2p-4f, 0x1.98845p0f);
    float q_lo = canon_fma_f32(square, 0x1.2444f2p-4f, 0x1.98845p0f - q);
    q_lo = canon_fma_f32(square_lo, 0x1.2444f2p-4f, q_lo);
    q_lo = canon_fma_f32(square, 0x1.49b16ap-29f, q_lo) + 0x1.9ea1b2p-23f;
    const float shifted = canon_fma_f32(-h * q, 0x1.715476p0f, MATH_ROUNDER_F32);
    const float k = shifted - MATH_ROUNDER_F32;
    float r = canon_fma_f32(-h, q, k * -0x1.62e4p-1f);
    r = canon_fma_f32(k, -0x1.7f7d1cp-20f, r);
    r = canon_fma_f32(-h, q_lo, r);
    return math_gated_f32(x, h, math_logistic_parts_f32(shifted, r));
}

/* (2^f - 1) / f for |f| up to 0.501, with an error of 2^-28 of 2^f. */
MATH_FUNCTION float math_exp2_tail_f32(float f)
{
    float p = 0x1.3f994ap-13f;
    p = canon_fma_f32(p, f, 0x1.5f0bdap-10f);
    p = canon_fma_f32(p, f, 0x1.3b30aap-7f);
    p = canon_fma_f32(p, f, 0x1.c6af76p-5f);
    p = canon_fma_f32(p, f, 0x1.ebfbd8p-3f);
    return canon_fma_f32(p, f, 0x1.62e430p-1f);
}

/* Below 1: x + x^3 T(x^2), T with an error of 2^-30 of tanh. Above: 1 - 2 / (e^2|x| + 1), where the quotient is at most 0.24
 * and may be off by one or two of its units. NaN takes the first path. */
MATH_FUNCTION float canon_tanh_f32(float x)
{
    const float size = canon_abs_f32(x);
    const float square = x * x;
    float t = 0x1.e80506p-14f;
    t = canon_fma_f32(t, square, -0x1.aecb78p-11f);
    t = canon_fma_f32(t, square, 0x1.8f99b4p-9f);
    t = canon_fma_f32(t, square, -0x1.18de38p-7f);
    t = canon_fma_f32(t, square, 0x1.64c0a2p-6f);
    t = canon_fma_f32(t, square, -0x1.b9f6dep-5f);
    t = canon_fma_f32(t, square, 0x1.11103cp-3f);
    t = canon_fma_f32(t, square, -0x1.555552p-2f);
    const float near_zero = canon_fma_f32(x * square, t, x);

    const float bounded = math_clamp_max_f32(size, 9.2f);
    const float shifted = canon_fma_f32(bounded, 0x1.715476p1f, MATH_ROUNDER_F32);
    const float f = canon_fma_f32(bounded, 0x1.715476p1f, MATH_ROUNDER_F32 - shifted);
    const float power = canon_bits_float((canon_float_bits(shifted) << 23) + 0x3f800000u);
    const float d = canon_fma_f32(power, f * math_exp2_tail_f32(f), 1.0f + power);
    const float far_from_zero = canon_fma_f32(-2.0f, MATH_INVERSE_F32(d), 1.0f);
    return math_with_sign_f32(size >= 1.0f ? far_from_zero : near_zero, x);
}

/* Below 1: x + x Q(x^2), Q with an error of 2^-29.5. Above: 1 - 2^(-x R(x)), where x R(x) is -log2(erfc x) with an error of
 * 2^-28.6 of erf; from 4 on erf is 1 within a quarter of a unit. NaN takes the first path. */
MATH_FUNCTION float canon_erf_f32(float x)
{
    const float size = canon_abs_f32(x);
    const float square = x * x;
    float q = 0x1.4c339cp-14f;
    q = canon_fma_f32(q, square, -0x1.a50ae8p-11f);
    q = canon_fma_f32(q, square, 0x1.542e0ep-8f);
    q = canon_fma_f32(q, square, -0x1.b7fe90p-6f);
    q = canon_fma_f32(q, square, 0x1.ce2d50p-4f);
    q = canon_fma_f32(q, square, -0x1.812740p-2f);
    q = canon_fma_f32(q, square, 0x1.06eba8p-3f);
    const float near_zero = canon_fma_f32(x, q, x);

    const float bounded = math_clamp_max_f32(size, 4.0f);
    float r = -0x1.3df508p-12f;
    r = canon_fma_f32(r, bounded, 0x1.2cf57ep-8f);
    r = canon_fma_f32(r, bounded, -0x1.0d4c88p-5f);
    r = canon_fma_f32(r, bounded, 0x1.3685e0p-3f);
    r = canon_fma_f32(r, bounded, 0x1.d5ac96p-1f);
    r = canon_fma_f32(r, bounded, 0x1.a0c7a2p0f);
    const float shifted = canon_fma_f32(-r, bounded, MATH_ROUNDER_F32);
    const float f = canon_fma_f32(-r, bounded, MATH_ROUNDER_F32 - shifted);
    const float power = canon_bits_float((canon_float_bits(shifted) << 23) + 0x3f800000u);
    const float far_from_zero = canon_fma_f32(-power, f * math_exp2_tail_f32(f), 1.0f - power);
    return math_with_sign_f32(size >= 1.0f ? far_from_zero : near_zero, x);
}

/* ---- logarithms ---------------------------------------------------------------------------------------------------------- */

/* (log(1+f) - f + f^2/2) / f^3, |f| <= 1/3, with an error of 2^-27.6 of the logarithm. */
MATH_FUNCTION float math_log_tail_f32(float f)
{
    float p = 0x1.e000a0p-4f;
    p = canon_fma_f32(p, f, -0x1.07ed72p-3f);
    p = canon_fma_f32(p, f, 0x1.bb41f2p-4f);
    p = canon_fma_f32(p, f, -0x1.f336f0p-4f);
    p = canon_fma_f32(p, f, 0x1.24d7b2p-3f);
    p = canon_fma_f32(p, f, -0x1.559bb0p-3f);
    p = canon_fma_f32(p, f, 0x1.99985ep-3f);
    p = canon_fma_f32(p, f, -0x1.ffff02p-3f);
    return canon_fma_f32(p, f, 0x1.555556p-2f);
}

/* k ln 2 + f + bend, given 2^23 k. The upper part of ln 2 has 14 bits, so its product with k is exact. The rounding error of
 * the sum with f is kept. */
MATH_FUNCTION float math_log_sum_f32(float k, float f, float bend)
{
    const float sum = canon_fma_f32(k, 0x1.62e4p-24f, f);
    const float lost = f - canon_fma_f32(k, -0x1.62e4p-24f, sum);
    return sum + (lost + canon_fma_f32(k, 0x1.7f7d1cp-43f, bend));
}

/* The exponent of x = 2^k m, m from 2/3 to 4/3, times 2^23; x is positive and normal. */
MATH_FUNCTION uint32_t math_log_exponent_f32(float x)
{
    return (canon_float_bits(x) - 0x3f2aaaabu) & 0xff800000u;
}

MATH_FUNCTION float canon_log_f32(float x)
{
    const int subnormal = x < 0x1p-126f;
    const float normal = subnormal ? x * 0x1p23f : x;
    const uint32_t k = math_log_exponent_f32(normal);
    const float k_normal = (float)(int32_t)k;
    const float f = canon_bits_float(canon_float_bits(normal) - k) - 1.0f;
    const float square = f * f;
    const float bend = canon_fma_f32(f * square, math_log_tail_f32(f), -0.5f * square);
    const float value = math_log_sum_f32(subnormal ? k_normal - 23 * 0x1p23f : k_normal, f, bend);
    const float positive = x == MATH_INF_F32 ? x : value;
    const float zero_or_less = x == 0.0f ? -MATH_INF_F32 : MATH_NAN_F32;
    return x > 0.0f ? positive : zero_or_less;
}

/* log(u + c) with u + c = 1 + x, exact enough: u = 2^k m, and c / m to two terms, since c is at most half a unit of u. The code
 * computes 4 c / m, whose power of two is in range for every k. */
MATH_FUNCTION float canon_log1p_f32(float x)
{
    const float u = 1.0f + x;
    const float c = x - (u - 1.0f);
    const uint32_t k = math_log_exponent_f32(u);
    const float f = canon_bits_float(canon_float_bits(u) - k) - 1.0f;
    const float scaled = c * canon_bits_float(0x40800000u - k);
    const float square = f * f;
    const float f_lo = canon_fma_f32(scaled, square - f, scaled);
    const float bend = canon_fma_f32(f * square, math_log_tail_f32(f), -0.5f * square);
    const float value = math_log_sum_f32((float)(int32_t)k, f, canon_fma_f32(f_lo, 0.25f, bend));
    const float in_range = x == MATH_INF_F32 ? x : math_with_sign_f32(value, x);
    const float out_of_range = x == -1.0f ? -MATH_INF_F32 : MATH_NAN_F32;
    return x > -1.0f ? in_range : out_of_range;
}

#endif
