/* Selections: rows that are chosen by conditions instead of ids or scores.
 *
 * Pages of rows are ordered by handle, except for rows that an upsert replaced: these are out of order within their page or, if
 * the collection's table lists them, among pages. If that table is empty, the first rows are found without reading later pages.
 * Otherwise all rows of the selection are found first. They are sorted at the end.
 */
#include "vectors/filter/select.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/cancel.h"
#include "base/float_guard.h"
#include "base/memory.h"
#include "base/structs.h"
#include "vectors/filter/filter.h"
#include "vectors/filter/filter_mask.h"
#include "vectors/ids/automatic_ids.h"
#include "vectors/ids/handles.h"
#include "vectors/query/fetch.h"
#include "vectors/query/query.h"
#include "vectors/write/payloads.h"

STRUCT_INIT(ww_selection, {0})

/* ---- finding rows -------------------------------------------------------------------------------------------------------- */

static ww_status append(selected_rows *found, selected_row row)
{
    const ww_status grown =
        array_reserve(&found->rows, &found->capacity, found->count + 1, sizeof *found->rows, "the rows of a selection");
    if (grown != WW_OK)
        return grown;
    found->disordered = found->disordered || (found->count > 0 && found->rows[found->count - 1].handle > row.handle);
    found->rows[found->count++] = row;
    return WW_OK;
}

static int by_handle(const void *a, const void *b)
{
    const int64_t x = ((const selected_row *)a)->handle, y = ((const selected_row *)b)->handle;
    return (x > y) - (x < y);
}

/* Lists every live row in the mask from the selection's first handle on. A NULL mask admits all rows. */
static ww_status find_masked(const ww_collection *c, const ww_selection *s, const uint64_t *mask, selected_rows *found)
{
    ww_status status = WW_OK;
    for (int64_t row = store_next(&c->store, -1); status == WW_OK && row >= 0; row = store_next(&c->store, row)) {
        const int64_t handle = store_handle(&c->store, row);
        if (handle >= s->first_handle && (!mask || (mask[row / 64] >> (row % 64) & 1)))
            status = append(found, (selected_row){handle, row});
    }
    return status;
}

/* Lists as many rows as the selection requests, and the rest of their page. The collection's pages must be ordered by
 * handle. */
static ww_status find_first(const ww_collection *c, const ww_selection *s, selected_rows *found)
{
    ww_status status = WW_OK;
    int64_t row = store_next(&c->store, handle_page(&c->store, s->first_handle) - 1), page = -1;
    for (; status == WW_OK && row >= 0; row = store_next(&c->store, row)) {
        if (row / PAGE_ROWS != page && found->count >= s->limit)
            break;
        page = row / PAGE_ROWS;
        const int64_t handle = store_handle(&c->store, row);
        bool matches = handle >= s->first_handle;
        if (matches && s->filter) {
            char digits[HANDLE_DIGITS];
            const id_text id = collection_row_id(c, row, digits);
            status = filter_matches(s->filter, &(filter_row){id.bytes, id.length, payload_get(&c->store, row)}, &matches);
        }
        if (status == WW_OK && matches)
            status = append(found, (selected_row){handle, row});
    }
    return status;
}

ww_status selected_rows_find(const ww_collection *c, const ww_selection *selection, selected_rows *found)
{
    uint64_t *mask = NULL;
    ww_status status = WW_OK;
    *found = (selected_rows){0};
    if (selection->limit > 0 && c->moved.entries == 0) {
        status = find_first(c, selection, found);
    } else {
        if (selection->filter)
            status = filter_mask_make(c, &(ww_query){.filter = selection->filter}, &mask);
        if (status == WW_OK)
            status = find_masked(c, selection, mask, found);
        memory_free(mask);
    }
    if (status != WW_OK) {
        memory_free(found->rows);
        *found = (selected_rows){0};
        return status;
    }
    if (found->disordered)
        qsort(found->rows, (size_t)found->count, sizeof *found->rows, by_handle);
    if (selection->limit > 0 && found->count > selection->limit)
        found->count = selection->limit;
    return WW_OK;
}

/* ---- in memory ----------------------------------------------------------------------------------------------------------- */

/* Called with the lock. */
static ww_status select_rows(const ww_collection *c, const ww_selection *selection, uint32_t fetch, ww_results **results)
{
    selected_rows found;
    ww_status status = selected_rows_find(c, selection, &found);
    if (status == WW_OK)
        status = results_create(1, found.count, results);
    if (status == WW_OK) {
        for (int64_t i = 0; i < found.count; i++) {
            (*results)->rows[i] = found.rows[i].row;
            (*results)->scores[i] = 0.0f;
        }
        (*results)->starts[1] = found.count;
        status = results_fetch(*results, c, fetch);
    }
    memory_free(found.rows);
    return status;
}

ww_status memory_select(ww_collection *c, const ww_selection *selection, uint32_t fetch, ww_results **results)
{
    ww_results *made = NULL;
    collection_lock_read(c);
    const ww_status status = select_rows(c, selection, fetch, &made);
    collection_unlock(c);
    if (status == WW_OK)
        *results = made;
    else
        ww_results_destroy(made);
    return status;
}

ww_status memory_select_count(ww_collection *c, const ww_selection *selection, int64_t *count)
{
    selected_rows found;
    collection_lock_read(c);
    const ww_status status = selected_rows_find(c, selection, &found);
    collection_unlock(c);
    *count = found.count;
    memory_free(found.rows);
    return status;
}

/* ---- the calls ----------------------------------------------------------------------------------------------------------- */

ww_status selection_read(const ww_collection *c, const char *function, const ww_selection *callers, ww_selection *read)
{
    ww_status status = collection_check(c, function);
    if (status != WW_OK)
        return status;
    if (!callers)
        return fail_null(function, "selection");
    status = struct_read(read, sizeof *read, callers, function, "ww_selection");
    if (status != WW_OK)
        return status;
    if (read->first_handle < 0)
        return ww_fail(WW_OUT_OF_RANGE, "%s: first_handle is %lld; it must not be negative", function,
                       (long long)read->first_handle);
    if (read->limit < 0)
        return ww_fail(WW_OUT_OF_RANGE, "%s: limit is %lld; it must not be negative, and 0 is none", function,
                       (long long)read->limit);
    const ww_query conditions = {
        .where = read->where, .parameters = read->parameters, .parameter_count = read->parameter_count, .filter = read->filter};
    return query_check_conditions(c, function, &conditions);
}

ww_status ww_collection_select(ww_collection *collection, const ww_selection *selection, uint32_t fetch, ww_results **results)
{
    FLOAT_GUARD();
    static const char function[] = "ww_collection_select";
    ww_selection read = {0};
    ww_status status = selection_read(collection, function, selection, &read);
    if (status == WW_OK)
        status = fetch_check(function, fetch);
    if (status == WW_OK && !results)
        status = fail_null(function, "results");
    CANCEL_BY(status == WW_OK ? read.cancel : NULL);
    return status == WW_OK ? collection->operations->select(collection, &read, fetch, results) : status;
}

ww_status ww_collection_select_count(ww_collection *collection, const ww_selection *selection, int64_t *count)
{
    FLOAT_GUARD();
    static const char function[] = "ww_collection_select_count";
    ww_selection read = {0};
    int64_t found = 0;
    ww_status status = selection_read(collection, function, selection, &read);
    if (status != WW_OK)
        return status;
    if (!count)
        return fail_null(function, "count");
    CANCEL_BY(read.cancel);
    status = collection->operations->select_count(collection, &read, &found);
    if (status == WW_OK)
        *count = found;
    return status;
}

ww_status ww_collection_select_remove(ww_collection *collection, const ww_selection *selection, int64_t *removed)
{
    FLOAT_GUARD();
    static const char function[] = "ww_collection_select_remove";
    ww_selection read = {0};
    int64_t gone = 0;
    ww_status status = selection_read(collection, function, selection, &read);
    if (status == WW_OK && !read.filter && !read.where)
        status = ww_fail(WW_INVALID_ARGUMENT,
                         "%s: there is neither a filter nor a where; to remove all rows, clear the collection", function);
    CANCEL_BY(status == WW_OK ? read.cancel : NULL);
    if (status == WW_OK)
        status = collection->operations->select_remove(collection, &read, &gone);
    if (status == WW_OK && removed)
        *removed = gone;
    return status;
}
