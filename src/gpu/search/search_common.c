/* Shared by all searches on a GPU: uploading the mask, counting the blocks that the device holds, the lists in which blocks
 * leave their keys, and writing results. The device finds the k best keys of each query in order. A key holds the row and the
 * score; they are separated here.
 */
#include "gpu/search/search_common.h"

#include <string.h>

#include "base/float_guard.h"
#include "base/status.h"
#include "device/results.h"

enum {
    REGISTERS_PER_UNIT = 65536, /* 32-bit registers of a compute unit, at least */
    BLOCKS_PER_UNIT_MAX = 8,
    BLOCKS_PER_UNIT_GUESS = 2,     /* if the driver does not say what a kernel needs */
    GIVEN_DIRECT_BYTES = 64 << 10, /* bytes of queries that kernels read from host memory, 32 bytes per transfer over the bus */
};

static const size_t lists_bytes_max = (size_t)512 << 20;

/* ---- mask and queries ---------------------------------------------------------------------------------------------------- */

/* Copies the mask's whole words and, without the bits past its rows, its last word. */
ww_status gpu_search_mask(gpu_stream *stream, int32_t number, const search_job *job, const uint64_t **mask, uint32_t *words)
{
    *mask = NULL;
    *words = 0;
    if (job->mask == NULL)
        return WW_OK;
    const int64_t rows = job->mask_rows < (int64_t)UINT32_MAX ? job->mask_rows : (int64_t)UINT32_MAX;
    const size_t whole = (size_t)(rows / SEARCH_WORD_ROWS);
    const uint64_t last = rows % SEARCH_WORD_ROWS ? job->mask[whole] & (((uint64_t)1 << rows % SEARCH_WORD_ROWS) - 1) : 0;
    void *words_on_device = NULL;
    ww_status status = gpu_workspace(stream, number, (whole + 1) * sizeof last, &words_on_device);
    if (status == WW_OK && whole > 0)
        status = gpu_copy_in(stream, words_on_device, job->mask, whole * sizeof last);
    if (status == WW_OK)
        status = gpu_copy_in(stream, (uint64_t *)words_on_device + whole, &last, sizeof last);
    *mask = words_on_device;
    *words = (uint32_t)whole + 1;
    return status;
}

/* Makes the round's queries readable for kernels. */
static ww_status stage_queries(search *s, int64_t first, int64_t count, void **given)
{
    const search_job *job = s->job;
    const float *queries = job->queries + first * job->query_stride;
    if (job->queries_on_device) {
        *given = (void *)(uintptr_t)queries;
        return WW_OK;
    }
    const size_t row_bytes = (size_t)job->dim * sizeof(float);
    if ((size_t)count * row_bytes > GIVEN_DIRECT_BYTES) {
        const ww_status status = gpu_workspace(s->stream, WORKSPACE_GIVEN, (size_t)count * row_bytes, given);
        return status != WW_OK
                   ? status
                   : gpu_copy_in_pieces(s->stream, *given,
                                        (host_pieces){queries, row_bytes, (size_t)job->query_stride * sizeof(float), count});
    }
    const ww_status status = gpu_pinned(s->stream, PINNED_GIVEN, GIVEN_DIRECT_BYTES, given);
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        memcpy((char *)*given + (size_t)i * row_bytes, queries + i * job->query_stride, row_bytes);
    return status;
}

ww_status gpu_search_gather(gpu_stream *stream, const search_job *job, const int64_t *numbers, int64_t count, float *to)
{
    const size_t bytes = (size_t)job->dim * sizeof *to;
    ww_status status = WW_OK;
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        const float *query = job->queries + numbers[i] * job->query_stride;
        if (job->queries_on_device)
            status = gpu_copy_out(stream, to + i * job->dim, query, bytes);
        else
            memcpy(to + i * job->dim, query, bytes);
    }
    return status;
}

ww_status search_prepare_queries(search *s, int64_t first, int64_t count, search_queries *queries, uint32_t **taken)
{
    const search_job *job = s->job;
    const size_t slots = (size_t)search_plan_slots(&s->plan, count);
    const size_t floats = slots * (size_t)canon_padded(job->dim);
    void *given = NULL, *packed = NULL;
    ww_status status = stage_queries(s, first, count, &given);
    if (status == WW_OK)
        status = gpu_workspace(s->stream, WORKSPACE_QUERIES,
                               (floats + slots) * sizeof(float) + slots * (sizeof(uint64_t) + sizeof(uint32_t)), &packed);
    if (status != WW_OK)
        return status;
    /* The packed rows are a multiple of 256 bytes, so what follows them is aligned. */
    queries->packed = packed;
    queries->worst = (uint64_t *)(queries->packed + floats);
    queries->norms = (float *)(queries->worst + slots);
    queries->count = (uint32_t)count;
    queries->slots = (uint32_t)slots;
    *taken = (uint32_t *)(queries->norms + slots);
    const search_prepare_args args = {.from = given, .queries = *queries, .taken = *taken, .dim = job->dim};
    return launch_search_prepare(s->stream, grid_of((int64_t)(slots + 15) / 16), SEARCH_THREADS, 0, &args);
}

/* ---- blocks and lists -----------------------------------------------------------------------------------------------------
 */

/* Counts blocks of `threads` threads with `shared_bytes` of dynamic shared memory. */
static int64_t blocks_per_unit(const gpu_device *device, const driver_function_limits *limits, int32_t threads,
                               size_t shared_bytes)
{
    int64_t blocks =
        limits->registers > 0 ? REGISTERS_PER_UNIT / ((limits->registers + 7) / 8 * 8 * threads) : BLOCKS_PER_UNIT_GUESS;
    const int64_t shared = limits->shared_static_bytes + (int64_t)shared_bytes;
    if (shared_bytes > 0) /* a unit has at least as much as a block may use */
        blocks = min_i64(blocks, device->base.info.shared_bytes_per_block / shared);
    return blocks < 1 ? 1 : min_i64(blocks, BLOCKS_PER_UNIT_MAX);
}

static ww_status resident_blocks(gpu_device *device, int32_t kernel, int32_t threads, size_t shared_bytes, int64_t *blocks)
{
    driver_function_limits limits;
    const ww_status status = gpu_kernel_limits(device, kernel, &limits);
    if (status == WW_OK)
        *blocks = blocks_per_unit(device, &limits, threads, shared_bytes) *
                  (device->base.info.compute_units > 0 ? device->base.info.compute_units : 1);
    return status;
}

ww_status gpu_search_resident(gpu_device *device, int32_t kernel, int64_t *blocks)
{
    return resident_blocks(device, kernel, SEARCH_THREADS, 0, blocks);
}

ww_status search_resident(search *s, int32_t kernel, int64_t *blocks)
{
    return resident_blocks(s->device, kernel, s->plan.threads, s->plan.shared_bytes, blocks);
}

ww_status search_make_lists(search *s, int64_t slots, int64_t resident, search_lists *lists)
{
    const size_t list_bytes = (size_t)s->plan.list_capacity * sizeof(uint64_t);
    const size_t found_bytes = (size_t)s->plan.list_trigger * sizeof(uint64_t);
    const size_t lists_max = (lists_bytes_max >> 4 * s->shrunk) / (list_bytes + found_bytes);
    const int64_t parts = search_plan_parts(
        &s->plan, &(search_parts_size){
                      .slots = slots, .words = s->rows.word_count, .resident = resident, .lists_max = (int64_t)lists_max});
    const size_t count = (size_t)(parts * slots);
    void *keys = NULL, *found = NULL;
    ww_status status = gpu_workspace(s->stream, WORKSPACE_LISTS, count * list_bytes, &keys);
    if (status == WW_OK)
        status = gpu_workspace(s->stream, WORKSPACE_FOUND, count * found_bytes, &found);
    *lists = (search_lists){.keys = keys,
                            .found = found,
                            .capacity = (uint32_t)s->plan.list_capacity,
                            .trigger = (uint32_t)s->plan.list_trigger,
                            .kept_max = (uint32_t)s->plan.list_kept_max,
                            .parts = (uint32_t)parts,
                            .k = (uint32_t)s->job->k};
    return status;
}

/* ---- results ------------------------------------------------------------------------------------------------------------- */

void gpu_search_write(const search_job *job, int64_t query, const canon_key *best)
{
    results_from_keys(job->metric, job->k, best, job->rows + query * job->k, job->scores + query * job->k);
}

ww_status gpu_search_report(const search_job *job, int64_t done)
{
    if (progress_tell(job->progress, job->progress_user, done, job->query_count))
        return ww_fail(WW_CANCELLED, "the search was cancelled");
    return WW_OK;
}

int64_t gpu_search_rows(const search_job *job)
{
    int64_t rows = 0;
    for (int64_t i = 0; i < job->segment_count; i++)
        rows += job->segments[i].count;
    return rows;
}

bool gpu_search_rows_are_far(const search_job *job)
{
    bool far = false;
    for (int64_t i = 0; i < job->segment_count && !far; i++)
        far = job->segments[i].rows_on_host;
    return far;
}

void gpu_search_mark_queries(const search_job *job, const int64_t *numbers, int64_t count, uint8_t mark)
{
    for (int64_t i = 0; job->marks && i < count; i++)
        job->marks[numbers[i]] |= mark;
}
