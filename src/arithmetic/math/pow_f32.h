/* x^y of f32, by a table of logarithms.
 *
 * The base-2 logarithm needs a relative error below 2^-34, since exponents reach 128. Let |x| = 2^k m with m from 0.70 to 1.40.
 * Each of 128 intervals of m has a constant c near 1/m with only 8 bits, so r = m c - 1 is exact. The logarithm is k - log2 c +
 * log2(1 + r), |r| < 2^-7.4. The interval around 1 has c = 1. A GPU keeps the table in shared memory.
 */
#ifndef WW_ARITHMETIC_MATH_POW_F32_H
#define WW_ARITHMETIC_MATH_POW_F32_H

#include "arithmetic/math/exp_log_f32.h"

enum { MATH_POW_TERMS = 3, MATH_POW_COLUMN = 128 };

/* Columns: c; -log2 c to 15 fractional bits, so its sum with k is exact; and the remainder of -log2 c. */
// NOLINTNEXTLINE(readability-function-size): a table
MATH_FUNCTION const float *math_pow_table_f32(void)
{
    /* clang-format off */
    MATH_TABLE float table[MATH_POW_TERMS][MATH_POW_COLUMN] = {
        {0x1.6cp0f, 0x1.6ap0f, 0x1.68p0f, 0x1.66p0f, 0x1.64p0f, 0x1.62p0f, 0x1.6p0f, 0x1.5ep0f, 0x1.5cp0f, 0x1.5ap0f,
         0x1.58p0f, 0x1.58p0f, 0x1.56p0f, 0x1.54p0f, 0x1.52p0f, 0x1.5p0f, 0x1.4ep0f, 0x1.4cp0f, 0x1.4ap0f, 0x1.4ap0f,
         0x1.48p0f, 0x1.46p0f, 0x1.44p0f, 0x1.42p0f, 0x1.42p0f, 0x1.4p0f, 0x1.3ep0f, 0x1.3cp0f, 0x1.3cp0f, 0x1.3ap0f,
         0x1.38p0f, 0x1.36p0f, 0x1.36p0f, 0x1.34p0f, 0x1.32p0f, 0x1.3p0f, 0x1.3p0f, 0x1.2ep0f, 0x1.2cp0f, 0x1.2cp0f, 0x1.2ap0f,
         0x1.28p0f, 0x1.28p0f, 0x1.26p0f, 0x1.24p0f, 0x1.24p0f, 0x1.22p0f, 0x1.2p0f, 0x1.2p0f, 0x1.1ep0f, 0x1.1cp0f, 0x1.1cp0f,
         0x1.1ap0f, 0x1.1ap0f, 0x1.18p0f, 0x1.16p0f, 0x1.16p0f, 0x1.14p0f, 0x1.14p0f, 0x1.12p0f, 0x1.12p0f, 0x1.1p0f,
         0x1.0ep0f, 0x1.0ep0f, 0x1.0cp0f, 0x1.0cp0f, 0x1.0ap0f, 0x1.0ap0f, 0x1.08p0f, 0x1.08p0f, 0x1.06p0f, 0x1.06p0f,
         0x1.04p0f, 0x1.04p0f, 0x1.02p0f, 0x1.02p0f, 0x1p0f, 0x1.fcp-1f, 0x1.f8p-1f, 0x1.f4p-1f, 0x1.fp-1f, 0x1.ecp-1f,
         0x1.eap-1f, 0x1.e6p-1f, 0x1.e2p-1f, 0x1.dep-1f, 0x1.dap-1f, 0x1.d8p-1f, 0x1.d4p-1f, 0x1.dp-1f, 0x1.cep-1f, 0x1.cap-1f,
         0x1.c8p-1f, 0x1.c4p-1f, 0x1.cp-1f, 0x1.bep-1f, 0x1.bap-1f, 0x1.b8p-1f, 0x1.b4p-1f, 0x1.b2p-1f, 0x1.bp-1f, 0x1.acp-1f,
         0x1.aap-1f, 0x1.a6p-1f, 0x1.a4p-1f, 0x1.a2p-1f, 0x1.9ep-1f, 0x1.9cp-1f, 0x1.9ap-1f, 0x1.98p-1f, 0x1.94p-1f,
         0x1.92p-1f, 0x1.9p-1f, 0x1.8ep-1f, 0x1.8ap-1f, 0x1.88p-1f, 0x1.86p-1f, 0x1.84p-1f, 0x1.82p-1f, 0x1.8p-1f, 0x1.7ep-1f,
         0x1.7ap-1f, 0x1.78p-1f, 0x1.76p-1f, 0x1.74p-1f, 0x1.72p-1f, 0x1.7p-1f, 0x1.6ep-1f},
        {-0x1.03fcp-1f, -0x1.ffd8p-2f, -0x1.f7a8p-2f, -0x1.ef7p-2f, -0x1.e728p-2f, -0x1.dedp-2f, -0x1.d678p-2f, -0x1.ce08p-2f,
         -0x1.c59p-2f, -0x1.bd1p-2f, -0x1.b48p-2f, -0x1.b48p-2f, -0x1.abep-2f, -0x1.a338p-2f, -0x1.9a8p-2f, -0x1.91b8p-2f,
         -0x1.88e8p-2f, -0x1.8008p-2f, -0x1.772p-2f, -0x1.772p-2f, -0x1.6e2p-2f, -0x1.6518p-2f, -0x1.5cp-2f, -0x1.52d8p-2f,
         -0x1.52d8p-2f, -0x1.49a8p-2f, -0x1.4068p-2f, -0x1.371p-2f, -0x1.371p-2f, -0x1.2dbp-2f, -0x1.244p-2f, -0x1.1acp-2f,
         -0x1.1acp-2f, -0x1.113p-2f, -0x1.079p-2f, -0x1.fbcp-3f, -0x1.fbcp-3f, -0x1.e84p-3f, -0x1.d4ap-3f, -0x1.d4ap-3f,
         -0x1.c0ep-3f, -0x1.acfp-3f, -0x1.acfp-3f, -0x1.98fp-3f, -0x1.84cp-3f, -0x1.84cp-3f, -0x1.707p-3f, -0x1.5cp-3f,
         -0x1.5cp-3f, -0x1.477p-3f, -0x1.32bp-3f, -0x1.32bp-3f, -0x1.1ddp-3f, -0x1.1ddp-3f, -0x1.08cp-3f, -0x1.e72p-4f,
         -0x1.e72p-4f, -0x1.bc8p-4f, -0x1.bc8p-4f, -0x1.918p-4f, -0x1.918p-4f, -0x1.664p-4f, -0x1.3aap-4f, -0x1.3aap-4f,
         -0x1.0ecp-4f, -0x1.0ecp-4f, -0x1.c4cp-5f, -0x1.c4cp-5f, -0x1.6bcp-5f, -0x1.6bcp-5f, -0x1.11cp-5f, -0x1.11cp-5f,
         -0x1.6e8p-6f, -0x1.6e8p-6f, -0x1.7p-7f, -0x1.7p-7f, 0.0f, 0x1.73p-7f, 0x1.74p-6f, 0x1.184p-5f, 0x1.774p-5f,
         0x1.d7p-5f, 0x1.038p-4f, 0x1.34p-4f, 0x1.64cp-4f, 0x1.96p-4f, 0x1.c7cp-4f, 0x1.e0cp-4f, 0x1.098p-3f, 0x1.22ep-3f,
         0x1.2fap-3f, 0x1.495p-3f, 0x1.564p-3f, 0x1.704p-3f, 0x1.8a9p-3f, 0x1.97cp-3f, 0x1.b26p-3f, 0x1.bfcp-3f, 0x1.dacp-3f,
         0x1.e85p-3f, 0x1.f6p-3f, 0x1.08cp-2f, 0x1.0fa8p-2f, 0x1.1d98p-2f, 0x1.24ap-2f, 0x1.2ba8p-2f, 0x1.39ep-2f,
         0x1.4108p-2f, 0x1.4838p-2f, 0x1.4f7p-2f, 0x1.5ep-2f, 0x1.655p-2f, 0x1.6cbp-2f, 0x1.7418p-2f, 0x1.8308p-2f,
         0x1.8a88p-2f, 0x1.9218p-2f, 0x1.99bp-2f, 0x1.a15p-2f, 0x1.a9p-2f, 0x1.b0b8p-2f, 0x1.c04p-2f, 0x1.c818p-2f,
         0x1.cff8p-2f, 0x1.d7e8p-2f, 0x1.dfep-2f, 0x1.e7ep-2f, 0x1.effp-2f},
        {-0x1.a8b97ap-17f, 0x1.995fp-20f, -0x1.5a32c2p-20f, 0x1.4c66b8p-17f, 0x1.55e18ap-18f, -0x1.fea212p-17f,
         0x1.60fe68p-17f, -0x1.2491d2p-17f, -0x1.7d694ap-17f, 0x1.a2c30ep-19f, 0x1.408c78p-18f, 0x1.408c78p-18f,
         -0x1.8797f2p-18f, 0x1.3eb014p-19f, -0x1.1c8f12p-21f, -0x1.d448f8p-17f, -0x1.c72e0cp-18f, -0x1.2b18bp-17f,
         0x1.6a2c08p-17f, 0x1.6a2c08p-17f, -0x1.0e6ce8p-17f, -0x1.fc8cfp-19f, -0x1.a39fbep-18f, -0x1.efe264p-17f,
         -0x1.efe264p-17f, 0x1.ed0cbap-20f, 0x1.ce2728p-17f, -0x1.267526p-17f, -0x1.267526p-17f, -0x1.0fc4dap-18f,
         -0x1.eac382p-20f, -0x1.6ca47cp-20f, -0x1.6ca47cp-20f, -0x1.f6b4c2p-20f, -0x1.5b7606p-19f, -0x1.6b9026p-19f,
         -0x1.6b9026p-19f, -0x1.7ce9cep-20f, 0x1.1b3cdap-19f, 0x1.1b3cdap-19f, 0x1.24c89ap-17f, -0x1.78b6d4p-17f,
         -0x1.78b6d4p-17f, 0x1.17c40cp-18f, -0x1.5e8178p-18f, -0x1.5e8178p-18f, -0x1.0b53bcp-17f, -0x1.a39fbep-19f,
         -0x1.a39fbep-19f, 0x1.5819fp-17f, 0x1.61d876p-19f, 0x1.61d876p-19f, 0x1.734556p-18f, 0x1.734556p-18f,
         -0x1.62336ap-17f, -0x1.d823p-17f, -0x1.d823p-17f, -0x1.0902b6p-18f, -0x1.0902b6p-18f, -0x1.42dc8cp-17f,
         -0x1.42dc8cp-17f, 0x1.20a6dep-21f, -0x1.7ee94p-19f, -0x1.7ee94p-19f, 0x1.8ec0bap-17f, 0x1.8ec0bap-17f,
         -0x1.fab90ap-17f, -0x1.fab90ap-17f, 0x1.2c8a72p-17f, 0x1.2c8a72p-17f, -0x1.a3aa26p-18f, -0x1.a3aa26p-18f,
         0x1.a5e8f4p-20f, 0x1.a5e8f4p-20f, 0x1.af491p-19f, 0x1.af491p-19f, 0.0f, -0x1.c22ef8p-18f, 0x1.f7431p-17f,
         0x1.71c98ap-18f, -0x1.acd89ap-19f, -0x1.42e0ep-17f, 0x1.fbef2ap-18f, -0x1.0643d6p-17f, 0x1.c4d80cp-17f,
         0x1.95f358p-17f, -0x1.5ae91ep-17f, -0x1.ca2e1ap-17f, -0x1.c731ap-19f, -0x1.48f554p-17f, -0x1.cd2a4p-19f,
         -0x1.e711c8p-21f, -0x1.1eb002p-18f, 0x1.80c71ep-17f, -0x1.9fd502p-17f, 0x1.cb13c8p-19f, 0x1.24beaap-22f, 0x1.9eap-17f,
         0x1.169f22p-18f, 0x1.f4f4d8p-17f, -0x1.3ab7cep-18f, -0x1.8f935p-17f, 0x1.20112cp-20f, 0x1.64ea94p-21f,
         -0x1.96a762p-17f, 0x1.061a6p-17f, -0x1.71eaa6p-18f, -0x1.fe83c2p-18f, -0x1.a196a2p-18f, -0x1.134c4ep-20f,
         -0x1.18708ap-17f, 0x1.5a4cc4p-17f, 0x1.ed0cbap-19f, 0x1.59d77ep-19f, -0x1.9379f8p-17f, 0x1.80abfcp-18f,
         0x1.249ba8p-27f, 0x1.caa5b2p-20f, 0x1.78a14cp-17f, -0x1.a39fbep-20f, -0x1.80b0bap-18f, 0x1.c2cf18p-17f,
         0x1.dc2d46p-18f, 0x1.7308d6p-17f, -0x1.3f543cp-18f, -0x1.3b153cp-17f, -0x1.40358ep-19f, -0x1.cf27f8p-17f},
    };
    /* clang-format on */
    return table[0];
}

#define MATH_POW_FIRST 0x3f338000u /* the bits of the start of the first interval */

/* The entry of an interval. */
typedef struct math_pow_f32 {
    float c, log, log_lo;
} math_pow_f32;

/* True for most numbers: both are finite, x is neither 0 nor subnormal, and y is within the bounds of math_pow_of_f32.
 * Functions below with a constant `plain` skip those checks if it is set; the bits are the same. */
#define MATH_POW_X_PLAIN_F32(x)  ((canon_float_bits(x) << 1) - 0x01000000u < 0xfe000000u)
#define MATH_POW_PLAIN_F32(x, y) (MATH_POW_X_PLAIN_F32(x) & (canon_abs_f32(y) <= 0x1p40f))

/* The bits of |x| (subnormals are multiplied by 2^23 first) minus the bits of the start of the first interval. The upper 9 are
 * 2^23 times the exponent of two. The upper 7 of the rest are the interval. */
typedef struct math_pow_bits_f32 {
    uint32_t k, rest;
} math_pow_bits_f32;

MATH_FUNCTION math_pow_bits_f32 math_pow_bits_of_f32(float x, int plain)
{
    const float size = canon_abs_f32(x);
    const float normal = plain ? size : math_choose_f32(size < 0x1p-126f, size * 0x1p23f, size);
    const uint32_t bits = canon_float_bits(normal) - MATH_POW_FIRST;
    const math_pow_bits_f32 parts = {bits & 0xff800000u, bits & 0x007fffffu};
    return parts;
}

MATH_FUNCTION uint32_t math_pow_interval_f32(math_pow_bits_f32 bits)
{
    return bits.rest >> 16;
}

typedef struct math_two_f32 {
    float hi;
    float lo;
} math_two_f32;

/* log2 |x| from the bits of x and the table entry of its interval; less_k is subtracted from the exponent of two. log(1+r) is r
 * - r^2/2 in two parts, plus terms so small that one part is enough. The series after r^5/5 adds less than 2^-39 of it. */
MATH_FUNCTION math_two_f32 math_log2_of_f32(math_pow_bits_f32 bits, math_pow_f32 of, float less_k)
{
    const float k_float = (float)(int32_t)bits.k - less_k;
    const float r = canon_fma_f32(canon_bits_float(bits.rest + MATH_POW_FIRST), of.c, -1.0f);
    const float half = -0.5f * r;
    const float s = canon_fma_f32(r, half, r);
    const float p = canon_fma_f32(canon_fma_f32(0.2f, r, -0.25f), r, 0x1.555556p-2f);
    const float s_lo = canon_fma_f32(r * r, r * p, canon_fma_f32(r, half, r - s));
    const float a = s * 0x1.715476p0f;
    const float a_part = canon_fma_f32(s, 0x1.4ae0c0p-26f, canon_fma_f32(s, 0x1.715476p0f, -a));
    const float a_lo = canon_fma_f32(s_lo, 0x1.715476p0f, a_part);
    const float base = canon_fma_f32(k_float, 0x1p-23f, of.log);
    math_two_f32 log;
    log.hi = base + a;
    log.lo = ((base - log.hi) + a) + (a_lo + of.log_lo);
    return log;
}

/* log2 |x|; infinite if x is 0 or infinite, and lo is then meaningless. */
MATH_FUNCTION math_two_f32 math_log2_two_f32(float x, math_pow_f32 of, int plain)
{
    const float size = canon_abs_f32(x);
    const float less_k = plain ? 0.0f : math_choose_f32(size < 0x1p-126f, 23 * 0x1p23f, 0.0f);
    math_two_f32 log = math_log2_of_f32(math_pow_bits_of_f32(x, plain), of, less_k);
    const float of_zero = math_choose_f32(size == 0.0f, -MATH_INF_F32, log.hi);
    const float of_any = math_choose_f32(size == MATH_INF_F32, MATH_INF_F32, of_zero);
    log.hi = plain ? log.hi : of_any;
    return log;
}

/* 2^(hi + lo) is value 2^k for |hi| up to 2^22. The low bits of `shifted` hold k. */
typedef struct math_exp2_parts_f32 {
    float value;
    uint32_t shifted;
} math_exp2_parts_f32;

MATH_FUNCTION math_exp2_parts_f32 math_exp2_parts_of_f32(float hi, float lo)
{
    const float shifted = (hi + lo) + MATH_ROUNDER_F32;
    const float f = (hi - (shifted - MATH_ROUNDER_F32)) + lo;
    math_exp2_parts_f32 parts;
    parts.value = canon_fma_f32(math_exp2_tail_f32(f), f, 1.0f);
    parts.shifted = canon_float_bits(shifted);
    return parts;
}

/* 2^(hi + lo) for any hi except NaN; lo only matters if hi is in the range of exponents. Scales in two steps. */
MATH_FUNCTION float math_exp2_two_f32(float hi, float lo)
{
    const float bounded = math_clamp_min_f32(math_clamp_max_f32(hi, 140.0f), -170.0f);
    const float bounded_lo = math_choose_f32(bounded == hi, lo, 0.0f);
    const math_exp2_parts_f32 parts = math_exp2_parts_of_f32(bounded, bounded_lo);
    const uint32_t half = parts.shifted >> 1;
    return canon_bits_float(canon_float_bits(parts.value) + (half << 23)) *
           canon_bits_float(((parts.shifted - half) << 23) + 0x3f800000u);
}

/* The same in one step, for a result that is a normal number. */
MATH_FUNCTION float math_exp2_normal_f32(float hi, float lo)
{
    const math_exp2_parts_f32 parts = math_exp2_parts_of_f32(hi, lo);
    return canon_bits_float(canon_float_bits(parts.value) + (parts.shifted << 23));
}

/* The range of bits of |x| for which |x| and |x|^y are normal numbers; empty if y is not plain. The bits of a number divided by
 * 2^23 are its logarithm plus 127, too small by up to 0.0861. */
typedef struct math_pow_range_f32 {
    uint32_t min, max;
} math_pow_range_f32;

MATH_FUNCTION math_pow_range_f32 math_pow_range_of_f32(float y)
{
    const float size = canon_abs_f32(y);
    const float reach = size > 1.0f ? 125.0f * MATH_INVERSE_F32(size) : 125.0f; /* limit of the logarithm */
    const float above = reach > 0.09375f ? reach - 0.09375f : 0.0f;
    math_pow_range_f32 range = {1, 0};
    if (size <= 0x1p40f) {
        range.min = 0x3f800000u - (uint32_t)(reach * 0x1p23f);
        range.max = 0x3f800000u + (uint32_t)(above * 0x1p23f);
    }
    return range;
}

/* Applies the sign of x^y to its magnitude. NaN for a negative x if y is not an integer; x is not 0. */
MATH_FUNCTION float math_pow_signed_f32(float x, float y, float value)
{
    const float half = 0.5f * y;
    const uint32_t odd = __builtin_truncf(half) != half ? 0x80000000u : 0u; /* if an integer */
    const float of_integer = canon_bits_float(canon_float_bits(value) ^ (canon_float_bits(x) & odd));
    return __builtin_truncf(y) == y || x > 0.0f ? of_integer : MATH_NAN_F32;
}

/* x^y for x in the range of y; `bits` are the bits of x. */
MATH_FUNCTION float math_pow_normal_f32(float x, math_pow_bits_f32 bits, float y, math_pow_f32 of)
{
    const math_two_f32 log = math_log2_of_f32(bits, of, 0.0f);
    const float product = y * log.hi;
    const float product_lo = canon_fma_f32(y, log.lo, canon_fma_f32(y, log.hi, -product));
    return math_pow_signed_f32(x, y, math_exp2_normal_f32(product, product_lo));
}

/* x^y from the table entry of x's interval. */
MATH_FUNCTION float math_pow_of_f32(float x, float y, math_pow_f32 of, int plain)
{
    const math_two_f32 log = math_log2_two_f32(x, of, plain);
    /* Beyond 2^40 every power of a number other than 1 is 0 or infinite. */
    const float y_below = math_choose_f32(y > 0x1p40f, 0x1p40f, y);
    const float exponent = plain ? y : math_choose_f32(y_below < -0x1p40f, -0x1p40f, y_below);
    const float product = exponent * log.hi;
    const float product_lo = canon_fma_f32(exponent, log.lo, canon_fma_f32(exponent, log.hi, -product));
    const float value = math_exp2_two_f32(product, product_lo);
    if (plain)
        return math_pow_signed_f32(x, y, value);
    const float y_size = canon_abs_f32(y);
    const float y_bounded = math_choose_f32(y_size < 0x1p24f, y_size, 0x1p24f); /* from here on all integers are even */
    const int32_t y_whole = (int32_t)y_bounded;
    const float y_fraction = y_bounded - (float)y_whole;
    const uint32_t finite_negative = canon_float_bits(x) - 0x80000001u < 0x7f7fffffu; /* and not 0 */
    const int no_power = (int)(finite_negative & (uint32_t)(y_fraction > 0.0f));
    const float of_finite = math_choose_f32(no_power, MATH_NAN_F32, value);
    const uint32_t odd = ((uint32_t)y_whole & (uint32_t)(y_fraction == 0.0f)) << 31;
    const float of_numbers = canon_bits_float(canon_float_bits(of_finite) ^ (canon_float_bits(x) & odd));
    const float of_any = math_choose_f32((x != x) | (y != y), x + y, of_numbers);
    return math_choose_f32((y == 0.0f) | (x == 1.0f), 1.0f, of_any);
}

/* x^y as C defines it: 1 for y = 0 and for x = 1, whatever the other is; NaN for x < 0 if y is not an integer. */
MATH_FUNCTION float canon_pow_f32(float x, float y)
{
    const float *table = math_pow_table_f32();
    const int32_t i = (int32_t)math_pow_interval_f32(math_pow_bits_of_f32(x, 0));
    const math_pow_f32 of = {table[i], table[MATH_POW_COLUMN + i], table[2 * MATH_POW_COLUMN + i]};
    return math_pow_of_f32(x, y, of, 0);
}

#endif
