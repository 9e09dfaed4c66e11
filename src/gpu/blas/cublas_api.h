/* The part of cuBLAS that this library uses, declared here so that no CUDA header is needed to build. Names and numbers are
 * NVIDIA's; tests/gpu/cuda_numbers.c compares them with cublas_api.h if that is installed. */
#ifndef WW_GPU_BLAS_CUBLAS_API_H
#define WW_GPU_BLAS_CUBLAS_API_H

/* NUMBER(name here, NVIDIA's name, number). By default cuBLAS adds partial sums of 16-bit types in 16 bits, which exceeds the
 * stated error; NV_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION forbids that. */
#define CUBLAS_NUMBERS(NUMBER)                                                                                                 \
    NUMBER(NV_OP_N, CUBLAS_OP_N, 0)                                                                                            \
    NUMBER(NV_OP_T, CUBLAS_OP_T, 1)                                                                                            \
    NUMBER(NV_R_32F, CUDA_R_32F, 0)                                                                                            \
    NUMBER(NV_R_64F, CUDA_R_64F, 1)                                                                                            \
    NUMBER(NV_R_16F, CUDA_R_16F, 2)                                                                                            \
    NUMBER(NV_R_8I, CUDA_R_8I, 3)                                                                                              \
    NUMBER(NV_R_32I, CUDA_R_32I, 10)                                                                                           \
    NUMBER(NV_R_16BF, CUDA_R_16BF, 14)                                                                                         \
    NUMBER(NV_COMPUTE_32F, CUBLAS_COMPUTE_32F, 68)                                                                             \
    NUMBER(NV_COMPUTE_64F, CUBLAS_COMPUTE_64F, 70)                                                                             \
    NUMBER(NV_COMPUTE_32I, CUBLAS_COMPUTE_32I, 72)                                                                             \
    NUMBER(NV_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_32F_FAST_TF32, 77)                                                         \
    NUMBER(NV_GEMM_DEFAULT, CUBLAS_GEMM_DEFAULT, -1)                                                                           \
    NUMBER(NV_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION, 16)                 \
    NUMBER(NV_STATUS_NOT_INITIALIZED, CUBLAS_STATUS_NOT_INITIALIZED, 1)                                                        \
    NUMBER(NV_STATUS_ALLOC_FAILED, CUBLAS_STATUS_ALLOC_FAILED, 3)                                                              \
    NUMBER(NV_STATUS_INVALID_VALUE, CUBLAS_STATUS_INVALID_VALUE, 7)                                                            \
    NUMBER(NV_STATUS_ARCH_MISMATCH, CUBLAS_STATUS_ARCH_MISMATCH, 8)                                                            \
    NUMBER(NV_STATUS_MAPPING_ERROR, CUBLAS_STATUS_MAPPING_ERROR, 11)                                                           \
    NUMBER(NV_STATUS_EXECUTION_FAILED, CUBLAS_STATUS_EXECUTION_FAILED, 13)                                                     \
    NUMBER(NV_STATUS_INTERNAL_ERROR, CUBLAS_STATUS_INTERNAL_ERROR, 14)                                                         \
    NUMBER(NV_STATUS_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED, 15)

enum {
#define NUMBER(ours, theirs, number) ours = (number),
    CUBLAS_NUMBERS(NUMBER)
#undef NUMBER
};

/* FUNCTION(name here, symbol in the library, parameters); all return a cublasStatus_t, an int. */
#define CUBLAS_FUNCTIONS(FUNCTION)                                                                                             \
    FUNCTION(create, cublasCreate_v2, (void **handle))                                                                         \
    FUNCTION(destroy, cublasDestroy_v2, (void *handle))                                                                        \
    FUNCTION(set_stream, cublasSetStream_v2, (void *handle, void *stream))                                                     \
    FUNCTION(set_math, cublasSetMathMode, (void *handle, int mode))                                                            \
    FUNCTION(gemm, cublasGemmEx,                                                                                               \
             (void *handle, int transa, int transb, int m, int n, int k, const void *alpha, const void *a, int a_type,         \
              int lda, const void *b, int b_type, int ldb, const void *beta, void *c, int c_type, int ldc, int compute,        \
              int algorithm))                                                                                                  \
    FUNCTION(gemm_batched, cublasGemmStridedBatchedEx,                                                                         \
             (void *handle, int transa, int transb, int m, int n, int k, const void *alpha, const void *a, int a_type,         \
              int lda, long long stride_a, const void *b, int b_type, int ldb, long long stride_b, const void *beta, void *c,  \
              int c_type, int ldc, long long stride_c, int batch, int compute, int algorithm))

#endif
