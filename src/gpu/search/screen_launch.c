/* The kernels that test codes: which one a round uses, and its launch (screen_round.c chooses the shape):
 *
 *   screen_small_batch_1_*   one query: with all that follows, in two launches; _planes instead of _keep if there are planes
 *   screen_small_batch_4_*   up to 4, and _8_* up to 8: one pass over the codes, bound by memory
 *   screen_wgmma_*           more, on sm_90a: tiles by wgmma, fed by the copy engine; keep_3 for distances (one more term)
 *   screen_mfma_keep         more, on gfx908, gfx90a and gfx942: rows in registers; screen_batch_sample does the sample
 *   screen_batch_*           more, on all other chips, and for rows whose codes are offset (u8)
 *   screen_lists_*           any number of queries that read lists of an index
 *
 * Tests replace thresholds before a launch at link time, to check that defects are noticed.
 */
#include "gpu/search/screen_round.h"
#include "gpu/search/search.h"
#include "kernels/search/packed_layout.h"

static int32_t wgmma_kernel(const screen_round *round, bool sample)
{
    return sample                           ? GPU_KERNEL_screen_wgmma_sample
           : round->job->metric == CANON_L2 ? GPU_KERNEL_screen_wgmma_keep_3
                                            : GPU_KERNEL_screen_wgmma_keep_2;
}

int32_t screen_launch_kernel(const screen_round *round, bool sample)
{
    static const int32_t small_batch_kernels[3][2] = {
        {GPU_KERNEL_screen_small_batch_1_keep, GPU_KERNEL_screen_small_batch_1_sample},
        {GPU_KERNEL_screen_small_batch_4_keep, GPU_KERNEL_screen_small_batch_4_sample},
        {GPU_KERNEL_screen_small_batch_8_keep, GPU_KERNEL_screen_small_batch_8_sample}};
    const uint32_t slots = round->queries.slots;
    if (round->shape == SCREEN_SHAPE_WGMMA)
        return wgmma_kernel(round, sample);
    if (round->shape != SCREEN_SHAPE_BATCH && round->shape != SCREEN_SHAPE_MFMA)
        return slots == 1 && round->planes && !sample ? GPU_KERNEL_screen_small_batch_1_planes
                                                      : small_batch_kernels[slots == 1   ? 0
                                                                            : slots == 4 ? 1
                                                                                         : 2][sample];
    if (sample)
        return GPU_KERNEL_screen_batch_sample;
    return round->shape == SCREEN_SHAPE_MFMA ? GPU_KERNEL_screen_mfma_keep : GPU_KERNEL_screen_batch_keep;
}

static ww_status launch_scan(const screen_round *round, int32_t kernel, int64_t tiles, const screen_scan_args *args)
{
    const int64_t units = round->device->base.info.compute_units > 0 ? round->device->base.info.compute_units : 1;
    const int64_t slots = round->queries.slots;
    if (round->shape == SCREEN_SHAPE_WGMMA) {
        const int64_t columns = slots / SCREEN_WGMMA_QUERIES / round->teams; /* one block per compute unit */
        return gpu_launch(round->stream, kernel,
                          (gpu_shape){grid_of_2(screen_plan_parts(units, columns, tiles), columns),
                                      (int32_t)SCREEN_WGMMA_THREADS(round->teams),
                                      SCREEN_WGMMA_BYTES(round->teams, (uint32_t)args->rows.chunks, args->stages)},
                          args, sizeof *args);
    }
    int64_t resident = 1;
    const ww_status status = gpu_search_resident(round->device, kernel, &resident);
    if (status != WW_OK)
        return status;
    if (round->shape != SCREEN_SHAPE_BATCH && round->shape != SCREEN_SHAPE_MFMA)
        return gpu_launch(round->stream, kernel,
                          (gpu_shape){grid_of(tiles < 2 * resident ? (tiles + 1) / 2 : resident), SCREEN_THREADS, 0}, args,
                          sizeof *args);
    const int64_t columns = slots / SCREEN_TILE_QUERIES;
    if (kernel == GPU_KERNEL_screen_mfma_keep)
        return gpu_launch(
            round->stream, kernel,
            (gpu_shape){grid_of_2(screen_plan_parts(resident, columns, (tiles + 1) / 2), columns), SCREEN_THREADS, 0}, args,
            sizeof *args);
    return gpu_launch(round->stream, kernel,
                      (gpu_shape){grid_of_2(screen_plan_parts(resident, columns, tiles), columns), SCREEN_THREADS,
                                  (size_t)SCREEN_STAGES * SCREEN_STAGE_WORDS * sizeof(uint32_t)},
                      args, sizeof *args);
}

/* Buckets of the sample that no list fills stay without a row. */
static ww_status launch_lists(const screen_round *round, bool sample)
{
    const screen_list_work *work = round->work;
    const int32_t kernel = sample ? GPU_KERNEL_screen_lists_sample : GPU_KERNEL_screen_lists_keep;
    const screen_lists_args args = {.rows = round->rows,
                                    .queries = round->queries,
                                    .lists = work->lists,
                                    .items = work->items[sample],
                                    .pairs = work->pairs[sample],
                                    .item_count = work->item_count[sample],
                                    .all_count = work->all_count,
                                    .buckets = round->plan->sample_tiles * 4,
                                    .samples = round->samples,
                                    .kept = round->lists,
                                    .capacity = (uint32_t)round->plan->capacity};
    const size_t words = (size_t)args.buckets * args.queries.count * (sizeof(uint64_t) / sizeof(uint32_t));
    int64_t resident = 1;
    ww_status status = sample && words > 0 ? gpu_fill(round->stream, round->samples, UINT32_MAX, words) : WW_OK;
    if (status == WW_OK && args.item_count > 0)
        status = gpu_search_resident(round->device, kernel, &resident);
    if (status != WW_OK || args.item_count == 0)
        return status;
    return gpu_launch(round->stream, kernel,
                      (gpu_shape){grid_of(args.item_count < resident ? args.item_count : resident), SCREEN_THREADS, 0}, &args,
                      sizeof args);
}

ww_status screen_launch_scan(const screen_round *round, bool sample, int64_t tile_begin, int64_t tile_end)
{
    if (round->work)
        return launch_lists(round, sample);
    const screen_scan_args args = {.rows = round->rows,
                                   .queries = round->queries,
                                   .samples = round->samples,
                                   .sample_stride = round->plan->sample_stride,
                                   .sample_tiles = round->plan->sample_tiles,
                                   .tile_begin = (uint32_t)tile_begin,
                                   .tile_end = (uint32_t)tile_end,
                                   .lists = round->lists,
                                   .capacity = (uint32_t)round->plan->capacity,
                                   .k = (uint32_t)round->job->k,
                                   .best = round->best,
                                   .backward = round->backward,
                                   .pairs = round->pairs,
                                   .thirds = round->thirds,
                                   .guesses = round->guesses,
                                   .stages = round->stages};
    return launch_scan(round, screen_launch_kernel(round, sample), tile_end - tile_begin, &args);
}
