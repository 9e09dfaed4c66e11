/* Element functions by sixteen: those of kernels/math_f32.h in which every machine spends its time, each operation the same and
 * in the same order, so that the bits are.
 *
 * The compiler makes vectors of the loops over all the others. It cannot know two things that are used here: multiplying with a
 * power of two is one instruction, which takes the exponent as the float that it already is; and the parts that are zero, or
 * one, for some of the functions need not be computed.
 */
#ifndef WW_CPU_AVX512_FUNCTIONS_H
#define WW_CPU_AVX512_FUNCTIONS_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/types.h"

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

WIDE_FUNCTION wide wide_negative(wide x)
{
    return _mm512_xor_ps(x, WIDE(-0.0f));
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

/* ---- exponentials ----------------------------------------------------------------------------------------------------------
 */

typedef struct wide_exp {
    wide hi, lo, k;
} wide_exp;

/* math_exp_parts_f32(x, -minus_lo). */
WIDE_FUNCTION wide_exp wide_exp_parts(wide x, wide minus_lo)
{
    const wide rounder = WIDE(0x1.8p23f);
    const wide k = _mm512_sub_ps(_mm512_fmadd_ps(x, WIDE(0x1.715476p0f), rounder), rounder);
    const wide exact = _mm512_fmadd_ps(k, WIDE(-0x1.62e43p-1f), x);
    const wide rest = _mm512_fmadd_ps(k, WIDE(-0x1.05c610p-29f), minus_lo);
    const wide r = _mm512_sub_ps(exact, rest);
    const wide r_lo = _mm512_sub_ps(_mm512_sub_ps(exact, r), rest);
    wide q = WIDE(0x1.3b90ccp-13f);
    q = _mm512_fmadd_ps(q, r, WIDE(0x1.6d2e4cp-10f));
    q = _mm512_fmadd_ps(q, r, WIDE(0x1.1155a6p-7f));
    q = _mm512_fmadd_ps(q, r, WIDE(0x1.555502p-5f));
    q = _mm512_fmadd_ps(q, r, WIDE(0x1.55552cp-3f));
    q = _mm512_fmadd_ps(q, r, WIDE(0.5f));
    const wide bend = _mm512_mul_ps(_mm512_mul_ps(r, r), q);
    wide_exp e = {.k = k};
    e.hi = _mm512_add_ps(r, bend);
    e.lo = _mm512_add_ps(_mm512_add_ps(_mm512_sub_ps(r, e.hi), bend), r_lo);
    return e;
}

WIDE_FUNCTION wide wide_exponential(wide x)
{
    const wide_exp e = wide_exp_parts(wide_most(wide_least(x, -105.0f), 89.5f), WIDE(-0.0f));
    return _mm512_scalef_ps(_mm512_add_ps(WIDE(1.0f), _mm512_add_ps(e.hi, e.lo)), e.k);
}

/* hi = n / d with what is lost in *lo, n and d in two parts. */
WIDE_FUNCTION wide wide_quotient(wide n, wide n_lo, wide d, wide d_lo, wide *lo)
{
    const wide inverse = _mm512_div_ps(WIDE(1.0f), d);
    const wide hi = _mm512_mul_ps(n, inverse);
    *lo = _mm512_mul_ps(_mm512_add_ps(_mm512_fnmadd_ps(hi, d, n), _mm512_fnmadd_ps(hi, d_lo, n_lo)), inverse);
    return hi;
}

/* math_sigmoid_times_f32; `plain` where the factor is 1 and x has no second part. */
WIDE_FUNCTION wide wide_sigmoid_times(wide x, wide x_lo, wide factor, bool has_lo, bool plain)
{
    const wide one = WIDE(1.0f), sign = WIDE(-0.0f);
    const __mmask16 positive = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GT_OQ);
    const wide a = wide_least(_mm512_mask_xor_ps(x, positive, x, sign), -174.0f);
    const __mmask16 negative = _knot_mask16(positive);
    const wide minus_lo =
        has_lo ? _mm512_mask_xor_ps(x_lo, negative, x_lo, sign) : _mm512_mask_mov_ps(sign, positive, WIDE(0.0f));
    const wide_exp e = wide_exp_parts(a, minus_lo);
    const wide m = _mm512_add_ps(one, e.hi);
    const wide m_lo = _mm512_add_ps(_mm512_add_ps(_mm512_sub_ps(one, m), e.hi), e.lo);
    const wide power = _mm512_scalef_ps(one, wide_least(e.k, -100.0f));
    const wide scaled = _mm512_mul_ps(power, m);
    const wide d = _mm512_add_ps(one, scaled);
    const wide d_lo = _mm512_add_ps(_mm512_add_ps(_mm512_sub_ps(one, d), scaled), _mm512_mul_ps(power, m_lo));
    wide lo;
    const wide hi = wide_quotient(_mm512_mask_mov_ps(m, positive, one), _mm512_maskz_mov_ps(negative, m_lo), d, d_lo, &lo);
    const wide k = _mm512_maskz_mov_ps(negative, e.k);
    if (plain)
        return _mm512_scalef_ps(_mm512_add_ps(hi, lo), k);
    const __mmask16 finite = _mm512_cmp_ps_mask(factor, WIDE(0x1p100f), _CMP_NGT_UQ);
    return _mm512_scalef_ps(_mm512_fmadd_ps(factor, hi, _mm512_mul_ps(_mm512_maskz_mov_ps(finite, factor), lo)), k);
}

WIDE_FUNCTION wide wide_sigmoid(wide x)
{
    return wide_sigmoid_times(x, x, x, false, true);
}

WIDE_FUNCTION wide wide_silu(wide x)
{
    return wide_sigmoid_times(x, x, wide_least(x, -0x1p20f), false, false);
}

WIDE_FUNCTION wide wide_gelu(wide x)
{
    const wide b = wide_least(wide_most(x, 50.0f), -50.0f);
    const wide square = _mm512_mul_ps(b, b);
    const wide square_lo = _mm512_fmsub_ps(b, b, square);
    const wide c = WIDE(0x1.988454p0f), d = WIDE(0x1.2444f2p-4f);
    const wide bent = _mm512_mul_ps(square, d);
    const wide bent_lo = _mm512_add_ps(_mm512_fmsub_ps(square, d, bent),
                                       _mm512_fmadd_ps(square_lo, d, _mm512_mul_ps(square, WIDE(0x1.49b16ap-29f))));
    const wide sum = _mm512_add_ps(c, bent);
    const wide part = _mm512_sub_ps(sum, c);
    const wide sum_lo = _mm512_add_ps(_mm512_add_ps(_mm512_sub_ps(c, _mm512_sub_ps(sum, part)), _mm512_sub_ps(bent, part)),
                                      _mm512_sub_ps(bent_lo, WIDE(0x1.857936p-25f)));
    const wide u = _mm512_mul_ps(b, sum);
    const wide u_lo = _mm512_add_ps(_mm512_fmsub_ps(b, sum, u), _mm512_mul_ps(b, sum_lo));
    return wide_sigmoid_times(u, u_lo, wide_least(x, -0x1p20f), true, false);
}

WIDE_FUNCTION wide wide_tanh(wide x)
{
    const wide one = WIDE(1.0f), two = WIDE(2.0f);
    const wide_exp e = wide_exp_parts(_mm512_mul_ps(WIDE(-2.0f), wide_most(_mm512_abs_ps(x), 20.0f)), WIDE(-0.0f));
    const wide power = _mm512_scalef_ps(one, e.k);
    const wide base = _mm512_sub_ps(one, power);
    const wide step = _mm512_mul_ps(power, e.hi);
    const wide n = _mm512_sub_ps(base, step);
    const wide n_lo = _mm512_sub_ps(
        _mm512_add_ps(_mm512_sub_ps(_mm512_sub_ps(one, base), power), _mm512_sub_ps(_mm512_sub_ps(base, n), step)),
        _mm512_mul_ps(power, e.lo));
    const wide d = _mm512_sub_ps(two, n);
    const wide d_lo = _mm512_sub_ps(_mm512_sub_ps(_mm512_sub_ps(two, d), n), n_lo);
    wide lo;
    const wide hi = wide_quotient(n, n_lo, d, d_lo, &lo);
    return wide_with_sign(_mm512_add_ps(hi, lo), x);
}

WIDE_FUNCTION wide wide_erf(wide x)
{
    const wide size = _mm512_abs_ps(x);
    const wide bounded = wide_most(size, 4.0f);
    const wide square = _mm512_mul_ps(x, x);
    wide q = WIDE(0x1.4a64c6p-14f);
    q = _mm512_fmadd_ps(q, square, WIDE(-0x1.a4fed2p-11f));
    q = _mm512_fmadd_ps(q, square, WIDE(0x1.543858p-8f));
    q = _mm512_fmadd_ps(q, square, WIDE(-0x1.b80044p-6f));
    q = _mm512_fmadd_ps(q, square, WIDE(0x1.ce2d60p-4f));
    q = _mm512_fmadd_ps(q, square, WIDE(-0x1.812740p-2f));
    q = _mm512_fmadd_ps(q, square, WIDE(0x1.06eba8p-3f));
    const wide near_zero = _mm512_fmadd_ps(x, q, x);
    wide r = WIDE(0x1.5ec16ep-16f);
    r = _mm512_fmadd_ps(r, bounded, WIDE(-0x1.c546b8p-12f));
    r = _mm512_fmadd_ps(r, bounded, WIDE(0x1.10a8b6p-8f));
    r = _mm512_fmadd_ps(r, bounded, WIDE(-0x1.9b18c6p-6f));
    r = _mm512_fmadd_ps(r, bounded, WIDE(0x1.bb562ap-4f));
    r = _mm512_fmadd_ps(r, bounded, WIDE(0x1.444b44p-1f));
    r = _mm512_fmadd_ps(r, bounded, WIDE(0x1.212698p0f));
    const wide minus_r = wide_negative(r);
    const wide product = _mm512_mul_ps(minus_r, bounded);
    const wide product_lo = _mm512_fmsub_ps(minus_r, bounded, product);
    const wide_exp e = wide_exp_parts(product, wide_negative(_mm512_add_ps(product_lo, WIDE(0x1.65adep-13f))));
    const wide power = _mm512_scalef_ps(WIDE(1.0f), e.k);
    const wide far_from_zero = _mm512_sub_ps(_mm512_sub_ps(WIDE(1.0f), power), _mm512_mul_ps(power, _mm512_add_ps(e.hi, e.lo)));
    const __mmask16 near = _mm512_cmp_ps_mask(size, WIDE(0.9f), _CMP_LT_OQ);
    return _mm512_mask_mov_ps(wide_with_sign(far_from_zero, x), near, near_zero);
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

WIDE_FUNCTION wide wide_gelu_erf(wide x)
{
    static const float of_tail[] = {0x1.dcbaa4p-14f, 0x1.c9cb08p-13f, -0x1.cf69f8p-12f, -0x1.879f92p-10f,
                                    0x1.4c6fb6p-10f, 0x1.1ea8b0p-7f,  -0x1.07354cp-7f,  -0x1.bc394ap-5f,
                                    0x1.4ff9f2p-3f,  -0x1.540772p-3f, -0x1.7bf5e8p-4f,  0x1.46e80ep0f};
    static const float of_middle[] = {-0x1.4ce88cp-17f, 0x1.f1ca08p-14f, -0x1.38221ap-10f,
                                      0x1.46dbeep-7f,   -0x1.105876p-4f, 0x1.988454p-2f};
    const wide one = WIDE(1.0f), root = WIDE(0x1.6a09e6p0f);
    const wide size = _mm512_abs_ps(x);
    const wide h = wide_most(size, 15.0f);
    const wide growth = _mm512_fmadd_ps(h, root, one);
    const wide growth_lo =
        _mm512_add_ps(_mm512_fmadd_ps(h, root, _mm512_sub_ps(one, growth)), _mm512_mul_ps(h, WIDE(0x1.9fcef4p-26f)));
    const wide t = _mm512_sub_ps(_mm512_div_ps(_mm512_add_ps(h, h), _mm512_add_ps(h, WIDE(0x1.6a09e6p1f))), one);
    const wide g = wide_polynomial(of_tail, 12, t);
    const wide square = _mm512_mul_ps(h, h);
    const wide square_lo = _mm512_fmsub_ps(h, h, square);
    const wide_exp e = wide_exp_parts(_mm512_mul_ps(WIDE(-0.5f), square), wide_negative(_mm512_mul_ps(WIDE(-0.5f), square_lo)));
    const wide m = _mm512_add_ps(one, e.hi);
    const wide m_lo = _mm512_add_ps(_mm512_add_ps(_mm512_sub_ps(one, m), e.hi), e.lo);
    const wide n = _mm512_mul_ps(g, m);
    const wide n_lo = _mm512_add_ps(_mm512_fmsub_ps(g, m, n), _mm512_mul_ps(g, m_lo));
    wide tail_lo;
    const wide tail = wide_quotient(n, n_lo, growth, growth_lo, &tail_lo);
    const wide factor = wide_least(x, -64.0f), k = _mm512_sub_ps(e.k, one);
    const wide below = _mm512_scalef_ps(_mm512_fmadd_ps(factor, tail, _mm512_mul_ps(factor, tail_lo)), k);
    const __mmask16 large = _mm512_cmp_ps_mask(x, WIDE(64.0f), _CMP_GT_OQ);
    const wide above =
        _mm512_fnmadd_ps(_mm512_mask_mov_ps(x, large, one), _mm512_scalef_ps(_mm512_add_ps(tail, tail_lo), k), x);
    const wide far_from_zero = _mm512_mask_mov_ps(below, _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GT_OQ), above);
    const wide middle = _mm512_mul_ps(x, _mm512_fmadd_ps(x, wide_polynomial(of_middle, 6, square), WIDE(0.5f)));
    return _mm512_mask_mov_ps(far_from_zero, _mm512_cmp_ps_mask(size, WIDE(0.6f), _CMP_LT_OQ), middle);
}

#endif
