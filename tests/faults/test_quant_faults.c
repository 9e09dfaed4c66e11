/* Failures in the middle of every call on quantized matrices: no memory, a driver that refuses, a device that fails behind its
 * work. A status and a message, nothing leaked, and the matrix as it was.
 */
#include <stdlib.h>
#include <string.h>

#include "support/data/random.h"
#include "support/devices.h"
#include "support/faults/faulty.h"
#include "support/memory.h"

enum { ROWS = 6, COLS = 256, ATTEMPTS_MAX = 500 };

static float values[ROWS * COLS], read_back[ROWS * COLS];
static unsigned char blocks[ROWS * COLS];
static ww_device *device;

static ww_status call_from_f32(ww_quant *q)
{
    (void)q;
    ww_quant *made = NULL;
    const ww_status status = ww_quant_from_f32(device, WW_QUANT_Q4_K, values, ROWS, COLS, 0, &made);
    assert_int_equal(status == WW_OK, made != NULL);
    ww_quant_destroy(made);
    return status;
}

static ww_status call_load(ww_quant *q)
{
    (void)q;
    ww_quant *made = NULL;
    const ww_status status = ww_quant_load(device, WW_QUANT_Q4_K, blocks, ROWS * 144, ROWS, COLS, &made);
    assert_int_equal(status == WW_OK, made != NULL);
    ww_quant_destroy(made);
    return status;
}

static ww_status call_view(ww_quant *q)
{
    ww_quant *made = NULL;
    const ww_status status = ww_quant_view(q, 1, 2, &made);
    assert_int_equal(status == WW_OK, made != NULL);
    ww_quant_destroy(made);
    return status;
}

static ww_status call_read_f32(ww_quant *q)
{
    return ww_quant_read_f32(q, 0, ROWS, read_back);
}

static ww_status call_read_blocks(ww_quant *q)
{
    return ww_quant_read_blocks(q, 0, ROWS, blocks);
}

static ww_status call_get_rows(ww_quant *q)
{
    static const int64_t ids[] = {5, 0, 3};
    return ww_quant_get_rows(q, ids, 3, read_back);
}

static ww_tensor activations;

static ww_status call_matmul(ww_quant *q)
{
    ww_tensor out = {0};
    const ww_status status = ww_quant_matmul(q, &activations, &out);
    assert_int_equal(status == WW_OK, out.storage != NULL);
    ww_tensor_release(&out);
    return status;
}

static ww_status call_experts(ww_quant *q)
{
    static const int64_t experts[] = {1, 0};
    ww_tensor out = {0};
    const ww_status status = ww_quant_matmul_experts(q, ROWS / 2, &activations, experts, &out);
    assert_int_equal(status == WW_OK, out.storage != NULL);
    ww_tensor_release(&out);
    return status;
}

static ww_status call_from_tensor(ww_quant *q)
{
    (void)q;
    ww_quant *made = NULL;
    const ww_status status = ww_quant_from_tensor(WW_QUANT_Q8_K, &activations, &made);
    assert_int_equal(status == WW_OK, made != NULL);
    ww_quant_destroy(made);
    return status;
}

static ww_status call_dequantize(ww_quant *q)
{
    ww_tensor out = {0};
    const ww_status status = ww_quant_dequantize(q, 1, 2, WW_F16, &out);
    assert_int_equal(status == WW_OK, out.storage != NULL);
    ww_tensor_release(&out);
    return status;
}

static ww_tensor ids;

static ww_status call_rows(ww_quant *q)
{
    ww_tensor out = {0};
    const ww_status status = ww_quant_rows(q, &ids, WW_F32, &out);
    assert_int_equal(status == WW_OK, out.storage != NULL);
    ww_tensor_release(&out);
    return status;
}

static ww_status multiply_with(ww_quant *q, ww_activations kind)
{
    ww_quant_product options = ww_quant_product_default();
    ww_tensor out = {0};
    options.expert_ids = &ids;
    options.expert_rows = ROWS / 2;
    options.activations = kind;
    const ww_status status = ww_quant_multiply(q, &activations, &options, &out);
    assert_int_equal(status == WW_OK, out.storage != NULL);
    ww_tensor_release(&out);
    return status;
}

static ww_status call_expert_ids(ww_quant *q)
{
    return multiply_with(q, WW_ACTIVATIONS_CODED);
}

static ww_status call_decoded(ww_quant *q)
{
    return multiply_with(q, WW_ACTIVATIONS_FLOAT);
}

static ww_quant *coded;

static ww_status call_coded(ww_quant *q)
{
    ww_tensor out = {0};
    const ww_status status = ww_quant_multiply_coded(q, coded, NULL, &out);
    assert_int_equal(status == WW_OK, out.storage != NULL);
    ww_tensor_release(&out);
    return status;
}

/* With a gate, and results that are added to y, which does not change after a failure. */
static ww_status call_fused(ww_quant *q)
{
    static const int64_t shape[2] = {2, ROWS};
    float before[2 * ROWS], after[2 * ROWS];
    ww_quant_product options = ww_quant_product_default();
    ww_tensor out = {0};
    options.up = &activations;
    options.accumulate = 1;
    ww_status status = ww_tensor_from_host(device, WW_F32, 2, shape, values, &out);
    memcpy(before, values, sizeof before);
    if (status == WW_OK)
        status = ww_quant_multiply(q, &activations, &options, &out);
    if (status != WW_OK && out.storage && ww_tensor_to_host(&out, after) == WW_OK)
        assert_memory_equal(before, after, sizeof before);
    ww_tensor_release(&out);
    return status;
}

static const struct {
    const char *name;
    ww_status (*call)(ww_quant *q);
} calls[] = {
    {"from_f32", call_from_f32},
    {"load", call_load},
    {"view", call_view},
    {"read_f32", call_read_f32},
    {"read_blocks", call_read_blocks},
    {"get_rows", call_get_rows},
    {"matmul", call_matmul},
    {"experts", call_experts},
    {"from_tensor", call_from_tensor},
    {"dequantize", call_dequantize},
    {"rows", call_rows},
    {"expert ids", call_expert_ids},
    {"decoded", call_decoded},
    {"coded", call_coded},
    {"fused", call_fused},
};
enum { CALLS = sizeof calls / sizeof *calls };

static ww_quant *matrix_make(void **state, float *expected)
{
    test_random random = {9};
    ww_quant *q;
    device = *state;
    random_normals(&random, values, (int64_t)ROWS * COLS);
    CHECK_OK(ww_quant_from_f32(device, WW_QUANT_Q4_K, values, ROWS, COLS, 0, &q));
    CHECK_OK(ww_quant_read_f32(q, 0, ROWS, expected));
    const int64_t shape[2] = {2, COLS};
    activations.layout = ww_layout_contiguous(2, shape);
    CHECK_OK(ww_storage_from_host(device, WW_F32, 2 * COLS, values, &activations.storage));
    static const uint32_t numbers[2] = {1, 0};
    ids.layout = ww_layout_contiguous(1, shape);
    CHECK_OK(ww_storage_from_host(device, WW_U32, 2, numbers, &ids.storage));
    CHECK_OK(ww_quant_from_tensor(WW_QUANT_Q8_K, &activations, &coded));
    for (int c = 0; c < CALLS; c++)
        CHECK_OK(calls[c].call(q)); /* allocates what a device keeps for its next call */
    return q;
}

static void matrix_end(ww_quant *q)
{
    ww_storage_release(activations.storage);
    ww_storage_release(ids.storage);
    ww_quant_destroy(coded);
    ww_quant_destroy(q);
}

static void check_unchanged(const char *name, ww_quant *q, const float *expected)
{
    CHECK_OK(ww_quant_read_f32(q, 0, ROWS, read_back));
    if (memcmp(read_back, expected, sizeof read_back) != 0)
        fail_msg("%s: the matrix has changed", name);
}

static void every_call_survives_a_failure_of_every_allocation(void **state)
{
    float expected[ROWS * COLS];
    ww_quant *q = matrix_make(state, expected);
    for (int c = 0; c < CALLS; c++) {
        int64_t n = 1;
        for (; n < ATTEMPTS_MAX; n++) {
            const int64_t held = blocks_held();
            fail_allocation_at(n);
            const ww_status status = calls[c].call(q);
            fail_allocation_at(0);
            if (status == WW_OK)
                break;
            if (status != WW_OUT_OF_MEMORY || blocks_held() != held)
                fail_msg("%s, allocation %d: %s, %d blocks more", calls[c].name, (int)n, ww_status_name(status),
                         (int)(blocks_held() - held));
        }
        assert_true(n < ATTEMPTS_MAX);
        if (c < 3)
            assert_true(n > 1);
        check_unchanged(calls[c].name, q, expected);
    }
    matrix_end(q);
}

static void every_call_survives_a_failure_of_every_call_of_the_backend(void **state)
{
    float expected[ROWS * COLS];
    ww_quant *q = matrix_make(state, expected);
    for (int after = 0; after < 2; after++)
        for (int c = 0; c < CALLS; c++) {
            long n = 1;
            for (; n < ATTEMPTS_MAX; n++) {
                const int64_t held = blocks_held();
                faulty_attach(device);
                faults = (fault_plan){.first = n, .count = 1, .after_work = after};
                const ww_status status = calls[c].call(q);
                faulty_detach(device);
                if (status == WW_OK)
                    break;
                if (status != WW_DRIVER_ERROR || !strstr(ww_error_message(), "injected"))
                    fail_msg("%s, call %ld: %s: %s", calls[c].name, n, ww_status_name(status), ww_error_message());
                assert_int_equal(blocks_held(), held);
            }
            assert_true(n < ATTEMPTS_MAX);
            if (c != 2)
                assert_true(n > 1);
            check_unchanged(calls[c].name, q, expected);
        }
    matrix_end(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_survives_a_failure_of_every_allocation),
        cmocka_unit_test(every_call_survives_a_failure_of_every_call_of_the_backend),
    };
    return RUN_ON_EVERY_DEVICE("quant faults", tests);
}
