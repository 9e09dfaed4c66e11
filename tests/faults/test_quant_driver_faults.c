/* Quantized matrices over a driver whose every call fails in turn: a call that fails leaves the matrix as it was and the device
 * at work; a device that is lost in the middle says so from then on, and nothing crashes or leaks. */
#include <stdlib.h>
#include <string.h>

#include "emulated/emulated.h"
#include "emulated/parts.h"
#include "gpu/backend.h"
#include "support/check.h"
#include "support/data/random.h"
#include "support/faults/fault_counts.h"
#include "support/faults/faulty_driver.h"
#include "support/memory.h"

enum { CALLS_MAX = 500, ROWS = 6, COLS = 256, MANY = 40 };

typedef struct subject {
    ww_device *device;
    ww_quant *matrix;
    ww_tensor few, many, ids;
} subject;

typedef ww_status (*operation)(const subject *s, float *result);

static float values[MANY * COLS];

static ww_tensor tensor_of(ww_device *device, int64_t n)
{
    const int64_t shape[2] = {n, COLS};
    ww_tensor t = {.layout = ww_layout_contiguous(2, shape)};
    CHECK_OK(ww_storage_from_host(device, WW_F32, n * COLS, values, &t.storage));
    return t;
}

static subject subject_make(int32_t index)
{
    test_random random = {3};
    subject s = {0};
    random_normals(&random, values, (int64_t)MANY * COLS);
    CHECK_OK(gpu_open(&backend_emulator, &faulty_driver, index, &s.device));
    CHECK_OK(ww_quant_from_f32(s.device, WW_QUANT_Q4_K, values, ROWS, COLS, 0, &s.matrix));
    s.few = tensor_of(s.device, 2);
    s.many = tensor_of(s.device, MANY);
    static const int64_t two = 2, experts[2] = {1, 0};
    CHECK_OK(ww_tensor_from_host(s.device, WW_I64, 1, &two, experts, &s.ids));
    return s;
}

static void subject_end(subject *s)
{
    ww_storage_release(s->few.storage);
    ww_storage_release(s->many.storage);
    ww_tensor_release(&s->ids);
    ww_quant_destroy(s->matrix);
    ww_device_close(s->device);
}

/* Multiplies and reads the results. */
static ww_status product(const subject *s, const ww_tensor *x, const ww_quant_product *options, float *result)
{
    ww_tensor out = {0};
    ww_status status = ww_quant_multiply(s->matrix, x, options, &out);
    assert_int_equal(status == WW_OK, out.storage != NULL);
    if (status == WW_OK)
        status = ww_tensor_to_host(&out, result);
    ww_tensor_release(&out);
    return status;
}

static ww_status multiply_few(const subject *s, float *result)
{
    return product(s, &s->few, NULL, result);
}

static ww_status multiply_many(const subject *s, float *result)
{
    return product(s, &s->many, NULL, result);
}

static ww_status multiply_queued(const subject *s, float *result)
{
    ww_quant_product options = ww_quant_product_default();
    options.queued = 1;
    return product(s, &s->few, &options, result);
}

/* With a norm before it, and results that are added to y. */
static ww_status multiply_fused(const subject *s, float *result)
{
    const int64_t shape[2] = {2, ROWS}, cols = COLS;
    const ww_tensor weight = {.storage = s->few.storage, .layout = ww_layout_contiguous(1, &cols)};
    ww_quant_product options = ww_quant_product_default();
    ww_tensor out = {0};
    options.queued = 1;
    options.norm_weight = &weight;
    options.norm_eps = 1e-5;
    options.accumulate = 1;
    ww_status status = ww_tensor_zeros(s->device, WW_F32, 2, shape, &out);
    if (status == WW_OK)
        status = ww_quant_multiply(s->matrix, &s->few, &options, &out);
    if (status == WW_OK)
        status = ww_tensor_to_host(&out, result);
    ww_tensor_release(&out);
    return status;
}

static ww_status multiply_experts(const subject *s, float *result)
{
    static const int64_t experts[] = {1, 0};
    ww_quant_product options = ww_quant_product_default();
    options.experts = experts;
    options.expert_rows = ROWS / 2;
    return product(s, &s->few, &options, result);
}

static ww_status encode(const subject *s, float *result)
{
    ww_quant *made = NULL;
    ww_status status = ww_quant_from_f32(s->device, WW_QUANT_Q8_0, values, ROWS, COLS, 0, &made);
    assert_int_equal(status == WW_OK, made != NULL);
    if (status == WW_OK)
        status = ww_quant_read_f32(made, 0, ROWS, result);
    ww_quant_destroy(made);
    return status;
}

static ww_status look_up(const subject *s, float *result)
{
    static const int64_t ids[] = {5, 0, 3};
    return ww_quant_get_rows(s->matrix, ids, 3, result);
}

/* Experts by ids on the device. */
static ww_status multiply_by_ids(const subject *s, const ww_tensor *x, ww_activations kind, float *result)
{
    ww_quant_product options = ww_quant_product_default();
    options.expert_ids = &s->ids;
    options.expert_rows = ROWS / 2;
    options.activations = kind;
    return product(s, x, &options, result);
}

static ww_status multiply_expert_ids(const subject *s, float *result)
{
    return multiply_by_ids(s, &s->few, WW_ACTIVATIONS_CODED, result);
}

static ww_status multiply_decoded(const subject *s, float *result)
{
    return multiply_by_ids(s, &s->few, WW_ACTIVATIONS_FLOAT, result);
}

static ww_status multiply_coded(const subject *s, float *result)
{
    ww_quant *coded = NULL;
    ww_tensor out = {0};
    ww_status status = ww_quant_from_tensor(WW_QUANT_Q8_K, &s->few, &coded);
    assert_int_equal(status == WW_OK, coded != NULL);
    if (status == WW_OK)
        status = ww_quant_multiply_coded(s->matrix, coded, NULL, &out);
    if (status == WW_OK)
        status = ww_tensor_to_host(&out, result);
    ww_tensor_release(&out);
    ww_quant_destroy(coded);
    return status;
}

static ww_status decode_tensors(const subject *s, float *result)
{
    ww_tensor rows = {0}, looked = {0};
    ww_status status = ww_quant_dequantize(s->matrix, 1, 2, WW_F32, &rows);
    if (status == WW_OK)
        status = ww_quant_rows(s->matrix, &s->ids, WW_F32, &looked);
    if (status == WW_OK)
        status = ww_tensor_to_host(&rows, result);
    if (status == WW_OK)
        status = ww_tensor_to_host(&looked, result + 2 * COLS);
    ww_tensor_release(&looked);
    ww_tensor_release(&rows);
    return status;
}

static void check_nothing_left(int64_t host_blocks)
{
    emulated_counts counts;
    emulated_count(&counts);
    assert_int_equal(counts.contexts + counts.blocks + counts.pinned + counts.streams + counts.events + counts.modules, 0);
    assert_int_equal(blocks_held(), host_blocks);
}

/* Fails the n-th call of the operation; true if there was such a call. */
static bool fail_call(operation work, int64_t n, int number, const float *expected)
{
    static float result[MANY * COLS];
    faulty_arm(&emulated_driver, 0, 0, NULL);
    subject s = subject_make((int32_t)(n % 2));
    faulty_arm(&emulated_driver, n, number, NULL);
    const ww_status status = work(&s, result);
    const bool failed = faulty_victim() != NULL;
    if (failed && emulated_driver.error_class(number) == DRIVER_ERROR_LOST) {
        CHECK_FAILS(WW_DRIVER_ERROR, multiply_few(&s, result));
        assert_non_null(strstr(ww_error_message(), "device lost"));
    } else {
        faulty_arm(&emulated_driver, 0, 0, NULL);
        if (status != WW_OK)
            CHECK_OK(work(&s, result));
        assert_memory_equal(result, expected, ROWS * 2 * sizeof *result);
    }
    subject_end(&s);
    return failed;
}

/* With each kind of failure from number `first` up to `end`. */
static void fail_each_call_as(operation work, int32_t first, int32_t end)
{
    static const int numbers[] = {EMULATED_OUT_OF_MEMORY, EMULATED_INVALID_VALUE, EMULATED_LAUNCH_FAILED};
    static float expected[MANY * COLS];
    faulty_arm(&emulated_driver, 0, 0, NULL);
    const int64_t host_blocks = blocks_held();
    subject s = subject_make(0);
    CHECK_OK(work(&s, expected));
    subject_end(&s);
    for (int32_t kind = first; kind < end; kind++) {
        int64_t n = 1;
        while (n < CALLS_MAX && fail_call(work, n, numbers[kind], expected)) {
            check_nothing_left(host_blocks);
            n = fault_next(n);
        }
        assert_true(n > 2 && n < CALLS_MAX);
    }
}

static void fail_each_call(operation work)
{
    fail_each_call_as(work, work == multiply_few ? 0 : 1, 3);
}

static void a_failed_product_of_few_columns_can_be_made_again(void **state)
{
    (void)state;
    fail_each_call(multiply_few);
}

static void a_failed_product_of_many_columns_can_be_made_again(void **state)
{
    (void)state;
    fail_each_call(multiply_many);
}

static void a_queued_product_that_fails_can_be_made_again(void **state)
{
    (void)state;
    fail_each_call(multiply_queued);
    fail_each_call_as(multiply_fused, 1, 2);
}

static void a_failed_product_of_experts_can_be_made_again(void **state)
{
    (void)state;
    fail_each_call(multiply_experts);
}

static void a_matrix_that_was_not_made_can_be_made_again(void **state)
{
    (void)state;
    fail_each_call(encode);
}

static void rows_that_were_not_found_can_be_looked_up_again(void **state)
{
    (void)state;
    fail_each_call(look_up);
}

static void failed_calls_with_tensors_can_be_repeated(void **state)
{
    (void)state;
    fail_each_call_as(multiply_expert_ids, 1, 2);
    fail_each_call_as(multiply_decoded, 1, 2);
    fail_each_call_as(multiply_coded, 1, 2);
    fail_each_call(decode_tensors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_product_of_few_columns_can_be_made_again),
        cmocka_unit_test(a_failed_product_of_many_columns_can_be_made_again),
        cmocka_unit_test(a_queued_product_that_fails_can_be_made_again),
        cmocka_unit_test(a_failed_product_of_experts_can_be_made_again),
        cmocka_unit_test(a_matrix_that_was_not_made_can_be_made_again),
        cmocka_unit_test(rows_that_were_not_found_can_be_looked_up_again),
        cmocka_unit_test(failed_calls_with_tensors_can_be_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
