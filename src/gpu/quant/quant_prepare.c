/* Prepares a quantized product: allocates workspaces, codes activations and unpacks weights. Coding and unpacking do not wait
 * for each other: weights are unpacked while the last columns are coded.
 */
#include "arithmetic/blocks/dot.h"
#include "gpu/launch.h"
#include "gpu/quant/quant_product.h"
#include "gpu/tensor/tensor.h"
#include "kernels/quant/quant_gemv_layout.h"

enum {
    UNPACK_BLOCKS = 24,   /* thread blocks for each compute unit */
    SLOT_UNIT = 256,      /* slots of a workspace are multiples of this */
    WHOLE_COLS_MAX = 4096 /* longest column that every thread block codes for itself even if all wait for it */
};

static gpu_grid threads_grid(int64_t threads)
{
    return grid_of((threads + QUANT_THREADS - 1) / QUANT_THREADS);
}

static quant_coded lay_out(void *workspace, quant_coded_bytes bytes)
{
    quant_coded coded = {.codes = workspace};
    coded.sums = coded.codes + bytes.codes / sizeof(uint32_t);
    coded.factors = (float *)(coded.sums + bytes.sums / sizeof(uint32_t));
    coded.partial = coded.factors + bytes.factors / sizeof(float);
    return coded;
}

static ww_status take_coded(gpu_stream *stream, int32_t number, quant_coded_bytes bytes, quant_coded *out)
{
    void *workspace = NULL;
    const ww_status status = gpu_workspace(stream, number, quant_coded_total(bytes), &workspace);
    if (status == WW_OK)
        *out = lay_out(workspace, bytes);
    return status;
}

/* ---- plain weights, and experts ------------------------------------------------------------------------------------------ */

static quant_experts_args experts_of(const quant_product *p)
{
    const quant_product_job *job = p->job;
    const int64_t first = p->plan.first_column;
    return (quant_experts_args){.ids = (const char *)job->ids + first * job->id_bytes,
                                .y = (float *)job->y->data + first * job->rows,
                                .rows = (uint64_t)job->rows,
                                .experts = (uint64_t)job->experts,
                                .columns = (uint32_t)p->plan.columns,
                                .id_bytes = job->id_bytes};
}

static ww_status find_first_rows(quant_product *p)
{
    void *rows = NULL;
    const ww_status status =
        gpu_workspace(p->stream, TENSORS_WORKSPACE_GROUPS, (size_t)p->job->columns * sizeof(uint64_t), &rows);
    if (status != WW_OK)
        return status;
    quant_experts_args args = experts_of(p);
    args.first_rows = rows;
    p->first_rows = rows;
    return launch_quant_expert_rows(p->stream, threads_grid(p->job->columns), QUANT_THREADS, 0, &args);
}

/* Queues the grouping of columns by ids that are on the device. */
static ww_status find_groups(quant_product *p)
{
    const size_t groups = p->plan.columns_padded / QUANT_GEMV_COLUMNS;
    void *rows = NULL;
    const ww_status status = gpu_workspace(p->stream, TENSORS_WORKSPACE_GROUPS,
                                           groups * (sizeof(uint64_t) + QUANT_GEMV_COLUMNS * sizeof(uint32_t)), &rows);
    if (status != WW_OK)
        return status;
    quant_experts_args args = experts_of(p);
    args.groups = (uint32_t)groups;
    args.first_rows = rows;
    args.source = (uint32_t *)(args.first_rows + groups);
    p->first_rows = args.first_rows;
    p->source = args.source;
    return launch_quant_expert_groups(p->stream, grid_of(1), QUANT_THREADS, 0, &args);
}

/* ---- vendor BLAS --------------------------------------------------------------------------------------------------------- */

static ww_status narrow_activations(quant_product *p)
{
    const size_t count = (size_t)(p->job->columns * p->job->cols);
    void *x = NULL;
    const ww_status status = gpu_workspace(p->stream, TENSORS_WORKSPACE_ACTIVATIONS, count * sizeof(uint16_t), &x);
    if (status != WW_OK)
        return status;
    p->x_bf16 = x;
    const size_t at_once = (size_t)gpu_blocks_max(p->stream->device) * QUANT_THREADS; /* of one launch */
    ww_status launched = WW_OK;
    for (size_t done = 0; launched == WW_OK && done < count; done += at_once) {
        const size_t now = count - done < at_once ? count - done : at_once;
        const quant_activations_bf16_args args = {
            .from = (const float *)quant_x(p) + done, .to = (uint16_t *)x + done, .count = now};
        launched = launch_quant_activations_bf16(p->stream, threads_grid((int64_t)now), QUANT_THREADS, 0, &args);
    }
    return launched;
}

static ww_status prepare_fast(quant_product *p)
{
    const quant_product_job *job = p->job;
    const int64_t row_bytes = (int64_t)p->plan.blocks * block_bytes(job->type), elements = p->plan.rows * job->cols;
    void *halves = NULL;
    ww_status status = p->plan.first_row == 0 ? narrow_activations(p) : WW_OK;
    if (status == WW_OK)
        status = gpu_workspace(p->stream, TENSORS_WORKSPACE_WEIGHTS, (size_t)elements * sizeof(uint16_t), &halves);
    if (status != WW_OK)
        return status;
    p->weights_bf16 = halves;
    const quant_weights_bf16_args args = {.from = quant_weights(p) + p->plan.first_row * row_bytes,
                                          .to = halves,
                                          .eights = (uint64_t)elements / 8,
                                          .type = job->type};
    return launch_quant_weights_bf16(p->stream, threads_grid(elements / 8), QUANT_THREADS, 0, &args);
}

/* ---- gemv ---------------------------------------------------------------------------------------------------------------- */

/* Takes a slot of the workspace; several products of this kind may run at the same time. */
static ww_status take_slot(quant_product *p)
{
    gpu_stream *stream = p->stream;
    const size_t bytes = (quant_coded_total(p->plan.activations) + SLOT_UNIT - 1) / SLOT_UNIT * SLOT_UNIT * GPU_OVERLAP;
    void *workspace = NULL;
    const ww_status status = gpu_workspace(stream, TENSORS_WORKSPACE_GEMV_SLOTS, bytes, &workspace);
    if (status != WW_OK)
        return status;
    const size_t slot_bytes = stream->workspaces[TENSORS_WORKSPACE_GEMV_SLOTS].bytes / GPU_OVERLAP / SLOT_UNIT * SLOT_UNIT;
    stream->gemv_slots.last++;
    p->activations = lay_out((char *)workspace + slot_bytes * (stream->gemv_slots.last % GPU_OVERLAP), p->plan.activations);
    return WW_OK;
}

/* Counters are 0 before and after each product. */
static ww_status take_counters(quant_product *p)
{
    gpu_stream *stream = p->stream;
    void *counters = NULL;
    ww_status status = gpu_workspace(stream, TENSORS_WORKSPACE_COUNTERS, QUANT_READY_COUNTERS * sizeof(uint32_t), &counters);
    if (status == WW_OK && !stream->gemv_slots.zeroed)
        status = gpu_fill(stream, counters, 0, QUANT_READY_COUNTERS);
    stream->gemv_slots.zeroed = status == WW_OK;
    p->counters = counters;
    return status;
}

/* Bytes of x per column. */
static int64_t column_bytes(const quant_product_job *job)
{
    const int32_t type = job->coded ? dot_activations(job->type) : job->x_type;
    return job->cols / block_length(type) * block_bytes(type);
}

/* Stride between rows of x, in floats, or in bytes if x is coded. */
static int64_t column_stride(const quant_product_job *job)
{
    return job->coded ? column_bytes(job) : job->fusion.x_stride > 0 ? job->fusion.x_stride : job->cols;
}

static ww_status code_activations(quant_product *p, const char *x, bool independent)
{
    const quant_plan *plan = &p->plan;
    const quant_gemv_activations_args args = {.from = (const float *)(const void *)x,
                                              .from_stride = (uint64_t)column_stride(p->job),
                                              .source = p->source,
                                              .codes = p->activations.codes,
                                              .factors = p->activations.factors,
                                              .sums = p->activations.sums,
                                              .refused = p->refused,
                                              .first_block = (uint64_t)plan->first_column * plan->blocks,
                                              .columns = (uint32_t)plan->columns,
                                              .columns_padded = plan->columns_padded,
                                              .width = plan->width,
                                              .blocks = plan->blocks,
                                              .blocks_padded = plan->blocks_padded,
                                              .type = dot_activations(p->job->type),
                                              .rotation = stage_rotation(p->job->type),
                                              .independent = independent,
                                              .coded = p->job->coded,
                                              .input = quant_input_of(p)};
    const int64_t units = plan->k_blocks ? plan->blocks_padded : (plan->blocks_padded + 3) / 4;
    const int64_t threads = units * (p->source ? args.columns_padded : args.columns) * QUANT_TEAM;
    const gpu_grid grid = args.input.kind == INPUT_NORM ? grid_of(args.columns) : threads_grid(threads);
    return launch_quant_gemv_activations(p->stream, grid_early(grid), QUANT_THREADS, 0, &args);
}

/* Returns true if the product may read its inputs and write y before the work queued before it has ended. */
static bool is_independent(const quant_product *p, const char *x)
{
    const quant_fusion *fusion = &p->job->fusion;
    return !p->source && fusion->input == INPUT_PLAIN && !fusion->adds &&
           gpu_leaves_alone(p->stream, x, (size_t)(p->plan.columns * column_bytes(p->job)));
}

static ww_status prepare_gemv(quant_product *p)
{
    const quant_plan *plan = &p->plan;
    const quant_product_job *job = p->job;
    const char *x = quant_x(p) + plan->first_column * column_stride(job) * (job->coded ? 1 : (int64_t)sizeof(float));
    ww_status status = job->ids ? find_groups(p) : WW_OK;
    const bool independent = is_independent(p, x);
    /* If all thread blocks wait for a column, it is faster to code it with a kernel of its own, unless it is short. */
    p->overlaps = plan->strategy == QUANT_STAY && !job->coded && independent && gpu_may_overlap(p->stream);
    const bool stay_codes = plan->strategy == QUANT_STAY && !job->coded && (p->overlaps || job->cols <= WHOLE_COLS_MAX);
    p->x = stay_codes || plan->strategy == QUANT_DIRECT ? (const float *)(const void *)x : NULL;
    if (status == WW_OK && plan->splits > 1)
        status = take_counters(p);
    if (status == WW_OK && (!p->x || plan->splits > 1))
        status =
            p->source ? take_coded(p->stream, TENSORS_WORKSPACE_ACTIVATIONS, plan->activations, &p->activations) : take_slot(p);
    return status == WW_OK && !p->x ? code_activations(p, x, independent) : status;
}

/* ---- tiles --------------------------------------------------------------------------------------------------------------- */

static ww_status code_columns(quant_product *p)
{
    const quant_product_job *job = p->job;
    const quant_plan *plan = &p->plan;
    const ww_status status = take_coded(p->stream, TENSORS_WORKSPACE_ACTIVATIONS, plan->activations, &p->activations);
    if (status != WW_OK)
        return status;
    const quant_tile_activations_args args = {.from = quant_x(p) + plan->first_column * column_bytes(job),
                                              .from_type = job->x_type,
                                              .from_stride = (uint64_t)(job->coded ? column_bytes(job) : job->cols),
                                              .elements = (uint64_t)job->cols,
                                              .codes = p->activations.codes,
                                              .factors = p->activations.factors,
                                              .sums = p->activations.sums,
                                              .refused = p->refused,
                                              .first_block = (uint64_t)plan->first_column * plan->blocks,
                                              .columns = (uint32_t)plan->columns,
                                              .columns_padded = plan->columns_padded,
                                              .blocks = plan->blocks,
                                              .blocks_padded = plan->blocks_padded,
                                              .layout = plan->layout};
    const int64_t elements = (int64_t)plan->blocks_padded * block_length(job->type);
    const gpu_grid grid = grid_early(grid_of_2(elements / 1024, (plan->columns + QUANT_COLUMNS - 1) / QUANT_COLUMNS));
    return plan->k_blocks ? launch_quant_tile_activations_kblock(p->stream, grid, QUANT_THREADS, 0, &args)
                          : launch_quant_tile_activations_block32(p->stream, grid, QUANT_THREADS, 0, &args);
}

static ww_status unpack_weights(quant_product *p)
{
    const int32_t type = p->job->type;
    const quant_plan *plan = &p->plan;
    const ww_status status = take_coded(p->stream, TENSORS_WORKSPACE_WEIGHTS, plan->weights, &p->weights);
    if (status != WW_OK)
        return status;
    const uint64_t row_bytes = (uint64_t)plan->blocks * (uint64_t)block_bytes(type);
    const quant_unpack_args args = {.weights = quant_weights(p) + (uint64_t)plan->first_row * row_bytes,
                                    .weights_stride = row_bytes,
                                    .codes = p->weights.codes,
                                    .factors = p->weights.factors,
                                    .mins = (float *)p->weights.sums,
                                    .records = p->weights.sums,
                                    .rows = (uint32_t)plan->rows,
                                    .rows_padded = plan->rows_padded,
                                    .blocks = plan->blocks,
                                    .blocks_padded = plan->blocks_padded,
                                    .type = type,
                                    .layout = plan->layout,
                                    .independent = plan->first_row == 0, /* only the coding of columns was queued before it */
                                    .stages = plan->unpack_stages};
    const uint32_t length = (uint32_t)block_length(type), room = quant_unpack_stage((uint32_t)block_bytes(type), length);
    const int64_t down = plan->rows_padded / QUANT_UNPACK_ROWS;
    const int64_t across = (int64_t)plan->blocks_padded * length / QUANT_UNPACK_ELEMENTS;
    const int64_t wanted = ((int64_t)p->stream->device->base.info.compute_units * UNPACK_BLOCKS + down - 1) / down;
    const gpu_grid grid = grid_early(grid_of_2(wanted < across ? wanted : across, down));
    return gpu_launch(p->stream, plan->unpack_kernel, (gpu_shape){grid, QUANT_THREADS, (size_t)room * args.stages}, &args,
                      sizeof args);
}

static ww_status prepare_tiles(quant_product *p)
{
    void *sums = NULL;
    ww_status status = p->plan.first_row == 0 ? code_columns(p) : WW_OK;
    if (status == WW_OK)
        status = unpack_weights(p);
    if (status == WW_OK)
        status = gpu_workspace(p->stream, TENSORS_WORKSPACE_SUMS, p->plan.sums_floats * (QUANT_TILE_LEVELS + 1) * sizeof(float),
                               &sums);
    p->sums = sums;
    return status;
}

ww_status quant_prepare(quant_product *p)
{
    switch (p->plan.strategy) {
    case QUANT_FLOAT:
        return p->job->ids ? find_first_rows(p) : WW_OK;
    case QUANT_BF16:
        return prepare_fast(p);
    case QUANT_WGMMA:
    case QUANT_TILES:
        return prepare_tiles(p);
    default:
        return prepare_gemv(p);
    }
}
