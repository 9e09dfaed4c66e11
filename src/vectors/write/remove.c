/* Removes rows: first all ids are looked up, then the rows are masked on the device, and only then their data is freed. */
#include <string.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "vectors/filter/select.h"
#include "vectors/ids/automatic_ids.h"
#include "vectors/ids/handles.h"

/* A list of ids to remove, and the rows that were found for them. */
typedef struct removal {
    const char *const *ids;
    int64_t count;
    bool all_or_none; /* an unknown id is refused; otherwise it is counted */
    uint32_t *rows;
    int64_t rows_count;
    int64_t missing;
} removal;

static ww_status list_check(const ww_collection *c, const char *function, const char *const *ids, int64_t count)
{
    const ww_status status = collection_check(c, function);
    if (status != WW_OK)
        return status;
    if (count < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: count is %lld; it must not be negative", function, (long long)count);
    if (count > 0 && !ids)
        return fail_null(function, "ids");
    if (count > WW_ROWS_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "%s: count is %lld, more than a collection can hold", function, (long long)count);
    for (int64_t i = 0; i < count; i++)
        if (!ids[i])
            return ww_fail(WW_INVALID_ARGUMENT, "%s: id %lld of the list is NULL", function, (long long)i);
    return WW_OK;
}

/* Fails with the reason why an id cannot be removed: it is unknown, or appears twice in the list. */
static ww_status cannot_remove(const removal *r, const ww_collection *c, int64_t number)
{
    for (int64_t i = 0; i < number; i++)
        if (strcmp(r->ids[i], r->ids[number]) == 0)
            return ww_fail(WW_DUPLICATE_ID, "collection '%s': id '%s' appears twice in the list to remove; nothing was removed",
                           c->name, r->ids[number]);
    return ww_fail(WW_NOT_FOUND, "collection '%s': there is no id '%.*s' to remove; nothing was removed", c->name,
                   WW_ID_BYTES_MAX, r->ids[number]);
}

/* Masks one row on the host and records its number. */
static ww_status take_out(removal *r, ww_collection *c, int64_t number)
{
    const char *text = r->ids[number];
    const int64_t found = collection_find(c, (id_text){text, (uint32_t)strnlen(text, WW_ID_BYTES_MAX + 1)});
    if (found >= 0 && store_is_live(&c->store, found)) {
        store_mark(&c->store, found, 1, false);
        r->rows[r->rows_count++] = (uint32_t)found;
        return WW_OK;
    }
    r->missing++;
    return r->all_or_none ? cannot_remove(r, c, number) : WW_OK;
}

/* Frees the data of rows that are masked on the host, after the device has masked them, too. If `status` is a failure or
 * masking fails, they become live again. */
static ww_status forget_rows(const removal *r, ww_collection *c, ww_status status)
{
    row_store *store = &c->store;
    if (status == WW_OK && r->rows_count > 0)
        status = store_push_live(store);
    if (status != WW_OK) {
        for (int64_t i = 0; i < r->rows_count; i++)
            store_mark(store, r->rows[i], 1, true);
        return status;
    }
    for (int64_t i = 0; i < r->rows_count; i++) {
        const int64_t row = r->rows[i];
        if (c->ids_are_stored)
            id_table_remove(&c->ids, id_hash(&c->ids, store_id(store, row)), row);
        if (handle_is_out_of_order(store, row))
            id_table_remove(&c->moved, handle_hash(&c->moved, store_handle(store, row)), row);
    }
    store->rows_live -= r->rows_count;
    return WW_OK;
}

static ww_status remove_rows(removal *r, ww_collection *c)
{
    ww_status status = WW_OK;
    for (int64_t i = 0; status == WW_OK && i < r->count; i++)
        status = take_out(r, c, i);
    return forget_rows(r, c, status);
}

ww_status memory_remove(ww_collection *c, const char *const *ids, int64_t count, int64_t *missing)
{
    removal r = {.ids = ids, .count = count, .all_or_none = !missing};
    r.rows = memory_alloc((size_t)count * sizeof *r.rows);
    if (!r.rows)
        return memory_failed("the list of rows to remove", (size_t)count * sizeof *r.rows);
    collection_lock_rows(c);
    const ww_status status = remove_rows(&r, c);
    collection_unlock(c);
    memory_free(r.rows);
    if (status == WW_OK && missing)
        *missing = r.missing;
    return status;
}

ww_status memory_select_remove(ww_collection *c, const ww_selection *selection, int64_t *removed)
{
    removal r = {0};
    selected_rows found;
    collection_lock_rows(c);
    ww_status status = selected_rows_find(c, selection, &found);
    if (status == WW_OK && !(r.rows = memory_alloc((size_t)found.count * sizeof *r.rows)))
        status = memory_failed("the list of rows to remove", (size_t)found.count * sizeof *r.rows);
    for (; status == WW_OK && r.rows_count < found.count; r.rows_count++) {
        r.rows[r.rows_count] = (uint32_t)found.rows[r.rows_count].row;
        store_mark(&c->store, found.rows[r.rows_count].row, 1, false);
    }
    status = forget_rows(&r, c, status);
    collection_unlock(c);
    memory_free(r.rows);
    memory_free(found.rows);
    *removed = r.rows_count;
    return status;
}

ww_status ww_collection_remove(ww_collection *collection, const char *const *ids, int64_t count)
{
    FLOAT_GUARD();
    const ww_status status = list_check(collection, "ww_collection_remove", ids, count);
    return status == WW_OK && count > 0 ? collection->operations->remove(collection, ids, count, NULL) : status;
}

ww_status ww_collection_discard(ww_collection *collection, const char *const *ids, int64_t count, int64_t *missing)
{
    FLOAT_GUARD();
    int64_t absent = 0;
    ww_status status = list_check(collection, "ww_collection_discard", ids, count);
    if (status == WW_OK && count > 0)
        status = collection->operations->remove(collection, ids, count, &absent);
    if (status == WW_OK && missing)
        *missing = absent;
    return status;
}

ww_status memory_clear(ww_collection *c)
{
    collection_lock_rows(c);
    collection_empty(c);
    collection_unlock(c);
    return WW_OK;
}

ww_status ww_collection_clear(ww_collection *collection)
{
    FLOAT_GUARD();
    const ww_status status = collection_check(collection, "ww_collection_clear");
    return status == WW_OK ? collection->operations->clear(collection) : status;
}
