/* Element functions by sixteen: those of arithmetic/math/f32.h in which every machine spends its time, each operation the
 * same and in the same order, so that the bits are.
 *
 * The compiler makes vectors of the loops over all the others. It cannot know two things that are used here: multiplying with a
 * power of two is one instruction, which takes the exponent as the float that it already is; and the parts that are zero, or
 * one, for some of the functions need not be computed.
 */
#ifndef WW_CPU_ISA_AVX512_FUNCTIONS_H
#define WW_CPU_ISA_AVX512_FUNCTIONS_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arithmetic/math/f32.h"
#include "arithmetic/types.h"

#define WIDE_FUNCTION static inline __attribute__((always_inline))
#define WIDE(value)   _mm512_set1_ps(value)

typedef __m512 wide;

/* Lanes that are there, of `left`. */
WIDE_FUNCTION __mmask16 wide_mask(int64_t left)
{
    return left >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << left) - 1u);
}

/* f32, f16 or bf16 from memory; lanes that are not there are 0. */
WIDE_FUNCTION wide wide_load(int32_t type, const void *from, int64_t i, __mmask16 mask)
{
    if (type == TYPE_F32)
        return _mm512_maskz_loadu_ps(mask, (const float *)from + i);
    const __m256i halves = _mm256_maskz_loadu_epi16(mask, (const uint16_t *)from + i);
    if (type == TYPE_F16)
        return _mm512_cvtph_ps(halves);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

WIDE_FUNCTION wide wide_one_nan(wide x)
{
    const wide nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000));
    return _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), nan);
}

WIDE_FUNCTION wide wide_with_sign(wide magnitude, wide sign)
{
    const __m512i bit = _mm512_set1_epi32((int32_t)0x80000000u);
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(_mm512_castps_si512(sign), _mm512_castps_si512(magnitude), bit,
                                                         0xe4)); /* bit ? sign : other */
}

/* x < least ? least : x, and x > most ? most : x: NaN stays NaN. */
WIDE_FUNCTION wide wide_least(wide x, float least)
{
    return _mm512_max_ps(WIDE(least), x);
}

WIDE_FUNCTION wide wide_most(wide x, float most)
{
    return _mm512_min_ps(WIDE(most), x);
}

/* ---- a polynomial's value, the highest coefficient first --------------------------------------------------------------------
 */

WIDE_FUNCTION wide wide_polynomial(const float *coefficients, int count, wide x)
{
    wide value = WIDE(coefficients[0]);
    for (int i = 1; i < count; i++)
        value = _mm512_fmadd_ps(value, x, WIDE(coefficients[i]));
    return value;
}

/* ---- exponentials ----------------------------------------------------------------------------------------------------------
 */

WIDE_FUNCTION wide wide_exp_tail(wide r)
{
    static const float tail[] = {0x1.3b90ccp-13f, 0x1.6d2e4cp-10f, 0x1.1155a6p-7f, 0x1.555502p-5f, 0x1.55552cp-3f, 0.5f};
    return wide_polynomial(tail, 6, r);
}

typedef struct wide_exp {
    wide hi, lo, k;
} wide_exp;

/* math_exp_parts_f32(x, 0). */
WIDE_FUNCTION wide_exp wide_exp_parts(wide x)
{
    const wide rounder = WIDE(0x1.8p23f);
    const wide k = _mm512_sub_ps(_mm512_fmadd_ps(x, WIDE(0x1.715476p0f), rounder), rounder);
    const wide exact = _mm512_fmadd_ps(k, WIDE(-0x1.62e43p-1f), x);
    const wide rest = _mm512_mul_ps(k, WIDE(-0x1.05c610p-29f));
    const wide r = _mm512_sub_ps(exact, rest);
    const wide r_lo = _mm512_sub_ps(_mm512_sub_ps(exact, r), rest);
    const wide bend = _mm512_mul_ps(_mm512_mul_ps(r, r), wide_exp_tail(r));
    wide_exp e = {.k = k};
    e.hi = _mm512_add_ps(r, bend);
    e.lo = _mm512_add_ps(_mm512_add_ps(_mm512_sub_ps(r, e.hi), bend), r_lo);
    return e;
}

WIDE_FUNCTION wide wide_exponential(wide x)
{
    const wide_exp e = wide_exp_parts(wide_most(wide_least(x, -105.0f), 89.5f));
    return _mm512_scalef_ps(_mm512_add_ps(WIDE(1.0f), _mm512_add_ps(e.hi, e.lo)), e.k);
}

/* ---- by the logistic function: as in f32.h, with 2^k and 2^-64 by one instruction
 * ---------------------------------------
 */

typedef struct wide_logistic {
    wide k, square, tail, g, d, d_lo, inverse;
} wide_logistic;

WIDE_FUNCTION wide_logistic wide_logistic_parts(wide k, wide r)
{
    const wide one = WIDE(1.0f), s = _mm512_scalef_ps(one, k);
    wide_logistic parts = {.k = k, .square = _mm512_mul_ps(r, r), .tail = wide_exp_tail(r)};
    parts.g = _mm512_fmadd_ps(parts.square, parts.tail, r);
    parts.d = _mm512_fmadd_ps(s, parts.g, _mm512_add_ps(one, s));
    parts.d_lo = _mm512_fmadd_ps(s, parts.g, _mm512_add_ps(_mm512_sub_ps(one, parts.d), s));
    parts.inverse = _mm512_div_ps(one, parts.d);
    return parts;
}

/* The integer nearest to -h / ln 2, and -h less that many ln 2, but for what the second step takes away. */
WIDE_FUNCTION wide wide_minus_log2(wide h)
{
    const wide rounder = WIDE(0x1.8p23f);
    return _mm512_sub_ps(_mm512_fnmadd_ps(h, WIDE(0x1.715476p0f), rounder), rounder);
}

WIDE_FUNCTION wide wide_sigmoid(wide x)
{
    const wide one = WIDE(1.0f), ln2_lo = WIDE(0x1.05c610p-29f);
    const wide h = wide_most(_mm512_abs_ps(x), 105.0f), k = wide_minus_log2(h);
    const wide exact = _mm512_fnmsub_ps(k, WIDE(0x1.62e43p-1f), h);
    const wide r = _mm512_fmadd_ps(k, ln2_lo, exact);
    const wide r_lo = _mm512_fmadd_ps(k, ln2_lo, _mm512_sub_ps(exact, r));
    const wide_logistic of = wide_logistic_parts(k, r);
    const wide of_d = _mm512_fnmadd_ps(of.d_lo, of.inverse, _mm512_fnmadd_ps(of.d, of.inverse, one));
    const wide lost = _mm512_fmadd_ps(r_lo, of.inverse, of_d);
    const wide step = _mm512_add_ps(r, _mm512_fmadd_ps(of.square, of.tail, _mm512_fmadd_ps(lost, of.g, lost)));
    const wide below = _mm512_scalef_ps(_mm512_fmadd_ps(of.inverse, step, of.inverse), k);
    return _mm512_mask_sub_ps(below, _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GT_OQ), one, below);
}

/* max(x, -0) less a product of numbers with 2^k, rounded once: the product is made smaller by 2^k at the end. */
WIDE_FUNCTION wide wide_gated(wide x, wide h, wide_logistic of)
{
    const wide n = _mm512_scalef_ps(h, _mm512_add_ps(of.k, WIDE(64.0f)));
    const wide hi = _mm512_mul_ps(n, of.inverse);
    const wide lo = _mm512_mul_ps(_mm512_fnmadd_ps(hi, of.d_lo, _mm512_fnmadd_ps(hi, of.d, n)), of.inverse);
    const wide product = _mm512_add_ps(hi, _mm512_fmadd_ps(hi, of.g, _mm512_fmadd_ps(lo, of.g, lo)));
    return _mm512_fmadd_ps(product, WIDE(-0x1p-64f), wide_least(x, -0.0f));
}

WIDE_FUNCTION wide wide_silu(wide x)
{
    const wide h = wide_most(_mm512_abs_ps(x), 112.0f), k = wide_minus_log2(h);
    const wide exact = _mm512_fnmsub_ps(k, WIDE(0x1.62e43p-1f), h);
    return wide_gated(x, h, wide_logistic_parts(k, _mm512_fmadd_ps(k, WIDE(0x1.05c610p-29f), exact)));
}

WIDE_FUNCTION wide wide_gelu(wide x)
{
    const wide c = WIDE(0x1.98845p0f), d = WIDE(0x1.2444f2p-4f);
    const wide h = wide_most(_mm512_abs_ps(x), 11.0f);
    const wide square = _mm512_mul_ps(h, h);
    const wide square_lo = _mm512_fmsub_ps(h, h, square);
    const wide q = _mm512_fmadd_ps(square, d, c);
    wide q_lo = _mm512_fmadd_ps(square, d, _mm512_sub_ps(c, q));
    q_lo = _mm512_fmadd_ps(square_lo, d, q_lo);
    q_lo = _mm512_add_ps(_mm512_fmadd_ps(square, WIDE(0x1.49b16ap-29f), q_lo), WIDE(0x1.9ea1b2p-23f));
    const wide k = wide_minus_log2(_mm512_mul_ps(h, q));
    wide r = _mm512_fnmadd_ps(h, q, _mm512_mul_ps(k, WIDE(-0x1.62e4p-1f)));
    r = _mm512_fmadd_ps(k, WIDE(-0x1.7f7d1cp-20f), r);
    r = _mm512_fnmadd_ps(h, q_lo, r);
    return wide_gated(x, h, wide_logistic_parts(k, r));
}

/* ---- tanh, erf: near 0 a polynomial, elsewhere by 2^f -----------------------------------------------------------------------
 */

WIDE_FUNCTION wide wide_exp2_less_one(wide f)
{
    static const float tail[] = {0x1.3f994ap-13f, 0x1.5f0bdap-10f, 0x1.3b30aap-7f,
                                 0x1.c6af76p-5f,  0x1.ebfbd8p-3f,  0x1.62e430p-1f};
    return _mm512_mul_ps(f, wide_polynomial(tail, 6, f));
}

WIDE_FUNCTION wide wide_tanh(wide x)
{
    static const float near[] = {0x1.e80506p-14f, -0x1.aecb78p-11f, 0x1.8f99b4p-9f, -0x1.18de38p-7f,
                                 0x1.64c0a2p-6f,  -0x1.b9f6dep-5f,  0x1.11103cp-3f, -0x1.555552p-2f};
    const wide one = WIDE(1.0f), rounder = WIDE(0x1.8p23f), two_over_ln2 = WIDE(0x1.715476p1f);
    const wide size = _mm512_abs_ps(x), square = _mm512_mul_ps(x, x);
    const wide near_zero = _mm512_fmadd_ps(_mm512_mul_ps(x, square), wide_polynomial(near, 8, square), x);
    const wide bounded = wide_most(size, 9.2f);
    const wide k = _mm512_sub_ps(_mm512_fmadd_ps(bounded, two_over_ln2, rounder), rounder);
    const wide f = _mm512_fmsub_ps(bounded, two_over_ln2, k);
    const wide power = _mm512_scalef_ps(one, k);
    const wide d = _mm512_fmadd_ps(power, wide_exp2_less_one(f), _mm512_add_ps(one, power));
    const wide far_from_zero = _mm512_fmadd_ps(WIDE(-2.0f), _mm512_div_ps(one, d), one);
    const __mmask16 far = _mm512_cmp_ps_mask(size, one, _CMP_GE_OQ);
    return wide_with_sign(_mm512_mask_mov_ps(near_zero, far, far_from_zero), x);
}

WIDE_FUNCTION wide wide_erf(wide x)
{
    static const float near[] = {0x1.4c339cp-14f, -0x1.a50ae8p-11f, 0x1.542e0ep-8f, -0x1.b7fe90p-6f,
                                 0x1.ce2d50p-4f,  -0x1.812740p-2f,  0x1.06eba8p-3f};
    static const float log[] = {-0x1.3df508p-12f, 0x1.2cf57ep-8f, -0x1.0d4c88p-5f,
                                0x1.3685e0p-3f,   0x1.d5ac96p-1f, 0x1.a0c7a2p0f};
    const wide one = WIDE(1.0f), rounder = WIDE(0x1.8p23f);
    const wide size = _mm512_abs_ps(x);
    const wide near_zero = _mm512_fmadd_ps(x, wide_polynomial(near, 7, _mm512_mul_ps(x, x)), x);
    const wide bounded = wide_most(size, 4.0f), r = wide_polynomial(log, 6, bounded);
    const wide k = _mm512_sub_ps(_mm512_fnmadd_ps(r, bounded, rounder), rounder);
    const wide f = _mm512_fnmsub_ps(r, bounded, k);
    const wide power = _mm512_scalef_ps(one, k);
    const wide far_from_zero = _mm512_fnmadd_ps(power, wide_exp2_less_one(f), _mm512_sub_ps(one, power));
    const __mmask16 far = _mm512_cmp_ps_mask(size, one, _CMP_GE_OQ);
    return wide_with_sign(_mm512_mask_mov_ps(near_zero, far, far_from_zero), x);
}

/* ---- gelu by the normal distribution: the table of normal_f32.h, a column in two registers
 * ------------------------------
 */

WIDE_FUNCTION wide wide_normal_column(__m512i index, int column)
{
    const float *table = math_normal_table_f32() + (ptrdiff_t)column * MATH_NORMAL_COLUMN;
    return _mm512_permutex2var_ps(_mm512_loadu_ps(table), index, _mm512_loadu_ps(table + 16));
}

WIDE_FUNCTION wide wide_gelu_erf(wide x)
{
    const wide halves = WIDE(0x1.8p22f), rounder = WIDE(0x1.8p23f);
    const wide h = _mm512_min_ps(_mm512_abs_ps(x), WIDE(14.75f)); /* also of NaN */
    const wide nearest = _mm512_add_ps(h, halves);
    const wide t = _mm512_sub_ps(h, _mm512_sub_ps(nearest, halves));
    const __m512i index = _mm512_castps_si512(nearest); /* its five low bits count */
    const wide c0 = wide_normal_column(index, 0), last = wide_normal_column(index, MATH_NORMAL_TERMS - 1);
    wide p = last;
    for (int i = MATH_NORMAL_TERMS - 2; i > 0; i--)
        p = _mm512_fmadd_ps(p, t, wide_normal_column(index, i));
    const wide rest = _mm512_fmadd_ps(p, t, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(last), 16)));
    const wide square = _mm512_mul_ps(h, h);
    const wide square_lo = _mm512_fmsub_ps(h, h, square);
    const wide k = _mm512_sub_ps(_mm512_fmadd_ps(square, WIDE(-0x1.715476p-1f), rounder), rounder);
    wide r = _mm512_fmadd_ps(k, WIDE(-0x1.62e43p-1f), _mm512_mul_ps(WIDE(-0.5f), square));
    r = _mm512_fmadd_ps(k, WIDE(0x1.05c610p-29f), r);
    r = _mm512_fmadd_ps(square_lo, WIDE(-0.5f), r);
    const wide g = _mm512_fmadd_ps(_mm512_mul_ps(r, r), wide_exp_tail(r), r);
    const wide n = _mm512_scalef_ps(h, _mm512_add_ps(k, WIDE(64.0f)));
    const wide product = _mm512_fmadd_ps(n, c0, _mm512_mul_ps(n, _mm512_fmadd_ps(_mm512_add_ps(c0, rest), g, rest)));
    return _mm512_fmadd_ps(product, WIDE(-0x1p-64f), wide_least(x, -0.0f));
}

#endif
