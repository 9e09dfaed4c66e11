/* Removing: ids are looked up first, all of them, then masked on the device, and only then forgotten. */
#include <string.h>

#include "base/memory.h"
#include "vectors/automatic_ids.h"
#include "vectors/handles.h"

static ww_status id_read(int64_t number, const char *text, id_text *id)
{
    if (!text)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_collection_remove: id %lld of the list is NULL", (long long)number);
    *id = (id_text){text, (uint32_t)strnlen(text, WW_ID_BYTES_MAX + 1)};
    return WW_OK;
}

/* Why an id cannot be removed: it is not there, or is masked already since it was named before in the same list. */
static ww_status cannot_remove(const ww_collection *c, const char *const *ids, int64_t number)
{
    for (int64_t i = 0; i < number; i++)
        if (strcmp(ids[i], ids[number]) == 0)
            return ww_fail(WW_DUPLICATE_ID, "collection '%s': id '%s' appears twice in the list to remove; nothing was removed",
                           c->name, ids[number]);
    return ww_fail(WW_NOT_FOUND, "collection '%s': there is no id '%.*s' to remove; nothing was removed", c->name,
                   WW_ID_BYTES_MAX, ids[number]);
}

/* Masks one row on the host and notes its number. */
static ww_status take_out(ww_collection *c, const char *const *ids, int64_t number, uint32_t *row)
{
    id_text id;
    const ww_status status = id_read(number, ids[number], &id);
    if (status != WW_OK)
        return status;
    const int64_t found = collection_find(c, id);
    if (found < 0 || !store_is_live(&c->store, found))
        return cannot_remove(c, ids, number);
    store_mark(&c->store, found, 1, false);
    *row = (uint32_t)found;
    return WW_OK;
}

static ww_status remove_rows(ww_collection *c, const char *const *ids, int64_t count, uint32_t *rows)
{
    row_store *store = &c->store;
    ww_status status = WW_OK;
    int64_t taken = 0;
    while (status == WW_OK && taken < count) {
        status = take_out(c, ids, taken, &rows[taken]);
        taken += status == WW_OK;
    }
    if (status == WW_OK)
        status = store_push_live(store);
    if (status != WW_OK) {
        for (int64_t i = 0; i < taken; i++)
            store_mark(store, rows[i], 1, true);
        return status;
    }
    for (int64_t i = 0; i < count; i++) {
        if (c->ids_are_stored)
            id_table_remove(&c->ids, id_hash(&c->ids, store_id(store, rows[i])), rows[i]);
        if (handle_is_out_of_order(store, rows[i]))
            id_table_remove(&c->moved, handle_hash(&c->moved, store_handle(store, rows[i])), rows[i]);
    }
    store->rows_live -= count;
    return WW_OK;
}

ww_status ww_collection_remove(ww_collection *collection, const char *const *ids, int64_t count)
{
    if (!collection)
        return fail_null("ww_collection_remove", "collection");
    if (count < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_collection_remove: count is %lld; it must not be negative", (long long)count);
    if (count == 0)
        return WW_OK;
    if (!ids)
        return fail_null("ww_collection_remove", "ids");
    if (count > WW_ROWS_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "ww_collection_remove: count is %lld, more than a collection can hold",
                       (long long)count);
    uint32_t *rows = memory_alloc((size_t)count * sizeof *rows);
    if (!rows)
        return memory_failed("the list of rows to remove", (size_t)count * sizeof *rows);
    collection_lock_write(collection);
    const ww_status status = remove_rows(collection, ids, count, rows);
    collection_unlock(collection);
    memory_free(rows);
    return status;
}

ww_status ww_collection_clear(ww_collection *collection)
{
    if (!collection)
        return fail_null("ww_collection_clear", "collection");
    collection_lock_write(collection);
    collection_empty(collection);
    collection_unlock(collection);
    return WW_OK;
}
