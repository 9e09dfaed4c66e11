/* Element functions of f64, continued: erf, gelu by the normal distribution, sin and cos, pow, atan2, rem. Included by
 * math_f64.h; math_f32_more.h explains the methods and the near forms.
 */
#ifndef WW_ARITHMETIC_MATH_MATH_F64_MORE_H
#define WW_ARITHMETIC_MATH_MATH_F64_MORE_H

#include "arithmetic/math/math_f64.h"

typedef struct math_two_f64 {
    double hi;
    double lo;
} math_two_f64;

/* erfc(z) e^(z^2) in two parts, from t = (z-3)/(z+3) and growth = 1 + 2z: H(t) / growth, where H, between 1 and 1.3, has an
 * error of 2^-53.9 up to z = 28. */
MATH_FUNCTION math_two_f64 math_erfc_share_f64(double t, double growth, double growth_lo, math_exp_f64 e)
{
    double g = 0x1.7b9f748a977bep-29;
    g = canon_fma_f64(g, t, 0x1.ad5ea10a23b25p-28);
    g = canon_fma_f64(g, t, -0x1.7bcaf1cb38098p-27);
    g = canon_fma_f64(g, t, -0x1.13d4791fcdea7p-25);
    g = canon_fma_f64(g, t, 0x1.3a164e3161851p-25);
    g = canon_fma_f64(g, t, 0x1.18bf91e5d782cp-23);
    g = canon_fma_f64(g, t, -0x1.0cd221c748176p-23);
    g = canon_fma_f64(g, t, -0x1.5871b8c80f5f7p-21);
    g = canon_fma_f64(g, t, 0x1.6b032cf74f604p-22);
    g = canon_fma_f64(g, t, 0x1.d3d6d90a020dcp-19);
    g = canon_fma_f64(g, t, -0x1.824098f5e906p-21);
    g = canon_fma_f64(g, t, -0x1.514e7e9cbd65bp-16);
    g = canon_fma_f64(g, t, 0x1.4bd4c91b5f8a4p-18);
    g = canon_fma_f64(g, t, 0x1.065ab67cd74aap-13);
    g = canon_fma_f64(g, t, -0x1.b9112a2ea1ebcp-14);
    g = canon_fma_f64(g, t, -0x1.98db54fd8e3e7p-11);
    g = canon_fma_f64(g, t, 0x1.ef1bd9fdb410bp-10);
    g = canon_fma_f64(g, t, 0x1.4b884e5421bdap-9);
    g = canon_fma_f64(g, t, -0x1.8574c406ef6c4p-6);
    g = canon_fma_f64(g, t, 0x1.17ca2877ee395p-4);
    g = canon_fma_f64(g, t, -0x1.e88b803a57e77p-4);
    g = canon_fma_f64(g, t, 0x1.098366a5b467dp-3);
    g = canon_fma_f64(g, t, -0x1.85a15c58a9d62p-5);
    g = canon_fma_f64(g, t, -0x1.15c084bb9e8f2p-3);
    g = canon_fma_f64(g, t, 0x1.40c522d7e4987p0);
    const double m = 1.0 + e.hi;
    const double m_lo = ((1.0 - m) + e.hi) + e.lo;
    const double n = g * m;
    const double n_lo = canon_fma_f64(g, m, -n) + g * m_lo;
    const double inverse = 1.0 / growth;
    math_two_f64 share;
    share.hi = n * inverse;
    share.lo = (canon_fma_f64(-share.hi, growth, n) + canon_fma_f64(-share.hi, growth_lo, n_lo)) * inverse;
    return share;
}

/* erf(x) / x - 1 from x^2, |x| <= 0.9, with an error of 2^-56. */
MATH_FUNCTION double math_erf_small_f64(double square)
{
    double q = -0x1.2ee5a13cb08ebp-30;
    q = canon_fma_f64(q, square, 0x1.04d9998e0dfdep-26);
    q = canon_fma_f64(q, square, -0x1.623e0a3666284p-23);
    q = canon_fma_f64(q, square, 0x1.ba5cfe0d421c3p-20);
    q = canon_fma_f64(q, square, -0x1.f4dd6c18128e9p-17);
    q = canon_fma_f64(q, square, 0x1.f9a3cae615d12p-14);
    q = canon_fma_f64(q, square, -0x1.c02db9fb2d332p-11);
    q = canon_fma_f64(q, square, 0x1.565bcd30de8a5p-8);
    q = canon_fma_f64(q, square, -0x1.b82ce3136edfp-6);
    q = canon_fma_f64(q, square, 0x1.ce2f21a045cfcp-4);
    q = canon_fma_f64(q, square, -0x1.812746b037a28p-2);
    q = canon_fma_f64(q, square, 0x1.06eba8214db69p-3);
    return q;
}

/* Below 0.9: x + x Q(x^2). Above: 1 - erfc. At 6 erf is 1 to less than a quarter of a unit. */
MATH_FUNCTION double canon_erf_f64(double x)
{
    const double size = canon_abs_f64(x);
    const double z = size > 6.0 ? 6.0 : size;
    const double square = z * z;
    const double square_lo = canon_fma_f64(z, z, -square);
    const double near_zero = canon_fma_f64(z, math_erf_small_f64(square), z);
    const math_exp_f64 e = math_exp_parts_f64(-square, -square_lo);
    const math_two_f64 share = math_erfc_share_f64((z - 3.0) / (z + 3.0), 1.0 + 2.0 * z, 0.0, e);
    const double far_from_zero = 1.0 - (share.hi + share.lo) * math_power_f64(e.k);
    const double value = size < 0.9 ? near_zero : far_from_zero;
    const double number = math_with_sign_f64(value, x);
    return x != x ? x : number;
}

/* The normal distribution function of -h is half of erfc(h / sqrt 2). From h = 38.6 on it is 0. */
MATH_FUNCTION double canon_gelu_erf_f64(double x)
{
    const double size = canon_abs_f64(x);
    const double h = size > 39.0 ? 39.0 : size;
    const double growth = canon_fma_f64(h, 0x1.6a09e667f3bcdp0, 1.0);
    const double growth_lo = canon_fma_f64(h, 0x1.6a09e667f3bcdp0, 1.0 - growth) + h * -0x1.bdd3413b26456p-54;
    const double t = (h + h) / (h + 0x1.0f876ccdf6cd9p2) - 1.0;
    const double square = h * h;
    const double square_lo = canon_fma_f64(h, h, -square);
    const math_exp_f64 e = math_exp_parts_f64(-0.5 * square, -0.5 * square_lo);
    const math_two_f64 share = math_erfc_share_f64(t, growth, growth_lo, e);
    const double factor = x < -64.0 ? -64.0 : x;
    const double below = math_scale_f64(canon_fma_f64(factor, share.hi, factor * share.lo), e.k - 1);
    const double above = canon_fma_f64(-(x > 0x1p1000 ? 1.0 : x), math_scale_f64(share.hi + share.lo, e.k - 1), x);
    const double far_from_zero = x > 0.0 ? above : below;
    const double slope = 0x1.6a09e667f3bcdp-2; /* 1 / sqrt 8 */
    const double near_zero = canon_fma_f64(x, canon_fma_f64(math_erf_small_f64(0.5 * square), slope, slope), 0.5);
    return size < 0.5 ? x * near_zero : far_from_zero;
}

/* ---- sin and cos ----------------------------------------------------------------------------------------------------------
 */

typedef struct math_angle_f64 {
    double r;
    double lo;
    uint32_t quarter;
} math_angle_f64;

#define MATH_ANGLE_NEAR_F64 0x1p30
#define MATH_SIN_FAR_F64(x) (!(canon_abs_f64(x) <= MATH_ANGLE_NEAR_F64))

MATH_FUNCTION math_angle_f64 math_angle_near_f64(double x)
{
    const double shifted = canon_fma_f64(x, 0x1.45f306dc9c883p-1, MATH_ROUNDER_F64);
    const double k = shifted - MATH_ROUNDER_F64;
    const double first = canon_fma_f64(-k, 0x1.921fb54442d18p0, x);
    const double second = k * -0x1.1a62633145c07p-54;
    const double second_lo = canon_fma_f64(k, -0x1.1a62633145c07p-54, -second);
    math_angle_f64 angle;
    angle.r = first + second;
    const double part = angle.r - first;
    const double lost = (first - (angle.r - part)) + (second - part);
    angle.lo = lost + canon_fma_f64(k, 0x1.f1976b7ed8fbcp-110, second_lo);
    angle.quarter = (uint32_t)canon_double_bits(shifted);
    return angle;
}

/* The upper half of a 128-bit product, without a type of 128 bits. */
MATH_FUNCTION uint64_t math_high_u64(uint64_t a, uint64_t b)
{
    const uint64_t a_low = (uint32_t)a;
    const uint64_t a_high = a >> 32;
    const uint64_t b_low = (uint32_t)b;
    const uint64_t b_high = b >> 32;
    const uint64_t middle = a_high * b_low + (a_low * b_low >> 32);
    const uint64_t other = a_low * b_high + (uint32_t)middle;
    return a_high * b_high + (middle >> 32) + (other >> 32);
}

/* 192 bits of 2/pi from bit `first` of the table on, whose first word is zero. */
MATH_FUNCTION void math_two_over_pi_f64(uint32_t first, uint64_t window[3])
{
    static const uint64_t bits[21] = {0,
                                      0xa2f9836e4e441529u,
                                      0xfc2757d1f534ddc0u,
                                      0xdb6295993c439041u,
                                      0xfe5163abdebbc561u,
                                      0xb7246e3a424dd2e0u,
                                      0x06492eea09d1921cu,
                                      0xfe1deb1cb129a73eu,
                                      0xe88235f52ebb4484u,
                                      0xe99c7026b45f7e41u,
                                      0x3991d639835339f4u,
                                      0x9c845f8bbdf9283bu,
                                      0x1ff897ffde05980fu,
                                      0xef2f118b5a0a6d1fu,
                                      0x6d367ecf27cb09b7u,
                                      0x4f463f669e5fea2du,
                                      0x7527bac7ebe5f17bu,
                                      0x3d0739f78a5292eau,
                                      0x6bfb5fb11f8d5d08u,
                                      0x56033046fc7b6babu,
                                      0xf0cfbc209af4361du};
    const uint32_t word = first >> 6;
    const uint32_t shift = first & 63;
    for (uint32_t i = 0; i < 3; i++)
        window[i] = bits[word + i] << shift | (shift ? bits[word + i + 1] >> (64 - shift) : 0);
}

/* The 53 bits of a finite x times 2/pi, modulo 4. No double is nearer to a multiple of pi/2 than 2^-62, so that 64 bits from
 * the first that is set are there, with an error of 2^-137. */
MATH_FUNCTION math_angle_f64 math_angle_far_f64(double x)
{
    const uint64_t bits = canon_double_bits(x);
    const uint64_t mantissa = (bits & 0xfffffffffffffu) | 0x10000000000000u;
    uint64_t window[3];
    math_two_over_pi_f64((uint32_t)(bits >> 52 & 2047) - 1075 + 62, window);
    const uint64_t low = mantissa * window[2];
    const uint64_t carry = math_high_u64(mantissa, window[2]);
    const uint64_t middle = mantissa * window[1] + carry;
    const uint64_t top = mantissa * window[0] + math_high_u64(mantissa, window[1]) + (middle < carry);
    const uint64_t fraction = top << 2 | middle >> 62;
    const uint64_t after = middle << 2 | low >> 62;
    const int beyond = (int)(fraction >> 63); /* half a quarter: count from the next one, backwards */
    const uint64_t rest_low = beyond ? 0 - after : after;
    const uint64_t rest = beyond ? ~fraction + (after == 0) : fraction;
    const int32_t zeros = __builtin_clzll(rest | 1);
    const uint64_t kept = zeros ? rest << zeros | rest_low >> (64 - zeros) : rest;
    const double scale = math_power_f64(-64 - zeros);
    const double hi = (double)(kept & ~(uint64_t)2047) * scale;
    const double lo = (double)(kept & 2047) * scale;
    const double r = hi * 0x1.921fb54442d18p0;
    const double r_lo =
        canon_fma_f64(hi, 0x1.921fb54442d18p0, -r) + canon_fma_f64(hi, 0x1.1a62633145c07p-54, lo * 0x1.921fb54442d18p0);
    const uint32_t quarter = (uint32_t)(top >> 62) + (uint32_t)beyond;
    const int negative = (int)(bits >> 63);
    math_angle_f64 angle;
    angle.r = negative != beyond ? -r : r;
    angle.lo = negative != beyond ? -r_lo : r_lo;
    angle.quarter = negative ? 0u - quarter : quarter;
    return angle;
}

/* Errors: S 2^-57.9, C 2^-63.8. */
MATH_FUNCTION double math_sin_of_f64(math_angle_f64 angle)
{
    const double r = angle.r;
    const double square = r * r;
    const double half = 0.5 * square;
    double s = 0x1.5d8b55dc6d527p-33;
    s = canon_fma_f64(s, square, -0x1.ae5e4b84a2e34p-26);
    s = canon_fma_f64(s, square, 0x1.71de35552bf1p-19);
    s = canon_fma_f64(s, square, -0x1.a01a019be921cp-13);
    s = canon_fma_f64(s, square, 0x1.111111110f73p-7);
    s = canon_fma_f64(s, square, -0x1.5555555555548p-3);
    const double sine = r + canon_fma_f64(r * square, s, canon_fma_f64(-half, angle.lo, angle.lo));
    double c = -0x1.8f99cb7d4e2ap-37;
    c = canon_fma_f64(c, square, 0x1.1ee9c33574d3fp-29);
    c = canon_fma_f64(c, square, -0x1.27e4f7cd318a9p-22);
    c = canon_fma_f64(c, square, 0x1.a01a019c5c392p-16);
    c = canon_fma_f64(c, square, -0x1.6c16c16c14ep-10);
    c = canon_fma_f64(c, square, 0x1.555555555554ap-5);
    const double whole = 1.0 - half;
    const double cosine = whole + (((1.0 - whole) - half) + canon_fma_f64(square * square, c, -r * angle.lo));
    const double value = angle.quarter & 1 ? cosine : sine;
    return canon_bits_double(canon_double_bits(value) ^ (uint64_t)(angle.quarter & 2) << 62);
}

MATH_FUNCTION double canon_sin_near_f64(double x)
{
    const double value = math_sin_of_f64(math_angle_near_f64(x));
    return x == 0.0 ? x : value;
}

MATH_FUNCTION double canon_cos_near_f64(double x)
{
    math_angle_f64 angle = math_angle_near_f64(x);
    angle.quarter++;
    return math_sin_of_f64(angle);
}

/* Branches. */
MATH_FUNCTION double canon_sin_f64(double x)
{
    if (!MATH_SIN_FAR_F64(x))
        return canon_sin_near_f64(x);
    if (!(canon_abs_f64(x) < MATH_INF_F64))
        return MATH_NAN_F64;
    return math_sin_of_f64(math_angle_far_f64(x));
}

/* Branches. */
MATH_FUNCTION double canon_cos_f64(double x)
{
    if (!MATH_SIN_FAR_F64(x))
        return canon_cos_near_f64(x);
    if (!(canon_abs_f64(x) < MATH_INF_F64))
        return MATH_NAN_F64;
    math_angle_f64 angle = math_angle_far_f64(x);
    angle.quarter++;
    return math_sin_of_f64(angle);
}

/* ---- pow ------------------------------------------------------------------------------------------------------------------
 */

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
    const double y_bounded = math_choose_f64(y_size < 0x1p53, y_size, 0x1p53); /* from here on all are even */
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

/* ---- atan2 ----------------------------------------------------------------------------------------------------------------
 */

/* As for f32, but that a quotient above tan(pi/8), q, becomes (q-1)/(q+1), whose angle is pi/4 less: A, with an error of 2^-59,
 * has half the terms then. */
MATH_FUNCTION double canon_atan2_f64(double y, double x)
{
    const double x_size = canon_abs_f64(x);
    const double y_size = canon_abs_f64(y);
    const int steep = y_size > x_size;
    const double larger_given = steep ? y_size : x_size;
    const double smaller_given = steep ? x_size : y_size;
    const double scale_up = larger_given < 0x1p-500 ? 0x1p600 : 1.0;
    const double scale = larger_given > 0x1p1000 ? 0x1p-100 : scale_up;
    const int both_infinite = smaller_given == MATH_INF_F64;
    const int flat = (larger_given == MATH_INF_F64) | (larger_given == 0.0);
    const double larger = flat ? 1.0 : larger_given * scale;
    const double finite = flat ? 0.0 : smaller_given * scale;
    const double smaller = both_infinite ? 1.0 : finite;

    const int turned = smaller > 0.41421356237309503 * larger;
    const double difference = larger - smaller;
    const double difference_lo = (larger - difference) - smaller;
    const double total = larger + smaller;
    const double total_lo = (larger - total) + smaller;
    const double n = turned ? -difference : smaller;
    const double n_lo = turned ? -difference_lo : 0.0;
    const double d = turned ? total : larger;
    const double d_lo = turned ? total_lo : 0.0;
    const double q = n / d;
    const double q_lo = (canon_fma_f64(-q, d, n) + canon_fma_f64(-q, d_lo, n_lo)) / d;
    const double square = q * q;
    double a = -0x1.24c13d170be47p-6;
    a = canon_fma_f64(a, square, 0x1.37890e62683b6p-5);
    a = canon_fma_f64(a, square, -0x1.9cb4d5b2ce58ap-5);
    a = canon_fma_f64(a, square, 0x1.df08b556abb5dp-5);
    a = canon_fma_f64(a, square, -0x1.10eb4541a16b6p-4);
    a = canon_fma_f64(a, square, 0x1.3b110f0dbbbap-4);
    a = canon_fma_f64(a, square, -0x1.745cf84c4a935p-4);
    a = canon_fma_f64(a, square, 0x1.c71c70e10cda7p-4);
    a = canon_fma_f64(a, square, -0x1.24924922a0731p-3);
    a = canon_fma_f64(a, square, 0x1.999999999564fp-3);
    a = canon_fma_f64(a, square, -0x1.555555555553cp-2);
    const double bend = canon_fma_f64(q * square, a, canon_fma_f64(-square, q_lo, q_lo));

    const int left = (int)(canon_double_bits(x) >> 63);
    const int backwards = steep != left;
    const double level = left ? 0x1.921fb54442d18p1 : 0.0;
    const double level_lo = left ? 0x1.1a62633145c07p-53 : 0.0;
    const double straight = steep ? 0x1.921fb54442d18p0 : level;
    const double straight_lo = steep ? 0x1.1a62633145c07p-54 : level_lo;
    const double diagonal = left ? 0x1.2d97c7f3321d2p1 : 0x1.921fb54442d18p-1;
    const double diagonal_lo = left ? 0x1.a79394c9e8a0ap-54 : 0x1.1a62633145c07p-55;
    const double base = turned ? diagonal : straight;
    const double base_lo = turned ? diagonal_lo : straight_lo;
    const double q_signed = backwards ? -q : q;
    const double bend_signed = backwards ? -bend : bend;
    const double sum = base + q_signed;
    const double angle = sum + (((base - sum) + q_signed) + (bend_signed + base_lo));
    const double value = math_with_sign_f64(angle, y);
    return math_choose_f64((x != x) | (y != y), x + y, value);
}

/* ---- rem ------------------------------------------------------------------------------------------------------------------
 */

#define MATH_REM_FAR_F64(x, y) (!(canon_abs_f64(x) < 0x1p51 * canon_abs_f64(y)))

/* |x| below 2^51 |y|. */
MATH_FUNCTION double canon_rem_near_f64(double x, double y)
{
    const double x_size = canon_abs_f64(x);
    const double y_size = canon_abs_f64(y);
    const double whole = __builtin_trunc(x_size / y_size);
    const double rest = y_size == MATH_INF_F64 ? x_size : canon_fma_f64(-whole, y_size, x_size);
    return math_with_sign_f64(rest < 0.0 ? rest + y_size : rest, x);
}

/* Branches, and loops: 11 bits of the quotient at a time. */
MATH_FUNCTION double canon_rem_f64(double x, double y)
{
    if (!MATH_REM_FAR_F64(x, y))
        return canon_rem_near_f64(x, y);
    if (!(canon_abs_f64(x) < MATH_INF_F64) || !(canon_abs_f64(y) > 0.0))
        return MATH_NAN_F64;
    const uint64_t x_bits = canon_double_bits(x) & 0x7fffffffffffffffu;
    const uint64_t y_bits = canon_double_bits(y) & 0x7fffffffffffffffu;
    const uint32_t x_exponent = x_bits >> 52 ? (uint32_t)(x_bits >> 52) : 1;
    const uint32_t y_exponent = y_bits >> 52 ? (uint32_t)(y_bits >> 52) : 1;
    const uint64_t x_mantissa = (x_bits & 0xfffffffffffffu) | (x_bits >> 52 ? 0x10000000000000u : 0);
    const uint64_t y_mantissa = (y_bits & 0xfffffffffffffu) | (y_bits >> 52 ? 0x10000000000000u : 0);
    uint64_t rest = x_mantissa % y_mantissa;
    for (uint32_t left = x_exponent - y_exponent; left > 0;) {
        const uint32_t step = left < 11 ? left : 11;
        rest = (rest << step) % y_mantissa;
        left -= step;
    }
    return math_with_sign_f64(math_scale_f64((double)rest, (int32_t)y_exponent - 1075), x);
}

#endif
