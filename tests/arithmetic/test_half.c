/* The 16-bit floats against their definition: every one of them widened, and narrowed from both sides of every halfway point.
 */
#include "support/check.h"

#include <math.h>
#include <string.h>

#include "arithmetic/half.h"
#include "support/data/random.h"

/* sign x 2^(exponent-bias) x 1.fraction, or 0.fraction below: in double, where all of it is exact. */
static double f16_by_definition(uint16_t half)
{
    const int exponent = half >> 10 & 0x1f, fraction = half & 0x3ff;
    const double magnitude = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
    return half & 0x8000 ? -magnitude : magnitude;
}

static double bf16_by_definition(uint16_t half)
{
    const int exponent = half >> 7 & 0xff, fraction = half & 0x7f;
    const double magnitude = exponent == 0 ? ldexp(fraction, -133) : ldexp(128 + fraction, exponent - 134);
    return half & 0x8000 ? -magnitude : magnitude;
}

static void every_f16_widens_to_its_value_and_narrows_back(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 65536; i++) {
        const uint16_t half = (uint16_t)i;
        const float value = f32_from_f16(half);
        if ((half & 0x7c00) == 0x7c00) {
            if ((half & 0x3ff) == 0)
                assert_true(value == (half & 0x8000 ? -INFINITY : INFINITY));
            else
                assert_true(isnan(value));
            assert_int_equal(f16_from_f32(value), (half & 0x3ff) ? half | 0x200 : half);
            continue;
        }
        assert_true((double)value == f16_by_definition(half));
        assert_int_equal(signbit(value) != 0, half >> 15);
        assert_int_equal(f16_from_f32(value), half);
    }
}

static void every_bf16_widens_to_its_value_and_narrows_back(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 65536; i++) {
        const uint16_t half = (uint16_t)i;
        const float value = f32_from_bf16(half);
        if ((half & 0x7f80) == 0x7f80) {
            if ((half & 0x7f) == 0)
                assert_true(value == (half & 0x8000 ? -INFINITY : INFINITY));
            else
                assert_true(isnan(value));
            assert_int_equal(bf16_from_f32(value), (half & 0x7f) ? half | 0x40 : half);
            continue;
        }
        assert_true((double)value == bf16_by_definition(half));
        assert_int_equal(signbit(value) != 0, half >> 15);
        assert_int_equal(bf16_from_f32(value), half);
    }
}

typedef uint16_t (*narrowing)(float value);

/* `low` and the next code above it are neighbours; `middle` is halfway between them and exact in f32. */
static void check_halfway(narrowing narrow, uint16_t low, float middle)
{
    const uint16_t even = low & 1 ? (uint16_t)(low + 1) : low;
    assert_int_equal(narrow(middle), even);
    assert_int_equal(narrow(-middle), even | 0x8000);
    assert_int_equal(narrow(nextafterf(middle, 0.0f)), low);
    assert_int_equal(narrow(nextafterf(middle, INFINITY)), low + 1);
}

static void narrowing_to_f16_rounds_to_nearest_and_ties_to_even(void **state)
{
    (void)state;
    for (uint16_t low = 0; low < 0x7bff; low++)
        check_halfway(f16_from_f32, low, (float)((f16_by_definition(low) + f16_by_definition((uint16_t)(low + 1))) / 2));
    check_halfway(f16_from_f32, 0x7bff, 65520.0f); /* the last code before infinity */
    assert_int_equal(f16_from_f32(3.4e38f), 0x7c00);
    assert_int_equal(f16_from_f32(-INFINITY), 0xfc00);
    assert_int_equal(f16_from_f32(1e-45f), 0);
    assert_int_equal(f16_from_f32(-1e-45f), 0x8000);
}

static void narrowing_to_bf16_rounds_to_nearest_and_ties_to_even(void **state)
{
    (void)state;
    for (uint16_t low = 0; low < 0x7f7f; low++)
        check_halfway(bf16_from_f32, low, (float)((bf16_by_definition(low) + bf16_by_definition((uint16_t)(low + 1))) / 2));
    assert_int_equal(bf16_from_f32(3.4028235e38f), 0x7f80);
    assert_int_equal(bf16_from_f32(-INFINITY), 0xff80);
}

static void narrowing_any_float_gives_the_nearer_neighbour(void **state)
{
    (void)state;
    test_random random = {11};
    for (int i = 0; i < 300000; i++) {
        const uint32_t bits = (uint32_t)random_bits(&random);
        float value;
        memcpy(&value, &bits, sizeof value);
        const uint16_t half = f16_from_f32(value);
        if (isnan(value)) {
            assert_true(isnan(f32_from_f16(half)) && isnan(f32_from_bf16(bf16_from_f32(value))));
            continue;
        }
        if (fabsf(value) < 65520.0f) {
            const double error = fabs(f16_by_definition(half) - (double)value);
            assert_true(error <= fabs(f16_by_definition((uint16_t)(half + 1)) - (double)value));
            if (half & 0x7fff)
                assert_true(error <= fabs(f16_by_definition((uint16_t)(half - 1)) - (double)value));
        } else {
            assert_int_equal(half & 0x7fff, 0x7c00);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_f16_widens_to_its_value_and_narrows_back),
        cmocka_unit_test(every_bf16_widens_to_its_value_and_narrows_back),
        cmocka_unit_test(narrowing_to_f16_rounds_to_nearest_and_ties_to_even),
        cmocka_unit_test(narrowing_to_bf16_rounds_to_nearest_and_ties_to_even),
        cmocka_unit_test(narrowing_any_float_gives_the_nearer_neighbour),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
