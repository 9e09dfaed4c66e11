/* A stand-in for libamdhip64: HIP's names over the emulated driver (testing/emulated/emulated.h), which manages memory
 * and streams and runs the kernels. This file has what is specific to HIP: a current device per thread, checked handles, and
 * code objects parsed as a loader does. standin.h describes the settings.
 *
 * Compiled once per version: STANDIN_ROCM is 5 (only hipGetDeviceProperties, code objects up to version 5), 6, or 7.
 */
#include <stdio.h>
#include <string.h>

#include "emulator/emulator.h"
#include "standin/hip_parts.h"

#define EXPORT STANDIN_EXPORT

/* Every function is declared as the library thinks of it, so that a difference does not compile. */
#define FUNCTION(name, symbol, parameters) EXPORT int symbol parameters;
HIP_FUNCTIONS(FUNCTION)
HIP_PROPERTIES_FUNCTIONS(FUNCTION)
HIP_OPTIONAL_FUNCTIONS(FUNCTION)
#undef FUNCTION
EXPORT const char *hipGetErrorName(int number);
EXPORT int hipGetLastError(void);

/* ---- devices ------------------------------------------------------------------------------------------------------------- */

int hipInit(unsigned int flags)
{
    BEGIN("hipInit");
    return standin_result(flags == 0 ? standin_set.init : AMD_ERROR_INVALID_VALUE);
}

int hipDriverGetVersion(int *version)
{
    BEGIN("hipDriverGetVersion");
    *version = standin_set.version;
    return AMD_SUCCESS;
}

int hipRuntimeGetVersion(int *version)
{
    BEGIN("hipRuntimeGetVersion");
    *version = standin_set.version;
    return AMD_SUCCESS;
}

int hipGetLastError(void)
{
    return standin_last_error();
}

const char *hipGetErrorName(int number)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {{0, "hipSuccess"},
                 {1, "hipErrorInvalidValue"},
                 {2, "hipErrorOutOfMemory"},
                 {100, "hipErrorNoDevice"},
                 {101, "hipErrorInvalidDevice"},
                 {200, "hipErrorInvalidImage"},
                 {209, "hipErrorNoBinaryForGpu"},
                 {218, "hipErrorInvalidKernelFile"},
                 {303, "hipErrorSharedObjectInitFailed"},
                 {400, "hipErrorInvalidHandle"},
                 {500, "hipErrorNotFound"},
                 {600, "hipErrorNotReady"},
                 {700, "hipErrorIllegalAddress"},
                 {719, "hipErrorLaunchFailure"},
                 {999, "hipErrorUnknown"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].number == number)
            return names[i].name;
    return "hipErrorUnknown";
}

int hipGetDeviceCount(int *count)
{
    BEGIN("hipGetDeviceCount");
    *count = standin_set.count;
    return standin_result(standin_set.init);
}

int hipDeviceGetName(char *name, int capacity, int device)
{
    BEGIN("hipDeviceGetName");
    if (!standin_is_device(device))
        return standin_result(AMD_ERROR_INVALID_DEVICE);
    snprintf(name, (size_t)capacity, "stand-in for an AMD %s", standin_set.chips[device]->name);
    return AMD_SUCCESS;
}

int hipDeviceTotalMem(size_t *bytes, int device)
{
    BEGIN("hipDeviceTotalMem");
    *bytes = standin_set.memory_bytes;
    return standin_result(standin_is_device(device) ? AMD_SUCCESS : AMD_ERROR_INVALID_DEVICE);
}

int hipDeviceGetAttribute(int *value, int attribute, int device)
{
    BEGIN("hipDeviceGetAttribute");
    if (!standin_is_device(device))
        return standin_result(AMD_ERROR_INVALID_DEVICE);
    switch (attribute) {
    case AMD_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = EMULATOR_MAX_THREADS;
        return AMD_SUCCESS;
    case AMD_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
        *value = INT32_MAX;
        return AMD_SUCCESS;
    case AMD_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + 1:
    case AMD_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + 2:
        *value = UINT16_MAX;
        return AMD_SUCCESS;
    case AMD_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case AMD_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + 1:
    case AMD_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + 2:
        *value = EMULATOR_MAX_THREADS;
        return AMD_SUCCESS;
    case AMD_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = standin_set.units;
        return AMD_SUCCESS;
    case AMD_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
        *value = 0;
        return AMD_SUCCESS;
    case AMD_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        *value = 0xc1 + device;
        return AMD_SUCCESS;
    case AMD_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
        *value = 0;
        return AMD_SUCCESS;
    case AMD_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
        *value = EMULATOR_SHARED_BYTES;
        return AMD_SUCCESS;
    case AMD_DEVICE_ATTRIBUTE_WARP_SIZE:
        *value = standin_set.wave != 0 ? standin_set.wave : standin_set.chips[device]->wave_size;
        return AMD_SUCCESS;
    default:
        return standin_result(AMD_ERROR_INVALID_VALUE);
    }
}

int hipDeviceGetPCIBusId(char *address, int capacity, int device)
{
    char bus[8];
    BEGIN("hipDeviceGetPCIBusId");
    if (!standin_is_device(device) || capacity < 13)
        return standin_result(AMD_ERROR_INVALID_DEVICE);
    const char *said = standin_set.pci[0] != '\0' ? standin_set.pci : "0000:%x:00.0";
    const char *place = strstr(said, "%x");
    snprintf(bus, sizeof bus, "%02x", 0xc1 + device);
    snprintf(address, (size_t)capacity, "%.*s%s%s", place != NULL ? (int)(place - said) : (int)strlen(said), said,
             place != NULL ? bus : "", place != NULL ? place + 2 : "");
    return AMD_SUCCESS;
}

/* Writes all of the struct, as AMD's runtime does, with the features after the chip's name. */
static int write_properties(void *properties, size_t bytes, size_t arch, int device)
{
    if (!standin_is_device(device))
        return standin_result(AMD_ERROR_INVALID_DEVICE);
    memset(properties, 0x5a, bytes);
    snprintf(properties, 256, "stand-in for an AMD %s", standin_set.chips[device]->name);
    const bool features = standin_set.chips[device]->wave_size == 64;
    snprintf((char *)properties + arch, AMD_PROPERTIES_ARCH_BYTES, "%s%s",
             standin_set.arch[0] != '\0' ? standin_set.arch : standin_set.chips[device]->name,
             features ? ":sramecc+:xnack-" : "");
    return AMD_SUCCESS;
}

int hipGetDeviceProperties(void *properties, int device)
{
    BEGIN("hipGetDeviceProperties");
    return write_properties(properties, AMD_PROPERTIES_5_BYTES, AMD_PROPERTIES_5_ARCH, device);
}

#if STANDIN_ROCM > 5
int hipGetDevicePropertiesR0600(void *properties, int device)
{
    BEGIN("hipGetDevicePropertiesR0600");
    return write_properties(properties, AMD_PROPERTIES_6_BYTES, AMD_PROPERTIES_6_ARCH, device);
}
#endif

int hipGetDevice(int *device)
{
    BEGIN("hipGetDevice");
    *device = standin_current;
    return AMD_SUCCESS;
}

int hipSetDevice(int device)
{
    BEGIN("hipSetDevice");
    if (!standin_is_device(device))
        return standin_result(AMD_ERROR_INVALID_DEVICE);
    standin_current = device;
    return AMD_SUCCESS;
}

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

int hipMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    BEGIN("hipMemGetInfo");
    ENTER(standin_current);
    return standin_result(emulated_memory_info(free_bytes, total_bytes));
}

int hipMalloc(void **address, size_t bytes)
{
    BEGIN("hipMalloc");
    ENTER(standin_current);
    return standin_result(bytes == 0 ? AMD_ERROR_INVALID_VALUE : emulated_memory_alloc(bytes, address));
}

int hipFree(void *address)
{
    const int number = address != NULL ? emulated_memory_free(address) : AMD_SUCCESS;
    if (number != AMD_SUCCESS)
        standin_misused("hipFree was given memory that is not alive");
    return standin_give("hipFree", number);
}

int hipHostMalloc(void **host, size_t bytes, unsigned int flags)
{
    BEGIN("hipHostMalloc");
    ENTER(standin_current);
    if ((flags & AMD_HOST_MALLOC_COHERENT) == 0)
        standin_misused("hipHostMalloc was asked for memory that need not be coherent: a host that polls it may wait in vain");
    if (flags != (AMD_HOST_MALLOC_PORTABLE | AMD_HOST_MALLOC_COHERENT))
        return standin_result(AMD_ERROR_INVALID_VALUE);
    return standin_result(emulated_pinned_alloc(bytes, host));
}

int hipHostFree(void *host)
{
    const int number = emulated_pinned_free(host);
    if (number != AMD_SUCCESS)
        standin_misused("hipHostFree was given memory that is not alive");
    return standin_give("hipHostFree", number);
}

bool standin_on_device(const void *address, size_t bytes)
{
    return emulated_lies_inside(standin_current, address, bytes);
}

/* ---- streams ------------------------------------------------------------------------------------------------------------- */

int hipMemcpyHtoDAsync(void *to, void *from, size_t bytes, void *stream)
{
    BEGIN("hipMemcpyHtoDAsync");
    ON_STREAM("hipMemcpyHtoDAsync", stream);
    return standin_result(emulated_copy_in(stream, to, from, bytes));
}

int hipMemcpyDtoHAsync(void *to, void *from, size_t bytes, void *stream)
{
    BEGIN("hipMemcpyDtoHAsync");
    ON_STREAM("hipMemcpyDtoHAsync", stream);
    return standin_result(emulated_copy_out(stream, to, from, bytes));
}

int hipMemcpyDtoDAsync(void *to, void *from, size_t bytes, void *stream)
{
    BEGIN("hipMemcpyDtoDAsync");
    ON_STREAM("hipMemcpyDtoDAsync", stream);
    return standin_result(emulated_copy(stream, to, from, bytes));
}

int hipMemsetD32Async(void *to, int pattern, size_t words, void *stream)
{
    BEGIN("hipMemsetD32Async");
    ON_STREAM("hipMemsetD32Async", stream);
    return standin_result(emulated_fill32(stream, to, (uint32_t)pattern, words));
}

int standin_queue(void *stream, void (*call)(const void *arguments), const void *arguments, size_t bytes)
{
    ON_STREAM("rocBLAS", stream);
    return standin_result(emulated_call(stream, call, arguments, bytes));
}

int hipStreamCreateWithFlags(void **stream, unsigned int flags)
{
    BEGIN("hipStreamCreateWithFlags");
    ENTER(standin_current);
    const int number =
        flags == AMD_STREAM_NON_BLOCKING ? emulated_stream_create((driver_stream *)stream) : AMD_ERROR_INVALID_VALUE;
    if (number == AMD_SUCCESS)
        standin_add_handle(HANDLE_STREAM, standin_current, *stream);
    return standin_result(number);
}

int hipStreamDestroy(void *stream)
{
    const int device = standin_remove_handle("hipStreamDestroy", HANDLE_STREAM, stream);
    const int number = device < 0 ? AMD_ERROR_INVALID_HANDLE : emulated_stream_destroy(stream);
    return standin_give("hipStreamDestroy", number);
}

/* HIP cannot report what a kernel did wrong, so it is printed. */
static int waited(int number)
{
    if (number == AMD_ERROR_LAUNCH_FAILURE || number == AMD_ERROR_ILLEGAL_ADDRESS) {
        driver_failure failure;
        emulated_driver.failure(&failure);
        fprintf(stderr, "stand-in: %s\n", failure.detail);
    }
    return standin_result(number);
}

int hipStreamSynchronize(void *stream)
{
    BEGIN("hipStreamSynchronize");
    ON_STREAM("hipStreamSynchronize", stream);
    return waited(emulated_stream_synchronize(stream));
}

int hipStreamWaitEvent(void *stream, void *event, unsigned int flags)
{
    BEGIN("hipStreamWaitEvent");
    ALIVE("hipStreamWaitEvent", HANDLE_EVENT, event);
    ON_STREAM("hipStreamWaitEvent", stream);
    return waited(flags == 0 ? emulated_stream_wait(stream, event) : AMD_ERROR_INVALID_VALUE);
}

/* ---- events -------------------------------------------------------------------------------------------------------------- */

int hipEventCreateWithFlags(void **event, unsigned int flags)
{
    BEGIN("hipEventCreateWithFlags");
    ENTER(standin_current);
    if (flags != AMD_EVENT_DEFAULT && flags != AMD_EVENT_DISABLE_TIMING)
        return standin_result(AMD_ERROR_INVALID_VALUE);
    const int number = emulated_event_create(flags == AMD_EVENT_DEFAULT, (driver_event *)event);
    if (number == AMD_SUCCESS)
        standin_add_handle(HANDLE_EVENT, standin_current, *event);
    return standin_result(number);
}

int hipEventDestroy(void *event)
{
    const int device = standin_remove_handle("hipEventDestroy", HANDLE_EVENT, event);
    const int number = device < 0 ? AMD_ERROR_INVALID_HANDLE : emulated_event_destroy(event);
    return standin_give("hipEventDestroy", number);
}

int hipEventRecord(void *event, void *stream)
{
    BEGIN("hipEventRecord");
    ALIVE("hipEventRecord", HANDLE_EVENT, event);
    ON_STREAM("hipEventRecord", stream);
    return waited(emulated_event_record(event, stream));
}

int hipEventSynchronize(void *event)
{
    BEGIN("hipEventSynchronize");
    ALIVE("hipEventSynchronize", HANDLE_EVENT, event);
    return waited(emulated_event_synchronize(event));
}

int hipEventElapsedTime(float *milliseconds, void *from, void *to)
{
    BEGIN("hipEventElapsedTime");
    ALIVE("hipEventElapsedTime", HANDLE_EVENT, from);
    ALIVE("hipEventElapsedTime", HANDLE_EVENT, to);
    return standin_result(emulated_event_elapsed(from, to, milliseconds));
}

/* ---- recorded work ------------------------------------------------------------------------------------------------------- */

int hipStreamBeginCapture(void *stream, int mode)
{
    BEGIN("hipStreamBeginCapture");
    ON_STREAM("hipStreamBeginCapture", stream);
    return standin_result(mode == AMD_STREAM_CAPTURE_MODE_RELAXED ? emulated_capture_begin(stream) : AMD_ERROR_INVALID_VALUE);
}

/* The stream works as before, also where this is made to fail. */
int hipStreamEndCapture(void *stream, void **graph)
{
    ON_STREAM("hipStreamEndCapture", stream);
    int number = emulated_capture_end(stream, (driver_graph *)graph);
    const int judged = standin_judge("hipStreamEndCapture");
    if (judged != 0 && number == AMD_SUCCESS) {
        (void)emulated_graph_destroy((driver_graph)*graph);
        *graph = NULL;
        return judged;
    }
    if (number == AMD_SUCCESS)
        standin_add_handle(HANDLE_GRAPH, standin_current, *graph);
    return standin_result(judged != 0 ? judged : number);
}

/* The executable graph is the graph itself, with a second handle; both must be destroyed. */
/* NOLINTNEXTLINE(readability-non-const-parameter): as HIP has it */
int hipGraphInstantiate(void **made, void *graph, void **error_node, char *log, size_t log_bytes)
{
    BEGIN("hipGraphInstantiate");
    ALIVE("hipGraphInstantiate", HANDLE_GRAPH, graph);
    (void)error_node;
    (void)log;
    (void)log_bytes;
    standin_add_handle(HANDLE_GRAPH_MADE, standin_current, graph);
    *made = graph;
    return AMD_SUCCESS;
}

static int end_graph(const char *call, handle_kind kind, handle_kind other, void *graph)
{
    const int device = standin_remove_handle(call, kind, graph);
    if (device < 0)
        return AMD_ERROR_INVALID_HANDLE;
    return standin_find_handle(NULL, other, graph) < 0 ? emulated_graph_destroy(graph) : AMD_SUCCESS;
}

int hipGraphDestroy(void *graph)
{
    return standin_give("hipGraphDestroy", end_graph("hipGraphDestroy", HANDLE_GRAPH, HANDLE_GRAPH_MADE, graph));
}

int hipGraphExecDestroy(void *made)
{
    return standin_give("hipGraphExecDestroy", end_graph("hipGraphExecDestroy", HANDLE_GRAPH_MADE, HANDLE_GRAPH, made));
}

int hipGraphLaunch(void *made, void *stream)
{
    BEGIN("hipGraphLaunch");
    ALIVE("hipGraphLaunch", HANDLE_GRAPH_MADE, made);
    ON_STREAM("hipGraphLaunch", stream);
    return standin_result(emulated_graph_launch(made, stream));
}
