/* Looking things up: from an id to its row, and from a row to its vector, its id and its payload. */
#include <string.h>

#include "arithmetic/row_values.h"
#include "base/float_guard.h"
#include "base/memory.h"
#include "vectors/ids/automatic_ids.h"
#include "vectors/ids/handles.h"
#include "vectors/payloads.h"

ww_status ww_collection_find(ww_collection *collection, const char *id, int64_t *row)
{
    FLOAT_GUARD();
    const ww_status status = collection_check(collection, "ww_collection_find");
    if (status != WW_OK)
        return status;
    if (!id || !row)
        return fail_null("ww_collection_find", id ? "row" : "id");
    if (collection->durable)
        return collection->durable->find(collection->owner, id, row);
    const id_text text = {id, (uint32_t)strnlen(id, WW_ID_BYTES_MAX + 1)};
    collection_lock_read(collection);
    const int64_t found = collection_find(collection, text);
    collection_unlock(collection);
    if (found < 0)
        return ww_fail(WW_NOT_FOUND, "collection '%s': there is no id '%.*s'", collection->name, WW_ID_BYTES_MAX, id);
    *row = found;
    return WW_OK;
}

ww_status ww_collection_find_handle(ww_collection *collection, int64_t handle, int64_t *row)
{
    FLOAT_GUARD();
    const ww_status status = collection_check(collection, "ww_collection_find_handle");
    if (status != WW_OK)
        return status;
    if (!row)
        return fail_null("ww_collection_find_handle", "row");
    if (collection->durable)
        return collection->durable->find_handle(collection->owner, handle, row);
    collection_lock_read(collection);
    const int64_t found = handle_find(&collection->moved, &collection->store, handle);
    const bool was_given = handle >= 0 && handle < collection->next_handle;
    collection_unlock(collection);
    if (found < 0)
        return ww_fail(WW_NOT_FOUND, "collection '%s': %s %lld", collection->name,
                       was_given ? "there is no row any more with handle" : "no row ever had handle", (long long)handle);
    *row = found;
    return WW_OK;
}

/* A row of a collection that is kept elsewhere, with what `fetch` names. */
static ww_status durable_row(const ww_collection *c, int64_t row, uint32_t fetch, ww_results **found)
{
    *found = NULL;
    return c->durable->row(c->owner, row, fetch, found);
}

static ww_status row_check(const ww_collection *c, int64_t row)
{
    if (store_is_live(&c->store, row))
        return WW_OK;
    if (row >= 0 && row < c->store.rows_count)
        return ww_fail(WW_NOT_FOUND, "collection '%s': row %lld was removed or replaced", c->name, (long long)row);
    return ww_fail(WW_NOT_FOUND, "collection '%s': there is no row %lld; it has %lld rows", c->name, (long long)row,
                   (long long)c->store.rows_count);
}

ww_status ww_collection_handle(ww_collection *collection, int64_t row, int64_t *handle)
{
    FLOAT_GUARD();
    ww_status status = collection_check(collection, "ww_collection_handle");
    if (status != WW_OK)
        return status;
    if (!handle)
        return fail_null("ww_collection_handle", "handle");
    if (collection->durable) {
        ww_results *found;
        status = durable_row(collection, row, 0, &found);
        if (status == WW_OK)
            *handle = *ww_results_handles(found, 0);
        ww_results_destroy(found);
        return status;
    }
    collection_lock_read(collection);
    status = row_check(collection, row);
    if (status == WW_OK)
        *handle = store_handle(&collection->store, row);
    collection_unlock(collection);
    return status;
}

/* The elements of a live row, as they came. */
static ww_status read_elements(ww_collection *collection, int64_t row, void *elements)
{
    const row_store *store = &collection->store;
    collection_lock_read(collection);
    ww_status status = row_check(collection, row);
    const char *copy = status == WW_OK ? store_copy_of(store, row) : NULL;
    if (copy) {
        memcpy(elements, copy, store_element_bytes(store));
    } else if (status == WW_OK) {
        const segment *part = &store->segments[store_segment_of(store, row)];
        status = collection->device->backend->rows_read(collection->device,
                                                        (row_range){part, row - part->first_row, 1, store->dim}, elements);
    }
    collection_unlock(collection);
    return status;
}

ww_status ww_collection_vector(ww_collection *collection, int64_t row, float *vector)
{
    FLOAT_GUARD();
    ww_status status = collection_check(collection, "ww_collection_vector");
    if (status != WW_OK)
        return status;
    if (!vector)
        return fail_null("ww_collection_vector", "vector");
    if (collection->durable) {
        ww_results *found;
        status = durable_row(collection, row, WW_FETCH_VECTORS, &found);
        if (status == WW_OK)
            memcpy(vector, ww_results_vector(found, 0, 0), (size_t)collection->dim * sizeof *vector);
        ww_results_destroy(found);
        return status;
    }
    if (collection->type == WW_VECTOR_F32)
        return read_elements(collection, row, vector);
    const size_t bytes = store_element_bytes(&collection->store);
    void *elements = memory_alloc(bytes);
    if (!elements)
        return memory_failed("a row's elements", bytes);
    status = read_elements(collection, row, elements);
    if (status == WW_OK)
        row_widen((int32_t)collection->type, elements, collection->dim, vector);
    memory_free(elements);
    return status;
}

ww_status ww_collection_elements(ww_collection *collection, int64_t row, void *elements)
{
    FLOAT_GUARD();
    ww_status status = collection_check(collection, "ww_collection_elements");
    if (status != WW_OK)
        return status;
    if (!elements)
        return fail_null("ww_collection_elements", "elements");
    if (collection->durable) {
        ww_results *found;
        status = durable_row(collection, row, WW_FETCH_VECTORS, &found);
        if (status == WW_OK)
            (void)row_narrow((int32_t)collection->type, ww_results_vector(found, 0, 0), collection->dim, elements);
        ww_results_destroy(found);
        return status;
    }
    return read_elements(collection, row, elements);
}

typedef struct text_bytes {
    const char *bytes; /* not terminated */
    size_t length;
} text_bytes;

static ww_status copy_text(const char *function, text_bytes from, char *text, size_t capacity, size_t *length)
{
    if (length)
        *length = from.length;
    if (capacity == 0)
        return WW_OK;
    if (!text)
        return fail_null(function, "text");
    if (capacity <= from.length)
        return ww_fail(WW_OUT_OF_RANGE, "%s: the text has %zu bytes and a NUL; capacity is %zu", function, from.length,
                       capacity);
    memcpy(text, from.bytes, from.length);
    text[from.length] = '\0';
    return WW_OK;
}

ww_status ww_collection_id(ww_collection *collection, int64_t row, char *text, size_t capacity, size_t *length)
{
    FLOAT_GUARD();
    ww_status status = collection_check(collection, "ww_collection_id");
    if (status != WW_OK)
        return status;
    if (collection->durable) {
        ww_results *found;
        status = durable_row(collection, row, WW_FETCH_IDS, &found);
        const char *copy = status == WW_OK && ww_results_id(found, 0, 0) ? ww_results_id(found, 0, 0) : "";
        if (status == WW_OK)
            status = copy_text("ww_collection_id", (text_bytes){copy, strlen(copy)}, text, capacity, length);
        ww_results_destroy(found);
        return status;
    }
    collection_lock_read(collection);
    status = row_check(collection, row);
    if (status == WW_OK) {
        char digits[HANDLE_DIGITS];
        const id_text id = collection_row_id(collection, row, digits);
        status = copy_text("ww_collection_id", (text_bytes){id.bytes, id.length}, text, capacity, length);
    }
    collection_unlock(collection);
    return status;
}

ww_status ww_collection_payload(ww_collection *collection, int64_t row, char *text, size_t capacity, size_t *length)
{
    FLOAT_GUARD();
    ww_status status = collection_check(collection, "ww_collection_payload");
    if (status != WW_OK)
        return status;
    if (collection->durable) {
        ww_results *found;
        status = durable_row(collection, row, WW_FETCH_PAYLOADS, &found);
        const char *copy = status == WW_OK && ww_results_payload(found, 0, 0) ? ww_results_payload(found, 0, 0) : "";
        if (status == WW_OK)
            status = copy_text("ww_collection_payload", (text_bytes){copy, strlen(copy)}, text, capacity, length);
        ww_results_destroy(found);
        return status;
    }
    collection_lock_read(collection);
    status = row_check(collection, row);
    if (status == WW_OK) {
        const char *payload = payload_get(&collection->store, row);
        const text_bytes bytes = {payload ? payload : "", payload ? strlen(payload) : 0};
        status = copy_text("ww_collection_payload", bytes, text, capacity, length);
    }
    collection_unlock(collection);
    return status;
}

int64_t ww_collection_next(ww_collection *collection, int64_t row)
{
    if (!collection || collection_check(collection, "ww_collection_next") != WW_OK)
        return -1;
    if (collection->durable)
        return collection->durable->next(collection->owner, row);
    collection_lock_read(collection);
    const int64_t next = store_next(&collection->store, row);
    collection_unlock(collection);
    return next;
}
