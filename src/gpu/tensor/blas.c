/* Fast matrix products by the vendor's BLAS, if it is installed and can read the matrices in place. */
#include "gpu/blas/blas.h"
#include "base/status.h"
#include "gpu/tensor/tensor.h"

enum { BATCHES_APART_MAX = 4096 }; /* BLAS calls; beyond this many a single launch of our kernel is faster */

static bool blas_type_of(int32_t type, blas_type *out)
{
    switch (type) {
    case TYPE_F32:
        *out = BLAS_F32;
        return true;
    case TYPE_F64:
        *out = BLAS_F64;
        return true;
    case TYPE_F16:
        *out = BLAS_F16;
        return true;
    case TYPE_BF16:
        *out = BLAS_BF16;
        return true;
    case TYPE_I8:
        *out = BLAS_I8;
        return true;
    default:
        return false;
    }
}

/* A matrix in memory: its size, and the strides down and across, in elements. */
typedef struct strided_matrix {
    const void *data;
    int64_t rows, columns;
    int64_t row_stride, column_stride;
} strided_matrix;

/* Converts a matrix whose rows or columns are dense. Returns false for others. */
static bool as_blas_matrix(strided_matrix m, blas_matrix *out)
{
    const bool along = (m.column_stride == 1 || m.columns == 1) && (m.row_stride >= m.columns || m.rows == 1);
    const bool down = (m.row_stride == 1 || m.rows == 1) && (m.column_stride >= m.rows || m.columns == 1);
    const int64_t stride_min = along ? m.columns : m.rows, stride = along ? m.row_stride : m.column_stride;
    *out = (blas_matrix){.data = m.data, .stride = stride > stride_min ? stride : stride_min, .transposed = !along};
    return (along || down) && out->stride <= INT32_MAX;
}

/* Returns true if sizes and strides are multiples of four, which the vendors require for bytes. */
static bool in_fours(const blas_product *p)
{
    const int64_t all = p->m | p->n | p->k | p->a.stride | p->b.stride | p->a.batch_stride | p->b.batch_stride |
                        (int64_t)((uintptr_t)p->a.data | (uintptr_t)p->b.data);
    return all % 4 == 0;
}

/* Converts the product of the innermost batch dimension; it must be called `*calls` times for the others. */
static bool as_blas_product(const matmul_job *job, blas_product *p, int64_t *calls)
{
    const int32_t last = job->batch_rank - 1;
    *p = (blas_product){.m = job->m,
                        .n = job->n,
                        .k = job->k,
                        .batch = last >= 0 ? job->batch[last] : 1,
                        .c = job->c,
                        .c_stride = job->c_row,
                        .c_batch_stride = last >= 0 ? job->c_batch[last] : 0,
                        .alpha = 1.0,
                        .rough = true};
    const bool fits = !job->window && blas_type_of(job->type, &p->type) &&
                      as_blas_matrix((strided_matrix){job->a, job->m, job->k, job->a_row, job->a_column}, &p->a) &&
                      as_blas_matrix((strided_matrix){job->b, job->k, job->n, job->b_row, job->b_column}, &p->b);
    p->a.batch_stride = last >= 0 ? job->a_batch[last] : 0;
    p->b.batch_stride = last >= 0 ? job->b_batch[last] : 0;
    *calls = matmul_batch_count(job) / p->batch;
    return fits && job->m <= INT32_MAX && job->n <= INT32_MAX && job->k <= INT32_MAX && p->batch <= INT32_MAX &&
           *calls <= BATCHES_APART_MAX && (job->type != TYPE_I8 || in_fours(p));
}

ww_status gpu_matmul_blas(gpu_device *device, const matmul_job *job, bool *done)
{
    blas_product p;
    int64_t calls;
    const int32_t bytes = type_size(job->type), result_bytes = job->type == TYPE_I8 ? 4 : bytes;
    *done = false;
    if (!as_blas_product(job, &p, &calls))
        return WW_OK;
    gpu_stream *stream;
    driver_context previous = NULL;
    gpu_blas *blas = NULL;
    ww_status status = gpu_tensors_enter(device, &stream, &previous);
    if (status != WW_OK)
        return status;
    status = gpu_tensors_blas(device, &blas);
    for (int64_t call = 0; call < calls && blas && status == WW_OK; call++) {
        const matmul_place place = matmul_place_of(job, call * p.batch);
        blas_product one = p;
        one.a.data = (const char *)p.a.data + place.a * bytes;
        one.b.data = (const char *)p.b.data + place.b * bytes;
        one.c = (char *)p.c + place.c * result_bytes;
        status = gpu_blas_multiply(device, blas, &one);
    }
    /* Our own kernels do what BLAS cannot do for this type on this chip. They overwrite what was queued. */
    *done = blas != NULL && status != WW_UNSUPPORTED;
    return gpu_tensors_leave(device, previous, status == WW_UNSUPPORTED ? WW_OK : status);
}
