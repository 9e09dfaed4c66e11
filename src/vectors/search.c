/* Searching: everything is checked here, the device does the rest. */
#include <math.h>

#include "base/structs.h"
#include "device/results.h"
#include "vectors/collection.h"

STRUCT_INIT(ww_search, {0})
STRUCT_INIT(ww_search_stats, {0})

static ww_status search_check(const ww_collection *c, const ww_search *callers, ww_search *search)
{
    if (struct_read(search, sizeof *search, callers, "ww_collection_search", "ww_search"))
        return WW_INVALID_ARGUMENT;
    if (search->query_count < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_collection_search: query_count is %lld; it must not be negative",
                       (long long)search->query_count);
    if (search->dim != c->dim)
        return ww_fail(WW_DIMENSION_MISMATCH, "collection '%s' has dimension %d, the queries have %d", c->name, c->dim,
                       search->dim);
    if (search->k < 0)
        return ww_fail(WW_OUT_OF_RANGE, "ww_collection_search: k is %d; it must not be negative", search->k);
    if (search->k > WW_K_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "ww_collection_search: k is %d; the maximum is %d", search->k, WW_K_MAX);
    if (search->query_stride == 0)
        search->query_stride = search->dim;
    if (search->query_stride < search->dim)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_collection_search: query_stride is %lld; it must be at least dim, %d",
                       (long long)search->query_stride, search->dim);
    if (search->mask_rows < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_collection_search: mask_rows is %lld; it must not be negative",
                       (long long)search->mask_rows);
    if (search->stats && struct_check(search->stats, "ww_collection_search", "ww_search_stats"))
        return WW_INVALID_ARGUMENT;
    if (search->query_count > 0 && !search->queries)
        return fail_null("ww_collection_search", "search->queries");
    for (int64_t q = 0; q < search->query_count; q++)
        if (!vector_is_finite(search->queries + q * search->query_stride, search->dim))
            return ww_fail(WW_INVALID_ARGUMENT,
                           "collection '%s': query %lld has a value that is not finite, or values so large that its squared "
                           "norm is not finite",
                           c->name, (long long)q);
    return WW_OK;
}

static void tell_stats(ww_search_stats *callers, const search_stats *found)
{
    const ww_search_stats stats = {.rows_screened = found->rows_screened,
                                   .rows_kept = found->rows_kept,
                                   .rows_scored = found->rows_scored,
                                   .fallback_queries = found->fallback_queries,
                                   .certificate = found->certificate};
    if (callers)
        (void)struct_write(callers, &stats, sizeof stats, "ww_collection_search",
                           "ww_search_stats"); /* search_check() saw it */
}

/* Takes the reader's lock with the device's live words up to date. They are behind only after a write failed while it
 * changed them; then a writer's lock is needed first, to set them right. */
static ww_status lock_current(ww_collection *c)
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

ww_status ww_collection_search(ww_collection *collection, const ww_search *search, int64_t *rows, float *scores)
{
    if (!collection || !search)
        return fail_null("ww_collection_search", collection ? "search" : "collection");
    ww_search checked;
    ww_status status = search_check(collection, search, &checked);
    search_stats stats = {.certificate = INFINITY};
    if (status == WW_OK && (checked.query_count == 0 || checked.k == 0))
        tell_stats(checked.stats, &stats);
    if (status != WW_OK || checked.query_count == 0 || checked.k == 0)
        return status;
    if (!rows || !scores)
        return fail_null("ww_collection_search", rows ? "scores" : "rows");
    status = lock_current(collection);
    if (status != WW_OK)
        return status;
    const row_store *store = &collection->store;
    const search_job job = {
        .metric = (int32_t)collection->metric,
        .dim = collection->dim,
        .segments = store->segments,
        .segment_count = store_segments_used(store),
        .queries = checked.queries,
        .query_count = checked.query_count,
        .query_stride = checked.query_stride,
        .k = checked.k,
        .mask = checked.mask,
        .mask_rows = checked.mask_rows,
        .rows = rows,
        .scores = scores,
        .screen = store->screen,
        .stats = &stats,
        .progress = checked.progress,
        .progress_user = checked.progress_user,
    };
    if (store->rows_live == 0)
        results_pad(job.metric, job.query_count * job.k, rows, scores);
    else
        status = collection->device->backend->rows_search(collection->device, &job);
    collection_unlock(collection);
    if (status == WW_OK)
        tell_stats(checked.stats, &stats);
    return status;
}
