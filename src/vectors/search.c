/* Searching: everything is checked here, the device does the rest. */
#include "vectors/search.h"

#include <math.h>
#include <stdatomic.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/structs.h"
#include "device/results.h"

enum {
    ITEM_NUMBERS = 1 << 16, /* of queries, that a thread looks at in one piece; */
    ITEMS_LEAST = 4         /* fewer pieces are not worth waking threads */
};

STRUCT_INIT(ww_search, {0})
STRUCT_INIT(ww_search_stats, {0})

/* ---- checks ---------------------------------------------------------------------------------------------------------------
 */

typedef struct finite_job {
    const ww_search *search;
    int64_t item_queries;
    atomic_int_least64_t first_bad; /* query_count if there is none */
} finite_job;

static void find_not_finite(void *context, int64_t item, int32_t worker)
{
    (void)worker;
    finite_job *job = context;
    const ww_search *search = job->search;
    const int64_t end = min_i64((item + 1) * job->item_queries, search->query_count);
    for (int64_t q = item * job->item_queries; q < end; q++) {
        if (vector_is_finite(search->queries + q * search->query_stride, search->dim))
            continue;
        int64_t first = atomic_load(&job->first_bad);
        while (q < first && !atomic_compare_exchange_weak(&job->first_bad, &first, q))
            continue;
        return;
    }
}

/* The first query that is not finite, query_count if all are. Many are looked at by the device's threads: a search may take no
 * longer than one thread reads its queries. */
static int64_t first_not_finite(ww_collection *c, const ww_search *search)
{
    finite_job job = {.search = search, .item_queries = ITEM_NUMBERS / search->dim + 1};
    atomic_init(&job.first_bad, search->query_count);
    const int64_t items = divide_up_i64(search->query_count, job.item_queries);
    if (items < ITEMS_LEAST) {
        pool_run_here(items, find_not_finite, &job);
        return atomic_load(&job.first_bad);
    }
    collection_lock_read(c); /* for the device */
    pool *threads = c->device->backend->threads(c->device);
    if (threads)
        (void)pool_run(threads, items, find_not_finite, NULL, &job);
    else
        pool_run_here(items, find_not_finite, &job);
    collection_unlock(c);
    return atomic_load(&job.first_bad);
}

ww_status search_check(ww_collection *c, const char *function, ww_search *search)
{
    if (search->query_count < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: query_count is %lld; it must not be negative", function,
                       (long long)search->query_count);
    if (search->dim != c->dim)
        return ww_fail(WW_DIMENSION_MISMATCH, "collection '%s' has dimension %d, the queries have %d", c->name, c->dim,
                       search->dim);
    if (search->k < 0)
        return ww_fail(WW_OUT_OF_RANGE, "%s: k is %d; it must not be negative", function, search->k);
    if (search->k > WW_K_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "%s: k is %d; the maximum is %d", function, search->k, WW_K_MAX);
    if (search->query_stride == 0)
        search->query_stride = search->dim;
    if (search->query_stride < search->dim)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: query_stride is %lld; it must be at least dim, %d", function,
                       (long long)search->query_stride, search->dim);
    if (search->mask_rows < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: mask_rows is %lld; it must not be negative", function,
                       (long long)search->mask_rows);
    if (search->stats && struct_check(search->stats, function, "ww_search_stats"))
        return WW_INVALID_ARGUMENT;
    if (search->query_count > 0 && !search->queries)
        return fail_null(function, "queries");
    char fault[VECTOR_FAULT_BYTES];
    const int64_t bad = first_not_finite(c, search);
    if (bad < search->query_count)
        return ww_fail(WW_INVALID_ARGUMENT, "collection '%s': query %lld: %s", c->name, (long long)bad,
                       vector_fault(search->queries + bad * search->query_stride, search->dim, fault));
    return WW_OK;
}

void search_tell_stats(ww_search_stats *callers, const search_stats *found)
{
    const ww_search_stats stats = {.rows_screened = found->rows_screened,
                                   .rows_kept = found->rows_kept,
                                   .rows_scored = found->rows_scored,
                                   .fallback_queries = found->fallback_queries,
                                   .certificate = found->certificate,
                                   .repeated_queries = found->repeated_queries};
    if (callers)
        (void)struct_write(callers, &stats, sizeof stats, "search", "ww_search_stats"); /* search_check() saw it */
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

/* A mask of no rows admits nothing: somebody forgot to say how many rows it covers. In a collection without rows it is right.
 */
ww_status search_check_mask(const ww_collection *c, const ww_search *search)
{
    if (!search->mask || search->mask_rows > 0 || c->store.rows_count == 0)
        return WW_OK;
    return ww_fail(WW_INVALID_ARGUMENT, "collection '%s': there is a mask, but mask_rows is 0; a mask over all rows has %lld",
                   c->name, (long long)c->store.rows_count);
}

ww_status search_run(const ww_collection *c, const ww_search *search, int64_t *rows, float *scores, search_stats *stats)
{
    const row_store *store = &c->store;
    const ww_status status = search_check_mask(c, search);
    if (status != WW_OK)
        return status;
    const search_job job = {
        .metric = (int32_t)c->metric,
        .dim = c->dim,
        .type = (int32_t)c->type,
        .segments = store->segments,
        .segment_count = store_segments_used(store),
        .queries = search->queries,
        .query_count = search->query_count,
        .query_stride = search->query_stride,
        .k = search->k,
        .mask = search->mask,
        .mask_rows = search->mask_rows,
        .rows = rows,
        .scores = scores,
        .screen = store->screen,
        .stats = stats,
        .progress = search->progress,
        .progress_user = search->progress_user,
    };
    if (store->rows_live > 0)
        return c->device->backend->rows_search(c->device, &job);
    results_pad(job.metric, job.query_count * job.k, rows, scores);
    return WW_OK;
}

ww_status ww_collection_search(ww_collection *collection, const ww_search *search, int64_t *rows, float *scores)
{
    FLOAT_GUARD();
    static const char function[] = "ww_collection_search";
    ww_search checked;
    ww_status status = collection_check(collection, function);
    if (status == WW_OK && !search)
        status = fail_null(function, "search");
    if (status == WW_OK)
        status = struct_read(&checked, sizeof checked, search, function, "ww_search");
    if (status == WW_OK)
        status = search_check(collection, function, &checked);
    if (status != WW_OK)
        return status;
    const bool nothing = checked.query_count == 0 || checked.k == 0;
    if (!nothing && (!rows || !scores))
        return fail_null(function, rows ? "scores" : "rows");
    if (collection->durable && !nothing)
        return collection->durable->search(collection->owner, &checked, rows, scores);
    search_stats stats = {.certificate = INFINITY};
    status = nothing ? WW_OK : search_lock(collection);
    if (status == WW_OK && !nothing) {
        status = search_run(collection, &checked, rows, scores, &stats);
        collection_unlock(collection);
    }
    if (status == WW_OK)
        search_tell_stats(checked.stats, &stats);
    return status;
}
