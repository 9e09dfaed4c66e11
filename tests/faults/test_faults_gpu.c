/* Every driver call of the GPU backend fails in turn, with each kind of error: the call returns a status and a message, nothing
 * leaks on the host or in the driver, and the device keeps working, unless it was lost; then it says so and can be opened
 * again. */
#include "support/check.h"

#include <stdlib.h>
#include <string.h>

#include "emulated/emulated.h"
#include "emulated/parts.h"
#include "gpu/backend.h"
#include "gpu/error.h"
#include "gpu/memory.h"
#include "gpu/stream.h"
#include "support/faults/faulty_driver.h"
#include "support/memory.h"

enum {
    CALLS_MAX = 2000, /* a body that makes more does not end */
    STAGING = 64 << 10,
    LARGE = 4 * STAGING + 1000 /* more than all slots of staging hold */
};

static char *source, *result;

typedef ww_status (*body)(ww_device *device);

static void check_nothing_left(int64_t host_blocks, const char *when)
{
    emulated_counts counts;
    emulated_count(&counts);
    if (counts.contexts || counts.blocks || counts.pinned || counts.streams || counts.events || counts.modules)
        fail_msg("%s: left in the driver: %d contexts, %d blocks, %d pinned, %d streams, %d events, %d modules", when,
                 (int)counts.contexts, (int)counts.blocks, (int)counts.pinned, (int)counts.streams, (int)counts.events,
                 (int)counts.modules);
    if (blocks_held() != host_blocks)
        fail_msg("%s: %d blocks of host memory left", when, (int)(blocks_held() - host_blocks));
}

/* ---- what is done to a device -------------------------------------------------------------------------------------------- */

static ww_status move_bytes(ww_device *device, device_stream *on, buffer *a, buffer *b, size_t bytes)
{
    const backend *gpu = device->backend;
    memset(result, 0, bytes);
    ww_status status = gpu->copy_in(device, on, (buffer_range){a, 0, bytes}, source);
    if (status == WW_OK)
        status = gpu->copy(device, on, (buffer_range){b, 0, bytes}, a, 0);
    if (status == WW_OK)
        status = gpu->fill(device, on, (buffer_range){a, 0, bytes}, 7);
    if (status == WW_OK)
        status = gpu->copy_out(device, on, result, (buffer_range){b, 0, bytes});
    if (status == WW_OK && memcmp(source, result, bytes) != 0)
        fail_msg("%zu bytes came back otherwise", bytes);
    return status == WW_OK ? gpu->stream_synchronize(device, on) : status;
}

static ww_status buffers_and_copies(ww_device *device)
{
    const backend *gpu = device->backend;
    buffer a = {0};
    buffer b = {0};
    device_stream *on = NULL;
    ww_memory_info memory = ww_memory_info_default();
    ww_status status = gpu->stream_create(device, &on);
    if (status == WW_OK)
        status = gpu->buffer_create(device, LARGE, &a);
    if (status == WW_OK)
        status = gpu->buffer_create(device, LARGE, &b);
    if (status == WW_OK)
        status = move_bytes(device, on, &a, &b, 1000);
    if (status == WW_OK)
        status = move_bytes(device, on, &a, &b, LARGE);
    if (status == WW_OK)
        status = gpu->memory(device, &memory);
    gpu->buffer_destroy(device, &a);
    gpu->stream_destroy(device, on);
    gpu->buffer_destroy(device, &b);
    return status == WW_OK ? gpu->trim(device) : status;
}

static ww_status time_something(gpu_stream *stream, driver_event from, driver_event to)
{
    gpu_device *device = stream->device;
    float milliseconds = -1.0f;
    void *scratch = NULL;
    ww_status status = gpu_event_record(stream, from);
    if (status == WW_OK)
        status = gpu_workspace(stream, 1, 5000, &scratch);
    if (status == WW_OK)
        status = gpu_fill(stream, scratch, 1, 1000);
    if (status == WW_OK)
        status = gpu_event_record(stream, to);
    if (status == WW_OK)
        status = gpu_check(device, device->driver->stream_wait(stream->handle, from), "having a stream wait for an event");
    if (status == WW_OK)
        status = gpu_event_elapsed(device, from, to, &milliseconds);
    if (status == WW_OK)
        assert_true(milliseconds >= 0.0f);
    return status;
}

static ww_status events_and_workspaces(ww_device *of)
{
    gpu_device *device = gpu_of(of);
    gpu_stream *stream = NULL;
    driver_event from = NULL;
    driver_event to = NULL;
    ww_status status = gpu_stream_borrow(device, &stream);
    if (status != WW_OK)
        return status;
    status = gpu_event_create(device, true, &from);
    if (status == WW_OK)
        status = gpu_event_create(device, true, &to);
    if (status == WW_OK)
        status = time_something(stream, from, to);
    gpu_event_destroy(device, from);
    gpu_event_destroy(device, to);
    status = gpu_stream_return(stream, status);
    return status == WW_OK ? gpu_trim(of) : status;
}

/* The kernel of examples/own_kernel on one tensor, in place. */
static ww_status kernels_of_ones_own(ww_device *device)
{
    static char code[1 << 20];
    static size_t bytes;
    const int64_t count = 8;
    ww_module *module = NULL;
    ww_kernel *scale = NULL;
    ww_tensor x = {0};
    FILE *file = bytes == 0 ? fopen(BUILD_DIR "/tests/own_kernel/scale.so", "rb") : NULL;
    if (file != NULL) {
        bytes = fread(code, 1, sizeof code, file);
        fclose(file);
    }
    ww_status status = ww_module_load(device, code, bytes, &module);
    if (status == WW_OK)
        status = ww_module_function(module, "scale", &scale);
    if (status == WW_OK)
        status = ww_tensor_zeros(device, WW_F32, 1, &count, &x);
    const ww_argument arguments[] = {ww_argument_tensor(&x), ww_argument_tensor(&x), ww_argument_tensor(&x),
                                     ww_argument_f32(2.0f), ww_argument_i64(count)};
    ww_launch launch = ww_launch_default();
    launch.block[0] = 32;
    launch.arguments = arguments;
    launch.argument_count = 5;
    if (status == WW_OK)
        status = ww_kernel_launch(scale, &launch);
    if (status == WW_OK)
        status = ww_device_synchronize(device);
    ww_tensor_release(&x);
    ww_module_release(module);
    return status == WW_OK ? gpu_trim(device) : status;
}

static ww_status open_faulty(int32_t index, ww_device **device)
{
    const ww_status status = gpu_open(&backend_emulator, &faulty_driver, index, device);
    if (status == WW_OK)
        gpu_of(*device)->staging_bytes = STAGING;
    return status;
}

/* ---- failing it ---------------------------------------------------------------------------------------------------------- */

static bool is_lost(int number)
{
    return emulated_driver.error_class(number) == DRIVER_ERROR_LOST;
}

/* After a failure, the message names the call. A device that was not lost works; a lost one reports that until it is closed. */
static void check_after(ww_device *device, body work, ww_status status, int number, bool *seen)
{
    const char *victim = faulty_victim();
    for (int32_t i = 0; faulty_function(i) != NULL; i++)
        seen[i] |= strcmp(faulty_function(i), victim) == 0;
    /* If a loss is noticed while something is freed, the next call reports it. */
    const char *expected = is_lost(number) ? "device lost" : victim;
    if (status != WW_OK && strstr(ww_error_message(), expected) == NULL)
        fail_msg("%s failed, and the message is: %s", victim, ww_error_message());
    if (is_lost(number)) {
        CHECK_FAILS(WW_DRIVER_ERROR, work(device));
        assert_non_null(strstr(ww_error_message(), "device lost"));
        assert_non_null(strstr(ww_error_message(), device->info.id));
        return;
    }
    faulty_arm(&emulated_driver, 0, 0, NULL);
    CHECK_OK(work(device));
}

static void fail_each_call(body work, int number, bool *seen)
{
    const int64_t host_blocks = blocks_held();
    int64_t failures = 0;
    for (int64_t n = 1; n < CALLS_MAX; n++) {
        ww_device *device = NULL;
        faulty_arm(&emulated_driver, 0, 0, NULL);
        CHECK_OK(open_faulty((int32_t)(n % 2), &device));
        faulty_arm(&emulated_driver, n, number, NULL);
        const ww_status status = work(device);
        const bool failed = faulty_victim() != NULL;
        if (failed)
            check_after(device, work, status, number, seen);
        else
            CHECK_OK(status);
        failures += status != WW_OK;
        ww_device_close(device);
        check_nothing_left(host_blocks, "after closing");
        if (!failed) {
            assert_true(failures > 10);
            return;
        }
    }
    fail_msg("the body makes more than %d calls", CALLS_MAX);
}

static bool seen[64];

static void each_call_of_buffers_and_copies_may_run_out_of_memory(void **state)
{
    (void)state;
    fail_each_call(buffers_and_copies, EMULATED_OUT_OF_MEMORY, seen);
}

static void each_call_of_buffers_and_copies_may_fail(void **state)
{
    (void)state;
    fail_each_call(buffers_and_copies, EMULATED_INVALID_VALUE, seen);
}

static void each_call_of_buffers_and_copies_may_lose_the_device(void **state)
{
    (void)state;
    fail_each_call(buffers_and_copies, EMULATED_LAUNCH_FAILED, seen);
}

static void each_call_of_events_and_workspaces_may_run_out_of_memory(void **state)
{
    (void)state;
    fail_each_call(events_and_workspaces, EMULATED_OUT_OF_MEMORY, seen);
}

static void each_call_of_kernels_of_ones_own_may_fail(void **state)
{
    (void)state;
    fail_each_call(kernels_of_ones_own, EMULATED_INVALID_VALUE, seen);
    fail_each_call(kernels_of_ones_own, EMULATED_LAUNCH_FAILED, seen);
}

static void each_call_of_events_and_workspaces_may_lose_the_device(void **state)
{
    (void)state;
    fail_each_call(events_and_workspaces, EMULATED_LAUNCH_FAILED, seen);
}

static void each_call_of_opening_may_fail(void **state)
{
    (void)state;
    static const int numbers[] = {EMULATED_OUT_OF_MEMORY, EMULATED_INVALID_VALUE, EMULATED_LAUNCH_FAILED};
    const int64_t host_blocks = blocks_held();
    for (int32_t kind = 0; kind < 3; kind++) {
        bool failed = true;
        for (int64_t n = 1; failed; n++) {
            ww_device *device = NULL;
            faulty_arm(&emulated_driver, n, numbers[kind], NULL);
            const ww_status status = open_faulty(0, &device);
            failed = faulty_victim() != NULL;
            for (int32_t i = 0; failed && faulty_function(i) != NULL; i++)
                seen[i] |= strcmp(faulty_function(i), faulty_victim()) == 0;
            if (status == WW_OK)
                ww_device_close(device);
            else
                assert_true(ww_error_message()[0] != '\0');
            check_nothing_left(host_blocks, "after opening");
            assert_true(n < CALLS_MAX);
        }
        faulty_arm(&emulated_driver, 0, 0, NULL);
        ww_device *device = NULL;
        CHECK_OK(open_faulty(0, &device));
        CHECK_OK(buffers_and_copies(device));
        ww_device_close(device);
        check_nothing_left(host_blocks, "after opening again");
    }
}

static void each_call_of_closing_may_fail_and_nothing_is_left(void **state)
{
    (void)state;
    const int64_t host_blocks = blocks_held();
    bool failed = true;
    for (int64_t n = 1; failed; n++) {
        ww_device *device = NULL;
        gpu_stream *stream = NULL;
        buffer held = {0};
        faulty_arm(&emulated_driver, 0, 0, NULL);
        CHECK_OK(open_faulty(1, &device));
        CHECK_OK(device->backend->buffer_create(device, 12345, &held));
        CHECK_OK(gpu_stream_borrow(gpu_of(device), &stream));
        CHECK_OK(gpu_copy_in(stream, held.data, source, 12345));
        CHECK_OK(gpu_stream_return(stream, WW_OK));
        faulty_arm(&emulated_driver, n, n % 2 ? EMULATED_INVALID_VALUE : EMULATED_LAUNCH_FAILED, NULL);
        device->backend->buffer_destroy(device, &held);
        ww_device_close(device);
        failed = faulty_victim() != NULL;
        for (int32_t i = 0; failed && faulty_function(i) != NULL; i++)
            seen[i] |= strcmp(faulty_function(i), faulty_victim()) == 0;
        check_nothing_left(host_blocks, "after closing");
        assert_true(n < CALLS_MAX);
    }
}

static void each_allocation_on_the_host_may_fail(void **state)
{
    (void)state;
    const int64_t host_blocks = blocks_held();
    ww_status status = WW_OUT_OF_MEMORY;
    faulty_arm(&emulated_driver, 0, 0, NULL);
    for (int64_t n = 1; status != WW_OK && n < CALLS_MAX; n++) {
        ww_device *device = NULL;
        fail_allocation_at(n);
        status = open_faulty(0, &device);
        if (status == WW_OK) {
            status = buffers_and_copies(device);
            ww_device_close(device);
        }
        fail_allocation_at(0);
        if (status != WW_OK)
            assert_int_equal(status, WW_OUT_OF_MEMORY);
        check_nothing_left(host_blocks, "after an allocation failed");
    }
    assert_int_equal(status, WW_OK);
}

static void every_function_of_the_table_was_failed(void **state)
{
    (void)state;
    /* test_gpu_collection_faults.c launches; test_record.c records and replays */
    static const char *const elsewhere[] = {"launch", "capture_begin", "capture_end", "graph_launch", "graph_destroy"};
    for (int32_t i = 0; faulty_function(i) != NULL; i++)
        for (size_t e = 0; e < sizeof elsewhere / sizeof *elsewhere; e++)
            seen[i] |= strcmp(faulty_function(i), elsewhere[e]) == 0;
    for (int32_t i = 0; faulty_function(i) != NULL; i++)
        if (!seen[i])
            fail_msg("%s was never made to fail", faulty_function(i));
}

static int count_minus_one(int32_t *count)
{
    *count = -1;
    return 0;
}

static int count_a_million(int32_t *count)
{
    *count = 1000000;
    return 0;
}

static void a_driver_that_counts_nonsense_has_no_device(void **state)
{
    (void)state;
    gpu_driver nonsense = emulated_driver;
    int32_t count = 5;
    nonsense.device_count = count_minus_one;
    CHECK_OK(gpu_count(&nonsense, &count));
    assert_int_equal(count, 0);
    assert_non_null(strstr(ww_error_message(), "-1 devices"));
    nonsense.device_count = count_a_million;
    CHECK_OK(gpu_count(&nonsense, &count));
    assert_int_equal(count, 0);
    assert_non_null(strstr(ww_error_message(), "1000000 devices"));
}

int main(void)
{
    source = malloc(LARGE);
    result = malloc(LARGE);
    for (size_t i = 0; i < LARGE; i++)
        source[i] = (char)(i * 31 + i / 4096);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_of_opening_may_fail),
        cmocka_unit_test(each_call_of_buffers_and_copies_may_run_out_of_memory),
        cmocka_unit_test(each_call_of_buffers_and_copies_may_fail),
        cmocka_unit_test(each_call_of_buffers_and_copies_may_lose_the_device),
        cmocka_unit_test(each_call_of_events_and_workspaces_may_run_out_of_memory),
        cmocka_unit_test(each_call_of_events_and_workspaces_may_lose_the_device),
        cmocka_unit_test(each_call_of_kernels_of_ones_own_may_fail),
        cmocka_unit_test(each_call_of_closing_may_fail_and_nothing_is_left),
        cmocka_unit_test(each_allocation_on_the_host_may_fail),
        cmocka_unit_test(every_function_of_the_table_was_failed),
        cmocka_unit_test(a_driver_that_counts_nonsense_has_no_device),
    };
    const int failures = cmocka_run_group_tests(tests, NULL, NULL);
    free(source);
    free(result);
    return failures;
}
