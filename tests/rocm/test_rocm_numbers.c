/* Compares the numbers and layouts in src/gpu/driver/hip_api.h with AMD's header of ROCm 5 or 6, if one is installed; otherwise
 * the test says that there is nothing to compare with. */
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
#define NUMBER(ours, theirs, number) SAME(ours, (intptr_t)(theirs));
    HIP_NUMBERS(NUMBER)
#undef NUMBER
    SAME(AMD_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + 1, hipDeviceAttributeMaxBlockDimY);
    SAME(AMD_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + 2, hipDeviceAttributeMaxBlockDimZ);
    SAME(AMD_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + 1, hipDeviceAttributeMaxGridDimY);
    SAME(AMD_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + 2, hipDeviceAttributeMaxGridDimZ);
#else
    printf("SKIP: there is no hip/hip_runtime_api.h here to compare with\n");
    skip();
#endif
}

static void the_chips_name_is_at_the_structs_offset(void **state)
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

/* Debian 12 and the package index have no package with rocBLAS's header; AMD's containers have it. */
static void the_numbers_are_those_of_rocblas_types_h(void **state)
{
    (void)state;
#ifdef HAVE_ROCBLAS
#define NUMBER(ours, theirs, number) SAME(ours, theirs);
    ROCBLAS_NUMBERS(NUMBER)
#undef NUMBER
#else
    printf("SKIP: there is no rocblas/internal/rocblas-types.h here to compare with\n");
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_numbers_are_those_of_hip_runtime_api_h),
        cmocka_unit_test(the_chips_name_is_at_the_structs_offset),
        cmocka_unit_test(what_hip_calls_handles_are_pointers_and_numbers_ints),
        cmocka_unit_test(the_numbers_are_those_of_rocblas_types_h),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
