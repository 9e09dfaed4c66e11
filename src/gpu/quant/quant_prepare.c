/* What goes before a product by tiles on a GPU: columns are coded, and weights unpacked into a workspace, some rows at a time.
 * Neither waits for the other: weights are being unpacked while the last columns are coded.
 */
#include "arithmetic/blocks/dot.h"
#include "gpu/launch.h"
#include "gpu/quant/quant.h"
#include "gpu/tensor/tensor.h"

enum {
    UNPACK_BLOCKS = 24,    /* of threads, for each compute unit */
    UNPACK_SHARED = 100000 /* bytes of shared memory that a block may have where copies are in the background */
};

ww_status gpu_quant_code_tiles(gpu_stream *stream, const quant_product_job *job, columns_part part, quant_coded *coded,
                               uint64_t *refused)
{
    void *there = NULL;
    const quant_coded_bytes bytes = quant_coded_size(job->type, coded);
    const ww_status status = gpu_workspace(stream, TENSORS_WORKSPACE_CODED, bytes.codes + bytes.sums + bytes.factors, &there);
    if (status != WW_OK)
        return status;
    coded->codes = there;
    coded->sums = coded->codes + bytes.codes / sizeof(uint32_t);
    coded->factors = (float *)(coded->sums + bytes.sums / sizeof(uint32_t));
    const char *x = (const char *)job->x->data + job->x_offset;
    const quant_columns_args args = {.from = x + part.first * job->cols * block_bytes(job->x_type),
                                     .from_type = job->x_type,
                                     .from_stride = (uint64_t)job->cols,
                                     .elements = (uint64_t)job->cols,
                                     .codes = coded->codes,
                                     .factors = coded->factors,
                                     .sums = coded->sums,
                                     .refused = refused,
                                     .number = (uint64_t)part.first * coded->blocks,
                                     .columns = (uint32_t)part.count,
                                     .places = coded->places,
                                     .blocks = coded->blocks,
                                     .blocks_kept = coded->blocks_kept,
                                     .tiles = coded->tiles};
    const int64_t elements = (int64_t)coded->blocks_kept * block_length(job->type);
    const gpu_grid grid = grid_early(grid_of_2(elements / 1024, (part.count + QUANT_COLUMNS - 1) / QUANT_COLUMNS));
    return block_length(job->type) == BLOCK_LARGE ? launch_quant_columns_large(stream, grid, QUANT_THREADS, 0, &args)
                                                  : launch_quant_columns_small(stream, grid, QUANT_THREADS, 0, &args);
}

ww_status gpu_quant_unpack(gpu_stream *stream, const quant_product_job *job, const quant_coded *coded, int64_t first,
                           int64_t rows, quant_unpacked *out)
{
    gpu_device *device = stream->device;
    const int64_t places = (rows + QUANT_TILE - 1) / QUANT_TILE * QUANT_TILE,
                  row_bytes = (int64_t)coded->blocks * block_bytes(job->type);
    const quant_coded shape = {.places = (uint32_t)places, .blocks_kept = coded->blocks_kept, .tiles = QUANT_FOR_TILES};
    quant_coded_bytes bytes = quant_coded_size(job->type, &shape);
    bytes.codes = (size_t)(places * coded->blocks_kept * quant_code_bytes(job->type));
    void *there = NULL;
    ww_status status = gpu_workspace(stream, TENSORS_WORKSPACE_WEIGHTS, bytes.codes + bytes.sums + bytes.factors, &there);
    if (status != WW_OK)
        return status;
    out->codes = there;
    out->records = out->codes + bytes.codes / sizeof(uint32_t);
    out->mins = (float *)out->records; /* of small blocks, which have no records */
    out->factors = (float *)(out->records + bytes.sums / sizeof(uint32_t));
    out->places = places;
    const bool large = block_length(job->type) == BLOCK_LARGE;
    driver_function_limits limits;
    status = gpu_kernel_limits(device, large ? GPU_KERNEL_quant_unpack_large : GPU_KERNEL_quant_unpack_small, &limits);
    if (status != WW_OK)
        return status;
    const quant_unpack_args args = {.weights = (const uint8_t *)job->weights->data + job->weights_offset + first * row_bytes,
                                    .weights_stride = (uint64_t)row_bytes,
                                    .codes = out->codes,
                                    .factors = out->factors,
                                    .mins = out->mins,
                                    .records = out->records,
                                    .rows = (uint32_t)rows,
                                    .places = (uint32_t)places,
                                    .blocks = coded->blocks,
                                    .blocks_kept = coded->blocks_kept,
                                    .type = job->type,
                                    .tiles = coded->tiles,
                                    .apart = first == 0,
                                    .stages = limits.shared_dynamic_bytes_max < UNPACK_SHARED ? 2 : 3};
    const uint32_t length = (uint32_t)block_length(job->type),
                   room = quant_unpack_room((uint32_t)block_bytes(job->type), length);
    const int64_t down = places / QUANT_UNPACK_ROWS, across = (int64_t)coded->blocks_kept * length / QUANT_UNPACK_ELEMENTS;
    const int64_t wanted = ((int64_t)device->base.info.compute_units * UNPACK_BLOCKS + down - 1) / down;
    const gpu_grid grid = grid_early(grid_of_2(wanted < across ? wanted : across, down));
    return large ? launch_quant_unpack_large(stream, grid, QUANT_THREADS, (size_t)room * args.stages, &args)
                 : launch_quant_unpack_small(stream, grid, QUANT_THREADS, (size_t)room * args.stages, &args);
}
