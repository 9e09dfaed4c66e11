/* pow, powf and atan2 to the bit where a GPU has ways of its own for them: bounds of 16-bit types that mostly agree, and powers
 * of f32 that mostly are normal numbers. Alternately ordinary numbers, numbers with exact results, and any bits. */
#include "support/elementwise.h"

#include <string.h>

enum { KIND_ELEMENTS = 64 }; /* of one kind follow each other: threads of a GPU take some neighbours at a time */

static float value_for(test_random *random, int64_t i, float most)
{
    switch (i / KIND_ELEMENTS % 4) {
    case 0:
        return canon_bits_float((uint32_t)random_bits(random));
    case 1:
        return (float)((int32_t)random_below(random, 33) - 16) * 0.5f;
    default:
        return random_uniform(random) * most;
    }
}

static void *values_for(test_random *random, ww_dtype dtype, int64_t count, float most)
{
    const size_t bytes = ww_dtype_bytes(dtype);
    uint8_t *values = malloc((size_t)count * bytes);
    for (int64_t i = 0; i < count; i++) {
        const uint64_t any = random_bits(random);
        const bool plain = i / KIND_ELEMENTS % 4 != 0 || dtype == WW_F32;
        const uint64_t bits = plain ? bits_nearest(dtype, (double)value_for(random, i, most)) : any;
        memcpy(values + (size_t)i * bytes, &bits, bytes);
    }
    return values;
}

static uint64_t pair_expected(const test_tensor *xs, int32_t op, int64_t i)
{
    const ww_dtype dtype = ww_storage_dtype(xs[0].tensor.storage);
    const float x = (float)number_of(dtype, test_tensor_bits(&xs[0], i));
    const float y = (float)number_of(dtype, test_tensor_bits(&xs[1], i));
    return bits_nearest(dtype, (double)(op == WW_POW ? canon_pow_f32(x, y) : canon_atan2_f32(x, y)));
}

static void powers_and_angles_of_16_bits_are_right_for_many_pairs(void **state)
{
    test_random random = {31};
    const int64_t count = device_is_slow(*state) ? 3 * 8192 + 5 : 1 << 18;
    for (int type = WW_BF16; type <= WW_F16; type++)
        for (int op = WW_POW; op <= WW_ATAN2; op++) {
            void *x = values_for(&random, (ww_dtype)type, count, 2.0f);
            void *y = values_for(&random, (ww_dtype)type, count, 9.0f);
            ww_tensor out = {0};
            test_tensor xs[2] = {test_tensor_of(*state, (ww_dtype)type, 1, &count, x),
                                 test_tensor_of(*state, (ww_dtype)type, 1, &count, y)};
            CHECK_OK(ww_tensor_binary((ww_binary)op, &xs[0].tensor, &xs[1].tensor, &out));
            check_result(ww_binary_name((ww_binary)op), &out, (ww_dtype)type, xs, op, pair_expected);
            test_tensor_free(&xs[0]);
            test_tensor_free(&xs[1]);
            free(x);
            free(y);
        }
}

static const float exponents[] = {2.3f,   2.0f,   -3.0f,  0.5f,    1.0f,    -1.0f,   0.0f,    0x1p-149f, 40.0f,
                                  -90.5f, 125.0f, 127.0f, 1001.0f, 0x1p24f, 0x1p40f, 0x1p41f, INFINITY,  NAN};

static uint64_t power_expected(const test_tensor *x, int32_t exponent, int64_t i)
{
    return bits_nearest(WW_F32, (double)canon_pow_f32((float)number_of(WW_F32, test_tensor_bits(x, i)), exponents[exponent]));
}

static void powf_of_f32_takes_any_exponent(void **state)
{
    test_random random = {32};
    const int64_t count = device_is_slow(*state) ? 4096 + 5 : 1 << 17;
    void *values = values_for(&random, WW_F32, count, 2.0f);
    test_tensor x = test_tensor_of(*state, WW_F32, 1, &count, values);
    for (size_t e = 0; e < sizeof exponents / sizeof *exponents; e++) {
        ww_tensor out = {0};
        CHECK_OK(ww_tensor_powf(&x.tensor, (double)exponents[e], &out));
        check_result("powf", &out, WW_F32, &x, (int32_t)e, power_expected);
    }
    test_tensor_free(&x);
    free(values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(powers_and_angles_of_16_bits_are_right_for_many_pairs),
        cmocka_unit_test(powf_of_f32_takes_any_exponent),
    };
    return RUN_ON_EVERY_DEVICE("powers of tensors", tests);
}
