/* Products of quantized weights on a GPU, on the stream for tensors: each pass is planned, prepared and launched. Nothing
 * waits, unless the caller asks whether all activations could be coded.
 */
#include "gpu/quant/quant_product.h"

#include "gpu/quant/quant.h"
#include "gpu/tensor/tensor.h"
#include "kernels/quant/quant.h"

/* Queues all passes: all rows for some columns, then for the next columns. */
static ww_status multiply_by(quant_product *p, quant_strategy strategy)
{
    int64_t column = 0, row = 0;
    ww_status status = WW_OK;
    while (status == WW_OK && column < p->job->columns) {
        p->plan = (quant_plan){.strategy = strategy, .first_column = column, .first_row = row};
        status = quant_plan_make(p->stream->device, p->job, &p->plan);
        if (status == WW_OK)
            status = quant_prepare(p);
        if (status == WW_OK)
            status = quant_launch(p);
        row += p->plan.rows;
        if (row == p->job->rows) {
            row = 0;
            column += p->plan.columns;
        }
    }
    return status;
}

/* Multiplies and reports the first refused block. Waits. */
static ww_status multiply_checked(quant_product *p, quant_strategy strategy)
{
    uint64_t refused = UINT64_MAX;
    void *flag = NULL;
    ww_status status = gpu_workspace(p->stream, TENSORS_WORKSPACE_REFUSED, sizeof refused, &flag);
    if (status == WW_OK)
        status = gpu_fill(p->stream, flag, UINT32_MAX, sizeof refused / sizeof(uint32_t));
    p->refused = flag;
    if (status == WW_OK)
        status = multiply_by(p, strategy);
    if (status == WW_OK)
        status = gpu_copy_out(p->stream, &refused, flag, sizeof refused);
    *p->job->refused = refused == UINT64_MAX ? -1 : (int64_t)refused;
    return status;
}

/* Multiplies in bf16, with the vendor's BLAS or kernels for matrix units. WW_UNSUPPORTED if this chip has neither; the next
 * strategy then overwrites what was queued. */
static ww_status multiply_bf16(quant_product *p)
{
    ww_status status = gpu_tensors_blas(p->stream->device, &p->blas);
    if (status != WW_OK)
        return status;
    if (p->blas) {
        status = multiply_by(p, QUANT_BF16);
        if (status != WW_UNSUPPORTED)
            return status;
    }
    p->blas = NULL;
    return gpu_has_matrix_units(p->stream->device, TYPE_BF16) ? multiply_by(p, QUANT_BF16) : WW_UNSUPPORTED;
}

static ww_status multiply(quant_product *p)
{
    const quant_product_job *job = p->job;
    quant_product_job canonical = *job;
    quant_strategy strategy = quant_choose(p->stream->device, p->job);
    if (strategy == QUANT_BF16) {
        const ww_status status = multiply_bf16(p);
        if (status != WW_UNSUPPORTED)
            return status;
        canonical.fast = false;
        p->job = &canonical;
        strategy = quant_choose(p->stream->device, p->job);
    }
    const bool asked = p->job->refused && strategy != QUANT_FLOAT && !p->job->coded;
    const ww_status status = asked ? multiply_checked(p, strategy) : multiply_by(p, strategy);
    p->job = job;
    return status;
}

/* Blocks of a row are counted in 32 bits. */
static ww_status check_counts(const quant_product_job *job)
{
    if (job->cols <= INT32_MAX && job->rows <= (int64_t)INT32_MAX * QUANT_GEMV_ROWS / 16)
        return WW_OK;
    return ww_fail(WW_UNSUPPORTED, "a product of %lld rows of %lld weights on a GPU: both are at most %d", (long long)job->rows,
                   (long long)job->cols, INT32_MAX);
}

ww_status gpu_quant_product(ww_device *base, const quant_product_job *job)
{
    gpu_device *device = gpu_of(base);
    quant_product p = {.job = job};
    driver_context previous = NULL;
    ww_status status = check_counts(job);
    if (status == WW_OK)
        status = gpu_tensors_enter(device, &p.stream, &previous);
    if (status != WW_OK)
        return status;
    if (job->refused)
        *job->refused = -1;
    status = multiply(&p);
    if (status == WW_OK && job->refused)
        status = gpu_synchronize(p.stream);
    return gpu_tensors_leave(device, previous, status);
}
