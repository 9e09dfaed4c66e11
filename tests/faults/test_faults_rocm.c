/* Collections on ROCm over a runtime whose every call fails in turn: open, add, grow, search, compact, close. A clean status,
 * the collection as it was, nothing left alive in the runtime or on the host, and no handle used after its end.
 *
 * One process for all: the stand-in is set up anew for each attempt. */
#include "support/faults/fault_counts.h"
#include "support/standin.h"

#include <stdlib.h>
#include <string.h>

#include "base/tables/hash.h"
#include "gpu/blas/blas.h"
#include "gpu/driver/hip_api.h"
#include "gpu/memory.h"
#include "support/calls/calls.h"
#include "support/memory.h"

enum { CALLS_MAX = 5000, SNAPSHOT_EACH = 20, GLANCE_ROWS = 170 };

static standin rocm;
static char settings[96];

static void set(const char *call, long n, int number)
{
    snprintf(settings, sizeof settings, "memory=64MiB;fail=%s:%ld:%d", call, n, number);
    rocm.configure(settings);
}

static bool is_loss(int number)
{
    return number == AMD_ERROR_LAUNCH_FAILURE || number == AMD_ERROR_ECC_NOT_CORRECTABLE;
}

static void check_nothing_left(int64_t host_blocks, const char *when)
{
    if (rocm.misuse() != NULL)
        fail_msg("%s, %s: %s", when, settings, rocm.misuse());
    if (standin_alive(&rocm) != 0)
        fail_msg("%s, %s: still alive: %s", when, settings, standin_alive_text(&rocm));
    if (blocks_held() != host_blocks)
        fail_msg("%s, %s: %d blocks of host memory left", when, settings, (int)(blocks_held() - host_blocks));
}

static const char *device_name(long n)
{
    return n % 2 ? "rocm:1" : "rocm:0";
}

/* The host's data still exists and is correct, whatever happened to the device. */
static void check_host_side(ww_collection *c, bool unchanged)
{
    char text[64] = "";
    int64_t row = -1;
    ww_collection_info info = ww_collection_info_default();
    CHECK_OK(ww_collection_find(c, "a6", &row));
    if (unchanged)
        assert_int_equal(row, 6);
    CHECK_OK(ww_collection_id(c, row, text, sizeof text, NULL));
    assert_string_equal(text, "a6");
    CHECK_OK(ww_collection_payload(c, row, text, sizeof text, NULL));
    assert_true(text[0] != '\0');
    CHECK_OK(ww_collection_describe(c, &info));
    assert_true(info.rows_live >= 140);
    if (unchanged)
        assert_int_equal(info.rows_live, 146);
}

/* Every row at once: its score for two queries, to the bit, in order, and its id and payload. One launch instead of a read for
 * each row, so that it can be checked after every failing call. */
typedef struct glance {
    int64_t rows[2 * GLANCE_ROWS];
    float scores[2 * GLANCE_ROWS];
    uint64_t texts;
} glance;

static uint64_t hash_text(uint64_t hash, const char *text)
{
    return fnv_bytes(hash, text, strlen(text) + 1);
}

static void glance_take(ww_collection *c, glance *out)
{
    static const float queries[2 * 9] = {1, -2, 3, 0.5f, -0.25f, 7, 1, 1, -1, 0.1f, 0.2f, -0.3f, 4, 5, -6, 0, 8, 9};
    ww_query search = ww_query_default();
    search.queries = queries;
    search.query_count = 2;
    search.dim = 9;
    search.k = GLANCE_ROWS;
    memset(out, 0, sizeof *out);
    CHECK_OK(ww_collection_search(c, &search, out->rows, out->scores));
    assert_true(out->rows[GLANCE_ROWS - 1] < 0); /* there was room for all */
    for (int64_t row = ww_collection_next(c, -1); row >= 0; row = ww_collection_next(c, row)) {
        char text[64] = "";
        CHECK_OK(ww_collection_id(c, row, text, sizeof text, NULL));
        out->texts = hash_text(out->texts ^ (uint64_t)row, text);
        CHECK_OK(ww_collection_payload(c, row, text, sizeof text, NULL));
        out->texts = hash_text(out->texts, text);
    }
}

static void check_message(const collection_call *call, ww_status status, int number)
{
    const char *victim = rocm.victim();
    if (status == WW_OK)
        return;
    if (victim == NULL || strstr(ww_error_message(), is_loss(number) ? "device lost" : victim) == NULL)
        fail_msg("%s, %s: %s: %s", call->name, settings, ww_status_name(status), ww_error_message());
}

static void check_reached(const collection_call *call, long n)
{
    assert_true(n < CALLS_MAX);
    if (call->needs_device)
        assert_true(n > 2);
}

/* Fails each HIP call of an operation in turn. If the operation fails, too, the collection must be unchanged. If the library
 * recovered (by freeing memory), the test continues with a new collection. */
static void fail_each_call_of(const collection_call *call, int number)
{
    ww_device *device = NULL;
    bool failed = true;
    long n = 1;
    rocm.configure("memory=64MiB");
    CHECK_OK(ww_device_open(device_name(number), &device));
    ww_collection *c = collection_for_calls(device);
    static glance wanted, found;
    glance_take(c, &wanted);
    snapshot before = snapshot_take(c);
    for (int attempt = 0; failed && n < CALLS_MAX; n = fault_next(n), attempt++) {
        set("any", n, number);
        const ww_status status = call->call(c);
        failed = rocm.victim() != NULL;
        fault_count("call of ROCm", failed);
        check_message(call, status, number);
        rocm.configure("memory=64MiB");
        if (status == WW_OK) {
            ww_collection_destroy(c);
            c = collection_for_calls(device);
            continue;
        }
        check_host_side(c, true);
        glance_take(c, &found);
        if (memcmp(&found, &wanted, sizeof found) != 0)
            fail_msg("%s, call %ld: the collection has changed", call->name, n);
        if (attempt % SNAPSHOT_EACH != 0)
            continue; /* the whole of it takes 150 reads of the device */
        snapshot now = snapshot_take(c);
        if (!snapshot_equal(&before, &now))
            fail_msg("%s, call %ld or a few before: the collection has changed", call->name, n);
        snapshot_free(&now);
    }
    check_reached(call, n);
    snapshot_free(&before);
    ww_collection_destroy(c);
    ww_device_close(device);
}

static void fail_each_call_with(int number)
{
    const int64_t host_blocks = blocks_held();
    for (const collection_call *call = collection_calls; call->name != NULL; call++) {
        fail_each_call_of(call, number);
        check_nothing_left(host_blocks, call->name);
    }
}

/* Loses the device at the n-th HIP call of an operation; true if there was one. */
static bool lose_at_call(const collection_call *call, long n)
{
    ww_device *device = NULL;
    rocm.configure("memory=64MiB");
    CHECK_OK(ww_device_open(device_name(n), &device));
    ww_collection *c = collection_for_calls(device);
    set("any", n, AMD_ERROR_LAUNCH_FAILURE);
    const ww_status status = call->call(c);
    const bool lost = rocm.victim() != NULL;
    fault_count("call of ROCm", lost);
    check_message(call, status, AMD_ERROR_LAUNCH_FAILURE);
    if (lost && strcmp(call->name, "clear") != 0)
        check_host_side(c, status != WW_OK);
    ww_collection_destroy(c);
    ww_device_close(device);
    return lost;
}

static void each_call_of_each_operation_may_run_out_of_memory(void **state)
{
    (void)state;
    fail_each_call_with(AMD_ERROR_OUT_OF_MEMORY);
}

static void each_call_of_each_operation_may_fail(void **state)
{
    (void)state;
    fail_each_call_with(AMD_ERROR_INVALID_VALUE);
}

static void each_call_of_each_operation_may_lose_the_device(void **state)
{
    (void)state;
    const int64_t host_blocks = blocks_held();
    for (const collection_call *call = collection_calls; call->name != NULL; call++) {
        long n = 1;
        for (; n < CALLS_MAX && lose_at_call(call, n); n = fault_next(n))
            check_nothing_left(host_blocks, call->name);
        check_reached(call, n);
    }
}

static void each_call_of_opening_may_fail(void **state)
{
    (void)state;
    static const int numbers[] = {AMD_ERROR_OUT_OF_MEMORY, AMD_ERROR_INVALID_VALUE, AMD_ERROR_LAUNCH_FAILURE,
                                  AMD_ERROR_NO_BINARY_FOR_GPU};
    const int64_t host_blocks = blocks_held();
    for (size_t kind = 0; kind < sizeof numbers / sizeof numbers[0]; kind++) {
        bool failed = true;
        for (long n = 1; failed && n < CALLS_MAX; n = fault_next(n)) {
            ww_device *device = NULL;
            set("any", n, numbers[kind]);
            const ww_status status = ww_device_open(device_name(n), &device);
            failed = rocm.victim() != NULL;
            fault_count("call of ROCm", failed);
            if (status == WW_OK)
                ww_device_close(device);
            else
                assert_true(failed && device == NULL && ww_error_message()[0] != '\0');
            check_nothing_left(host_blocks, "opening");
            if (n == 1)
                assert_true(status != WW_OK);
        }
        assert_false(failed);
    }
}

static void each_call_of_closing_may_fail_and_nothing_is_left(void **state)
{
    (void)state;
    static const int numbers[] = {AMD_ERROR_INVALID_VALUE, AMD_ERROR_ECC_NOT_CORRECTABLE};
    const int64_t host_blocks = blocks_held();
    for (int kind = 0; kind < 2; kind++) {
        bool failed = true;
        long n = 1;
        for (; failed && n < CALLS_MAX; n = fault_next(n)) {
            ww_device *device = NULL;
            rocm.configure("memory=64MiB");
            CHECK_OK(ww_device_open(device_name(n), &device));
            ww_collection *c = collection_for_calls(device);
            set("any", n, numbers[kind]);
            ww_collection_destroy(c);
            ww_device_close(device);
            failed = rocm.victim() != NULL;
            check_nothing_left(host_blocks, "closing");
        }
        assert_false(failed);
        assert_true(n > 10);
    }
}

/* Memory of several sizes, each too small at another place. */
static void memory_that_runs_out_leaves_a_collection_that_works(void **state)
{
    (void)state;
    static const char *const sizes[] = {"memory=300KiB", "memory=1MiB", "memory=3MiB", "memory=7MiB"};
    const int64_t host_blocks = blocks_held();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        ww_device *device = NULL;
        ww_status status = WW_OK;
        test_random random = {12};
        snprintf(settings, sizeof settings, "%s", sizes[i]);
        rocm.configure(settings);
        CHECK_OK(ww_device_open(device_name((long)i), &device));
        ww_collection *c = collection_make(device, 512, WW_DOT);
        int64_t turns = 0;
        for (; turns < 100 && status == WW_OK; turns++) {
            test_rows rows = test_rows_make(&random, 100, 512, "row", turns * 100);
            status = ww_collection_add(c, &rows.rows);
            test_rows_free(&rows);
        }
        assert_int_equal(status, WW_OUT_OF_MEMORY);
        assert_non_null(strstr(ww_error_message(), "asked"));
        if (turns > 1) {
            const char *removed[] = {"row1", "row2"};
            CHECK_OK(ww_collection_remove(c, removed, 2));
        }
        ww_collection_destroy(c);
        ww_device_close(device);
        check_nothing_left(host_blocks, "after memory ran out");
    }
}

/* The loss is detected when the host waits for the kernels of a search. Afterwards the device is refused until it is opened
 * again. */
static void a_device_lost_in_mid_search_says_so_until_it_is_opened_again(void **state)
{
    (void)state;
    const int64_t host_blocks = blocks_held();
    for (long n = 1; n < 3; n++) {
        ww_device *device = NULL;
        float query[9] = {1};
        int64_t rows[3];
        float scores[3];
        ww_query search = ww_query_default();
        search.queries = query;
        search.query_count = 1;
        search.dim = 9;
        search.k = 3;
        rocm.configure("memory=64MiB");
        CHECK_OK(ww_device_open(device_name(n), &device));
        ww_collection *c = collection_for_calls(device);
        set(n == 1 ? "hipModuleLaunchKernel" : "hipStreamSynchronize", 1, AMD_ERROR_LAUNCH_FAILURE);
        CHECK_FAILS(WW_DRIVER_ERROR, ww_collection_search(c, &search, rows, scores));
        assert_non_null(strstr(ww_error_message(), "device lost: hip"));
        assert_non_null(strstr(ww_error_message(), "hipErrorLaunchFailure (719)"));
        const long calls = rocm.calls();
        CHECK_FAILS(WW_DRIVER_ERROR, ww_collection_search(c, &search, rows, scores));
        assert_non_null(strstr(ww_error_message(), "close it and open it again"));
        assert_int_equal(rocm.calls(), calls); /* a lost device is not bothered */
        check_host_side(c, true);
        ww_collection_destroy(c);
        ww_device_close(device);
        check_nothing_left(host_blocks, "after a loss");
        rocm.configure("memory=64MiB");
        CHECK_OK(ww_device_open(device_name(n), &device));
        c = collection_for_calls(device);
        CHECK_OK(ww_collection_search(c, &search, rows, scores));
        ww_collection_destroy(c);
        ww_device_close(device);
        check_nothing_left(host_blocks, "after opening again");
    }
}

/* rocBLAS fails at one call after the other. */
static void each_call_of_rocblas_may_fail(void **state)
{
    (void)state;
    static const struct {
        const char *call;
        int number;
        ww_status status;
        const char *name;
    } cases[] = {{"rocblas_create_handle", 5, WW_OUT_OF_MEMORY, "rocblas_status_memory_error (5)"},
                 {"rocblas_set_stream", 1, WW_DRIVER_ERROR, "rocblas_status_invalid_handle (1)"},
                 {"rocblas_set_atomics_mode", 6, WW_DRIVER_ERROR, "rocblas_status_internal_error (6)"},
                 {"rocblas_gemm_ex", 2, WW_UNSUPPORTED, "rocblas_status_not_implemented (2)"},
                 {"rocblas_gemm_ex", 77, WW_DRIVER_ERROR, "an error without a name (77)"}};
    const int64_t host_blocks = blocks_held();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ww_device *device = NULL;
        gpu_stream *stream = NULL;
        gpu_blas *blas = NULL;
        buffer held = {0};
        rocm.configure("memory=64MiB");
        CHECK_OK(ww_device_open("rocm:0", &device));
        CHECK_OK(gpu_stream_borrow(gpu_of(device), &stream));
        CHECK_OK(gpu_memory_alloc(gpu_of(device), 64, &held));
        const blas_product product = {.m = 2,
                                      .n = 2,
                                      .k = 2,
                                      .batch = 1,
                                      .a = {.data = held.data, .stride = 2},
                                      .b = {.data = held.data, .stride = 2},
                                      .c = (char *)held.data + 32,
                                      .c_stride = 2,
                                      .alpha = 1.0};
        set(cases[i].call, 1, cases[i].number);
        ww_status status = gpu_blas_create(stream, &blas);
        if (status == WW_OK)
            status = gpu_blas_multiply(gpu_of(device), blas, &product);
        assert_int_equal(status, cases[i].status);
        assert_non_null(strstr(ww_error_message(), cases[i].call));
        assert_non_null(strstr(ww_error_message(), cases[i].name));
        gpu_blas_destroy(blas);
        gpu_memory_free(gpu_of(device), &held);
        CHECK_OK(gpu_stream_return(stream, WW_OK));
        ww_device_close(device);
        check_nothing_left(host_blocks, "rocBLAS");
    }
}

int main(void)
{
    if (!standin_open(6, "", &rocm))
        return 0;
    (void)ww_backend_absence(
        "rocm"); /* starts the runtime, which happens once for a process; how that fails: test_rocm_device */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_of_opening_may_fail),
        cmocka_unit_test(each_call_of_each_operation_may_run_out_of_memory),
        cmocka_unit_test(each_call_of_each_operation_may_fail),
        cmocka_unit_test(each_call_of_each_operation_may_lose_the_device),
        cmocka_unit_test(each_call_of_closing_may_fail_and_nothing_is_left),
        cmocka_unit_test(memory_that_runs_out_leaves_a_collection_that_works),
        cmocka_unit_test(a_device_lost_in_mid_search_says_so_until_it_is_opened_again),
        cmocka_unit_test(each_call_of_rocblas_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
