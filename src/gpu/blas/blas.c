/* Matrix products by the vendor's BLAS: the checks, and the one place where row-major becomes column-major.
 *
 * A row-major matrix is the column-major one of its transpose, so C = A B is computed as C' = B' A': operands and sizes are
 * swapped, transpositions stay with their matrices, and nothing moves in memory.
 */
#include "gpu/blas/blas.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "gpu/blas/load.h"
#include "gpu/error.h"

struct gpu_blas {
    const blas_library *library;
    gpu_stream *stream;
    void *handle;
};

/* alpha or beta, in the type of the sums. */
typedef union scalar {
    float f32;
    double f64;
    int32_t i32;
} scalar;

static const blas_library *library_of(const gpu_device *device)
{
    static const blas_library *const libraries[] = {&cublas_library, &rocblas_library};
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        if (strcmp(libraries[i]->backend, device->driver->backend) == 0)
            return libraries[i];
    return NULL;
}

static ww_status check(gpu_device *device, const blas_library *library, int number, const char *what)
{
    if (number == 0)
        return WW_OK;
    const driver_error class = library->error_class(number);
    const ww_status status = class == DRIVER_ERROR_MEMORY  ? WW_OUT_OF_MEMORY
                             : class == DRIVER_ERROR_IMAGE ? WW_UNSUPPORTED
                                                           : WW_DRIVER_ERROR;
    vendor_failure noted = {.code = number};
    text_copy(noted.backend, sizeof noted.backend, device->driver->backend);
    text_copy(noted.library, sizeof noted.library, library->name);
    text_copy(noted.call, sizeof noted.call, blas_failed_call());
    text_copy(noted.name, sizeof noted.name, library->error_name(number));
    vendor_failure_note(&noted);
    return ww_fail(status, "%s: %s: %s (%d): %s", device->base.info.id, blas_failed_call(), library->error_name(number), number,
                   what);
}

ww_status gpu_blas_create(gpu_stream *stream, gpu_blas **out)
{
    gpu_device *device = stream->device;
    char why[512] = "";
    const blas_library *library = library_of(device);
    if (library == NULL)
        return ww_fail(WW_UNSUPPORTED, "%s: the backend '%s' has no BLAS", device->base.info.id, device->driver->backend);
    if (library->load(why, sizeof why) != 0)
        return ww_fail(WW_UNSUPPORTED, "%s: %s: %s", device->base.info.id, library->name, why);
    gpu_blas *made = memory_alloc_zeroed(1, sizeof *made);
    if (made == NULL)
        return memory_failed("a BLAS handle", sizeof *made);
    made->library = library;
    made->stream = stream;
    const ww_status status = check(device, library, library->create(stream->handle, &made->handle), "creating a handle");
    if (status != WW_OK) {
        memory_free(made);
        return status;
    }
    *out = made;
    return WW_OK;
}

void gpu_blas_destroy(gpu_blas *blas)
{
    if (blas == NULL)
        return;
    gpu_settle(blas->stream);
    (void)blas->library->destroy(blas->handle);
    memory_free(blas);
}

/* ---- checks -------------------------------------------------------------------------------------------------------------- */

static const char *const type_names[] = {"f32", "f64", "f16", "bf16", "i8"};

static bool is_size(int64_t size)
{
    return size >= 1 && size <= INT_MAX;
}

static ww_status check_matrix(const char *name, int64_t rows, int64_t columns, const blas_matrix *matrix)
{
    const int64_t stride_min = matrix->transposed ? rows : columns; /* elements of a row in memory */
    if (matrix->data == NULL)
        return ww_fail(WW_INVALID_ARGUMENT, "matrix product: %s is NULL", name);
    if (matrix->stride < stride_min || matrix->stride > INT_MAX)
        return ww_fail(WW_INVALID_ARGUMENT,
                       "matrix product: rows of %s are %lld elements apart; the minimum is %lld, the maximum %d", name,
                       (long long)matrix->stride, (long long)stride_min, INT_MAX);
    return WW_OK;
}

static bool is_whole(double number)
{
    return number >= INT32_MIN && number <= INT32_MAX && number == (double)(int32_t)number;
}

static ww_status check_product(const blas_product *p)
{
    if ((int)p->type < 0 || p->type >= BLAS_TYPES)
        return ww_fail(WW_INVALID_ARGUMENT, "matrix product: type %d is unknown", (int)p->type);
    if (!is_size(p->m) || !is_size(p->n) || !is_size(p->k) || !is_size(p->batch))
        return ww_fail(WW_INVALID_ARGUMENT, "matrix product of %lld x %lld x %lld, a batch of %lld: each must be 1 to %d",
                       (long long)p->m, (long long)p->n, (long long)p->k, (long long)p->batch, INT_MAX);
    if (p->type == BLAS_I8 && (!is_whole(p->alpha) || !is_whole(p->beta)))
        return ww_fail(WW_INVALID_ARGUMENT, "matrix product of i8: alpha is %g and beta %g; both must be 32-bit integers",
                       p->alpha, p->beta);
    return WW_OK;
}

static scalar scalar_of(blas_type type, double value)
{
    if (type == BLAS_F64)
        return (scalar){.f64 = value};
    if (type == BLAS_I8)
        return (scalar){.i32 = (int32_t)value};
    return (scalar){.f32 = (float)value};
}

/* ---- products ------------------------------------------------------------------------------------------------------------ */

ww_status gpu_blas_multiply(gpu_device *device, gpu_blas *blas, const blas_product *p)
{
    const blas_matrix c = {.data = p->c, .stride = p->c_stride};
    ww_status status = check_product(p);
    if (status == WW_OK)
        status = check_matrix("a", p->m, p->k, &p->a);
    if (status == WW_OK)
        status = check_matrix("b", p->k, p->n, &p->b);
    if (status == WW_OK)
        status = check_matrix("c", p->m, p->n, &c);
    if (status != WW_OK)
        return status;
    const scalar alpha = scalar_of(p->type, p->alpha);
    const scalar beta = scalar_of(p->type, p->beta);
    const blas_call call = {.type = p->type,
                            .f32_results = p->f32_results,
                            .transpose_a = p->b.transposed,
                            .transpose_b = p->a.transposed,
                            .m = (int)p->n,
                            .n = (int)p->m,
                            .k = (int)p->k,
                            .lda = (int)p->b.stride,
                            .ldb = (int)p->a.stride,
                            .ldc = (int)p->c_stride,
                            .a = p->b.data,
                            .b = p->a.data,
                            .c = p->c,
                            .stride_a = p->b.batch_stride,
                            .stride_b = p->a.batch_stride,
                            .stride_c = p->c_batch_stride,
                            .batch = (int)p->batch,
                            .alpha = &alpha,
                            .beta = &beta,
                            .rough = p->rough};
    char what[160];
    snprintf(what, sizeof what, "a product of %s, %lld x %lld x %lld", type_names[p->type], (long long)p->m, (long long)p->n,
             (long long)p->k);
    atomic_store(&blas->stream->state, STREAM_BUSY);
    return check(device, blas->library, blas->library->multiply(blas->handle, &call), what);
}
