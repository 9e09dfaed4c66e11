/* A stand-in for librocblas: the functions that src/gpu/blas/rocblas.c calls, as plain loops, queued on the stand-in's HIP
 * streams. It checks what rocBLAS checks (sizes, leading dimensions, combinations of types) and that matrices are in device
 * memory.
 */
#include <stdlib.h>
#include <string.h>

#include "arithmetic/half.h"
#include "gpu/blas/rocblas_api.h"
#include "standin/standin.h"

#define FUNCTION(name, symbol, parameters) STANDIN_EXPORT int symbol parameters;
ROCBLAS_FUNCTIONS(FUNCTION)
#undef FUNCTION

typedef struct blas_handle {
    void *stream;
    int atomics;
} blas_handle;

typedef struct product {
    bool transpose_a, transpose_b;
    int m, n, k, lda, ldb, ldc, batch;
    int type, result_type, compute;
    const char *a, *b;
    char *c;
    int64_t stride_a, stride_b, stride_c;
    double alpha, beta;
} product;

int rocblas_create_handle(void **handle)
{
    const int judged = standin_judge("rocblas_create_handle");
    if (judged != 0)
        return judged;
    *handle = calloc(1, sizeof(blas_handle));
    ((blas_handle *)*handle)->atomics = 1;
    standin_count_handle(+1);
    return AMD_STATUS_SUCCESS;
}

int rocblas_destroy_handle(void *handle)
{
    free(handle);
    standin_count_handle(-1);
    return standin_judge("rocblas_destroy_handle");
}

int rocblas_set_stream(void *handle, void *stream)
{
    ((blas_handle *)handle)->stream = stream;
    return standin_judge("rocblas_set_stream");
}

int rocblas_set_atomics_mode(void *handle, int mode)
{
    ((blas_handle *)handle)->atomics = mode;
    return standin_judge("rocblas_set_atomics_mode");
}

/* ---- elements ------------------------------------------------------------------------------------------------------------ */

static size_t bytes_of(int type)
{
    switch (type) {
    case AMD_DATATYPE_F64:
        return 8;
    case AMD_DATATYPE_F16:
    case AMD_DATATYPE_BF16:
        return 2;
    case AMD_DATATYPE_I8:
        return 1;
    default:
        return 4;
    }
}

static double load(const char *from, int64_t index, int type)
{
    const char *at = from + index * (int64_t)bytes_of(type);
    uint16_t half = 0;
    float f32 = 0;
    double f64 = 0;
    int32_t i32 = 0;
    switch (type) {
    case AMD_DATATYPE_F64:
        memcpy(&f64, at, sizeof f64);
        return f64;
    case AMD_DATATYPE_F16:
        memcpy(&half, at, sizeof half);
        return f32_from_f16(half);
    case AMD_DATATYPE_BF16:
        memcpy(&half, at, sizeof half);
        return f32_from_bf16(half);
    case AMD_DATATYPE_I8:
        return (signed char)*at;
    case AMD_DATATYPE_I32:
        memcpy(&i32, at, sizeof i32);
        return i32;
    default:
        memcpy(&f32, at, sizeof f32);
        return f32;
    }
}

static void store(char *to, int64_t index, int type, double value)
{
    char *at = to + index * (int64_t)bytes_of(type);
    const float f32 = (float)value;
    const uint16_t half = type == AMD_DATATYPE_F16 ? f16_from_f32(f32) : bf16_from_f32(f32);
    const int32_t i32 = type == AMD_DATATYPE_I32 ? (int32_t)value : 0;
    if (type == AMD_DATATYPE_F64)
        memcpy(at, &value, sizeof value);
    else if (type == AMD_DATATYPE_I32)
        memcpy(at, &i32, sizeof i32);
    else if (type == AMD_DATATYPE_F32)
        memcpy(at, &f32, sizeof f32);
    else
        memcpy(at, &half, sizeof half);
}

static double scalar(const void *from, int compute)
{
    return load(from, 0, compute);
}

/* ---- products ------------------------------------------------------------------------------------------------------------ */

/* With beta 0, c is not read: it may have any contents. */
static void multiply(const void *arguments)
{
    const product *p = arguments;
    for (int64_t batch = 0; batch < p->batch; batch++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++) {
                const int64_t at = batch * p->stride_c + i + j * p->ldc;
                double sum = 0.0;
                for (int64_t l = 0; l < p->k; l++)
                    sum += load(p->a, batch * p->stride_a + (p->transpose_a ? l + i * p->lda : i + l * p->lda), p->type) *
                           load(p->b, batch * p->stride_b + (p->transpose_b ? j + l * p->ldb : l + j * p->ldb), p->type);
                sum *= p->alpha;
                if (p->beta != 0.0)
                    sum += p->beta * load(p->c, at, p->result_type);
                store(p->c, at, p->result_type, sum);
            }
}

static bool types_go_together(int type, int result, int compute)
{
    switch (type) {
    case AMD_DATATYPE_F32:
    case AMD_DATATYPE_F64:
        return result == type && compute == type;
    case AMD_DATATYPE_F16:
    case AMD_DATATYPE_BF16:
        return (result == type || result == AMD_DATATYPE_F32) && compute == AMD_DATATYPE_F32;
    case AMD_DATATYPE_I8:
        return result == AMD_DATATYPE_I32 && compute == AMD_DATATYPE_I32;
    default:
        return false;
    }
}

static bool lies_on_device(const void *data, int ld, int columns, int rows, int64_t stride, int batch, int type)
{
    const int64_t elements = (int64_t)(batch - 1) * stride + (int64_t)(columns - 1) * ld + rows;
    return standin_on_device(data, (size_t)elements * bytes_of(type));
}

static int check(const blas_handle *handle, const product *p)
{
    const int rows_a = p->transpose_a ? p->k : p->m;
    const int rows_b = p->transpose_b ? p->n : p->k;
    if (handle->stream == NULL || handle->atomics != AMD_ATOMICS_NOT_ALLOWED)
        standin_misused("rocBLAS works on no stream, or with atomics");
    if (p->m < 0 || p->n < 0 || p->k < 0 || p->lda < rows_a || p->ldb < rows_b || p->ldc < p->m || p->batch < 0)
        return AMD_STATUS_INVALID_SIZE;
    if (!types_go_together(p->type, p->result_type, p->compute))
        return AMD_STATUS_NOT_IMPLEMENTED;
    if (!lies_on_device(p->a, p->lda, p->transpose_a ? p->m : p->k, rows_a, p->stride_a, p->batch, p->type) ||
        !lies_on_device(p->b, p->ldb, p->transpose_b ? p->k : p->n, rows_b, p->stride_b, p->batch, p->type) ||
        !lies_on_device(p->c, p->ldc, p->n, p->m, p->stride_c, p->batch, p->result_type)) {
        standin_misused("a matrix for rocBLAS reaches outside of the device's memory");
        return AMD_STATUS_INVALID_POINTER;
    }
    return AMD_STATUS_SUCCESS;
}

static int queue(const char *call, blas_handle *handle, const product *p)
{
    const int judged = standin_judge(call);
    const int number = judged != 0 ? judged : check(handle, p);
    if (number != AMD_STATUS_SUCCESS)
        return number;
    return standin_queue(handle->stream, multiply, p, sizeof *p) == 0 ? AMD_STATUS_SUCCESS : AMD_STATUS_INTERNAL_ERROR;
}

// NOLINTNEXTLINE(readability-function-size): the shape is AMD's
int rocblas_gemm_strided_batched_ex(void *handle, int transa, int transb, int m, int n, int k, const void *alpha, const void *a,
                                    int a_type, int lda, int64_t stride_a, const void *b, int b_type, int ldb, int64_t stride_b,
                                    const void *beta, const void *c, int c_type, int ldc, int64_t stride_c, void *d, int d_type,
                                    int ldd, int64_t stride_d, int batch, int compute, int algorithm, int32_t solution,
                                    uint32_t flags)
{
    const bool plain = a_type == b_type && c_type == d_type && c == d && ldc == ldd && stride_c == stride_d && algorithm == 0 &&
                       solution == 0 && flags == 0;
    if (!plain || (transa != AMD_OPERATION_NONE && transa != AMD_OPERATION_TRANSPOSE) ||
        (transb != AMD_OPERATION_NONE && transb != AMD_OPERATION_TRANSPOSE))
        return AMD_STATUS_INVALID_VALUE;
    const product p = {.transpose_a = transa == AMD_OPERATION_TRANSPOSE,
                       .transpose_b = transb == AMD_OPERATION_TRANSPOSE,
                       .m = m,
                       .n = n,
                       .k = k,
                       .lda = lda,
                       .ldb = ldb,
                       .ldc = ldc,
                       .batch = batch,
                       .type = a_type,
                       .result_type = c_type,
                       .compute = compute,
                       .a = a,
                       .b = b,
                       .c = d,
                       .stride_a = stride_a,
                       .stride_b = stride_b,
                       .stride_c = stride_c,
                       .alpha = scalar(alpha, compute),
                       .beta = scalar(beta, compute)};
    return queue("rocblas_gemm_strided_batched_ex", handle, &p);
}

// NOLINTNEXTLINE(readability-function-size): the shape is AMD's
int rocblas_gemm_ex(void *handle, int transa, int transb, int m, int n, int k, const void *alpha, const void *a, int a_type,
                    int lda, const void *b, int b_type, int ldb, const void *beta, const void *c, int c_type, int ldc, void *d,
                    int d_type, int ldd, int compute, int algorithm, int32_t solution, uint32_t flags)
{
    const int judged = standin_judge("rocblas_gemm_ex");
    if (judged != 0)
        return judged;
    return rocblas_gemm_strided_batched_ex(handle, transa, transb, m, n, k, alpha, a, a_type, lda, 0, b, b_type, ldb, 0, beta,
                                           c, c_type, ldc, 0, d, d_type, ldd, 0, 1, compute, algorithm, solution, flags);
}
