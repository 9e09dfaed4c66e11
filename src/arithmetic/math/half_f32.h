/* Functions of numbers converted from f16 or bf16 and back, in few operations.
 *
 * A result of 11 or 8 bits does not need full f32 accuracy. For each of the 65536 numbers of either type these functions give a
 * value that rounds to the same 16 bits as the canonical form (f32.h). They promise nothing else: tests/arithmetic/
 * test_math_half.c tries all inputs. The coefficients were fitted like those of f32.h and then moved by a few units until no
 * input failed; do not change one without running that test.
 *
 * `is_f16` is a constant. If set, the number is an f16, with a narrower range and finer rounding; otherwise a bf16.
 */
#ifndef WW_ARITHMETIC_MATH_HALF_F32_H
#define WW_ARITHMETIC_MATH_HALF_F32_H

#include "arithmetic/math/f32.h"

/* MATH_NEAR_... are a chip's 1 / x within one unit in the last place and 1 / sqrt x within two, including subnormals. That is
 * enough: no f16 has an inverse or inverse root so close to the midpoint of two f16, and a bf16 tolerates larger errors. */
MATH_FUNCTION float half_recip_f32(float x)
{
#ifdef MATH_NEAR_INVERSE_F32
    return MATH_NEAR_INVERSE_F32(x);
#else
    return canon_recip_f32(x);
#endif
}

MATH_FUNCTION float half_rsqrt_f32(float x)
{
#ifdef MATH_NEAR_INVERSE_ROOT_F32
    return MATH_NEAR_INVERSE_ROOT_F32(x);
#else
    return canon_rsqrt_f32(x);
#endif
}

/* The correctly rounded root of an f16, or a root of a bf16 that rounds to the same bits. 0 and infinity stay. */
MATH_FUNCTION float half_sqrt_f32(float x, int is_f16)
{
#ifdef MATH_NEAR_INVERSE_ROOT_F32
    const float near = MATH_NEAR_INVERSE_ROOT_F32(x);
    const float product = x * near;
    const float root = is_f16 ? canon_fma_f32(canon_fma_f32(-product, product, x), 0.5f * near, product) : product;
    return x == 0.0f || x == MATH_INF_F32 ? x : root;
#else
    (void)is_f16;
    return canon_sqrt_f32(x);
#endif
}

/* 2^(h c) as two factors: a power of two, and 2 to the rest of the exponent, at most 1/2 in magnitude. c is one float although
 * log2 e needs more bits; the test covers all inputs. */
typedef struct half_power_f32 {
    float power;
    float rest;
} half_power_f32;

MATH_FUNCTION half_power_f32 half_power_of_f32(float h, float c, int is_f16)
{
    const float shifted = canon_fma_f32(h, c, MATH_ROUNDER_F32);
    const float f = canon_fma_f32(h, c, MATH_ROUNDER_F32 - shifted);
    float p;
    if (is_f16) {
        p = canon_fma_f32(0x1.5b3e44p-10f, f, 0x1.3ca5d6p-7f);
        p = canon_fma_f32(p, f, 0x1.c6baf0p-5f);
        p = canon_fma_f32(p, f, 0x1.ebfb94p-3f);
        p = canon_fma_f32(p, f, 0x1.62e432p-1f);
    } else {
        p = canon_fma_f32(0x1.3a0228p-7f, f, 0x1.c9fdecp-5f);
        p = canon_fma_f32(p, f, 0x1.ec0380p-3f);
        p = canon_fma_f32(p, f, 0x1.62e12ap-1f);
    }
    half_power_f32 parts;
    parts.power = canon_bits_float((canon_float_bits(shifted) << 23) + 0x3f800000u);
    parts.rest = canon_fma_f32(p, f, 1.0f);
    return parts;
}

/* x is clamped to bounds that give 0 and infinity. A bf16 result can exceed what one power of two holds, so it is the square of
 * the result for half the exponent. */
MATH_FUNCTION float half_exp_f32(float x, int is_f16)
{
    const float bounded = math_clamp_min_f32(math_clamp_max_f32(x, is_f16 ? 12.0f : 89.5f), is_f16 ? -25.0f : -105.0f);
    const half_power_f32 of = half_power_of_f32(bounded, is_f16 ? 0x1.715476p0f : 0x1.715476p-1f, is_f16);
    const float root = of.rest * of.power;
    return is_f16 ? root : root * root;
}

/* For bf16: times e / (1 + e), or times / (1 + e) for x >= 0, with e = 2^(2 h c) and h = |x|. */
MATH_FUNCTION float short_logistic_bf16_f32(float x, float h, float c, float times)
{
    const half_power_f32 of = half_power_of_f32(h, c, 0);
    const float root = of.rest * of.power;
    const float e = root * root;
    const float inverse = MATH_SHORT_INVERSE_F32(1.0f + e) * times;
    return x > 0.0f ? inverse : e * inverse;
}

/* Only for bf16: near 0 an f16 result is a tie after rounding to f32, so all bits would count. */
MATH_FUNCTION float half_sigmoid_bf16_f32(float x)
{
    return short_logistic_bf16_f32(x, math_clamp_max_f32(canon_abs_f32(x), 105.0f), -0x1.715476p-1f, 1.0f);
}

/* -infinity gives the limit, -0. */
MATH_FUNCTION float half_silu_f32(float x, int is_f16)
{
    if (!is_f16)
        return short_logistic_bf16_f32(x, math_clamp_max_f32(canon_abs_f32(x), 112.0f), -0x1.715476p-1f,
                                       math_clamp_min_f32(x, -112.0f));
    const float above = math_clamp_min_f32(x, -30.0f);
    const half_power_f32 of = half_power_of_f32(math_clamp_max_f32(above, 30.0f), -0x1.715476p0f, 1);
    return above * MATH_SHORT_INVERSE_F32(canon_fma_f32(of.rest, of.power, 1.0f));
}

/* x sigmoid(2u) as in half_silu_f32, with 2u = -x q ln 2. For the smallest f16, the result rounded to f32 is a tie, half of it;
 * it is a special case. */
MATH_FUNCTION float half_gelu_f32(float x, int is_f16)
{
    if (!is_f16) {
        const float h = math_clamp_max_f32(canon_abs_f32(x), 12.0f);
        const float q = canon_fma_f32(h * h, -0x1.a5a7d0p-5f, -0x1.26aec2p0f);
        return short_logistic_bf16_f32(x, h, q, math_clamp_min_f32(x, -12.0f));
    }
    const float above = math_clamp_min_f32(x, -8.0f);
    const float bounded = math_clamp_max_f32(above, 8.0f);
    const float q = canon_fma_f32(bounded * bounded, -0x1.a5a7d8p-4f, -0x1.26aec0p1f);
    const float shifted = canon_fma_f32(bounded, q, MATH_ROUNDER_F32);
    const float f = canon_fma_f32(bounded, q, MATH_ROUNDER_F32 - shifted);
    const float power = canon_bits_float((canon_float_bits(shifted) << 23) + 0x3f800000u);
    float p = canon_fma_f32(0x1.5b4b76p-10f, f, 0x1.3cb13ap-7f);
    p = canon_fma_f32(p, f, 0x1.c6c068p-5f);
    p = canon_fma_f32(p, f, 0x1.ebfb32p-3f);
    p = canon_fma_f32(p, f, 0x1.62e42cp-1f);
    const float value = above * MATH_SHORT_INVERSE_F32(canon_fma_f32(canon_fma_f32(p, f, 1.0f), power, 1.0f));
    return x == 0x1p-24f ? 0.0f : value;
}

/* k ln 2 + f P(f) for x = 2^k (1 + f). f P has a relative error of 2^-22.5 (bf16: 2^-17). The smallest f16 is a normal
 * float. */
MATH_FUNCTION float half_log_f32(float x, int is_f16)
{
    const int subnormal = !is_f16 && x < 0x1p-126f;
    const float normal = subnormal ? x * 0x1p23f : x;
    const uint32_t k = math_log_exponent_f32(normal);
    const float f = canon_bits_float(canon_float_bits(normal) - k) - 1.0f;
    const float k_normal = (float)(int32_t)k;
    float p;
    if (is_f16) {
        p = canon_fma_f32(-0x1.3ab0f4p-3f, f, 0x1.5e7112p-3f);
        p = canon_fma_f32(p, f, -0x1.504814p-3f);
        p = canon_fma_f32(p, f, 0x1.9566c4p-3f);
        p = canon_fma_f32(p, f, -0x1.001106p-2f);
        p = canon_fma_f32(p, f, 0x1.556176p-2f);
        p = canon_fma_f32(p, f, -0x1.ffffc0p-2f);
        p = canon_fma_f32(p, f, 0x1.000002p0f);
    } else {
        p = canon_fma_f32(-0x1.8c47c6p-3f, f, 0x1.cfcd54p-3f);
        p = canon_fma_f32(p, f, -0x1.fcec1ap-3f);
        p = canon_fma_f32(p, f, 0x1.542a22p-2f);
        p = canon_fma_f32(p, f, -0x1.0002a6p-1f);
        p = canon_fma_f32(p, f, 0x1.000078p0f);
    }
    const float value = canon_fma_f32(subnormal ? k_normal - 23 * 0x1p23f : k_normal, 0x1.62e430p-24f, f * p);
    const float zero_or_less = x == 0.0f ? -MATH_INF_F32 : MATH_NAN_F32;
    const float finite = x > 0.0f ? value : zero_or_less;
    return x == MATH_INF_F32 ? x : finite;
}

/* x P(x^2) / Q(x^2), with a relative error of 2^-25; from 4.6 on it rounds to 1. */
MATH_FUNCTION float half_tanh_f32(float x, int is_f16)
{
    const float h = math_clamp_max_f32(canon_abs_f32(x), 4.6f);
    const float square = h * h;
    float p;
    float q;
    if (is_f16) {
        p = canon_fma_f32(0x1.6cb796p-18f, square, 0x1.4e01f0p-9f);
        p = canon_fma_f32(p, square, 0x1.01c892p-3f);
        p = canon_fma_f32(p, square, 1.0f);
        q = canon_fma_f32(0x1.6cb174p-13f, square, 0x1.6d177cp-6f);
        q = canon_fma_f32(q, square, 0x1.d6398ap-2f);
    } else { /* 2^-19.8 */
        p = canon_fma_f32(0x1.b9c548p-10f, square, 0x1.e057b4p-4f);
        p = canon_fma_f32(p, square, 0x1.ffffdcp-1f);
        q = canon_fma_f32(0x1.1cbdd4p-14f, square, 0x1.3025bep-6f);
        q = canon_fma_f32(q, square, 0x1.cd68d0p-2f);
    }
    q = canon_fma_f32(q, square, 1.0f);
    return math_with_sign_f32(h * p * MATH_SHORT_INVERSE_F32(q), x);
}

#endif
