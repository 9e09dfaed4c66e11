/* AMD's own runtime on a machine without an AMD GPU: the library opens it, reports its message that there is no device, and
 * continues with other backends. Its compiler needs no GPU: it compiles every kernel, for chips of both wave sizes.
 *
 * Each test is a separate process with a time limit, because AMD's code runs in it.
 */
#include "support/devices.h"
#include "support/process.h"
#include "support/scratch.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "gpu/driver/driver.h"
#include "gpu/driver/hip_api.h"
#include "gpu/driver/hiprtc.h"
#include "gpu/driver/rocm_library.h"
#include "kernels/embedded.h"
#include "standin/code_object.h"

enum { SECONDS_TO_START = 60, SECONDS_TO_COMPILE = 480, SECONDS_TO_COMPILE_ALL = 3600, QUICK_MODULES = 3 };

/* Opens the runtime as the library does; skips the test if it is not installed. */
static void *open_runtime(void)
{
    static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"};
    unsetenv("WARPWAVE_HIP_LIBRARY");
    unsetenv("WARPWAVE_DEVICE");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *library = rocm_library_open(names[i]);
        if (library != NULL)
            return library;
    }
    printf("SKIP: no ROCm runtime is installed here (Debian: libamdhip64-5)\n");
    fflush(stdout);
    _exit(PROCESS_SKIPPED);
}

static void look_without_a_card(void)
{
    (void)open_runtime();
    const char *why = ww_backend_absence("rocm");
    if (why[0] == '\0') {
        printf("SKIP: there is a ROCm device here, so its absence cannot be seen\n");
        fflush(stdout);
        _exit(PROCESS_SKIPPED);
    }
    printf("%s\n", why);
    EXPECT(strstr(why, "hipErrorNoDevice (100)") != NULL);
    EXPECT(strstr(why, "hipGetDeviceCount") != NULL || strstr(why, "hipInit") != NULL);
    EXPECT(strstr(why, "/dev/kfd") != NULL || strstr(why, "HIP_VISIBLE_DEVICES") != NULL);
    ww_device *device = NULL;
    EXPECT(ww_device_open("rocm:0", &device) == WW_NO_DEVICE && device == NULL);
    EXPECT(strstr(ww_error_message(), "hipErrorNoDevice (100)") != NULL && strstr(ww_error_message(), "cpu") != NULL);
    EXPECT(ww_device_open("auto", &device) == WW_OK);
    ww_device_info info = ww_device_info_default();
    EXPECT(ww_device_describe(device, &info) == WW_OK && strcmp(info.backend, "rocm") != 0);
    ww_device_close(device);
}

/* The long form has AMD's compiler compile every module for both chips, which takes it minutes (tests/long.cmake). The short
 * form takes one of a search, one of tensors and one of products. */
static bool is_left_out(const char *module)
{
    static const char *const quick[QUICK_MODULES] = {"search", "tensor_cast", "matmul_i8"};
    bool found = test_is_long();
    for (int i = 0; i < QUICK_MODULES && !found; i++)
        found = strcmp(module, quick[i]) == 0;
    return !found;
}

static void check_code(const char *image, size_t bytes, const char *arch, uint64_t wave_size)
{
    code_object code;
    const char *wrong = code_object_read(image, &code);
    EXPECT(wrong == NULL && code_object_bytes(image) <= bytes);
    EXPECT(strstr(code.target, arch) != NULL);
    for (int k = 0; k < code.count; k++)
        EXPECT(code.kernels[k].wave_size == wave_size && code.kernels[k].explicit_bytes > 0);
}

static void compile_for(void *library, const char *arch, uint64_t wave_size)
{
    int compiled = 0;
    for (const embedded_source *source = embedded_sources(); source->name != NULL; source++) {
        char module[64];
        char detail[1024] = "";
        driver_compiled code;
        const char *file = strrchr(source->name, '/');
        if (strncmp(source->name, "kernels/", 8) != 0 || sscanf(file, "/%63[a-z0-9_].c", module) != 1 ||
            strstr(file, ".c") == NULL)
            continue;
        if (is_left_out(module))
            continue;
        const hiprtc_job job = {
            .hip_library = library, .module = module, .arch = arch, .detail = detail, .detail_capacity = sizeof detail};
        const int failed = hiprtc_compile(&job, &code);
        if (failed != 0 && strstr(detail, "has no hipRTC") != NULL) {
            printf("SKIP: %s\n", detail);
            fflush(stdout);
            _exit(PROCESS_SKIPPED);
        }
        if (failed != 0)
            fprintf(stderr, "%s for %s: %s\n", module, arch, detail);
        EXPECT(failed == 0 && code.bytes > 0);
        check_code(code.image, code.bytes, arch, wave_size);
        memory_free(code.image);
        compiled++;
    }
    EXPECT(test_is_long() ? compiled > QUICK_MODULES : compiled == QUICK_MODULES);
}

static void compile_kernels(void)
{
    EXPECT(scratch_setup(NULL) == 0);
    setenv("XDG_CACHE_HOME", scratch_path("cache"), 1);
    void *library = open_runtime();
    compile_for(library, "gfx90c", 64);
    compile_for(library, "gfx1031", 32);
    compile_for(library, "gfx1031", 32); /* from the cache, and the same */
    EXPECT(scratch_teardown(NULL) == 0);
}

static void the_runtime_without_a_card_says_why_and_the_library_goes_on(void **state)
{
    (void)state;
    in_a_process(look_without_a_card, SECONDS_TO_START);
}

static void its_compiler_takes_the_kernels(void **state)
{
    (void)state;
    in_a_process(compile_kernels, test_is_long() ? SECONDS_TO_COMPILE_ALL : SECONDS_TO_COMPILE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_runtime_without_a_card_says_why_and_the_library_goes_on),
        cmocka_unit_test(its_compiler_takes_the_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
