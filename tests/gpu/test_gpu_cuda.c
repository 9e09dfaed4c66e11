/* CUDA's host code: without a driver, with a broken one, and with a stand-in for libcuda that moves bytes but runs no kernels.
 *
 * The library opens libcuda once for the process, so each test is a process of its own. */
#include "support/check.h"

#include <dlfcn.h>
#include <fenv.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <warpwave/tensor_foreign.h>

#include "device/backend.h"
#include "gpu/backend.h"
#include "gpu/launch.h"
#include "support/embedded_find.h"
#include "support/kernels.h"
#include "support/process.h"
#include "tensor/tensor.h"

enum { SHARED_BYTES = 227 << 10 }; /* per block, as the stand-in claims */

#define STANDIN BUILD_DIR "/standin/libcuda.so.1"

/* Says on the way out of the child what did not hold. */
#define EXPECT(condition)                                                                                                      \
    do {                                                                                                                       \
        if (!(condition)) {                                                                                                    \
            fprintf(stderr, "%s:%d: %s does not hold; last message: %s\n", __FILE__, __LINE__, #condition,                     \
                    ww_error_message());                                                                                       \
            _exit(1);                                                                                                          \
        }                                                                                                                      \
    } while (0)

/* The stand-in says that it is an sm_90. Expectations about other chips need a library with kernels for all NVIDIA chips. */
static void need_kernels(const char *chip)
{
    if (embedded_find("rows", chip) != NULL)
        return;
    printf("SKIP: this library was built without kernels for %s\n", chip);
    skip();
}

/* Only a build that found ptxas has cubins. */
static bool has_cubins(void)
{
    return embedded_find_cubin("rows", "sm_90a") != NULL;
}

static void in_a_process_of_its_own(void (*work)(void))
{
    need_kernels("sm_90a");
    fflush(stdout);
    const pid_t child = fork_when_idle();
    if (child == 0) {
        unsetenv("WARPWAVE_DEVICE");
        setenv("WARPWAVE_CUDA_LIBRARY", STANDIN, 1);
        work();
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static bool message_has(const char *part)
{
    return strstr(ww_error_message(), part) != NULL;
}

static long things_alive(void)
{
    long (*alive)(void) = NULL;
    void *library = dlopen(STANDIN, RTLD_NOW);
    EXPECT(library != NULL);
    *(void **)&alive = dlsym(library, "standin_alive");
    EXPECT(alive != NULL);
    return alive();
}

/* ---- no driver ----------------------------------------------------------------------------------------------------------- */

static void without_library(void)
{
    ww_device *device = NULL;
    setenv("WARPWAVE_CUDA_LIBRARY", "/nonexistent/libcuda.so.1", 1);
    EXPECT(strstr(ww_backend_absence("cuda"), "/nonexistent/libcuda.so.1") != NULL);
    EXPECT(strstr(ww_backend_absence("cuda"), "no NVIDIA driver") != NULL);
    EXPECT(ww_device_open("cuda:0", &device) == WW_NO_DEVICE && message_has("cpu"));
    EXPECT(ww_device_open("auto", &device) == WW_OK);
    EXPECT(strcmp(device->info.backend, "cpu") == 0);
    ww_device_close(device);
}

static void with_another_library(void)
{
    Dl_info info;
    EXPECT(dladdr((void *)(uintptr_t)fegetround, &info) != 0);
    setenv("WARPWAVE_CUDA_LIBRARY", info.dli_fname, 1);
    EXPECT(strstr(ww_backend_absence("cuda"), "has no cuInit") != NULL);
}

static void by_a_relative_path(void)
{
    setenv("WARPWAVE_CUDA_LIBRARY", "libcuda.so.1", 1);
    EXPECT(strstr(ww_backend_absence("cuda"), "not an absolute path") != NULL);
}

static void with_a_driver_that_does_not_start(void)
{
    ww_device *device = NULL;
    setenv("STANDIN_CUDA_INIT", "100", 1);
    EXPECT(strstr(ww_backend_absence("cuda"), "cuInit: CUDA_ERROR_NO_DEVICE (100): ") != NULL);
    EXPECT(ww_device_open(NULL, &device) == WW_OK);
    EXPECT(strcmp(device->info.backend, "cpu") == 0);
    ww_device_close(device);
}

static void with_no_device(void)
{
    setenv("STANDIN_CUDA_DEVICES", "0", 1);
    EXPECT(strstr(ww_backend_absence("cuda"), "no device") != NULL);
}

static void a_missing_library_is_absence_with_a_reason(void **state)
{
    (void)state;
    in_a_process_of_its_own(without_library);
}

static void a_library_that_is_not_libcuda_is_absence_with_a_reason(void **state)
{
    (void)state;
    in_a_process_of_its_own(with_another_library);
    in_a_process_of_its_own(by_a_relative_path);
}

static void a_driver_that_does_not_start_is_absence_with_its_own_reason(void **state)
{
    (void)state;
    in_a_process_of_its_own(with_a_driver_that_does_not_start);
}

static void a_driver_without_devices_is_absence_with_a_reason(void **state)
{
    (void)state;
    in_a_process_of_its_own(with_no_device);
}

/* ---- devices ------------------------------------------------------------------------------------------------------------- */

static void look_at_fields(void)
{
    ww_device_info infos[8];
    size_t count = 0;
    setenv("STANDIN_CUDA_DEVICES", "2", 1);
    for (int i = 0; i < 8; i++)
        infos[i] = ww_device_info_default();
    EXPECT(ww_devices(infos, 8, &count) == WW_OK && count >= 3);
    const ww_device_info *info = &infos[1];
    EXPECT(strcmp(info->id, "cuda:1") == 0 && strcmp(info->name, "Stand-in GPU 1") == 0);
    EXPECT(strcmp(info->vendor, "NVIDIA") == 0 && strcmp(info->backend, "cuda") == 0 && strcmp(info->arch, "sm_90") == 0);
    EXPECT(strcmp(info->driver_version, "13.0") == 0 && strcmp(info->pci_address, "0000:c2:00.0") == 0);
    EXPECT(strcmp(info->kernels, has_cubins() ? "embedded sm_90a cubin" : "embedded sm_90a PTX") == 0);
    EXPECT(info->instruction_sets[0] == '\0');
    EXPECT(info->index == 1 && info->wave_size == 32 && info->compute_units == 132 && info->max_threads_per_block == 1024);
    EXPECT(info->shared_bytes_per_block == SHARED_BYTES);
    EXPECT(info->memory_total_bytes == 1 << 30 && info->memory_free_bytes == 1 << 29 && info->memory_used_bytes == 1 << 29);
    EXPECT(things_alive() == 0);
}

static void open_and_compare(const char *capability, const char *newest_ptx, const char *kernels)
{
    ww_device *device = NULL;
    setenv("STANDIN_CUDA_CAPABILITY", capability, 1);
    setenv("STANDIN_CUDA_PTX", newest_ptx, 1);
    EXPECT(ww_device_open("cuda:0", &device) == WW_OK);
    EXPECT(strcmp(device->info.kernels, kernels) == 0);
    ww_device_close(device);
    EXPECT(things_alive() == 0);
}

static void look_at_choices(void)
{
    open_and_compare("90", "90", "embedded sm_90a PTX");
    open_and_compare("100", "90", "embedded sm_80 PTX");
    open_and_compare("89", "90", "embedded sm_80 PTX");
    open_and_compare("80", "90", "embedded sm_80 PTX");
    open_and_compare("75", "90", "embedded sm_75 PTX");
    open_and_compare("90", "78", "embedded sm_80 PTX"); /* a driver from before sm_90a */
}

/* A cubin for exactly this chip comes first; if an old driver refuses it, PTX comes next. */
static void look_at_cubins(void)
{
    setenv("STANDIN_CUDA_CUBIN", "0", 1);
    open_and_compare("90", "90", "embedded sm_90a cubin");
    open_and_compare("80", "90", "embedded sm_80 cubin");
    open_and_compare("75", "90", "embedded sm_75 cubin");
    open_and_compare("89", "90", "embedded sm_80 PTX"); /* another chip's cubin */
    open_and_compare("100", "90", "embedded sm_80 PTX");
    setenv("STANDIN_CUDA_CUBIN", "200", 1); /* CUDA_ERROR_INVALID_IMAGE */
    open_and_compare("90", "90", "embedded sm_90a PTX");
    setenv("STANDIN_CUDA_CUBIN", "222", 1); /* CUDA_ERROR_UNSUPPORTED_PTX_VERSION */
    open_and_compare("90", "78", "embedded sm_80 PTX");
    setenv("STANDIN_CUDA_CUBIN", "2", 1); /* no refusal of the code: out of memory */
    ww_device *device = NULL;
    EXPECT(ww_device_open("cuda:0", &device) == WW_OUT_OF_MEMORY && device == NULL);
    EXPECT(things_alive() == 0);
}

static void look_at_refusals(void)
{
    ww_device *device = NULL;
    setenv("STANDIN_CUDA_CAPABILITY", "70", 1);
    EXPECT(ww_device_open("cuda:0", &device) == WW_UNSUPPORTED && message_has("sm_70") && message_has("sm_75"));
    EXPECT(device == NULL);
    setenv("STANDIN_CUDA_CAPABILITY", "90", 1);
    setenv("STANDIN_CUDA_PTX", "63", 1);
    setenv("STANDIN_CUDA_VERSION", "10000", 1);
    EXPECT(ww_device_open("cuda:0", &device) == WW_UNSUPPORTED);
    EXPECT(message_has("cuModuleLoadDataEx: CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222)"));
    EXPECT(message_has("for CUDA 10.0") && message_has("install a driver for CUDA"));
    setenv("STANDIN_CUDA_PTX", "90", 1);
    setenv("STANDIN_CUDA_LOG", "ptxas fatal: line 17 is not to my taste", 1);
    EXPECT(ww_device_open("cuda:0", &device) == WW_UNSUPPORTED);
    EXPECT(message_has("CUDA_ERROR_INVALID_PTX (218)") && message_has("line 17 is not to my taste"));
    EXPECT(things_alive() == 0);
}

static void auto_takes_cuda(void)
{
    ww_device *device = NULL;
    EXPECT(ww_device_open("auto", &device) == WW_OK && strcmp(device->info.id, "cuda:0") == 0);
    ww_device_close(device);
    EXPECT(ww_device_open("cuda:1", &device) == WW_NO_DEVICE && message_has("cuda:0"));
}

static void every_field_of_a_device_is_filled_in(void **state)
{
    (void)state;
    in_a_process_of_its_own(look_at_fields);
}

static void the_best_code_that_chip_and_driver_take_is_chosen(void **state)
{
    (void)state;
    need_kernels("sm_75");
    need_kernels("sm_80");
    in_a_process_of_its_own(look_at_choices);
}

static void a_cubin_is_used_for_its_own_chip_and_ptx_if_the_driver_refuses_it(void **state)
{
    (void)state;
    if (!has_cubins()) {
        printf("SKIP: this library was built without ptxas and has no cubins\n");
        skip();
    }
    need_kernels("sm_75");
    need_kernels("sm_80");
    in_a_process_of_its_own(look_at_cubins);
}

static void code_that_cannot_be_loaded_is_refused_with_advice(void **state)
{
    (void)state;
    need_kernels("sm_75");
    need_kernels("sm_80");
    in_a_process_of_its_own(look_at_refusals);
}

static void auto_takes_cuda_when_there_is_a_device(void **state)
{
    (void)state;
    in_a_process_of_its_own(auto_takes_cuda);
}

/* ---- work ---------------------------------------------------------------------------------------------------------------- */

static void move_bytes(void)
{
    enum { BYTES = 20 << 20 };
    ww_device *device = NULL;
    device_stream *on = NULL;
    buffer a = {0};
    buffer b = {0};
    char *sent = malloc(BYTES);
    char *back = calloc(1, BYTES);
    for (size_t i = 0; i < BYTES; i++)
        sent[i] = (char)(i * 7 + i / 1000);
    EXPECT(ww_device_open("cuda:0", &device) == WW_OK);
    const backend *cuda = device->backend;
    EXPECT(cuda->stream_create(device, &on) == WW_OK);
    EXPECT(cuda->buffer_create(device, BYTES, &a) == WW_OK && cuda->buffer_create(device, BYTES, &b) == WW_OK);
    EXPECT(cuda->copy_in(device, on, (buffer_range){&a, 0, BYTES}, sent) == WW_OK);
    EXPECT(cuda->copy(device, on, (buffer_range){&b, 0, BYTES}, &a, 0) == WW_OK);
    EXPECT(cuda->fill(device, on, (buffer_range){&a, 0, BYTES}, 0) == WW_OK);
    EXPECT(cuda->copy_out(device, on, back, (buffer_range){&b, 0, BYTES}) == WW_OK);
    EXPECT(memcmp(sent, back, BYTES) == 0);
    cuda->buffer_destroy(device, &a);
    cuda->buffer_destroy(device, &b);
    cuda->stream_destroy(device, on);
    ww_device_close(device);
    EXPECT(things_alive() == 0);
    free(sent);
    free(back);
}

static void launch_every_kernel(void)
{
    ww_device *device = NULL;
    gpu_stream *stream = NULL;
    EXPECT(ww_device_open("cuda:0", &device) == WW_OK);
    EXPECT(gpu_stream_borrow(gpu_of(device), &stream) == WW_OK);
    for (int32_t kernel = 0; kernel < GPU_KERNEL_COUNT; kernel++) {
        static const char arguments[4096];
        driver_function_limits limits = {0};
        if (!kernel_is_there(device, kernel))
            continue;
        EXPECT(gpu_kernel_limits(gpu_of(device), kernel, &limits) == WW_OK);
        EXPECT(limits.arguments_bytes > 0 && limits.shared_dynamic_bytes_max == SHARED_BYTES);
        EXPECT(gpu_launch(stream, kernel, (gpu_shape){grid_of_2(3, 2), 64, 128}, arguments, (size_t)limits.arguments_bytes) ==
               WW_OK);
    }
    EXPECT(gpu_stream_return(stream, WW_OK) == WW_OK);
    ww_device_close(device);
    EXPECT(things_alive() == 0);
}

static void run_out_of_memory(void)
{
    ww_device *device = NULL;
    buffer held = {0};
    setenv("STANDIN_CUDA_LAST_BYTES", "1048576", 1);
    EXPECT(ww_device_open("cuda:0", &device) == WW_OK);
    EXPECT(device->backend->buffer_create(device, 4 << 20, &held) == WW_OUT_OF_MEMORY);
    EXPECT(message_has("cuda:0: cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2): 4.0 MiB asked, 512.0 MiB free of 1.0 GiB"));
    EXPECT(device->backend->buffer_create(device, (size_t)600 << 20, &held) == WW_OUT_OF_MEMORY);
    EXPECT(message_has("600.0 MiB asked, 512.0 MiB free of 1.0 GiB") && !message_has("cuMemAlloc"));
    EXPECT(device->backend->buffer_create(device, 1 << 19, &held) == WW_OK);
    device->backend->buffer_destroy(device, &held);
    ww_device_close(device);
    EXPECT(things_alive() == 0);
}

/* ---- graphs -------------------------------------------------------------------------------------------------------------- */

static struct {
    void (*fail_at)(const char *call, long n, int number);
    const char *(*victim)(void);
    long (*launched)(void);
} standin_of_cuda;

static void find_standin(void)
{
    void *library = dlopen(STANDIN, RTLD_NOW);
    EXPECT(library != NULL);
    *(void **)&standin_of_cuda.fail_at = dlsym(library, "standin_fail");
    *(void **)&standin_of_cuda.victim = dlsym(library, "standin_victim");
    *(void **)&standin_of_cuda.launched = dlsym(library, "standin_launched");
    EXPECT(standin_of_cuda.fail_at && standin_of_cuda.victim && standin_of_cuda.launched);
}

enum { RECORDED = 64 };

typedef struct recorded_work {
    ww_device *device;
    const tensor_backend *tensors;
    ww_tensor from, to; /* a copy between them, a fill and a kernel */
} recorded_work;

static recorded_work work_open(void)
{
    const int64_t count = RECORDED;
    recorded_work w = {0};
    EXPECT(ww_device_open("cuda:0", &w.device) == WW_OK);
    w.tensors = w.device->backend->tensors;
    EXPECT(ww_tensor_full(w.device, WW_F32, 1, &count, 3.0, &w.from) == WW_OK);
    EXPECT(ww_tensor_zeros(w.device, WW_F32, 1, &count, &w.to) == WW_OK);
    return w;
}

static void work_close(recorded_work *w)
{
    ww_tensor_release(&w->from);
    ww_tensor_release(&w->to);
    ww_device_close(w->device);
    EXPECT(things_alive() == 0);
}

/* Bytes 7 in `from`, which are copied to `to`. */
static ww_status queue_work(recorded_work *w)
{
    const float seven = 7.0f;
    ww_status status = ww_tensor_const_set(&w->from, &seven);
    return status == WW_OK ? ww_tensor_copy_strided(&w->from, &w->to) : status;
}

static ww_status record(recorded_work *w, tensor_recording **recording)
{
    *recording = NULL;
    ww_status status = w->tensors->record_begin(w->device);
    if (status != WW_OK)
        return status;
    status = queue_work(w);
    const ww_status ended = w->tensors->record_end(w->device, status == WW_OK, recording);
    return status == WW_OK ? ended : status;
}

static float first_of(const ww_tensor *tensor)
{
    float values[RECORDED];
    EXPECT(ww_tensor_to_host(tensor, values) == WW_OK);
    return values[RECORDED - 1];
}

static void replay_what_was_recorded(void)
{
    float values[RECORDED];
    tensor_recording *recording = NULL;
    find_standin();
    recorded_work w = work_open();
    EXPECT(record(&w, &recording) == WW_OK && recording != NULL);
    const long before = standin_of_cuda.launched();
    const float at_first = first_of(&w.to); /* recording does nothing */
    EXPECT(at_first == 0.0f);
    EXPECT(w.tensors->replay(w.device, recording) == WW_OK);
    EXPECT(ww_device_synchronize(w.device) == WW_OK);
    const long kernels = standin_of_cuda.launched() - before;
    EXPECT(kernels > 0 || first_of(&w.to) == 7.0f);
    EXPECT(w.tensors->replay(w.device, recording) == WW_OK);
    EXPECT(standin_of_cuda.launched() - before == 2 * kernels);
    w.tensors->recording_release(w.device, recording);
    /* What waits is refused while it records, and the recording is spoiled. */
    EXPECT(w.tensors->record_begin(w.device) == WW_OK);
    EXPECT(ww_tensor_to_host(&w.to, values) == WW_UNSUPPORTED && message_has("cannot be recorded"));
    EXPECT(w.tensors->record_end(w.device, false, &recording) == WW_OK && recording == NULL);
    work_close(&w);
}

/* Each call of recording and replaying fails, with a number, with that of a driver without graphs, and by losing the device. */
static void fail_each_call_of_a_graph(void)
{
    static const char *const calls[] = {"cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphInstantiateWithFlags",
                                        "cuGraphDestroy",          "cuGraphLaunch",      "cuGraphExecDestroy"};
    static const int numbers[] = {2, 801, 719};
    find_standin();
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        for (size_t k = 0; k < 3; k++) {
            tensor_recording *recording = NULL;
            recorded_work w = work_open();
            standin_of_cuda.fail_at(calls[i], 1, numbers[k]);
            ww_status status = record(&w, &recording);
            if (status == WW_OK)
                status = w.tensors->replay(w.device, recording);
            EXPECT(status == WW_OK || message_has(calls[i]) || message_has("device lost"));
            EXPECT(status != WW_OK || strstr(calls[i], "Destroy") != NULL);
            w.tensors->recording_release(w.device, recording);
            EXPECT(standin_of_cuda.victim() != NULL);
            if (numbers[k] != 719) { /* the stream works as before, with and without a recording */
                standin_of_cuda.fail_at(NULL, 0, 0);
                EXPECT(queue_work(&w) == WW_OK);
                EXPECT(record(&w, &recording) == WW_OK);
                EXPECT(w.tensors->replay(w.device, recording) == WW_OK);
                w.tensors->recording_release(w.device, recording);
            }
            work_close(&w);
            standin_of_cuda.fail_at(NULL, 0, 0);
        }
}

static void keep_the_callers_context(void)
{
    int (*get)(void **) = NULL;
    int (*set)(void *) = NULL;
    void *mine = &mine;
    void *now = NULL;
    ww_device *device = NULL;
    buffer held = {0};
    void *library = dlopen(STANDIN, RTLD_NOW);
    *(void **)&get = dlsym(library, "cuCtxGetCurrent");
    *(void **)&set = dlsym(library, "cuCtxSetCurrent");
    set(mine);
    EXPECT(ww_device_open("cuda:0", &device) == WW_OK && get(&now) == 0 && now == mine);
    EXPECT(device->backend->buffer_create(device, 100, &held) == WW_OK && get(&now) == 0 && now == mine);
    device->backend->buffer_destroy(device, &held);
    EXPECT(get(&now) == 0 && now == mine);
    EXPECT(ww_device_trim(device) == WW_OK && get(&now) == 0 && now == mine);
    ww_device_close(device);
    EXPECT(get(&now) == 0 && now == mine);
}

static void bytes_move_through_cuda(void **state)
{
    (void)state;
    in_a_process_of_its_own(move_bytes);
}

static void kernels_are_launched_with_the_arguments_that_their_ptx_declares(void **state)
{
    (void)state;
    in_a_process_of_its_own(launch_every_kernel);
}

static void out_of_memory_names_the_call_and_the_numbers(void **state)
{
    (void)state;
    in_a_process_of_its_own(run_out_of_memory);
}

static void recorded_work_is_done_when_it_is_replayed(void **state)
{
    (void)state;
    in_a_process_of_its_own(replay_what_was_recorded);
}

static void every_call_of_a_graph_may_fail(void **state)
{
    (void)state;
    in_a_process_of_its_own(fail_each_call_of_a_graph);
}

static void the_callers_context_is_current_again_after_every_call(void **state)
{
    (void)state;
    in_a_process_of_its_own(keep_the_callers_context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_library_is_absence_with_a_reason),
        cmocka_unit_test(a_library_that_is_not_libcuda_is_absence_with_a_reason),
        cmocka_unit_test(a_driver_that_does_not_start_is_absence_with_its_own_reason),
        cmocka_unit_test(a_driver_without_devices_is_absence_with_a_reason),
        cmocka_unit_test(every_field_of_a_device_is_filled_in),
        cmocka_unit_test(the_best_code_that_chip_and_driver_take_is_chosen),
        cmocka_unit_test(a_cubin_is_used_for_its_own_chip_and_ptx_if_the_driver_refuses_it),
        cmocka_unit_test(code_that_cannot_be_loaded_is_refused_with_advice),
        cmocka_unit_test(auto_takes_cuda_when_there_is_a_device),
        cmocka_unit_test(bytes_move_through_cuda),
        cmocka_unit_test(kernels_are_launched_with_the_arguments_that_their_ptx_declares),
        cmocka_unit_test(out_of_memory_names_the_call_and_the_numbers),
        cmocka_unit_test(recorded_work_is_done_when_it_is_replayed),
        cmocka_unit_test(every_call_of_a_graph_may_fail),
        cmocka_unit_test(the_callers_context_is_current_again_after_every_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
