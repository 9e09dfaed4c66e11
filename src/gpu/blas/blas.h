/* Matrix products by the vendor's BLAS: cuBLAS or rocBLAS, opened at first use, behind one table.
 *
 * They are fast and close to the true product, but not canonical: the bits depend on the vendor. Matrices here are row-major,
 * as everywhere in this library. The vendors' are column-major; only blas.c knows that.
 */
#ifndef WW_GPU_BLAS_BLAS_H
#define WW_GPU_BLAS_BLAS_H

#include "gpu/stream.h"

/* The type of a and b. c has the same type, except for i8, whose products are i32. Sums of f16 and bf16 are kept in f32. */
typedef enum blas_type { BLAS_F32 = 0, BLAS_F64, BLAS_F16, BLAS_BF16, BLAS_I8, BLAS_TYPES } blas_type;

/* A matrix in device memory, with `stride` elements from one row to the next; used directly or transposed. */
typedef struct blas_matrix {
    const void *data;
    int64_t stride;
    int64_t batch_stride; /* elements from one matrix of a batch to the next */
    bool transposed;
} blas_matrix;

/* c = alpha * a b + beta * c, for each of `batch` matrices; a (as used) is m x k, b k x n, c m x n. For i8 alpha and beta are
 * whole numbers. With beta 0 c need not hold numbers. */
typedef struct blas_product {
    blas_type type;
    int64_t m, n, k;
    int64_t batch; /* at least 1 */
    blas_matrix a, b;
    void *c;
    int64_t c_stride, c_batch_stride;
    double alpha, beta;
    bool rough;       /* f32 may be rounded to fewer bits before it is multiplied (TF32) if that is faster */
    bool f32_results; /* c is f32, for f16 and bf16 */
} blas_product;

typedef struct gpu_blas gpu_blas;

/* Creates a handle for one stream; the device is entered. Refuses with WW_UNSUPPORTED if the vendor's BLAS is not installed,
 * naming the files it tried. The first call on a machine may take a second. */
ww_status gpu_blas_create(gpu_stream *stream, gpu_blas **out);
void gpu_blas_destroy(gpu_blas *blas); /* before its stream; accepts NULL */

/* Queues the product; the device is entered. Refuses strides that are too short, sizes beyond the vendor's 32 bits, and types
 * that the vendor does not multiply. */
ww_status gpu_blas_multiply(gpu_device *device, gpu_blas *blas, const blas_product *product);

/* ---- the table that cublas.c and rocblas.c fill ---------------------------------------------------------------------------
 */

/* A column-major product, checked: every number fits 32 bits. */
typedef struct blas_call {
    blas_type type;
    bool transpose_a, transpose_b;
    int m, n, k;
    int lda, ldb, ldc;
    const void *a, *b;
    void *c;
    long long stride_a, stride_b, stride_c;
    int batch;
    const void *alpha, *beta; /* of the type of the sums: f32, f64 or i32 */
    bool rough, f32_results;
} blas_call;

/* Functions return the vendor's number, 0 for success. */
typedef struct blas_library {
    const char *backend;                         /* the backend of the devices that it multiplies on */
    const char *name;                            /* "cuBLAS" */
    int (*load)(char *why, size_t why_capacity); /* called once per process; `why` explains a number that is not 0 */
    int (*create)(void *stream, void **handle);  /* bound to that stream */
    int (*destroy)(void *handle);
    int (*multiply)(void *handle, const blas_call *call);
    const char *(*error_name)(int number); /* never NULL */
    driver_error (*error_class)(int number);
} blas_library;

extern const blas_library cublas_library;
extern const blas_library rocblas_library;

#endif
