/* The part of CUDA's driver API that this library uses, declared here so that no CUDA header is needed to build.
 *
 * Names and numbers are NVIDIA's, with the prefix NV_; tests/gpu/cuda_numbers.c compares them with cuda.h if that is installed.
 * The functions are listed once: each is looked up under the name with the 64-bit signature (_v2 if it exists).
 */
#ifndef WW_GPU_DRIVER_CUDA_API_H
#define WW_GPU_DRIVER_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

/* NUMBER(name here, NVIDIA's name, number). The y and z of an axis follow its x. */
#define CUDA_NUMBERS(NUMBER)                                                                                                   \
    NUMBER(NV_SUCCESS, CUDA_SUCCESS, 0)                                                                                        \
    NUMBER(NV_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY, 2)                                                                \
    NUMBER(NV_ERROR_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED, 3)                                                            \
    NUMBER(NV_ERROR_DEINITIALIZED, CUDA_ERROR_DEINITIALIZED, 4)                                                                \
    NUMBER(NV_ERROR_STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY, 34)                                                                 \
    NUMBER(NV_ERROR_NO_DEVICE, CUDA_ERROR_NO_DEVICE, 100)                                                                      \
    NUMBER(NV_ERROR_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE, 200)                                                              \
    NUMBER(NV_ERROR_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU, 209)                                                      \
    NUMBER(NV_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_ECC_UNCORRECTABLE, 214)                                                      \
    NUMBER(NV_ERROR_INVALID_PTX, CUDA_ERROR_INVALID_PTX, 218)                                                                  \
    NUMBER(NV_ERROR_NVLINK_UNCORRECTABLE, CUDA_ERROR_NVLINK_UNCORRECTABLE, 220)                                                \
    NUMBER(NV_ERROR_JIT_COMPILER_NOT_FOUND, CUDA_ERROR_JIT_COMPILER_NOT_FOUND, 221)                                            \
    NUMBER(NV_ERROR_UNSUPPORTED_PTX_VERSION, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222)                                          \
    NUMBER(NV_ERROR_JIT_COMPILATION_DISABLED, CUDA_ERROR_JIT_COMPILATION_DISABLED, 223)                                        \
    NUMBER(NV_ERROR_CONTAINED, CUDA_ERROR_CONTAINED, 226)                                                                      \
    NUMBER(NV_ERROR_NOT_FOUND, CUDA_ERROR_NOT_FOUND, 500)                                                                      \
    NUMBER(NV_ERROR_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED, 801)                                                              \
    NUMBER(NV_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS, 700)                                                          \
    NUMBER(NV_ERROR_LAUNCH_TIMEOUT, CUDA_ERROR_LAUNCH_TIMEOUT, 702)                                                            \
    NUMBER(NV_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)                                                \
    NUMBER(NV_ERROR_ASSERT, CUDA_ERROR_ASSERT, 710)                                                                            \
    NUMBER(NV_ERROR_HARDWARE_STACK_ERROR, CUDA_ERROR_HARDWARE_STACK_ERROR, 714)                                                \
    NUMBER(NV_ERROR_ILLEGAL_INSTRUCTION, CUDA_ERROR_ILLEGAL_INSTRUCTION, 715)                                                  \
    NUMBER(NV_ERROR_MISALIGNED_ADDRESS, CUDA_ERROR_MISALIGNED_ADDRESS, 716)                                                    \
    NUMBER(NV_ERROR_INVALID_ADDRESS_SPACE, CUDA_ERROR_INVALID_ADDRESS_SPACE, 717)                                              \
    NUMBER(NV_ERROR_INVALID_PC, CUDA_ERROR_INVALID_PC, 718)                                                                    \
    NUMBER(NV_ERROR_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED, 719)                                                              \
    NUMBER(NV_ERROR_TENSOR_MEMORY_LEAK, CUDA_ERROR_TENSOR_MEMORY_LEAK, 721)                                                    \
    NUMBER(NV_ERROR_SYSTEM_DRIVER_MISMATCH, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)                                            \
    NUMBER(NV_ERROR_MPS_CLIENT_TERMINATED, CUDA_ERROR_MPS_CLIENT_TERMINATED, 810)                                              \
    NUMBER(NV_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1)                            \
    NUMBER(NV_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 2)                                        \
    NUMBER(NV_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 5)                                          \
    NUMBER(NV_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 8)                \
    NUMBER(NV_DEVICE_ATTRIBUTE_WARP_SIZE, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 10)                                                   \
    NUMBER(NV_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                             \
    NUMBER(NV_DEVICE_ATTRIBUTE_PCI_BUS_ID, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 33)                                                 \
    NUMBER(NV_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 34)                                           \
    NUMBER(NV_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 50)                                           \
    NUMBER(NV_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                     \
    NUMBER(NV_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                     \
    NUMBER(NV_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)   \
    NUMBER(NV_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)                                \
    NUMBER(NV_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)                                        \
    NUMBER(NV_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3)                                          \
    NUMBER(NV_FUNC_ATTRIBUTE_NUM_REGS, CU_FUNC_ATTRIBUTE_NUM_REGS, 4)                                                          \
    NUMBER(NV_FUNC_ATTRIBUTE_PTX_VERSION, CU_FUNC_ATTRIBUTE_PTX_VERSION, 5)                                                    \
    NUMBER(NV_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)                \
    NUMBER(NV_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6)    \
    NUMBER(NV_LAUNCH_PARAM_END, CU_LAUNCH_PARAM_END, 0)                                                                        \
    NUMBER(NV_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_POINTER, 1)                                                  \
    NUMBER(NV_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_BUFFER_SIZE, 2)                                                        \
    NUMBER(NV_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED, 2)                                                  \
    NUMBER(NV_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER, 5)                                                                \
    NUMBER(NV_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6)                                          \
    NUMBER(NV_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING, 1)                                                                  \
    NUMBER(NV_EVENT_DEFAULT, CU_EVENT_DEFAULT, 0)                                                                              \
    NUMBER(NV_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING, 2)                                                                \
    NUMBER(NV_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_PORTABLE, 1)                                                              \
    NUMBER(NV_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_DEVICEMAP, 2)

enum {
#define NUMBER(ours, theirs, number) ours = (number),
    CUDA_NUMBERS(NUMBER)
#undef NUMBER
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

/* Functions that only newer drivers have (CUDA 12.4, 11.8, 11.4). They may be missing. */
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
