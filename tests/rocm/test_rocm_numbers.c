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

/* Debian 12 has no package with rocBLAS's header, so the numbers are written down here a second time, from
 * library/include/internal/rocblas-types.h of rocBLAS (the enums rocblas_operation_, rocblas_datatype_, rocblas_gemm_algo_,
 * rocblas_gemm_flags_, rocblas_atomics_mode_ and rocblas_status_). Where the header is, as in AMD's containers, the list is
 * compared with it as well. */
#ifdef HAVE_ROCBLAS
#define OF_ROCBLAS(ours, number, theirs) {#ours, (int)(ours), number, (int)(theirs)}
#else
#define OF_ROCBLAS(ours, number, theirs) {#ours, (int)(ours), number, number}
#endif

static const struct {
    const char *name;
    int ours, listed, theirs;
} rocblas_numbers[] = {
    OF_ROCBLAS(AMD_OPERATION_NONE, 111, rocblas_operation_none),
    OF_ROCBLAS(AMD_OPERATION_TRANSPOSE, 112, rocblas_operation_transpose),
    OF_ROCBLAS(AMD_DATATYPE_F16, 150, rocblas_datatype_f16_r),
    OF_ROCBLAS(AMD_DATATYPE_F32, 151, rocblas_datatype_f32_r),
    OF_ROCBLAS(AMD_DATATYPE_F64, 152, rocblas_datatype_f64_r),
    OF_ROCBLAS(AMD_DATATYPE_I8, 160, rocblas_datatype_i8_r),
    OF_ROCBLAS(AMD_DATATYPE_I32, 162, rocblas_datatype_i32_r),
    OF_ROCBLAS(AMD_DATATYPE_BF16, 168, rocblas_datatype_bf16_r),
    OF_ROCBLAS(AMD_GEMM_ALGO_STANDARD, 0, rocblas_gemm_algo_standard),
    OF_ROCBLAS(AMD_GEMM_FLAGS_NONE, 0, rocblas_gemm_flags_none),
    OF_ROCBLAS(AMD_ATOMICS_NOT_ALLOWED, 0, rocblas_atomics_not_allowed),
    OF_ROCBLAS(AMD_STATUS_SUCCESS, 0, rocblas_status_success),
    OF_ROCBLAS(AMD_STATUS_INVALID_HANDLE, 1, rocblas_status_invalid_handle),
    OF_ROCBLAS(AMD_STATUS_NOT_IMPLEMENTED, 2, rocblas_status_not_implemented),
    OF_ROCBLAS(AMD_STATUS_INVALID_POINTER, 3, rocblas_status_invalid_pointer),
    OF_ROCBLAS(AMD_STATUS_INVALID_SIZE, 4, rocblas_status_invalid_size),
    OF_ROCBLAS(AMD_STATUS_INTERNAL_ERROR, 6, rocblas_status_internal_error),
    OF_ROCBLAS(AMD_STATUS_MEMORY_ERROR, 5, rocblas_status_memory_error),
    OF_ROCBLAS(AMD_STATUS_INVALID_VALUE, 11, rocblas_status_invalid_value),
    OF_ROCBLAS(AMD_STATUS_EXCLUDED_FROM_BUILD, 14, rocblas_status_excluded_from_build),
    OF_ROCBLAS(AMD_STATUS_ARCH_MISMATCH, 15, rocblas_status_arch_mismatch),
};

static void the_numbers_are_those_of_rocblas_h(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rocblas_numbers / sizeof rocblas_numbers[0]; i++)
        if (rocblas_numbers[i].ours != rocblas_numbers[i].listed || rocblas_numbers[i].listed != rocblas_numbers[i].theirs)
            fail_msg("%s is %d, in the list %d, and rocBLAS says %d", rocblas_numbers[i].name, rocblas_numbers[i].ours,
                     rocblas_numbers[i].listed, rocblas_numbers[i].theirs);
#ifdef HAVE_ROCBLAS
    printf("compared with rocblas-types.h\n");
#else
    printf("compared with the list; there is no rocblas-types.h here\n");
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
