/* Tensors on ROCm over a runtime whose every call fails in turn, in every operation: a clean status that names the call, no
 * result, nothing left alive in the runtime or on the host, no handle used after its end; and the next call works, unless the
 * device was lost.
 */
#include "support/standin.h"

#include <string.h>

#include "gpu/driver/hip_api.h"
#include "support/calls/tensor.h"
#include "support/memory.h"

enum { CALLS_MAX = 200 };

static standin rocm;
static char settings[96];

static void set(long n, int number)
{
    snprintf(settings, sizeof settings, "memory=64MiB;fail=any:%ld:%d", n, number);
    rocm.configure(settings);
}

static void check_failed(const tensor_call *call, ww_status status, const ww_storage *out, bool loses)
{
    const char *victim = rocm.victim();
    assert_null(out);
    if (victim == NULL || strstr(ww_error_message(), loses ? "device lost" : victim) == NULL)
        fail_msg("%s, %s: %s: %s", call->name, settings, ww_status_name(status), ww_error_message());
}

/* One attempt: the n-th HIP call of the operation fails. Says whether there was one. */
static bool fail_call(const tensor_call *call, long n, int number, bool loses)
{
    const int64_t host_blocks = blocks_held();
    ww_device *device = NULL;
    ww_tensor out = {0};
    rocm.configure("memory=64MiB");
    CHECK_OK(ww_device_open(n % 2 ? "rocm:1" : "rocm:0", &device));
    tensor_operands o = tensor_operands_make(device);
    CHECK_OK(ww_device_trim(device)); /* so that memory comes from the driver */
    set(n, number);
    const ww_status status = call->call(&o, &out);
    const bool failed = rocm.victim() != NULL;
    if (status != WW_OK)
        check_failed(call, status, out.storage, loses);
    if (status != WW_OK && !loses) {
        rocm.configure("memory=64MiB");
        CHECK_OK(call->call(&o, &out));
    }
    ww_tensor_release(&out);
    tensor_operands_free(&o);
    ww_device_close(device);
    if (rocm.misuse() != NULL || standin_alive(&rocm) != 0 || blocks_held() != host_blocks)
        fail_msg("%s, %s: %s; alive: %s; %d blocks of host memory left", call->name, settings,
                 rocm.misuse() != NULL ? rocm.misuse() : "no misuse", standin_alive_text(&rocm),
                 (int)(blocks_held() - host_blocks));
    return failed;
}

static void fail_each_call_of_each_operation(int number, bool loses)
{
    for (const tensor_call *call = tensor_calls; call->name; call++) {
        long n = 1;
        while (fail_call(call, n, number, loses))
            assert_true(n++ < CALLS_MAX);
    }
}

static void each_call_of_each_operation_may_run_out_of_memory(void **state)
{
    (void)state;
    fail_each_call_of_each_operation(AMD_ERROR_OUT_OF_MEMORY, false);
}

static void each_call_of_each_operation_may_lose_the_device(void **state)
{
    (void)state;
    fail_each_call_of_each_operation(AMD_ERROR_LAUNCH_FAILURE, true);
}

int main(void)
{
    if (!standin_open(6, "", &rocm))
        return 0;
    (void)ww_backend_absence("rocm"); /* starts the runtime, which happens once for a process */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_of_each_operation_may_run_out_of_memory),
        cmocka_unit_test(each_call_of_each_operation_may_lose_the_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
