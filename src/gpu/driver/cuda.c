/* CUDA's driver table: libcuda.so.1, opened at run time, so that one binary works on machines with and without it.
 *
 * The context is the device's primary one, which CUDA's runtime API and other libraries in the process use too. Streams are
 * created non-blocking, so nothing here waits for the default stream. CUDA's rule is that an error that breaks the context
 * breaks it for all users.
 */
#include <stdio.h>

#include "base/text.h"
#include "gpu/driver/cuda_library.h"
#include "gpu/driver/nvrtc.h"
#include "gpu/driver/ptx.h"

/* ---- devices ------------------------------------------------------------------------------------------------------------- */

static int cuda_device_count(int32_t *count)
{
    return CALL(device_count, cuDeviceGetCount, count);
}

static int read_attributes(int device, ww_device_info *info, int32_t capability[2])
{
    int32_t pci[3];
    int32_t shared_bytes;
    const struct {
        int attribute;
        int32_t *value;
    } wanted[] = {
        {NV_DEVICE_ATTRIBUTE_WARP_SIZE, &info->wave_size},
        {NV_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &info->compute_units},
        {NV_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &info->max_threads_per_block},
        {NV_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &shared_bytes},
        {NV_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &capability[0]},
        {NV_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &capability[1]},
        {NV_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, &pci[0]},
        {NV_DEVICE_ATTRIBUTE_PCI_BUS_ID, &pci[1]},
        {NV_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, &pci[2]},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const int number = CALL(device_attribute, cuDeviceGetAttribute, wanted[i].value, wanted[i].attribute, device);
        if (number != NV_SUCCESS)
            return number;
    }
    info->shared_bytes_per_block = shared_bytes;
    /* CUDA does not number the PCI function: a GPU is function 0 of its slot. */
    snprintf(info->pci_address, sizeof info->pci_address, "%04x:%02x:%02x.0", (unsigned)pci[0] & 0xffffu,
             (unsigned)pci[1] & 0xffu, (unsigned)pci[2] & 0xffu);
    return NV_SUCCESS;
}

static int cuda_device_describe(int32_t index, ww_device_info *info)
{
    int device = 0;
    int version = 0;
    int32_t capability[2] = {0, 0};
    size_t total_bytes = 0;
    int number = CALL(device_get, cuDeviceGet, &device, index);
    if (number == NV_SUCCESS)
        number = CALL(device_name, cuDeviceGetName, info->name, (int)sizeof info->name, device);
    if (number == NV_SUCCESS)
        number = CALL(device_memory, cuDeviceTotalMem_v2, &total_bytes, device);
    if (number == NV_SUCCESS)
        number = CALL(driver_version, cuDriverGetVersion, &version);
    if (number == NV_SUCCESS)
        number = read_attributes(device, info, capability);
    if (number != NV_SUCCESS)
        return number;
    info->memory_total_bytes = (int64_t)total_bytes;
    snprintf(info->arch, sizeof info->arch, "sm_%d%d", capability[0], capability[1]);
    snprintf(info->driver_version, sizeof info->driver_version, "%d.%d", version / 1000, version % 1000 / 10);
    return NV_SUCCESS;
}

static int cuda_launch_limits(int32_t index, driver_launch_limits *out)
{
    int device = 0;
    int number = CALL(device_get, cuDeviceGet, &device, index);
    for (int axis = 0; number == NV_SUCCESS && axis < 3; axis++) {
        int grid = 0;
        int block = 0;
        number = CALL(device_attribute, cuDeviceGetAttribute, &grid, NV_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + axis, device);
        if (number == NV_SUCCESS)
            number = CALL(device_attribute, cuDeviceGetAttribute, &block, NV_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + axis, device);
        out->grid[axis] = grid;
        out->block[axis] = block;
        out->threads[axis] = INT64_MAX;
    }
    return number;
}

/* ---- contexts ------------------------------------------------------------------------------------------------------------ */

static int cuda_context_create(int32_t index, driver_context *out)
{
    int device = 0;
    void *context = NULL;
    int number = CALL(device_get, cuDeviceGet, &device, index);
    if (number == NV_SUCCESS)
        number = CALL(context_retain, cuDevicePrimaryCtxRetain, &context, device);
    if (number == NV_SUCCESS)
        *out = context;
    return number;
}

static int cuda_context_destroy(int32_t index, driver_context context)
{
    (void)context; /* the primary context is counted by device */
    int device = 0;
    const int number = CALL(device_get, cuDeviceGet, &device, index);
    return number == NV_SUCCESS ? CALL(context_release, cuDevicePrimaryCtxRelease_v2, device) : number;
}

static int cuda_context_swap(driver_context context, driver_context *previous)
{
    void *current = NULL;
    int number = CALL(context_get, cuCtxGetCurrent, &current);
    if (number == NV_SUCCESS && current != (void *)context)
        number = CALL(context_set, cuCtxSetCurrent, context);
    if (number == NV_SUCCESS)
        *previous = current;
    return number;
}

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

static int cuda_memory_info(size_t *free_bytes, size_t *total_bytes)
{
    return CALL(memory_info, cuMemGetInfo_v2, free_bytes, total_bytes);
}

static int cuda_memory_alloc(size_t bytes, void **out)
{
    return CALL(memory_alloc, cuMemAlloc_v2, out, bytes);
}

static int cuda_memory_free(void *address)
{
    return CALL(memory_free, cuMemFree_v2, address);
}

static int cuda_pinned_alloc(size_t bytes, void **out)
{
    return CALL(host_alloc, cuMemHostAlloc, out, bytes, NV_MEMHOSTALLOC_PORTABLE | NV_MEMHOSTALLOC_DEVICEMAP);
}

static int cuda_pinned_free(void *host)
{
    return CALL(host_free, cuMemFreeHost, host);
}

static int cuda_copy_in(driver_stream stream, void *to, const void *from_host, size_t bytes)
{
    return CALL(copy_in, cuMemcpyHtoDAsync_v2, to, from_host, bytes, stream);
}

static int cuda_copy_out(driver_stream stream, void *to_host, const void *from, size_t bytes)
{
    return CALL(copy_out, cuMemcpyDtoHAsync_v2, to_host, (void *)from, bytes, stream);
}

static int cuda_copy(driver_stream stream, void *to, const void *from, size_t bytes)
{
    return CALL(copy, cuMemcpyDtoDAsync_v2, to, (void *)from, bytes, stream);
}

static int cuda_fill32(driver_stream stream, void *to, uint32_t pattern, size_t words)
{
    return CALL(fill32, cuMemsetD32Async, to, pattern, words, stream);
}

/* ---- streams and events -------------------------------------------------------------------------------------------------- */

static int cuda_stream_create(driver_stream *out)
{
    return CALL(stream_create, cuStreamCreate, (void **)out, NV_STREAM_NON_BLOCKING);
}

static int cuda_stream_destroy(driver_stream stream)
{
    return CALL(stream_destroy, cuStreamDestroy_v2, stream);
}

static int cuda_stream_synchronize(driver_stream stream)
{
    return CALL(stream_synchronize, cuStreamSynchronize, stream);
}

static int cuda_event_create(bool timed, driver_event *out)
{
    return CALL(event_create, cuEventCreate, (void **)out, timed ? NV_EVENT_DEFAULT : NV_EVENT_DISABLE_TIMING);
}

static int cuda_event_destroy(driver_event event)
{
    return CALL(event_destroy, cuEventDestroy_v2, event);
}

static int cuda_event_record(driver_event event, driver_stream stream)
{
    return CALL(event_record, cuEventRecord, event, stream);
}

static int cuda_stream_wait(driver_stream stream, driver_event event)
{
    return CALL(stream_wait, cuStreamWaitEvent, stream, event, 0);
}

static int cuda_event_synchronize(driver_event event)
{
    return CALL(event_synchronize, cuEventSynchronize, event);
}

static int cuda_event_elapsed(driver_event from, driver_event to, float *milliseconds)
{
    return CALL(event_elapsed, cuEventElapsedTime, milliseconds, from, to);
}

/* ---- code ---------------------------------------------------------------------------------------------------------------- */

/* A driver that is too old says only that; the first lines of the PTX tell which version would be new enough. */
static void explain_old_driver(const char *ptx)
{
    int have = 0;
    (void)cuda.driver_version(&have);
    ptx_explain_old_driver(ptx, have, cuda_detail, sizeof cuda_detail);
}

static int cuda_module_load(const void *image, size_t bytes, driver_module *out)
{
    (void)bytes; /* CUDA finds the end by itself: PTX has its NUL, a cubin its headers */
    char log[sizeof cuda_detail] = "";
    const int options[] = {NV_JIT_ERROR_LOG_BUFFER, NV_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    uintptr_t values[] = {(uintptr_t)log, sizeof log - 1};
    const int number = CALL(module_load, cuModuleLoadDataEx, (void **)out, image, 2, options, values);
    if (number != NV_SUCCESS)
        text_copy(cuda_detail, sizeof cuda_detail, log);
    if (number == NV_ERROR_UNSUPPORTED_PTX_VERSION)
        explain_old_driver(image);
    return number;
}

static int cuda_source_compile(const driver_source *source, driver_compiled *out, char **log)
{
    char detail[sizeof cuda_detail];
    const int number = cuda_answer("nvrtcCompileProgram", nvrtc_compile_source(source, out, log, detail, sizeof detail));
    if (number != NV_SUCCESS)
        text_copy(cuda_detail, sizeof cuda_detail, detail);
    return number;
}

static int cuda_module_unload(driver_module module)
{
    return CALL(module_unload, cuModuleUnload, module);
}

/* Above 48 KiB a function must be allowed its dynamic shared memory explicitly: it gets all that its static part leaves. */
static int raise_shared_limit(void *function)
{
    int device = 0;
    int static_bytes = 0;
    int block_bytes = 0;
    int number = CALL(context_device, cuCtxGetDevice, &device);
    if (number == NV_SUCCESS)
        number = CALL(device_attribute, cuDeviceGetAttribute, &block_bytes,
                      NV_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device);
    if (number == NV_SUCCESS)
        number = CALL(function_get, cuFuncGetAttribute, &static_bytes, NV_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
    if (number == NV_SUCCESS)
        number = CALL(function_set, cuFuncSetAttribute, function, NV_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                      block_bytes - static_bytes);
    return number;
}

static int cuda_function_find(driver_module module, const char *name, driver_function *out)
{
    void *function = NULL;
    int number = CALL(module_function, cuModuleGetFunction, &function, module, name);
    if (number == NV_SUCCESS)
        number = raise_shared_limit(function);
    if (number == NV_SUCCESS)
        *out = function;
    return number;
}

/* One struct is one parameter at offset 0. This does not ask for a second parameter: the answer "no" is an API error, which
 * tools that watch for such errors report. */
static int64_t arguments_bytes(void *function)
{
    size_t offset = 0;
    size_t bytes = 0;
    if (cuda.parameter_info == NULL || cuda.parameter_info(function, 0, &offset, &bytes) != NV_SUCCESS)
        return -1;
    return (int64_t)bytes;
}

/* From sm_90 on, kernels have an instruction to wait for earlier kernels. In code for older chips launches_wait() does nothing,
 * on any chip. */
enum { CODE_THAT_WAITS = 90 };

static int cuda_function_limits(driver_function function, driver_function_limits *out)
{
    int threads = 0;
    int registers = 0;
    int static_bytes = 0;
    int dynamic_bytes = 0;
    int local_bytes = 0;
    int code = 0; /* 10 times the number of the chip that the code was compiled for */
    const struct {
        int attribute;
        int *value;
    } wanted[] = {
        {NV_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &threads},  {NV_FUNC_ATTRIBUTE_NUM_REGS, &registers},
        {NV_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &static_bytes}, {NV_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &dynamic_bytes},
        {NV_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &local_bytes},   {NV_FUNC_ATTRIBUTE_PTX_VERSION, &code},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const int number = CALL(function_get, cuFuncGetAttribute, wanted[i].value, wanted[i].attribute, function);
        if (number != NV_SUCCESS)
            return number;
    }
    *out = (driver_function_limits){.threads_per_block_max = threads,
                                    .registers = registers,
                                    .shared_static_bytes = static_bytes,
                                    .shared_dynamic_bytes_max = dynamic_bytes,
                                    .local_bytes = local_bytes,
                                    .arguments_bytes = arguments_bytes(function),
                                    .early = code >= CODE_THAT_WAITS && cuda.launch_config != NULL};
    return NV_SUCCESS;
}

/* Asks for parameters until there is none, which the API reports as a failure. Not used for kernels that are known to take
 * one. */
static int cuda_function_arguments(driver_function function, int64_t *bytes)
{
    size_t offset = 0;
    size_t size = 0;
    *bytes = cuda.parameter_info != NULL ? 0 : -1;
    for (size_t i = 0; cuda.parameter_info != NULL && cuda.parameter_info(function, i, &offset, &size) == NV_SUCCESS; i++)
        *bytes = (int64_t)(offset + size);
    return NV_SUCCESS;
}

static int launch_packed(driver_function function, driver_stream stream, const driver_launch *launch)
{
    size_t bytes = launch->arguments_bytes;
    void *extra[] = {(void *)(uintptr_t)NV_LAUNCH_PARAM_BUFFER_POINTER, (void *)(uintptr_t)launch->arguments,
                     (void *)(uintptr_t)NV_LAUNCH_PARAM_BUFFER_SIZE, &bytes, (void *)(uintptr_t)NV_LAUNCH_PARAM_END};
    return CALL(launch, cuLaunchKernel, function, launch->grid_x, launch->grid_y, launch->grid_z, launch->block_x,
                launch->block_y, launch->block_z, launch->shared_bytes, stream, NULL, extra);
}

static int cuda_launch(driver_function function, driver_stream stream, const driver_launch *launch)
{
    if (launch->packed)
        return launch_packed(function, stream, launch);
    void *arguments[] = {(void *)launch->arguments}; /* read, not written; CUDA knows the size from the code */
    if (launch->early) {
        nv_launch_attribute early = {.id = NV_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, .value.allowed = 1};
        const nv_launch_config config = {.grid_x = launch->grid_x,
                                         .grid_y = launch->grid_y,
                                         .grid_z = launch->grid_z,
                                         .block_x = launch->block_x,
                                         .block_y = launch->block_y,
                                         .block_z = launch->block_z,
                                         .shared_bytes = launch->shared_bytes,
                                         .stream = stream,
                                         .attributes = &early,
                                         .attribute_count = 1};
        return CALL(launch_config, cuLaunchKernelEx, &config, function, arguments, NULL);
    }
    return CALL(launch, cuLaunchKernel, function, launch->grid_x, launch->grid_y, launch->grid_z, launch->block_x,
                launch->block_y, launch->block_z, launch->shared_bytes, stream, arguments, NULL);
}

/* ---- recorded work ---------------------------------------------------------------------------------------------------------
 */

/* Relaxed, so that memory can be allocated during the capture. */
static int cuda_capture_begin(driver_stream stream)
{
    if (cuda.capture_begin == NULL || cuda.capture_end == NULL || cuda.graph_instantiate == NULL ||
        cuda.graph_destroy == NULL || cuda.graph_launch == NULL || cuda.made_destroy == NULL)
        return cuda_answer("cuStreamBeginCapture", NV_ERROR_NOT_SUPPORTED);
    return CALL(capture_begin, cuStreamBeginCapture_v2, stream, NV_STREAM_CAPTURE_MODE_RELAXED);
}

static int cuda_capture_end(driver_stream stream, driver_graph *out)
{
    void *graph = NULL, *made = NULL;
    int number = CALL(capture_end, cuStreamEndCapture, stream, &graph);
    if (number == NV_SUCCESS)
        number = CALL(graph_instantiate, cuGraphInstantiateWithFlags, &made, graph, 0);
    if (graph != NULL)
        (void)cuda.graph_destroy(graph);
    if (number == NV_SUCCESS)
        *out = made;
    return number;
}

static int cuda_graph_launch(driver_graph graph, driver_stream stream)
{
    return CALL(graph_launch, cuGraphLaunch, graph, stream);
}

static int cuda_graph_destroy(driver_graph graph)
{
    return CALL(made_destroy, cuGraphExecDestroy, graph);
}

const gpu_driver cuda_driver = {
    .code = DRIVER_CODE_NVIDIA,
    .code_in_words = "PTX, a cubin or a fatbin",
    .backend = "cuda",
    .vendor = "NVIDIA",
    .api = "CUDA",
    .library = "libcuda.so.1",
    .loads_code = true,
    .kernels_run_unwaited = true,
    .started_in = &cuda_started_in,
    .load = cuda_load,
    .device_count = cuda_device_count,
    .device_describe = cuda_device_describe,
    .launch_limits = cuda_launch_limits,
    .context_create = cuda_context_create,
    .context_destroy = cuda_context_destroy,
    .context_swap = cuda_context_swap,
    .memory_info = cuda_memory_info,
    .memory_alloc = cuda_memory_alloc,
    .memory_free = cuda_memory_free,
    .pinned_alloc = cuda_pinned_alloc,
    .pinned_free = cuda_pinned_free,
    .copy_in = cuda_copy_in,
    .copy_out = cuda_copy_out,
    .copy = cuda_copy,
    .fill32 = cuda_fill32,
    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
    .stream_synchronize = cuda_stream_synchronize,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .event_record = cuda_event_record,
    .stream_wait = cuda_stream_wait,
    .event_synchronize = cuda_event_synchronize,
    .event_elapsed = cuda_event_elapsed,
    .capture_begin = cuda_capture_begin,
    .capture_end = cuda_capture_end,
    .graph_launch = cuda_graph_launch,
    .graph_destroy = cuda_graph_destroy,
    .module_load = cuda_module_load,
    .module_unload = cuda_module_unload,
    .source_compile = cuda_source_compile,
    .function_find = cuda_function_find,
    .function_limits = cuda_function_limits,
    .function_arguments = cuda_function_arguments,
    .launch = cuda_launch,
    .error_name = cuda_error_name,
    .error_class = cuda_error_class,
    .failure = cuda_failure,
};
