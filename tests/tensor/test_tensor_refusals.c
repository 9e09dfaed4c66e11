/* Invalid or unsuitable tensors are refused before anything is done, with the reason in the message. */
#include <string.h>

#include "support/devices.h"
#include "support/tensors.h"

static void says(const char *text)
{
    if (!strstr(ww_error_message(), text))
        fail_msg("'%s' does not say '%s'", ww_error_message(), text);
}

static void invalid_layouts_are_refused(void **state)
{
    const int64_t shape[] = {2, 3};
    const float numbers[6] = {0};
    test_tensor x = test_tensor_of(*state, WW_F32, 2, shape, numbers);
    ww_tensor out = {0};
    ww_tensor bad = x.tensor;
    bad.layout.rank = 9;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_unary(WW_ABS, &bad, &out));
    says("rank 9");
    bad.layout = ww_layout_contiguous(9, shape);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_contiguous(&bad, &out));
    bad = x.tensor;
    bad.layout.strides[0] = 4;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_tensor_unary(WW_ABS, &bad, &out));
    says("[2, 3]");
    says("[4, 1]");
    bad = x.tensor;
    bad.layout.offset = 1;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_tensor_cast(&bad, WW_F16, &out));
    bad.layout.offset = -1;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_cast(&bad, WW_F16, &out));
    bad = x.tensor;
    bad.layout.strides[1] = -1;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_cast(&bad, WW_F16, &out));
    bad.layout.strides[1] = INT64_MAX;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_tensor_cast(&bad, WW_F16, &out));
    bad = x.tensor;
    bad.layout.shape[0] = bad.layout.shape[1] = INT64_C(1) << 40;
    bad.layout.strides[0] = bad.layout.strides[1] = 0;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_unary(WW_ABS, &bad, &out));
    says("1099511627776");
    bad.layout.shape[1] = INT64_C(1) << 21;
    CHECK_FAILS(WW_OUT_OF_MEMORY, ww_tensor_unary(WW_ABS, &bad, &out));
    assert_null(out.storage);
    test_tensor_free(&x);
}

static void operands_that_do_not_fit_are_refused_with_both(void **state)
{
    test_random random = {7};
    const int64_t a[] = {2, 3}, b[] = {3, 2};
    test_tensor x = test_tensor_make(*state, &random, WW_F32, 2, a, TEST_DENSE);
    test_tensor y = test_tensor_make(*state, &random, WW_F32, 2, b, TEST_DENSE);
    test_tensor z = test_tensor_make(*state, &random, WW_I64, 2, a, TEST_DENSE);
    ww_tensor out = {0};
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_binary(WW_ADD, &x.tensor, &y.tensor, &out));
    says("[2, 3]");
    says("[3, 2]");
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_binary(WW_ADD, &x.tensor, &z.tensor, &out));
    says("f32");
    says("i64");
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_cmp(WW_EQ, &x.tensor, &z.tensor, &out));
    CHECK_FAILS(WW_UNSUPPORTED, ww_tensor_where(&x.tensor, &x.tensor, &x.tensor, &out));
    says("f32");
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_where(&z.tensor, &y.tensor, &y.tensor, &out));
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_copy_strided(&x.tensor, &y.tensor));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_copy_strided(&x.tensor, &z.tensor));
    CHECK_FAILS(WW_UNSUPPORTED, ww_tensor_unary(WW_SQRT, &z.tensor, &out));
    says("sqrt");
    const ww_tensor list[] = {x.tensor, y.tensor}, mixed[] = {x.tensor, z.tensor};
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_cat(list, 2, 0, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_cat(mixed, 2, 0, &out));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_tensor_cat(list, 2, 2, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_cat(list, 0, 0, &out));
    assert_null(out.storage);
    ww_tensor repeated = x.tensor;
    repeated.layout.strides[0] = 0;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_copy_strided(&x.tensor, &repeated));
    repeated.layout.strides[0] = 2;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_copy_strided(&x.tensor, &repeated));
    test_tensor_free(&x);
    test_tensor_free(&y);
    test_tensor_free(&z);
}

static void two_devices_are_refused(void **state)
{
    test_random random = {8};
    const int64_t count = 4;
    ww_device *other = NULL;
    ww_tensor out = {0};
    CHECK_OK(ww_device_open("cpu", &other));
    test_tensor x = test_tensor_make(*state, &random, WW_F32, 1, &count, TEST_DENSE);
    test_tensor y = test_tensor_make(other, &random, WW_F32, 1, &count, TEST_DENSE);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_binary(WW_ADD, &x.tensor, &y.tensor, &out));
    says("copy one to the other");
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_copy_strided(&x.tensor, &y.tensor));
    assert_null(out.storage);
    ww_device_close(other); /* the storage keeps it */
    test_tensor_free(&x);
    test_tensor_free(&y);
}

static void null_and_nonsense_are_refused(void **state)
{
    ww_tensor out = {0};
    const ww_tensor none = {0};
    const int32_t number = 0;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_storage_create(NULL, WW_F32, 1, &out.storage));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_storage_create(*state, (ww_dtype)99, 1, &out.storage));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_storage_create(*state, WW_F32, -1, &out.storage));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_storage_create(*state, WW_F32, 1, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_zeros(*state, WW_F32, 1, (int64_t[]){1}, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_storage_from_host(*state, WW_F32, 1, NULL, &out.storage));
    CHECK_FAILS(WW_OUT_OF_MEMORY, ww_storage_create(*state, WW_F32, INT64_MAX, &out.storage));
    CHECK_FAILS(WW_OUT_OF_MEMORY, ww_storage_create(*state, WW_F32, INT64_C(1) << 50, &out.storage));
    says("free");
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_storage_to_host(NULL, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_contiguous(NULL, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_copy_to(NULL, *state, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_device_synchronize(NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_unary(WW_ABS, NULL, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_unary(WW_ABS, &none, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_unary((ww_unary)99, &none, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_binary((ww_binary)99, &none, &none, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_cmp((ww_cmp)99, &none, &none, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_const_set(&none, &number));
    ww_storage_release(NULL);
    assert_int_equal(ww_storage_elements(NULL), 0);
    assert_null(out.storage);
    const int64_t count = 3;
    const int32_t numbers[3] = {0};
    test_tensor x = test_tensor_of(*state, WW_I32, 1, &count, numbers);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_cast(&x.tensor, (ww_dtype)99, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_unary(WW_ABS, &x.tensor, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_const_set(&x.tensor, NULL));
    test_tensor_free(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(invalid_layouts_are_refused),
        cmocka_unit_test(operands_that_do_not_fit_are_refused_with_both),
        cmocka_unit_test(two_devices_are_refused),
        cmocka_unit_test(null_and_nonsense_are_refused),
    };
    return RUN_ON_EVERY_DEVICE("refused tensors", tests);
}
