/* What of rocBLAS this library uses, written down here so that no ROCm header is needed to build. Names and numbers are AMD's,
 * the same in rocBLAS 2 to 5; tests/rocm/test_rocm_numbers.c compares them with rocblas.h where there is one. */
#ifndef WW_GPU_BLAS_ROCBLAS_API_H
#define WW_GPU_BLAS_ROCBLAS_API_H

#include <stdint.h>

enum { AMD_OPERATION_NONE = 111, AMD_OPERATION_TRANSPOSE = 112 };
enum {
    AMD_DATATYPE_F16 = 150,
    AMD_DATATYPE_F32 = 151,
    AMD_DATATYPE_F64 = 152,
    AMD_DATATYPE_I8 = 160,
    AMD_DATATYPE_I32 = 162,
    AMD_DATATYPE_BF16 = 168
};
enum { AMD_GEMM_ALGO_STANDARD = 0, AMD_GEMM_FLAGS_NONE = 0, AMD_ATOMICS_NOT_ALLOWED = 0 };
enum {
    AMD_STATUS_SUCCESS = 0,
    AMD_STATUS_INVALID_HANDLE = 1,
    AMD_STATUS_NOT_IMPLEMENTED = 2,
    AMD_STATUS_INVALID_POINTER = 3,
    AMD_STATUS_INVALID_SIZE = 4,
    AMD_STATUS_MEMORY_ERROR = 5,
    AMD_STATUS_INTERNAL_ERROR = 6,
    AMD_STATUS_INVALID_VALUE = 11,
    AMD_STATUS_EXCLUDED_FROM_BUILD = 14,
    AMD_STATUS_ARCH_MISMATCH = 15
};

/* FUNCTION(name here, symbol in the library, parameters); all return a rocblas_status, an int. */
#define ROCBLAS_FUNCTIONS(FUNCTION)                                                                                            \
    FUNCTION(create, rocblas_create_handle, (void **handle))                                                                   \
    FUNCTION(destroy, rocblas_destroy_handle, (void *handle))                                                                  \
    FUNCTION(set_stream, rocblas_set_stream, (void *handle, void *stream))                                                     \
    FUNCTION(set_atomics, rocblas_set_atomics_mode, (void *handle, int mode))                                                  \
    FUNCTION(gemm, rocblas_gemm_ex,                                                                                            \
             (void *handle, int transa, int transb, int m, int n, int k, const void *alpha, const void *a, int a_type,         \
              int lda, const void *b, int b_type, int ldb, const void *beta, const void *c, int c_type, int ldc, void *d,      \
              int d_type, int ldd, int compute, int algorithm, int32_t solution, uint32_t flags))                              \
    FUNCTION(gemm_batched, rocblas_gemm_strided_batched_ex,                                                                    \
             (void *handle, int transa, int transb, int m, int n, int k, const void *alpha, const void *a, int a_type,         \
              int lda, int64_t stride_a, const void *b, int b_type, int ldb, int64_t stride_b, const void *beta,               \
              const void *c, int c_type, int ldc, int64_t stride_c, void *d, int d_type, int ldd, int64_t stride_d, int batch, \
              int compute, int algorithm, int32_t solution, uint32_t flags))

#endif
