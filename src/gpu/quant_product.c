/* Products of quantized weights on a GPU, on the stream for tensors: activations are coded into a workspace, then multiplied.
 * Nothing is waited for, unless the caller wants to know whether all activations could be coded.
 */
#include "base/status.h"
#include "gpu/launch.h"
#include "gpu/quant.h"
#include "gpu/quant_plan.h"
#include "gpu/tensor.h"
#include "kernels/blocks_dot.h"
#include "kernels/quant_stages.h"

enum {
    GRID_Y_MAX = 65535,       /* groups of columns that one launch takes */
    CODES_BYTES = 64 << 20,   /* of activations at once, */
    COLUMNS_MOST = 4096,      /* and columns, */
    FEW_SHARED_MOST = 115456, /* of 228 KiB, less what is reserved for a block and the 128 bytes that it has anyway, half */
    FEW_MOST = 32 /* so many of which are taken by eights: unpacking weights costs as much as reading them a few times */
};

/* ---- plain weights ------------------------------------------------------------------------------------------------------- */

static ww_status multiply_plain(gpu_device *device, gpu_stream *queue, const quant_product_job *job)
{
    void *first_rows = NULL;
    ww_status status = WW_OK;
    if (job->first_rows)
        status = gpu_workspace(device, queue, TENSORS_WORKSPACE_GROUPS, (size_t)job->columns * sizeof(uint64_t), &first_rows);
    if (status == WW_OK && job->first_rows)
        status = gpu_copy_in(device, queue, first_rows, job->first_rows, (size_t)job->columns * sizeof(uint64_t));
    quant_product_args args = {.weights = (const uint8_t *)job->weights->data + job->weights_offset,
                               .x = (const float *)((const char *)job->x->data + job->x_offset),
                               .y = job->y->data,
                               .first_rows = first_rows,
                               .rows = (uint64_t)job->rows,
                               .columns = (uint64_t)job->columns,
                               .weights_stride = (uint64_t)(job->cols * block_bytes(job->type)),
                               .cols = (uint64_t)job->cols,
                               .type = job->type};
    for (int64_t done = 0; status == WW_OK && done < job->columns; done += GRID_Y_MAX) {
        const int64_t now = job->columns - done < GRID_Y_MAX ? job->columns - done : GRID_Y_MAX;
        args.first_column = (uint64_t)done;
        status = launch_quant_product_plain(device, queue, grid_of_2((job->rows * 16 + QUANT_THREADS - 1) / QUANT_THREADS, now),
                                            QUANT_THREADS, 0, &args);
    }
    return status;
}

/* ---- activations --------------------------------------------------------------------------------------------------------- */

/* The groups of a part whose columns have first rows, in the device's memory: sources of all places, then first rows. */
static ww_status send_groups(gpu_device *device, gpu_stream *queue, const quant_product_job *job, columns_part part,
                             quant_coded *coded)
{
    quant_groups groups = {0};
    void *there = NULL;
    ww_status status = quant_groups_make(job->first_rows + part.first, part.count, &groups);
    if (status == WW_OK)
        status = gpu_workspace(device, queue, TENSORS_WORKSPACE_GROUPS, groups.bytes, &there);
    if (status == WW_OK)
        status = gpu_copy_in(device, queue, there, groups.first_rows, groups.bytes);
    if (status == WW_OK) {
        coded->first_rows = there;
        coded->source = (const uint32_t *)(coded->first_rows + groups.count);
        coded->places = (uint32_t)(groups.count * QUANT_FEW_COLUMNS);
        coded->width = quant_width(groups.most);
    }
    quant_groups_release(&groups);
    return status;
}

/* May columns be coded while what was queued before still runs? That is so behind a kernel which does not write them and finds
 * all before it ended; a product of few columns, which is such a one, reads the other workspace. */
static bool code_apart(const gpu_stream *queue, const quant_product_job *job, const quant_coded *coded, const uint64_t *refused)
{
    const char *x = (const char *)job->x->data + job->x_offset;
    return !coded->tiles && !coded->source && !refused &&
           gpu_leaves_alone(queue, x, (size_t)(job->columns * job->cols) * sizeof(float));
}

static ww_status code_columns(gpu_device *device, gpu_stream *queue, const quant_product_job *job, columns_part part,
                              quant_coded *coded, uint64_t *refused)
{
    void *there = NULL;
    const quant_coded_bytes bytes = quant_coded_size(job->type, coded);
    const int32_t workspace = coded->tiles || queue->coded_workspace != TENSORS_WORKSPACE_CODED ? TENSORS_WORKSPACE_CODED
                                                                                                : TENSORS_WORKSPACE_CODED_TOO;
    const ww_status status =
        gpu_workspace(device, queue, workspace, bytes.codes + bytes.sums + bytes.factors + bytes.partial + bytes.ready, &there);
    if (status != WW_OK)
        return status;
    const bool apart = code_apart(queue, job, coded, refused); /* asked for last: making room may have queued something */
    queue->coded_workspace = workspace;
    coded->codes = there;
    coded->sums = coded->codes + bytes.codes / sizeof(uint32_t);
    coded->factors = (float *)(coded->sums + bytes.sums / sizeof(uint32_t));
    coded->partial = coded->factors + bytes.factors / sizeof(float);
    coded->ready = (uint32_t *)(coded->partial + bytes.partial / sizeof(float));
    const int32_t type = dot_activations(job->type);
    const float *x = (const float *)((const char *)job->x->data + job->x_offset);
    const quant_activations_args args = {.from = x + part.first * job->cols,
                                         .from_stride = (uint64_t)job->cols,
                                         .source = coded->source,
                                         .codes = coded->codes,
                                         .factors = coded->factors,
                                         .sums = coded->sums,
                                         .refused = refused,
                                         .number = (uint64_t)part.first * coded->blocks,
                                         .columns = (uint32_t)part.count,
                                         .places = coded->places,
                                         .width = coded->width,
                                         .blocks = coded->blocks,
                                         .blocks_kept = coded->blocks_kept,
                                         .type = type,
                                         .tiles = coded->tiles,
                                         .turn = job->type == BLOCK_Q4_0   ? QUANT_TURN_16
                                                 : job->type == BLOCK_Q8_0 ? QUANT_TURN_32
                                                                           : QUANT_TURN_NONE,
                                         .clear = coded->ready,
                                         .clear_count = coded->shared,
                                         .apart = apart};
    const int64_t units = type == BLOCK_Q8_1 ? (coded->blocks_kept + 3) / 4 : coded->blocks_kept;
    const int64_t threads = units * (coded->source ? coded->places : part.count) * QUANT_TEAM; /* of places that are taken */
    const gpu_grid grid = grid_of((threads + QUANT_THREADS - 1) / QUANT_THREADS);
    return launch_quant_activations(device, queue, grid_early(grid), QUANT_THREADS, 0, &args);
}

/* ---- few columns --------------------------------------------------------------------------------------------------------- */

/* As many stages as leave room for a second block of threads on a compute unit; where shared memory is small copies are not in
 * the background, and more than three are of no use. */
static ww_status choose_stages(gpu_device *device, int32_t type, quant_few_args *args)
{
    driver_function_limits limits;
    const ww_status status = gpu_kernel_limits(device, GPU_KERNEL_quant_few_q4_0, &limits);
    if (status != WW_OK)
        return status;
    const int64_t room = limits.shared_dynamic_bytes_max < FEW_SHARED_MOST ? limits.shared_dynamic_bytes_max : FEW_SHARED_MOST;
    const int64_t fit = room / stage_bytes(type, args->width), most = room == FEW_SHARED_MOST ? STAGES_MOST : 3;
    args->stages = fit < 1 ? 1 : fit > most ? (uint32_t)most : (uint32_t)fit;
    return WW_OK;
}

static _Atomic int32_t tuned_parts = 0;

void gpu_quant_tune_parts(int32_t parts)
{
    tuned_parts = parts;
}

/* Rows are shared out where they are few, but not where the copy engine brings them, which is quicker than that. What is to be
 * cleared for that, one block of the threads that code columns clears. */
static void share_few(const gpu_device *device, const quant_product_job *job, quant_coded *coded)
{
    const int64_t tiles = (job->rows + QUANT_FEW_ROWS - 1) / QUANT_FEW_ROWS * (coded->places / QUANT_FEW_COLUMNS);
    coded->parts = tuned_parts > 0 ? (uint32_t)tuned_parts : quant_few_parts(tiles, device->base.info.compute_units);
    if (tiles > QUANT_THREADS || gpu_quant_has_engine(device))
        coded->parts = 1;
    coded->shared = coded->parts > 1 ? (uint32_t)tiles : 0;
}

static ww_status launch_few(gpu_device *device, gpu_stream *queue, int32_t type, gpu_grid grid, const quant_few_args *args)
{
    const size_t shared = (size_t)stage_bytes(type, args->width) * args->stages;
    switch (type) {
#define QUANT_FORMAT(name, number)                                                                                             \
    case number:                                                                                                               \
        return launch_quant_few_##name(device, queue, grid, QUANT_THREADS, shared, args);
        QUANT_FORMATS(QUANT_FORMAT)
#undef QUANT_FORMAT
    default:
        return ww_fail(WW_INTERNAL, "no product for format %d", type);
    }
}

static ww_status multiply_few(gpu_device *device, gpu_stream *queue, const quant_product_job *job, columns_part part,
                              const quant_coded *coded)
{
    quant_few_args args = {.weights = (const uint8_t *)job->weights->data + job->weights_offset,
                           .weights_stride = (uint64_t)coded->blocks * (uint64_t)block_bytes(job->type),
                           .codes = coded->codes,
                           .factors = coded->factors,
                           .sums = coded->sums,
                           .source = coded->source,
                           .first_rows = coded->first_rows,
                           .y = (float *)job->y->data + part.first * job->rows,
                           .partial = coded->partial,
                           .ready = coded->ready,
                           .parts = coded->parts,
                           .rows = (uint64_t)job->rows,
                           .columns = (uint32_t)part.count,
                           .width = coded->width,
                           .blocks = coded->blocks,
                           .blocks_kept = coded->blocks_kept,
                           .flip = 0x80808080};
    const int64_t groups = coded->places / QUANT_FEW_COLUMNS, tiles = (job->rows + QUANT_FEW_ROWS - 1) / QUANT_FEW_ROWS;
    args.aligned = ((uintptr_t)args.weights | args.weights_stride) % 4 == 0;
    ww_status status = choose_stages(device, job->type, &args);
    for (int64_t done = 0; status == WW_OK && done < groups; done += GRID_Y_MAX) {
        args.first_group = (uint32_t)done;
        const gpu_grid grid = grid_of_2(tiles * args.parts, groups - done < GRID_Y_MAX ? groups - done : GRID_Y_MAX);
        status = launch_few(device, queue, job->type, grid_early(grid), &args);
    }
    if (status == WW_OK && groups <= GRID_Y_MAX)
        gpu_writes(queue, args.y, (size_t)(part.count * job->rows) * sizeof(float));
    return status;
}

/* ---- all of it ----------------------------------------------------------------------------------------------------------- */

static ww_status multiply_part(gpu_device *device, gpu_stream *queue, const quant_product_job *job, columns_part part,
                               uint64_t *refused)
{
    const bool tiles = !job->first_rows && part.count > FEW_MOST;
    quant_coded coded = tiles ? quant_coded_tiles(job->type, job->cols, part.count, gpu_quant_tiles_of(device, job->type))
                              : quant_coded_few(job->type, job->cols, part.count);
    ww_status status = WW_OK;
    if (job->first_rows)
        status = send_groups(device, queue, job, part, &coded);
    if (!tiles)
        share_few(device, job, &coded);
    if (status == WW_OK)
        status = tiles ? gpu_quant_code_tiles(device, queue, job, part, &coded, refused)
                       : code_columns(device, queue, job, part, &coded, refused);
    if (status == WW_OK)
        status = tiles ? gpu_quant_tiles(device, queue, job, part, &coded) : multiply_few(device, queue, job, part, &coded);
    return status;
}

static ww_status multiply_blocks(gpu_device *device, gpu_stream *queue, const quant_product_job *job)
{
    uint64_t refused = UINT64_MAX;
    void *flag = NULL;
    ww_status status = WW_OK;
    if (job->refused) {
        status = gpu_workspace(device, queue, TENSORS_WORKSPACE_REFUSED, sizeof refused, &flag);
        if (status == WW_OK)
            status = gpu_fill(device, queue, flag, UINT32_MAX, sizeof refused / sizeof(uint32_t));
    }
    const int64_t fit = CODES_BYTES / job->cols / QUANT_TILE * QUANT_TILE + QUANT_TILE;
    const int64_t most = fit < COLUMNS_MOST ? fit : COLUMNS_MOST;
    for (int64_t done = 0; status == WW_OK && done < job->columns; done += most) {
        const columns_part part = {done, job->columns - done < most ? job->columns - done : most};
        status = multiply_part(device, queue, job, part, flag);
    }
    if (status == WW_OK && job->refused)
        status = gpu_copy_out(device, queue, &refused, flag, sizeof refused);
    if (job->refused)
        *job->refused = refused == UINT64_MAX ? -1 : (int64_t)refused;
    return status;
}

/* Blocks of a row are counted in 32 bits. */
static ww_status check_counts(const quant_product_job *job)
{
    if (job->cols <= INT32_MAX && job->rows <= (int64_t)INT32_MAX * QUANT_FEW_ROWS / 16)
        return WW_OK;
    return ww_fail(WW_UNSUPPORTED, "a product of %lld rows of %lld weights on a GPU: both are at most %d", (long long)job->rows,
                   (long long)job->cols, INT32_MAX);
}

ww_status gpu_quant_product(ww_device *of, const quant_product_job *job)
{
    gpu_device *device = gpu_of(of);
    gpu_stream *queue;
    driver_context previous = NULL;
    ww_status status = check_counts(job);
    if (status == WW_OK)
        status = gpu_tensors_enter(device, &queue, &previous);
    if (status != WW_OK)
        return status;
    bool done = false;
    const bool blocks = dot_activations(job->type) >= 0;
    if (job->refused)
        *job->refused = -1;
    if (job->fast && blocks)
        status = gpu_quant_fast(device, queue, job, &done);
    if (status == WW_OK && !done)
        status = blocks ? multiply_blocks(device, queue, job) : multiply_plain(device, queue, job);
    if (status == WW_OK && job->refused)
        status = gpu_synchronize(device, queue);
    return gpu_tensors_leave(device, previous, status);
}
