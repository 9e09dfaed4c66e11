/* A range search: reads the bound, and stores the results in the fields of a nearest search. */
#include "warpwave/search/search_range.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/integers.h"
#include "base/memory.h"
#include "base/status.h"
#include "warpwave/command.h"

ww_status search_range_read(search_settings *s)
{
    const bool l2 = s->metric == WW_L2;
    const char *const name = s->radius ? "--radius" : "--min-score", *const text = s->radius ? s->radius : s->min_score;
    if (s->radius && s->min_score)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--radius and --min-score: give one of them"));
    if (!text && s->limit >= 0)
        return command_line_wrong(
            ww_fail(WW_INVALID_ARGUMENT, "--limit goes with --radius or --min-score; -k is for the others"));
    if (s->limit < 0)
        s->limit = LIMIT_DEFAULT;
    if (!text)
        return WW_OK;
    if ((s->radius != NULL) != l2)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "%s does not go with --metric %s; give %s", name,
                                          ww_metric_name((ww_metric)s->metric), l2 ? "--radius" : "--min-score"));
    char *end = NULL;
    s->bound = strtof(text, &end);
    if (*end != '\0' || isnan(s->bound) || (l2 && s->bound < 0.0f))
        return command_line_wrong(
            ww_fail(WW_INVALID_ARGUMENT, "%s '%s': it must be a number%s", name, text, l2 ? " from 0" : ""));
    s->ranged = true;
    return WW_OK;
}

/* Stores lists as long as the longest, padded with row -1 and the worst score. */
static ww_status keep_results(search_run *run, const ww_results *results)
{
    const bool l2 = run->settings.metric == WW_L2;
    int64_t k = 1;
    for (int64_t q = 0; q < run->query_count; q++)
        k = max_i64(k, ww_results_count(results, q));
    size_t count, bytes;
    const bool fits = size_multiply((size_t)run->query_count, (size_t)k, &count) &&
                      size_multiply(count, sizeof *run->rows + sizeof *run->scores, &bytes);
    int64_t *rows = fits ? memory_alloc(count * sizeof *rows) : NULL,
            *totals = memory_alloc((size_t)run->query_count * sizeof *totals);
    float *scores = fits ? memory_alloc(count * sizeof *scores) : NULL;
    if (!rows || !scores || !totals) {
        memory_free(rows);
        memory_free(scores);
        memory_free(totals);
        return ww_fail(WW_OUT_OF_MEMORY, "%lld queries with up to %lld rows do not fit into memory; give a --limit",
                       (long long)run->query_count, (long long)k);
    }
    for (int64_t q = 0; q < run->query_count; q++) {
        const int64_t found = ww_results_count(results, q);
        totals[q] = ww_results_total(results, q);
        for (int64_t i = 0; i < k; i++) {
            rows[q * k + i] = i < found ? ww_results_rows(results, q)[i] : -1;
            scores[q * k + i] = i < found ? ww_results_scores(results, q)[i] : l2 ? INFINITY : -INFINITY;
        }
    }
    memory_free(run->rows);
    memory_free(run->scores);
    memory_free(run->totals);
    run->rows = rows;
    run->scores = scores;
    run->totals = totals;
    run->settings.k = k;
    return WW_OK;
}

ww_status search_range_once(search_run *run, ww_progress progress, void *user)
{
    ww_query range = ww_query_default();
    range.mode = WW_QUERY_RANGE;
    range.queries = run->queries;
    range.query_count = run->query_count;
    range.dim = run->dim;
    range.bound = run->settings.bound;
    range.limit = run->settings.limit;
    range.progress = progress;
    range.progress_user = user;
    range.stats = &run->stats;
    ww_results *results = NULL;
    ww_status status = ww_collection_query(run->collection, &range, &results);
    if (status == WW_OK)
        status = keep_results(run, results);
    ww_results_destroy(results);
    return status;
}
