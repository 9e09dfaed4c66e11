/* Fast products of quantized weights on a GPU: weights become bf16 in a workspace, some rows at a time, activations too, and
 * the vendor's BLAS multiplies, with sums and results in f32.
 */
#include "arithmetic/blocks/dot.h"
#include "gpu/blas/blas.h"
#include "gpu/launch.h"
#include "gpu/quant/quant.h"
#include "gpu/tensor/tensor.h"

enum { HALVED_MOST = 1 << 28, COLUMNS_FEWEST = 33 }; /* fewer are quicker through codes */

static gpu_grid threads_grid(int64_t threads)
{
    return grid_of((threads + QUANT_THREADS - 1) / QUANT_THREADS);
}

static ww_status narrow(gpu_stream *stream, const quant_product_job *job, void **x)
{
    const size_t count = (size_t)(job->columns * job->cols);
    const ww_status status = gpu_workspace(stream, TENSORS_WORKSPACE_CODED, count * sizeof(uint16_t), x);
    if (status != WW_OK)
        return status;
    const quant_narrow_args args = {
        .from = (const float *)((const char *)job->x->data + job->x_offset), .to = *x, .count = count};
    return launch_quant_narrow(stream, threads_grid((int64_t)count), QUANT_THREADS, 0, &args);
}

/* Rows from number `first` on. */
static ww_status multiply_rows(gpu_stream *stream, gpu_blas *blas, const quant_product_job *job, int64_t first, int64_t rows,
                               const void *x)
{
    gpu_device *device = stream->device;
    const int64_t row_bytes = job->cols / block_length(job->type) * block_bytes(job->type), elements = rows * job->cols;
    void *halves = NULL;
    ww_status status = gpu_workspace(stream, TENSORS_WORKSPACE_WEIGHTS, (size_t)elements * sizeof(uint16_t), &halves);
    if (status != WW_OK)
        return status;
    const quant_halve_args args = {.from = (const uint8_t *)job->weights->data + job->weights_offset + first * row_bytes,
                                   .to = halves,
                                   .eights = (uint64_t)elements / 8,
                                   .type = job->type};
    status = launch_quant_halve(stream, threads_grid(elements / 8), QUANT_THREADS, 0, &args);
    const blas_product product = {.type = BLAS_BF16,
                                  .wide = true,
                                  .m = job->columns,
                                  .n = rows,
                                  .k = job->cols,
                                  .batch = 1,
                                  .a = {.data = x, .stride = job->cols},
                                  .b = {.data = halves, .stride = job->cols, .transposed = true},
                                  .c = (float *)job->y->data + first,
                                  .c_stride = job->rows,
                                  .alpha = 1.0};
    return status == WW_OK ? gpu_blas_multiply(device, blas, &product) : status;
}

ww_status gpu_quant_fast(gpu_stream *stream, const quant_product_job *job, bool *done)
{
    gpu_device *device = stream->device;
    gpu_blas *blas = NULL;
    void *x = NULL;
    *done = false;
    if (job->first_rows || job->columns < COLUMNS_FEWEST || job->columns > INT32_MAX || job->rows > INT32_MAX)
        return WW_OK;
    ww_status status = gpu_tensors_blas(device, &blas);
    if (status != WW_OK || !blas)
        return status;
    status = narrow(stream, job, &x);
    const int64_t fit = HALVED_MOST / job->cols / 2, most = fit > 0 ? fit : 1;
    for (int64_t first = 0; status == WW_OK && first < job->rows; first += most)
        status = multiply_rows(stream, blas, job, first, job->rows - first < most ? job->rows - first : most, x);
    *done = status != WW_UNSUPPORTED; /* of this type on this chip: what was queued is overwritten by the canonical product */
    return *done ? status : WW_OK;
}
