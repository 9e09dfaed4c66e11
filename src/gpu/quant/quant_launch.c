/* Launches the kernel of a planned quantized product, once if the grid can hold all rows, and a fold if thread blocks share a
 * tile.
 */
#include "arithmetic/blocks/dot.h"
#include "base/integers.h"
#include "device/matmul_job.h"
#include "gpu/blas/blas.h"
#include "gpu/launch.h"
#include "gpu/quant/quant_product.h"
#include "gpu/tensor/tensor.h"

/* The rows of a launch. Kernels also use the number of all rows as the stride between columns of results, so a launch that
 * starts at a later row cannot be given another end. The last launch therefore ends with the last row in its last thread block
 * and starts a whole number of thread blocks before. A few rows may be computed twice, with the same bits. */
typedef struct row_piece {
    int64_t first, blocks;
} row_piece;

static row_piece row_piece_at(int64_t done, int64_t rows, int64_t at_once, int64_t block_rows)
{
    const int64_t blocks = divide_up_i64(min_i64(rows - done, at_once), block_rows);
    return (row_piece){done > 0 && done + at_once > rows ? rows - blocks * block_rows : done, blocks};
}

static ww_status launch_float(quant_product *p)
{
    const quant_product_job *job = p->job;
    quant_float_args args = {.weights = quant_weights(p),
                             .x = (const float *)quant_x(p),
                             .y = job->y->data,
                             .first_rows = p->first_rows,
                             .rows = (uint64_t)job->rows,
                             .columns = (uint64_t)job->columns,
                             .weights_stride = (uint64_t)p->plan.blocks * (uint64_t)block_bytes(job->type),
                             .cols = (uint64_t)job->cols,
                             .type = job->type,
                             .together = p->first_rows ? 1 : QUANT_FLOAT_COLUMNS};
    enum { BLOCK_ROWS = QUANT_THREADS / 16 };
    const int64_t together = args.together, groups = divide_up_i64(job->columns, together);
    const int64_t y_max = gpu_blocks_y_max(p->stream->device);
    const int64_t at_once = gpu_blocks_of(p->stream->device, QUANT_THREADS) * BLOCK_ROWS;
    ww_status status = WW_OK;
    for (int64_t row = 0; status == WW_OK && row < job->rows; row += at_once) {
        const row_piece piece = row_piece_at(row, job->rows, at_once, BLOCK_ROWS);
        args.weights = quant_weights(p) + (uint64_t)piece.first * args.weights_stride;
        args.y = (float *)job->y->data + piece.first;
        for (int64_t done = 0; status == WW_OK && done < groups; done += y_max) {
            const gpu_grid grid = grid_of_2(piece.blocks, min_i64(groups - done, y_max));
            args.first_column = (uint64_t)(done * together);
            status = launch_quant_float_product(p->stream, grid, QUANT_THREADS, 0, &args);
        }
    }
    return status;
}

/* Multiplies with the vendor's BLAS, or with our kernels for AMD's matrix units. */
static ww_status launch_fast(quant_product *p)
{
    const quant_product_job *job = p->job;
    if (!p->blas) {
        const matmul_job own = {.type = TYPE_BF16,
                                .fast = true,
                                .m = job->columns,
                                .n = p->plan.rows,
                                .k = job->cols,
                                .a = p->x_bf16,
                                .a_row = job->cols,
                                .a_column = 1,
                                .b = p->weights_bf16,
                                .b_row = 1,
                                .b_column = job->cols,
                                .c = (float *)job->y->data + p->plan.first_row,
                                .c_row = job->rows};
        return gpu_matmul_fast_launch(p->stream, &own);
    }
    const blas_product product = {.type = BLAS_BF16,
                                  .f32_results = true,
                                  .m = job->columns,
                                  .n = p->plan.rows,
                                  .k = job->cols,
                                  .batch = 1,
                                  .a = {.data = p->x_bf16, .stride = job->cols},
                                  .b = {.data = p->weights_bf16, .stride = job->cols, .transposed = true},
                                  .c = (float *)job->y->data + p->plan.first_row,
                                  .c_stride = job->rows,
                                  .alpha = 1.0};
    return gpu_blas_multiply(p->stream->device, p->blas, &product);
}

static quant_gemv_args gemv_args(const quant_product *p)
{
    const quant_plan *plan = &p->plan;
    quant_gemv_args args = {.weights = quant_weights(p),
                            .weights_stride = (uint64_t)plan->blocks * (uint64_t)block_bytes(p->job->type),
                            .codes = p->activations.codes,
                            .factors = p->activations.factors,
                            .sums = p->activations.sums,
                            .source = p->source,
                            .first_rows = p->first_rows,
                            .y = (float *)p->job->y->data + plan->first_column * p->job->rows,
                            .partial = p->activations.partial,
                            .ready = p->counters,
                            .rows = (uint64_t)p->job->rows,
                            .columns = (uint32_t)plan->columns,
                            .width = plan->width,
                            .splits = plan->splits,
                            .blocks = plan->blocks,
                            .blocks_padded = plan->blocks_padded,
                            .stages = plan->stages,
                            .flip = 0x80808080,
                            .adds = p->job->fusion.adds,
                            .stays = plan->stay_blocks > 0,
                            .independent = p->overlaps,
                            .x = p->x,
                            .refused = p->refused,
                            .first_block = (uint64_t)plan->first_column * plan->blocks,
                            .input = quant_input_of(p)};
    args.aligned = ((uintptr_t)args.weights | args.weights_stride) % 4 == 0;
    return args;
}

static ww_status launch_gemv(quant_product *p)
{
    const quant_plan *plan = &p->plan;
    quant_gemv_args args = gemv_args(p);
    const int64_t groups = plan->columns_padded / QUANT_GEMV_COLUMNS;
    const int64_t rows = p->job->rows, at_once = plan->rows_at_once;
    const int64_t y_max = gpu_blocks_y_max(p->stream->device);
    const uint8_t *const weights = args.weights;
    float *const y = args.y;
    ww_status status = WW_OK;
    for (int64_t row = 0; status == WW_OK && row < rows; row += at_once) {
        const row_piece piece = row_piece_at(row, rows, at_once, QUANT_GEMV_ROWS);
        args.weights = weights + (uint64_t)piece.first * args.weights_stride;
        args.y = y + piece.first;
        for (int64_t done = 0; status == WW_OK && done < groups; done += y_max) {
            const int64_t blocks = plan->stay_blocks > 0 ? plan->stay_blocks : piece.blocks * plan->splits;
            const gpu_grid grid = grid_of_2(blocks, min_i64(groups - done, y_max));
            args.first_group = (uint32_t)done;
            status = gpu_launch(p->stream, plan->kernel, (gpu_shape){grid_early(grid), plan->threads, plan->shared_bytes},
                                &args, sizeof args);
        }
    }
    const size_t bytes = (size_t)(plan->columns * rows) * sizeof(float);
    if (status == WW_OK && p->overlaps)
        gpu_writes_too(p->stream, y, bytes);
    else if (status == WW_OK && groups <= y_max && rows <= at_once)
        gpu_writes(p->stream, y, bytes);
    return status;
}

static ww_status launch_tiles(quant_product *p)
{
    const quant_plan *plan = &p->plan;
    const uint32_t across = plan->columns_padded / QUANT_TILE;
    const int64_t tiles = (int64_t)(plan->rows_padded / QUANT_TILE) * across;
    float *partial = p->sums + plan->sums_floats * QUANT_TILE_LEVELS;
    const quant_tile_fold_args fold = {.partial = partial,
                                       .y = (float *)p->job->y->data + plan->first_column * p->job->rows + plan->first_row,
                                       .y_stride = (uint64_t)p->job->rows,
                                       .rows = (uint32_t)plan->rows,
                                       .columns = (uint32_t)plan->columns,
                                       .across = across,
                                       .splits = plan->splits};
    const quant_tile_args args = {.row_codes = p->weights.codes,
                                  .column_codes = p->activations.codes,
                                  .row_factors = p->weights.factors,
                                  .row_mins = (const float *)p->weights.sums,
                                  .column_factors = p->activations.factors,
                                  .column_sums = (const float *)p->activations.sums,
                                  .row_records = p->weights.sums,
                                  .column_records = p->activations.sums,
                                  .parked = p->sums,
                                  .partial = plan->splits > 1 ? partial : NULL,
                                  .y = fold.y,
                                  .y_stride = fold.y_stride,
                                  .rows = fold.rows,
                                  .columns = fold.columns,
                                  .rows_padded = plan->rows_padded,
                                  .blocks_padded = plan->blocks_padded,
                                  .across = across,
                                  .classes = QUANT_CLASSES / plan->splits,
                                  .stages = plan->stages,
                                  .records = plan->records,
                                  .sums_in_shared = plan->sums_in_shared,
                                  .layout = plan->layout,
                                  .has_min = dot_has_min(p->job->type)};
    ww_status status =
        gpu_launch(p->stream, plan->kernel, (gpu_shape){grid_of_2(tiles, plan->splits), plan->threads, plan->shared_bytes},
                   &args, sizeof args);
    if (status == WW_OK && plan->splits > 1)
        status = gpu_launch(p->stream, plan->fold_kernel,
                            (gpu_shape){grid_of_2(tiles, QUANT_FOLD_BLOCKS), plan->fold_threads, 0}, &fold, sizeof fold);
    return status;
}

ww_status quant_launch(quant_product *p)
{
    switch (p->plan.strategy) {
    case QUANT_FLOAT:
        return launch_float(p);
    case QUANT_BF16:
        return launch_fast(p);
    case QUANT_WGMMA:
    case QUANT_TILES:
        return launch_tiles(p);
    default:
        return launch_gemv(p);
    }
}
