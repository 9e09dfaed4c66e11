/* x^y of f64. pow_f32.h explains the method. */
#ifndef WW_ARITHMETIC_MATH_POW_F64_H
#define WW_ARITHMETIC_MATH_POW_F64_H

#include "arithmetic/math/exp_log_f64.h"

/* The logarithm of a positive normal x in two parts, with an error of about 2^-64 (L: 2^-66.9 with its first term 2/3). */
MATH_FUNCTION math_two_f64 math_log_two_f64(double x, int32_t k_more)
{
    const int32_t exponent = math_log_exponent_f64(x);
    const double m = canon_bits_double(canon_double_bits(x) - ((uint64_t)(int64_t)exponent << 52));
    const double k = (double)(exponent + k_more);
    const double f = m - 1.0;
    const double d = m + 1.0;
    const double d_lo = (1.0 - d) + m;
    const double inverse = 1.0 / d;
    const double s = f * inverse;
    const double s_lo = (canon_fma_f64(-s, d, f) - s * d_lo) * inverse;
    const double square = s * s;
    const double square_lo = canon_fma_f64(s, s, -square) + 2.0 * s * s_lo;
    double p = 0x1.ed0ae499515c8p-4;
    p = canon_fma_f64(p, square, 0x1.ddef469ea9d6bp-4);
    p = canon_fma_f64(p, square, 0x1.1122a254953dcp-3);
    p = canon_fma_f64(p, square, 0x1.3b1353993f3dbp-3);
    p = canon_fma_f64(p, square, 0x1.745d187825bf3p-3);
    p = canon_fma_f64(p, square, 0x1.c71c71c4c077fp-3);
    p = canon_fma_f64(p, square, 0x1.24924924939ap-2);
    p = canon_fma_f64(p, square, 0x1.999999999998ep-2);
    const double after = p * square;
    const double l = 0x1.5555555555555p-1 + after;
    const double l_lo = ((0x1.5555555555555p-1 - l) + after) + 0x1.5555555555555p-55;
    const double bend = square * l;
    const double bend_lo = canon_fma_f64(square, l, -bend) + canon_fma_f64(square, l_lo, square_lo * l);
    const double third = s * bend;
    const double third_lo = canon_fma_f64(s, bend, -third) + canon_fma_f64(s, bend_lo, s_lo * bend);
    const double whole = k * 0x1.62e42fefa38p-1;
    const double sum = whole + 2.0 * s;
    const double sum_lo = (whole - sum) + 2.0 * s;
    const double all = sum + third;
    const double all_lo = (sum - all) + third;
    const double lo = (sum_lo + all_lo) + canon_fma_f64(k, 0x1.ef35793c7673p-45, canon_fma_f64(2.0, s_lo, third_lo));
    math_two_f64 log;
    log.hi = all + lo;
    log.lo = (all - log.hi) + lo;
    return log;
}

MATH_FUNCTION double canon_pow_f64(double x, double y)
{
    const double size = canon_abs_f64(x);
    const int subnormal = size < 0x1p-1022;
    const math_two_f64 log = math_log_two_f64(subnormal ? size * 0x1p52 : size, subnormal ? -52 : 0);
    const double y_below = math_choose_f64(y > 0x1p80, 0x1p80, y);
    const double exponent = math_choose_f64(y_below < -0x1p80, -0x1p80, y_below);
    const double product = exponent * log.hi;
    const double product_lo = canon_fma_f64(exponent, log.hi, -product) + exponent * log.lo;
    const double above = product < -800.0 ? -800.0 : product;
    const double bounded = above > 720.0 ? 720.0 : above;
    const math_exp_f64 e = math_exp_parts_f64(bounded, bounded == product ? product_lo : 0.0);
    const double value = math_scale_f64(1.0 + (e.hi + e.lo), e.k);

    const double y_size = canon_abs_f64(y);
    const double y_bounded = math_choose_f64(y_size < 0x1p53, y_size, 0x1p53); /* from here on all integers are even */
    const double y_fraction = y_bounded - __builtin_floor(y_bounded);
    const double y_half = 0.5 * y_bounded;
    const double y_half_fraction = y_half - __builtin_floor(y_half); /* a half for odd integers */
    const double of_negative = math_choose_f64(x < 0.0, MATH_NAN_F64, value);
    const double of_finite = math_choose_f64(y_fraction > 0.0, of_negative, value);
    const double of_zero = math_choose_f64(y < 0.0, MATH_INF_F64, 0.0);
    const double of_infinity = math_choose_f64(y < 0.0, 0.0, MATH_INF_F64);
    const double at_zero = math_choose_f64(size == 0.0, of_zero, of_finite);
    const double at_infinity = math_choose_f64(size == MATH_INF_F64, of_infinity, at_zero);
    const uint64_t odd = (uint64_t)(y_half_fraction == 0.5) << 63;
    const double of_numbers = canon_bits_double(canon_double_bits(at_infinity) ^ (canon_double_bits(x) & odd));
    const double of_any = math_choose_f64((x != x) | (y != y), x + y, of_numbers);
    return math_choose_f64((y == 0.0) | (x == 1.0), 1.0, of_any);
}

#endif
