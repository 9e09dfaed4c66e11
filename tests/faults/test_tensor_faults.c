/* Out of memory at every allocation of every operation on tensors, and a failure of every driver call under it: a status and a
 * message, no result, nothing leaked, the tensor that would have been written as it was; and then the same call works.
 */
#include <stdlib.h>
#include <string.h>

#include "emulated/emulated.h"
#include "emulated/parts.h"
#include "gpu/backend.h"
#include "support/calls/tensor.h"
#include "support/devices.h"
#include "support/faults/fault_counts.h"
#include "support/faults/faulty_driver.h"
#include "support/memory.h"

enum { ATTEMPTS_MAX = 200 };

static size_t target_bytes(const tensor_operands *o)
{
    return (size_t)ww_storage_elements(o->target.tensor.storage) * sizeof(float);
}

static void check_target(const tensor_operands *o, const char *name, long long n)
{
    uint8_t *now = storage_bytes(o->target.tensor.storage);
    if (memcmp(now, o->target.host, target_bytes(o)) != 0)
        fail_msg("%s, failure %lld: the target was written", name, n);
    free(now);
}

/* The first use of a kernel loads its module, whose code stays in memory. */
static void load_kernels(ww_device *device, const tensor_call *call)
{
    tensor_operands o = tensor_operands_make(device);
    ww_tensor out = {0};
    CHECK_OK(call->call(&o, &out));
    ww_tensor_release(&out);
    tensor_operands_free(&o);
}

/* Makes the call until nothing fails any more; each failure is looked at. */
static void every_operation_survives_a_failure_of_every_allocation(void **state)
{
    CHECK_OK(ww_device_synchronize(*state)); /* the first use makes the stream, which stays */
    for (const tensor_call *call = tensor_calls; call->name; call++) {
        load_kernels(*state, call);
        CHECK_OK(ww_device_trim(*state)); /* blocks that are kept for reuse, which a failure may free, do not count */
        const int64_t at_first = blocks_held();
        tensor_operands o = tensor_operands_make(*state);
        int64_t n = 1;
        for (ww_status status = WW_OUT_OF_MEMORY; status != WW_OK; n = fault_next(n)) {
            ww_tensor out = {0};
            const int64_t blocks = blocks_held();
            fail_allocation_at(n);
            status = call->call(&o, &out);
            fail_allocation_at(0);
            if (status == WW_OK) {
                ww_tensor_release(&out);
                break;
            }
            assert_null(out.storage);
            if (status != WW_OUT_OF_MEMORY || !strstr(ww_error_message(), "asked") || blocks_held() != blocks)
                fail_msg("%s, allocation %lld: %s, '%s', %lld blocks more", call->name, (long long)n, ww_status_name(status),
                         ww_error_message(), (long long)(blocks_held() - blocks));
            check_target(&o, call->name, (long long)n);
            assert_true(n < ATTEMPTS_MAX);
        }
        tensor_operands_free(&o);
        CHECK_OK(ww_device_trim(*state));
        assert_int_equal(blocks_held(), at_first);
    }
}

/* On a CPU, a product of this size allocates memory besides that of its result. */
static void a_large_product_survives_a_failure_of_every_allocation(void **state)
{
    const int64_t shape[] = {416, 416};
    ww_device *cpu = NULL;
    ww_tensor zeros = {0};
    ww_status status = WW_OUT_OF_MEMORY;
    (void)state;
    CHECK_OK(ww_device_open("cpu", &cpu));
    CHECK_OK(ww_tensor_zeros(cpu, WW_F16, 1, (int64_t[]){shape[0] * shape[1]}, &zeros));
    const ww_tensor x = {zeros.storage, ww_layout_contiguous(2, shape)};
    int64_t n = 0;
    while (status != WW_OK) {
        ww_tensor out = {0};
        CHECK_OK(ww_device_trim(cpu)); /* so that memory is really allocated */
        const int64_t blocks = blocks_held();
        fail_allocation_at(++n);
        status = ww_tensor_matmul(&x, &x, WW_MATH_CANONICAL, &out);
        fail_allocation_at(0);
        assert_true(status == WW_OK || (status == WW_OUT_OF_MEMORY && out.storage == NULL));
        ww_tensor_release(&out);
        CHECK_OK(ww_device_trim(cpu));
        assert_int_equal(blocks_held(), blocks);
        assert_true(n < ATTEMPTS_MAX);
    }
    assert_true(n > 3); /* the storage, its elements and the product's own were refused */
    ww_tensor_release(&zeros);
    ww_device_close(cpu);
}

static void check_nothing_left(const char *name)
{
    emulated_counts counts;
    emulated_count(&counts);
    if (counts.contexts || counts.blocks || counts.pinned || counts.streams || counts.events || counts.modules)
        fail_msg("%s: left in the driver: %d contexts, %d blocks, %d pinned, %d streams, %d events, %d modules", name,
                 (int)counts.contexts, (int)counts.blocks, (int)counts.pinned, (int)counts.streams, (int)counts.events,
                 (int)counts.modules);
}

/* One device for all failures that it survives; a lost one is closed, and the next is opened. */
static void fail_each_driver_call(const tensor_call *call, int number, bool loses)
{
    bool failed = true;
    for (int64_t n = 1; failed; n = fault_next(n)) {
        ww_device *device = NULL;
        ww_tensor out = {0};
        faulty_arm(&emulated_driver, 0, 0, NULL);
        CHECK_OK(gpu_open(&backend_emulator, &faulty_driver, (int32_t)(n % 2), &device));
        tensor_operands o = tensor_operands_make(device);
        CHECK_OK(ww_device_trim(device)); /* so that memory comes from the driver */
        faulty_arm(&emulated_driver, n, number, NULL);
        const ww_status status = call->call(&o, &out);
        failed = faulty_victim() != NULL;
        if (status != WW_OK) {
            assert_true(failed);
            assert_null(out.storage);
            assert_true(ww_error_message()[0] != '\0');
        }
        if (status != WW_OK && !loses) {
            faulty_arm(&emulated_driver, 0, 0, NULL);
            check_target(&o, call->name, (long long)n);
            CHECK_OK(call->call(&o, &out));
        }
        ww_tensor_release(&out);
        tensor_operands_free(&o);
        ww_device_close(device);
        check_nothing_left(call->name);
        assert_true(n < ATTEMPTS_MAX);
    }
}

static void every_operation_survives_a_failure_of_every_driver_call(void **state)
{
    (void)state;
    for (const tensor_call *call = tensor_calls; call->name; call++) {
        fail_each_driver_call(call, EMULATED_OUT_OF_MEMORY, false);
        fail_each_driver_call(call, EMULATED_LAUNCH_FAILED, true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_operation_survives_a_failure_of_every_allocation)};
    const struct CMUnitTest others[] = {cmocka_unit_test(a_large_product_survives_a_failure_of_every_allocation),
                                        cmocka_unit_test(every_operation_survives_a_failure_of_every_driver_call)};
    return RUN_ON_EVERY_DEVICE("tensors, out of memory", tests) + cmocka_run_group_tests(others, NULL, NULL);
}
