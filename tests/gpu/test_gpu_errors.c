/* Failures as fields, ww_error_detail(): whose library, which call, which number, and only while the message tells of it. */
#include "support/faults/faulty_driver.h"
#include "support/process.h"
#include "support/standin.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "emulated/emulated.h"
#include "gpu/backend.h"
#include "gpu/blas/blas.h"
#include "gpu/error.h"
#include "gpu/open.h"

enum { SECONDS = 30 };

static ww_error_info detail(void)
{
    ww_error_info info = ww_error_info_default();
    if (ww_error_detail(&info) != WW_OK)
        memset(&info, 0xff, sizeof info);
    return info;
}

static bool is(const char *device_backend, const char *library, const char *call, const char *name, int code)
{
    const ww_error_info info = detail();
    const bool same = strcmp(info.backend, device_backend) == 0 && strcmp(info.library, library) == 0 &&
                      strcmp(info.call, call) == 0 && strcmp(info.name, name) == 0 && info.code == code;
    if (!same)
        fprintf(stderr, "it is %s, %s, %s, %s, %d\n", info.backend, info.library, info.call, info.name, (int)info.code);
    return same;
}

static bool is_nobodys(void)
{
    return is("", "", "", "", 0);
}

/* ---- without a vendor ---------------------------------------------------------------------------------------------------- */

static void a_thread_without_a_failure(void)
{
    EXPECT(detail().status == WW_OK && is_nobodys());
}

static void there_is_nothing_before_the_first_failure(void **state)
{
    (void)state;
    in_a_process(a_thread_without_a_failure, SECONDS);
}

static void a_failure_of_the_library_has_a_status_and_no_vendor(void **state)
{
    (void)state;
    ww_device *device = NULL;
    CHECK_FAILS(WW_NO_DEVICE, ww_device_open("abacus", &device));
    assert_int_equal(detail().status, WW_NO_DEVICE);
    assert_true(is_nobodys());
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_error_detail(NULL));
    assert_int_equal(detail().status, WW_INVALID_ARGUMENT);
    ww_error_info broken = {0};
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_error_detail(&broken));
}

static void a_caller_with_an_older_struct_gets_the_fields_it_has_room_for(void **state)
{
    (void)state;
    ww_device *device = NULL;
    struct {
        size_t struct_size;
        ww_status status;
        int32_t canary;
    } older = {.struct_size = sizeof(size_t) + sizeof(ww_status), .canary = 77};
    CHECK_FAILS(WW_NO_DEVICE, ww_device_open("abacus", &device));
    CHECK_OK(ww_error_detail((ww_error_info *)&older));
    assert_int_equal(older.status, WW_NO_DEVICE);
    assert_int_equal(older.canary, 77);
}

/* ---- the emulator -------------------------------------------------------------------------------------------------------- */

static void a_vendors_failure_stays_while_the_message_quotes_it(void **state)
{
    (void)state;
    ww_device *device = NULL;
    faulty_arm(&emulated_driver, 1, 2, "stream_create");
    CHECK_FAILS(WW_OUT_OF_MEMORY, gpu_open(&backend_emulator, &faulty_driver, 0, &device));
    assert_true(is("emulator", "emulator", "stream_create", "EMULATED_OUT_OF_MEMORY", 2));
    assert_int_equal(detail().status, WW_OUT_OF_MEMORY);
    char before[512];
    snprintf(before, sizeof before, "%s", ww_error_message());
    (void)ww_fail(WW_UNSUPPORTED, "that did not work: %s; try another", before);
    assert_true(is("emulator", "emulator", "stream_create", "EMULATED_OUT_OF_MEMORY", 2));
    assert_int_equal(detail().status, WW_UNSUPPORTED);
    (void)ww_fail(WW_UNSUPPORTED, "something else");
    assert_true(is_nobodys());
    (void)ww_fail(WW_UNSUPPORTED, "%s", before); /* an old message does not come back */
    assert_true(is_nobodys());
    faulty_arm(&emulated_driver, 0, 0, NULL);
}

static void memory_that_our_own_watch_refuses_is_nobodys(void **state)
{
    (void)state;
    ww_device *device = NULL;
    buffer held;
    CHECK_OK(ww_device_open("emulator:32", &device));
    CHECK_FAILS(WW_OUT_OF_MEMORY, device->backend->buffer_create(device, (size_t)1 << 45, &held));
    assert_true(is_nobodys());
    ww_device_close(device);
}

/* ---- the vendors --------------------------------------------------------------------------------------------------------- */

static standin rocm;

static void use_standin(const char *settings)
{
    if (!standin_open(6, settings, &rocm))
        _exit(PROCESS_SKIPPED);
}

static void hip_fails(void)
{
    ww_device *device = NULL;
    use_standin("fail=hipMemGetInfo:1:2");
    EXPECT(ww_device_open("rocm:0", &device) == WW_OUT_OF_MEMORY);
    EXPECT(is("rocm", "HIP", "hipMemGetInfo", "hipErrorOutOfMemory", 2));
    rocm.configure("fail=hipStreamCreateWithFlags:1:719");
    EXPECT(ww_device_open("rocm:0", &device) == WW_DRIVER_ERROR);
    EXPECT(is("rocm", "HIP", "hipStreamCreateWithFlags", "hipErrorLaunchFailure", 719));
}

static void a_call_of_hip_is_named(void **state)
{
    (void)state;
    in_a_process(hip_fails, SECONDS);
}

static void hip_does_not_start(void)
{
    ww_device *device = NULL;
    use_standin("init=100");
    EXPECT(ww_device_open("rocm:0", &device) == WW_NO_DEVICE); /* other backends were looked at after it */
    EXPECT(is("rocm", "HIP", "hipGetDeviceCount", "hipErrorNoDevice", 100));
}

static void a_runtime_that_does_not_start_is_named(void **state)
{
    (void)state;
    in_a_process(hip_does_not_start, SECONDS);
}

static void the_compiler_fails(void)
{
    ww_device *device = NULL;
    use_standin("chips=gfx1101;fail=hiprtcCompileProgram:1:6");
    setenv("WARPWAVE_CACHE", "/nonexistent", 1);
    const ww_status status = ww_device_open("rocm:0", &device);
    if (status == WW_OK) { /* gfx11-generic is embedded in this build, and does for that chip */
        ww_device_close(device);
        printf("SKIP: this build has code for gfx1101, and compiles nothing\n");
        fflush(stdout);
        _exit(PROCESS_SKIPPED);
    }
    const ww_error_info info = detail();
    EXPECT(strcmp(info.library, "hipRTC") == 0 && strcmp(info.backend, "rocm") == 0);
    EXPECT(strcmp(info.call, "hiprtcCompileProgram") == 0);
}

static void a_call_of_hiprtc_is_named(void **state)
{
    (void)state;
    in_a_process(the_compiler_fails, SECONDS);
}

static void fail_blas(const gpu_driver *driver, gpu_blas **blas)
{
    static gpu_device device;
    static gpu_stream stream;
    device.driver = driver;
    device.base.info = ww_device_info_default();
    snprintf(device.base.info.id, sizeof device.base.info.id, "%s:0", driver->backend);
    stream.device = &device;
    EXPECT(gpu_blas_create(&stream, blas) == WW_OUT_OF_MEMORY);
}

static void rocblas_fails(void)
{
    gpu_blas *blas = NULL;
    use_standin("fail=rocblas_create_handle:1:5");
    fail_blas(&hip_driver, &blas);
    EXPECT(is("rocm", "rocBLAS", "rocblas_create_handle", "rocblas_status_memory_error", 5));
}

static void a_call_of_rocblas_is_named(void **state)
{
    (void)state;
    in_a_process(rocblas_fails, SECONDS);
}

static void use_cuda(void)
{
    setenv("WARPWAVE_CUDA_LIBRARY", BUILD_DIR "/standin/libcuda.so.1", 1);
    setenv("WARPWAVE_CUBLAS_LIBRARY", BUILD_DIR "/standin/libcuda.so.1", 1);
}

static void cuda_fails(void)
{
    char why[512];
    driver_context context = NULL;
    use_cuda();
    EXPECT(cuda_driver.load(why, sizeof why) == 0);
    const int number = cuda_driver.context_create(7, &context);
    EXPECT(driver_check(&cuda_driver, number, "opening the eighth device") == WW_DRIVER_ERROR);
    EXPECT(is("cuda", "CUDA", "cuDeviceGet", "CUDA_ERROR_INVALID_DEVICE", 101));
}

static void a_call_of_cuda_is_named(void **state)
{
    (void)state;
    in_a_process(cuda_fails, SECONDS);
}

static void cublas_fails(void)
{
    gpu_blas *blas = NULL;
    use_cuda();
    setenv("STANDIN_CUBLAS_CREATE", "3", 1);
    fail_blas(&cuda_driver, &blas);
    EXPECT(is("cuda", "cuBLAS", "cublasCreate", "CUBLAS_STATUS_ALLOC_FAILED", 3));
}

static void a_call_of_cublas_is_named(void **state)
{
    (void)state;
    in_a_process(cublas_fails, SECONDS);
}

int main(void)
{
    /* Tests in separate processes come first, because the others look for devices in this one, and what was found stays. */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_is_nothing_before_the_first_failure),
        cmocka_unit_test(a_call_of_hip_is_named),
        cmocka_unit_test(a_runtime_that_does_not_start_is_named),
        cmocka_unit_test(a_call_of_hiprtc_is_named),
        cmocka_unit_test(a_call_of_rocblas_is_named),
        cmocka_unit_test(a_call_of_cuda_is_named),
        cmocka_unit_test(a_call_of_cublas_is_named),
        cmocka_unit_test(a_failure_of_the_library_has_a_status_and_no_vendor),
        cmocka_unit_test(a_caller_with_an_older_struct_gets_the_fields_it_has_room_for),
        cmocka_unit_test(a_vendors_failure_stays_while_the_message_quotes_it),
        cmocka_unit_test(memory_that_our_own_watch_refuses_is_nobodys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
