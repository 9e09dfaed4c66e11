/* Forms of functions that kernels take instead of the canonical ones: the short ones of 16-bit numbers, for every number there
 * is; those of pow and atan2 that have no care for special values, and their bounds, for a sample. The bounds are made from a
 * chip's inverse, logarithm and power of two that are as wrong as a chip's may be. */
#include "support/check.h"

#include <math.h>

#include "arithmetic/convert.h"

static bool inverses_are_small;

/* The exact inverse, or one with the largest allowed error. */
static float short_inverse(float d)
{
    const float right = 1.0f / d;
    const bool is_last = (canon_float_bits(d) & 0x7fffffu) == 0x7fffffu;
    return inverses_are_small && is_last ? nextafterf(right, 0.0f) : right;
}

#define MATH_SHORT_INVERSE_F32 short_inverse
#include "arithmetic/math/half_f32.h"

static uint64_t mixed(uint64_t x)
{
    x *= 0x9e3779b97f4a7c15u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

/* `exact` with up to `most` u = 2^-24 of `unit` more or less, and rounded; subnormals are 0. */
static float amiss(float x, double exact, double unit, double most)
{
    const double share = (double)(int64_t)mixed(canon_float_bits(x)) * 0x1p-63;
    const float value = (float)(exact + unit * share * most * 0x1p-24);
    return fabsf(value) < 0x1p-126f ? copysignf(0.0f, value) : value;
}

static float no_subnormal(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0.0f, x) : x;
}

static float amiss_inverse(float x)
{
    const double exact = 1.0 / (double)no_subnormal(x);
    return isfinite(exact) ? amiss(x, exact, exact, 2) : (float)exact;
}

static float amiss_log2(float x)
{
    const double exact = log2((double)no_subnormal(x));
    return isfinite(exact) ? amiss(x, exact, fmax(1, fabs(exact)), 3) : (float)exact;
}

static float amiss_power(float x)
{
    const double exact = exp2((double)x);
    return isfinite(exact) ? amiss(x, exact, exact, 4) : (float)exact;
}

#define MATH_QUICK_INVERSE_F32 amiss_inverse
#define MATH_QUICK_LOG2_F32    amiss_log2
#define MATH_QUICK_POWER_F32   amiss_power
#include "arithmetic/math/half_bounds_f32.h"

enum { NUMBERS = 65536 };

static float widened(uint32_t bits, int half)
{
    return half ? widen_f16((uint16_t)bits) : widen_bf16((uint16_t)bits);
}

static uint16_t narrowed(float x, int half)
{
    return half ? narrow_f16(x) : narrow_bf16(x);
}

static uint32_t bits_of(float x)
{
    return canon_float_bits(one_nan_f32(x));
}

#define ALL_AGREE(name, half, short_form)                                                                                      \
    for (uint32_t i = 0; i < NUMBERS; i++) {                                                                                   \
        const float x = widened(i, half);                                                                                      \
        const uint16_t want = narrowed(canon_##name##_f32(x), half);                                                           \
        const uint16_t got = narrowed(short_form, half);                                                                       \
        if (got != want)                                                                                                       \
            fail_msg("%s of %s %04x: %04x, not %04x", #name, (half) ? "f16" : "bf16", i, got, want);                           \
    }

static void short_forms_round_to_the_bits_of_the_canonical_ones(void **state)
{
    (void)state;
    for (int twice = 0; twice < 4; twice++) {
        const int half = twice % 2;
        inverses_are_small = twice / 2;
        ALL_AGREE(exp, half, half_exp_f32(x, half))
        ALL_AGREE(tanh, half, half_tanh_f32(x, half))
        ALL_AGREE(silu, half, half_silu_f32(x, half))
        ALL_AGREE(gelu, half, half_gelu_f32(x, half))
        ALL_AGREE(log, half, half_log_f32(x, half))
        ALL_AGREE(sqrt, half, half_sqrt_f32(x, half))
        ALL_AGREE(recip, half, half_recip_f32(x))
        ALL_AGREE(rsqrt, half, half_rsqrt_f32(x))
        if (!half)
            ALL_AGREE(sigmoid, half, half_sigmoid_bf16_f32(x))
    }
}

/* A chip's own inverse is off by up to one unit, its inverse root by two. They may replace the exact values if every value that
 * near to the exact one rounds to the same 16 bits. This checks that. */
static void check_room(const char *name, uint32_t number, float value, int half, int units)
{
    if (!(fabsf(value) < INFINITY) || value == 0.0f)
        return;
    for (int off = -units; off <= units; off++)
        if (narrowed(canon_bits_float(canon_float_bits(value) + (uint32_t)off), half) != narrowed(value, half))
            fail_msg("%s of %s %04x, %a, is %d units from a middle", name, half ? "f16" : "bf16", number, value, off);
}

static void inverses_of_16_bits_leave_room_for_a_chips_own(void **state)
{
    (void)state;
    for (int half = 0; half < 2; half++)
        for (uint32_t i = 0; i < NUMBERS; i++) {
            check_room("1 over", i, canon_recip_f32(widened(i, half)), half, half ? 1 : 4);
            check_room("1 over the root", i, canon_rsqrt_f32(widened(i, half)), half, half ? 2 : 4);
            if (!half)
                check_room("the root", i, canon_sqrt_f32(widened(i, half)), half, 4);
        }
}

/* A chip's inverse, off by less than a unit, is improved by one step of Newton's method, for every mantissa. */
static void short_inverses_are_right_but_for_one_mantissa(void **state)
{
    (void)state;
    uint32_t wrong = 0;
    for (uint32_t mantissa = 0; mantissa < 1u << 23; mantissa++) {
        const float d = canon_bits_float(0x3f800000u | mantissa), right = 1.0f / d;
        const double unit = right < 1.0f ? 0x1p-24 : 0x1p-23;
        for (int off = -1; off <= 1; off++) {
            const float near = canon_bits_float(canon_float_bits(right) + (uint32_t)off);
            const float stepped = canon_fma_f32(canon_fma_f32(-d, near, 1.0f), near, near);
            if (fabs((double)near - 1.0 / (double)d) >= unit || stepped == right)
                continue;
            if (mantissa != 0x7fffffu || stepped != nextafterf(right, 0.0f))
                fail_msg("1 over %a from %a: %a, not %a", d, near, stepped, right);
            wrong++;
        }
    }
    assert_true(wrong > 0);
}

static float number_of_bits(uint64_t bits, uint64_t i)
{
    static const float some[] = {0.0f, -0.0f,   1.0f,    -1.0f,     2.0f,      -3.0f,    0.5f,
                                 1.5f, 0x1p24f, 0x1p41f, 0x1p-126f, 0x1p-149f, INFINITY, NAN};
    enum { SOME = sizeof some / sizeof *some };
    return i % 4 == 0   ? some[bits % SOME]
           : i % 4 == 1 ? canon_bits_float((uint32_t)bits)
                        : (float)((double)(int64_t)bits * 0x1p-63 * (i % 4 == 2 ? 3 : 50));
}

static math_pow_f32 pow_entry_of(float x)
{
    const float *table = math_pow_table_f32();
    const uint32_t entry = math_pow_interval_f32(math_pow_bits_of_f32(x, 1));
    return (math_pow_f32){table[entry], table[MATH_POW_COLUMN + entry], table[2 * MATH_POW_COLUMN + entry]};
}

static bool is_in_range(float x, math_pow_range_f32 range)
{
    const uint32_t size = canon_float_bits(x) & 0x7fffffffu;
    return size >= range.min && size <= range.max;
}

static void check_atan2(float y, float x, int plain)
{
    if (MATH_ATAN2_PLAIN_F32(y, x) && bits_of(math_atan2_f32(y, x, plain)) != bits_of(canon_atan2_f32(y, x)))
        fail_msg("atan2 of %a, %a: %a, not %a", y, x, math_atan2_f32(y, x, plain), canon_atan2_f32(y, x));
}

static void plain_forms_give_the_canonical_bits(void **state)
{
    (void)state;
    uint64_t plain[3] = {0, 0, 0};
    for (uint64_t i = 0; i < 400000; i++) {
        const float x = number_of_bits(mixed(2 * i), i / 4);
        const float y = number_of_bits(mixed(2 * i + 1), i);
        if (MATH_POW_PLAIN_F32(x, y)) {
            const float value = math_pow_of_f32(x, y, pow_entry_of(x), 1);
            plain[0]++;
            if (bits_of(value) != bits_of(canon_pow_f32(x, y)))
                fail_msg("pow of %a, %a: %a, not %a", x, y, value, canon_pow_f32(x, y));
        }
        if (is_in_range(x, math_pow_range_of_f32(y))) {
            const float value = math_pow_normal_f32(x, math_pow_bits_of_f32(x, 1), y, pow_entry_of(x));
            plain[1]++;
            if (bits_of(value) != bits_of(canon_pow_f32(x, y)))
                fail_msg("normal pow of %a, %a: %a, not %a", x, y, value, canon_pow_f32(x, y));
        }
        if (MATH_ATAN2_PLAIN_F32(x, y)) {
            plain[2]++;
            check_atan2(x, y, MATH_PLAIN);
            check_atan2(widened(narrowed(x, 1), 1), widened(narrowed(y, 1), 1), MATH_PLAIN_16);
            check_atan2(widened(narrowed(x, 0), 0), widened(narrowed(y, 0), 0), MATH_PLAIN_16);
        }
    }
    assert_true(plain[0] > 150000 && plain[1] > 100000 && plain[2] > 150000);
}

/* At both ends of every range, the power must still be a normal number. */
static void ranges_of_powers_end_where_powers_are_normal(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 100000; i++) {
        const float y = number_of_bits(mixed(i), i);
        const math_pow_range_f32 range = math_pow_range_of_f32(y);
        assert_true(range.min > range.max || (range.min >= 0x00800000u && range.max < 0x7f800000u));
        for (int end = 0; end < 2 && range.min <= range.max; end++) {
            const float x = canon_bits_float(end ? range.max : range.min);
            const float power = canon_pow_f32(x, y);
            if (!(power >= 0x1p-126f && power < INFINITY))
                fail_msg("%a to the power of %a is %a", x, y, power);
        }
    }
}

/* What math_pow_ends_f32 counts on: of the logarithm, 3 u for all numbers, and of the power less than 1.8 u. */
static void short_logarithms_and_powers_are_as_near_as_bounds_say(void **state)
{
    (void)state;
    for (int half = 0; half < 2; half++)
        for (uint32_t i = 1; i < NUMBERS / 2; i++) {
            const float x = widened(i, half);
            const double exact = log2((double)x);
            if (x >= 0x1p-126f && x < INFINITY && fabs((double)math_short_log2_f32(x) - exact) > 3 * 0x1p-24 * fabs(exact))
                fail_msg("log2 of %a: %a", x, math_short_log2_f32(x));
        }
    for (uint64_t i = 0; i < 4000000; i++) {
        const float x = (float)((double)(int64_t)mixed(i) * 0x1p-63 * (i % 2 == 0 ? 0.5 : 16));
        const math_exp2_parts_f32 parts = math_short_exp2_f32(x, 1);
        const double value = ldexp((double)parts.value, (int)(parts.shifted - 0x4b400000u));
        if (fabs(value - exp2((double)x)) > 1.8 * 0x1p-24 * exp2((double)x))
            fail_msg("2 to the power of %a: %a", x, value);
    }
}

/* Returns true if the bounds do not decide. Otherwise the canonical form must give their result. */
static bool is_open(const char *name, math_bounds_f32 bounds, float canonical, uint32_t x, uint32_t y, int half)
{
    const float low = widened(narrowed(bounds.low, half), half);
    const float high = widened(narrowed(bounds.high, half), half);
    if (low == high && narrowed(bounds.value, half) != narrowed(canonical, half))
        fail_msg("%s of %s %04x, %04x: %a, not %a", name, half ? "f16" : "bf16", x, y, bounds.value, canonical);
    return low != high;
}

static void where_bounds_agree_the_canonical_form_agrees_with_them(void **state)
{
    (void)state;
    enum { PAIRS = 400000 };
    for (int half = 0; half < 2; half++) {
        uint64_t open[3] = {0, 0, 0};
        for (uint64_t i = 0; i < PAIRS; i++) {
            const bool any = i % 2 == 0; /* any bits, or a special number and any bits; otherwise ordinary numbers */
            const uint64_t more = mixed(i);
            const uint32_t some = (uint32_t)more;
            const uint32_t special = narrowed(number_of_bits(more >> 32, 0), half);
            const uint32_t x = i % 4 == 0 ? special
                               : any      ? some >> 16
                                          : narrowed((float)((int32_t)some >> 16) * 0x1p-14f, half);
            const uint32_t y = any ? some & 65535 : narrowed((float)((int32_t)(some << 16) >> 16) * 0x1p-12f, half);
            const float f = widened(x, half);
            const float g = widened(y, half);
            const bool pow = is_open("pow", math_pow_bounds_f32(f, g, half), canon_pow_f32(f, g), x, y, half);
            const bool atan2 = is_open("atan2", math_atan2_bounds_f32(f, g, half), canon_atan2_f32(f, g), x, y, half);
            open[0] += !any && pow;
            open[1] += !any && atan2;
            if (MATH_POW_PLAIN_F32(f, g) && fabsf(g) < 0x1p22f) {
                const math_ends_f32 ends = math_pow_ends_f32(f, g, half);
                const math_bounds_f32 bounds = {ends.low, ends.high, ends.none ? NAN : ends.high};
                open[2] += is_open("pow of plain numbers", bounds, canon_pow_f32(f, g), x, y, half) && !any;
            }
        }
        assert_true(open[0] < PAIRS / 2 / 100 && open[1] < PAIRS / 2 / 200 && open[2] < PAIRS / 2 / 300);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_forms_round_to_the_bits_of_the_canonical_ones),
        cmocka_unit_test(inverses_of_16_bits_leave_room_for_a_chips_own),
        cmocka_unit_test(short_inverses_are_right_but_for_one_mantissa),
        cmocka_unit_test(plain_forms_give_the_canonical_bits),
        cmocka_unit_test(ranges_of_powers_end_where_powers_are_normal),
        cmocka_unit_test(short_logarithms_and_powers_are_as_near_as_bounds_say),
        cmocka_unit_test(where_bounds_agree_the_canonical_form_agrees_with_them),
    };
    return cmocka_run_group_tests_name("forms of functions", tests, NULL, NULL);
}
