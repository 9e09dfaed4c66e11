/* Element functions of f64: erf, and gelu by the normal distribution. */
#ifndef WW_ARITHMETIC_MATH_ERF_F64_H
#define WW_ARITHMETIC_MATH_ERF_F64_H

#include "arithmetic/math/exp_log_f64.h"

/* erfc(z) e^(z^2) in two parts, from t = (z-3)/(z+3) and growth = 1 + 2z, as H(t) / growth. H is between 1 and 1.3 and has an
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

/* Below 0.9: x + x Q(x^2). Above: 1 - erfc. From 6 on erf is 1 within a quarter of a unit. */
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

#endif
