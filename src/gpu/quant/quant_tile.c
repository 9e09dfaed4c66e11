/* Products with many columns on a GPU: weights are unpacked into a workspace, some rows at a time, and multiplied by tiles. */
#include <string.h>

#include "arithmetic/blocks/dot.h"
#include "gpu/launch.h"
#include "gpu/quant/quant.h"
#include "gpu/tensor/tensor.h"

enum {
    TILES_MOST = 512,       /* of a launch: each has up to 256 KiB of sums in memory */
    TILE_LEVELS = 3,        /* of sums that wait for others */
    UNPACKED_MOST = 1 << 28 /* bytes of codes */
};

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
    const int64_t tile_bytes = (int64_t)coded->blocks_kept * quant_code_bytes(job->type) * QUANT_TILE;
    const int64_t tiles = smaller(TILES_MOST / across, UNPACKED_MOST / tile_bytes);
    return (tiles > 1 ? tiles : 1) * QUANT_TILE;
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

/* -1: never, 0: where there is code for it, 1: in the emulator, too, which has every kernel. */
static _Atomic int32_t tuned_wide = 0;

void gpu_quant_tune(int32_t wide)
{
    tuned_wide = wide;
}

bool gpu_quant_has_engine(const gpu_device *device)
{
    return device->capabilities.sm_90a_code;
}

bool gpu_quant_is_wide(const gpu_device *device)
{
    return tuned_wide >= 0 && (device->capabilities.sm_90a_code || (tuned_wide > 0 && device->capabilities.emulated));
}

int32_t gpu_quant_tiles_of(const gpu_device *device)
{
    return gpu_quant_is_wide(device) ? QUANT_FOR_WIDE_TILES : QUANT_FOR_TILES;
}

/* Shared memory of a kernel: as many stages as there is room for, of `most` and `least` of them; what it wants
 * besides; and, if there is room for that as well, sums that wait. */
typedef struct tile_room {
    size_t stage, once, sums;
    uint32_t most, least;
} tile_room;

static ww_status choose_stages(gpu_device *device, int32_t kernel, tile_room room, quant_tile_args *args, size_t *shared)
{
    driver_function_limits limits;
    const ww_status status = gpu_kernel_limits(device, kernel, &limits);
    if (status != WW_OK)
        return status;
    args->stages = room.most;
    while (args->stages > room.least && (int64_t)(room.once + args->stages * room.stage) > limits.shared_dynamic_bytes_max)
        args->stages--;
    *shared = room.once + args->stages * room.stage;
    args->room = room.sums > 0 && (int64_t)(*shared + room.sums) <= limits.shared_dynamic_bytes_max;
    *shared += args->room ? room.sums : 0;
    return WW_OK;
}

static ww_status launch_wide(gpu_stream *stream, int32_t type, gpu_grid grid, quant_tile_args *args)
{
    gpu_device *device = stream->device;
    const tile_room room = {(size_t)QUANT_WIDE_STAGE_WORDS * 4, QUANT_WIDE_ALIGNMENT, QUANT_WIDE_ROOM_BYTES, QUANT_WIDE_STAGES,
                            1};
    size_t shared = 0;
    const ww_status status = choose_stages(device, GPU_KERNEL_quant_wgmma_small, room, args, &shared);
    if (status != WW_OK)
        return status;
    return dot_has_min(type) ? launch_quant_wgmma_small_min(stream, grid, QUANT_WIDE_THREADS, shared, args)
                             : launch_quant_wgmma_small(stream, grid, QUANT_WIDE_THREADS, shared, args);
}

static ww_status launch_large(gpu_stream *stream, int32_t type, gpu_grid grid, quant_tile_args *args)
{
    gpu_device *device = stream->device;
    tile_room room = {QUANT_TILE_LARGE_BYTES, QUANT_WIDE_ALIGNMENT, QUANT_WIDE_ROOM_BYTES, QUANT_LARGE_STAGES, 2};
    size_t shared = 0;
    ww_status status = WW_OK;
    for (args->stages = 0, args->records = QUANT_LARGE_RECORDS + 1;
         status == WW_OK && args->records > 1 && args->stages <= 2;) {
        args->records--;
        room.once = QUANT_WIDE_ALIGNMENT + args->records * QUANT_TILE_RECORDS_BYTES;
        status = choose_stages(device, GPU_KERNEL_quant_wgmma_large, room, args, &shared);
    }
    if (status != WW_OK)
        return status;
    return dot_has_min(type) ? launch_quant_wgmma_large_min(stream, grid, QUANT_LARGE_THREADS, shared, args)
                             : launch_quant_wgmma_large(stream, grid, QUANT_LARGE_THREADS, shared, args);
}

static ww_status launch_tiles(gpu_stream *stream, int32_t type, gpu_grid grid, quant_tile_args *args)
{
    gpu_device *device = stream->device;
    const bool large = is_large(type);
    const tile_room room = {large ? QUANT_TILE_LARGE_BYTES : QUANT_TILE_SMALL_BYTES, large ? QUANT_TILE_RECORDS_BYTES : 0, 0, 4,
                            2};
    size_t shared = 0;
    const ww_status status =
        choose_stages(device, large ? GPU_KERNEL_quant_tile_large : GPU_KERNEL_quant_tile_small, room, args, &shared);
    if (status != WW_OK)
        return status;
#define LAUNCH(name) launch_quant_tile_##name(stream, grid, QUANT_TILE_THREADS, shared, args)
    if (large)
        return dot_has_min(type) ? LAUNCH(large_min) : LAUNCH(large);
    return dot_has_min(type) ? LAUNCH(small_min) : LAUNCH(small);
#undef LAUNCH
}

/* All kinds of tiles alike: `parts` blocks of threads for each, whose sums are added behind them. */
static ww_status launch_all(gpu_stream *stream, int32_t type, int32_t kind, int64_t tiles, quant_tile_args *args,
                            const quant_fold_args *to)
{
    const gpu_grid grid = grid_of_2(tiles, to->parts);
    const bool wide = kind == QUANT_FOR_WIDE_TILES, large = is_large(type);
    const ww_status status = !wide   ? launch_tiles(stream, type, grid, args)
                             : large ? launch_large(stream, type, grid, args)
                                     : launch_wide(stream, type, grid, args);
    if (status != WW_OK || to->parts == 1)
        return status;
    const gpu_grid shared = grid_of_2(tiles, QUANT_FOLD_BLOCKS);
    return !wide   ? launch_quant_fold(stream, shared, QUANT_TILE_THREADS, 0, to)
           : large ? launch_quant_wgmma_large_fold(stream, shared, QUANT_LARGE_TEAMS * 128, 0, to)
                   : launch_quant_wgmma_small_fold(stream, shared, QUANT_WIDE_TEAMS * 128, 0, to);
}

static ww_status multiply(gpu_stream *stream, const quant_product_job *job, const quant_coded *coded,
                          const quant_unpacked *weights, quant_fold_args *to)
{
    gpu_device *device = stream->device;
    const int64_t across = coded->places / QUANT_TILE, tiles = weights->places / QUANT_TILE * across;
    const int64_t parts = parts_of(tiles, device->base.info.compute_units);
    const size_t floats = (size_t)(tiles * parts * QUANT_TILE) * QUANT_TILE;
    void *sums = NULL;
    ww_status status = gpu_workspace(stream, TENSORS_WORKSPACE_SUMS, floats * (TILE_LEVELS + 1) * sizeof(float), &sums);
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
                            .column_sums = (const float *)coded->sums,
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
    return launch_all(stream, job->type, coded->tiles, tiles, &args, to);
}

ww_status gpu_quant_tiles(gpu_stream *stream, const quant_product_job *job, columns_part part, const quant_coded *coded)
{
    const int64_t most = rows_at_once(job, coded);
    ww_status status = WW_OK;
    for (int64_t first = 0; status == WW_OK && first < job->rows; first += most) {
        quant_unpacked weights = {0};
        const int64_t rows = smaller(most, job->rows - first);
        quant_fold_args to = {.y = (float *)job->y->data + part.first * job->rows + first,
                              .y_stride = (uint64_t)job->rows,
                              .rows = (uint32_t)rows,
                              .columns = (uint32_t)part.count};
        status = gpu_quant_unpack(stream, job, coded, first, rows, &weights);
        if (status == WW_OK)
            status = multiply(stream, job, coded, &weights, &to);
    }
    return status;
}
