/* Element functions of f64: sin and cos, atan2. trig_f32.h explains the methods and the near forms. */
#ifndef WW_ARITHMETIC_MATH_TRIG_F64_H
#define WW_ARITHMETIC_MATH_TRIG_F64_H

#include "arithmetic/math/exp_log_f64.h"

/* ---- sin and cos --------------------------------------------------------------------------------------------------------- */

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

/* 192 bits of 2/pi starting at bit `first` of the table, whose first word is zero. */
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

/* The 53 bits of a finite x times 2/pi, modulo 4. No double is closer to a multiple of pi/2 than 2^-62, so 64 bits are
 * available from the first set bit on, with an error of 2^-137. */
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

/* ---- atan2 --------------------------------------------------------------------------------------------------------------- */

/* As for f32, except that a quotient q above tan(pi/8) becomes (q-1)/(q+1), whose angle is smaller by pi/4. This halves the
 * number of terms of A, which has an error of 2^-59. */
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

#endif
