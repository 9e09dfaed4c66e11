/* The short forms of functions of 16-bit numbers against the canonical ones, for every number there is. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_forms_round_to_the_bits_of_the_canonical_ones),
        cmocka_unit_test(inverses_of_16_bits_leave_room_for_a_chips_own),
    };
    return cmocka_run_group_tests_name("short forms of functions", tests, NULL, NULL);
}
