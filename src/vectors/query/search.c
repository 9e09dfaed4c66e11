/* Searches rows in memory: a checked query becomes one job of the device, under the reader's lock. The data of the hits is
 * copied under the same lock, so that the results are a snapshot of the collection. */
#include "vectors/query/search.h"

#include <math.h>
#include <string.h>

#include "base/integers.h"
#include "base/memory.h"
#include "base/structs.h"
#include "device/results.h"
#include "vectors/filter/filter_mask.h"
#include "vectors/ivf/ivf.h"
#include "vectors/query/fetch.h"
#include "vectors/query/query.h"

enum {
    QUERIES_TOGETHER = 16,  /* queries whose keys a thread reads at a time */
    HITS_FOR_THREADS = 4096 /* minimum number of hits for using several threads */
};

/* A running search, from search_begin() to search_end(). */
typedef struct search {
    ww_collection *collection;
    const ww_query *query;
    search_job job;
    search_stats stats;
    void *host_queries;    /* queries that were copied from a GPU, or NULL */
    uint64_t *filter_mask; /* the rows that the filter admits, or NULL */
} search;

/* Uses queries on the collection's GPU in place, after a check there; copies queries of other GPUs to the host. Called with the
 * lock. */
static ww_status place_queries(search *s)
{
    const ww_collection *c = s->collection;
    tensor_rows held = {.dense = *s->query->query_tensor};
    int64_t refused = -1;
    ww_status status;
    if (tensor_rows_on(&held, c->device) && s->query->nprobe == 0 && s->query->recall == 0.0f) {
        const float *queries = tensor_rows_data(&held);
        status = c->device->backend->rows_check_here(c->device, queries, s->query->query_count, c->dim, &refused);
        s->job.queries = queries;
        s->job.queries_on_device = true;
        if (status != WW_OK || refused < 0)
            return status;
    }
    status = tensor_rows_to_host(&held);
    s->host_queries = held.host;
    s->job.queries = held.host;
    s->job.queries_on_device = false;
    return status == WW_OK ? queries_check_finite(c, held.host, s->query->query_count) : status;
}

/* Refuses a mask of 0 rows, which admits nothing: the caller forgot to set mask_rows. For a collection without rows it is
 valid.
 */
static ww_status mask_check(const ww_collection *c, const ww_query *query)
{
    if (!query->mask || query->mask_rows > 0 || c->store.rows_count == 0)
        return WW_OK;
    return ww_fail(WW_INVALID_ARGUMENT, "collection '%s': there is a mask, but mask_rows is 0; a mask over all rows has %lld",
                   c->name, (long long)c->store.rows_count);
}

ww_status search_lock(ww_collection *c)
{
    collection_lock_read(c);
    while (store_is_stale(&c->store)) {
        collection_unlock(c);
        collection_lock_write(c);
        const ww_status status = store_push_live(&c->store);
        collection_unlock(c);
        if (status != WW_OK)
            return status;
        collection_lock_read(c);
    }
    return WW_OK;
}

static bool asks_for_lists(const ww_query *query)
{
    return query->nprobe > 0 || query->recall > 0.0f;
}

/* Returns true if the search may read lists. */
static bool wants_lists(const ww_collection *c, const ww_query *query)
{
    const bool exact = query->mode != WW_QUERY_RANGE && !query->mask && !query->filter;
    return asks_for_lists(query) || (exact && ivf_exact_wants_lists(c, query->query_count));
}

/* Like search_lock(); also copies the lists to the device if the query reads them. */
static ww_status lock_for(ww_collection *c, const ww_query *query)
{
    ww_status status = search_lock(c);
    while (status == WW_OK && wants_lists(c, query) && ivf_is_stale(c)) {
        collection_unlock(c);
        collection_lock_write(c);
        status = ivf_push(c);
        collection_unlock(c);
        if (status == WW_OK)
            status = search_lock(c);
    }
    return status;
}

static ww_status index_check(const ww_collection *c, const ww_query *query)
{
    if (!asks_for_lists(query) || c->store.rows_live == 0)
        return WW_OK;
    if (!c->index)
        return ww_fail(WW_INVALID_ARGUMENT,
                       "collection '%s': the query has nprobe or recall, but there is no index; build one, or leave both "
                       "at 0 for an exact search",
                       c->name);
    if (query->recall > 0.0f && query->recall < 1.0f && c->index->calibration.k == 0)
        return ww_fail(WW_INVALID_ARGUMENT,
                       "collection '%s': recall is %g, but its index is not calibrated; calibrate it first", c->name,
                       (double)query->recall);
    return WW_OK;
}

/* Takes the lock and makes the job. The lock is not held after a failure. */
static ww_status search_begin(search *s, ww_collection *c, const ww_query *query)
{
    const row_store *store = &c->store;
    *s = (search){.collection = c, .query = query, .stats = {.certificate = INFINITY}};
    ww_status status = lock_for(c, query);
    if (status != WW_OK)
        return status;
    s->job = (search_job){.metric = (int32_t)c->metric,
                          .dim = c->dim,
                          .type = (int32_t)c->type,
                          .segments = store->segments,
                          .segment_count = store_segments_used(store),
                          .queries = query->queries,
                          .query_count = query->query_count,
                          .query_stride = query->query_stride,
                          .k = query->k,
                          .mask = query->mask,
                          .mask_rows = query->mask_rows,
                          .screen = store->screen,
                          .stats = &s->stats,
                          .progress = query->progress,
                          .progress_user = query->progress_user};
    status = mask_check(c, query);
    if (status == WW_OK)
        status = index_check(c, query);
    if (status == WW_OK && query->filter) {
        status = filter_mask_make(c, query, &s->filter_mask);
        s->job.mask = s->filter_mask;
        s->job.mask_rows = store->rows_count;
    }
    if (status == WW_OK && query->query_count > 0 && !query->queries)
        status = place_queries(s);
    if (status != WW_OK) {
        memory_free(s->filter_mask);
        memory_free(s->host_queries);
        collection_unlock(c);
    }
    return status;
}

static void search_end(search *s, ww_status status)
{
    collection_unlock(s->collection);
    memory_free(s->filter_mask);
    memory_free(s->host_queries);
    if (status == WW_OK)
        query_tell_stats(s->query, &s->stats);
}

/* ---- the k nearest ------------------------------------------------------------------------------------------------------- */

/* `proven` receives the number of proven hits of each query, or is NULL. */
static ww_status find_nearest(search *s, int64_t *rows, float *scores, int64_t *proven)
{
    const ww_collection *c = s->collection;
    s->job.rows = rows;
    s->job.scores = scores;
    if (c->store.rows_live > 0 && asks_for_lists(s->query))
        return ivf_search(c, &s->job, ivf_rule_of(c->index, s->query), proven);
    bool done = false;
    if (ivf_exact_pays(c, &s->job)) {
        const ww_status status = ivf_search_exactly(c, &s->job, &done);
        if (status != WW_OK || done)
            return status;
    }
    if (c->store.rows_live > 0)
        return c->device->backend->rows_search(c->device, &s->job);
    results_pad(s->job.metric, s->job.query_count * s->job.k, rows, scores);
    return WW_OK;
}

static ww_status range_results(search *s, float bound, int64_t limit, ww_results **results);

/* More hits than a kernel keeps: all rows in order, up to the k-th. This is exact, so every hit is proven. */
static ww_status many_results(search *s, ww_results **results)
{
    const float bound = s->collection->metric == WW_L2 ? INFINITY : -INFINITY;
    ww_status status = range_results(s, bound, s->query->k, results);
    if (status != WW_OK)
        return status;
    memory_free((*results)->totals); /* only ranges count what they leave out */
    (*results)->totals = NULL;
    if (asks_for_lists(s->query))
        status = results_proven(*results);
    for (int64_t q = 0; status == WW_OK && asks_for_lists(s->query) && q < (*results)->query_count; q++)
        (*results)->proven[q] = (*results)->starts[q + 1] - (*results)->starts[q];
    return status;
}

/* There cannot be more hits than live rows, so this many places are enough for any k. */
static ww_status nearest_results(search *s, ww_results **results)
{
    search_job *job = &s->job;
    job->k = (int32_t)min_i64(job->k, s->collection->store.rows_live);
    if (job->k > SEARCH_K_MAX)
        return many_results(s, results);
    ww_status status = results_create(job->query_count, job->query_count * job->k, results);
    if (status != WW_OK || job->query_count == 0 || job->k == 0)
        return status;
    if (asks_for_lists(s->query))
        status = results_proven(*results);
    if (status == WW_OK)
        status = find_nearest(s, (*results)->rows, (*results)->scores, (*results)->proven);
    if (status == WW_OK)
        results_from_padded(*results, job->k);
    return status;
}

/* ---- a range ------------------------------------------------------------------------------------------------------------- */

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

/* Makes results from the keys. */
static ww_status results_of_keys(const search *s, const key_list *found, ww_results **results)
{
    const ww_collection *c = s->collection;
    const int64_t query_count = s->job.query_count;
    int64_t hits = 0;
    for (int64_t q = 0; q < query_count; q++)
        hits += found[q].count;
    ww_status status = results_create(query_count, hits, results);
    if (status == WW_OK)
        status = results_totals(*results);
    if (status != WW_OK)
        return status;
    ww_results *made = *results;
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
    return WW_OK;
}

static ww_status range_results(search *s, float bound, int64_t limit, ww_results **results)
{
    const ww_collection *c = s->collection;
    const size_t lists = (size_t)s->job.query_count + 1;
    key_list *found = memory_alloc_zeroed(lists, sizeof *found);
    if (!found)
        return memory_failed("a range search", lists * sizeof *found);
    const range_job job = {.search = s->job, .bound = bound + 0.0f /* never -0 */, .limit = limit, .found = found};
    ww_status status =
        c->store.rows_live > 0 && job.search.query_count > 0 ? c->device->backend->rows_range(c->device, &job) : WW_OK;
    if (status == WW_OK)
        status = results_of_keys(s, found, results);
    for (int64_t q = 0; q < job.search.query_count; q++)
        key_list_free(&found[q]);
    memory_free(found);
    return status;
}

/* ---- the calls ----------------------------------------------------------------------------------------------------------- */

ww_status collection_query(ww_collection *c, const ww_query *query, ww_results **results)
{
    search s;
    ww_results *made = NULL;
    ww_status status = search_begin(&s, c, query);
    if (status != WW_OK)
        return status;
    status = query->mode == WW_QUERY_RANGE ? range_results(&s, query->bound, query->limit, &made) : nearest_results(&s, &made);
    if (status == WW_OK)
        status = results_fetch(made, c, query->fetch);
    search_end(&s, status);
    if (status == WW_OK)
        *results = made;
    else
        ww_results_destroy(made);
    return status;
}

/* The same as collection_query(), into buffers. */
static ww_status search_many(ww_collection *c, const ww_query *query, int64_t *rows, float *scores)
{
    ww_results *found = NULL;
    const ww_status status = collection_query(c, query, &found);
    if (status == WW_OK)
        results_pad((int32_t)c->metric, query->query_count * query->k, rows, scores);
    for (int64_t q = 0; status == WW_OK && q < query->query_count; q++) {
        const int64_t first = found->starts[q], count = found->starts[q + 1] - first;
        memcpy(rows + q * query->k, found->rows + first, (size_t)count * sizeof *rows);
        memcpy(scores + q * query->k, found->scores + first, (size_t)count * sizeof *scores);
    }
    ww_results_destroy(found);
    return status;
}

ww_status collection_search(ww_collection *c, const ww_query *query, int64_t *rows, float *scores)
{
    search s;
    if (query->k > SEARCH_K_MAX)
        return search_many(c, query, rows, scores);
    ww_status status = search_begin(&s, c, query);
    if (status != WW_OK)
        return status;
    status = find_nearest(&s, rows, scores, NULL);
    search_end(&s, status);
    return status;
}
