/* Screened search on a GPU: queries up, five launches, keys down.
 *
 * The first answer for a query may be that its list was full: then the rows that were listed have given a better threshold, and
 * the query is asked once more with that and a longer list. If that is full, too, the screen cannot tell its rows apart, and
 * the plain search takes the query. Memory is bounded by the plan, and nothing waits for the device but the reading of results.
 */
#include "gpu/screen.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "gpu/rows.h"
#include "gpu/screen_plan.h"
#include "gpu/search.h"
#include "kernels/packed.h"

enum {
    WORKSPACE_TABLE,
    WORKSPACE_MASK,
    WORKSPACE_GIVEN,
    WORKSPACE_QUERIES,
    WORKSPACE_LISTS,
    WORKSPACE_SAMPLES,
    WORKSPACE_RESULTS
};

enum {
    ROWS_LEAST = 1 << 16,        /* below, a plain search takes no longer than the launches of a screened one */
    FEW_NUMBERS_LEAST = 1 << 24, /* the same for a few queries, in numbers of all rows */
    SAMPLE_STRIDE_LEAST = 4,     /* a sample of more than a quarter of the rows is no gain */
    SECOND_FACTOR = 8,           /* how much longer lists are the second time */
    SCORE_BLOCKS_MOST = 64       /* for one query */
};

static _Atomic int64_t tuned_rows_least = 0;
static _Atomic int32_t tuned_capacity = 0;

void gpu_screen_tune(int64_t rows_least, int32_t capacity)
{
    tuned_rows_least = rows_least;
    tuned_capacity = capacity;
}

/* Queries that are asked together. */
typedef struct asked {
    const float *queries;
    int64_t stride; /* floats */
    int64_t count;
    const int64_t *numbers; /* in the job, of each; or NULL: `first` and those behind it */
    int64_t first;
    const canon_key *known; /* thresholds, or NULL */
} asked;

/* Queries whose lists were full, and the best thresholds known of them. */
typedef struct leftover {
    int64_t *numbers;
    canon_key *thresholds;
    int64_t count;
} leftover;

typedef struct screen {
    gpu_device *device;
    gpu_stream *queue;
    const search_job *job;
    screen_plan plan;
    screen_rows rows;
    canon_key *results; /* host: a chunk's keys, thresholds and counts */
    leftover left;
    search_stats stats;
} screen;

static int64_t count_words(const search_job *job)
{
    int64_t words = 0;
    for (int64_t i = 0; i < job->segment_count; i++)
        words += (job->segments[i].count + 63) / 64;
    return words;
}

static screen_plan make_plan(const search_job *job, int64_t queries, int32_t capacity)
{
    return screen_plan_make((screen_size){.queries = queries,
                                          .dim = job->dim,
                                          .k = job->k,
                                          .words = count_words(job),
                                          .capacity = capacity,
                                          .watched = job->progress != NULL,
                                          .small = tuned_rows_least > 0});
}

bool gpu_screen_pays(const search_job *job)
{
    if (!job->screen)
        return false;
    for (int64_t i = 0; i < job->segment_count; i++)
        if (job->segments[i].count > 0 && job->segments[i].codes.data == NULL)
            return false;
    const int64_t words = count_words(job), least = tuned_rows_least;
    if (words < SCREEN_TILE_WORDS)
        return false;
    const screen_plan plan = make_plan(job, job->query_count, 0);
    if (plan.sample_tiles * 4 < (uint32_t)job->k)
        return false;
    if (least > 0)
        return words * 64 >= least;
    if (plan.sample_stride < SAMPLE_STRIDE_LEAST)
        return false;
    return words * 64 >= ROWS_LEAST &&
           (job->query_count > SCREEN_FEW_MAX || words * 64 * canon_padded(job->dim) >= FEW_NUMBERS_LEAST);
}

/* ---- what is searched ---------------------------------------------------------------------------------------------------- */

static ww_status upload_table(screen *s)
{
    const search_job *job = s->job;
    const size_t bytes = (size_t)job->segment_count * sizeof(screen_segment);
    screen_segment *table = memory_take(bytes);
    if (table == NULL)
        return memory_failed("the table of segments", bytes);
    uint32_t filled = 0, words = 0;
    for (int64_t i = 0; i < job->segment_count; i++) {
        const segment *from = &job->segments[i];
        if (from->count == 0)
            continue;
        words += (uint32_t)((from->count + 63) / 64);
        table[filled++] = (screen_segment){.rows = from->rows.data,
                                           .codes = from->codes.data,
                                           .scales = from->scales.data,
                                           .residuals = from->residuals.data,
                                           .norms = from->norms.data,
                                           .live = from->live.data,
                                           .first_row = (uint32_t)from->first_row,
                                           .word_end = words};
    }
    void *there = NULL;
    ww_status status = gpu_workspace(s->device, s->queue, WORKSPACE_TABLE, bytes, &there);
    if (status == WW_OK)
        status = gpu_copy_in(s->device, s->queue, there, table, filled * sizeof *table);
    s->rows = (screen_rows){
        .segments = there, .segment_count = filled, .word_count = words, .runs = packed_runs(job->dim), .metric = job->metric};
    memory_give(table);
    return status;
}

/* ---- one round ----------------------------------------------------------------------------------------------------------- */

/* Everything of a round on the device. */
typedef struct screen_round {
    screen_queries queries;
    uint64_t *samples, *lists, *best;
    bool few;
    size_t results_bytes;
} screen_round;

static ww_status take_workspaces(screen *s, int64_t count, screen_round *round)
{
    const size_t queries = (size_t)count, padded = (size_t)canon_padded(s->job->dim);
    const size_t unit = count == 1 ? 1 : count <= 4 ? 4 : count <= SCREEN_FEW_MAX ? 8 : SCREEN_TILE_QUERIES;
    const size_t slots = (queries + unit - 1) / unit * unit;
    const size_t buckets = (size_t)s->plan.sample_tiles * 4;
    const size_t best = queries * (size_t)s->job->k;
    void *held = NULL, *samples = NULL, *lists = NULL, *results = NULL;
    round->few = count <= SCREEN_FEW_MAX;
    round->results_bytes = (best + slots) * sizeof(uint64_t) + slots * sizeof(uint32_t);
    ww_status status = gpu_workspace(s->device, s->queue, WORKSPACE_QUERIES,
                                     slots * (padded * 5 + sizeof(screen_query) + sizeof(uint32_t)), &held);
    if (status == WW_OK)
        status = gpu_workspace(s->device, s->queue, WORKSPACE_SAMPLES, queries * buckets * sizeof(uint64_t), &samples);
    if (status == WW_OK)
        status =
            gpu_workspace(s->device, s->queue, WORKSPACE_LISTS, queries * (size_t)s->plan.capacity * sizeof(uint64_t), &lists);
    if (status == WW_OK)
        status = gpu_workspace(s->device, s->queue, WORKSPACE_RESULTS, round->results_bytes, &results);
    if (status != WW_OK)
        return status;
    round->samples = samples;
    round->lists = lists;
    round->best = results;
    round->queries = (screen_queries){.packed = held, .count = (uint32_t)queries, .slots = (uint32_t)slots};
    round->queries.codes = (uint32_t *)(round->queries.packed + slots * padded);
    round->queries.numbers = (screen_query *)(round->queries.codes + slots * padded / 4);
    round->queries.blocks_ready = (uint32_t *)(round->queries.numbers + slots);
    round->queries.thresholds = round->best + best;
    round->queries.counts = (uint32_t *)(round->queries.thresholds + slots);
    return WW_OK;
}

/* Uploads the queries and has them packed and coded. */
static ww_status prepare(screen *s, const asked *a, const screen_round *round)
{
    const size_t row_bytes = (size_t)s->job->dim * sizeof(float), given_bytes = (size_t)a->count * row_bytes;
    const size_t known_at = (given_bytes + 7) / 8 * 8, known_bytes = a->known ? (size_t)a->count * sizeof *a->known : 0;
    void *given = NULL;
    ww_status status = gpu_workspace(s->device, s->queue, WORKSPACE_GIVEN, known_at + known_bytes, &given);
    if (status == WW_OK)
        status =
            gpu_copy_in_pieces(s->device, s->queue, given, a->queries, row_bytes, (size_t)a->stride * sizeof(float), a->count);
    uint64_t *known = a->known ? (uint64_t *)((char *)given + known_at) : NULL;
    if (status == WW_OK && a->known)
        status = gpu_copy_in(s->device, s->queue, known, a->known, known_bytes);
    if (status != WW_OK)
        return status;
    const screen_prepare_args args = {.from = given, .known = known, .queries = round->queries, .dim = s->job->dim};
    return launch_screen_prepare(s->device, s->queue, grid_of(((int64_t)round->queries.slots + 15) / 16), SCREEN_THREADS, 0,
                                 &args);
}

/* One of the four kernels that look at codes: at the sample, or at all. */
static ww_status scan(screen *s, const screen_round *round, bool sample)
{
    static const int32_t few_kernels[3][2] = {{GPU_KERNEL_screen_few_1_keep, GPU_KERNEL_screen_few_1_sample},
                                              {GPU_KERNEL_screen_few_4_keep, GPU_KERNEL_screen_few_4_sample},
                                              {GPU_KERNEL_screen_few_8_keep, GPU_KERNEL_screen_few_8_sample}};
    const uint32_t slots = round->queries.slots;
    const int32_t shape = slots == 1 ? 0 : slots == 4 ? 1 : 2;
    const int32_t kernel = round->few ? few_kernels[shape][sample]
                           : sample   ? GPU_KERNEL_screen_batch_sample
                                      : GPU_KERNEL_screen_batch_keep;
    const screen_scan_args args = {.rows = s->rows,
                                   .queries = round->queries,
                                   .samples = round->samples,
                                   .sample_stride = s->plan.sample_stride,
                                   .sample_tiles = s->plan.sample_tiles,
                                   .lists = round->lists,
                                   .capacity = (uint32_t)s->plan.capacity,
                                   .trust = s->job->screen_trust};
    const int64_t tiles = sample ? s->plan.sample_tiles : (s->rows.word_count + SCREEN_TILE_WORDS - 1) / SCREEN_TILE_WORDS;
    int64_t resident = 1;
    const ww_status status = gpu_search_resident(s->device, kernel, &resident);
    if (status != WW_OK)
        return status;
    const int64_t columns = round->few ? 1 : slots / SCREEN_TILE_QUERIES;
    const gpu_grid grid = round->few ? grid_of(tiles < 2 * resident ? (tiles + 1) / 2 : resident)
                                     : grid_of_2(screen_plan_parts(resident, columns, tiles), columns);
    return gpu_launch(s->device, s->queue, kernel, grid, SCREEN_THREADS,
                      round->few ? 0 : (size_t)SCREEN_STAGES * SCREEN_STAGE_WORDS * sizeof(uint32_t), &args, sizeof args);
}

static ww_status pick(screen *s, const screen_round *round)
{
    const screen_pick_args args = {.rows = s->rows,
                                   .queries = round->queries,
                                   .samples = round->samples,
                                   .buckets = s->plan.sample_tiles * 4,
                                   .k = (uint32_t)s->job->k};
    return launch_screen_pick(s->device, s->queue, grid_of(round->queries.count), SCREEN_THREADS, 0, &args);
}

static ww_status score(screen *s, const screen_round *round)
{
    const screen_score_args args = {.rows = s->rows,
                                    .queries = round->queries,
                                    .lists = round->lists,
                                    .best = round->best,
                                    .capacity = (uint32_t)s->plan.capacity,
                                    .k = (uint32_t)s->job->k};
    const int64_t units = s->device->base.info.compute_units > 0 ? s->device->base.info.compute_units : 1;
    int64_t blocks = 8 * units / round->queries.count;
    blocks = blocks < 1 ? 1 : blocks > SCORE_BLOCKS_MOST ? SCORE_BLOCKS_MOST : blocks;
    return launch_screen_score(s->device, s->queue, grid_of_2(blocks, round->queries.count), SCREEN_THREADS, 0, &args);
}

/* ---- what came of it ----------------------------------------------------------------------------------------------------- */

/* How much better the k-th result is than the threshold that rows were discarded by. */
static float margin(int32_t metric, canon_key threshold, canon_key last)
{
    if (threshold == CANON_KEY_WORST || last == CANON_KEY_WORST)
        return INFINITY;
    const float by = canon_key_score(metric, last) - canon_key_score(metric, threshold);
    return metric == CANON_L2 ? -by : by;
}

/* Writes the results of a round, or puts its queries aside. */
static void settle(screen *s, const asked *a, const screen_round *round)
{
    const int32_t k = s->job->k;
    const canon_key *thresholds = s->results + a->count * k;
    const uint32_t *counts = (const uint32_t *)(thresholds + round->queries.slots);
    for (int64_t i = 0; i < a->count; i++) {
        const canon_key *best = s->results + i * k;
        const int64_t number = a->numbers ? a->numbers[i] : a->first + i;
        const bool full = counts[i] > (uint32_t)s->plan.capacity;
        s->stats.rows_kept += counts[i];
        s->stats.rows_scored += (full ? s->plan.capacity : (int64_t)counts[i]) + (a->known ? 0 : k);
        if (full) {
            const canon_key last = best[k - 1];
            s->left.numbers[s->left.count] = number;
            s->left.thresholds[s->left.count++] = last < thresholds[i] ? last : thresholds[i];
            continue;
        }
        s->stats.certificate = fminf(s->stats.certificate, margin(s->job->metric, thresholds[i], best[k - 1]));
        gpu_search_write(s->job, number, best);
    }
    s->stats.rows_screened += a->count * gpu_search_rows(s->job);
}

static ww_status ask(screen *s, const asked *a)
{
    screen_round round;
    ww_status status = take_workspaces(s, a->count, &round);
    if (status == WW_OK)
        status = prepare(s, a, &round);
    if (status == WW_OK && !a->known)
        status = scan(s, &round, true);
    if (status == WW_OK && !a->known)
        status = pick(s, &round);
    if (status == WW_OK)
        status = scan(s, &round, false);
    if (status == WW_OK)
        status = score(s, &round);
    if (status == WW_OK)
        status = gpu_copy_out(s->device, s->queue, s->results, round.best, round.results_bytes);
    if (status == WW_OK)
        settle(s, a, &round);
    return status;
}

/* ---- all queries --------------------------------------------------------------------------------------------------------- */

static ww_status take_results(screen *s)
{
    const size_t chunk = (size_t)s->plan.chunk + SCREEN_TILE_QUERIES;
    const size_t bytes = chunk * (((size_t)s->job->k + 1) * sizeof(canon_key) + sizeof(uint32_t));
    memory_give(s->results);
    s->results = memory_take(bytes);
    return s->results == NULL ? memory_failed("the results of a search", bytes) : WW_OK;
}

static ww_status ask_all(screen *s)
{
    const search_job *job = s->job;
    ww_status status = take_results(s);
    for (int64_t first = 0; status == WW_OK && first < job->query_count; first += s->plan.chunk) {
        const int64_t left = job->query_count - first;
        const asked a = {.queries = job->queries + first * job->query_stride,
                         .stride = job->query_stride,
                         .count = left < s->plan.chunk ? left : s->plan.chunk,
                         .first = first};
        status = gpu_search_report(job, first);
        if (status == WW_OK)
            status = ask(s, &a);
    }
    return status;
}

/* The queries of `left` side by side; NULL if there is no memory. */
static float *gather(const search_job *job, const leftover *left)
{
    const size_t dim = (size_t)job->dim;
    float *queries = memory_take((size_t)left->count * dim * sizeof *queries);
    for (int64_t i = 0; queries != NULL && i < left->count; i++)
        memcpy(queries + (size_t)i * dim, job->queries + left->numbers[i] * job->query_stride, dim * sizeof *queries);
    return queries;
}

/* Asks those again whose lists were full, with the thresholds that they gave. The new leftovers take the place of the old,
 * never ahead of what is still to be read. */
static ww_status ask_again(screen *s)
{
    const search_job *job = s->job;
    const leftover again = s->left;
    if (again.count == 0)
        return WW_OK;
    s->stats.fallback_queries += again.count;
    const int64_t wanted = (int64_t)s->plan.capacity * SECOND_FACTOR, rows = (int64_t)s->rows.word_count * 64;
    s->plan = make_plan(job, again.count, (int32_t)(wanted < rows ? wanted : rows));
    float *queries = gather(job, &again);
    if (queries == NULL)
        return memory_failed("queries to ask again", (size_t)again.count * (size_t)job->dim * sizeof *queries);
    s->left.count = 0;
    ww_status status = take_results(s);
    for (int64_t first = 0; status == WW_OK && first < again.count; first += s->plan.chunk) {
        const int64_t left = again.count - first;
        const asked a = {.queries = queries + first * job->dim,
                         .stride = job->dim,
                         .count = left < s->plan.chunk ? left : s->plan.chunk,
                         .numbers = again.numbers + first,
                         .known = again.thresholds + first};
        status = ask(s, &a);
    }
    memory_give(queries);
    return status;
}

/* The plain search for what is left. The stream was given back. */
static ww_status ask_plainly(ww_device *device, screen *s)
{
    const search_job *job = s->job;
    const leftover *left = &s->left;
    const size_t found = (size_t)left->count * (size_t)job->k;
    if (left->count == 0)
        return WW_OK;
    search_job plain = *job;
    float *queries = gather(job, left);
    plain.rows = memory_take(found * sizeof *plain.rows);
    plain.scores = memory_take(found * sizeof *plain.scores);
    plain.queries = queries;
    plain.query_count = left->count;
    plain.query_stride = job->dim;
    plain.screen = false;
    plain.stats = &s->stats;
    plain.progress = NULL;
    ww_status status = WW_OK;
    if (queries == NULL || plain.rows == NULL || plain.scores == NULL)
        status = memory_failed("queries to ask plainly", found * (sizeof *plain.rows + sizeof *plain.scores));
    if (status == WW_OK)
        status = gpu_rows_search(device, &plain);
    for (int64_t i = 0; status == WW_OK && i < left->count; i++) {
        const size_t to = (size_t)left->numbers[i] * (size_t)job->k, from = (size_t)i * (size_t)job->k;
        memcpy(job->rows + to, plain.rows + from, (size_t)job->k * sizeof *job->rows);
        memcpy(job->scores + to, plain.scores + from, (size_t)job->k * sizeof *job->scores);
    }
    memory_give(queries);
    memory_give(plain.rows);
    memory_give(plain.scores);
    return status;
}

static void tell(search_stats *stats, const search_stats *more)
{
    if (stats == NULL)
        return;
    stats->rows_screened += more->rows_screened;
    stats->rows_kept += more->rows_kept;
    stats->rows_scored += more->rows_scored;
    stats->fallback_queries += more->fallback_queries;
    stats->certificate = fminf(stats->certificate, more->certificate);
}

ww_status gpu_screen_search(ww_device *device, const search_job *job)
{
    const size_t queries = (size_t)job->query_count;
    screen s = {.device = gpu_of(device), .job = job, .stats = {.certificate = INFINITY}};
    s.plan = make_plan(job, job->query_count, tuned_capacity);
    s.left.numbers = memory_take(queries * (sizeof *s.left.numbers + sizeof *s.left.thresholds));
    if (s.left.numbers == NULL)
        return memory_failed("the queries of a search", queries * (sizeof *s.left.numbers + sizeof *s.left.thresholds));
    s.left.thresholds = (canon_key *)(s.left.numbers + queries);
    ww_status status = gpu_stream_borrow(s.device, &s.queue);
    if (status == WW_OK) {
        status = upload_table(&s);
        if (status == WW_OK)
            status = gpu_search_mask(s.device, s.queue, WORKSPACE_MASK, job, &s.rows.mask, &s.rows.mask_words);
        if (status == WW_OK)
            status = ask_all(&s);
        if (status == WW_OK)
            status = ask_again(&s);
        status = gpu_stream_return(s.device, s.queue, status);
    }
    if (status == WW_OK)
        status = ask_plainly(device, &s);
    if (status == WW_OK)
        status = gpu_search_report(job, job->query_count);
    if (status == WW_OK)
        tell(job->stats, &s.stats);
    memory_give(s.results);
    memory_give(s.left.numbers);
    return status;
}
