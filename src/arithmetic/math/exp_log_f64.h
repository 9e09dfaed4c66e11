/* Element functions of f64: simple functions of a few operations, exponentials and logarithms. The methods are those of
 * exp_log_f32.h with the constants of f64; comments here explain only the differences.
 */
#ifndef WW_ARITHMETIC_MATH_EXP_LOG_F64_H
#define WW_ARITHMETIC_MATH_EXP_LOG_F64_H

#include "arithmetic/math/primitives.h"

#define MATH_INF_F64 __builtin_inf()
#define MATH_NAN_F64 __builtin_nan("")

/* Adding this rounds x to an integer and leaves it in the low bits, for |x| < 2^51. */
#define MATH_ROUNDER_F64 0x1.8p52

/* ---- simple ones --------------------------------------------------------------------------------------------------------- */

MATH_FUNCTION double canon_abs_f64(double x)
{
    return canon_bits_double(canon_double_bits(x) & 0x7fffffffffffffffu);
}

MATH_FUNCTION double canon_neg_f64(double x)
{
    return -x;
}

MATH_FUNCTION double canon_sqr_f64(double x)
{
    return x * x;
}

MATH_FUNCTION double canon_recip_f64(double x)
{
    return 1.0 / x;
}

MATH_FUNCTION double canon_sqrt_f64(double x)
{
    return CANON_SQRT_F64(x);
}

MATH_FUNCTION double canon_rsqrt_f64(double x)
{
    const int small = x < 0x1p-512;
    const double scaled = small ? x * 0x1p512 : x;
    const double y = 1.0 / CANON_SQRT_F64(scaled);
    const double root = scaled * y;
    const double left = canon_fma_f64(-root, y, 1.0) - canon_fma_f64(scaled, y, -root) * y; /* 1 - scaled y^2 */
    const double fixed = canon_fma_f64(0.5 * left, y, y);
    const double rescaled = small ? fixed * 0x1p256 : fixed;
    return x > 0.0 && x < MATH_INF_F64 ? rescaled : y;
}

MATH_FUNCTION double canon_sign_f64(double x)
{
    const double negative_or_zero = x < 0.0 ? -1.0 : 0.0;
    const double sign = x > 0.0 ? 1.0 : negative_or_zero;
    return x != x ? x : sign;
}

MATH_FUNCTION double canon_relu_f64(double x)
{
    return x <= 0.0 ? 0.0 : x;
}

MATH_FUNCTION double canon_max_f64(double a, double b)
{
    const double larger = a > b ? a : b;
    const double equal = canon_bits_double(canon_double_bits(a) & canon_double_bits(b));
    const double number = a == b ? equal : larger;
    return a != a ? a : number;
}

MATH_FUNCTION double canon_min_f64(double a, double b)
{
    const double smaller = a < b ? a : b;
    const double equal = canon_bits_double(canon_double_bits(a) | canon_double_bits(b));
    const double number = a == b ? equal : smaller;
    return a != a ? a : number;
}

MATH_FUNCTION double canon_floor_f64(double x)
{
    return __builtin_floor(x);
}

MATH_FUNCTION double canon_ceil_f64(double x)
{
    return __builtin_ceil(x);
}

MATH_FUNCTION double canon_round_f64(double x)
{
    const double whole = __builtin_trunc(x);
    const double away = whole + math_with_sign_f64(1.0, x);
    return canon_abs_f64(x - whole) >= 0.5 ? away : whole;
}

/* ---- exponentials -------------------------------------------------------------------------------------------------------- */

/* e^x = 2^k (1 + hi + lo). */
typedef struct math_exp_f64 {
    double hi;
    double lo;
    int32_t k;
} math_exp_f64;

/* (e^r - 1 - r) / r^2 for |r| <= 0.3475, with an error of 2^-61.5 of e^r - 1. */
MATH_FUNCTION double math_exp_tail_f64(double r)
{
    double q = 0x1.1f112a0a41edcp-29;
    q = canon_fma_f64(q, r, 0x1.af5fe1b84e398p-26);
    q = canon_fma_f64(q, r, 0x1.27e5193adf563p-22);
    q = canon_fma_f64(q, r, 0x1.71ddf7ba793dcp-19);
    q = canon_fma_f64(q, r, 0x1.a01a018b4d393p-16);
    q = canon_fma_f64(q, r, 0x1.a01a01b01c684p-13);
    q = canon_fma_f64(q, r, 0x1.6c16c16c1b332p-10);
    q = canon_fma_f64(q, r, 0x1.111111110f631p-7);
    q = canon_fma_f64(q, r, 0x1.555555555554cp-5);
    q = canon_fma_f64(q, r, 0x1.5555555555559p-3);
    q = canon_fma_f64(q, r, 0x1p-1);
    return q;
}

/* The parts of e^(x + x_lo), |x| at most 1500. The upper part of ln 2 has 42 bits and k at most 12, so their product is exact.
 */
MATH_FUNCTION math_exp_f64 math_exp_parts_f64(double x, double x_lo)
{
    const double shifted = canon_fma_f64(x, 0x1.71547652b82fep0, MATH_ROUNDER_F64);
    const double k = shifted - MATH_ROUNDER_F64;
    const double exact = canon_fma_f64(k, -0x1.62e42fefa38p-1, x);
    const double rest = canon_fma_f64(k, 0x1.ef35793c7673p-45, -x_lo);
    const double r = exact - rest;
    const double r_lo = (exact - r) - rest;
    const double bend = r * r * math_exp_tail_f64(r);
    math_exp_f64 parts;
    parts.hi = r + bend;
    parts.lo = ((r - parts.hi) + bend) + r_lo;
    parts.k = (int32_t)(uint32_t)canon_double_bits(shifted);
    return parts;
}

MATH_FUNCTION double canon_exp_f64(double x)
{
    const double above = x < -746.0 ? -746.0 : x;
    const double bounded = above > 710.0 ? 710.0 : above;
    const math_exp_f64 e = math_exp_parts_f64(bounded, 0.0);
    return math_scale_f64(1.0 + (e.hi + e.lo), e.k);
}

MATH_FUNCTION double canon_expm1_f64(double x)
{
    const double above = x < -40.0 ? -40.0 : x;
    const double bounded = above > 710.0 ? 710.0 : above;
    const math_exp_f64 e = math_exp_parts_f64(bounded, 0.0);
    const int32_t k = e.k > 1000 ? e.k - 2 : e.k;
    const double power = math_power_f64(k);
    const double base = e.k > 53 ? power : power - 1.0;
    const double step = power * e.hi;
    const double sum = base + step;
    const double small = ((base - sum) + step) + power * e.lo;
    const double value = sum + (e.k > 53 ? small - 1.0 : small);
    const double whole = e.k > 1000 ? value * 4.0 : value;
    return x == 0.0 ? x : whole;
}

MATH_FUNCTION double canon_elu_f64(double x, double alpha)
{
    const double below = alpha * canon_expm1_f64(x);
    return x > 0.0 ? x : below;
}

/* factor / (1 + e^-(x + x_lo)), as in f32.h. */
MATH_FUNCTION double math_sigmoid_times_f64(double x, double x_lo, double factor)
{
    const int positive = x > 0.0;
    const double a = positive ? -x : x;
    const double bounded = a < -1400.0 ? -1400.0 : a;
    const math_exp_f64 e = math_exp_parts_f64(bounded, positive ? -x_lo : x_lo);
    const double m = 1.0 + e.hi;
    const double m_lo = ((1.0 - m) + e.hi) + e.lo;
    const double power = math_power_f64(e.k < -200 ? -200 : e.k); /* anything smaller vanishes beside 1 */
    const double d = 1.0 + power * m;
    const double d_lo = ((1.0 - d) + power * m) + power * m_lo;
    const double inverse = 1.0 / d;
    const double n = positive ? 1.0 : m;
    const double n_lo = positive ? 0.0 : m_lo;
    const double hi = n * inverse;
    const double lo = (canon_fma_f64(-hi, d, n) + canon_fma_f64(-hi, d_lo, n_lo)) * inverse;
    const double finite = factor > 0x1p1000 ? 0.0 : factor;
    return math_scale_f64(canon_fma_f64(factor, hi, finite * lo), positive ? 0 : e.k);
}

MATH_FUNCTION double canon_sigmoid_f64(double x)
{
    return math_sigmoid_times_f64(x, 0.0, 1.0);
}

MATH_FUNCTION double canon_silu_f64(double x)
{
    const double factor = x < -0x1p20 ? -0x1p20 : x;
    return math_sigmoid_times_f64(x, 0.0, factor);
}

MATH_FUNCTION double canon_gelu_f64(double x)
{
    const double below = x > 50.0 ? 50.0 : x;
    const double b = below < -50.0 ? -50.0 : below;
    const double square = b * b;
    const double square_lo = canon_fma_f64(b, b, -square);
    const double c = 0x1.9884533d43651p0;
    const double d = 0x1.2444f2a4d8b4bp-4;
    const double bent = square * d;
    const double bent_lo = canon_fma_f64(square, d, -bent) + canon_fma_f64(square_lo, d, square * -0x1.6c843a29d1c7p-61);
    const double sum = c + bent;
    const double part = sum - c;
    const double sum_lo = ((c - (sum - part)) + (bent - part)) + (bent_lo + -0x1.cbc0d30ebfd15p-54);
    const double u = b * sum;
    const double u_lo = canon_fma_f64(b, sum, -u) + b * sum_lo;
    const double factor = x < -0x1p20 ? -0x1p20 : x;
    return math_sigmoid_times_f64(u, u_lo, factor);
}

/* -M / (2 + M), M = e^-2|x| - 1 in two parts. */
MATH_FUNCTION double canon_tanh_f64(double x)
{
    const double size = canon_abs_f64(x);
    const double bounded = size > 40.0 ? 40.0 : size;
    const math_exp_f64 e = math_exp_parts_f64(-2.0 * bounded, 0.0);
    const double power = math_power_f64(e.k);
    const double base = 1.0 - power;
    const double step = power * e.hi;
    const double n = base - step;
    const double n_lo = (((1.0 - base) - power) + ((base - n) - step)) - power * e.lo;
    const double d = 2.0 - n;
    const double d_lo = ((2.0 - d) - n) - n_lo;
    const double inverse = 1.0 / d;
    const double hi = n * inverse;
    const double lo = (canon_fma_f64(-hi, d, n) + canon_fma_f64(-hi, d_lo, n_lo)) * inverse;
    return math_with_sign_f64(hi + lo, x);
}

/* ---- logarithms ---------------------------------------------------------------------------------------------------------- */

/* k ln 2 + log(1 + f + f_lo), 1 + f between the roots of 1/2 and 2. With s = f / (2 + f), log(1 + f) = 2s + s^3 L(s^2), written
 * as f - (f^2/2 - s (f^2/2 + s^2 L)), so that the largest term, f, is exact. L has an error of 2^-59.4 of the logarithm. */
MATH_FUNCTION double math_log_sum_f64(double k, double f, double f_lo)
{
    const double s = f / (2.0 + f);
    const double square = s * s;
    double p = 0x1.2f3654ac42d2bp-3;
    p = canon_fma_f64(p, square, 0x1.399d171c8d1b9p-3);
    p = canon_fma_f64(p, square, 0x1.74666aaa0758ep-3);
    p = canon_fma_f64(p, square, 0x1.c71c513fbf8eep-3);
    p = canon_fma_f64(p, square, 0x1.24924942da0a5p-2);
    p = canon_fma_f64(p, square, 0x1.999999997ee69p-2);
    p = canon_fma_f64(p, square, 0x1.5555555555595p-1);
    const double half = 0.5 * f * f;
    const double bend = canon_fma_f64(s, canon_fma_f64(square, p, half), -half) + f_lo;
    const double whole = k * 0x1.62e42fefa38p-1;
    const double sum = whole + f;
    return sum + ((f - (sum - whole)) + canon_fma_f64(k, 0x1.ef35793c7673p-45, bend));
}

/* x = 2^k m with m between the roots of 1/2 and 2; x is positive and normal. */
MATH_FUNCTION int32_t math_log_exponent_f64(double x)
{
    return (int32_t)((int64_t)(canon_double_bits(x) - 0x3fe6a09e667f3bcdu) >> 52);
}

MATH_FUNCTION double canon_log_f64(double x)
{
    const int subnormal = x < 0x1p-1022;
    const double normal = subnormal ? x * 0x1p52 : x;
    const int32_t k = math_log_exponent_f64(normal);
    const double m = canon_bits_double(canon_double_bits(normal) - ((uint64_t)(int64_t)k << 52));
    const double value = math_log_sum_f64((double)(subnormal ? k - 52 : k), m - 1.0, 0.0);
    const double positive = x == MATH_INF_F64 ? x : value;
    const double zero_or_less = x == 0.0 ? -MATH_INF_F64 : MATH_NAN_F64;
    return x > 0.0 ? positive : zero_or_less;
}

MATH_FUNCTION double canon_log1p_f64(double x)
{
    const double u = 1.0 + x;
    const double small_first = x - (u - 1.0);
    const double c = x >= 1.0 ? 1.0 - (u - x) : small_first;
    const int32_t k = math_log_exponent_f64(u);
    const double m = canon_bits_double(canon_double_bits(u) - ((uint64_t)(int64_t)k << 52));
    const double f = k == 0 ? x : m - 1.0;
    const int32_t back = k > 1022 ? -1022 : -k;
    const double scaled = c * math_power_f64(k < -1022 ? 1022 : back);
    const double f_lo = k == 0 ? 0.0 : canon_fma_f64(scaled, f * f - f, scaled);
    const double value = math_log_sum_f64((double)k, f, f_lo);
    const double in_range = x == MATH_INF_F64 || x == 0.0 ? x : value;
    const double out_of_range = x == -1.0 ? -MATH_INF_F64 : MATH_NAN_F64;
    return x > -1.0 ? in_range : out_of_range;
}

#endif
