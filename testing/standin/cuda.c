/* A stand-in for libcuda.so.1: the functions that src/gpu/driver/cuda.c calls, over the host's memory, so that the real CUDA
 * host code runs on a machine without an NVIDIA GPU. It moves bytes and keeps count, and checks what it is given; it runs no
 * kernels.
 *
 * Test equipment, never installed. What it claims to be is set by the environment:
 *   STANDIN_CUDA_INIT        what cuInit answers                     STANDIN_CUDA_DEVICES     how many devices (1)
 *   STANDIN_CUDA_CAPABILITY  90 is sm_90                             STANDIN_CUDA_VERSION     of the driver (13000 is 13.0)
 *   STANDIN_CUDA_PTX         newest PTX it takes, 74 is 7.4          STANDIN_CUDA_LOG         a compiler's complaint about PTX
 *   STANDIN_CUDA_CUBIN       what it answers to a cubin (NV_ERROR_NO_BINARY_FOR_GPU: its driver is too old); 0: takes it
 *   STANDIN_CUDA_MEMORY      of a device, in bytes (1 GiB); half is free
 *   STANDIN_CUDA_LAST_BYTES  what allocations may take of that
 * standin_fail() makes calls fail (cuda_parts.h); recorded work is in cuda_graphs.c. Memory is zeroed, so that what kernels
 * would have computed is the same each time.
 */
#include <elf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "standin/cuda_parts.h"

static atomic_long alive;
static atomic_size_t taken_bytes;
static char contexts[64];
static _Thread_local void *current;

static long setting(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtol(text, NULL, 10) : otherwise;
}

int standin_one_more(void **handle, size_t bytes)
{
    if (current == NULL)
        return INVALID_CONTEXT;
    *handle = calloc(1, bytes);
    alive += *handle != NULL;
    return *handle != NULL ? NV_SUCCESS : NV_ERROR_OUT_OF_MEMORY;
}

/* If a call that makes a context current is made to fail, the handle is freed anyway. */
int standin_one_less(void *handle)
{
    if (current == NULL && standin_victim() == NULL)
        return INVALID_CONTEXT;
    free(handle);
    alive--;
    return NV_SUCCESS;
}

int standin_here(void)
{
    return current != NULL ? NV_SUCCESS : INVALID_CONTEXT;
}

long standin_alive(void)
{
    return alive;
}

/* ---- faults -------------------------------------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the static variables here */
static const char *failing, *victim;
static long countdown;
static int failing_number, lost;

void standin_fail(const char *call, long n, int number)
{
    pthread_mutex_lock(&lock);
    failing = call;
    countdown = n;
    failing_number = number;
    lost = NV_SUCCESS;
    victim = NULL;
    pthread_mutex_unlock(&lock);
}

const char *standin_victim(void)
{
    return victim;
}

int standin_judge(const char *call)
{
    pthread_mutex_lock(&lock);
    /* Queries about devices need no context, and are answered even after a loss. */
    int number = strncmp(call, "cuDeviceGet", strlen("cuDeviceGet")) == 0 ? NV_SUCCESS : lost;
    if (number == NV_SUCCESS && countdown > 0 && (failing == NULL || strcmp(failing, call) == 0) && --countdown == 0) {
        number = failing_number;
        victim = call;
        lost = number == NV_ERROR_LAUNCH_FAILED || number == NV_ERROR_ILLEGAL_ADDRESS ? number : NV_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return number;
}

int standin_give(const char *call, int number)
{
    const int judged = standin_judge(call);
    return judged != NV_SUCCESS ? judged : number;
}

/* ---- devices and contexts ------------------------------------------------------------------------------------------------ */

int cuInit(unsigned int flags)
{
    BEGIN(cuInit);
    return flags == 0 ? (int)setting("STANDIN_CUDA_INIT", NV_SUCCESS) : INVALID_VALUE;
}

int cuDriverGetVersion(int *version)
{
    BEGIN(cuDriverGetVersion);
    *version = (int)setting("STANDIN_CUDA_VERSION", 13000);
    return NV_SUCCESS;
}

int cuGetErrorName(int number, const char **name)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {{2, "CUDA_ERROR_OUT_OF_MEMORY"},
                 {100, "CUDA_ERROR_NO_DEVICE"},
                 {101, "CUDA_ERROR_INVALID_DEVICE"},
                 {218, "CUDA_ERROR_INVALID_PTX"},
                 {201, "CUDA_ERROR_INVALID_CONTEXT"},
                 {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
                 {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
                 {719, "CUDA_ERROR_LAUNCH_FAILED"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].number == number) {
            *name = names[i].name;
            return NV_SUCCESS;
        }
    return INVALID_VALUE;
}

int cuDeviceGetCount(int *count)
{
    BEGIN(cuDeviceGetCount);
    *count = (int)setting("STANDIN_CUDA_DEVICES", 1);
    return NV_SUCCESS;
}

int cuDeviceGet(int *device, int ordinal)
{
    BEGIN(cuDeviceGet);
    *device = ordinal;
    return ordinal >= 0 && ordinal < setting("STANDIN_CUDA_DEVICES", 1) ? NV_SUCCESS : INVALID_DEVICE;
}

int cuDeviceGetName(char *name, int capacity, int device)
{
    BEGIN(cuDeviceGetName);
    snprintf(name, (size_t)capacity, "Stand-in GPU %d", device);
    return NV_SUCCESS;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    BEGIN(cuDeviceTotalMem_v2);
    (void)device;
    *bytes = (size_t)setting("STANDIN_CUDA_MEMORY", 1L << 30);
    return NV_SUCCESS;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    BEGIN(cuDeviceGetAttribute);
    const int capability = (int)setting("STANDIN_CUDA_CAPABILITY", 90);
    switch (attribute) {
    case NV_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = 1024;
        return NV_SUCCESS;
    case NV_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
        *value = INT32_MAX;
        return NV_SUCCESS;
    case NV_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + 1:
    case NV_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + 2:
        *value = UINT16_MAX;
        return NV_SUCCESS;
    case NV_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case NV_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + 1:
        *value = 1024;
        return NV_SUCCESS;
    case NV_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + 2:
        *value = 64;
        return NV_SUCCESS;
    case NV_DEVICE_ATTRIBUTE_WARP_SIZE:
        *value = 32;
        return NV_SUCCESS;
    case NV_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = 132;
        return NV_SUCCESS;
    case NV_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
        *value = 0;
        return NV_SUCCESS;
    case NV_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        *value = 0xc1 + device;
        return NV_SUCCESS;
    case NV_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
        *value = 0;
        return NV_SUCCESS;
    case NV_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = capability / 10;
        return NV_SUCCESS;
    case NV_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = capability % 10;
        return NV_SUCCESS;
    case NV_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = SHARED_BYTES;
        return NV_SUCCESS;
    default:
        return INVALID_VALUE;
    }
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    BEGIN(cuDevicePrimaryCtxRetain);
    *context = &contexts[device];
    alive++;
    return NV_SUCCESS;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    alive--;
    return standin_give("cuDevicePrimaryCtxRelease_v2", NV_SUCCESS);
}

int cuCtxGetCurrent(void **context)
{
    BEGIN(cuCtxGetCurrent);
    *context = current;
    return NV_SUCCESS;
}

int cuCtxSetCurrent(void *context)
{
    BEGIN(cuCtxSetCurrent);
    current = context;
    return NV_SUCCESS;
}

int cuCtxGetDevice(int *device)
{
    BEGIN(cuCtxGetDevice);
    *device = current != NULL ? (int)((char *)current - contexts) : -1;
    return standin_here();
}

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    BEGIN(cuMemGetInfo_v2);
    *total_bytes = (size_t)setting("STANDIN_CUDA_MEMORY", 1L << 30);
    *free_bytes = *total_bytes / 2;
    return standin_here();
}

int cuMemAlloc_v2(nv_address *address, size_t bytes)
{
    BEGIN(cuMemAlloc_v2);
    void *memory = NULL;
    if (bytes == 0)
        return INVALID_VALUE;
    if (taken_bytes + bytes > (size_t)setting("STANDIN_CUDA_LAST_BYTES", 1L << 29))
        return NV_ERROR_OUT_OF_MEMORY;
    if (posix_memalign(&memory, 512, sizeof bytes + 512 + bytes) != 0)
        return NV_ERROR_OUT_OF_MEMORY;
    memset(memory, 0, sizeof bytes + 512 + bytes);
    memcpy(memory, &bytes, sizeof bytes);
    taken_bytes += bytes;
    alive++;
    *address = (char *)memory + 512;
    return standin_here();
}

int cuMemFree_v2(nv_address address)
{
    size_t bytes = 0;
    void *memory = (char *)address - 512;
    memcpy(&bytes, memory, sizeof bytes);
    taken_bytes -= bytes;
    return standin_give("cuMemFree_v2", standin_one_less(memory));
}

int cuMemHostAlloc(void **host, size_t bytes, unsigned int flags)
{
    BEGIN(cuMemHostAlloc);
    return flags == (NV_MEMHOSTALLOC_PORTABLE | NV_MEMHOSTALLOC_DEVICEMAP) ? standin_one_more(host, bytes) : INVALID_VALUE;
}

int cuMemFreeHost(void *host)
{
    return standin_give("cuMemFreeHost", standin_one_less(host));
}

int cuMemcpyHtoDAsync_v2(nv_address to, const void *from, size_t bytes, void *stream)
{
    BEGIN(cuMemcpyHtoDAsync_v2);
    const stream_work work = {.kind = WORK_COPY, .to = to, .from = from, .bytes = bytes};
    return standin_work(stream, &work);
}

int cuMemcpyDtoHAsync_v2(void *to, nv_address from, size_t bytes, void *stream)
{
    BEGIN(cuMemcpyDtoHAsync_v2);
    const stream_work work = {.kind = WORK_COPY, .to = to, .from = from, .bytes = bytes};
    return standin_work(stream, &work);
}

int cuMemcpyDtoDAsync_v2(nv_address to, nv_address from, size_t bytes, void *stream)
{
    BEGIN(cuMemcpyDtoDAsync_v2);
    const stream_work work = {.kind = WORK_COPY, .to = to, .from = from, .bytes = bytes};
    return standin_work(stream, &work);
}

int cuMemsetD32Async(nv_address to, unsigned int pattern, size_t words, void *stream)
{
    BEGIN(cuMemsetD32Async);
    const stream_work work = {.kind = WORK_FILL, .to = to, .bytes = words * sizeof pattern, .pattern = pattern};
    return standin_work(stream, &work);
}

/* ---- streams and events -------------------------------------------------------------------------------------------------- */

int cuStreamCreate(void **stream, unsigned int flags)
{
    BEGIN(cuStreamCreate);
    return flags == NV_STREAM_NON_BLOCKING ? standin_one_more(stream, standin_stream_bytes()) : INVALID_VALUE;
}

int cuStreamDestroy_v2(void *stream)
{
    return standin_give("cuStreamDestroy_v2", standin_one_less(stream));
}

int cuStreamSynchronize(void *stream)
{
    BEGIN(cuStreamSynchronize);
    return standin_wait(stream);
}

int cuStreamWaitEvent(void *stream, void *event, unsigned int flags)
{
    BEGIN(cuStreamWaitEvent);
    return event != NULL && flags == 0 ? standin_wait(stream) : INVALID_VALUE;
}

int cuEventCreate(void **event, unsigned int flags)
{
    BEGIN(cuEventCreate);
    return flags == NV_EVENT_DEFAULT || flags == NV_EVENT_DISABLE_TIMING ? standin_one_more(event, 1) : INVALID_VALUE;
}

int cuEventDestroy_v2(void *event)
{
    return standin_give("cuEventDestroy_v2", standin_one_less(event));
}

int cuEventRecord(void *event, void *stream)
{
    BEGIN(cuEventRecord);
    return event != NULL ? standin_wait(stream) : INVALID_VALUE;
}

int cuEventSynchronize(void *event)
{
    BEGIN(cuEventSynchronize);
    return event != NULL ? standin_here() : INVALID_VALUE;
}

int cuEventElapsedTime(float *milliseconds, void *from, void *to)
{
    BEGIN(cuEventElapsedTime);
    *milliseconds = 0.5f;
    return from != NULL && to != NULL ? standin_here() : INVALID_VALUE;
}

/* ---- code ---------------------------------------------------------------------------------------------------------------- */

static int new_module(void **module, const void *image)
{
    const int number = standin_one_more(module, sizeof image);
    if (number == NV_SUCCESS)
        memcpy(*module, &image, sizeof image);
    return number;
}

static bool is_cubin(const void *image)
{
    return memcmp(image, ELFMAG, SELFMAG) == 0;
}

int cuModuleLoadDataEx(void **module, const void *image, unsigned int count, const int *options, uintptr_t *values)
{
    BEGIN(cuModuleLoadDataEx);
    int major = 0;
    int minor = 0;
    if (is_cubin(image)) {
        const long answer = setting("STANDIN_CUDA_CUBIN", NV_ERROR_NO_BINARY_FOR_GPU);
        return answer == NV_SUCCESS ? new_module(module, image) : (int)answer;
    }
    const char *version = strstr(image, ".version");
    if (version == NULL || sscanf(version, ".version %d.%d", &major, &minor) != 2)
        return NV_ERROR_INVALID_IMAGE;
    if (10 * major + minor > setting("STANDIN_CUDA_PTX", 90))
        return NV_ERROR_UNSUPPORTED_PTX_VERSION;
    const char *complaint = getenv("STANDIN_CUDA_LOG");
    if (complaint != NULL) {
        if (count == 2 && options[0] == NV_JIT_ERROR_LOG_BUFFER && options[1] == NV_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
            snprintf((char *)values[0], values[1], // NOLINT(performance-no-int-to-ptr): CUDA's way
                     "%s", complaint);
        return NV_ERROR_INVALID_PTX;
    }
    return new_module(module, image);
}

int cuModuleUnload(void *module)
{
    return standin_give("cuModuleUnload", standin_one_less(module));
}

/* The name of the section that has the instructions of a kernel. */
static const char *find_section(const char *image, const char *name)
{
    Elf64_Ehdr header;
    memcpy(&header, image, sizeof header);
    const char *sections = image + header.e_shoff;
    Elf64_Shdr names;
    memcpy(&names, sections + (size_t)header.e_shstrndx * sizeof names, sizeof names);
    for (int i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, sections + (size_t)i * sizeof section, sizeof section);
        const char *found = image + names.sh_offset + section.sh_name;
        if (strcmp(found, name) == 0)
            return found;
    }
    return NULL;
}

/* A function is an entry of the PTX, or the name of a section of a cubin. */
int cuModuleGetFunction(void **function, void *module, const char *name)
{
    BEGIN(cuModuleGetFunction);
    char entry[256];
    const char *image = NULL;
    memcpy(&image, module, sizeof image);
    snprintf(entry, sizeof entry, is_cubin(image) ? ".text.%s" : ".entry %s(", name);
    *function = (char *)(is_cubin(image) ? find_section(image, entry) : strstr(image, entry));
    return *function != NULL ? NV_SUCCESS : NOT_FOUND;
}

int cuFuncGetAttribute(int *value, int attribute, void *function)
{
    BEGIN(cuFuncGetAttribute);
    switch (attribute) {
    case NV_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = 256;
        return function != NULL ? NV_SUCCESS : INVALID_VALUE;
    case NV_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    case NV_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = 0;
        return NV_SUCCESS;
    case NV_FUNC_ATTRIBUTE_NUM_REGS:
        *value = 40;
        return NV_SUCCESS;
    case NV_FUNC_ATTRIBUTE_PTX_VERSION:
        *value = 90;
        return NV_SUCCESS;
    case NV_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = SHARED_BYTES;
        return NV_SUCCESS;
    default:
        return INVALID_VALUE;
    }
}

int cuFuncSetAttribute(void *function, int attribute, int value)
{
    BEGIN(cuFuncSetAttribute);
    const int allowed = attribute == NV_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && value <= SHARED_BYTES;
    return function != NULL && allowed ? NV_SUCCESS : INVALID_VALUE;
}

/* The size that the PTX declares: ".param .align 8 .b8 name_param_0[24]". */
int cuFuncGetParamInfo(void *function, size_t index, size_t *offset, size_t *bytes)
{
    BEGIN(cuFuncGetParamInfo);
    const char *text = strstr(function, "_param_0[");
    if (index != 0 || text == NULL)
        return INVALID_VALUE;
    *offset = 0;
    *bytes = strtoul(text + strlen("_param_0["), NULL, 10);
    return NV_SUCCESS;
}

// NOLINTNEXTLINE(readability-function-size): the shape is NVIDIA's
int cuLaunchKernel(void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
                   unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, void *stream, void **arguments,
                   void **extra)
{
    BEGIN(cuLaunchKernel);
    const int shape = grid_x > 0 && grid_y > 0 && grid_z == 1 && block_x > 0 && block_y == 1 && block_z == 1;
    if (function == NULL || stream == NULL || !shape || shared_bytes > SHARED_BYTES)
        return INVALID_VALUE;
    const stream_work work = {.kind = WORK_LAUNCH};
    return arguments != NULL && arguments[0] != NULL && extra == NULL ? standin_work(stream, &work) : INVALID_VALUE;
}

int cuLaunchKernelEx(const nv_launch_config *config, void *function, void **arguments, void **extra)
{
    if (config->attribute_count != 1 || config->attributes->id != NV_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
        return INVALID_VALUE;
    return cuLaunchKernel(function, config->grid_x, config->grid_y, config->grid_z, config->block_x, config->block_y,
                          config->block_z, config->shared_bytes, config->stream, arguments, extra);
}
