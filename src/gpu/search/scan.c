/* The full scan of a search: every admitted row is scored. One query by search_one.c, a batch in rounds of three launches.
 *
 * All device memory belongs to the stream, so a search of a size that was used before allocates nothing. Kernels read few
 * queries and write few results over the bus directly: starting a copy would take longer.
 *
 * When memory runs out, the search tries smaller rounds and shorter lists before it fails.
 */
#include "arithmetic/row_types.h"
#include "base/cancel.h"
#include "base/memory.h"
#include "gpu/search/search_common.h"

enum {
    BEST_DIRECT_BYTES = 1 << 20, /* bytes of results that kernels write to host memory; nothing waits for a write */
    SHRUNK_MAX = 5               /* retries with less memory: from 512 MiB of lists down to the minimum */
};

/* ---- plan ---------------------------------------------------------------------------------------------------------------- */

static search_plan make_plan(const search *s)
{
    const gpu_device *device = s->device;
    return search_plan_make((search_size){.queries = s->job->query_count,
                                          .dim = s->job->dim,
                                          .k = s->job->k,
                                          .watched = s->job->progress != NULL || cancel_given(),
                                          .element_bytes = (int32_t)row_type_bytes(s->job->type),
                                          .shared_bytes = device->base.info.shared_bytes_per_block,
                                          .stream_wave = device->capabilities.sm_90a_code ? device->base.info.wave_size : 0,
                                          .stream_queries = device->constants.stream_queries,
                                          .stream_teams = device->constants.stream_teams,
                                          .shrunk = s->shrunk});
}

/* ---- launch: one round -----------------------------------------------------------------------------------------------------
 */

/* For each shape, the kernel for dot and cosine, and the one for l2. */
static const int32_t kernels[][2] = {
    [SEARCH_SHAPE_REGISTERS_1] = {GPU_KERNEL_search_registers_1, GPU_KERNEL_search_registers_1},
    [SEARCH_SHAPE_REGISTERS_2] = {GPU_KERNEL_search_registers_2, GPU_KERNEL_search_registers_2},
    [SEARCH_SHAPE_TILE] = {GPU_KERNEL_search_tile, GPU_KERNEL_search_tile_l2},
    [SEARCH_SHAPE_STREAM] = {GPU_KERNEL_search_stream, GPU_KERNEL_search_stream}};

/* Queues the scoring and the merge of a round. The keys go to `best`. */
static ww_status score_queries(search *s, search_args *args, void *best)
{
    const int32_t kernel = kernels[s->plan.shape][s->rows.metric == CANON_L2];
    int64_t resident = 1;
    uint32_t *const taken = args->lists.taken;
    args->stages = (uint32_t)s->plan.stages;
    args->whole = s->plan.whole;
    ww_status status = search_resident(s, kernel, &resident);
    if (status == WW_OK)
        status = search_make_lists(s, args->queries.slots, resident, &args->lists);
    args->lists.taken = taken;
    const gpu_grid grid =
        grid_of_2(args->lists.parts / (uint32_t)s->plan.block_parts, args->queries.slots / (uint32_t)s->plan.slot_queries);
    if (status == WW_OK)
        status = gpu_launch(s->stream, kernel, (gpu_shape){grid, s->plan.threads, s->plan.shared_bytes}, args, sizeof *args);
    const search_merge_args merge = {.lists = args->lists, .worst = args->queries.worst, .best = best};
    if (status == WW_OK)
        status = launch_search_merge(s->stream, grid_of(args->queries.count), SEARCH_THREADS, 0, &merge);
    return status;
}

/* ---- collect --------------------------------------------------------------------------------------------------------------
 */

/* Searches for one round of queries. `spare` is host memory for its keys. */
static ww_status search_round(search *s, int64_t first, int64_t count, canon_key *spare)
{
    search_args args = {.rows = s->rows};
    const size_t best_bytes = (size_t)count * (size_t)s->job->k * sizeof(canon_key);
    const bool direct = best_bytes <= BEST_DIRECT_BYTES;
    void *best = NULL;
    ww_status status = direct ? gpu_pinned(s->stream, PINNED_BEST, best_bytes, &best)
                              : gpu_workspace(s->stream, WORKSPACE_BEST, best_bytes, &best);
    if (status == WW_OK)
        status = search_prepare_queries(s, first, count, &args.queries, &args.lists.taken);
    if (status == WW_OK)
        status = score_queries(s, &args, best);
    if (status == WW_OK)
        status = direct ? gpu_synchronize(s->stream) : gpu_copy_out(s->stream, spare, best, best_bytes);
    const canon_key *keys = direct ? best : spare;
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        gpu_search_write(s->job, first + i, keys + i * s->job->k);
    return status;
}

/* ---- all rounds ---------------------------------------------------------------------------------------------------------- */

static ww_status search_rounds(search *s)
{
    const search_job *job = s->job;
    const size_t bytes = (size_t)s->plan.round_queries * (size_t)job->k * sizeof(canon_key);
    canon_key *spare = bytes > BEST_DIRECT_BYTES ? memory_alloc(bytes) : NULL;
    if (spare == NULL && bytes > BEST_DIRECT_BYTES)
        return memory_failed("the results of a search", bytes);
    ww_status status = WW_OK;
    for (int64_t first = 0; status == WW_OK && first < job->query_count; first += s->plan.round_queries) {
        status = gpu_search_report(job, first);
        if (status == WW_OK)
            status = search_round(s, first, min_i64(job->query_count - first, s->plan.round_queries), spare);
    }
    memory_free(spare);
    return status;
}

/* Searches in rounds as large as memory allows. If a round runs out of memory, all rounds start again, smaller, with the same
 * results. */
ww_status scan_run(search *s)
{
    ww_status status = search_upload_table(s);
    if (status != WW_OK)
        return status;
    status = WW_OUT_OF_MEMORY;
    for (s->shrunk = 0; status == WW_OUT_OF_MEMORY && s->shrunk < SHRUNK_MAX; s->shrunk++) {
        s->plan = make_plan(s);
        status = s->plan.shape == SEARCH_SHAPE_ONE ? search_for_one(s) : search_rounds(s);
    }
    if (status == WW_OK)
        s->stats.rows_scored += s->job->query_count * gpu_search_rows(s->job);
    return status;
}
