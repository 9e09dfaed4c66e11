/* The part of HIP that this library uses, declared here so that no ROCm header is needed to build.
 *
 * Names and numbers are AMD's, with the prefix AMD_, and the same from ROCm 5.2 to 10: tests/rocm/check-hip-python compares
 * them with those that AMD compiled into its Python packages, and test_rocm_numbers.c with hip_runtime_api.h if that is
 * installed. HIP's numbers look like CUDA's and often are not: the same number is a different device attribute.
 */
#ifndef WW_GPU_DRIVER_HIP_API_H
#define WW_GPU_DRIVER_HIP_API_H

#include <stddef.h>
#include <stdint.h>

/* NUMBER(name here, AMD's name, number). The y and z of an axis follow its x. The list of hipModuleLaunchKernel's `extra` ends
 * with 3; CUDA's ends with 0. */
#define HIP_NUMBERS(NUMBER)                                                                                                    \
    NUMBER(AMD_SUCCESS, hipSuccess, 0)                                                                                         \
    NUMBER(AMD_ERROR_INVALID_VALUE, hipErrorInvalidValue, 1)                                                                   \
    NUMBER(AMD_ERROR_OUT_OF_MEMORY, hipErrorOutOfMemory, 2)                                                                    \
    NUMBER(AMD_ERROR_NOT_INITIALIZED, hipErrorNotInitialized, 3)                                                               \
    NUMBER(AMD_ERROR_DEINITIALIZED, hipErrorDeinitialized, 4)                                                                  \
    NUMBER(AMD_ERROR_INSUFFICIENT_DRIVER, hipErrorInsufficientDriver, 35)                                                      \
    NUMBER(AMD_ERROR_NO_DEVICE, hipErrorNoDevice, 100)                                                                         \
    NUMBER(AMD_ERROR_INVALID_DEVICE, hipErrorInvalidDevice, 101)                                                               \
    NUMBER(AMD_ERROR_INVALID_IMAGE, hipErrorInvalidImage, 200)                                                                 \
    NUMBER(AMD_ERROR_NO_BINARY_FOR_GPU, hipErrorNoBinaryForGpu, 209)                                                           \
    NUMBER(AMD_ERROR_ECC_NOT_CORRECTABLE, hipErrorECCNotCorrectable, 214)                                                      \
    NUMBER(AMD_ERROR_INVALID_KERNEL_FILE, hipErrorInvalidKernelFile, 218)                                                      \
    NUMBER(AMD_ERROR_SHARED_OBJECT_INIT_FAILED, hipErrorSharedObjectInitFailed, 303)                                           \
    NUMBER(AMD_ERROR_INVALID_HANDLE, hipErrorInvalidHandle, 400)                                                               \
    NUMBER(AMD_ERROR_NOT_FOUND, hipErrorNotFound, 500)                                                                         \
    NUMBER(AMD_ERROR_NOT_SUPPORTED, hipErrorNotSupported, 801)                                                                 \
    NUMBER(AMD_ERROR_ILLEGAL_ADDRESS, hipErrorIllegalAddress, 700)                                                             \
    NUMBER(AMD_ERROR_LAUNCH_TIMEOUT, hipErrorLaunchTimeOut, 702)                                                               \
    NUMBER(AMD_ERROR_CONTEXT_IS_DESTROYED, hipErrorContextIsDestroyed, 709)                                                    \
    NUMBER(AMD_ERROR_ASSERT, hipErrorAssert, 710)                                                                              \
    NUMBER(AMD_ERROR_LAUNCH_FAILURE, hipErrorLaunchFailure, 719)                                                               \
    NUMBER(AMD_ERROR_UNKNOWN, hipErrorUnknown, 999)                                                                            \
    NUMBER(AMD_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, hipDeviceAttributeMaxBlockDimX, 26)                                           \
    NUMBER(AMD_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, hipDeviceAttributeMaxGridDimX, 29)                                             \
    NUMBER(AMD_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, hipDeviceAttributeMaxThreadsPerBlock, 56)                               \
    NUMBER(AMD_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, hipDeviceAttributeMultiprocessorCount, 63)                               \
    NUMBER(AMD_DEVICE_ATTRIBUTE_PCI_BUS_ID, hipDeviceAttributePciBusId, 67)                                                    \
    NUMBER(AMD_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, hipDeviceAttributePciDeviceId, 68)                                              \
    NUMBER(AMD_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, hipDeviceAttributePciDomainID, 69)                                              \
    NUMBER(AMD_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, hipDeviceAttributeMaxSharedMemoryPerBlock, 74)                    \
    NUMBER(AMD_DEVICE_ATTRIBUTE_WARP_SIZE, hipDeviceAttributeWarpSize, 87)                                                     \
    NUMBER(AMD_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)                              \
    NUMBER(AMD_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)                                      \
    NUMBER(AMD_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3)                                        \
    NUMBER(AMD_FUNC_ATTRIBUTE_NUM_REGS, HIP_FUNC_ATTRIBUTE_NUM_REGS, 4)                                                        \
    NUMBER(AMD_STREAM_NON_BLOCKING, hipStreamNonBlocking, 1)                                                                   \
    NUMBER(AMD_EVENT_DEFAULT, hipEventDefault, 0)                                                                              \
    NUMBER(AMD_EVENT_DISABLE_TIMING, hipEventDisableTiming, 2)                                                                 \
    NUMBER(AMD_HOST_MALLOC_PORTABLE, hipHostMallocPortable, 1)                                                                 \
    NUMBER(AMD_HOST_MALLOC_COHERENT, hipHostMallocCoherent, 0x40000000)                                                        \
    NUMBER(AMD_STREAM_CAPTURE_MODE_RELAXED, hipStreamCaptureModeRelaxed, 2)                                                    \
    NUMBER(AMD_LAUNCH_PARAM_BUFFER_POINTER, HIP_LAUNCH_PARAM_BUFFER_POINTER, 1)                                                \
    NUMBER(AMD_LAUNCH_PARAM_BUFFER_SIZE, HIP_LAUNCH_PARAM_BUFFER_SIZE, 2)                                                      \
    NUMBER(AMD_LAUNCH_PARAM_END, HIP_LAUNCH_PARAM_END, 3)

enum {
#define NUMBER(ours, theirs, number) ours = (number),
    HIP_NUMBERS(NUMBER)
#undef NUMBER
};

/* hipDeviceProp_t. Only the chip's name is read; everything else has an attribute. ROCm 6 changed the layout of the struct and
 * the name of the function that fills it. */
enum {
    AMD_PROPERTIES_5_BYTES = 792,
    AMD_PROPERTIES_5_ARCH = 396, /* where char gcnArchName[256] begins */
    AMD_PROPERTIES_6_BYTES = 1472,
    AMD_PROPERTIES_6_ARCH = 1160,
    AMD_PROPERTIES_ARCH_BYTES = 256
};

/* FUNCTION(name here, symbol in the library, parameters); all return a hipError_t, an int. Handles and device addresses are
 * pointers, hipDevice_t is an int. */
#define HIP_FUNCTIONS(FUNCTION)                                                                                                \
    FUNCTION(init, hipInit, (unsigned int flags))                                                                              \
    FUNCTION(driver_version, hipDriverGetVersion, (int *version))                                                              \
    FUNCTION(runtime_version, hipRuntimeGetVersion, (int *version))                                                            \
    FUNCTION(device_count, hipGetDeviceCount, (int *count))                                                                    \
    FUNCTION(device_name, hipDeviceGetName, (char *name, int capacity, int device))                                            \
    FUNCTION(device_memory, hipDeviceTotalMem, (size_t *bytes, int device))                                                    \
    FUNCTION(device_attribute, hipDeviceGetAttribute, (int *value, int attribute, int device))                                 \
    FUNCTION(device_get, hipGetDevice, (int *device))                                                                          \
    FUNCTION(device_set, hipSetDevice, (int device))                                                                           \
    FUNCTION(memory_info, hipMemGetInfo, (size_t *free_bytes, size_t *total_bytes))                                            \
    FUNCTION(memory_alloc, hipMalloc, (void **address, size_t bytes))                                                          \
    FUNCTION(memory_free, hipFree, (void *address))                                                                            \
    FUNCTION(host_alloc, hipHostMalloc, (void **host, size_t bytes, unsigned int flags))                                       \
    FUNCTION(host_free, hipHostFree, (void *host))                                                                             \
    FUNCTION(copy_in, hipMemcpyHtoDAsync, (void *to, void *from, size_t bytes, void *stream))                                  \
    FUNCTION(copy_out, hipMemcpyDtoHAsync, (void *to, void *from, size_t bytes, void *stream))                                 \
    FUNCTION(copy, hipMemcpyDtoDAsync, (void *to, void *from, size_t bytes, void *stream))                                     \
    FUNCTION(fill32, hipMemsetD32Async, (void *to, int pattern, size_t words, void *stream))                                   \
    FUNCTION(stream_create, hipStreamCreateWithFlags, (void **stream, unsigned int flags))                                     \
    FUNCTION(stream_destroy, hipStreamDestroy, (void *stream))                                                                 \
    FUNCTION(stream_synchronize, hipStreamSynchronize, (void *stream))                                                         \
    FUNCTION(stream_wait, hipStreamWaitEvent, (void *stream, void *event, unsigned int flags))                                 \
    FUNCTION(event_create, hipEventCreateWithFlags, (void **event, unsigned int flags))                                        \
    FUNCTION(event_destroy, hipEventDestroy, (void *event))                                                                    \
    FUNCTION(event_record, hipEventRecord, (void *event, void *stream))                                                        \
    FUNCTION(event_synchronize, hipEventSynchronize, (void *event))                                                            \
    FUNCTION(event_elapsed, hipEventElapsedTime, (float *milliseconds, void *from, void *to))                                  \
    FUNCTION(module_load, hipModuleLoadData, (void **module, const void *image))                                               \
    FUNCTION(module_unload, hipModuleUnload, (void *module))                                                                   \
    FUNCTION(module_function, hipModuleGetFunction, (void **function, void *module, const char *name))                         \
    FUNCTION(function_get, hipFuncGetAttribute, (int *value, int attribute, void *function))                                   \
    FUNCTION(launch, hipModuleLaunchKernel,                                                                                    \
             (void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,             \
              unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, void *stream, void **arguments,           \
              void **extra))

/* One of these two exists: the first in ROCm 6 and 7, which keep the second for older programs. */
#define HIP_PROPERTIES_FUNCTIONS(FUNCTION)                                                                                     \
    FUNCTION(properties_6, hipGetDevicePropertiesR0600, (void *properties, int device))                                        \
    FUNCTION(properties_5, hipGetDeviceProperties, (void *properties, int device))

/* May be missing. */
#define HIP_OPTIONAL_FUNCTIONS(FUNCTION)                                                                                       \
    FUNCTION(device_pci, hipDeviceGetPCIBusId, (char *address, int capacity, int device))                                      \
    FUNCTION(capture_begin, hipStreamBeginCapture, (void *stream, int mode))                                                   \
    FUNCTION(capture_end, hipStreamEndCapture, (void *stream, void **graph))                                                   \
    FUNCTION(graph_instantiate, hipGraphInstantiate,                                                                           \
             (void **made, void *graph, void **error_node, char *log, size_t log_bytes))                                       \
    FUNCTION(graph_destroy, hipGraphDestroy, (void *graph))                                                                    \
    FUNCTION(graph_launch, hipGraphLaunch, (void *made, void *stream))                                                         \
    FUNCTION(made_destroy, hipGraphExecDestroy, (void *made))

/* Functions that return something else than a number. */
typedef const char *(*hip_error_text)(int number); /* hipGetErrorName */
typedef int (*hip_last_error)(void);               /* hipGetLastError: returns and forgets the thread's last one */

#endif
