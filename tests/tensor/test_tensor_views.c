/* Views by the names of the field, who holds a storage, and tensors from nothing and from the host. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/devices.h"
#include "support/memory.h"
#include "support/tensors.h"

static void says(const char *text)
{
    if (!strstr(ww_error_message(), text))
        fail_msg("'%s' does not say '%s'", ww_error_message(), text);
}

/* 0, 1, 2, ... as i32 in a shape. */
static ww_tensor counted(ww_device *device, int32_t rank, const int64_t *shape)
{
    ww_tensor x = {0};
    const ww_layout layout = ww_layout_contiguous(rank, shape);
    const int64_t count = ww_layout_elements(&layout);
    CHECK_OK(ww_tensor_arange(device, WW_I32, 0, (double)count, 1, &x));
    CHECK_OK(ww_tensor_reshape(&x, rank, shape, &x));
    return x;
}

/* Releases the view, which has this shape and these numbers. */
static void check_view(ww_tensor *view, int32_t rank, const int64_t *shape, const int32_t *numbers)
{
    int32_t got[64];
    assert_int_equal(view->layout.rank, rank);
    assert_memory_equal(view->layout.shape, shape, (size_t)rank * sizeof *shape);
    const int64_t count = ww_layout_elements(&view->layout);
    assert_true(count <= 64);
    CHECK_OK(ww_tensor_to_host(view, got));
    assert_memory_equal(got, numbers, (size_t)count * sizeof *got);
    ww_tensor_release(view);
}

#define SHAPE(...)                                                                                                             \
    sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t), (int64_t[])                                                              \
    {                                                                                                                          \
        __VA_ARGS__                                                                                                            \
    }
#define NUMBERS(...)                                                                                                           \
    (int32_t[])                                                                                                                \
    {                                                                                                                          \
        __VA_ARGS__                                                                                                            \
    }

static void views_show_the_expected_elements(void **state)
{
    ww_tensor x = counted(*state, 3, (int64_t[]){2, 3, 4}), view = {0};
    CHECK_OK(ww_tensor_select(&x, 0, -1, &view));
    check_view(&view, SHAPE(3, 4), NUMBERS(12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23));
    CHECK_OK(ww_tensor_select(&x, 0, 0, &view));
    CHECK_OK(ww_tensor_transpose(&view, 0, -1, &view));
    check_view(&view, SHAPE(4, 3), NUMBERS(0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11));
    CHECK_OK(ww_tensor_permute(&x, (int32_t[]){2, 0, -2}, &view));
    CHECK_OK(ww_tensor_narrow(&view, 0, 1, 1, &view));
    check_view(&view, SHAPE(1, 2, 3), NUMBERS(1, 5, 9, 13, 17, 21));
    CHECK_OK(ww_tensor_slice(&x, 2, -3, 100, 2, &view));
    CHECK_OK(ww_tensor_slice(&view, 1, 0, -2, 1, &view));
    check_view(&view, SHAPE(2, 1, 2), NUMBERS(1, 3, 13, 15));
    CHECK_OK(ww_tensor_slice(&x, 1, 2, 1, 1, &view));
    check_view(&view, SHAPE(2, 0, 4), NULL);
    CHECK_OK(ww_tensor_unsqueeze(&x, -1, &view));
    CHECK_OK(ww_tensor_unsqueeze(&view, 0, &view));
    assert_int_equal(view.layout.rank, 5);
    CHECK_OK(ww_tensor_squeeze(&view, 4, &view));
    CHECK_OK(ww_tensor_squeeze(&view, 0, &view));
    assert_memory_equal(&view.layout, &x.layout, sizeof x.layout);
    ww_tensor_release(&view);
    CHECK_OK(ww_tensor_narrow(&x, 1, 0, 1, &view));
    CHECK_OK(ww_tensor_broadcast_to(&view, 3, (int64_t[]){2, 2, 4}, &view));
    check_view(&view, SHAPE(2, 2, 4), NUMBERS(0, 1, 2, 3, 0, 1, 2, 3, 12, 13, 14, 15, 12, 13, 14, 15));
    const ww_layout diagonal = {.rank = 1, .shape = {3}, .strides = {5}, .offset = 12};
    CHECK_OK(ww_tensor_view(&x, &diagonal, &view));
    check_view(&view, SHAPE(3), NUMBERS(12, 17, 22));
    ww_tensor_release(&x);
}

static void invalid_views_are_refused(void **state)
{
    ww_tensor x = counted(*state, 2, (int64_t[]){3, 4}), view = {0}, held = {0};
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_tensor_transpose(&x, 0, 2, &view));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_permute(&x, (int32_t[]){1, -1}, &view));
    says("twice");
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_permute(&x, NULL, &view));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_tensor_narrow(&x, 0, 2, 2, &view));
    says("[3, 4]");
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_tensor_narrow(&x, 0, INT64_MAX, INT64_MAX, &view));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_slice(&x, 0, 0, 2, 0, &view));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_tensor_select(&x, 1, 4, &view));
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_squeeze(&x, 0, &view));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_tensor_unsqueeze(&x, 4, &view));
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_broadcast_to(&x, 2, (int64_t[]){3, 5}, &view));
    says("[3, 5]");
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_broadcast_to(&x, 9, (int64_t[]){1, 1, 1, 1, 1, 1, 1, 3, 4}, &view));
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_reshape(&x, 2, (int64_t[]){5, -1}, &view));
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_reshape(&x, 2, (int64_t[]){-1, -1}, &view));
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_reshape(&x, 1, (int64_t[]){11}, &view));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_tensor_view(&x, &(ww_layout){.rank = 1, .shape = {13}, .strides = {1}}, &view));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_view(&x, NULL, &view));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_transpose(NULL, 0, 1, &view));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_transpose(&x, 0, 1, NULL));
    assert_null(view.storage);
    CHECK_OK(ww_tensor_transpose(&x, 0, 1, &held));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_transpose(&x, 0, 1, &held));
    says("release");
    CHECK_FAILS(WW_UNSUPPORTED, ww_tensor_reshape(&held, 1, (int64_t[]){12}, &view));
    says("make it contiguous first");
    ww_tensor_release(&held);
    ww_tensor_release(&x);
}

/* For any layout: a reshape that succeeds keeps the elements in order; one that fails is of a tensor that is not dense. */
static void a_reshape_keeps_the_order(void **state)
{
    test_random random = {12};
    int32_t given = 0;
    for (int turn = 0; turn < 400; turn++) {
        int64_t shape[4], to[4];
        const int32_t rank = 1 + (int32_t)random_below(&random, 4), of_to = 1 + (int32_t)random_below(&random, 4);
        random_shape(&random, rank, 60, shape);
        test_tensor x = test_tensor_make(*state, &random, WW_I32, rank, shape, turn % 4 ? TEST_DENSE : TEST_VIEW);
        if (turn % 4 == 2) /* a gap behind each row */
            x.tensor.layout.shape[rank - 1] = (shape[rank - 1] + 1) / 2;
        if (turn % 4 == 3)
            CHECK_OK(ww_tensor_transpose(&x.tensor, 0, rank - 1, &x.tensor));
        int64_t left = ww_layout_elements(&x.tensor.layout);
        for (int32_t d = 0; d < of_to; d++) {
            int64_t size = 1 + (int64_t)random_below(&random, 6);
            to[d] = d == of_to - 1 ? left : left % size == 0 ? size : 1;
            left /= to[d];
        }
        ww_tensor view = {0};
        const ww_status status = ww_tensor_reshape(&x.tensor, of_to, to, &view);
        if (status == WW_OK) {
            int32_t *one = malloc(1000), *other = malloc(1000);
            const int64_t count = ww_layout_elements(&view.layout);
            assert_ptr_equal(view.storage, x.tensor.storage);
            CHECK_OK(ww_tensor_to_host(&x.tensor, one));
            CHECK_OK(ww_tensor_to_host(&view, other));
            assert_memory_equal(one, other, (size_t)count * sizeof *one);
            free(one);
            free(other);
            given++;
        } else {
            assert_int_equal(status, WW_UNSUPPORTED);
            assert_int_not_equal(turn % 4, 1);
        }
        ww_tensor_release(&view);
        test_tensor_free(&x);
    }
    assert_true(given > 200);
}

/* ---- who holds a storage ------------------------------------------------------------------------------------------------- */

static void a_view_keeps_its_storage(void **state)
{
    CHECK_OK(ww_device_synchronize(*state)); /* the first use makes the stream, which stays */
    ww_tensor x = counted(*state, 2, (int64_t[]){2, 3}), view = {0}, other = {0};
    CHECK_OK(ww_tensor_transpose(&x, 0, 1, &view));
    CHECK_OK(ww_tensor_select(&view, 0, 2, &other));
    ww_tensor_release(&x);
    assert_null(x.storage);
    assert_int_equal(x.layout.rank, 0);
    ww_tensor_release(&x);
    check_view(&view, SHAPE(3, 2), NUMBERS(0, 3, 1, 4, 2, 5));
    ww_storage *held = ww_storage_retain(other.storage);
    check_view(&other, SHAPE(2), NUMBERS(2, 5));
    assert_int_equal(ww_storage_elements(held), 6);
    ww_storage_release(held);
    ww_tensor_release(NULL);
    assert_null(ww_storage_retain(NULL));
}

static void a_device_that_was_closed_stays_for_its_tensors(void **state)
{
    ww_device *own = NULL;
    const int64_t blocks = blocks_held();
    (void)state;
    CHECK_OK(ww_device_open("cpu", &own));
    ww_tensor x = counted(own, 1, (int64_t[]){4}), view = {0};
    CHECK_OK(ww_tensor_slice(&x, 0, 1, 3, 1, &view));
    ww_device_close(own);
    ww_tensor_release(&x);
    check_view(&view, SHAPE(2), NUMBERS(1, 2));
    assert_int_equal(blocks_held(), blocks);
}

/* ---- from nothing, and the host ------------------------------------------------------------------------------------------ */

static void tensors_are_made_of_every_type(void **state)
{
    const int64_t shape[2] = {3, 5};
    for (int type = 0; type < TEST_TYPES; type++) {
        const ww_dtype dtype = (ww_dtype)type;
        ww_tensor empty = {0}, zeros = {0}, full = {0}, range = {0};
        CHECK_OK(ww_tensor_empty(*state, dtype, 2, shape, &empty));
        CHECK_OK(ww_tensor_zeros(*state, dtype, 2, shape, &zeros));
        CHECK_OK(ww_tensor_full(*state, dtype, 2, shape, -2.5, &full));
        CHECK_OK(ww_tensor_arange(*state, dtype, 1.0, -3.1, -0.75, &range));
        check_dense(&empty, 2, shape);
        check_dense(&zeros, 2, shape);
        check_dense(&full, 2, shape);
        check_dense(&range, 1, (int64_t[]){6});
        uint8_t *bytes = storage_bytes(full.storage), *none = storage_bytes(zeros.storage),
                *steps = storage_bytes(range.storage);
        for (int64_t i = 0; i < 15; i++) {
            assert_int_equal(bits_of(bytes, dtype, i), bits_nearest(dtype, -2.5L));
            assert_int_equal(bits_of(none, dtype, i), 0);
            if (i < 6)
                assert_int_equal(bits_of(steps, dtype, i), bits_nearest(dtype, 1.0L - 0.75L * (long double)i));
        }
        free(bytes);
        free(none);
        free(steps);
        ww_tensor_release(&empty);
        ww_tensor_release(&zeros);
        ww_tensor_release(&full);
        ww_tensor_release(&range);
    }
}

static void invalid_shapes_and_ranges_are_refused(void **state)
{
    ww_tensor out = {0};
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_zeros(*state, WW_F32, 9, (int64_t[9]){0}, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_zeros(*state, WW_F32, 1, (int64_t[]){-1}, &out));
    says("[-1]");
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_empty(*state, WW_F32, 1, NULL, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_empty(NULL, WW_F32, 0, NULL, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_full(*state, (ww_dtype)99, 0, NULL, 1.0, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_full(*state, WW_F32, 2, (int64_t[]){INT64_MAX, 3}, 1.0, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_from_host(*state, WW_F32, 0, NULL, NULL, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_arange(*state, WW_F32, 0, 1, 0, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_arange(*state, WW_F32, 0, INFINITY, 1, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_arange(*state, WW_F32, 0, 1, NAN, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_arange(*state, WW_F32, 0, 1e300, 1e-300, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_to_host(&out, &out));
    assert_null(out.storage);
    CHECK_OK(ww_tensor_arange(*state, WW_F32, 1, 1, 1, &out));
    assert_int_equal(out.layout.shape[0], 0);
    ww_tensor_release(&out);
}

/* Any layout, to the host and from it; other elements do not change. */
static void the_host_reads_and_writes_any_view(void **state)
{
    test_random random = {14};
    for (int turn = 0; turn < 66; turn++) {
        int64_t shape[4];
        const ww_dtype dtype = (ww_dtype)(turn % TEST_TYPES);
        const size_t bytes = ww_dtype_bytes(dtype);
        const int32_t rank = (int32_t)random_below(&random, 5);
        random_shape(&random, rank, 300, shape);
        test_tensor x = test_tensor_make(*state, &random, dtype, rank, shape, (test_layout)(turn % 2));
        const int64_t count = ww_layout_elements(&x.tensor.layout);
        uint8_t *dense = malloc((size_t)count * bytes + 1);
        CHECK_OK(ww_tensor_to_host(&x.tensor, dense));
        for (int64_t i = 0; i < count; i++) {
            assert_int_equal(bits_of(dense, dtype, i), test_tensor_bits(&x, i));
            const uint64_t bits = random_element(&random, dtype);
            memcpy(dense + (size_t)i * bytes, &bits, bytes);
            memcpy(x.host + (size_t)test_tensor_place(&x.tensor.layout, i) * bytes, &bits, bytes);
        }
        CHECK_OK(ww_tensor_write(&x.tensor, dense));
        memset(dense, 0x55, (size_t)count * bytes); /* the caller may change it at once */
        uint8_t *now = storage_bytes(x.tensor.storage);
        assert_memory_equal(now, x.host, (size_t)ww_storage_elements(x.tensor.storage) * bytes);
        free(now);
        free(dense);
        test_tensor_free(&x);
    }
    ww_tensor repeated = counted(*state, 1, (int64_t[]){1});
    const int32_t numbers[3] = {1, 2, 3};
    CHECK_OK(ww_tensor_broadcast_to(&repeated, 1, (int64_t[]){3}, &repeated));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_write(&repeated, numbers));
    says("twice");
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_write(NULL, numbers));
    repeated.layout = ww_layout_contiguous(0, NULL);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_write(&repeated, NULL));
    ww_tensor_release(&repeated);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_show_the_expected_elements),
        cmocka_unit_test(invalid_views_are_refused),
        cmocka_unit_test(a_reshape_keeps_the_order),
        cmocka_unit_test(a_view_keeps_its_storage),
        cmocka_unit_test(a_device_that_was_closed_stays_for_its_tensors),
        cmocka_unit_test(tensors_are_made_of_every_type),
        cmocka_unit_test(invalid_shapes_and_ranges_are_refused),
        cmocka_unit_test(the_host_reads_and_writes_any_view),
    };
    return RUN_ON_EVERY_DEVICE("views", tests);
}
