/* The part of rocBLAS that this library uses, declared here so that no ROCm header is needed to build. Names and numbers are
 * AMD's, the same in rocBLAS 2 to 5; tests/rocm/test_rocm_numbers.c compares them with rocblas-types.h if that is installed. */
#ifndef WW_GPU_BLAS_ROCBLAS_API_H
#define WW_GPU_BLAS_ROCBLAS_API_H

#include <stdint.h>

/* NUMBER(name here, AMD's name, number). */
#define ROCBLAS_NUMBERS(NUMBER)                                                                                                \
    NUMBER(AMD_OPERATION_NONE, rocblas_operation_none, 111)                                                                    \
    NUMBER(AMD_OPERATION_TRANSPOSE, rocblas_operation_transpose, 112)                                                          \
    NUMBER(AMD_DATATYPE_F16, rocblas_datatype_f16_r, 150)                                                                      \
    NUMBER(AMD_DATATYPE_F32, rocblas_datatype_f32_r, 151)                                                                      \
    NUMBER(AMD_DATATYPE_F64, rocblas_datatype_f64_r, 152)                                                                      \
    NUMBER(AMD_DATATYPE_I8, rocblas_datatype_i8_r, 160)                                                                        \
    NUMBER(AMD_DATATYPE_I32, rocblas_datatype_i32_r, 162)                                                                      \
    NUMBER(AMD_DATATYPE_BF16, rocblas_datatype_bf16_r, 168)                                                                    \
    NUMBER(AMD_GEMM_ALGO_STANDARD, rocblas_gemm_algo_standard, 0)                                                              \
    NUMBER(AMD_GEMM_FLAGS_NONE, rocblas_gemm_flags_none, 0)                                                                    \
    NUMBER(AMD_ATOMICS_NOT_ALLOWED, rocblas_atomics_not_allowed, 0)                                                            \
    NUMBER(AMD_STATUS_SUCCESS, rocblas_status_success, 0)                                                                      \
    NUMBER(AMD_STATUS_INVALID_HANDLE, rocblas_status_invalid_handle, 1)                                                        \
    NUMBER(AMD_STATUS_NOT_IMPLEMENTED, rocblas_status_not_implemented, 2)                                                      \
    NUMBER(AMD_STATUS_INVALID_POINTER, rocblas_status_invalid_pointer, 3)                                                      \
    NUMBER(AMD_STATUS_INVALID_SIZE, rocblas_status_invalid_size, 4)                                                            \
    NUMBER(AMD_STATUS_INTERNAL_ERROR, rocblas_status_internal_error, 6)                                                        \
    NUMBER(AMD_STATUS_MEMORY_ERROR, rocblas_status_memory_error, 5)                                                            \
    NUMBER(AMD_STATUS_INVALID_VALUE, rocblas_status_invalid_value, 11)                                                         \
    NUMBER(AMD_STATUS_EXCLUDED_FROM_BUILD, rocblas_status_excluded_from_build, 14)                                             \
    NUMBER(AMD_STATUS_ARCH_MISMATCH, rocblas_status_arch_mismatch, 15)

enum {
#define NUMBER(ours, theirs, number) ours = (number),
    ROCBLAS_NUMBERS(NUMBER)
#undef NUMBER
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
