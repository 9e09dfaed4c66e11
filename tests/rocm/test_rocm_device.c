/* ROCm's host code on the stand-in: which devices are found, how they are described, which code is used, and which device is
 * current afterwards.
 *
 * The library opens a runtime only once per process, so each test is a separate process.
 */
#include "support/kernels.h"
#include "support/pretend/pretend.h"
#include "support/process.h"
#include "support/scratch.h"
#include "support/standin.h"

#include <dlfcn.h>
#include <fenv.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <warpwave/quant.h>

#include "device/backend.h"
#include "gpu/driver/hip_api.h"
#include "gpu/launch.h"

enum { SECONDS = 60 };

static standin rocm;

static void use_standin(int face, const char *settings)
{
    if (!standin_open(face, settings, &rocm))
        _exit(PROCESS_SKIPPED);
}

static bool message_has(const char *part)
{
    return strstr(ww_error_message(), part) != NULL;
}

static bool absence_has(const char *part)
{
    return strstr(ww_backend_absence("rocm"), part) != NULL;
}

static void expect_all_well(void)
{
    EXPECT(rocm.misuse() == NULL || (fprintf(stderr, "misuse: %s\n", rocm.misuse()), false));
    EXPECT(standin_alive(&rocm) == 0 || (fprintf(stderr, "alive: %s\n", standin_alive_text(&rocm)), false));
}

static ww_device *open_device(const char *name)
{
    ww_device *device = NULL;
    EXPECT(ww_device_open(name, &device) == WW_OK);
    return device;
}

/* ---- absence ------------------------------------------------------------------------------------------------------------- */

static void without_library(void)
{
    ww_device *device = NULL;
    unsetenv("WARPWAVE_DEVICE");
    setenv("WARPWAVE_HIP_LIBRARY", "/nonexistent/libamdhip64.so.6", 1);
    EXPECT(absence_has("no ROCm runtime") && absence_has("/nonexistent/libamdhip64.so.6"));
    EXPECT(ww_device_open("rocm:0", &device) == WW_NO_DEVICE && message_has("cpu") && message_has("no ROCm runtime"));
    EXPECT(ww_device_open("auto", &device) == WW_OK);
    EXPECT(strcmp(device->info.backend, "rocm") != 0);
    ww_device_close(device);
}

/* AMD's packages put the libraries into /opt/rocm/lib, which the loader may not search. */
static void in_the_folder_that(const char *variable)
{
    char folder[512];
    use_standin(7, "");
    unsetenv("WARPWAVE_HIP_LIBRARY");
    unsetenv("ROCM_PATH");
    EXPECT(scratch_setup(NULL) == 0);
    setenv(variable, scratch_path(""), 1);
    snprintf(folder, sizeof folder, "%s", scratch_path("lib"));
    EXPECT(symlink(BUILD_DIR "/standin", folder) == 0);
    ww_device_close(open_device("rocm:0"));
    EXPECT(unlink(folder) == 0 && scratch_teardown(NULL) == 0);
    expect_all_well();
}

static void in_rocms_own_folder(void)
{
    in_the_folder_that("ROCM_PATH");
}

static void in_rocms_home(void)
{
    in_the_folder_that("ROCM_HOME");
}

/* A library that exists and has nothing to do with GPUs. */
static const char *another_library(void)
{
    static Dl_info info;
    EXPECT(dladdr((void *)(uintptr_t)fegetround, &info) != 0 && info.dli_fname[0] == '/');
    return info.dli_fname;
}

static void with_another_library(void)
{
    setenv("WARPWAVE_HIP_LIBRARY", another_library(), 1);
    EXPECT(absence_has("has no hipInit") && absence_has("install ROCm"));
}

static void by_a_relative_path(void)
{
    setenv("WARPWAVE_HIP_LIBRARY", "libamdhip64.so.6", 1);
    EXPECT(absence_has("WARPWAVE_HIP_LIBRARY is 'libamdhip64.so.6', which is not an absolute path"));
}

/* A file with the name of a newer runtime that is not one does not hide the older runtime next to it. */
static void beside_a_newer_runtime_without_symbols(void)
{
    char folder[512];
    use_standin(6, "");
    unsetenv("WARPWAVE_HIP_LIBRARY");
    EXPECT(scratch_setup(NULL) == 0);
    setenv("ROCM_PATH", scratch_path(""), 1);
    snprintf(folder, sizeof folder, "%s", scratch_path("lib"));
    EXPECT(mkdir(folder, 0700) == 0);
    EXPECT(symlink(another_library(), scratch_path("lib/libamdhip64.so.7")) == 0);
    EXPECT(symlink(BUILD_DIR "/standin/libamdhip64.so.6", scratch_path("lib/libamdhip64.so.6")) == 0);
    ww_device_close(open_device("rocm:0"));
    EXPECT(scratch_teardown(NULL) == 0);
    expect_all_well();
}

static void with_a_runtime_that_does_not_start(void)
{
    use_standin(6, "init=999");
    EXPECT(absence_has("hipErrorUnknown (999)") && absence_has("rocminfo"));
}

static void with_a_runtime_without_devices(void)
{
    use_standin(6, "init=100");
    EXPECT(absence_has("hipGetDeviceCount: hipErrorNoDevice (100)"));
    expect_all_well();
}

static void with_garbage_counts(void)
{
    static const char *const counts[][2] = {{"count=0", "reports no device"},
                                            {"count=-1", "-1 devices"},
                                            {"count=2147483648", "-2147483648 devices"},
                                            {"count=1025", "1025 devices"},
                                            {"count=2147483647", "2147483647 devices"}};
    use_standin(6, "");
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        ww_device *device = NULL;
        size_t devices = 0;
        rocm.configure(counts[i][0]);
        EXPECT(absence_has(counts[i][1]));
        EXPECT(ww_device_open("rocm:0", &device) == WW_NO_DEVICE && device == NULL);
        EXPECT(ww_devices(NULL, 0, &devices) == WW_OK && devices >= 1);
    }
    rocm.configure("count=3"); /* there are two */
    ww_device *device = NULL;
    EXPECT(ww_device_open("rocm:2", &device) == WW_DRIVER_ERROR && message_has("hipErrorInvalidDevice (101)"));
    ww_device_close(open_device("rocm:1"));
    expect_all_well();
}

static void with_garbage_numbers(void)
{
    static const char *const settings[][2] = {{"units=0", "0 compute units"},
                                              {"units=-3", "-3 compute units"},
                                              {"units=2147483648", "-2147483648 compute units"},
                                              {"wave=48", "waves of 48"},
                                              {"wave=-64", "waves of -64"},
                                              {"arch=Radeon", "name no gfx chip"},
                                              {"arch=gfx0123456789012345678901234567890123456789", "name no gfx chip"}};
    use_standin(6, "");
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        ww_device *device = NULL;
        rocm.configure(settings[i][0]);
        EXPECT(ww_device_open("rocm:0", &device) == WW_DRIVER_ERROR && message_has(settings[i][1]) && device == NULL);
    }
    expect_all_well();
}

/* ---- description --------------------------------------------------------------------------------------------------------- */

static void look_at_fields(int face, const char *version)
{
    ww_device_info infos[8];
    size_t count = 0;
    use_standin(face, "chips=gfx1100,gfx90a;memory=2GiB");
    for (int i = 0; i < 8; i++)
        infos[i] = ww_device_info_default();
    EXPECT(ww_devices(infos, 8, &count) == WW_OK && count >= 3);
    const ww_device_info *info = &infos[0];
    while (info < infos + count && strcmp(info->id, "rocm:1") != 0)
        info++;
    EXPECT(info < infos + count && strcmp(info[-1].id, "rocm:0") == 0);
    EXPECT(strcmp(info->name, "stand-in for an AMD gfx90a") == 0 && strcmp(info->vendor, "AMD") == 0);
    EXPECT(strcmp(info->backend, "rocm") == 0 && strcmp(info->arch, "gfx90a") == 0);
    EXPECT(strcmp(info->driver_version, version) == 0 && strcmp(info->pci_address, "0000:c2:00.0") == 0);
    EXPECT(strcmp(info->kernels, "embedded gfx90a HSACO") == 0 && info->instruction_sets[0] == '\0');
    EXPECT(info->index == 1 && info->wave_size == 64 && info->compute_units == 3 && info->max_threads_per_block == 1024);
    EXPECT(info->shared_bytes_per_block == 65536);
    EXPECT(info->memory_total_bytes == INT64_C(2) << 30 && info->memory_free_bytes == INT64_C(2) << 30);
    EXPECT(info[-1].wave_size == 32 && strcmp(info[-1].arch, "gfx1100") == 0);
    expect_all_well();
}

static void look_at_rocm_5(void)
{
    look_at_fields(5, "5.2.21153");
}

static void look_at_rocm_6(void)
{
    look_at_fields(6, "6.3.42131");
}

static void look_at_rocm_7(void)
{
    look_at_fields(7, "7.0.51831");
}

/* Only the runtime's text has the function of a PCI address; a text that is not an address, or is another card's, is
 * ignored. */
static void look_at_pci_addresses(void)
{
    static const char *const said[][2] = {
        {"pci=0000:%x:00.1", "0000:c1:00.1"}, {"pci=0000:%x:00.7", "0000:c1:00.7"},
        {"pci=nonsense", "0000:c1:00.0"},     {"pci=0000:%x:00.1.2", "0000:c1:00.0"},
        {"pci=0000:05:00.1", "0000:c1:00.0"}, {"fail=hipDeviceGetPCIBusId:1:1", "0000:c1:00.0"}};
    use_standin(6, "");
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        rocm.configure(said[i][0]);
        ww_device *device = open_device("rocm:0");
        EXPECT(strcmp(device->info.pci_address, said[i][1]) == 0);
        ww_device_close(device);
        expect_all_well();
    }
}

/* The runtime hides and orders devices by these variables, and our numbers count the remaining devices. */
static void look_at_visible_devices(void)
{
    static const char *const hidden[][4] = {/* ROCR_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES, rocm:0, rocm:1 */
                                            {NULL, NULL, "gfx90a", "gfx1100"},  {NULL, "1", "gfx1100", NULL},
                                            {NULL, "1,0", "gfx1100", "gfx90a"}, {"1", NULL, "gfx1100", NULL},
                                            {"1,0", "1", "gfx90a", NULL},       {NULL, "-1", NULL, NULL}};
    use_standin(6, "");
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++) {
        for (int v = 0; v < 2; v++) {
            const char *variable = v == 0 ? "ROCR_VISIBLE_DEVICES" : "HIP_VISIBLE_DEVICES";
            if (hidden[i][v] != NULL)
                setenv(variable, hidden[i][v], 1);
            else
                unsetenv(variable);
        }
        rocm.configure("chips=gfx90a,gfx1100");
        for (int d = 0; d < 2; d++) {
            ww_device *device = NULL;
            const ww_status status = ww_device_open(d == 0 ? "rocm:0" : "rocm:1", &device);
            EXPECT(status == (hidden[i][2 + d] != NULL ? WW_OK : WW_NO_DEVICE));
            EXPECT(device == NULL || strcmp(device->info.arch, hidden[i][2 + d]) == 0);
            ww_device_close(device);
        }
        EXPECT(hidden[i][2] != NULL ? ww_backend_absence("rocm")[0] == '\0' : absence_has("reports no device"));
    }
    expect_all_well();
}

static void take_the_best(void)
{
    use_standin(6, "");
    ww_device *device = open_device("auto");
    EXPECT(strcmp(device->info.id, "rocm:0") == 0);
    ww_device_close(device);
    EXPECT(ww_device_open("rocm:2", &device) == WW_NO_DEVICE && message_has("rocm:1"));
}

/* ---- code ---------------------------------------------------------------------------------------------------------------- */

static void expect_kernels(const char *settings, const char *kernels)
{
    rocm.configure(settings);
    ww_device *device = open_device("rocm:0");
    EXPECT(strcmp(device->info.kernels, kernels) == 0 || (fprintf(stderr, "kernels: %s\n", device->info.kernels), false));
    ww_device_close(device);
    expect_all_well();
}

static bool is_embedded(const char *chip)
{
    for (size_t i = 0; ww_kernel_chip(i) != NULL; i++)
        if (strcmp(ww_kernel_chip(i), chip) == 0)
            return true;
    return false;
}

static void choose_code(void)
{
    EXPECT(scratch_setup(NULL) == 0);
    setenv("XDG_CACHE_HOME", scratch_path("cache"), 1);
    use_standin(6, "");
    expect_kernels("chips=gfx90a", "embedded gfx90a HSACO");
    expect_kernels("chips=gfx1100", "embedded gfx1100 HSACO");
    if (is_embedded("gfx11-generic")) {
        expect_kernels("chips=gfx1101", "embedded gfx11-generic HSACO");
        expect_kernels("chips=gfx1101;fail=hipModuleLoadData:1:209", "compiled here for gfx1101");
    }
    EXPECT(scratch_teardown(NULL) == 0);
}

/* The runtime of ROCm 5 does not support code object version 6: generic code is compiled instead. */
static void choose_code_for_rocm_5(void)
{
    EXPECT(scratch_setup(NULL) == 0);
    setenv("XDG_CACHE_HOME", scratch_path("cache"), 1);
    use_standin(5, "");
    expect_kernels("chips=gfx90a", "embedded gfx90a HSACO");
    expect_kernels("chips=gfx1101", "compiled here for gfx1101");
    expect_kernels("chips=gfx1101", "compiled here for gfx1101"); /* from the cache */
    /* Compiled again, because that was refused. */
    expect_kernels("chips=gfx1101;fail=hipModuleLoadData:2:209", "compiled here for gfx1101");
    expect_kernels("chips=gfx1101;fail=hiprtcCompileProgram:1:6", "compiled here for gfx1101");
    EXPECT(scratch_teardown(NULL) == 0);
}

/* With ROCm 7, hipRTC is a separate library. The code for the chip's family is refused, so that it must be compiled. */
static void compile_with_rocm_7(void)
{
    EXPECT(scratch_setup(NULL) == 0);
    setenv("XDG_CACHE_HOME", scratch_path("cache"), 1);
    use_standin(7, "");
    expect_kernels(is_embedded("gfx11-generic") ? "chips=gfx1101;fail=hipModuleLoadData:1:209" : "chips=gfx1101",
                   "compiled here for gfx1101");
    EXPECT(scratch_teardown(NULL) == 0);
}

static void refuse_without_code(void)
{
    ww_device *device = NULL;
    setenv("XDG_CACHE_HOME", "/proc/nonexistent", 1);
    use_standin(5, "");
    rocm.configure("chips=gfx1101;fail=hiprtcCompileProgram:1:6");
    EXPECT(ww_device_open("rocm:0", &device) == WW_UNSUPPORTED && device == NULL);
    EXPECT(message_has("gfx1101") && message_has("HIPRTC_ERROR_COMPILATION (6)"));
    EXPECT(message_has("the stand-in does not compile this"));
    rocm.configure("chips=gfx908;arch=gfx1234"); /* a chip of the future */
    EXPECT(ww_device_open("rocm:0", &device) == WW_UNSUPPORTED && device == NULL);
    EXPECT(message_has("gfx1234") && message_has("gfx90a") && message_has("gfx1100") &&
           message_has("nor could they be compiled"));
    rocm.configure("chips=gfx90a;fail=hipModuleLoadData:1:2");
    EXPECT(ww_device_open("rocm:0", &device) == WW_OUT_OF_MEMORY && message_has("hipModuleLoadData: hipErrorOutOfMemory (2)"));
    expect_all_well();
}

static void refuse_without_a_compiler(void)
{
    ww_device *device = NULL;
    use_standin(6, "");
    setenv("WARPWAVE_HIPRTC_LIBRARY", "/nonexistent/libhiprtc.so", 1);
    rocm.configure("chips=gfx908;arch=gfx1234");
    EXPECT(ww_device_open("rocm:0", &device) == WW_UNSUPPORTED);
    EXPECT(message_has("gfx1234") && message_has("gfx90a") && message_has("/nonexistent/libhiprtc.so has no hipRTC"));
    expect_all_well();
}

static void check_kernel(ww_device *device, int32_t kernel)
{
    driver_function_limits limits = {0};
    if (!kernel_is_there(device, kernel)) {
        EXPECT(gpu_kernel_limits(gpu_of(device), kernel, &limits) == WW_UNSUPPORTED && message_has("no kernels"));
        return;
    }
    EXPECT(gpu_kernel_limits(gpu_of(device), kernel, &limits) == WW_OK);
    EXPECT(limits.threads_per_block_max >= 64 && limits.registers > 0 && limits.local_bytes >= 0);
    EXPECT(limits.shared_static_bytes + limits.shared_dynamic_bytes_max == 65536);
}

static void launch_every_kernel(void)
{
    use_standin(6, "");
    for (int d = 0; d < 2; d++) {
        gpu_stream *stream = NULL;
        ww_device *device = open_device(d == 0 ? "rocm:0" : "rocm:1");
        EXPECT(gpu_stream_borrow(gpu_of(device), &stream) == WW_OK);
        for (int32_t kernel = 0; kernel < GPU_KERNEL_COUNT; kernel++)
            check_kernel(device, kernel);
        EXPECT(gpu_stream_return(stream, WW_OK) == WW_OK);
        ww_device_close(device);
    }
    expect_all_well();
}

/* ---- launches ------------------------------------------------------------------------------------------------------------ */

static bool (*emulate)(const standin_launch *launch);
static int launched;

static void count_launch(const standin_launch *launch)
{
    launched++;
    EXPECT(emulate(launch));
}

/* How many kernels a product of one column takes, with an addition and after a norm. */
static int launches_of(const ww_quant *matrix, const ww_tensor *x, const ww_tensor *weight, ww_tensor *out)
{
    ww_quant_product how = ww_quant_product_default();
    float result[40];
    how.queued = 1;
    how.norm_weight = weight;
    how.norm_eps = 1e-5;
    how.accumulate = weight != NULL;
    EXPECT(ww_quant_multiply(matrix, x, &how, out) == WW_OK && ww_tensor_to_host(out, result) == WW_OK); /* room is made once */
    launched = 0;
    EXPECT(ww_quant_multiply(matrix, x, &how, out) == WW_OK && ww_tensor_to_host(out, result) == WW_OK);
    return launched;
}

static void multiply_one_column(void)
{
    enum { ROWS = 40, COLS = 512 };
    static float weights[ROWS * COLS], column[COLS];
    const int64_t shape[2] = {1, COLS}, cols = COLS;
    for (int i = 0; i < ROWS * COLS; i++)
        weights[i] = column[i % COLS] = (float)(i % 31) - 15.0f;
    use_standin(6, "");
    void (*execute_with)(standin_executor) = NULL;
    *(void **)&execute_with = dlsym(rocm.library, "standin_execute_with");
    *(void **)&emulate = dlsym(rocm.library, "standin_emulate");
    execute_with(count_launch);
    for (int d = 0; d < 2; d++) {
        ww_device *device = open_device(d == 0 ? "rocm:0" : "rocm:1");
        ww_quant *matrix = NULL;
        ww_tensor x = {0}, weight = {0}, out = {0};
        EXPECT(ww_quant_from_f32(device, WW_QUANT_Q4_K, weights, ROWS, COLS, 0, &matrix) == WW_OK);
        EXPECT(ww_tensor_from_host(device, WW_F32, 2, shape, column, &x) == WW_OK);
        EXPECT(ww_tensor_from_host(device, WW_F32, 1, &cols, column, &weight) == WW_OK);
        EXPECT(launches_of(matrix, &x, NULL, &out) == 1);
        EXPECT(launches_of(matrix, &x, &weight, &out) == 1);
        pretend_gemv_one(device, false);
        EXPECT(launches_of(matrix, &x, NULL, &out) == 2);
        EXPECT(launches_of(matrix, &x, &weight, &out) == 2);
        ww_tensor_release(&out);
        ww_tensor_release(&weight);
        ww_tensor_release(&x);
        ww_quant_destroy(matrix);
        ww_device_close(device);
    }
    execute_with(NULL);
    expect_all_well();
}

/* ---- manners ------------------------------------------------------------------------------------------------------------- */

static void keep_the_callers_device(void)
{
    int (*get)(int *) = NULL;
    int (*set)(int) = NULL;
    int (*last)(void) = NULL;
    int now = -1;
    buffer held = {0};
    use_standin(6, "memory=64MiB");
    *(void **)&get = dlsym(rocm.library, "hipGetDevice");
    *(void **)&set = dlsym(rocm.library, "hipSetDevice");
    *(void **)&last = dlsym(rocm.library, "hipGetLastError");
    EXPECT(set(1) == 0);
    ww_device *device = open_device("rocm:0");
    EXPECT(get(&now) == 0 && now == 1);
    EXPECT(device->backend->buffer_create(device, 100, &held) == WW_OK && get(&now) == 0 && now == 1);
    device->backend->buffer_destroy(device, &held);
    EXPECT(get(&now) == 0 && now == 1);
    EXPECT(device->backend->buffer_create(device, 65 << 20, &held) == WW_OUT_OF_MEMORY);
    EXPECT(get(&now) == 0 && now == 1 && last() == 0); /* our failure does not stay for the caller */
    rocm.configure("memory=64MiB;fail=hipMalloc:1:2");
    EXPECT(device->backend->buffer_create(device, 1 << 20, &held) == WW_OK); /* after freeing pooled memory */
    EXPECT(last() == 0);
    device->backend->buffer_destroy(device, &held);
    ww_device_close(device);
    EXPECT(get(&now) == 0 && now == 1);
    expect_all_well();
}

static void run_out_of_memory(void)
{
    ww_device *device = NULL;
    buffer held = {0};
    use_standin(6, "memory=64MiB");
    device = open_device("rocm:1");
    EXPECT(device->backend->buffer_create(device, 65 << 20, &held) == WW_OUT_OF_MEMORY);
    EXPECT(message_has("rocm:1: 65.0 MiB asked, 64.0 MiB free of 64.0 MiB") && held.data == NULL);
    EXPECT(device->backend->buffer_create(device, 1 << 20, &held) == WW_OK);
    device->backend->buffer_destroy(device, &held);
    ww_device_close(device);
    expect_all_well();
}

#define TEST(name, work)                                                                                                       \
    static void name(void **state)                                                                                             \
    {                                                                                                                          \
        (void)state;                                                                                                           \
        in_a_process(work, SECONDS);                                                                                           \
    }
TEST(a_missing_runtime_is_absence_with_a_reason, without_library)
TEST(a_library_that_is_not_hip_is_absence_with_a_reason, with_another_library)
TEST(a_relative_path_of_a_runtime_is_refused, by_a_relative_path)
TEST(a_newer_runtime_without_symbols_does_not_hide_an_older_one, beside_a_newer_runtime_without_symbols)
TEST(a_runtime_that_the_loader_does_not_know_is_found_where_rocm_is, in_rocms_own_folder)
TEST(rocm_home_is_read_like_rocm_path, in_rocms_home)
TEST(a_runtime_that_does_not_start_is_absence_with_its_own_reason, with_a_runtime_that_does_not_start)
TEST(a_runtime_without_devices_is_absence_with_its_own_reason, with_a_runtime_without_devices)
TEST(a_count_that_cannot_be_is_not_believed, with_garbage_counts)
TEST(a_device_whose_numbers_cannot_be_is_refused, with_garbage_numbers)
TEST(every_field_is_filled_in_by_rocm_5, look_at_rocm_5)
TEST(every_field_is_filled_in_by_rocm_6, look_at_rocm_6)
TEST(every_field_is_filled_in_by_rocm_7, look_at_rocm_7)
TEST(the_function_of_a_pci_address_is_the_runtimes, look_at_pci_addresses)
TEST(devices_that_the_runtime_hides_are_not_there, look_at_visible_devices)
TEST(auto_takes_rocm_before_the_cpu, take_the_best)
TEST(code_is_exact_then_of_the_family_then_compiled, choose_code)
TEST(rocm_5_compiles_what_it_cannot_load, choose_code_for_rocm_5)
TEST(rocm_7_compiles_with_a_library_of_its_own, compile_with_rocm_7)
TEST(a_chip_without_code_is_refused_with_the_list_and_the_compilers_word, refuse_without_code)
TEST(a_chip_without_code_or_compiler_is_refused_with_both_reasons, refuse_without_a_compiler)
TEST(every_kernel_is_in_the_code_objects_with_its_limits, launch_every_kernel)
TEST(a_product_of_one_column_is_one_launch, multiply_one_column)
TEST(the_callers_device_and_last_error_are_as_they_were, keep_the_callers_device)
TEST(out_of_memory_names_the_numbers, run_out_of_memory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_runtime_is_absence_with_a_reason),
        cmocka_unit_test(a_library_that_is_not_hip_is_absence_with_a_reason),
        cmocka_unit_test(a_relative_path_of_a_runtime_is_refused),
        cmocka_unit_test(a_newer_runtime_without_symbols_does_not_hide_an_older_one),
        cmocka_unit_test(a_runtime_that_the_loader_does_not_know_is_found_where_rocm_is),
        cmocka_unit_test(rocm_home_is_read_like_rocm_path),
        cmocka_unit_test(a_runtime_that_does_not_start_is_absence_with_its_own_reason),
        cmocka_unit_test(a_runtime_without_devices_is_absence_with_its_own_reason),
        cmocka_unit_test(a_count_that_cannot_be_is_not_believed),
        cmocka_unit_test(a_device_whose_numbers_cannot_be_is_refused),
        cmocka_unit_test(every_field_is_filled_in_by_rocm_5),
        cmocka_unit_test(every_field_is_filled_in_by_rocm_6),
        cmocka_unit_test(every_field_is_filled_in_by_rocm_7),
        cmocka_unit_test(the_function_of_a_pci_address_is_the_runtimes),
        cmocka_unit_test(devices_that_the_runtime_hides_are_not_there),
        cmocka_unit_test(auto_takes_rocm_before_the_cpu),
        cmocka_unit_test(code_is_exact_then_of_the_family_then_compiled),
        cmocka_unit_test(rocm_5_compiles_what_it_cannot_load),
        cmocka_unit_test(rocm_7_compiles_with_a_library_of_its_own),
        cmocka_unit_test(a_chip_without_code_is_refused_with_the_list_and_the_compilers_word),
        cmocka_unit_test(a_chip_without_code_or_compiler_is_refused_with_both_reasons),
        cmocka_unit_test(every_kernel_is_in_the_code_objects_with_its_limits),
        cmocka_unit_test(a_product_of_one_column_is_one_launch),
        cmocka_unit_test(the_callers_device_and_last_error_are_as_they_were),
        cmocka_unit_test(out_of_memory_names_the_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
