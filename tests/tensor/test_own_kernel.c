/* Kernels of the caller's own: that of examples/own_kernel, loaded, found, launched, refused, and failing. */
#include "support/devices.h"
#include "support/faults/faulty_driver.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "device/backend.h"
#include "emulated/emulated.h"
#include "gpu/backend.h"
#include "gpu/open.h"
#include "support/memory.h"
#include "support/scratch.h"

enum { COUNT = 300, THREADS = 128, BLOCKS = 3, CODE_MAX = 4 << 20 };

typedef struct code {
    char *bytes;
    size_t size;
} code;

static code read_code(const ww_device_info *info)
{
    char path[512];
    code read = {.bytes = malloc(CODE_MAX)};
    if (strcmp(info->backend, "rocm") == 0)
        snprintf(path, sizeof path, BUILD_DIR "/tests/own_kernel/scale.%s.hsaco", info->arch);
    else
        snprintf(path, sizeof path, BUILD_DIR "/tests/own_kernel/scale.%s",
                 strcmp(info->backend, "cuda") == 0 ? "sm_75.ptx" : "so");
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("there is no %s", path);
    read.size = fread(read.bytes, 1, CODE_MAX, file);
    fclose(file);
    return read;
}

static bool runs_kernels(const ww_device *device)
{
    return strcmp(device->info.backend, "cpu") != 0;
}

/* A module with its kernel, and tensors for it. */
typedef struct scene {
    ww_module *module;
    ww_kernel *scale;
    ww_tensor x, y, sums;
    ww_argument arguments[5];
    ww_launch launch;
} scene;

/* `compiled` is a module that was compiled from source, or NULL: then the code is loaded. The scene owns it from now on. */
static ww_status scene_make(ww_device *device, const code *from, scene *s, ww_module *compiled)
{
    const int64_t count = COUNT, blocks = BLOCKS;
    float numbers[COUNT];
    memset(s, 0, sizeof *s);
    s->module = compiled;
    for (int i = 0; i < COUNT; i++)
        numbers[i] = (float)(i % 19) - 9.0f;
    ww_status status = ww_tensor_from_host(device, WW_F32, 1, &count, numbers, &s->x);
    if (status == WW_OK)
        status = ww_tensor_zeros(device, WW_F32, 1, &count, &s->y);
    if (status == WW_OK)
        status = ww_tensor_zeros(device, WW_F32, 1, &blocks, &s->sums);
    if (status == WW_OK && compiled == NULL)
        status = ww_module_load(device, from->bytes, from->size, &s->module);
    if (status == WW_OK)
        status = ww_module_function(s->module, "scale", &s->scale);
    s->arguments[0] = ww_argument_tensor(&s->x);
    s->arguments[1] = ww_argument_tensor(&s->y);
    s->arguments[2] = ww_argument_tensor(&s->sums);
    s->arguments[3] = ww_argument_f32(2.0f);
    s->arguments[4] = ww_argument_i64(COUNT);
    s->launch = ww_launch_default();
    s->launch.grid[0] = BLOCKS;
    s->launch.block[0] = THREADS;
    s->launch.arguments = s->arguments;
    s->launch.argument_count = 5;
    return status;
}

static void scene_end(scene *s)
{
    ww_module_release(s->module);
    ww_tensor_release(&s->x);
    ww_tensor_release(&s->y);
    ww_tensor_release(&s->sums);
}

static void scene_on(ww_device *device, scene *s)
{
    code from = read_code(&device->info);
    CHECK_OK(scene_make(device, &from, s, NULL));
    free(from.bytes); /* the module has copied what it needs */
}

static void check_y(ww_tensor *y, int first, float factor)
{
    float found[COUNT];
    CHECK_OK(ww_tensor_to_host(y, found));
    for (int i = first; i < COUNT; i++)
        if (found[i] != factor * ((float)((i - first) % 19) - 9.0f))
            fail_msg("element %d is %g", i, (double)found[i]);
}

/* ---- what it does -------------------------------------------------------------------------------------------------------- */

static void a_kernel_runs_in_the_order_of_tensor_operations(void **state)
{
    if (!runs_kernels(*state))
        return;
    scene s;
    scene_on(*state, &s);
    ww_tensor doubled = {0}, squared = {0};
    CHECK_OK(ww_tensor_binary(WW_ADD, &s.x, &s.x, &doubled));
    s.arguments[0] = ww_argument_tensor(&doubled);
    CHECK_OK(ww_kernel_launch(s.scale, &s.launch));
    CHECK_OK(ww_tensor_unary(WW_SQR, &s.y, &squared));
    float found[COUNT], sums[BLOCKS];
    CHECK_OK(ww_tensor_to_host(&squared, found));
    CHECK_OK(ww_tensor_to_host(&s.sums, sums));
    float sum = 0.0f;
    for (int i = 0; i < COUNT; i++) {
        const float y = 4.0f * ((float)(i % 19) - 9.0f);
        assert_true(found[i] == y * y);
        sum = (i % THREADS == 0 ? 0.0f : sum) + y;
        if (i % THREADS == THREADS - 1 || i == COUNT - 1)
            assert_true(sums[i / THREADS] == sum);
    }
    ww_tensor_release(&doubled);
    ww_tensor_release(&squared);
    scene_end(&s);
}

static void a_view_is_given_by_the_address_of_its_first_element(void **state)
{
    if (!runs_kernels(*state))
        return;
    scene s;
    scene_on(*state, &s);
    ww_tensor part = s.y;
    part.layout.offset = 100;
    part.layout.shape[0] = COUNT - 100;
    s.arguments[1] = ww_argument_tensor(&part);
    s.arguments[4] = ww_argument_i64(COUNT - 100);
    CHECK_OK(ww_kernel_launch(s.scale, &s.launch));
    check_y(&s.y, 100, 2.0f);
    float found[COUNT];
    CHECK_OK(ww_tensor_to_host(&s.y, found));
    for (int i = 0; i < 100; i++)
        assert_true(found[i] == 0.0f);
    scene_end(&s);
}

static void a_struct_may_be_given_as_bytes(void **state)
{
    if (!runs_kernels(*state))
        return;
    scene s;
    scene_on(*state, &s);
    const struct {
        float factor;
        int64_t count;
    } tail = {3.0f, COUNT};
    s.arguments[3] = ww_argument_bytes(&tail, sizeof tail, _Alignof(int64_t));
    s.launch.argument_count = 4;
    CHECK_OK(ww_kernel_launch(s.scale, &s.launch));
    check_y(&s.y, 0, 3.0f);
    scene_end(&s);
}

static void a_module_that_is_unloaded_has_done_its_work(void **state)
{
    if (!runs_kernels(*state))
        return;
    scene s;
    scene_on(*state, &s);
    CHECK_OK(ww_kernel_launch(s.scale, &s.launch));
    ww_module_release(s.module);
    s.module = NULL;
    check_y(&s.y, 0, 2.0f);
    scene_end(&s);
}

static void a_kernel_reports_its_requirements_and_is_found_only_once(void **state)
{
    if (!runs_kernels(*state))
        return;
    scene s;
    scene_on(*state, &s);
    ww_kernel *again = NULL;
    ww_kernel_info info = ww_kernel_info_default();
    CHECK_OK(ww_module_function(s.module, "scale", &again));
    assert_ptr_equal(again, s.scale);
    CHECK_OK(ww_kernel_describe(s.scale, &info));
    assert_int_equal(info.threads_per_block_max, THREADS);
    assert_true(info.argument_bytes == 40 || info.argument_bytes == -1);
    assert_true(info.shared_dynamic_bytes_max > 0);
    scene_end(&s);
}

/* ---- what is refused ----------------------------------------------------------------------------------------------------- */

static void refuse(scene *s, ww_status status, const char *text)
{
    CHECK_FAILS(status, ww_kernel_launch(s->scale, &s->launch));
    if (!strstr(ww_error_message(), text))
        fail_msg("'%s' does not say '%s'", ww_error_message(), text);
}

static void a_launch_that_cannot_be_is_refused_and_changes_nothing(void **state)
{
    if (!runs_kernels(*state))
        return;
    scene s;
    scene_on(*state, &s);
    const ww_launch good = s.launch;
    for (int axis = 0; axis < 3; axis++) {
        s.launch.grid[axis] = 0;
        refuse(&s, WW_OUT_OF_RANGE, "blocks along");
        s.launch.grid[axis] = (int64_t)1 << 40;
        refuse(&s, WW_OUT_OF_RANGE, "blocks along");
        s.launch = good;
        s.launch.block[axis] = 0;
        refuse(&s, WW_OUT_OF_RANGE, "threads of a block along");
        s.launch.block[axis] = 1 << 20;
        refuse(&s, WW_OUT_OF_RANGE, "threads of a block along");
        s.launch = good;
    }
    s.launch.block[0] = THREADS + 1;
    refuse(&s, WW_OUT_OF_RANGE, "129 threads a block; the maximum is 128");
    s.launch = good;
    s.launch.shared_bytes = (size_t)1 << 30;
    refuse(&s, WW_OUT_OF_RANGE, "bytes of shared memory");
    s.launch = good;
    s.launch.arguments = NULL;
    refuse(&s, WW_INVALID_ARGUMENT, "arguments is NULL");
    s.launch = good;
    s.launch.struct_size = 0;
    refuse(&s, WW_INVALID_ARGUMENT, "struct_size");
    s.launch = good;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_kernel_launch(NULL, &s.launch));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_kernel_launch(s.scale, NULL));
    float found[COUNT];
    CHECK_OK(ww_tensor_to_host(&s.y, found));
    for (int i = 0; i < COUNT; i++)
        assert_true(found[i] == 0.0f);
    scene_end(&s);
}

/* HIP counts the threads of a launch in 32 bits; a larger launch is refused without calling the driver. */
static void a_launch_of_more_threads_than_the_driver_counts_is_refused(void **state)
{
    const ww_device *device = *state;
    if (strcmp(device->info.backend, "rocm") != 0)
        return;
    scene s;
    scene_on(*state, &s);
    s.launch.grid[0] = ((int64_t)1 << 32) / THREADS;
    refuse(&s, WW_OUT_OF_RANGE, "allows 4294967295 threads");
    s.launch.grid[0] = 1;
    s.launch.grid[1] = 65536;
    refuse(&s, WW_OUT_OF_RANGE, "along y; rocm:");
    s.launch.grid[1] = 1;
    s.launch.grid[2] = 65536;
    refuse(&s, WW_OUT_OF_RANGE, "along z; rocm:");
    scene_end(&s);
}

static void arguments_that_cannot_be_are_refused(void **state)
{
    if (!runs_kernels(*state))
        return;
    ww_device *cpu = NULL;
    ww_tensor elsewhere = {0}, outside;
    const int64_t count = COUNT;
    scene s;
    scene_on(*state, &s);
    CHECK_OK(ww_device_open("cpu", &cpu));
    CHECK_OK(ww_tensor_zeros(cpu, WW_F32, 1, &count, &elsewhere));
    s.arguments[0] = ww_argument_tensor(&elsewhere);
    refuse(&s, WW_INVALID_ARGUMENT, "argument 0 is a tensor on cpu, the module on");
    s.arguments[0] = ww_argument_tensor(NULL);
    refuse(&s, WW_INVALID_ARGUMENT, "argument 0 is NULL");
    outside = s.x;
    outside.layout.offset = 1;
    s.arguments[0] = ww_argument_tensor(&outside);
    refuse(&s, WW_OUT_OF_RANGE, "outside its storage");
    s.arguments[0] = ww_argument_tensor(&s.x);
    s.arguments[3].kind = (ww_argument_kind)99;
    refuse(&s, WW_INVALID_ARGUMENT, "argument 3 is of kind 99");
    const size_t alignments[] = {0, 3, 512};
    for (int i = 0; i < 3; i++) {
        s.arguments[3] = ww_argument_bytes(&count, sizeof count, alignments[i]);
        refuse(&s, WW_INVALID_ARGUMENT, "must be a power of two");
    }
    s.arguments[3] = ww_argument_bytes(NULL, 4, 4);
    refuse(&s, WW_INVALID_ARGUMENT, "has no bytes");
    s.arguments[3] = ww_argument_bytes(&count, 5000, 4);
    refuse(&s, WW_OUT_OF_RANGE, "ends behind byte 4096");
    s.arguments[3] = ww_argument_f32(2.0f);
    ww_kernel_info info = ww_kernel_info_default();
    CHECK_OK(ww_kernel_describe(s.scale, &info));
    if (info.argument_bytes >= 0) { /* HIP does not say */
        s.launch.argument_count = 4;
        refuse(&s, WW_INVALID_ARGUMENT, "28 bytes of arguments; it takes 40");
        s.launch.argument_count = 5;
    }
    CHECK_OK(ww_kernel_launch(s.scale, &s.launch));
    check_y(&s.y, 0, 2.0f);
    ww_tensor_release(&elsewhere);
    ww_device_close(cpu);
    scene_end(&s);
}

static void code_for_another_device_is_refused_and_named(void **state)
{
    ww_device *device = *state;
    ww_module *module = NULL;
    union {
        Elf64_Ehdr header;
        char bytes[256];
    } amd = {.header = {.e_ident = ELFMAG, .e_machine = 224, .e_shoff = 64}}, cut = amd;
    static const char ptx[] = ".version 7.4\n.target sm_75\n.address_size 64\n", nonsense[] = "not code";
    cut.header.e_machine = EM_AARCH64;
    cut.header.e_shoff = 1 << 20;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_module_load(NULL, ptx, sizeof ptx, &module));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_module_load(device, NULL, 1, &module));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_module_load(device, ptx, 0, &module));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_module_load(device, ptx, sizeof ptx, NULL));
    CHECK_FAILS(WW_UNSUPPORTED, ww_module_load(device, nonsense, sizeof nonsense, &module));
    if (!runs_kernels(device)) {
        assert_non_null(strstr(ww_error_message(), "cpu is not a GPU"));
        return;
    }
    assert_non_null(strstr(ww_error_message(), "code of an unknown kind"));
    if (strcmp(device->info.backend, "cuda") != 0) {
        CHECK_FAILS(WW_UNSUPPORTED, ww_module_load(device, ptx, sizeof ptx, &module));
        assert_non_null(strstr(ww_error_message(), "this is NVIDIA's code"));
    }
    if (strcmp(device->info.backend, "rocm") != 0) {
        CHECK_FAILS(WW_UNSUPPORTED, ww_module_load(device, amd.bytes, sizeof amd, &module));
        assert_non_null(strstr(ww_error_message(), "this is an AMD code object"));
    }
    if (strcmp(device->info.backend, "emulator") == 0) {
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_module_load(device, cut.bytes, sizeof cut, &module));
        assert_non_null(strstr(ww_error_message(), "not the whole file"));
        CHECK_FAILS(WW_UNSUPPORTED, ww_module_load(device, (cut.header.e_shoff = 64, cut.bytes), sizeof cut, &module));
    }
    assert_null(module);
    ww_module_release(NULL);
}

static void a_kernel_that_is_not_there_is_not_found(void **state)
{
    if (!runs_kernels(*state))
        return;
    scene s;
    scene_on(*state, &s);
    ww_kernel *kernel = s.scale;
    char longest[300];
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    CHECK_FAILS(WW_NOT_FOUND, ww_module_function(s.module, "scales", &kernel));
    assert_null(kernel);
    assert_non_null(strstr(ww_error_message(), "finding kernel 'scales'"));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_module_function(s.module, longest, &kernel));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_module_function(NULL, "scale", &kernel));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_module_function(s.module, NULL, &kernel));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_module_function(s.module, "scale", NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_kernel_describe(NULL, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_kernel_describe(s.scale, NULL));
    scene_end(&s);
}

/* ---- compiled from source ------------------------------------------------------------------------------------------------ */

/* The stand-in gives what this was compiled to earlier; NVRTC does not know the words of simt.h. */
static char *read_source(const ww_device *device)
{
    size_t bytes = 0;
    return strcmp(device->info.backend, "cuda") == 0 ? scratch_content(SOURCE_DIR "/examples/own_kernel/scale.hip", &bytes)
                                                     : scratch_content(SOURCE_DIR "/examples/own_kernel/scale.c", &bytes);
}

static bool has_compiler(const ww_device *device)
{
    return strcmp(device->info.backend, "rocm") == 0 || strcmp(device->info.backend, "cuda") == 0;
}

/* Compiles, runs the kernel, and compares. */
static ww_status compile_and_run(ww_device *device, const char *source, const ww_compile_options *options)
{
    scene s;
    ww_module *module = NULL;
    code from = {.bytes = NULL};
    ww_status status = ww_module_compile(device, source, options, &module, NULL);
    if (status == WW_OK)
        status = scene_make(device, &from, &s, module);
    if (status == WW_OK)
        status = ww_kernel_launch(s.scale, &s.launch);
    float found[COUNT];
    if (status == WW_OK)
        status = ww_tensor_to_host(&s.y, found);
    if (status == WW_OK && found[COUNT - 1] != 2.0f * ((float)((COUNT - 1) % 19) - 9.0f))
        fail_msg("the last element is %g", (double)found[COUNT - 1]);
    if (module != NULL)
        scene_end(&s);
    return status;
}

static void a_source_is_compiled_and_runs(void **state)
{
    ww_device *device = *state;
    if (!has_compiler(device))
        return;
    char *source = read_source(device), *log = NULL;
    assert_int_equal(scratch_setup(NULL), 0);
    setenv("XDG_CACHE_HOME", scratch_path("cache"), 1);
    CHECK_OK(compile_and_run(device, source, NULL));
    CHECK_OK(compile_and_run(device, source, NULL)); /* from the cache */
    ww_module *module = NULL;
    ww_compile_options options = ww_compile_options_default();
    const char *const words[] = {"-DANOTHER=1"};
    options.options = words;
    options.option_count = 1;
    CHECK_OK(ww_module_compile(device, source, &options, &module, &log));
    if (strcmp(device->info.backend, "rocm") ==
        0) /* other options were not in the cache, so the compiler had something to say */
        assert_true(strstr(log, "warning:") != NULL || log[0] != '\0');
    ww_compile_log_destroy(log);
    ww_module_release(module);
    CHECK_OK(ww_module_compile(device, source, &options, &module, &log));
    assert_null(log); /* the cache has it */
    ww_module_release(module);
    assert_int_equal(scratch_teardown(NULL), 0);
    free(source);
}

static void a_name_gives_the_module_that_is_loaded(void **state)
{
    ww_device *device = *state;
    if (!has_compiler(device))
        return;
    char *source = read_source(device);
    ww_module *first = NULL, *second = NULL, *other = NULL;
    ww_kernel *kernel = NULL;
    ww_compile_options options = ww_compile_options_default();
    options.name = "scale";
    CHECK_OK(ww_module_compile(device, source, &options, &first, NULL));
    CHECK_OK(ww_module_compile(device, source, &options, &second, NULL));
    assert_ptr_equal(first, second);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_module_compile(device, "another source", &options, &other, NULL));
    assert_non_null(strstr(ww_error_message(), "the module 'scale'"));
    options.name = NULL;
    CHECK_OK(ww_module_compile(device, source, &options, &other, NULL));
    assert_ptr_not_equal(first, other);
    ww_module_release(first);
    CHECK_OK(ww_module_function(second, "scale", &kernel)); /* still loaded */
    ww_module_release(second);
    options.name = "scale";
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_module_compile(device, "#error not a kernel", &options, &first, NULL));
    assert_null(strstr(ww_error_message(), "another source")); /* it is gone, so this was compiled */
    CHECK_OK(ww_module_compile(device, source, &options, &first, NULL));
    ww_module_release(first);
    ww_module_release(other);
    free(source);
}

static void a_source_with_an_error_is_refused_with_the_compilers_words(void **state)
{
    ww_device *device = *state;
    ww_module *module = NULL;
    char *log = NULL;
    ww_compile_options options = ww_compile_options_default();
    const char *const none[] = {NULL};
    char longest[300];
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_module_compile(NULL, "", NULL, &module, &log));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_module_compile(device, NULL, NULL, &module, &log));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_module_compile(device, "", NULL, NULL, &log));
    if (!has_compiler(device)) {
        CHECK_FAILS(WW_UNSUPPORTED, ww_module_compile(device, "", NULL, &module, &log));
        assert_non_null(strstr(ww_error_message(), runs_kernels(device) ? "has no compiler" : "is not a GPU"));
        return;
    }
    options.name = longest;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_module_compile(device, "", &options, &module, &log));
    options = ww_compile_options_default();
    options.option_count = 1;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_module_compile(device, "", &options, &module, &log));
    options.options = none;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_module_compile(device, "", &options, &module, &log));
    options.option_count = 49;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_module_compile(device, "", &options, &module, &log));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_module_compile(device, "#error not a kernel", NULL, &module, &log));
    assert_non_null(strstr(ww_error_message(), "error"));
    assert_non_null(log);
    assert_non_null(strstr(log, "error"));
    assert_null(module);
    ww_compile_log_destroy(log);
    ww_compile_log_destroy(NULL);
}

static void every_allocation_of_a_compilation_may_fail(void **state)
{
    ww_device *device = *state;
    if (!has_compiler(device))
        return;
    char *source = read_source(device);
    ww_compile_options options = ww_compile_options_default();
    options.name = "scale";
    setenv("XDG_CACHE_HOME", "/proc/nonexistent", 1);
    CHECK_OK(compile_and_run(device, source, &options));
    const int64_t held = blocks_held();
    ww_status status = WW_OUT_OF_MEMORY;
    for (int64_t n = 1; status != WW_OK; n++) {
        fail_allocation_at(n);
        status = compile_and_run(device, source, &options);
        fail_allocation_at(0);
        if (status != WW_OK && status != WW_OUT_OF_MEMORY)
            fail_msg("allocation %d: %s", (int)n, ww_error_message());
        assert_true(n < 200);
        assert_int_equal(blocks_held(), held);
    }
    free(source);
}

/* ---- failures ------------------------------------------------------------------------------------------------------------ */

static ww_status compile_load_and_run(ww_device *device, const code *from)
{
    scene s;
    ww_status status = scene_make(device, from, &s, NULL);
    if (status == WW_OK)
        status = ww_kernel_launch(s.scale, &s.launch);
    float found[COUNT];
    if (status == WW_OK)
        status = ww_tensor_to_host(&s.y, found);
    scene_end(&s);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    if (!runs_kernels(*state))
        return;
    ww_device *device = *state;
    code from = read_code(&device->info);
    CHECK_OK(compile_load_and_run(device, &from));
    const int64_t held = blocks_held();
    ww_status status = WW_OUT_OF_MEMORY;
    for (int64_t n = 1; status != WW_OK; n++) {
        fail_allocation_at(n);
        status = compile_load_and_run(device, &from);
        fail_allocation_at(0);
        if (status != WW_OK && status != WW_OUT_OF_MEMORY)
            fail_msg("allocation %d: %s", (int)n, ww_error_message());
        assert_true(n < 100);
        assert_int_equal(blocks_held(), held);
    }
    free(from.bytes);
}

static void every_driver_call_may_fail(void **state)
{
    (void)state;
    ww_device *device = NULL;
    ww_device_info info = ww_device_info_default();
    emulated_counts before, after;
    snprintf(info.backend, sizeof info.backend, "emulator");
    code from = read_code(&info);
    emulated_count(&before);
    for (int64_t n = 1;; n++) {
        faulty_arm(&emulated_driver, 0, 0, NULL);
        CHECK_OK(gpu_open(&backend_emulator, &faulty_driver, 0, &device));
        faulty_arm(&emulated_driver, n, 2, NULL);
        const ww_status status = compile_load_and_run(device, &from);
        const char *victim = faulty_victim();
        faulty_arm(&emulated_driver, 0, 0, NULL);
        CHECK_OK(compile_load_and_run(device, &from)); /* the device is unchanged */
        ww_device_close(device);
        emulated_count(&after);
        assert_memory_equal(&before, &after, sizeof before);
        if (!victim) {
            assert_int_equal(status, WW_OK);
            break;
        }
        assert_true(n < 200);
    }
    free(from.bytes);
}

int main(void)
{
    const struct CMUnitTest alone[] = {cmocka_unit_test(every_driver_call_may_fail)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_runs_in_the_order_of_tensor_operations),
        cmocka_unit_test(a_view_is_given_by_the_address_of_its_first_element),
        cmocka_unit_test(a_struct_may_be_given_as_bytes),
        cmocka_unit_test(a_module_that_is_unloaded_has_done_its_work),
        cmocka_unit_test(a_kernel_reports_its_requirements_and_is_found_only_once),
        cmocka_unit_test(a_launch_that_cannot_be_is_refused_and_changes_nothing),
        cmocka_unit_test(a_launch_of_more_threads_than_the_driver_counts_is_refused),
        cmocka_unit_test(arguments_that_cannot_be_are_refused),
        cmocka_unit_test(code_for_another_device_is_refused_and_named),
        cmocka_unit_test(a_kernel_that_is_not_there_is_not_found),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_source_is_compiled_and_runs),
        cmocka_unit_test(a_name_gives_the_module_that_is_loaded),
        cmocka_unit_test(a_source_with_an_error_is_refused_with_the_compilers_words),
        cmocka_unit_test(every_allocation_of_a_compilation_may_fail),
    };
    const int failed = cmocka_run_group_tests_name("own kernels, over a driver that fails", alone, NULL, NULL);
    return failed + RUN_ON_EVERY_DEVICE("own kernels", tests);
}
