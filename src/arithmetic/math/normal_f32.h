/* x times the normal distribution function at x, by a table.
 *
 * For h = |x| the distribution at -h is e^(-h^2/2) G(h), where G falls slowly from 1/2 to 0.03. G is approximated by a
 * polynomial around the middle of each interval of length 1/2. There are thirty intervals, so AVX-512 can keep a column of the
 * table in two registers. A GPU keeps the table in shared memory, where the intervals used most have their own banks.
 */
#ifndef WW_ARITHMETIC_MATH_NORMAL_F32_H
#define WW_ARITHMETIC_MATH_NORMAL_F32_H

#include "arithmetic/math/exp_log_f32.h"

enum { MATH_NORMAL_TERMS = 7, MATH_NORMAL_COLUMN = 32, MATH_NORMAL_SIZE = MATH_NORMAL_TERMS * MATH_NORMAL_COLUMN };

/* One column per coefficient, the constant first, fitted like those of exp_log_f32.h; the total error is 2^-28 of G. The
 * rounding error of the constant is a bf16 in the lower half of the last coefficient, which only needs its upper half. The last
 * two intervals only fill the column. */
MATH_FUNCTION const float *math_normal_table_f32(void)
{
    static const float table[MATH_NORMAL_TERMS][MATH_NORMAL_COLUMN] = {
        {0x1p-1f,        0x1.66027ap-2f, 0x1.0bdb2ep-2f, 0x1.a57056p-3f, 0x1.5845dcp-3f, 0x1.217252p-3f, 0x1.f1b89cp-4f,
         0x1.b396fap-4f, 0x1.82b4bcp-4f, 0x1.5b5acep-4f, 0x1.3b0fbcp-4f, 0x1.201faap-4f, 0x1.095608p-4f, 0x1.eba5fep-5f,
         0x1.c9e12p-5f,  0x1.ac6292p-5f, 0x1.926972p-5f, 0x1.7b5f34p-5f, 0x1.66ccb8p-5f, 0x1.545298p-5f, 0x1.43a38ap-5f,
         0x1.34805ap-5f, 0x1.26b4dp-5f,  0x1.1a1574p-5f, 0x1.0e7dcep-5f, 0x1.03cf06p-5f, 0x1.f3ddc2p-6f, 0x1.e18ddcp-6f,
         0x1.d087aep-6f, 0x1.c0a9c4p-6f, 0x1.c0a9c4p-6f, 0x1.c0a9c4p-6f},
        {-0x1.988452p-2f,  -0x1.cb063p-3f,  -0x1.19524cp-3f, -0x1.71c04cp-4f, -0x1.00f9dap-4f, -0x1.75ab64p-5f,
         -0x1.19cef2p-5f,  -0x1.b6038ap-6f, -0x1.5cf97cp-6f, -0x1.1be2c6p-6f, -0x1.d614ecp-7f, -0x1.8b1956p-7f,
         -0x1.5068c2p-7f,  -0x1.21ae92p-7f, -0x1.f7d59ep-8f, -0x1.b9fa6ap-8f, -0x1.86b844p-8f, -0x1.5bcb3ep-8f,
         -0x1.378124p-8f,  -0x1.188feep-8f, -0x1.fbf2dp-9f,  -0x1.cdeeacp-9f, -0x1.a5dac2p-9f, -0x1.82bdeep-9f,
         -0x1.63cfc8p-9f,  -0x1.486db4p-9f, -0x1.3012a8p-9f, -0x1.1a5102p-9f, -0x1.06cdbep-9f, -0x1.ea79b4p-10f,
         -0x1.ea79b4p-10f, -0x1.ea79b4p-10f},
        {0x1.ffff8p-3f,   0x1.e681ep-4f,   0x1.fcc822p-5f,  0x1.20403ap-5f,  0x1.5d300ap-6f,  0x1.bf399ep-7f,  0x1.2c08cap-7f,
         0x1.a29f06p-8f,  0x1.2dda04p-8f,  0x1.bfbafp-9f,   0x1.542a92p-9f,  0x1.07e3dap-9f,  0x1.a0eecep-10f, 0x1.4ea50ap-10f,
         0x1.106362p-10f, 0x1.c0f9cp-11f,  0x1.7625dap-11f, 0x1.3ae818p-11f, 0x1.0b6df8p-11f, 0x1.c9ebap-12f,  0x1.8af27cp-12f,
         0x1.56ee42p-12f, 0x1.2b9aaap-12f, 0x1.073c6p-12f,  0x1.d0faeap-13f, 0x1.9ca80cp-13f, 0x1.6fdc46p-13f, 0x1.494a3p-13f,
         0x1.27e80cp-13f, 0x1.0ade6ap-13f, 0x1.0ade6ap-13f, 0x1.0ade6ap-13f},
        {-0x1.104ee6p-3f,  -0x1.c1d4a6p-5f,  -0x1.9afb1ap-6f,  -0x1.997ee8p-7f,  -0x1.b75ea2p-8f,  -0x1.f62652p-9f,
         -0x1.2ed3dep-9f,  -0x1.7e835ap-10f, -0x1.f69e76p-11f, -0x1.55b9bep-11f, -0x1.dea336p-12f, -0x1.57fa44p-12f,
         -0x1.f9cf48p-13f, -0x1.7b64dep-13f, -0x1.21a1c2p-13f, -0x1.c1649ep-14f, -0x1.61827cp-14f, -0x1.19c6d6p-14f,
         -0x1.c621d8p-15f, -0x1.71f396p-15f, -0x1.3053a2p-15f, -0x1.f8fe98p-16f, -0x1.a656bap-16f, -0x1.63d524p-16f,
         -0x1.2deb3ap-16f, -0x1.01abbep-16f, -0x1.ba9cb8p-17f, -0x1.7df86cp-17f, -0x1.4bac1ep-17f, -0x1.21029p-17f,
         -0x1.21029p-17f,  -0x1.21029p-17f},
        {0x1.fe9b9p-5f,   0x1.7606aep-6f,  0x1.2f468ap-7f,  0x1.0d5e5p-8f,   0x1.02ff94p-9f,  0x1.0ac1a8p-10f, 0x1.239d5p-11f,
         0x1.4fb202p-12f, 0x1.943a92p-13f, 0x1.fa31e6p-14f, 0x1.4835fap-14f, 0x1.b6dfbp-15f,  0x1.2d2298p-15f, 0x1.a6589ep-16f,
         0x1.2fd7c8p-16f, 0x1.bc25a2p-17f, 0x1.499f62p-17f, 0x1.f098fp-18f,  0x1.7f29ap-18f,  0x1.256292p-18f, 0x1.cbda48p-19f,
         0x1.707e28p-19f, 0x1.26e5fcp-19f, 0x1.de1aaep-20f, 0x1.8fbfe8p-20f, 0x1.45b09ap-20f, 0x1.08457cp-20f, 0x1.be6f24p-21f,
         0x1.70998ep-21f, 0x1.3717eap-21f, 0x1.3717eap-21f, 0x1.3717eap-21f},
        {-0x1.a4a36ep-6f,  -0x1.20fe64p-7f,  -0x1.a3f3dp-9f,   -0x1.4e5e62p-10f, -0x1.2223fap-11f, -0x1.0f5ff4p-12f,
         -0x1.104734p-13f, -0x1.1c16e2p-14f, -0x1.3fd692p-15f, -0x1.705df4p-16f, -0x1.bce0a6p-17f, -0x1.188f96p-17f,
         -0x1.5b4826p-18f, -0x1.c1d498p-19f, -0x1.43f59ep-19f, -0x1.933908p-20f, -0x1.416f94p-20f, -0x1.715118p-21f,
         -0x1.7ca008p-21f, -0x1.20f01p-21f,  -0x1.6a15c2p-22f, -0x1.0cfb22p-22f, -0x1.b1a314p-23f, -0x1.5b7732p-23f,
         -0x1.6a6c78p-24f, -0x1.dd521ep-24f, -0x1.fe23aap-25f, -0x1.ac7df4p-24f, -0x1.321bfcp-26f, -0x1.1eb824p-24f,
         -0x1.1eb824p-24f, -0x1.1eb824p-24f},
        {0x1.f6p-8f,       0x1.9864aap-9f,   0x1.0c5ecep-10f,  0x1.8562a6p-12f,  0x1.34635ap-13f, 0x1.06618cp-14f,
         0x1.e06018p-16f,  0x1.d56088p-17f,  0x1.e161cep-18f,  0x1.05628ap-18f,  0x1.e0626ap-20f, 0x1.1362b4p-21f,
         0x1.66629p-23f,   0x1.1a606cp-21f,  -0x1.3461cap-23f, -0x1.f0617cp-25f, 0x1.905f7ap-23f, 0x1.7761ep-22f,
         -0x1.6d6018p-23f, 0x1.fd61a2p-22f,  0x1.d061c8p-22f,  0x1.b35f66p-25f,  0x1.0d5f9ap-24f, 0x1.5460c2p-30f,
         -0x1.a161c4p-22f, -0x1.d961f8p-23f, 0x1.b85f7ap-26f,  -0x1.9f5fep-24f,  0x1.c96024p-26f, 0x1.215d82p-26f,
         0x1.215d82p-26f,  0x1.215d82p-26f},
    };
    return table[0];
}

/* The coefficients of an interval. */
typedef struct math_normal_f32 {
    float c0, c1, c2, c3, c4, c5, c6;
} math_normal_f32;

/* |x| limited to 14.75: from 14.5 on the distribution is 0. NaN gives 14.75 too. */
MATH_FUNCTION float math_normal_bounded_f32(float x)
{
    return math_within_f32(canon_abs_f32(x), 14.75f);
}

MATH_FUNCTION uint32_t math_normal_interval_f32(float x)
{
    return canon_float_bits(math_normal_bounded_f32(x) + 0x1.8p22f) & 31u;
}

/* max(x, 0) - h times the distribution at -h, by the coefficients of x's interval. h^2 is computed in two parts; -infinity
 * gives -0. */
MATH_FUNCTION float math_gelu_erf_f32(float x, math_normal_f32 of)
{
    const float h = math_normal_bounded_f32(x);
    const float t = h - ((h + 0x1.8p22f) - 0x1.8p22f); /* minus the nearest multiple of 1/2 */
    float p = canon_fma_f32(of.c6, t, of.c5);
    p = canon_fma_f32(p, t, of.c4);
    p = canon_fma_f32(p, t, of.c3);
    p = canon_fma_f32(p, t, of.c2);
    p = canon_fma_f32(p, t, of.c1);
    const float rest = canon_fma_f32(p, t, canon_bits_float(canon_float_bits(of.c6) << 16));

    const float square = h * h;
    const float square_lo = canon_fma_f32(h, h, -square);
    const float shifted = canon_fma_f32(square, -0x1.715476p-1f, MATH_ROUNDER_F32);
    const float k = shifted - MATH_ROUNDER_F32;
    float r = canon_fma_f32(k, -0x1.62e43p-1f, -0.5f * square);
    r = canon_fma_f32(k, 0x1.05c610p-29f, r);
    r = canon_fma_f32(square_lo, -0.5f, r);
    const float g = canon_fma_f32(r * r, math_exp_tail_f32(r), r);
    const float n = h * canon_bits_float((canon_float_bits(shifted) << 23) + 0x5f800000u); /* 2^(k+64) */
    const float product = canon_fma_f32(n, of.c0, n * canon_fma_f32(of.c0 + rest, g, rest));
    return canon_fma_f32(product, -0x1p-64f, math_clamp_min_f32(x, -0.0f));
}

MATH_FUNCTION float canon_gelu_erf_f32(float x)
{
    enum { STEP = MATH_NORMAL_COLUMN };
    const float *table = math_normal_table_f32();
    const int32_t i = (int32_t)math_normal_interval_f32(x);
    const math_normal_f32 of = {
        table[i],           table[STEP + i], table[2 * STEP + i], table[3 * STEP + i], table[4 * STEP + i], table[5 * STEP + i],
        table[6 * STEP + i]};
    return math_gelu_erf_f32(x, of);
}

#endif
