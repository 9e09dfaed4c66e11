/* Gets many rows at once by ids, by handles, or all of them, as results: a snapshot, under one lock. */
#include <string.h>

#include "base/cancel.h"
#include "base/float_guard.h"
#include "base/integers.h"
#include "base/structs.h"
#include "vectors/ids/automatic_ids.h"
#include "vectors/ids/handles.h"
#include "vectors/query/fetch.h"

STRUCT_INIT(ww_get, {0})

static const char function[] = "ww_collection_get";

static ww_status get_check(const ww_get *get)
{
    if (get->count < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: count is %lld; it must not be negative", function, (long long)get->count);
    if (get->ids && get->handles)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: ids and handles are both given; give one of them", function);
    for (int64_t i = 0; get->ids && i < get->count; i++)
        if (!get->ids[i])
            return ww_fail(WW_INVALID_ARGUMENT, "%s: id %lld of the list is NULL", function, (long long)i);
    return fetch_check(function, get->fetch);
}

/* Returns the row that entry `i` of the list names, or -1. Without a list it is the next live row after `previous`. */
static int64_t row_of(const ww_collection *c, const ww_get *get, int64_t i, int64_t previous)
{
    if (get->handles)
        return handle_find(&c->moved, &c->store, get->handles[i]);
    if (!get->ids)
        return store_next(&c->store, previous);
    return collection_find(c, (id_text){get->ids[i], (uint32_t)strnlen(get->ids[i], WW_ID_BYTES_MAX + 1)});
}

/* Called with the lock. */
static ww_status get_rows(const ww_collection *c, const ww_get *get, ww_results **results)
{
    const bool listed = get->ids || get->handles;
    const int64_t count = listed ? get->count : min_i64(get->count, c->store.rows_live);
    const ww_status status = results_create(1, count, results);
    if (status != WW_OK)
        return status;
    int64_t row = -1;
    for (int64_t i = 0; i < count; i++) {
        row = row_of(c, get, i, row);
        (*results)->rows[i] = row;
        (*results)->scores[i] = 0.0f;
    }
    (*results)->starts[1] = count;
    return results_fetch(*results, c, get->fetch);
}

ww_status memory_get(ww_collection *c, const ww_get *get, ww_results **results)
{
    ww_results *made = NULL;
    collection_lock_read(c);
    const ww_status status = get_rows(c, get, &made);
    collection_unlock(c);
    if (status == WW_OK)
        *results = made;
    else
        ww_results_destroy(made);
    return status;
}

ww_status ww_collection_get(ww_collection *collection, const ww_get *get, ww_results **results)
{
    FLOAT_GUARD();
    ww_get asked;
    ww_status status = collection_check(collection, function);
    if (status != WW_OK)
        return status;
    if (!get || !results)
        return fail_null(function, get ? "results" : "get");
    status = struct_read(&asked, sizeof asked, get, function, "ww_get");
    if (status == WW_OK)
        status = get_check(&asked);
    CANCEL_BY(status == WW_OK ? asked.cancel : NULL);
    return status == WW_OK ? collection->operations->get(collection, &asked, results) : status;
}
