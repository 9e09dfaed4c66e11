/* Element functions sixteen at a time: those of arithmetic/math/f32.h that take the most time, with the same operations in the
 * same order, so the bits are the same.
 *
 * The compiler vectorizes the loops over all other functions. It does not know two facts that this code uses. One instruction
 * multiplies by a power of two, and takes the exponent as a float, which it already is. And some functions have terms that are
 * known to be zero or one and need not be computed.
 */
#ifndef WW_CPU_ISA_AVX512_ELEMENT_FUNCTIONS_H
#define WW_CPU_ISA_AVX512_ELEMENT_FUNCTIONS_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arithmetic/math/f32.h"
#include "arithmetic/types.h"

#define F32X16_FUNCTION static inline __attribute__((always_inline))
#define F32X16(value)   _mm512_set1_ps(value)

typedef __m512 f32x16;

/* A mask of the first `left` lanes. */
F32X16_FUNCTION __mmask16 f32x16_mask(int64_t left)
{
    return left >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << left) - 1u);
}

/* Loads f32, f16 or bf16; masked lanes are 0. */
F32X16_FUNCTION f32x16 f32x16_load(int32_t type, const void *from, int64_t i, __mmask16 mask)
{
    if (type == TYPE_F32)
        return _mm512_maskz_loadu_ps(mask, (const float *)from + i);
    const __m256i halves = _mm256_maskz_loadu_epi16(mask, (const uint16_t *)from + i);
    if (type == TYPE_F16)
        return _mm512_cvtph_ps(halves);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

F32X16_FUNCTION f32x16 f32x16_one_nan(f32x16 x)
{
    const f32x16 nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000));
    return _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), nan);
}

F32X16_FUNCTION f32x16 f32x16_with_sign(f32x16 magnitude, f32x16 sign)
{
    const __m512i bit = _mm512_set1_epi32((int32_t)0x80000000u);
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(_mm512_castps_si512(sign), _mm512_castps_si512(magnitude), bit,
                                                         0xe4)); /* bit ? sign : other */
}

/* x < min ? min : x and x > max ? max : x. NaN stays NaN. */
F32X16_FUNCTION f32x16 f32x16_clamp_min(f32x16 x, float min)
{
    return _mm512_max_ps(F32X16(min), x);
}

F32X16_FUNCTION f32x16 f32x16_clamp_max(f32x16 x, float max)
{
    return _mm512_min_ps(F32X16(max), x);
}

/* ---- polynomials, the highest coefficient first -------------------------------------------------------------------------- */

F32X16_FUNCTION f32x16 f32x16_polynomial(const float *coefficients, int count, f32x16 x)
{
    f32x16 value = F32X16(coefficients[0]);
    for (int i = 1; i < count; i++)
        value = _mm512_fmadd_ps(value, x, F32X16(coefficients[i]));
    return value;
}

/* ---- exponentials -------------------------------------------------------------------------------------------------------- */

F32X16_FUNCTION f32x16 f32x16_exp_tail(f32x16 r)
{
    static const float tail[] = {0x1.3b90ccp-13f, 0x1.6d2e4cp-10f, 0x1.1155a6p-7f, 0x1.555502p-5f, 0x1.55552cp-3f, 0.5f};
    return f32x16_polynomial(tail, 6, r);
}

typedef struct f32x16_exp_terms {
    f32x16 hi, lo, k;
} f32x16_exp_terms;

/* math_exp_parts_f32(x, 0). */
F32X16_FUNCTION f32x16_exp_terms f32x16_exp_reduce(f32x16 x)
{
    const f32x16 rounder = F32X16(0x1.8p23f);
    const f32x16 k = _mm512_sub_ps(_mm512_fmadd_ps(x, F32X16(0x1.715476p0f), rounder), rounder);
    const f32x16 exact = _mm512_fmadd_ps(k, F32X16(-0x1.62e43p-1f), x);
    const f32x16 rest = _mm512_mul_ps(k, F32X16(-0x1.05c610p-29f));
    const f32x16 r = _mm512_sub_ps(exact, rest);
    const f32x16 r_lo = _mm512_sub_ps(_mm512_sub_ps(exact, r), rest);
    const f32x16 bend = _mm512_mul_ps(_mm512_mul_ps(r, r), f32x16_exp_tail(r));
    f32x16_exp_terms e = {.k = k};
    e.hi = _mm512_add_ps(r, bend);
    e.lo = _mm512_add_ps(_mm512_add_ps(_mm512_sub_ps(r, e.hi), bend), r_lo);
    return e;
}

F32X16_FUNCTION f32x16 f32x16_exp(f32x16 x)
{
    const f32x16_exp_terms e = f32x16_exp_reduce(f32x16_clamp_max(f32x16_clamp_min(x, -105.0f), 89.5f));
    return _mm512_scalef_ps(_mm512_add_ps(F32X16(1.0f), _mm512_add_ps(e.hi, e.lo)), e.k);
}

/* ---- by the logistic function, as in f32.h, but 2^k and 2^-64 take one instruction each ---------------------------------- */

typedef struct f32x16_logistic {
    f32x16 k, square, tail, g, d, d_lo, inverse;
} f32x16_logistic;

F32X16_FUNCTION f32x16_logistic f32x16_logistic_terms(f32x16 k, f32x16 r)
{
    const f32x16 one = F32X16(1.0f), s = _mm512_scalef_ps(one, k);
    f32x16_logistic terms = {.k = k, .square = _mm512_mul_ps(r, r), .tail = f32x16_exp_tail(r)};
    terms.g = _mm512_fmadd_ps(terms.square, terms.tail, r);
    terms.d = _mm512_fmadd_ps(s, terms.g, _mm512_add_ps(one, s));
    terms.d_lo = _mm512_fmadd_ps(s, terms.g, _mm512_add_ps(_mm512_sub_ps(one, terms.d), s));
    terms.inverse = _mm512_div_ps(one, terms.d);
    return terms;
}

/* The integer nearest to -h / ln 2. */
F32X16_FUNCTION f32x16 f32x16_minus_log2(f32x16 h)
{
    const f32x16 rounder = F32X16(0x1.8p23f);
    return _mm512_sub_ps(_mm512_fnmadd_ps(h, F32X16(0x1.715476p0f), rounder), rounder);
}

F32X16_FUNCTION f32x16 f32x16_sigmoid(f32x16 x)
{
    const f32x16 one = F32X16(1.0f), ln2_lo = F32X16(0x1.05c610p-29f);
    const f32x16 h = f32x16_clamp_max(_mm512_abs_ps(x), 105.0f), k = f32x16_minus_log2(h);
    const f32x16 exact = _mm512_fnmsub_ps(k, F32X16(0x1.62e43p-1f), h);
    const f32x16 r = _mm512_fmadd_ps(k, ln2_lo, exact);
    const f32x16 r_lo = _mm512_fmadd_ps(k, ln2_lo, _mm512_sub_ps(exact, r));
    const f32x16_logistic e = f32x16_logistic_terms(k, r);
    const f32x16 d_rest = _mm512_fnmadd_ps(e.d_lo, e.inverse, _mm512_fnmadd_ps(e.d, e.inverse, one));
    const f32x16 lost = _mm512_fmadd_ps(r_lo, e.inverse, d_rest);
    const f32x16 step = _mm512_add_ps(r, _mm512_fmadd_ps(e.square, e.tail, _mm512_fmadd_ps(lost, e.g, lost)));
    const f32x16 below = _mm512_scalef_ps(_mm512_fmadd_ps(e.inverse, step, e.inverse), k);
    return _mm512_mask_sub_ps(below, _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GT_OQ), one, below);
}

/* max(x, -0) minus a product, rounded once. The product includes a factor of 2^64, which the last step removes. */
F32X16_FUNCTION f32x16 f32x16_gated(f32x16 x, f32x16 h, f32x16_logistic e)
{
    const f32x16 n = _mm512_scalef_ps(h, _mm512_add_ps(e.k, F32X16(64.0f)));
    const f32x16 hi = _mm512_mul_ps(n, e.inverse);
    const f32x16 lo = _mm512_mul_ps(_mm512_fnmadd_ps(hi, e.d_lo, _mm512_fnmadd_ps(hi, e.d, n)), e.inverse);
    const f32x16 product = _mm512_add_ps(hi, _mm512_fmadd_ps(hi, e.g, _mm512_fmadd_ps(lo, e.g, lo)));
    return _mm512_fmadd_ps(product, F32X16(-0x1p-64f), f32x16_clamp_min(x, -0.0f));
}

F32X16_FUNCTION f32x16 f32x16_silu(f32x16 x)
{
    const f32x16 h = f32x16_clamp_max(_mm512_abs_ps(x), 112.0f), k = f32x16_minus_log2(h);
    const f32x16 exact = _mm512_fnmsub_ps(k, F32X16(0x1.62e43p-1f), h);
    return f32x16_gated(x, h, f32x16_logistic_terms(k, _mm512_fmadd_ps(k, F32X16(0x1.05c610p-29f), exact)));
}

F32X16_FUNCTION f32x16 f32x16_gelu(f32x16 x)
{
    const f32x16 c = F32X16(0x1.98845p0f), d = F32X16(0x1.2444f2p-4f);
    const f32x16 h = f32x16_clamp_max(_mm512_abs_ps(x), 11.0f);
    const f32x16 square = _mm512_mul_ps(h, h);
    const f32x16 square_lo = _mm512_fmsub_ps(h, h, square);
    const f32x16 q = _mm512_fmadd_ps(square, d, c);
    f32x16 q_lo = _mm512_fmadd_ps(square, d, _mm512_sub_ps(c, q));
    q_lo = _mm512_fmadd_ps(square_lo, d, q_lo);
    q_lo = _mm512_add_ps(_mm512_fmadd_ps(square, F32X16(0x1.49b16ap-29f), q_lo), F32X16(0x1.9ea1b2p-23f));
    const f32x16 k = f32x16_minus_log2(_mm512_mul_ps(h, q));
    f32x16 r = _mm512_fnmadd_ps(h, q, _mm512_mul_ps(k, F32X16(-0x1.62e4p-1f)));
    r = _mm512_fmadd_ps(k, F32X16(-0x1.7f7d1cp-20f), r);
    r = _mm512_fnmadd_ps(h, q_lo, r);
    return f32x16_gated(x, h, f32x16_logistic_terms(k, r));
}

/* ---- tanh, erf: near 0 a polynomial, elsewhere by 2^f -------------------------------------------------------------------- */

F32X16_FUNCTION f32x16 f32x16_exp2_less_one(f32x16 f)
{
    static const float tail[] = {0x1.3f994ap-13f, 0x1.5f0bdap-10f, 0x1.3b30aap-7f,
                                 0x1.c6af76p-5f,  0x1.ebfbd8p-3f,  0x1.62e430p-1f};
    return _mm512_mul_ps(f, f32x16_polynomial(tail, 6, f));
}

F32X16_FUNCTION f32x16 f32x16_tanh(f32x16 x)
{
    static const float near[] = {0x1.e80506p-14f, -0x1.aecb78p-11f, 0x1.8f99b4p-9f, -0x1.18de38p-7f,
                                 0x1.64c0a2p-6f,  -0x1.b9f6dep-5f,  0x1.11103cp-3f, -0x1.555552p-2f};
    const f32x16 one = F32X16(1.0f), rounder = F32X16(0x1.8p23f), two_over_ln2 = F32X16(0x1.715476p1f);
    const f32x16 size = _mm512_abs_ps(x), square = _mm512_mul_ps(x, x);
    const f32x16 near_zero = _mm512_fmadd_ps(_mm512_mul_ps(x, square), f32x16_polynomial(near, 8, square), x);
    const f32x16 bounded = f32x16_clamp_max(size, 9.2f);
    const f32x16 k = _mm512_sub_ps(_mm512_fmadd_ps(bounded, two_over_ln2, rounder), rounder);
    const f32x16 f = _mm512_fmsub_ps(bounded, two_over_ln2, k);
    const f32x16 power = _mm512_scalef_ps(one, k);
    const f32x16 d = _mm512_fmadd_ps(power, f32x16_exp2_less_one(f), _mm512_add_ps(one, power));
    const f32x16 far_from_zero = _mm512_fmadd_ps(F32X16(-2.0f), _mm512_div_ps(one, d), one);
    const __mmask16 far = _mm512_cmp_ps_mask(size, one, _CMP_GE_OQ);
    return f32x16_with_sign(_mm512_mask_mov_ps(near_zero, far, far_from_zero), x);
}

F32X16_FUNCTION f32x16 f32x16_erf(f32x16 x)
{
    static const float near[] = {0x1.4c339cp-14f, -0x1.a50ae8p-11f, 0x1.542e0ep-8f, -0x1.b7fe90p-6f,
                                 0x1.ce2d50p-4f,  -0x1.812740p-2f,  0x1.06eba8p-3f};
    static const float log[] = {-0x1.3df508p-12f, 0x1.2cf57ep-8f, -0x1.0d4c88p-5f,
                                0x1.3685e0p-3f,   0x1.d5ac96p-1f, 0x1.a0c7a2p0f};
    const f32x16 one = F32X16(1.0f), rounder = F32X16(0x1.8p23f);
    const f32x16 size = _mm512_abs_ps(x);
    const f32x16 near_zero = _mm512_fmadd_ps(x, f32x16_polynomial(near, 7, _mm512_mul_ps(x, x)), x);
    const f32x16 bounded = f32x16_clamp_max(size, 4.0f), r = f32x16_polynomial(log, 6, bounded);
    const f32x16 k = _mm512_sub_ps(_mm512_fnmadd_ps(r, bounded, rounder), rounder);
    const f32x16 f = _mm512_fnmsub_ps(r, bounded, k);
    const f32x16 power = _mm512_scalef_ps(one, k);
    const f32x16 far_from_zero = _mm512_fnmadd_ps(power, f32x16_exp2_less_one(f), _mm512_sub_ps(one, power));
    const __mmask16 far = _mm512_cmp_ps_mask(size, one, _CMP_GE_OQ);
    return f32x16_with_sign(_mm512_mask_mov_ps(near_zero, far, far_from_zero), x);
}

/* ---- gelu by the normal distribution: the table of normal_f32.h, each column in two registers ---------------------------- */

F32X16_FUNCTION f32x16 f32x16_normal_column(__m512i index, int column)
{
    const float *table = math_normal_table_f32() + (ptrdiff_t)column * MATH_NORMAL_COLUMN;
    return _mm512_permutex2var_ps(_mm512_loadu_ps(table), index, _mm512_loadu_ps(table + 16));
}

F32X16_FUNCTION f32x16 f32x16_gelu_erf(f32x16 x)
{
    const f32x16 halves = F32X16(0x1.8p22f), rounder = F32X16(0x1.8p23f);
    const f32x16 h = _mm512_min_ps(_mm512_abs_ps(x), F32X16(14.75f)); /* also if x is NaN */
    const f32x16 nearest = _mm512_add_ps(h, halves);
    const f32x16 t = _mm512_sub_ps(h, _mm512_sub_ps(nearest, halves));
    const __m512i index = _mm512_castps_si512(nearest); /* the instruction uses the lowest five bits */
    const f32x16 c0 = f32x16_normal_column(index, 0), last = f32x16_normal_column(index, MATH_NORMAL_TERMS - 1);
    f32x16 p = last;
    for (int i = MATH_NORMAL_TERMS - 2; i > 0; i--)
        p = _mm512_fmadd_ps(p, t, f32x16_normal_column(index, i));
    const f32x16 rest = _mm512_fmadd_ps(p, t, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(last), 16)));
    const f32x16 square = _mm512_mul_ps(h, h);
    const f32x16 square_lo = _mm512_fmsub_ps(h, h, square);
    const f32x16 k = _mm512_sub_ps(_mm512_fmadd_ps(square, F32X16(-0x1.715476p-1f), rounder), rounder);
    f32x16 r = _mm512_fmadd_ps(k, F32X16(-0x1.62e43p-1f), _mm512_mul_ps(F32X16(-0.5f), square));
    r = _mm512_fmadd_ps(k, F32X16(0x1.05c610p-29f), r);
    r = _mm512_fmadd_ps(square_lo, F32X16(-0.5f), r);
    const f32x16 g = _mm512_fmadd_ps(_mm512_mul_ps(r, r), f32x16_exp_tail(r), r);
    const f32x16 n = _mm512_scalef_ps(h, _mm512_add_ps(k, F32X16(64.0f)));
    const f32x16 product = _mm512_fmadd_ps(n, c0, _mm512_mul_ps(n, _mm512_fmadd_ps(_mm512_add_ps(c0, rest), g, rest)));
    return _mm512_fmadd_ps(product, F32X16(-0x1p-64f), f32x16_clamp_min(x, -0.0f));
}

#endif
