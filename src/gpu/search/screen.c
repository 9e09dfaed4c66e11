/* Screened search on a GPU: searches in rounds (screen_round.h) and handles their results.
 *
 * If a query's list was full, the listed rows have given a better threshold, and the query is searched again with that and a
 * longer list. If that list is full too, the screen cannot separate the rows, and a full scan answers the query. The plan
 * bounds the memory. The host waits for the device only when it reads results.
 */
#include "gpu/search/screen.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "device/certificate.h"
#include "gpu/search/choice/search_choice.h"
#include "gpu/search/planes/planes.h"
#include "gpu/search/screen_one.h"
#include "gpu/search/search.h"
#include "kernels/search/packed_layout.h"

enum {
    SECOND_FACTOR = 8 /* factor for the lists of queries that are searched again */
};

/* Queries whose lists were full, and their best thresholds so far. */
typedef struct leftover {
    int64_t *numbers;
    canon_key *thresholds;
    int64_t count;
} leftover;

typedef struct screen {
    gpu_device *device;
    gpu_stream *stream;
    const search_job *job;
    screen_plan plan;
    kernel_rows rows;
    segment_table table;
    bool planes;        /* do its segments have their planes? */
    canon_key *results; /* host: a round's keys, thresholds and counts */
    leftover left;
    float *left_queries; /* host: queries that the screen did not answer; memory_free() */
    int64_t *failed;     /* queries whose results prove a defect */
    int64_t failed_count;
    search_stats stats;
} screen;

/* ---- the rows -------------------------------------------------------------------------------------------------------------
 */

/* Uploads the table of segments once, for rounds of several queries. */
static ww_status upload_table(screen *s)
{
    void *segments = NULL;
    if (s->rows.segments != NULL)
        return WW_OK;
    ww_status status = gpu_workspace(s->stream, SCREEN_WORKSPACE_TABLE, s->table.bytes, &segments);
    if (status == WW_OK)
        status = gpu_copy_in(s->stream, segments, s->table.segments, s->table.bytes);
    if (status == WW_OK)
        s->rows.segments = segments;
    return status;
}

/* ---- results ------------------------------------------------------------------------------------------------------------- */

/* Writes the results of a round. Puts queries without valid results aside. */
static void settle(screen *s, const screen_input *a, const screen_round *round)
{
    const int32_t k = s->job->k;
    const canon_key *thresholds = s->results + a->count * k;
    const uint32_t *counts = (const uint32_t *)(thresholds + round->queries.slots), *before = counts + round->queries.slots;
    const int64_t rows = gpu_search_rows(s->job);
    for (int64_t i = 0; i < a->count; i++) {
        const canon_key *best = s->results + i * k;
        const int64_t number = a->numbers ? a->numbers[i] : a->first + i;
        const bool full = counts[i] > (uint32_t)s->plan.capacity;
        const int64_t kept = (int64_t)before[i] + counts[i]; /* for a full list this may be one more than its length */
        s->stats.rows_kept += kept < rows ? kept : rows;
        s->stats.rows_scored += before[i] + (full ? s->plan.capacity : (int64_t)counts[i]) + (a->thresholds ? 0 : k);
        const canon_key last = best[k - 1];
        if (full) {
            s->left.numbers[s->left.count] = number;
            s->left.thresholds[s->left.count++] = last < thresholds[i] ? last : thresholds[i];
            continue;
        }
        if (certificate_fails(thresholds[i], last)) {
            s->failed[s->failed_count++] = number;
            continue;
        }
        s->stats.certificate = fminf(s->stats.certificate, certificate_margin(s->job->metric, thresholds[i], last));
        gpu_search_write(s->job, number, best);
    }
    s->stats.rows_screened += a->count * rows;
}

static ww_status run_round(screen *s, const screen_input *a)
{
    const bool one = screen_one_is_faster(s->job, a->count);
    ww_status status = one ? WW_OK : upload_table(s);
    screen_round round = {
        .device = s->device, .stream = s->stream, .job = s->job, .plan = &s->plan, .rows = s->rows, .planes = s->planes};
    if (status == WW_OK && one) {
        status = screen_one_run(&round, a, &s->table, s->results);
    } else if (status == WW_OK) {
        status = screen_round_begin(&round, a->count);
        if (status == WW_OK)
            status = screen_round_run(&round, a, s->results);
    }
    if (status == WW_OK)
        settle(s, a, &round);
    return status;
}

/* ---- all queries --------------------------------------------------------------------------------------------------------- */

static ww_status take_results(screen *s)
{
    const size_t slots = (size_t)s->plan.round_queries + (size_t)SCREEN_WGMMA_TEAMS_MAX * SCREEN_WGMMA_QUERIES;
    const size_t bytes = slots * (((size_t)s->job->k + 1) * sizeof(canon_key) + 2 * sizeof(uint32_t));
    memory_free(s->results);
    s->results = memory_alloc(bytes);
    return s->results == NULL ? memory_failed("the results of a search", bytes) : WW_OK;
}

static ww_status run_rounds(screen *s)
{
    const search_job *job = s->job;
    ww_status status = take_results(s);
    for (int64_t first = 0; status == WW_OK && first < job->query_count; first += s->plan.round_queries) {
        const int64_t left = job->query_count - first;
        const screen_input a = {.queries = job->queries + first * job->query_stride,
                                .on_device = job->queries_on_device,
                                .stride = job->query_stride,
                                .count = left < s->plan.round_queries ? left : s->plan.round_queries,
                                .first = first};
        status = gpu_search_report(job, first);
        if (status == WW_OK)
            status = run_round(s, &a);
    }
    return status;
}

/* Copies the queries of `left` to host memory, `*queries` (memory_free()). */
static ww_status gather(const screen *s, const leftover *left, float **queries)
{
    const size_t bytes = (size_t)left->count * (size_t)s->job->dim * sizeof **queries;
    *queries = memory_alloc(bytes);
    if (*queries == NULL)
        return memory_failed("queries to search again", bytes);
    return gpu_search_gather(s->stream, s->job, left->numbers, left->count, *queries);
}

/* Searches again for the queries whose lists were full, with the thresholds that these gave. New leftovers overwrite old ones,
 * never before the old ones are read. */
static ww_status search_again(screen *s)
{
    const search_job *job = s->job;
    const leftover again = s->left;
    if (again.count == 0)
        return WW_OK;
    s->stats.fallback_queries += again.count;
    gpu_search_mark_queries(job, again.numbers, again.count, MARK_FALLBACK);
    const int64_t wanted = (int64_t)s->plan.capacity * SECOND_FACTOR, rows = (int64_t)s->rows.word_count * 64;
    s->plan = search_screen_plan(s->device, job, again.count, (int32_t)(wanted < rows ? wanted : rows));
    float *queries = NULL;
    ww_status status = gather(s, &again, &queries);
    s->left.count = 0;
    if (status == WW_OK)
        status = take_results(s);
    for (int64_t first = 0; status == WW_OK && first < again.count; first += s->plan.round_queries) {
        const int64_t left = again.count - first;
        const screen_input a = {.queries = queries + first * job->dim,
                                .stride = job->dim,
                                .count = left < s->plan.round_queries ? left : s->plan.round_queries,
                                .numbers = again.numbers + first,
                                .thresholds = again.thresholds + first};
        status = run_round(s, &a);
    }
    memory_free(queries);
    return status;
}

/* Adds the queries whose results proved a defect to the leftovers, and copies all leftovers to the host while the stream is
 * borrowed. */
static ww_status collect_left(screen *s)
{
    leftover *left = &s->left;
    for (int64_t i = 0; i < s->failed_count; i++)
        left->numbers[left->count++] = s->failed[i];
    s->stats.repeated_queries += s->failed_count;
    gpu_search_mark_queries(s->job, s->failed, s->failed_count, MARK_REPEATED);
    return left->count == 0 ? WW_OK : gather(s, left, &s->left_queries);
}

/* Answers the leftovers by a full scan. The stream was returned. */
static ww_status scan_leftovers(ww_device *device, screen *s)
{
    const search_job *job = s->job;
    leftover *left = &s->left;
    const size_t found = (size_t)left->count * (size_t)job->k;
    if (left->count == 0)
        return WW_OK;
    search_job scan = *job;
    scan.rows = memory_alloc(found * sizeof *scan.rows);
    scan.scores = memory_alloc(found * sizeof *scan.scores);
    scan.queries = s->left_queries;
    scan.queries_on_device = false;
    scan.query_count = left->count;
    scan.query_stride = job->dim;
    scan.screen = false;
    scan.stats = &s->stats;
    scan.progress = NULL;
    ww_status status = WW_OK;
    if (scan.rows == NULL || scan.scores == NULL)
        status = memory_failed("queries of a full scan", found * (sizeof *scan.rows + sizeof *scan.scores));
    if (status == WW_OK)
        status = gpu_full_scan(device, &scan);
    for (int64_t i = 0; status == WW_OK && i < left->count; i++) {
        const size_t to = (size_t)left->numbers[i] * (size_t)job->k, from = (size_t)i * (size_t)job->k;
        memcpy(job->rows + to, scan.rows + from, (size_t)job->k * sizeof *job->rows);
        memcpy(job->scores + to, scan.scores + from, (size_t)job->k * sizeof *job->scores);
    }
    memory_free(scan.rows);
    memory_free(scan.scores);
    return status;
}

static void add_stats(search_stats *stats, const search_stats *more)
{
    if (stats == NULL)
        return;
    stats->rows_screened += more->rows_screened;
    stats->rows_kept += more->rows_kept;
    stats->rows_scored += more->rows_scored;
    stats->fallback_queries += more->fallback_queries;
    stats->certificate = fminf(stats->certificate, more->certificate);
    stats->repeated_queries += more->repeated_queries;
}

ww_status gpu_screen_search(ww_device *device, const search_job *job, const screen_plan *plan)
{
    const size_t queries = (size_t)job->query_count;
    screen s = {.device = gpu_of(device), .job = job, .plan = *plan, .stats = {.certificate = INFINITY}};
    const size_t bytes = queries * (sizeof *s.left.numbers + sizeof *s.left.thresholds + sizeof *s.failed);
    s.left.numbers = memory_alloc(bytes);
    if (s.left.numbers == NULL)
        return memory_failed("the queries of a search", bytes);
    s.left.thresholds = (canon_key *)(s.left.numbers + queries);
    s.failed = (int64_t *)(s.left.thresholds + queries);
    ww_status status = segment_table_make(job, &s.table, &s.rows);
    if (status == WW_OK)
        status = gpu_stream_borrow(s.device, &s.stream);
    if (status == WW_OK) {
        status = gpu_search_mask(s.stream, SCREEN_WORKSPACE_MASK, job, &s.rows.mask, &s.rows.mask_words);
        if (status == WW_OK)
            status = gpu_planes_take(s.stream, job, &s.table, &s.planes);
        if (status == WW_OK)
            status = run_rounds(&s);
        if (status == WW_OK)
            status = search_again(&s);
        if (status == WW_OK)
            status = collect_left(&s);
        if (s.planes)
            gpu_planes_return(s.device);
        status = gpu_stream_return(s.stream, status);
    }
    if (status == WW_OK)
        status = scan_leftovers(device, &s);
    if (status == WW_OK)
        status = gpu_search_report(job, job->query_count);
    if (status == WW_OK)
        add_stats(job->stats, &s.stats);
    memory_free(s.table.segments);
    memory_free(s.results);
    memory_free(s.left_queries);
    memory_free(s.left.numbers);
    return status;
}
