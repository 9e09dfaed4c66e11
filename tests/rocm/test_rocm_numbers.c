/* The numbers and shapes in src/gpu/driver/hip_api.h against AMD's own header, where one is installed, of ROCm 5 or 6.
 * Elsewhere there is nothing to compare with, and the test says so. */
#include "support/check.h"

#include "gpu/blas/rocblas_api.h"
#include "gpu/driver/hip_api.h"

#if __has_include(<hip/hip_runtime_api.h>)
#define __HIP_PLATFORM_AMD__ 1
#define __HIP_PLATFORM_HCC__ 1
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#pragma GCC diagnostic ignored "-Wshadow"
#include <hip/hip_runtime_api.h>
#pragma GCC diagnostic pop
#define HAVE_HIP 1
#endif

#if __has_include(<rocblas/internal/rocblas-types.h>)
#include <rocblas/internal/rocblas-types.h>
#define HAVE_ROCBLAS 1
#endif

#define SAME(ours, theirs) assert_int_equal((int)(ours), (int)(theirs))

static void the_numbers_are_those_of_hip_runtime_api_h(void **state)
{
    (void)state;
#ifdef HAVE_HIP
    SAME(AMD_SUCCESS, hipSuccess);
    SAME(AMD_ERROR_INVALID_VALUE, hipErrorInvalidValue);
    SAME(AMD_ERROR_OUT_OF_MEMORY, hipErrorOutOfMemory);
    SAME(AMD_ERROR_NOT_INITIALIZED, hipErrorNotInitialized);
    SAME(AMD_ERROR_DEINITIALIZED, hipErrorDeinitialized);
    SAME(AMD_ERROR_INSUFFICIENT_DRIVER, hipErrorInsufficientDriver);
    SAME(AMD_ERROR_NO_DEVICE, hipErrorNoDevice);
    SAME(AMD_ERROR_INVALID_DEVICE, hipErrorInvalidDevice);
    SAME(AMD_ERROR_INVALID_IMAGE, hipErrorInvalidImage);
    SAME(AMD_ERROR_NO_BINARY_FOR_GPU, hipErrorNoBinaryForGpu);
    SAME(AMD_ERROR_ECC_NOT_CORRECTABLE, hipErrorECCNotCorrectable);
    SAME(AMD_ERROR_INVALID_KERNEL_FILE, hipErrorInvalidKernelFile);
    SAME(AMD_ERROR_SHARED_OBJECT_INIT_FAILED, hipErrorSharedObjectInitFailed);
    SAME(AMD_ERROR_INVALID_HANDLE, hipErrorInvalidHandle);
    SAME(AMD_ERROR_NOT_FOUND, hipErrorNotFound);
    SAME(AMD_ERROR_NOT_READY, hipErrorNotReady);
    SAME(AMD_ERROR_ILLEGAL_ADDRESS, hipErrorIllegalAddress);
    SAME(AMD_ERROR_LAUNCH_TIMEOUT, hipErrorLaunchTimeOut);
    SAME(AMD_ERROR_CONTEXT_IS_DESTROYED, hipErrorContextIsDestroyed);
    SAME(AMD_ERROR_ASSERT, hipErrorAssert);
    SAME(AMD_ERROR_LAUNCH_FAILURE, hipErrorLaunchFailure);
    SAME(AMD_ERROR_UNKNOWN, hipErrorUnknown);
    SAME(AMD_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, hipDeviceAttributeMaxBlockDimX);
    SAME(AMD_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + 1, hipDeviceAttributeMaxBlockDimY);
    SAME(AMD_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + 2, hipDeviceAttributeMaxBlockDimZ);
    SAME(AMD_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, hipDeviceAttributeMaxGridDimX);
    SAME(AMD_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + 1, hipDeviceAttributeMaxGridDimY);
    SAME(AMD_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + 2, hipDeviceAttributeMaxGridDimZ);
    SAME(AMD_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, hipDeviceAttributeMaxThreadsPerBlock);
    SAME(AMD_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, hipDeviceAttributeMultiprocessorCount);
    SAME(AMD_DEVICE_ATTRIBUTE_PCI_BUS_ID, hipDeviceAttributePciBusId);
    SAME(AMD_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, hipDeviceAttributePciDeviceId);
    SAME(AMD_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, hipDeviceAttributePciDomainID);
    SAME(AMD_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, hipDeviceAttributeMaxSharedMemoryPerBlock);
    SAME(AMD_DEVICE_ATTRIBUTE_WARP_SIZE, hipDeviceAttributeWarpSize);
    SAME(AMD_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    SAME(AMD_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    SAME(AMD_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    SAME(AMD_FUNC_ATTRIBUTE_NUM_REGS, HIP_FUNC_ATTRIBUTE_NUM_REGS);
    SAME(AMD_STREAM_NON_BLOCKING, hipStreamNonBlocking);
    SAME(AMD_EVENT_DEFAULT, hipEventDefault);
    SAME(AMD_EVENT_DISABLE_TIMING, hipEventDisableTiming);
    SAME(AMD_HOST_MALLOC_PORTABLE, hipHostMallocPortable);
    SAME(AMD_HOST_MALLOC_COHERENT, hipHostMallocCoherent);
    SAME(AMD_LAUNCH_PARAM_BUFFER_POINTER, (intptr_t)HIP_LAUNCH_PARAM_BUFFER_POINTER);
    SAME(AMD_LAUNCH_PARAM_BUFFER_SIZE, (intptr_t)HIP_LAUNCH_PARAM_BUFFER_SIZE);
    SAME(AMD_LAUNCH_PARAM_END, (intptr_t)HIP_LAUNCH_PARAM_END);
#else
    printf("SKIP: there is no hip/hip_runtime_api.h here to compare with\n");
    skip();
#endif
}

static void the_chips_name_lies_where_the_struct_has_it(void **state)
{
    (void)state;
#ifdef HAVE_HIP
    SAME(AMD_PROPERTIES_ARCH_BYTES, sizeof((hipDeviceProp_t *)0)->gcnArchName);
#ifdef hipGetDeviceProperties /* a macro from ROCm 6 on, for the new name */
    SAME(AMD_PROPERTIES_6_BYTES, sizeof(hipDeviceProp_t));
    SAME(AMD_PROPERTIES_6_ARCH, offsetof(hipDeviceProp_t, gcnArchName));
#else
    SAME(AMD_PROPERTIES_5_BYTES, sizeof(hipDeviceProp_t));
    SAME(AMD_PROPERTIES_5_ARCH, offsetof(hipDeviceProp_t, gcnArchName));
#endif
#else
    printf("SKIP: there is no hip/hip_runtime_api.h here to compare with\n");
    skip();
#endif
}

static void what_hip_calls_handles_are_pointers_and_numbers_ints(void **state)
{
    (void)state;
#ifdef HAVE_HIP
    assert_int_equal(sizeof(hipError_t), sizeof(int));
    assert_int_equal(sizeof(hipDevice_t), sizeof(int));
    assert_int_equal(sizeof(hipDeviceAttribute_t), sizeof(int));
    assert_int_equal(sizeof(hipFunction_attribute), sizeof(int));
    assert_int_equal(sizeof(hipDeviceptr_t), sizeof(void *));
    assert_int_equal(sizeof(hipStream_t), sizeof(void *));
    assert_int_equal(sizeof(hipEvent_t), sizeof(void *));
    assert_int_equal(sizeof(hipModule_t), sizeof(void *));
    assert_int_equal(sizeof(hipFunction_t), sizeof(void *));
#else
    printf("SKIP: there is no hip/hip_runtime_api.h here to compare with\n");
    skip();
#endif
}

static void the_numbers_are_those_of_rocblas_h(void **state)
{
    (void)state;
#ifdef HAVE_ROCBLAS
    SAME(AMD_OPERATION_NONE, rocblas_operation_none);
    SAME(AMD_OPERATION_TRANSPOSE, rocblas_operation_transpose);
    SAME(AMD_DATATYPE_F16, rocblas_datatype_f16_r);
    SAME(AMD_DATATYPE_F32, rocblas_datatype_f32_r);
    SAME(AMD_DATATYPE_F64, rocblas_datatype_f64_r);
    SAME(AMD_DATATYPE_I8, rocblas_datatype_i8_r);
    SAME(AMD_DATATYPE_I32, rocblas_datatype_i32_r);
    SAME(AMD_DATATYPE_BF16, rocblas_datatype_bf16_r);
    SAME(AMD_GEMM_ALGO_STANDARD, rocblas_gemm_algo_standard);
    SAME(AMD_GEMM_FLAGS_NONE, rocblas_gemm_flags_none);
    SAME(AMD_ATOMICS_NOT_ALLOWED, rocblas_atomics_not_allowed);
    SAME(AMD_STATUS_MEMORY_ERROR, rocblas_status_memory_error);
    SAME(AMD_STATUS_INVALID_VALUE, rocblas_status_invalid_value);
    SAME(AMD_STATUS_EXCLUDED_FROM_BUILD, rocblas_status_excluded_from_build);
#else
    printf("SKIP: there is no rocblas-types.h here to compare with\n");
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_numbers_are_those_of_hip_runtime_api_h),
        cmocka_unit_test(the_chips_name_lies_where_the_struct_has_it),
        cmocka_unit_test(what_hip_calls_handles_are_pointers_and_numbers_ints),
        cmocka_unit_test(the_numbers_are_those_of_rocblas_h),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
