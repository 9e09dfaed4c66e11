/* Products of quantized weights on a GPU: activations are coded into a workspace, then multiplied. */
#include "gpu/launch.h"
#include "gpu/quant.h"
#include "kernels/blocks_dot.h"

enum {
    WORKSPACE_ACTIVATIONS = 0,
    WORKSPACE_REFUSED = 1,
    WORKSPACE_FIRST_ROWS = 2,
    GRID_Y_MAX = 65535 /* columns, or groups of them, that one launch takes */
};

static ww_status code_activations(gpu_device *device, gpu_stream *queue, const quant_product_job *job, uint8_t *to,
                                  uint64_t *refused)
{
    const int32_t type = dot_activations(job->type);
    const quant_encode_args args = {.from = (const float *)((const char *)job->x->data + job->x_offset),
                                    .to = to,
                                    .count = (uint64_t)(job->columns * (job->cols / block_length(type))),
                                    .refused = refused,
                                    .type = type};
    const ww_status status = gpu_fill(device, queue, refused, UINT32_MAX, sizeof *refused / sizeof(uint32_t));
    if (status != WW_OK)
        return status;
    return launch_quant_encode_small(device, queue, grid_of((int64_t)(args.count + QUANT_THREADS - 1) / QUANT_THREADS),
                                     QUANT_THREADS, 0, &args);
}

static ww_status multiply(gpu_device *device, gpu_stream *queue, const quant_product_job *job, quant_product_args *args)
{
    const bool plain = dot_activations(job->type) < 0;
    const int64_t together = plain || args->first_rows ? 1 : QUANT_COLUMNS;
    const int64_t threads = job->rows * (plain ? 16 : QUANT_OCTET), groups = (job->columns + together - 1) / together;
    ww_status status = WW_OK;
    for (int64_t done = 0; status == WW_OK && done < groups; done += GRID_Y_MAX) {
        const int64_t now = groups - done < GRID_Y_MAX ? groups - done : GRID_Y_MAX;
        const gpu_grid grid = grid_of_2((threads + QUANT_THREADS - 1) / QUANT_THREADS, now);
        args->first_column = (uint64_t)(done * together);
        status = plain ? launch_quant_product_plain(device, queue, grid, QUANT_THREADS, 0, args)
                       : launch_quant_product(device, queue, grid, QUANT_THREADS, 0, args);
    }
    return status;
}

static ww_status product_on(gpu_device *device, gpu_stream *queue, const quant_product_job *job)
{
    const int32_t activation = dot_activations(job->type);
    const int64_t row_bytes =
        activation < 0 ? job->cols * (int64_t)sizeof(float) : job->cols / block_length(activation) * block_bytes(activation);
    uint64_t refused = UINT64_MAX;
    void *coded = (char *)job->x->data + job->x_offset, *flag = NULL, *first_rows = NULL;
    ww_status status = gpu_workspace(device, queue, WORKSPACE_REFUSED, sizeof refused, &flag);
    if (status == WW_OK && activation >= 0)
        status = gpu_workspace(device, queue, WORKSPACE_ACTIVATIONS, (size_t)(job->columns * row_bytes), &coded);
    if (status == WW_OK && activation >= 0)
        status = code_activations(device, queue, job, coded, flag);
    if (status == WW_OK && job->first_rows)
        status = gpu_workspace(device, queue, WORKSPACE_FIRST_ROWS, (size_t)job->columns * sizeof(uint64_t), &first_rows);
    if (status == WW_OK && job->first_rows)
        status = gpu_copy_in(device, queue, first_rows, job->first_rows, (size_t)job->columns * sizeof(uint64_t));
    quant_product_args args = {.weights = (const uint8_t *)job->weights->data + job->weights_offset,
                               .activations = coded,
                               .y = job->y->data,
                               .first_rows = first_rows,
                               .rows = (uint64_t)job->rows,
                               .columns = (uint64_t)job->columns,
                               .weights_stride = (uint64_t)(job->cols / block_length(job->type) * block_bytes(job->type)),
                               .activations_stride = (uint64_t)row_bytes,
                               .blocks = (uint64_t)(job->cols / block_length(job->type)),
                               .type = job->type};
    if (status == WW_OK)
        status = multiply(device, queue, job, &args);
    if (status == WW_OK && activation >= 0)
        status = gpu_copy_out(device, queue, &refused, flag, sizeof refused);
    *job->refused = refused == UINT64_MAX ? -1 : (int64_t)refused;
    return status;
}

ww_status gpu_quant_product(ww_device *of, const quant_product_job *job)
{
    gpu_device *device = gpu_of(of);
    gpu_stream *queue;
    const ww_status status = gpu_stream_borrow(device, &queue);
    if (status != WW_OK)
        return status;
    return gpu_stream_return(device, queue, product_on(device, queue, job));
}
