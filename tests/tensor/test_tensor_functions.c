/* Functions of one element on every type and layout, to the bit, and the numbers that some of them take. */
#include "support/elementwise.h"

/* The simple ones against the C library. */
static void exact_functions_are_exact(void **state)
{
    test_random random = {10};
    const int64_t count = 3000;
    test_tensor x = test_tensor_make(*state, &random, WW_F32, 1, &count, TEST_DENSE);
    static const ww_unary ops[] = {WW_ABS, WW_NEG, WW_RECIP, WW_SQR, WW_SQRT, WW_FLOOR, WW_CEIL, WW_ROUND};
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
        ww_tensor out = {0};
        CHECK_OK(ww_tensor_unary(ops[o], &x.tensor, &out));
        uint8_t *bytes = storage_bytes(out.storage);
        for (int64_t i = 0; i < count; i++) {
            const float f = (float)number_of(WW_F32, test_tensor_bits(&x, i));
            const float want[] = {fabsf(f), -f, 1.0f / f, f * f, sqrtf(f), floorf(f), ceilf(f), roundf(f)};
            assert_int_equal(bits_of(bytes, WW_F32, i), bits_nearest(WW_F32, want[o]));
        }
        free(bytes);
        ww_tensor_release(&out);
    }
    test_tensor_free(&x);
}

static void check_unary(ww_device *device, test_random *random, ww_unary op, ww_dtype dtype, test_layout style)
{
    const bool floats_only = op == WW_RECIP || op == WW_SQRT || op == WW_RSQRT || op > WW_SIGN;
    const bool refused = dtype == WW_I8 || (!is_float(dtype) && floats_only) || (op == WW_NEG && is_unsigned(dtype));
    const bool large = style == TEST_DENSE && (dtype == WW_F32 || dtype == WW_F16 || (dtype == WW_F8E4M3 && op == WW_NEG));
    const int32_t rank = large ? 1 : 1 + (int32_t)random_below(random, 4);
    int64_t shape[4];
    ww_tensor out = {0};
    random_shape(random, rank, 400, shape);
    if (large)
        shape[0] = tile_and_some(dtype);
    test_tensor x = test_tensor_make(device, random, dtype, rank, shape, style);
    if (refused) {
        CHECK_FAILS(WW_UNSUPPORTED, ww_tensor_unary(op, &x.tensor, &out));
        assert_null(out.storage);
    } else {
        CHECK_OK(ww_tensor_unary(op, &x.tensor, &out));
        check_result(ww_unary_name(op), &out, dtype, &x, (int32_t)op, unary_expected);
    }
    test_tensor_free(&x);
}

static void unary_operations_match_their_definitions(void **state)
{
    test_random random = {12};
    for (int op = WW_ABS; op <= WW_GELU_ERF; op++)
        for (int type = 0; type < TEST_TYPES; type++)
            for (int style = TEST_DENSE; style <= TEST_BROADCAST; style++)
                check_unary(*state, &random, (ww_unary)op, (ww_dtype)type, (test_layout)style);
}

/* Every value of a 16-bit type, and each several times, so that a GPU may look the results up. Emulated devices, which have no
 * room for that, take some of the values. */
static uint16_t *all_values(ww_device *device, int32_t from, int64_t *count)
{
    enum { VALUES = 65536 };
    const bool slow = device_is_slow(device);
    *count = slow ? 9000 : 4 * VALUES + 13;
    uint16_t *all = malloc((size_t)*count * sizeof *all);
    for (int64_t i = 0; i < *count; i++)
        all[i] = (uint16_t)(slow ? i * 7 + from : i);
    return all;
}

static void check_function(ww_device *device, ww_unary op, ww_dtype dtype)
{
    int64_t count;
    uint16_t *all = all_values(device, (int32_t)op, &count);
    ww_tensor out = {0};
    test_tensor x = test_tensor_of(device, dtype, 1, &count, all);
    CHECK_OK(ww_tensor_unary(op, &x.tensor, &out));
    uint16_t *got = (uint16_t *)storage_bytes(out.storage);
    for (int64_t i = 0; i < count; i++) {
        const uint64_t want = i < 65536 ? unary_expected(&x, (int32_t)op, i) : got[i - 65536];
        if (got[i] != want)
            fail_msg("%s, %s, of %x: %x, not %x", ww_unary_name(op), ww_dtype_name(dtype), all[i], got[i], (unsigned)want);
    }
    free(got);
    ww_tensor_release(&out);
    test_tensor_free(&x);
    free(all);
}

static void functions_of_16_bits_are_right_for_every_value(void **state)
{
    for (int op = WW_RECIP; op <= WW_GELU_ERF; op++)
        if (op == WW_RECIP || op == WW_SQRT || op == WW_RSQRT || op >= WW_EXP) {
            check_function(*state, (ww_unary)op, WW_F16);
            check_function(*state, (ww_unary)op, WW_BF16);
        }
}

/* With a parameter: often enough that a GPU makes a table for it, and another one for the next value. */
static void check_numbered(ww_device *device, bool elu, ww_dtype dtype, float number, int64_t times)
{
    int64_t count;
    uint16_t *all = all_values(device, 3, &count);
    uint16_t *more = malloc((size_t)(count * times) * sizeof *more);
    ww_tensor out = {0};
    for (int64_t i = 0; i < count * times; i++)
        more[i] = all[i % count];
    const int64_t total = count * times;
    test_tensor x = test_tensor_of(device, dtype, 1, &total, more);
    CHECK_OK(elu ? ww_tensor_elu(&x.tensor, number, &out) : ww_tensor_powf(&x.tensor, number, &out));
    uint16_t *got = (uint16_t *)storage_bytes(out.storage);
    for (int64_t i = 0; i < total; i++) {
        const float of = (float)number_of(dtype, more[i]);
        const uint64_t want =
            i < count ? bits_nearest(dtype, elu ? canon_elu_f32(of, number) : canon_pow_f32(of, number)) : got[i - count];
        if (got[i] != want)
            fail_msg("%s, %s, %g, of %x: %x, not %x", elu ? "elu" : "powf", ww_dtype_name(dtype), (double)number, more[i],
                     got[i], (unsigned)want);
    }
    free(got);
    ww_tensor_release(&out);
    test_tensor_free(&x);
    free(more);
    free(all);
}

static void functions_of_16_bits_take_one_number_after_another(void **state)
{
    const int64_t times = device_is_slow(*state) ? 1 : 17;
    for (int elu = 0; elu < 2; elu++)
        for (int half = 0; half < 2; half++) {
            const ww_dtype dtype = half ? WW_F16 : WW_BF16;
            check_numbered(*state, elu, dtype, 1.5f, times); /* a table is made, */
            check_numbered(*state, elu, dtype, 1.5f, 1);     /* is used, */
            check_numbered(*state, elu, dtype, 2.3f, 1);     /* is not for another number, */
            check_numbered(*state, elu, dtype, 2.3f, times); /* and neither is that of the other type */
        }
}

static uint64_t powf_expected(const test_tensor *xs, int32_t op, int64_t i)
{
    const ww_dtype dtype = ww_storage_dtype(xs[0].tensor.storage);
    const double x = (double)number_of(dtype, test_tensor_bits(&xs[0], i));
    if (op == 0)
        return bits_nearest(dtype, dtype == WW_F64 ? canon_pow_f64(x, 2.3) : canon_pow_f32((float)x, 2.3f));
    return bits_nearest(dtype, dtype == WW_F64 ? canon_elu_f64(x, 1.7) : canon_elu_f32((float)x, 1.7f));
}

static void check_parametric(ww_device *device, test_random *random, int op, ww_dtype dtype)
{
    const bool large = dtype == WW_F32; /* more than a tile of a GPU's */
    const int64_t shape[2] = {30, large ? 141 : 31};
    ww_tensor out = {0};
    test_tensor x = test_tensor_make(device, random, dtype, 2, shape, large ? TEST_DENSE : (test_layout)((int)dtype % 3));
    const ww_status status = op == 0 ? ww_tensor_powf(&x.tensor, 2.3, &out) : ww_tensor_elu(&x.tensor, 1.7, &out);
    if (!is_float(dtype)) {
        assert_int_equal(status, WW_UNSUPPORTED);
    } else {
        CHECK_OK(status);
        check_result(op == 0 ? "powf" : "elu", &out, dtype, &x, op, powf_expected);
    }
    test_tensor_free(&x);
}

static void powf_and_elu_take_their_number(void **state)
{
    test_random random = {17};
    for (int type = 0; type < TEST_TYPES; type++)
        for (int op = 0; op < 2; op++)
            check_parametric(*state, &random, op, (ww_dtype)type);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_functions_are_exact),
        cmocka_unit_test(unary_operations_match_their_definitions),
        cmocka_unit_test(functions_of_16_bits_are_right_for_every_value),
        cmocka_unit_test(functions_of_16_bits_take_one_number_after_another),
        cmocka_unit_test(powf_and_elu_take_their_number),
    };
    return RUN_ON_EVERY_DEVICE("functions of tensors", tests);
}
