/* What of CUDA's driver API this library uses, written down here so that no CUDA header is needed to build.
 *
 * Names and numbers are NVIDIA's, with NV_ in front; tests/gpu/cuda_numbers.c compares them with cuda.h where that can be had.
 * The functions are listed once: each is looked up under the name that has the 64-bit signature (_v2 where there is one).
 */
#ifndef WW_GPU_DRIVER_CUDA_API_H
#define WW_GPU_DRIVER_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

enum {
    NV_SUCCESS = 0,
    NV_ERROR_OUT_OF_MEMORY = 2,
    NV_ERROR_NOT_INITIALIZED = 3,
    NV_ERROR_DEINITIALIZED = 4,
    NV_ERROR_STUB_LIBRARY = 34,
    NV_ERROR_NO_DEVICE = 100,
    NV_ERROR_INVALID_IMAGE = 200,
    NV_ERROR_NO_BINARY_FOR_GPU = 209,
    NV_ERROR_ECC_UNCORRECTABLE = 214,
    NV_ERROR_INVALID_PTX = 218,
    NV_ERROR_NVLINK_UNCORRECTABLE = 220,
    NV_ERROR_JIT_COMPILER_NOT_FOUND = 221,
    NV_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    NV_ERROR_JIT_COMPILATION_DISABLED = 223,
    NV_ERROR_CONTAINED = 226,
    NV_ERROR_NOT_FOUND = 500,
    NV_ERROR_NOT_READY = 600,
    NV_ERROR_NOT_SUPPORTED = 801,
    NV_ERROR_ILLEGAL_ADDRESS = 700,
    NV_ERROR_LAUNCH_TIMEOUT = 702,
    NV_ERROR_CONTEXT_IS_DESTROYED = 709,
    NV_ERROR_ASSERT = 710,
    NV_ERROR_HARDWARE_STACK_ERROR = 714,
    NV_ERROR_ILLEGAL_INSTRUCTION = 715,
    NV_ERROR_MISALIGNED_ADDRESS = 716,
    NV_ERROR_INVALID_ADDRESS_SPACE = 717,
    NV_ERROR_INVALID_PC = 718,
    NV_ERROR_LAUNCH_FAILED = 719,
    NV_ERROR_TENSOR_MEMORY_LEAK = 721,
    NV_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
    NV_ERROR_MPS_CLIENT_TERMINATED = 810
};

enum {
    NV_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    NV_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2, /* y and z follow */
    NV_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5,  /* likewise */
    NV_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
    NV_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
    NV_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    NV_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
    NV_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34,
    NV_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50,
    NV_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    NV_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    NV_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
};

enum {
    NV_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
    NV_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
    NV_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
    NV_FUNC_ATTRIBUTE_NUM_REGS = 4,
    NV_FUNC_ATTRIBUTE_PTX_VERSION = 5,
    NV_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
};

enum { NV_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6 };

/* Keys of the list behind cuLaunchKernel's `extra`. */
enum { NV_LAUNCH_PARAM_END = 0, NV_LAUNCH_PARAM_BUFFER_POINTER = 1, NV_LAUNCH_PARAM_BUFFER_SIZE = 2 };

enum { NV_STREAM_CAPTURE_MODE_RELAXED = 2 };

enum { NV_JIT_ERROR_LOG_BUFFER = 5, NV_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6 };

enum {
    NV_STREAM_NON_BLOCKING = 1,
    NV_EVENT_DEFAULT = 0,
    NV_EVENT_DISABLE_TIMING = 2,
    NV_MEMHOSTALLOC_PORTABLE = 1,
    NV_MEMHOSTALLOC_DEVICEMAP = 2
};

/* CUdeviceptr is a 64-bit integer, which every ABI that CUDA still has passes as it passes a pointer. CUdevice is an int; the
 * other handles are pointers. */
typedef void *nv_address;

typedef struct nv_launch_attribute {
    int id;
    char pad[4];
    union {
        int allowed; /* of PROGRAMMATIC_STREAM_SERIALIZATION */
        uint64_t room[8];
    } value;
} nv_launch_attribute;

typedef struct nv_launch_config {
    unsigned int grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    void *stream;
    nv_launch_attribute *attributes;
    unsigned int attribute_count;
} nv_launch_config;

/* FUNCTION(name here, symbol in the library, parameters); all return a CUresult, an int. */
#define CUDA_FUNCTIONS(FUNCTION)                                                                                               \
    FUNCTION(init, cuInit, (unsigned int flags))                                                                               \
    FUNCTION(driver_version, cuDriverGetVersion, (int *version))                                                               \
    FUNCTION(error_name, cuGetErrorName, (int number, const char **name))                                                      \
    FUNCTION(device_count, cuDeviceGetCount, (int *count))                                                                     \
    FUNCTION(device_get, cuDeviceGet, (int *device, int ordinal))                                                              \
    FUNCTION(device_name, cuDeviceGetName, (char *name, int capacity, int device))                                             \
    FUNCTION(device_memory, cuDeviceTotalMem_v2, (size_t *bytes, int device))                                                  \
    FUNCTION(device_attribute, cuDeviceGetAttribute, (int *value, int attribute, int device))                                  \
    FUNCTION(context_retain, cuDevicePrimaryCtxRetain, (void **context, int device))                                           \
    FUNCTION(context_release, cuDevicePrimaryCtxRelease_v2, (int device))                                                      \
    FUNCTION(context_get, cuCtxGetCurrent, (void **context))                                                                   \
    FUNCTION(context_set, cuCtxSetCurrent, (void *context))                                                                    \
    FUNCTION(context_device, cuCtxGetDevice, (int *device))                                                                    \
    FUNCTION(memory_info, cuMemGetInfo_v2, (size_t *free_bytes, size_t *total_bytes))                                          \
    FUNCTION(memory_alloc, cuMemAlloc_v2, (nv_address * address, size_t bytes))                                                \
    FUNCTION(memory_free, cuMemFree_v2, (nv_address address))                                                                  \
    FUNCTION(host_alloc, cuMemHostAlloc, (void **host, size_t bytes, unsigned int flags))                                      \
    FUNCTION(host_free, cuMemFreeHost, (void *host))                                                                           \
    FUNCTION(copy_in, cuMemcpyHtoDAsync_v2, (nv_address to, const void *from, size_t bytes, void *stream))                     \
    FUNCTION(copy_out, cuMemcpyDtoHAsync_v2, (void *to, nv_address from, size_t bytes, void *stream))                          \
    FUNCTION(copy, cuMemcpyDtoDAsync_v2, (nv_address to, nv_address from, size_t bytes, void *stream))                         \
    FUNCTION(fill32, cuMemsetD32Async, (nv_address to, unsigned int pattern, size_t words, void *stream))                      \
    FUNCTION(stream_create, cuStreamCreate, (void **stream, unsigned int flags))                                               \
    FUNCTION(stream_destroy, cuStreamDestroy_v2, (void *stream))                                                               \
    FUNCTION(stream_synchronize, cuStreamSynchronize, (void *stream))                                                          \
    FUNCTION(stream_wait, cuStreamWaitEvent, (void *stream, void *event, unsigned int flags))                                  \
    FUNCTION(event_create, cuEventCreate, (void **event, unsigned int flags))                                                  \
    FUNCTION(event_destroy, cuEventDestroy_v2, (void *event))                                                                  \
    FUNCTION(event_record, cuEventRecord, (void *event, void *stream))                                                         \
    FUNCTION(event_synchronize, cuEventSynchronize, (void *event))                                                             \
    FUNCTION(event_query, cuEventQuery, (void *event))                                                                         \
    FUNCTION(event_elapsed, cuEventElapsedTime, (float *milliseconds, void *from, void *to))                                   \
    FUNCTION(module_load, cuModuleLoadDataEx,                                                                                  \
             (void **module, const void *image, unsigned int count, const int *options, uintptr_t *values))                    \
    FUNCTION(module_unload, cuModuleUnload, (void *module))                                                                    \
    FUNCTION(module_function, cuModuleGetFunction, (void **function, void *module, const char *name))                          \
    FUNCTION(function_get, cuFuncGetAttribute, (int *value, int attribute, void *function))                                    \
    FUNCTION(function_set, cuFuncSetAttribute, (void *function, int attribute, int value))                                     \
    FUNCTION(launch, cuLaunchKernel,                                                                                           \
             (void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,             \
              unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, void *stream, void **arguments,           \
              void **extra))

/* The same for what only newer drivers have (CUDA 12.4, 11.8, 11.4): absent is no failure. */
#define CUDA_OPTIONAL_FUNCTIONS(FUNCTION)                                                                                      \
    FUNCTION(parameter_info, cuFuncGetParamInfo, (void *function, size_t index, size_t *offset, size_t *bytes))                \
    FUNCTION(launch_config, cuLaunchKernelEx,                                                                                  \
             (const nv_launch_config *config, void *function, void **arguments, void **extra))                                 \
    FUNCTION(capture_begin, cuStreamBeginCapture_v2, (void *stream, int mode))                                                 \
    FUNCTION(capture_end, cuStreamEndCapture, (void *stream, void **graph))                                                    \
    FUNCTION(graph_instantiate, cuGraphInstantiateWithFlags, (void **made, void *graph, unsigned long long flags))             \
    FUNCTION(graph_destroy, cuGraphDestroy, (void *graph))                                                                     \
    FUNCTION(graph_launch, cuGraphLaunch, (void *made, void *stream))                                                          \
    FUNCTION(made_destroy, cuGraphExecDestroy, (void *made))

#endif
