/* HIP's driver table: libamdhip64.so of ROCm 7, 6 or 5, opened at run time.
 *
 * HIP's contexts are deprecated; a thread has a current device, by number. So a driver_context is the device's number plus one,
 * and swapping contexts is hipSetDevice. Streams are created non-blocking, as for CUDA.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "gpu/driver/hip_library.h"
#include "gpu/driver/hiprtc.h"
#include "gpu/driver/rocm_library.h"

/* ---- devices ------------------------------------------------------------------------------------------------------------- */

static int hip_device_count(int32_t *count)
{
    return CALL(device_count, hipGetDeviceCount, count);
}

/* Attributes give all of a PCI address except the function, which is 0 for most GPUs. The text has it for the others; a runtime
 * without the text, or with a different one, gives 0. */
static void write_pci(int device, const int32_t *attributes, ww_device_info *info)
{
    unsigned domain = 0;
    unsigned bus = 0;
    unsigned slot = 0;
    unsigned function = 0;
    char text[64] = "";
    char behind = '\0';
    const int number = hip.device_pci != NULL ? CALL(device_pci, hipDeviceGetPCIBusId, text, (int)sizeof text - 1, device) : 0;
    if (number != AMD_SUCCESS || sscanf(text, "%x:%x:%x.%x%c", &domain, &bus, &slot, &function, &behind) != 4 ||
        bus != ((unsigned)attributes[1] & 0xffu) || slot != ((unsigned)attributes[2] & 0xffu))
        function = 0;
    snprintf(info->pci_address, sizeof info->pci_address, "%04x:%02x:%02x.%x", (unsigned)attributes[0] & 0xffffu,
             (unsigned)attributes[1] & 0xffu, (unsigned)attributes[2] & 0xffu, function & 7u);
}

static int read_attributes(int device, ww_device_info *info)
{
    int32_t pci[3];
    int32_t shared_bytes;
    const struct {
        int attribute;
        int32_t *value;
    } wanted[] = {
        {AMD_DEVICE_ATTRIBUTE_WARP_SIZE, &info->wave_size},
        {AMD_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &info->compute_units},
        {AMD_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &info->max_threads_per_block},
        {AMD_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, &shared_bytes},
        {AMD_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, &pci[0]},
        {AMD_DEVICE_ATTRIBUTE_PCI_BUS_ID, &pci[1]},
        {AMD_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, &pci[2]},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const int number = CALL(device_attribute, hipDeviceGetAttribute, wanted[i].value, wanted[i].attribute, device);
        if (number != AMD_SUCCESS)
            return number;
    }
    info->shared_bytes_per_block = shared_bytes;
    write_pci(device, pci, info);
    return AMD_SUCCESS;
}

/* "gfx90a:sramecc+:xnack-" is a gfx90a: the features are settings of the machine, and our code runs under all of them. */
static int read_chip(int device, ww_device_info *info)
{
    _Alignas(16) char properties[2 * AMD_PROPERTIES_6_BYTES] = ""; /* later versions may write more */
    const bool newer = hip.properties_6 != NULL;
    const int number = newer ? CALL(properties_6, hipGetDevicePropertiesR0600, properties, device)
                             : CALL(properties_5, hipGetDeviceProperties, properties, device);
    if (number != AMD_SUCCESS)
        return number;
    char *arch = properties + (newer ? AMD_PROPERTIES_6_ARCH : AMD_PROPERTIES_5_ARCH);
    arch[AMD_PROPERTIES_ARCH_BYTES - 1] = '\0';
    arch[strcspn(arch, ":")] = '\0';
    if (strncmp(arch, "gfx", 3) != 0 || strlen(arch) >= sizeof info->arch) {
        (void)hip_answer(newer ? "hipGetDevicePropertiesR0600" : "hipGetDeviceProperties", HIP_NO_CHIP);
        text_copy(hip_detail, sizeof hip_detail, "the device's properties name no gfx chip: is this an AMD runtime?");
        return HIP_NO_CHIP;
    }
    text_copy(info->arch, sizeof info->arch, arch);
    return AMD_SUCCESS;
}

/* HIP's own numbering: 60342131 is 6.3.42131. */
static void write_version(char *text, size_t capacity, int version)
{
    snprintf(text, capacity, "%d.%d.%d", version / 10000000, version / 100000 % 100, version % 100000);
}

static int read_versions(ww_device_info *info)
{
    int driver = 0;
    int runtime = 0;
    int number = CALL(driver_version, hipDriverGetVersion, &driver);
    if (number == AMD_SUCCESS)
        number = CALL(runtime_version, hipRuntimeGetVersion, &runtime);
    if (number != AMD_SUCCESS)
        return number;
    write_version(info->driver_version, sizeof info->driver_version, driver);
    if (runtime != driver) {
        char text[20];
        write_version(text, sizeof text, runtime);
        text_append(info->driver_version, sizeof info->driver_version, ", runtime ");
        text_append(info->driver_version, sizeof info->driver_version, text);
    }
    char release[16];
    rocm_release(*(const void *const *)&hip.driver_version, release, sizeof release);
    if (release[0] != '\0') {
        text_append(info->driver_version, sizeof info->driver_version, ", ROCm ");
        text_append(info->driver_version, sizeof info->driver_version, release);
    }
    return AMD_SUCCESS;
}

static int hip_device_describe(int32_t index, ww_device_info *info)
{
    size_t total_bytes = 0;
    int number = CALL(device_name, hipDeviceGetName, info->name, (int)sizeof info->name, index);
    info->name[sizeof info->name - 1] = '\0';
    if (number == AMD_SUCCESS)
        number = CALL(device_memory, hipDeviceTotalMem, &total_bytes, index);
    if (number == AMD_SUCCESS)
        number = read_versions(info);
    if (number == AMD_SUCCESS)
        number = read_attributes(index, info);
    if (number == AMD_SUCCESS)
        number = read_chip(index, info);
    if (number == AMD_SUCCESS && info->name[0] == '\0') /* some runtimes have no name for some cards */
        snprintf(info->name, sizeof info->name, "AMD %s", info->arch);
    info->memory_total_bytes = (int64_t)total_bytes;
    return number;
}

/* HIP counts the threads of a launch along each axis in 32 bits. */
static int hip_launch_limits(int32_t index, driver_launch_limits *out)
{
    for (int axis = 0; axis < 3; axis++) {
        int grid = 0;
        int block = 0;
        int number = CALL(device_attribute, hipDeviceGetAttribute, &grid, AMD_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + axis, index);
        if (number == AMD_SUCCESS)
            number = CALL(device_attribute, hipDeviceGetAttribute, &block, AMD_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + axis, index);
        if (number != AMD_SUCCESS)
            return number;
        out->grid[axis] = grid;
        out->block[axis] = block;
        out->threads[axis] = UINT32_MAX;
    }
    return AMD_SUCCESS;
}

/* ---- contexts: device numbers -------------------------------------------------------------------------------------------- */

static driver_context context_of(int device)
{
    return (driver_context)(uintptr_t)(device + 1);
}

static int hip_context_swap(driver_context context, driver_context *previous)
{
    int current = 0;
    int number = CALL(device_get, hipGetDevice, &current);
    if (number == AMD_SUCCESS && context != NULL && context != context_of(current))
        number = CALL(device_set, hipSetDevice, (int)(uintptr_t)context - 1);
    if (number == AMD_SUCCESS)
        *previous = context_of(current);
    return number;
}

/* Creates nothing: HIP creates what it needs when a device is first used, and keeps it until the process ends. */
static int hip_context_create(int32_t index, driver_context *out)
{
    driver_context previous = NULL;
    const int number = hip_context_swap(context_of(index), &previous);
    if (number != AMD_SUCCESS)
        return number;
    *out = context_of(index);
    return hip_context_swap(previous, &previous);
}

static int hip_context_destroy(int32_t index, driver_context context)
{
    (void)index;
    (void)context;
    return AMD_SUCCESS;
}

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

static void *plain(const void *address) /* HIP takes sources without const, and does not write them */
{
    return (void *)(uintptr_t)address;
}

static int hip_memory_info(size_t *free_bytes, size_t *total_bytes)
{
    return CALL(memory_info, hipMemGetInfo, free_bytes, total_bytes);
}

static int hip_memory_alloc(size_t bytes, void **out)
{
    return CALL(memory_alloc, hipMalloc, out, bytes);
}

static int hip_memory_free(void *address)
{
    return CALL(memory_free, hipFree, address);
}

/* Always coherent, even if HIP_HOST_COHERENT says otherwise: the host polls it while a kernel runs (gpu_await), and kernels
 * write to it with stores that must not stay in the chip's cache. */
static int hip_pinned_alloc(size_t bytes, void **out)
{
    return CALL(host_alloc, hipHostMalloc, out, bytes, AMD_HOST_MALLOC_PORTABLE | AMD_HOST_MALLOC_COHERENT);
}

static int hip_pinned_free(void *host)
{
    return CALL(host_free, hipHostFree, host);
}

static int hip_copy_in(driver_stream stream, void *to, const void *from_host, size_t bytes)
{
    return CALL(copy_in, hipMemcpyHtoDAsync, to, plain(from_host), bytes, stream);
}

static int hip_copy_out(driver_stream stream, void *to_host, const void *from, size_t bytes)
{
    return CALL(copy_out, hipMemcpyDtoHAsync, to_host, plain(from), bytes, stream);
}

static int hip_copy(driver_stream stream, void *to, const void *from, size_t bytes)
{
    return CALL(copy, hipMemcpyDtoDAsync, to, plain(from), bytes, stream);
}

static int hip_fill32(driver_stream stream, void *to, uint32_t pattern, size_t words)
{
    return CALL(fill32, hipMemsetD32Async, to, (int)pattern, words, stream);
}

/* ---- streams and events -------------------------------------------------------------------------------------------------- */

static int hip_stream_create(driver_stream *out)
{
    return CALL(stream_create, hipStreamCreateWithFlags, (void **)out, AMD_STREAM_NON_BLOCKING);
}

static int hip_stream_destroy(driver_stream stream)
{
    return CALL(stream_destroy, hipStreamDestroy, stream);
}

static int hip_stream_synchronize(driver_stream stream)
{
    return CALL(stream_synchronize, hipStreamSynchronize, stream);
}

static int hip_event_create(bool timed, driver_event *out)
{
    return CALL(event_create, hipEventCreateWithFlags, (void **)out, timed ? AMD_EVENT_DEFAULT : AMD_EVENT_DISABLE_TIMING);
}

static int hip_event_destroy(driver_event event)
{
    return CALL(event_destroy, hipEventDestroy, event);
}

static int hip_event_record(driver_event event, driver_stream stream)
{
    return CALL(event_record, hipEventRecord, event, stream);
}

static int hip_stream_wait(driver_stream stream, driver_event event)
{
    return CALL(stream_wait, hipStreamWaitEvent, stream, event, 0);
}

static int hip_event_synchronize(driver_event event)
{
    return CALL(event_synchronize, hipEventSynchronize, event);
}

static int hip_event_elapsed(driver_event from, driver_event to, float *milliseconds)
{
    return CALL(event_elapsed, hipEventElapsedTime, milliseconds, from, to);
}

/* ---- code ---------------------------------------------------------------------------------------------------------------- */

static int hip_module_load(const void *image, size_t bytes, driver_module *out)
{
    (void)bytes; /* HIP finds the end in the ELF's headers */
    return CALL(module_load, hipModuleLoadData, (void **)out, image);
}

static int hip_module_unload(driver_module module)
{
    return CALL(module_unload, hipModuleUnload, module);
}

static int hip_module_compile(const char *module, const char *arch, bool anew, driver_compiled *out)
{
    hiprtc_job job = {.hip_library = hip.handle,
                      .module = module,
                      .arch = arch,
                      .anew = anew,
                      .detail = hip_detail,
                      .detail_capacity = sizeof hip_detail};
    const int number = hiprtc_compile(&job, out);
    if (number != AMD_SUCCESS)
        hip_failed_elsewhere("hiprtcCompileProgram");
    return number;
}

static int hip_source_compile(const driver_source *source, driver_compiled *out, char **log)
{
    const hiprtc_job job = {.hip_library = hip.handle, .detail = hip_detail, .detail_capacity = sizeof hip_detail};
    const int number = hiprtc_compile_source(&job, source, out, log);
    if (number != AMD_SUCCESS)
        hip_failed_elsewhere("hiprtcCompileProgram");
    return number;
}

static int hip_function_find(driver_module module, const char *name, driver_function *out)
{
    return CALL(module_function, hipModuleGetFunction, (void **)out, module, name);
}

/* Dynamic LDS needs no permission: a block may use what its static part leaves. */
static int hip_function_limits(driver_function function, driver_function_limits *out)
{
    int device = 0;
    int threads = 0;
    int registers = 0;
    int static_bytes = 0;
    int block_bytes = 0;
    int local_bytes = 0;
    const struct {
        int attribute;
        int *value;
    } wanted[] = {
        {AMD_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &threads},
        {AMD_FUNC_ATTRIBUTE_NUM_REGS, &registers},
        {AMD_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &static_bytes},
        {AMD_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &local_bytes},
    };
    int number = CALL(device_get, hipGetDevice, &device);
    if (number == AMD_SUCCESS)
        number = CALL(device_attribute, hipDeviceGetAttribute, &block_bytes, AMD_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
                      device);
    for (size_t i = 0; number == AMD_SUCCESS && i < sizeof wanted / sizeof wanted[0]; i++)
        number = CALL(function_get, hipFuncGetAttribute, wanted[i].value, wanted[i].attribute, function);
    if (number != AMD_SUCCESS)
        return number;
    *out = (driver_function_limits){.threads_per_block_max = threads,
                                    .registers = registers,
                                    .shared_static_bytes = static_bytes,
                                    .shared_dynamic_bytes_max = block_bytes > static_bytes ? block_bytes - static_bytes : 0,
                                    .local_bytes = local_bytes,
                                    .arguments_bytes = -1};
    return AMD_SUCCESS;
}

static int hip_launch(driver_function function, driver_stream stream, const driver_launch *launch)
{
    size_t bytes = launch->arguments_bytes;
    void *extra[] = {(void *)(uintptr_t)AMD_LAUNCH_PARAM_BUFFER_POINTER, plain(launch->arguments),
                     (void *)(uintptr_t)AMD_LAUNCH_PARAM_BUFFER_SIZE, &bytes, (void *)(uintptr_t)AMD_LAUNCH_PARAM_END};
    return CALL(launch, hipModuleLaunchKernel, function, launch->grid_x, launch->grid_y, launch->grid_z, launch->block_x,
                launch->block_y, launch->block_z, launch->shared_bytes, stream, NULL, extra);
}

/* ---- recorded work ---------------------------------------------------------------------------------------------------------
 */

/* Relaxed, so that memory can be allocated during the capture. */
static int hip_capture_begin(driver_stream stream)
{
    if (hip.capture_begin == NULL || hip.capture_end == NULL || hip.graph_instantiate == NULL || hip.graph_destroy == NULL ||
        hip.graph_launch == NULL || hip.made_destroy == NULL)
        return hip_answer("hipStreamBeginCapture", AMD_ERROR_NOT_SUPPORTED);
    return CALL(capture_begin, hipStreamBeginCapture, stream, AMD_STREAM_CAPTURE_MODE_RELAXED);
}

static int hip_capture_end(driver_stream stream, driver_graph *out)
{
    void *graph = NULL, *made = NULL;
    int number = CALL(capture_end, hipStreamEndCapture, stream, &graph);
    if (number == AMD_SUCCESS)
        number = CALL(graph_instantiate, hipGraphInstantiate, &made, graph, NULL, NULL, 0);
    if (graph != NULL)
        (void)hip.graph_destroy(graph);
    if (number == AMD_SUCCESS)
        *out = made;
    return number;
}

static int hip_graph_launch(driver_graph graph, driver_stream stream)
{
    return CALL(graph_launch, hipGraphLaunch, graph, stream);
}

static int hip_graph_destroy(driver_graph graph)
{
    return CALL(made_destroy, hipGraphExecDestroy, graph);
}

const gpu_driver hip_driver = {
    .code = DRIVER_CODE_AMD,
    .code_in_words = "a code object (ELF) or a bundle of them",
    .stream_1_is_null = true,
    .backend = "rocm",
    .vendor = "AMD",
    .api = "HIP",
    .library = "libamdhip64.so.7",
    .loads_code = true,
    .kernels_run_unwaited = true,
    .started_in = &hip_started_in,
    .load = hip_load,
    .device_count = hip_device_count,
    .device_describe = hip_device_describe,
    .launch_limits = hip_launch_limits,
    .context_create = hip_context_create,
    .context_destroy = hip_context_destroy,
    .context_swap = hip_context_swap,
    .memory_info = hip_memory_info,
    .memory_alloc = hip_memory_alloc,
    .memory_free = hip_memory_free,
    .pinned_alloc = hip_pinned_alloc,
    .pinned_free = hip_pinned_free,
    .copy_in = hip_copy_in,
    .copy_out = hip_copy_out,
    .copy = hip_copy,
    .fill32 = hip_fill32,
    .stream_create = hip_stream_create,
    .stream_destroy = hip_stream_destroy,
    .stream_synchronize = hip_stream_synchronize,
    .event_create = hip_event_create,
    .event_destroy = hip_event_destroy,
    .event_record = hip_event_record,
    .stream_wait = hip_stream_wait,
    .event_synchronize = hip_event_synchronize,
    .event_elapsed = hip_event_elapsed,
    .capture_begin = hip_capture_begin,
    .capture_end = hip_capture_end,
    .graph_launch = hip_graph_launch,
    .graph_destroy = hip_graph_destroy,
    .module_load = hip_module_load,
    .module_unload = hip_module_unload,
    .module_compile = hip_module_compile,
    .source_compile = hip_source_compile,
    .function_find = hip_function_find,
    .function_limits = hip_function_limits,
    .launch = hip_launch,
    .error_name = hip_error_name,
    .error_class = hip_error_class,
    .failure = hip_failure,
};
