/* Forms of functions that kernels take instead of the canonical ones: the short ones of 16-bit numbers, for every number there
 * is, and those of pow and atan2 that have no care for special values, for a sample of the others. */
#include "support/check.h"

#include <math.h>

#include "kernels/convert.h"
#include "kernels/math_short_f32.h"

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
    for (int half = 0; half < 2; half++) {
        ALL_AGREE(exp, half, short_exp_f32(x, half))
        ALL_AGREE(tanh, half, short_tanh_f32(x, half))
        ALL_AGREE(silu, half, short_silu_f32(x, half))
        ALL_AGREE(sqrt, half, short_sqrt_f32(x, half))
        ALL_AGREE(recip, half, short_recip_f32(x))
        ALL_AGREE(rsqrt, half, short_rsqrt_f32(x))
    }
    ALL_AGREE(sigmoid, 0, short_sigmoid_bf16_f32(x))
}

/* What lets a chip's own inverse, off by a unit, and its inverse root, off by two, stand for the right ones: whatever is that
 * near to the right value rounds to the same 16 bits. */
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

static uint64_t mixed(uint64_t x)
{
    x *= 0x9e3779b97f4a7c15u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
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

static void plain_forms_give_the_canonical_bits(void **state)
{
    (void)state;
    const float *table = math_pow_table_f32();
    uint64_t plain[2] = {0, 0};
    for (uint64_t i = 0; i < 400000; i++) {
        const float x = number_of_bits(mixed(2 * i), i / 4);
        const float y = number_of_bits(mixed(2 * i + 1), i);
        if (MATH_POW_PLAIN_F32(x, y)) {
            const uint32_t entry = math_pow_interval_f32(x, 1);
            const math_pow_f32 of = {table[entry], table[MATH_POW_COLUMN + entry], table[2 * MATH_POW_COLUMN + entry]};
            plain[0]++;
            if (bits_of(math_pow_of_f32(x, y, of, 1)) != bits_of(canon_pow_f32(x, y)))
                fail_msg("pow of %a, %a: %a, not %a", x, y, math_pow_of_f32(x, y, of, 1), canon_pow_f32(x, y));
        }
        if (MATH_ATAN2_PLAIN_F32(x, y)) {
            plain[1]++;
            if (bits_of(math_atan2_f32(x, y, 1)) != bits_of(canon_atan2_f32(x, y)))
                fail_msg("atan2 of %a, %a: %a, not %a", x, y, math_atan2_f32(x, y, 1), canon_atan2_f32(x, y));
        }
    }
    assert_true(plain[0] > 150000 && plain[1] > 150000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_forms_round_to_the_bits_of_the_canonical_ones),
        cmocka_unit_test(inverses_of_16_bits_leave_room_for_a_chips_own),
        cmocka_unit_test(plain_forms_give_the_canonical_bits),
    };
    return cmocka_run_group_tests_name("forms of functions", tests, NULL, NULL);
}
