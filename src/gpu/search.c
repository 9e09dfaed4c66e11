/* Searching on a GPU: queries up, two or three launches, keys down.
 *
 * The segments' table and the mask are uploaded once a search; queries go in rounds. A few queries are packed here and go up
 * with the table in one copy, since then each call to the driver counts; many are packed by a kernel. Everything on the device
 * lives in the stream's workspaces, so that a search of a size that was there before allocates nothing. The device finds the k
 * best keys of each query in order; a key holds the row and the score, which are taken apart here.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "gpu/launch.h"
#include "gpu/rows.h"
#include "gpu/screen.h"
#include "gpu/search.h"
#include "gpu/search_plan.h"
#include "kernels/packed.h"

enum { WORKSPACE_TABLE, WORKSPACE_MASK, WORKSPACE_GIVEN, WORKSPACE_QUERIES, WORKSPACE_LISTS, WORKSPACE_COUNTS, WORKSPACE_BEST };

enum {
    REGISTERS_PER_UNIT = 65536, /* of 32 bits, that a compute unit has at least */
    BLOCKS_PER_UNIT_MAX = 8,
    BLOCKS_PER_UNIT_GUESS = 2, /* where the driver does not say what a kernel needs */
};

static const size_t lists_bytes_max = (size_t)512 << 20;

typedef struct search {
    gpu_device *device;
    gpu_stream *queue;
    const search_job *job;
    search_plan plan;
    search_segment *table; /* host: the segments that have rows */
    size_t table_bytes;
    search_rows rows;
    canon_key *best; /* host: a round's results */
} search;

/* By shape and metric. */
#define SAME_FOR_COSINE(name) {GPU_KERNEL_##name##_dot, GPU_KERNEL_##name##_l2, GPU_KERNEL_##name##_dot}
static const int32_t kernels[][3] = {
    [SEARCH_SHAPE_FEW_1] = SAME_FOR_COSINE(search_few_1),
    [SEARCH_SHAPE_FEW_4] = SAME_FOR_COSINE(search_few_4),
    [SEARCH_SHAPE_FEW_8] = SAME_FOR_COSINE(search_few_8),
    [SEARCH_SHAPE_HELD_1] = {GPU_KERNEL_search_held_1_cosine, GPU_KERNEL_search_held_1_l2, GPU_KERNEL_search_held_1_dot},
    [SEARCH_SHAPE_HELD_2] = {GPU_KERNEL_search_held_2_cosine, GPU_KERNEL_search_held_2_l2, GPU_KERNEL_search_held_2_dot},
    [SEARCH_SHAPE_TALL] = SAME_FOR_COSINE(search_tall),
    [SEARCH_SHAPE_WIDE] = SAME_FOR_COSINE(search_wide),
};

/* ---- what is searched ---------------------------------------------------------------------------------------------------- */

/* Lists the segments that have rows, as the device wants them. */
static ww_status make_table(search *s)
{
    const size_t bytes = (size_t)s->job->segment_count * sizeof(search_segment);
    s->table = memory_take(bytes);
    if (s->table == NULL)
        return memory_failed("the table of segments", bytes);
    size_t filled = 0;
    uint32_t words = 0;
    for (int64_t i = 0; i < s->job->segment_count; i++) {
        const segment *from = &s->job->segments[i];
        if (from->count == 0)
            continue;
        words += (uint32_t)((from->count + SEARCH_WORD_ROWS - 1) / SEARCH_WORD_ROWS);
        s->table[filled++] = (search_segment){.rows = from->rows.data,
                                              .norms = from->norms.data,
                                              .live = from->live.data,
                                              .first_row = (uint32_t)from->first_row,
                                              .word_end = words};
    }
    s->rows.word_count = words;
    s->table_bytes = filled * sizeof *s->table;
    return WW_OK;
}

static ww_status upload_table(search *s)
{
    void *there = NULL;
    ww_status status = gpu_workspace(s->device, s->queue, WORKSPACE_TABLE, s->table_bytes, &there);
    if (status == WW_OK)
        status = gpu_copy_in(s->device, s->queue, there, s->table, s->table_bytes);
    s->rows.segments = there;
    return status;
}

/* The mask's whole words as they are, and its last one without the bits past its rows. */
ww_status gpu_search_mask(gpu_device *device, gpu_stream *queue, int32_t number, const search_job *job, const uint64_t **mask,
                          uint32_t *words)
{
    *mask = NULL;
    *words = 0;
    if (job->mask == NULL)
        return WW_OK;
    const int64_t rows = job->mask_rows < (int64_t)UINT32_MAX ? job->mask_rows : (int64_t)UINT32_MAX;
    const size_t whole = (size_t)(rows / SEARCH_WORD_ROWS);
    const uint64_t last = rows % SEARCH_WORD_ROWS ? job->mask[whole] & (((uint64_t)1 << rows % SEARCH_WORD_ROWS) - 1) : 0;
    void *there = NULL;
    ww_status status = gpu_workspace(device, queue, number, (whole + 1) * sizeof last, &there);
    if (status == WW_OK && whole > 0)
        status = gpu_copy_in(device, queue, there, job->mask, whole * sizeof last);
    if (status == WW_OK)
        status = gpu_copy_in(device, queue, (uint64_t *)there + whole, &last, sizeof last);
    *mask = there;
    *words = (uint32_t)whole + 1;
    return status;
}

/* ---- one round ----------------------------------------------------------------------------------------------------------- */

static bool few(const search *s)
{
    return s->plan.shape <= SEARCH_SHAPE_FEW_8;
}

/* Packs up to `slots` queries into a bundle; missing ones are zero. */
static void pack_bundle(const search_job *job, int64_t count, size_t slots, float *bundle)
{
    static const int32_t behind[4] = {0, 32, 16, 48};
    const int32_t runs = packed_runs(job->dim);
    memset(bundle, 0, slots * (size_t)canon_padded(job->dim) * sizeof *bundle);
    for (int64_t q = 0; q < count; q++)
        for (int32_t run = 0; run < runs; run++)
            for (int32_t group = 0; group < PACKED_GROUPS; group++) {
                float *to = bundle + packed_in_bundle(runs, run, group, (int32_t)slots, (int32_t)q);
                for (int32_t i = 0; i < 4; i++) {
                    const int32_t element = run * CANON_LANES + packed_first(group) + behind[i];
                    if (element < job->dim)
                        to[i] = job->queries[q * job->query_stride + element];
                }
            }
}

/* All that a search of a few queries needs, in one block and one copy: the packed queries, their thresholds, the table. */
static ww_status prepare_few(search *s, int64_t count, search_queries *queries)
{
    const size_t slots = (size_t)s->plan.slot_queries;
    const size_t packed_bytes = slots * (size_t)canon_padded(s->job->dim) * sizeof(float);
    const size_t worst_bytes = slots * sizeof(uint64_t);
    const size_t bytes = packed_bytes + worst_bytes + s->table_bytes;
    char *block = memory_take_aligned(bytes);
    if (block == NULL)
        return memory_failed("the queries of a search", bytes);
    pack_bundle(s->job, count, slots, (float *)(void *)block);
    memset(block + packed_bytes, 0xff, worst_bytes); /* CANON_KEY_WORST */
    memcpy(block + packed_bytes + worst_bytes, s->table, s->table_bytes);
    void *there = NULL;
    ww_status status = gpu_workspace(s->device, s->queue, WORKSPACE_QUERIES, bytes, &there);
    if (status == WW_OK)
        status = gpu_copy_in(s->device, s->queue, there, block, bytes);
    memory_give(block);
    if (status != WW_OK)
        return status;
    *queries = (search_queries){.packed = there,
                                .worst = (uint64_t *)there + packed_bytes / sizeof(uint64_t),
                                .count = (uint32_t)count,
                                .slots = (uint32_t)slots};
    s->rows.segments = (const search_segment *)(const void *)(queries->worst + slots);
    return WW_OK;
}

/* Uploads a round's queries and has them packed. */
static ww_status prepare_many(search *s, int64_t first, int64_t count, search_queries *queries)
{
    const search_job *job = s->job;
    const size_t slots = (size_t)search_plan_slots(&s->plan, count);
    const size_t floats = slots * (size_t)canon_padded(job->dim);
    const size_t row_bytes = (size_t)job->dim * sizeof(float);
    void *given = NULL, *packed = NULL;
    ww_status status = gpu_workspace(s->device, s->queue, WORKSPACE_GIVEN, (size_t)count * row_bytes, &given);
    if (status == WW_OK)
        status = gpu_workspace(s->device, s->queue, WORKSPACE_QUERIES,
                               (floats + 4 + slots) * sizeof(float) + slots * sizeof(uint64_t), &packed);
    if (status == WW_OK)
        status = gpu_copy_in_pieces(s->device, s->queue, given, job->queries + first * job->query_stride, row_bytes,
                                    (size_t)job->query_stride * sizeof(float), count);
    if (status != WW_OK)
        return status;
    /* The packed rows are a multiple of 256 bytes, so that what stands behind them is aligned. */
    queries->packed = packed;
    queries->zeros = queries->packed + floats;
    queries->worst = (uint64_t *)(queries->zeros + 4);
    queries->norms = (float *)(queries->worst + slots);
    queries->count = (uint32_t)count;
    queries->slots = (uint32_t)slots;
    const search_prepare_args args = {.from = given, .queries = *queries, .dim = job->dim};
    return launch_search_prepare(s->device, s->queue, grid_of((int64_t)(slots + 15) / 16), SEARCH_THREADS, 0, &args);
}

ww_status gpu_search_resident(gpu_device *device, int32_t kernel, int64_t *blocks)
{
    driver_function_limits limits;
    const ww_status status = gpu_kernel_limits(device, kernel, &limits);
    if (status != WW_OK)
        return status;
    int64_t per_unit =
        limits.registers > 0 ? REGISTERS_PER_UNIT / ((limits.registers + 7) / 8 * 8 * SEARCH_THREADS) : BLOCKS_PER_UNIT_GUESS;
    per_unit = per_unit < 1 ? 1 : per_unit > BLOCKS_PER_UNIT_MAX ? BLOCKS_PER_UNIT_MAX : per_unit;
    *blocks = per_unit * (device->base.info.compute_units > 0 ? device->base.info.compute_units : 1);
    return WW_OK;
}

static ww_status make_lists(search *s, const search_queries *queries, int64_t resident, search_lists *lists)
{
    const size_t list_bytes = (size_t)s->plan.list_capacity * sizeof(uint64_t);
    const int64_t parts =
        search_plan_parts(&s->plan, queries->slots, s->rows.word_count, resident, (int64_t)(lists_bytes_max / list_bytes));
    const size_t count = (size_t)parts * queries->slots;
    void *keys = NULL, *counts = NULL;
    ww_status status = gpu_workspace(s->device, s->queue, WORKSPACE_LISTS, count * list_bytes, &keys);
    if (status == WW_OK)
        status = gpu_workspace(s->device, s->queue, WORKSPACE_COUNTS, count * sizeof(uint32_t), &counts);
    *lists = (search_lists){.keys = keys,
                            .counts = counts,
                            .capacity = (uint32_t)s->plan.list_capacity,
                            .trigger = (uint32_t)s->plan.list_trigger,
                            .kept_max = (uint32_t)s->plan.list_kept_max,
                            .parts = (uint32_t)parts,
                            .k = (uint32_t)s->job->k};
    return status;
}

/* Queues a round's launches and brings its keys to s->best. */
static ww_status search_round(search *s, int64_t first, int64_t count)
{
    const int32_t kernel = kernels[s->plan.shape][s->job->metric];
    search_args args = {0};
    int64_t resident = 1;
    void *best = NULL;
    const size_t best_bytes = (size_t)count * (size_t)s->job->k * sizeof(canon_key);
    ww_status status = few(s) ? prepare_few(s, count, &args.queries) : prepare_many(s, first, count, &args.queries);
    args.rows = s->rows;
    if (status == WW_OK)
        status = gpu_search_resident(s->device, kernel, &resident);
    if (status == WW_OK)
        status = make_lists(s, &args.queries, resident, &args.lists);
    if (status == WW_OK)
        status = gpu_workspace(s->device, s->queue, WORKSPACE_BEST, best_bytes, &best);
    if (status == WW_OK)
        status = gpu_launch(s->device, s->queue, kernel,
                            grid_of_2(args.lists.parts, args.queries.slots / (uint32_t)s->plan.slot_queries), SEARCH_THREADS, 0,
                            &args, sizeof args);
    if (status != WW_OK)
        return status;
    const search_merge_args merge = {
        .lists = args.lists, .worst = args.queries.worst, .best = best, .slots = args.queries.slots};
    status = launch_search_merge(s->device, s->queue, grid_of(count), SEARCH_THREADS, 0, &merge);
    if (status == WW_OK)
        status = gpu_copy_out(s->device, s->queue, s->best, best, best_bytes);
    return status;
}

/* ---- results ------------------------------------------------------------------------------------------------------------- */

static void write_nothing(const search_job *job)
{
    for (int64_t i = 0; i < job->query_count * job->k; i++) {
        job->rows[i] = -1;
        job->scores[i] = job->metric == CANON_L2 ? INFINITY : -INFINITY;
    }
}

void gpu_search_write(const search_job *job, int64_t query, const canon_key *best)
{
    const float worst = job->metric == CANON_L2 ? INFINITY : -INFINITY;
    int64_t *rows = job->rows + query * job->k;
    float *scores = job->scores + query * job->k;
    for (int32_t i = 0; i < job->k; i++) {
        const bool found = best[i] != CANON_KEY_WORST;
        rows[i] = found ? (int64_t)canon_key_row(best[i]) : -1;
        scores[i] = found ? canon_key_score(job->metric, best[i]) : worst;
    }
}

ww_status gpu_search_report(const search_job *job, int64_t done)
{
    if (job->progress && job->progress(done, job->query_count, job->progress_user) != 0)
        return ww_fail(WW_CANCELLED, "the search was cancelled by its progress callback");
    return WW_OK;
}

int64_t gpu_search_rows(const search_job *job)
{
    int64_t rows = 0;
    for (int64_t i = 0; i < job->segment_count; i++)
        rows += job->segments[i].count;
    return rows;
}

static ww_status search_rounds(search *s)
{
    const search_job *job = s->job;
    const size_t bytes = (size_t)s->plan.chunk * (size_t)job->k * sizeof *s->best;
    s->best = memory_take(bytes);
    if (s->best == NULL)
        return memory_failed("the results of a search", bytes);
    ww_status status = WW_OK;
    for (int64_t first = 0; status == WW_OK && first < job->query_count; first += s->plan.chunk) {
        const int64_t left = job->query_count - first, count = left < s->plan.chunk ? left : s->plan.chunk;
        status = gpu_search_report(job, first);
        if (status == WW_OK)
            status = search_round(s, first, count);
        for (int64_t i = 0; status == WW_OK && i < count; i++)
            gpu_search_write(job, first + i, s->best + i * job->k);
    }
    memory_give(s->best);
    return status == WW_OK ? gpu_search_report(job, job->query_count) : status;
}

static ww_status search_borrowed(search *s)
{
    ww_status status = few(s) ? WW_OK : upload_table(s);
    if (status == WW_OK)
        status = gpu_search_mask(s->device, s->queue, WORKSPACE_MASK, s->job, &s->rows.mask, &s->rows.mask_words);
    if (status == WW_OK)
        status = search_rounds(s);
    return status;
}

ww_status gpu_rows_search(ww_device *device, const search_job *job)
{
    if (gpu_screen_pays(job))
        return gpu_screen_search(device, job);
    search s = {.device = gpu_of(device),
                .job = job,
                .plan = search_plan_make(job->query_count, job->dim, job->k, job->progress != NULL),
                .rows = {.runs = packed_runs(job->dim), .metric = job->metric}};
    ww_status status = make_table(&s);
    if (status == WW_OK && s.rows.word_count == 0) {
        write_nothing(job);
        status = gpu_search_report(job, job->query_count);
    } else if (status == WW_OK) {
        status = gpu_stream_borrow(s.device, &s.queue);
        if (status == WW_OK)
            status = gpu_stream_return(s.device, s.queue, search_borrowed(&s));
    }
    memory_give(s.table);
    if (status == WW_OK && job->stats)
        job->stats->rows_scored += job->query_count * gpu_search_rows(job);
    return status;
}
