/* The screen of a search (kernels/screen/screen_args.h): the results of a full scan with fewer scores. Searches in rounds
 * (screen_round.h) and handles their results.
 *
 * If a query's list was full, the listed rows have given a better threshold, and the query is searched again with that and a
 * longer list. If that list is full too, the screen cannot separate the rows, and a full scan answers the query. The plan
 * bounds the memory. The host waits for the device only when it reads results.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "device/certificate.h"
#include "gpu/search/planes/planes.h"
#include "gpu/search/screen_one.h"
#include "gpu/search/search_common.h"
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
    search *search;
    gpu_stream *stream;
    const search_job *job;
    screen_plan plan;
    bool uploaded;      /* the table of segments */
    bool planes;        /* do its segments have their planes? */
    canon_key *results; /* host: a round's keys, thresholds and counts */
    leftover left;
    int64_t *failed; /* queries whose results prove a defect */
    int64_t failed_count;
} screen;

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
        s->search->stats.rows_kept += kept < rows ? kept : rows;
        s->search->stats.rows_scored += before[i] + (full ? s->plan.capacity : (int64_t)counts[i]) + (a->thresholds ? 0 : k);
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
        s->search->stats.certificate =
            fminf(s->search->stats.certificate, certificate_margin(s->job->metric, thresholds[i], last));
        gpu_search_write(s->job, number, best);
    }
    s->search->stats.rows_screened += a->count * rows;
}

static ww_status run_round(screen *s, const screen_input *a)
{
    ww_status status = s->plan.one || s->uploaded ? WW_OK : search_upload_table(s->search);
    s->uploaded = s->uploaded || (status == WW_OK && !s->plan.one);
    screen_round round = {.device = s->search->device,
                          .stream = s->stream,
                          .job = s->job,
                          .plan = &s->plan,
                          .rows = s->search->rows,
                          .planes = s->planes};
    if (status == WW_OK && s->plan.one) {
        status = screen_one_run(&round, a, &s->search->table, s->results);
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
    s->search->stats.fallback_queries += again.count;
    gpu_search_mark_queries(job, again.numbers, again.count, MARK_FALLBACK);
    const int64_t wanted = (int64_t)s->plan.capacity * SECOND_FACTOR, rows = (int64_t)s->search->rows.word_count * 64;
    s->plan = search_screen_plan(s->search->device, job, again.count, (int32_t)(wanted < rows ? wanted : rows));
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

/* Scores every row for the queries that the screen did not answer, and those whose results proved a defect. */
static ww_status scan_leftovers(screen *s)
{
    const search_job *job = s->job;
    leftover *left = &s->left;
    for (int64_t i = 0; i < s->failed_count; i++)
        left->numbers[left->count++] = s->failed[i];
    s->search->stats.repeated_queries += s->failed_count;
    gpu_search_mark_queries(job, s->failed, s->failed_count, MARK_REPEATED);
    if (left->count == 0)
        return WW_OK;
    const size_t found = (size_t)left->count * (size_t)job->k;
    float *queries = NULL;
    ww_status status = gather(s, left, &queries);
    search_job part = *job;
    part.rows = memory_alloc(found * sizeof *part.rows);
    part.scores = memory_alloc(found * sizeof *part.scores);
    part.queries = queries;
    part.queries_on_device = false;
    part.query_count = left->count;
    part.query_stride = job->dim;
    part.progress = NULL;
    if (status == WW_OK && (part.rows == NULL || part.scores == NULL))
        status = memory_failed("queries of a full scan", found * (sizeof *part.rows + sizeof *part.scores));
    search scan = *s->search;
    scan.job = &part;
    if (status == WW_OK)
        status = scan_run(&scan);
    s->search->stats = scan.stats;
    for (int64_t i = 0; status == WW_OK && i < left->count; i++) {
        const size_t to = (size_t)left->numbers[i] * (size_t)job->k, from = (size_t)i * (size_t)job->k;
        memcpy(job->rows + to, part.rows + from, (size_t)job->k * sizeof *job->rows);
        memcpy(job->scores + to, part.scores + from, (size_t)job->k * sizeof *job->scores);
    }
    memory_free(part.scores);
    memory_free(part.rows);
    memory_free(queries);
    return status;
}

ww_status screen_run(search *whole)
{
    const size_t queries = (size_t)whole->job->query_count;
    screen s = {.search = whole, .stream = whole->stream, .job = whole->job, .plan = whole->choice.plan};
    const size_t bytes = queries * (sizeof *s.left.numbers + sizeof *s.left.thresholds + sizeof *s.failed);
    s.left.numbers = memory_alloc(bytes);
    if (s.left.numbers == NULL)
        return memory_failed("the queries of a search", bytes);
    s.left.thresholds = (canon_key *)(s.left.numbers + queries);
    s.failed = (int64_t *)(s.left.thresholds + queries);
    ww_status status = gpu_planes_take(s.stream, s.job, &whole->table, &s.planes);
    if (status == WW_OK)
        status = run_rounds(&s);
    if (status == WW_OK)
        status = search_again(&s);
    if (s.planes) /* the scan does not read them */
        gpu_planes_return(whole->device);
    if (status == WW_OK)
        status = scan_leftovers(&s);
    memory_free(s.results);
    memory_free(s.left.numbers);
    return status;
}
