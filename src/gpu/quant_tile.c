/* Products with many columns on a GPU: weights are unpacked into a workspace, some rows at a time, and multiplied by tiles. */
#include "gpu/launch.h"
#include "gpu/quant.h"
#include "kernels/blocks_dot.h"

enum {
    TILES_MOST = 512,        /* of a launch: each has up to 256 KiB of sums in memory */
    TILE_LEVELS = 3,         /* of sums that wait for others */
    UNPACKED_MOST = 1 << 28, /* bytes of codes */
    GRID_Y_MAX = 65535
};

/* Unpacked rows. */
typedef struct unpacked {
    uint32_t *codes, *records;
    float *factors, *mins;
    int64_t places; /* of rows, whole tiles */
} unpacked;

static bool is_large(int32_t type)
{
    return block_length(type) == BLOCK_LARGE;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Rows at once: whole tiles, one at least. */
static int64_t rows_at_once(const quant_product_job *job, const quant_coded *coded)
{
    const int64_t across = coded->places / QUANT_TILE;
    const int64_t tile_bytes = (int64_t)coded->blocks_kept * block_length(job->type) * QUANT_TILE;
    const int64_t tiles = smaller(TILES_MOST / across, UNPACKED_MOST / tile_bytes);
    return (tiles > 1 ? tiles : 1) * QUANT_TILE;
}

static ww_status unpack(gpu_device *device, gpu_stream *queue, const quant_product_job *job, const quant_coded *coded,
                        int64_t first, int64_t rows, unpacked *out)
{
    const int64_t places = (rows + QUANT_TILE - 1) / QUANT_TILE * QUANT_TILE,
                  row_bytes = (int64_t)coded->blocks * block_bytes(job->type);
    const quant_coded shape = {.places = (uint32_t)places, .blocks_kept = coded->blocks_kept, .tiles = true};
    const quant_coded_bytes bytes = quant_coded_size(job->type, &shape);
    void *there = NULL;
    const ww_status status =
        gpu_workspace(device, queue, QUANT_WORKSPACE_WEIGHTS, bytes.codes + bytes.sums + bytes.factors, &there);
    if (status != WW_OK)
        return status;
    out->codes = there;
    out->records = out->codes + bytes.codes / sizeof(uint32_t);
    out->mins = (float *)out->records; /* of small blocks, which have no records */
    out->factors = (float *)(out->records + bytes.sums / sizeof(uint32_t));
    out->places = places;
    quant_unpack_args args = {.weights = (const uint8_t *)job->weights->data + job->weights_offset + first * row_bytes,
                              .weights_stride = (uint64_t)row_bytes,
                              .codes = out->codes,
                              .factors = out->factors,
                              .mins = out->mins,
                              .records = out->records,
                              .rows = (uint32_t)rows,
                              .places = (uint32_t)places,
                              .blocks = coded->blocks,
                              .blocks_kept = coded->blocks_kept,
                              .type = job->type};
    const int64_t across = ((int64_t)coded->blocks_kept * dot_pieces(job->type) + QUANT_THREADS - 1) / QUANT_THREADS;
    const size_t shared = is_large(job->type) ? 0 : (size_t)block_bytes(job->type) * QUANT_THREADS + 32;
    ww_status launched = WW_OK;
    for (int64_t done = 0; launched == WW_OK && done < places; done += GRID_Y_MAX) {
        args.first_row = (uint32_t)done;
        launched = launch_quant_unpack(device, queue, grid_of_2(across, smaller(places - done, GRID_Y_MAX)), QUANT_THREADS,
                                       shared, &args);
    }
    return launched;
}

/* Over how many blocks of threads the classes of a tile are spread: as many as leave the fewest compute units idle. */
static int64_t parts_of(int64_t tiles, int64_t units)
{
    int64_t best = 1, best_cost = INT64_MAX;
    for (int64_t parts = 1; parts <= QUANT_CLASSES; parts *= 2) {
        const int64_t rounds = (tiles * parts + units - 1) / units;
        const int64_t cost = rounds * 1000 / parts + (parts > 1 ? 60 + 10 * parts : 0); /* a fold costs time, too */
        if (cost < best_cost) {
            best = parts;
            best_cost = cost;
        }
    }
    return best;
}

static ww_status launch_tiles(gpu_device *device, gpu_stream *queue, int32_t type, gpu_grid grid, quant_tile_args *args)
{
    driver_function_limits limits;
    const bool large = is_large(type);
    const int32_t kernel = large ? GPU_KERNEL_quant_tile_large_32 : GPU_KERNEL_quant_tile_small;
    const ww_status status = gpu_kernel_limits(device, kernel, &limits);
    if (status != WW_OK)
        return status;
    const size_t stage = large ? QUANT_TILE_LARGE_BYTES : QUANT_TILE_SMALL_BYTES, once = large ? QUANT_TILE_RECORDS_BYTES : 0;
    args->stages = (int64_t)(once + 3 * stage) <= limits.shared_dynamic_bytes_max ? 3 : 2;
    const size_t shared = once + args->stages * stage;
#define LAUNCH(name) launch_quant_tile_##name(device, queue, grid, QUANT_TILE_THREADS, shared, args)
    switch (type) {
    case BLOCK_Q4_1:
    case BLOCK_Q5_1:
        return LAUNCH(small_min);
    case BLOCK_Q2_K:
        return LAUNCH(large_16_min);
    case BLOCK_Q3_K:
    case BLOCK_Q6_K:
        return LAUNCH(large_16);
    default:
        return large ? LAUNCH(large_32) : LAUNCH(small);
    }
#undef LAUNCH
}

static ww_status multiply(gpu_device *device, gpu_stream *queue, const quant_product_job *job, const quant_coded *coded,
                          const unpacked *weights, quant_fold_args *to)
{
    const int64_t across = coded->places / QUANT_TILE, tiles = weights->places / QUANT_TILE * across;
    const int64_t parts = parts_of(tiles, device->base.info.compute_units);
    const size_t floats = (size_t)(tiles * parts) * QUANT_TILE * QUANT_TILE;
    void *sums = NULL;
    ww_status status = gpu_workspace(device, queue, QUANT_WORKSPACE_SUMS, floats * (TILE_LEVELS + 1) * sizeof(float), &sums);
    if (status != WW_OK)
        return status;
    to->partial = (float *)sums + floats * TILE_LEVELS;
    to->across = (uint32_t)across;
    to->parts = (uint32_t)parts;
    quant_tile_args args = {.row_codes = weights->codes,
                            .column_codes = coded->codes,
                            .row_factors = weights->factors,
                            .row_mins = weights->mins,
                            .column_factors = coded->factors,
                            .column_sums = coded->sums,
                            .row_records = weights->records,
                            .column_records = coded->sums,
                            .parked = sums,
                            .partial = parts > 1 ? (float *)sums + floats * TILE_LEVELS : NULL,
                            .y = to->y,
                            .y_stride = to->y_stride,
                            .rows = to->rows,
                            .columns = to->columns,
                            .row_places = (uint32_t)weights->places,
                            .blocks_kept = coded->blocks_kept,
                            .across = (uint32_t)across,
                            .classes = (uint32_t)(QUANT_CLASSES / parts)};
    status = launch_tiles(device, queue, job->type, grid_of_2(tiles, parts), &args);
    if (status == WW_OK && parts > 1)
        status = launch_quant_fold(device, queue, grid_of(tiles), QUANT_TILE_THREADS, 0, to);
    return status;
}

ww_status gpu_quant_tiles(gpu_device *device, gpu_stream *queue, const quant_product_job *job, columns_part part,
                          const quant_coded *coded)
{
    const int64_t most = rows_at_once(job, coded);
    ww_status status = WW_OK;
    for (int64_t first = 0; status == WW_OK && first < job->rows; first += most) {
        unpacked weights = {0};
        const int64_t rows = smaller(most, job->rows - first);
        quant_fold_args to = {.y = (float *)job->y->data + part.first * job->rows + first,
                              .y_stride = (uint64_t)job->rows,
                              .rows = (uint32_t)rows,
                              .columns = (uint32_t)part.count};
        status = unpack(device, queue, job, coded, first, rows, &weights);
        if (status == WW_OK)
            status = multiply(device, queue, job, coded, &weights, &to);
    }
    return status;
}
