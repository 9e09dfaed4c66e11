/* Range searches: all rows within a bound, found and described under one lock, as a query's are. */
#include <math.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/structs.h"
#include "device/results.h"
#include "vectors/fetch.h"
#include "vectors/search.h"

enum {
    QUERIES_TOGETHER = 16,  /* whose keys a thread reads in one piece; */
    HITS_FOR_THREADS = 4096 /* from so many hits on several threads do it */
};

static const char FUNCTION[] = "ww_collection_range";

STRUCT_INIT(ww_range, {0})

static ww_status range_check(ww_collection *c, const ww_range *range, ww_search *search, tensor_rows *held)
{
    *search = (ww_search){.struct_size = sizeof *search,
                          .queries = range->queries,
                          .query_count = range->query_count,
                          .dim = range->dim,
                          .query_stride = range->query_stride,
                          .mask = range->mask,
                          .mask_rows = range->mask_rows,
                          .progress = range->progress,
                          .progress_user = range->progress_user,
                          .stats = range->stats,
                          .query_tensor = range->query_tensor};
    if (isnan(range->bound))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: bound is not a number", FUNCTION);
    if (c->metric == WW_L2 && range->bound < 0.0f)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: bound is %g; a distance must not be negative", FUNCTION, (double)range->bound);
    if (range->limit < 0 || range->limit > WW_ROWS_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "%s: limit is %lld; it must be 0 to %lld", FUNCTION, (long long)range->limit,
                       (long long)WW_ROWS_MAX);
    const ww_query filter = {.where = range->where, .parameters = range->parameters, .parameter_count = range->parameter_count};
    ww_status status = where_check(c, FUNCTION, &filter);
    if (status == WW_OK)
        status = search_check(c, FUNCTION, search, held);
    return status == WW_OK ? fetch_check(FUNCTION, range->fetch) : status;
}

/* Has the device list the keys of all queries. With the lock. */
static ww_status range_run(const ww_collection *c, const ww_range *range, const ww_search *search, search_stats *stats,
                           key_list *found)
{
    const row_store *store = &c->store;
    const ww_status status = search_check_mask(c, search);
    if (status != WW_OK)
        return status;
    range_job job = {.search = {.metric = (int32_t)c->metric,
                                .dim = c->dim,
                                .type = (int32_t)c->type,
                                .segments = store->segments,
                                .segment_count = store_segments_used(store),
                                .mask = search->mask,
                                .mask_rows = search->mask_rows,
                                .screen = store->screen,
                                .stats = stats,
                                .progress = search->progress,
                                .progress_user = search->progress_user},
                     .bound = range->bound + 0.0f, /* never -0 */
                     .limit = range->limit,
                     .found = found};
    search_queries_to(search, &job.search);
    return store->rows_live > 0 && search->query_count > 0 ? c->device->backend->rows_range(c->device, &job) : WW_OK;
}

typedef struct reading {
    const key_list *found;
    ww_results *results;
    int32_t metric;
} reading;

/* Reads the keys of some queries into their places. */
static void read_keys(void *context, int64_t item, int32_t worker)
{
    (void)worker;
    const reading *job = context;
    ww_results *results = job->results;
    const int64_t end = min_i64((item + 1) * QUERIES_TOGETHER, results->query_count);
    for (int64_t q = item * QUERIES_TOGETHER; q < end; q++) {
        const uint64_t *keys = job->found[q].keys;
        int64_t *rows = results->rows + results->starts[q];
        float *scores = results->scores + results->starts[q];
        for (int64_t i = 0; i < job->found[q].count; i++) {
            rows[i] = (int64_t)canon_key_row(keys[i]);
            scores[i] = canon_key_score(job->metric, keys[i]);
        }
    }
}

/* Makes results of the keys. With the lock. */
static ww_status range_results(const ww_collection *c, int64_t query_count, const key_list *found, uint32_t fetch,
                               ww_results **results)
{
    int64_t hits = 0;
    for (int64_t q = 0; q < query_count; q++)
        hits += found[q].count;
    ww_status status = results_create(query_count, hits, results);
    if (status != WW_OK)
        return status;
    ww_results *made = *results;
    const size_t totals_bytes = (size_t)query_count * sizeof *made->totals;
    made->totals = memory_alloc(totals_bytes);
    if (!made->totals)
        return memory_failed("the totals of a range search", totals_bytes);
    for (int64_t q = 0; q < query_count; q++) {
        made->starts[q + 1] = made->starts[q] + found[q].count;
        made->totals[q] = found[q].total;
    }
    reading job = {.found = found, .results = made, .metric = (int32_t)c->metric};
    const int64_t items = divide_up_i64(query_count, QUERIES_TOGETHER);
    pool *threads = hits >= HITS_FOR_THREADS ? c->device->backend->threads(c->device) : NULL;
    if (threads)
        (void)pool_run(threads, items, read_keys, NULL, &job);
    else
        pool_run_here(items, read_keys, &job);
    return results_fetch(made, c, fetch);
}

static ww_status range_now(ww_collection *c, const ww_range *range, ww_search *search, tensor_rows *held, ww_results **results)
{
    const size_t lists = (size_t)search->query_count + 1;
    key_list *found = memory_alloc_zeroed(lists, sizeof *found);
    if (!found)
        return memory_failed("a range search", lists * sizeof *found);
    ww_results *made = NULL;
    search_stats stats = {.certificate = INFINITY};
    ww_status status = search_begin(c, search, held);
    if (status == WW_OK) {
        status = range_run(c, range, search, &stats, found);
        if (status == WW_OK)
            status = range_results(c, search->query_count, found, range->fetch, &made);
        collection_unlock(c);
    }
    for (int64_t q = 0; q < search->query_count; q++)
        key_list_free(&found[q]);
    memory_free(found);
    if (status != WW_OK) {
        ww_results_destroy(made);
        return status;
    }
    search_tell_stats(range->stats, &stats);
    *results = made;
    return WW_OK;
}

ww_status ww_collection_range(ww_collection *collection, const ww_range *range, ww_results **results)
{
    FLOAT_GUARD();
    ww_range asked;
    ww_search search;
    tensor_rows held = {0};
    ww_status status = collection_check(collection, FUNCTION);
    if (status != WW_OK)
        return status;
    if (!range || !results)
        return fail_null(FUNCTION, range ? "results" : "range");
    status = struct_read(&asked, sizeof asked, range, FUNCTION, "ww_range");
    if (status == WW_OK)
        status = range_check(collection, &asked, &search, &held);
    if (status == WW_OK && collection->durable) {
        asked.query_count = search.query_count;
        asked.dim = search.dim;
        asked.query_stride = search.query_stride;
        status = collection->durable->range(collection->owner, &asked, results);
    } else if (status == WW_OK) {
        status = range_now(collection, &asked, &search, &held, results);
    }
    tensor_rows_release(&held);
    return status;
}
