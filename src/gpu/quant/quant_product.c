/* Products of quantized weights on a GPU, on the stream for tensors: activations are coded into a workspace, then multiplied.
 * Nothing is waited for, unless the caller wants to know whether all activations could be coded.
 */
#include <string.h>

#include "arithmetic/blocks/dot.h"
#include "base/status.h"
#include "gpu/launch.h"
#include "gpu/quant/quant.h"
#include "gpu/quant/quant_plan.h"
#include "gpu/tensor/tensor.h"
#include "kernels/quant/quant_stages.h"

enum {
    GRID_Y_MAX = 65535,      /* groups of columns that one launch takes */
    CODES_BYTES = 64 << 20,  /* of activations at once, */
    COLUMNS_MOST = 4096,     /* and columns, */
    FEW_SHARED_ALL = 233472, /* bytes that a compute unit has where it has the most, */
    FEW_SHARED_LESS = 1280,  /* of which a block of threads takes so many before it asks for any, */
    FEW_MOST = 32 /* so many of which are taken by eights: unpacking weights costs as much as reading them a few times */
};

/* Words that are 0 before a product and behind it, and then for each turn of such products those that tell what is coded. */
enum { COUNTERS_READY = QUANT_THREADS, COUNTERS = COUNTERS_READY + GPU_OVERLAP * QUANT_SHARES };

/* Are columns taken by tiles, however few there are in the last part of them? */
static bool goes_by_tiles(const quant_product_job *job)
{
    return !job->first_rows && job->columns > FEW_MOST;
}

/* Those are coded from whatever they are; the others, which are few, from floats. */
bool gpu_quant_takes(const quant_product_job *job)
{
    return !job->fast && dot_activations(job->type) >= 0 && goes_by_tiles(job);
}

/* ---- plain weights ------------------------------------------------------------------------------------------------------- */

static ww_status multiply_plain(gpu_stream *stream, const quant_product_job *job)
{
    void *first_rows = NULL;
    ww_status status = WW_OK;
    if (job->first_rows)
        status = gpu_workspace(stream, TENSORS_WORKSPACE_GROUPS, (size_t)job->columns * sizeof(uint64_t), &first_rows);
    if (status == WW_OK && job->first_rows)
        status = gpu_copy_in(stream, first_rows, job->first_rows, (size_t)job->columns * sizeof(uint64_t));
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
        status = launch_quant_product_plain(stream, grid_of_2((job->rows * 16 + QUANT_THREADS - 1) / QUANT_THREADS, now),
                                            QUANT_THREADS, 0, &args);
    }
    return status;
}

/* ---- activations --------------------------------------------------------------------------------------------------------- */

/* The groups of a part whose columns have first rows, in the device's memory: sources of all places, then first rows. */
static ww_status send_groups(gpu_stream *stream, const quant_product_job *job, columns_part part, quant_coded *coded)
{
    quant_groups groups = {0};
    void *there = NULL;
    ww_status status = quant_groups_make(job->first_rows + part.first, part.count, &groups);
    if (status == WW_OK)
        status = gpu_workspace(stream, TENSORS_WORKSPACE_GROUPS, groups.bytes, &there);
    if (status == WW_OK)
        status = gpu_copy_in(stream, there, groups.first_rows, groups.bytes);
    if (status == WW_OK) {
        coded->first_rows = there;
        coded->source = (const uint32_t *)(coded->first_rows + groups.count);
        coded->places = (uint32_t)(groups.count * QUANT_FEW_COLUMNS);
        coded->width = quant_width(groups.most);
    }
    quant_groups_release(&groups);
    return status;
}

/* Lays out coded columns from `there` on. */
static void place_columns(quant_coded *coded, quant_coded_bytes bytes, void *there)
{
    coded->codes = there;
    coded->sums = coded->codes + bytes.codes / sizeof(uint32_t);
    coded->factors = (float *)(coded->sums + bytes.sums / sizeof(uint32_t));
    coded->partial = coded->factors + bytes.factors / sizeof(float);
}

static size_t bytes_of_all(quant_coded_bytes bytes)
{
    return bytes.codes + bytes.sums + bytes.factors + bytes.partial;
}

static quant_activations_args coding_of(const quant_product_job *job, columns_part part, const quant_coded *coded,
                                        uint64_t *refused)
{
    const float *x = (const float *)((const char *)job->x->data + job->x_offset);
    return (quant_activations_args){.from = x + part.first * job->cols,
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
                                    .type = dot_activations(job->type),
                                    .turn = stage_turn(job->type)};
}

/* How many blocks of threads it takes. */
static int64_t coding_blocks(const quant_activations_args *args)
{
    const int64_t units = args->type == BLOCK_Q8_1 ? (args->blocks_kept + 3) / 4 : args->blocks_kept;
    const int64_t threads = units * (args->source ? args->places : args->columns) * QUANT_TEAM; /* of places that are taken */
    return (threads + QUANT_THREADS - 1) / QUANT_THREADS;
}

/* By a kernel of its own. */
static ww_status code_columns(gpu_stream *stream, const quant_activations_args *coding)
{
    return launch_quant_activations(stream, grid_early(grid_of(coding_blocks(coding))), QUANT_THREADS, 0, coding);
}

/* Room for them that is no other product's until this one is done. */
static ww_status take_room(gpu_stream *stream, int32_t type, quant_coded *coded)
{
    void *there = NULL;
    const quant_coded_bytes bytes = quant_coded_size(type, coded);
    const ww_status status = gpu_workspace(stream, TENSORS_WORKSPACE_CODED, bytes_of_all(bytes), &there);
    if (status == WW_OK)
        place_columns(coded, bytes, there);
    return status;
}

/* The same where several products of few columns run at a time: they take turns. */
static ww_status take_turn(gpu_stream *stream, int32_t type, quant_coded *coded)
{
    enum { APART = 256 }; /* bytes that pieces are a multiple of */
    const quant_coded_bytes bytes = quant_coded_size(type, coded);
    const size_t wanted = (bytes_of_all(bytes) + APART - 1) / APART * APART * GPU_OVERLAP;
    void *there = NULL;
    const ww_status status = gpu_workspace(stream, TENSORS_WORKSPACE_CODED_FEW, wanted, &there);
    if (status != WW_OK)
        return status;
    const size_t piece = stream->workspaces[TENSORS_WORKSPACE_CODED_FEW].bytes / GPU_OVERLAP / APART * APART;
    stream->turns.now++;
    place_columns(coded, bytes, (char *)there + piece * (stream->turns.now % GPU_OVERLAP));
    return WW_OK;
}

/* ---- few columns --------------------------------------------------------------------------------------------------------- */

/* As many stages as leave room for the other blocks of threads that a compute unit is to hold; where shared memory is small
 * copies are not in the background, and more than three are of no use. */
static ww_status choose_stages(gpu_device *device, int32_t type, quant_gemv_args *args)
{
    driver_function_limits limits;
    const ww_status status = gpu_kernel_limits(device, GPU_KERNEL_quant_gemv_q4_0, &limits);
    if (status != WW_OK)
        return status;
    const int64_t resident = args->apart ? QUANT_ONE_RESIDENT(type) : QUANT_FEW_RESIDENT;
    const int64_t share = FEW_SHARED_ALL / resident - FEW_SHARED_LESS;
    const int64_t room = limits.shared_dynamic_bytes_max < share ? limits.shared_dynamic_bytes_max : share;
    const int64_t fit = room / stage_bytes(type, args->width), most = room == share ? STAGES_MOST : 3;
    args->stages = fit < 1 ? 1 : fit > most ? (uint32_t)most : (uint32_t)fit;
    return WW_OK;
}

static _Atomic int32_t tuned_parts = 0;

void gpu_quant_tune_parts(int32_t parts)
{
    tuned_parts = parts;
}

/* Rows are shared out where they are few, but not where the copy engine brings them, which is quicker than that. */
static void share_few(const gpu_device *device, const quant_product_job *job, quant_coded *coded)
{
    const int64_t tiles = (job->rows + QUANT_FEW_ROWS - 1) / QUANT_FEW_ROWS * (coded->places / QUANT_FEW_COLUMNS);
    coded->parts = tuned_parts > 0 ? (uint32_t)tuned_parts : quant_gemv_parts(tiles, device->base.info.compute_units);
    if (tiles > COUNTERS_READY || gpu_quant_has_engine(device))
        coded->parts = 1;
    coded->shared = coded->parts > 1 ? (uint32_t)tiles : 0;
}

static ww_status take_counters(gpu_stream *stream, uint32_t **out)
{
    void *there = NULL;
    ww_status status = gpu_workspace(stream, TENSORS_WORKSPACE_COUNTERS, COUNTERS * sizeof(uint32_t), &there);
    if (status == WW_OK && !stream->turns.zeroed)
        status = gpu_fill(stream, there, 0, COUNTERS);
    stream->turns.zeroed = status == WW_OK;
    *out = there;
    return status;
}

/* Are there kernels of their own for that? For a single column, but not on AMD's chips (quant_gemv.h). */
static bool has_one(const gpu_device *device, uint32_t width)
{
    return width == 1 && strcmp(device->driver->vendor, "AMD") != 0;
}

/* A single column is coded by the product itself. */
static void code_on_the_way(const gpu_stream *stream, const quant_activations_args *coding, quant_gemv_args *args)
{
    args->x = coding->from;
    args->refused = coding->refused;
    args->number = coding->number;
    args->turn = stream->turns.now;
    args->coded = args->ready + COUNTERS_READY + (size_t)(stream->turns.now % GPU_OVERLAP) * QUANT_SHARES;
}

/* Codes columns, or sees to it that the product does: where that may begin while others run, and where none may; in between a
 * kernel of its own is sooner done with them. */
static ww_status code_few(gpu_stream *stream, const quant_product_job *job, columns_part part, quant_coded *coded,
                          uint64_t *refused, quant_gemv_args *args)
{
    gpu_device *device = stream->device;
    ww_status status = coded->source ? take_room(stream, job->type, coded) : take_turn(stream, job->type, coded);
    if (status != WW_OK)
        return status;
    quant_activations_args coding = coding_of(job, part, coded, refused);
    coding.apart = !coded->source && gpu_leaves_alone(stream, coding.from, (size_t)(part.count * job->cols) * sizeof(float));
    const bool itself = !coded->source && has_one(device, coded->width);
    args->apart = itself && coding.apart && gpu_may_overlap(stream);
    if (args->apart || (itself && !gpu_quant_has_engine(device)))
        code_on_the_way(stream, &coding, args);
    else
        status = code_columns(stream, &coding);
    args->codes = coded->codes;
    args->factors = coded->factors;
    args->sums = coded->sums;
    args->partial = coded->partial;
    return status;
}

static ww_status launch_few(gpu_stream *stream, int32_t type, gpu_grid grid, const quant_gemv_args *args)
{
    gpu_device *device = stream->device;
    const size_t shared = (size_t)stage_bytes(type, args->width) * args->stages;
    const bool one = has_one(device, args->width);
    switch (type) {
#define QUANT_FORMAT(name, number, ...)                                                                                        \
    case number:                                                                                                               \
        return (one ? launch_quant_gemv_fused_##name : launch_quant_gemv_##name)(stream, grid, QUANT_THREADS, shared, args);
        BLOCK_FORMATS(QUANT_FORMAT)
#undef QUANT_FORMAT
    default:
        return ww_fail(WW_INTERNAL, "no product for format %d", type);
    }
}

/* The groups of columns of a part, from a launch to the next. */
static ww_status launch_groups(gpu_stream *stream, const quant_product_job *job, columns_part part, const quant_coded *coded,
                               quant_gemv_args *args)
{
    gpu_device *device = stream->device;
    const int64_t groups = coded->places / QUANT_FEW_COLUMNS;
    const int64_t blocks = (job->rows + QUANT_FEW_ROWS - 1) / QUANT_FEW_ROWS * args->parts;
    ww_status status = choose_stages(device, job->type, args);
    for (int64_t done = 0; status == WW_OK && done < groups; done += GRID_Y_MAX) {
        args->first_group = (uint32_t)done;
        const gpu_grid grid = grid_of_2(blocks, groups - done < GRID_Y_MAX ? groups - done : GRID_Y_MAX);
        status = launch_few(stream, job->type, grid_early(grid), args);
    }
    if (status != WW_OK)
        return status;
    const size_t bytes = (size_t)(part.count * job->rows) * sizeof(float);
    if (args->apart)
        gpu_writes_too(stream, args->y, bytes);
    else if (groups <= GRID_Y_MAX)
        gpu_writes(stream, args->y, bytes);
    return WW_OK;
}

static ww_status multiply_few(gpu_stream *stream, const quant_product_job *job, columns_part part, quant_coded *coded,
                              uint64_t *refused)
{
    quant_gemv_args args = {.weights = (const uint8_t *)job->weights->data + job->weights_offset,
                            .weights_stride = (uint64_t)coded->blocks * (uint64_t)block_bytes(job->type),
                            .source = coded->source,
                            .first_rows = coded->first_rows,
                            .y = (float *)job->y->data + part.first * job->rows,
                            .parts = coded->parts,
                            .rows = (uint64_t)job->rows,
                            .columns = (uint32_t)part.count,
                            .width = coded->width,
                            .blocks = coded->blocks,
                            .blocks_kept = coded->blocks_kept,
                            .flip = 0x80808080};
    args.aligned = ((uintptr_t)args.weights | args.weights_stride) % 4 == 0;
    ww_status status = take_counters(stream, &args.ready);
    if (status == WW_OK)
        status = code_few(stream, job, part, coded, refused, &args);
    return status == WW_OK ? launch_groups(stream, job, part, coded, &args) : status;
}

/* ---- all of it ----------------------------------------------------------------------------------------------------------- */

static ww_status multiply_part(gpu_stream *stream, const quant_product_job *job, columns_part part, uint64_t *refused)
{
    gpu_device *device = stream->device;
    const bool tiles = goes_by_tiles(job);
    quant_coded coded = tiles ? quant_coded_tiles(job->type, job->cols, part.count, gpu_quant_tiles_of(device))
                              : quant_coded_few(job->type, job->cols, part.count);
    ww_status status = WW_OK;
    if (job->first_rows)
        status = send_groups(stream, job, part, &coded);
    if (status != WW_OK)
        return status;
    if (!tiles) {
        share_few(device, job, &coded);
        return multiply_few(stream, job, part, &coded, refused);
    }
    status = gpu_quant_code_tiles(stream, job, part, &coded, refused);
    return status == WW_OK ? gpu_quant_tiles(stream, job, part, &coded) : status;
}

static ww_status multiply_blocks(gpu_stream *stream, const quant_product_job *job)
{
    uint64_t refused = UINT64_MAX;
    void *flag = NULL;
    ww_status status = WW_OK;
    if (job->refused) {
        status = gpu_workspace(stream, TENSORS_WORKSPACE_REFUSED, sizeof refused, &flag);
        if (status == WW_OK)
            status = gpu_fill(stream, flag, UINT32_MAX, sizeof refused / sizeof(uint32_t));
    }
    const int64_t fit = CODES_BYTES / job->cols / QUANT_TILE * QUANT_TILE + QUANT_TILE;
    const int64_t most = fit < COLUMNS_MOST ? fit : COLUMNS_MOST;
    for (int64_t done = 0; status == WW_OK && done < job->columns; done += most) {
        const columns_part part = {done, job->columns - done < most ? job->columns - done : most};
        status = multiply_part(stream, job, part, flag);
    }
    if (status == WW_OK && job->refused)
        status = gpu_copy_out(stream, &refused, flag, sizeof refused);
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
    gpu_stream *stream;
    driver_context previous = NULL;
    ww_status status = check_counts(job);
    if (status == WW_OK)
        status = gpu_tensors_enter(device, &stream, &previous);
    if (status != WW_OK)
        return status;
    bool done = false;
    const bool blocks = dot_activations(job->type) >= 0;
    if (job->refused)
        *job->refused = -1;
    if (job->fast && blocks)
        status = gpu_quant_fast(stream, job, &done);
    if (status == WW_OK && !done)
        status = blocks ? multiply_blocks(stream, job) : multiply_plain(stream, job);
    if (status == WW_OK && job->refused)
        status = gpu_synchronize(stream);
    return gpu_tensors_leave(device, previous, status);
}
