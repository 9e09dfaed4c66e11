/* gpu_rows_search(): the one way of a search through a GPU. Each step is a function, and each search takes all of them:
 *
 *   choose   search_choose(): a full scan or the screen, by what is possible, by cost, or by the times of earlier searches
 *   plan     search_plan_make() and screen_plan_make(): kernels, rounds, lists; also whether one query has a way of its own
 *   launch   scan_run() and screen_run(), on a borrowed stream, with the rows' table and the mask
 *   collect  keys become rows and scores round by round (gpu_search_write()); at the end the statistics and the time
 *
 * The screen ends with a full scan of the queries that it could not answer, on the same stream. Ranges (range.c) and lists of
 * an index (lists/search.c) choose and plan by the same functions and launch the same rounds, but collect something else.
 */
#include <math.h>

#include "base/clock.h"
#include "base/memory.h"
#include "device/results.h"
#include "gpu/search/rows.h"
#include "gpu/search/search_common.h"

/* The table of segments stays on the device until it changes. */
ww_status search_upload_table(search *s)
{
    void *segments = NULL;
    const ww_status status = gpu_keep(s->stream, KEPT_TABLE, s->table.segments, s->table.bytes, &segments);
    s->rows.segments = segments;
    return status;
}

static ww_status launch(search *s)
{
    const ww_status status = gpu_search_mask(s->stream, WORKSPACE_MASK, s->job, &s->rows.mask, &s->rows.mask_words);
    if (status != WW_OK)
        return status;
    return s->choice.screen ? screen_run(s) : scan_run(s);
}

static ww_status run(search *s)
{
    const search_job *job = s->job;
    ww_status status = segment_table_make(job, false, &s->table, &s->rows);
    if (status == WW_OK && s->rows.word_count == 0) {
        results_pad(job->metric, job->query_count * job->k, job->rows, job->scores);
    } else if (status == WW_OK) {
        status = gpu_stream_borrow(s->device, &s->stream);
        if (status == WW_OK)
            status = gpu_stream_return(s->stream, launch(s));
    }
    memory_free(s->table.segments);
    return status;
}

void search_stats_add(search_stats *stats, const search_stats *more)
{
    if (stats == NULL)
        return;
    stats->rows_screened += more->rows_screened;
    stats->rows_kept += more->rows_kept;
    stats->rows_scored += more->rows_scored;
    stats->fallback_queries += more->fallback_queries;
    stats->repeated_queries += more->repeated_queries;
    stats->certificate = fminf(stats->certificate, more->certificate);
}

ww_status gpu_rows_search(ww_device *device, const search_job *job)
{
    const double begin = clock_seconds() * 1e6;
    search s = {.device = gpu_of(device),
                .job = job,
                .choice = search_choose(gpu_of(device), job, device->tuning.screen_list_capacity, false),
                .stats = {.certificate = INFINITY}};
    ww_status status = run(&s);
    if (status == WW_OK)
        status = gpu_search_report(job, job->query_count);
    if (status == WW_OK)
        search_stats_add(job->stats, &s.stats);
    if (status == WW_OK && !job->progress)
        search_choice_record(s.device, &s.choice, clock_seconds() * 1e6 - begin);
    return status;
}
