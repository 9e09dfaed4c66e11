/* Queries: a search and everything asked for about what it found, under one lock, so that nothing in the results is of another
 * state of the collection than the rest. */
#include <math.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/structs.h"
#include "vectors/fetch.h"
#include "vectors/search.h"

STRUCT_INIT(ww_query, {0})

static ww_status query_check(ww_collection *c, const ww_query *query, ww_search *search, tensor_rows *held)
{
    *search = (ww_search){.struct_size = sizeof *search,
                          .queries = query->queries,
                          .query_count = query->query_count,
                          .dim = query->dim,
                          .query_stride = query->query_stride,
                          .k = query->k,
                          .mask = query->mask,
                          .mask_rows = query->mask_rows,
                          .progress = query->progress,
                          .progress_user = query->progress_user,
                          .stats = query->stats,
                          .query_tensor = query->query_tensor};
    ww_status status = where_check(c, "ww_collection_query", query);
    if (status == WW_OK)
        status = search_check(c, "ww_collection_query", search, held);
    return status == WW_OK ? fetch_check("ww_collection_query", query->fetch) : status;
}

/* With the lock. More than the live rows cannot be found: so few places are enough, however large k is. */
static ww_status query_run(const ww_collection *c, ww_search *search, uint32_t fetch, search_stats *stats, ww_results **results)
{
    search->k = (int32_t)min_i64(search->k, c->store.rows_live);
    ww_status status = results_create(search->query_count, search->query_count * search->k, results);
    if (status == WW_OK && search->query_count > 0 && search->k > 0) {
        status = search_run(c, search, (*results)->rows, (*results)->scores, stats);
        if (status == WW_OK)
            results_from_padded(*results, search->k);
    }
    return status == WW_OK ? results_fetch(*results, c, fetch) : status;
}

static ww_status query_now(ww_collection *c, const ww_query *query, ww_search *search, tensor_rows *held, ww_results **results)
{
    ww_results *made = NULL;
    search_stats stats = {.certificate = INFINITY};
    ww_status status = search_begin(c, search, held);
    if (status != WW_OK)
        return status;
    status = query_run(c, search, query->fetch, &stats, &made);
    collection_unlock(c);
    if (status != WW_OK) {
        ww_results_destroy(made);
        return status;
    }
    search_tell_stats(query->stats, &stats);
    *results = made;
    return WW_OK;
}

ww_status ww_collection_query(ww_collection *collection, const ww_query *query, ww_results **results)
{
    FLOAT_GUARD();
    static const char function[] = "ww_collection_query";
    ww_query asked;
    ww_search search;
    tensor_rows held = {0};
    ww_status status = collection_check(collection, function);
    if (status != WW_OK)
        return status;
    if (!query || !results)
        return fail_null(function, query ? "results" : "query");
    status = struct_read(&asked, sizeof asked, query, function, "ww_query");
    if (status == WW_OK)
        status = query_check(collection, &asked, &search, &held);
    if (status == WW_OK && collection->durable) {
        asked.query_count = search.query_count;
        asked.dim = search.dim;
        asked.query_stride = search.query_stride;
        status = collection->durable->query(collection->owner, &asked, results);
    } else if (status == WW_OK) {
        status = query_now(collection, &asked, &search, &held, results);
    }
    tensor_rows_release(&held);
    return status;
}
