/* Results: empty tensors that receive them, or existing ones that overlap the inputs in any way; broadcasting. */
#include <stdlib.h>
#include <string.h>

#include "support/calls/tensor.h"
#include "support/devices.h"
#include "support/memory.h"

static void says(const char *text)
{
    if (!strstr(ww_error_message(), text))
        fail_msg("'%s' does not say '%s'", ww_error_message(), text);
}

static uint8_t *elements_of(const ww_tensor *x)
{
    uint8_t *bytes = malloc((size_t)ww_layout_elements(&x->layout) * ww_dtype_bytes(ww_tensor_dtype(x)) + 1);
    CHECK_OK(ww_tensor_to_host(x, bytes));
    return bytes;
}

static void check_same(const char *what, const ww_tensor *got, const ww_tensor *want)
{
    assert_int_equal(got->layout.rank, want->layout.rank);
    assert_memory_equal(got->layout.shape, want->layout.shape, (size_t)want->layout.rank * sizeof(int64_t));
    assert_int_equal(ww_tensor_dtype(got), ww_tensor_dtype(want));
    uint8_t *one = elements_of(got), *other = elements_of(want);
    if (memcmp(one, other, (size_t)ww_layout_elements(&want->layout) * ww_dtype_bytes(ww_tensor_dtype(want))) != 0)
        fail_msg("%s: other elements than in a tensor of its own", what);
    free(one);
    free(other);
}

/* ---- where the caller wants them ----------------------------------------------------------------------------------------- */

/* The last dimension first, each element three apart from the next, from element 1 on: nothing that kernels write at once. */
static ww_layout scattered(const ww_layout *like, int64_t *elements)
{
    ww_layout layout = ww_layout_contiguous(like->rank, like->shape);
    int64_t stride = 3;
    for (int32_t d = 0; d < like->rank; d++) {
        layout.strides[d] = stride;
        stride *= like->shape[d];
    }
    layout.offset = 1;
    *elements = stride + 2;
    return layout;
}

/* Like `made`, written into a tensor of that layout in a storage of 0xa5, of which nothing else is touched. */
static void check_given(const tensor_call *call, const tensor_operands *o, const ww_tensor *made, const ww_layout *layout,
                        int64_t elements)
{
    const size_t bytes = ww_dtype_bytes(ww_tensor_dtype(made)), all = (size_t)elements * bytes;
    ww_tensor out = {.layout = *layout};
    uint8_t *filled = malloc(all);
    memset(filled, 0xa5, all);
    CHECK_OK(ww_storage_from_host(ww_storage_device(made->storage), ww_tensor_dtype(made), elements, filled, &out.storage));
    const ww_storage *given = out.storage;
    CHECK_OK(call->call(o, &out));
    assert_ptr_equal(out.storage, given);
    assert_memory_equal(&out.layout, layout, sizeof *layout);
    check_same(call->name, &out, made);
    uint8_t *left = storage_bytes(out.storage);
    for (int64_t i = 0; i < ww_layout_elements(layout); i++)
        memset(left + (size_t)test_tensor_place(layout, i) * bytes, 0xa5, bytes);
    if (memcmp(left, filled, all) != 0)
        fail_msg("%s: wrote beside its result", call->name);
    free(left);
    free(filled);
    ww_tensor_release(&out);
}

/* Random numbers continue, and a query of an existing storage has no result. */
static bool is_repeatable(const tensor_call *call)
{
    static const char *const others[] = {"uniform", "normal", "transpose", "wrap", "dlpack"};
    bool repeatable = true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        repeatable = repeatable && strcmp(call->name, others[i]) != 0;
    return repeatable;
}

static void every_operation_writes_where_it_is_told(void **state)
{
    tensor_operands o = tensor_operands_make(*state);
    int32_t tried = 0;
    for (const tensor_call *call = tensor_calls; call->name; call++) {
        ww_tensor made = {0};
        int64_t elements;
        CHECK_OK(call->call(&o, &made));
        if (made.storage && made.layout.rank + ww_layout_elements(&made.layout) > 1 && is_repeatable(call)) {
            ww_layout dense = ww_layout_contiguous(made.layout.rank, made.layout.shape);
            const int64_t count = ww_layout_elements(&dense);
            check_given(call, &o, &made, &dense, count);
            dense.offset = 1;
            check_given(call, &o, &made, &dense, count + 2);
            dense.offset = 16;
            check_given(call, &o, &made, &dense, count + 17);
            const ww_layout apart = scattered(&made.layout, &elements);
            check_given(call, &o, &made, &apart, elements);
            tried++;
        }
        ww_tensor_release(&made);
    }
    assert_true(tried > 25);
    tensor_operands_free(&o);
}

static void a_random_tensor_may_be_filled_again(void **state)
{
    const int64_t shape[2] = {5, 7}, count = 40;
    ww_tensor fresh = {0}, part = {.layout = ww_layout_contiguous(2, shape)};
    part.layout.offset = 3;
    CHECK_OK(ww_device_seed(*state, 5));
    CHECK_OK(ww_tensor_normal(*state, WW_F32, 2, shape, 0.0, 1.0, &fresh));
    check_dense(&fresh, 2, shape);
    CHECK_OK(ww_storage_create(*state, WW_F32, count, &part.storage));
    CHECK_OK(ww_device_seed(*state, 5));
    CHECK_OK(ww_tensor_normal(*state, WW_F32, 2, shape, 0.0, 1.0, &part));
    check_same("normal", &part, &fresh);
    ww_tensor_release(&part);
    ww_tensor_release(&fresh);
}

/* On a CPU nothing but results takes memory in these. */
static void a_result_that_is_there_takes_no_memory(void **state)
{
    test_random random = {3};
    const int64_t shape[2] = {64, 64};
    test_tensor x = test_tensor_make(*state, &random, WW_F32, 2, shape, TEST_DENSE);
    ww_tensor out = {0}, sum = {0};
    const int32_t dim = 1;
    ww_device_info info = ww_device_info_default();
    CHECK_OK(ww_device_describe(*state, &info));
    CHECK_OK(ww_tensor_unary(WW_EXP, &x.tensor, &out));
    CHECK_OK(ww_tensor_reduce(WW_REDUCE_SUM, &x.tensor, &dim, 1, &sum));
    ww_memory_info before = ww_memory_info_default(), after = before;
    CHECK_OK(ww_device_memory(*state, &before));
    if (strcmp(info.backend, "cpu") == 0)
        fail_allocation_at(1);
    const ww_status status = ww_tensor_unary(WW_EXP, &x.tensor, &out) || ww_tensor_binary(WW_ADD, &out, &x.tensor, &out) ||
                             ww_tensor_softmax(&x.tensor, -1, &out) ||
                             ww_tensor_reduce(WW_REDUCE_SUM, &x.tensor, &dim, 1, &sum);
    fail_allocation_at(0);
    assert_int_equal(status, WW_OK);
    CHECK_OK(ww_device_memory(*state, &after));
    assert_int_equal(after.ours_bytes, before.ours_bytes);
    ww_tensor_release(&out);
    ww_tensor_release(&sum);
    test_tensor_free(&x);
}

static void results_that_do_not_fit_are_refused(void **state)
{
    test_random random = {4};
    const int64_t shape[2] = {3, 4}, other[2] = {4, 3}, few = 12;
    ww_device *cpu = NULL;
    CHECK_OK(ww_device_open("cpu", &cpu));
    test_tensor x = test_tensor_make(*state, &random, WW_F32, 2, shape, TEST_DENSE);
    test_tensor turned = test_tensor_make(*state, &random, WW_F32, 2, other, TEST_DENSE);
    test_tensor halves = test_tensor_make(*state, &random, WW_F16, 2, shape, TEST_DENSE);
    test_tensor away = test_tensor_make(cpu, &random, WW_F32, 2, shape, TEST_DENSE);
    test_tensor flat = test_tensor_make(*state, &random, WW_F32, 1, &few, TEST_DENSE);
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_unary(WW_ABS, &x.tensor, &turned.tensor));
    says("out has shape [4, 3], the result [3, 4]");
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_unary(WW_ABS, &x.tensor, &flat.tensor));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_unary(WW_ABS, &x.tensor, &halves.tensor));
    says("out is f16, the result f32");
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_unary(WW_ABS, &x.tensor, &away.tensor));
    says("out is on cpu");
    ww_tensor bad = turned.tensor;
    bad.layout.shape[0] = 3, bad.layout.shape[1] = 4;
    bad.layout.strides[0] = 0;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_unary(WW_ABS, &x.tensor, &bad));
    says("twice");
    bad.layout.strides[0] = 9;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_tensor_unary(WW_ABS, &x.tensor, &bad));
    uint8_t *now = storage_bytes(turned.tensor.storage);
    assert_memory_equal(now, turned.host, 48);
    free(now);
    test_tensor_free(&x);
    test_tensor_free(&turned);
    test_tensor_free(&halves);
    test_tensor_free(&away);
    test_tensor_free(&flat);
    ww_device_close(cpu);
}

/* An id that is not there is found before a caller's tensor is written. */
static void refused_ids_do_not_change_the_result(void **state)
{
    const int64_t shape[2] = {2, 2}, two = 2, ids[2] = {0, 7};
    const float numbers[4] = {1, 2, 3, 4}, nines[4] = {9, 9, 9, 9};
    test_tensor x = test_tensor_of(*state, WW_F32, 2, shape, numbers), out = test_tensor_of(*state, WW_F32, 2, shape, nines);
    test_tensor list = test_tensor_of(*state, WW_I64, 1, &two, ids);
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_tensor_index_select(&x.tensor, &list.tensor, 0, &out.tensor));
    uint8_t *now = storage_bytes(out.tensor.storage);
    assert_memory_equal(now, nines, sizeof nines);
    free(now);
    test_tensor_free(&x);
    test_tensor_free(&out);
    test_tensor_free(&list);
}

/* ---- what overlaps ------------------------------------------------------------------------------------------------------- */

/* `call` with x as its own result gives the same as with another result. */
typedef ww_status (*onto)(const ww_tensor *x, ww_tensor *out);

static void check_onto_itself(ww_device *device, const char *what, onto call)
{
    test_random random = {6};
    const int64_t shape[2] = {40, 40};
    test_tensor x = test_tensor_make(device, &random, WW_F32, 2, shape, TEST_DENSE);
    ww_tensor apart = {0};
    CHECK_OK(call(&x.tensor, &apart));
    CHECK_OK(call(&x.tensor, &x.tensor));
    check_same(what, &x.tensor, &apart);
    ww_tensor_release(&apart);
    test_tensor_free(&x);
}

static ww_status unary_of(const ww_tensor *x, ww_tensor *out)
{
    return ww_tensor_unary(WW_SQR, x, out);
}

static ww_status transposed(const ww_tensor *x, ww_tensor *out)
{
    ww_tensor view = *x;
    const ww_status status = ww_tensor_transpose(&view, 0, 1, &view);
    return status == WW_OK ? ww_tensor_contiguous(&view, out) : status;
}

static ww_status doubled_by_its_first_row(const ww_tensor *x, ww_tensor *out)
{
    ww_tensor row = *x;
    const ww_status status = ww_tensor_select(&row, 0, 0, &row);
    return status == WW_OK ? ww_tensor_binary(WW_ADD, x, &row, out) : status;
}

static ww_status multiplied(const ww_tensor *x, ww_tensor *out)
{
    return ww_tensor_matmul(x, x, WW_MATH_CANONICAL, out);
}

static ww_status softmax_of_columns(const ww_tensor *x, ww_tensor *out)
{
    return ww_tensor_softmax(x, 0, out);
}

static ww_status softmax_of_rows(const ww_tensor *x, ww_tensor *out)
{
    return ww_tensor_softmax(x, 1, out);
}

static ww_status sorted(const ww_tensor *x, ww_tensor *out)
{
    return ww_tensor_sort(x, false, out, NULL);
}

static ww_status joined(const ww_tensor *x, ww_tensor *out)
{
    ww_tensor halves[2] = {*x, *x};
    ww_status status = ww_tensor_narrow(&halves[0], 0, 20, 20, &halves[0]);
    if (status == WW_OK)
        status = ww_tensor_narrow(&halves[1], 0, 0, 20, &halves[1]);
    return status == WW_OK ? ww_tensor_cat(halves, 2, 0, out) : status;
}

static void a_result_may_be_one_of_the_inputs(void **state)
{
    check_onto_itself(*state, "unary", unary_of);
    check_onto_itself(*state, "transpose", transposed);
    check_onto_itself(*state, "add a row", doubled_by_its_first_row);
    check_onto_itself(*state, "matmul", multiplied);
    check_onto_itself(*state, "softmax of columns", softmax_of_columns);
    check_onto_itself(*state, "softmax of rows", softmax_of_rows);
    check_onto_itself(*state, "sort", sorted);
    check_onto_itself(*state, "cat", joined);
}

static void two_results_must_not_overlap(void **state)
{
    const int64_t count = 6;
    const uint32_t numbers[6] = {3, 1, 2, 6, 5, 4};
    test_tensor x = test_tensor_of(*state, WW_U32, 1, &count, numbers), y = test_tensor_of(*state, WW_U32, 1, &count, numbers);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_sort(&x.tensor, false, &y.tensor, &y.tensor));
    says("share memory");
    test_tensor_free(&x);
    test_tensor_free(&y);
}

/* ---- broadcasting -------------------------------------------------------------------------------------------------------- */

/* A shape of which some sizes are 1 and some at the front are missing. */
static int32_t narrowed(test_random *random, int32_t rank, const int64_t *shape, int64_t *made)
{
    const int32_t missing = (int32_t)random_below(random, (uint64_t)rank + 1);
    for (int32_t d = missing; d < rank; d++)
        made[d - missing] = random_below(random, 3) == 0 ? 1 : shape[d];
    return rank - missing;
}

/* The same by views of one shape, on tensors whose whole shape is known. */
static void shapes_are_broadcast(void **state)
{
    test_random random = {7};
    for (int turn = 0; turn < 60; turn++) {
        const int32_t rank = 1 + (int32_t)random_below(&random, 4);
        int64_t shape[4], of[3][4];
        test_tensor xs[3];
        ww_tensor wide[3] = {{0}}, got = {0}, want = {0};
        random_shape(&random, rank, 200, shape);
        for (int i = 0; i < 3; i++) {
            const int32_t own = i == turn % 3 ? rank : narrowed(&random, rank, shape, of[i]);
            const ww_dtype dtype = i == 2 ? WW_U8 : WW_F32;
            xs[i] = test_tensor_make(*state, &random, dtype, own, i == turn % 3 ? shape : of[i], (test_layout)(turn % 3));
            CHECK_OK(ww_tensor_broadcast_to(&xs[i].tensor, rank, shape, &wide[i]));
        }
        CHECK_OK(ww_tensor_where(&xs[2].tensor, &xs[0].tensor, &xs[1].tensor, &got));
        CHECK_OK(ww_tensor_where(&wide[2], &wide[0], &wide[1], &want));
        check_same("where", &got, &want);
        ww_tensor_release(&got);
        ww_tensor_release(&want);
        if (turn % 3 != 2) {
            CHECK_OK(ww_tensor_binary(WW_SUB, &xs[0].tensor, &xs[1].tensor, &got));
            CHECK_OK(ww_tensor_binary(WW_SUB, &wide[0], &wide[1], &want));
            check_same("sub", &got, &want);
            ww_tensor_release(&got);
            ww_tensor_release(&want);
            CHECK_OK(ww_tensor_cmp(WW_LT, &xs[0].tensor, &xs[1].tensor, &got));
            CHECK_OK(ww_tensor_cmp(WW_LT, &wide[0], &wide[1], &want));
            check_same("lt", &got, &want);
            ww_tensor_release(&got);
            ww_tensor_release(&want);
        }
        for (int i = 0; i < 3; i++) {
            ww_tensor_release(&wide[i]);
            test_tensor_free(&xs[i]);
        }
    }
}

static void shapes_that_do_not_broadcast_are_refused(void **state)
{
    test_random random = {8};
    const int64_t a[2] = {2, 3}, b[1] = {2}, c[2] = {0, 3};
    test_tensor x = test_tensor_make(*state, &random, WW_F32, 2, a, TEST_DENSE);
    test_tensor y = test_tensor_make(*state, &random, WW_F32, 1, b, TEST_DENSE);
    test_tensor z = test_tensor_make(*state, &random, WW_F32, 2, c, TEST_DENSE);
    ww_tensor out = {0};
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_binary(WW_ADD, &x.tensor, &y.tensor, &out));
    says("[2, 3] and [2] do not broadcast");
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_cmp(WW_EQ, &x.tensor, &z.tensor, &out));
    says("[0, 3]");
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_broadcast_to(&x.tensor, 1, b, &out));
    assert_null(out.storage);
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_binary(WW_ADD, &y.tensor, &y.tensor, &x.tensor));
    test_tensor_free(&x);
    test_tensor_free(&y);
    test_tensor_free(&z);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_writes_where_it_is_told),
        cmocka_unit_test(a_random_tensor_may_be_filled_again),
        cmocka_unit_test(a_result_that_is_there_takes_no_memory),
        cmocka_unit_test(results_that_do_not_fit_are_refused),
        cmocka_unit_test(refused_ids_do_not_change_the_result),
        cmocka_unit_test(a_result_may_be_one_of_the_inputs),
        cmocka_unit_test(two_results_must_not_overlap),
        cmocka_unit_test(shapes_are_broadcast),
        cmocka_unit_test(shapes_that_do_not_broadcast_are_refused),
    };
    return RUN_ON_EVERY_DEVICE("results", tests);
}
