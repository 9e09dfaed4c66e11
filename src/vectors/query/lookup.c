/* Finds the row of an id, and the vector, id and payload of a row. */
#include <string.h>

#include "arithmetic/row_values.h"
#include "base/float_guard.h"
#include "base/memory.h"
#include "vectors/ids/automatic_ids.h"
#include "vectors/ids/handles.h"
#include "vectors/write/payloads.h"

/* ---- in memory ----------------------------------------------------------------------------------------------------------- */

ww_status memory_find(ww_collection *c, const char *id, int64_t *row)
{
    const id_text text = {id, (uint32_t)strnlen(id, WW_ID_BYTES_MAX + 1)};
    collection_lock_read(c);
    const int64_t found = collection_find(c, text);
    collection_unlock(c);
    if (found < 0)
        return ww_fail(WW_NOT_FOUND, "collection '%s': there is no id '%.*s'", c->name, WW_ID_BYTES_MAX, id);
    *row = found;
    return WW_OK;
}

ww_status memory_find_handle(ww_collection *c, int64_t handle, int64_t *row)
{
    collection_lock_read(c);
    const int64_t found = handle_find(&c->moved, &c->store, handle);
    const bool was_given = handle >= 0 && handle < c->next_handle;
    collection_unlock(c);
    if (found < 0)
        return ww_fail(WW_NOT_FOUND, "collection '%s': %s %lld", c->name,
                       was_given ? "the row with this handle was removed:" : "no row ever had handle", (long long)handle);
    *row = found;
    return WW_OK;
}

int64_t memory_next(ww_collection *c, int64_t row)
{
    collection_lock_read(c);
    const int64_t next = store_next(&c->store, row);
    collection_unlock(c);
    return next;
}

static ww_status row_check(const ww_collection *c, int64_t row)
{
    if (store_is_live(&c->store, row))
        return WW_OK;
    if (row >= 0 && row < c->store.rows_count)
        return ww_fail(WW_NOT_FOUND, "collection '%s': row %lld was removed or replaced", c->name, (long long)row);
    return ww_fail(WW_NOT_FOUND, "collection '%s': there is no row %lld; it has %lld row%s", c->name, (long long)row,
                   (long long)c->store.rows_count, c->store.rows_count == 1 ? "" : "s");
}

/* Reads the elements of a live row as they were added. */
static ww_status read_elements(const ww_collection *c, int64_t row, void *elements)
{
    const row_store *store = &c->store;
    const char *copy = store_copy_of(store, row);
    const segment *part = &store->segments[store_segment_of(store, row)];
    if (!copy)
        return c->device->backend->rows_read(c->device, (row_range){part, row - part->first_row, 1, store->dim}, elements);
    memcpy(elements, copy, store_element_bytes(store));
    return WW_OK;
}

/* Reads the requested field of a live row. Called with the lock. */
static ww_status read_row(const ww_collection *c, int64_t row, const row_request *request)
{
    char digits[HANDLE_DIGITS];
    if (request->fetch & WW_FETCH_VECTORS)
        return read_elements(c, row, request->elements);
    if (request->fetch & WW_FETCH_IDS) {
        const id_text id = collection_row_id(c, row, digits);
        return row_text_copy(request, id.bytes, id.length);
    }
    if (request->fetch & WW_FETCH_PAYLOADS) {
        const char *payload = payload_get(&c->store, row);
        return row_text_copy(request, payload ? payload : "", payload ? strlen(payload) : 0);
    }
    *request->handle = store_handle(&c->store, row);
    return WW_OK;
}

ww_status memory_row(ww_collection *c, int64_t row, const row_request *request)
{
    collection_lock_read(c);
    ww_status status = row_check(c, row);
    if (status == WW_OK)
        status = read_row(c, row, request);
    collection_unlock(c);
    return status;
}

ww_status row_text_copy(const row_request *request, const char *text, size_t length)
{
    if (request->length)
        *request->length = length;
    if (request->capacity == 0)
        return WW_OK;
    if (!request->text)
        return fail_null(request->function, "text");
    if (request->capacity <= length)
        return ww_fail(WW_OUT_OF_RANGE, "%s: the text has %zu bytes and a NUL; capacity is %zu", request->function, length,
                       request->capacity);
    memcpy(request->text, text, length);
    request->text[length] = '\0';
    return WW_OK;
}

/* ---- the calls ----------------------------------------------------------------------------------------------------------- */

ww_status ww_collection_find(ww_collection *collection, const char *id, int64_t *row)
{
    FLOAT_GUARD();
    const ww_status status = collection_check(collection, "ww_collection_find");
    if (status != WW_OK)
        return status;
    if (!id || !row)
        return fail_null("ww_collection_find", id ? "row" : "id");
    return collection->operations->find(collection, id, row);
}

ww_status ww_collection_find_handle(ww_collection *collection, int64_t handle, int64_t *row)
{
    FLOAT_GUARD();
    const ww_status status = collection_check(collection, "ww_collection_find_handle");
    if (status != WW_OK)
        return status;
    return row ? collection->operations->find_handle(collection, handle, row) : fail_null("ww_collection_find_handle", "row");
}

/* `missing` names the argument that the caller left NULL, or is NULL. */
static ww_status ask(ww_collection *c, int64_t row, const row_request *request, const char *missing)
{
    const ww_status status = collection_check(c, request->function);
    if (status != WW_OK)
        return status;
    return missing ? fail_null(request->function, missing) : c->operations->row(c, row, request);
}

ww_status ww_collection_handle(ww_collection *collection, int64_t row, int64_t *handle)
{
    FLOAT_GUARD();
    const row_request request = {.function = "ww_collection_handle", .handle = handle};
    return ask(collection, row, &request, handle ? NULL : "handle");
}

ww_status ww_collection_elements(ww_collection *collection, int64_t row, void *elements)
{
    FLOAT_GUARD();
    const row_request request = {.function = "ww_collection_elements", .fetch = WW_FETCH_VECTORS, .elements = elements};
    return ask(collection, row, &request, elements ? NULL : "elements");
}

ww_status ww_collection_vector(ww_collection *collection, int64_t row, float *vector)
{
    FLOAT_GUARD();
    row_request request = {.function = "ww_collection_vector", .fetch = WW_FETCH_VECTORS, .elements = vector};
    ww_status status = collection_check(collection, request.function);
    if (status != WW_OK)
        return status;
    if (!vector || collection->type == WW_VECTOR_F32)
        return ask(collection, row, &request, vector ? NULL : "vector");
    const size_t bytes = (size_t)collection->dim * row_type_bytes((int32_t)collection->type);
    request.elements = memory_alloc(bytes);
    if (!request.elements)
        return memory_failed("a row's elements", bytes);
    status = ask(collection, row, &request, NULL);
    if (status == WW_OK)
        row_widen((int32_t)collection->type, request.elements, collection->dim, vector);
    memory_free(request.elements);
    return status;
}

ww_status ww_collection_id(ww_collection *collection, int64_t row, char *text, size_t capacity, size_t *length)
{
    FLOAT_GUARD();
    const row_request request = {WW_FETCH_IDS, NULL, NULL, "ww_collection_id", text, capacity, length};
    return ask(collection, row, &request, NULL);
}

ww_status ww_collection_payload(ww_collection *collection, int64_t row, char *text, size_t capacity, size_t *length)
{
    FLOAT_GUARD();
    const row_request request = {WW_FETCH_PAYLOADS, NULL, NULL, "ww_collection_payload", text, capacity, length};
    return ask(collection, row, &request, NULL);
}

int64_t ww_collection_next(ww_collection *collection, int64_t row)
{
    if (!collection || collection_check(collection, "ww_collection_next") != WW_OK)
        return -1;
    return collection->operations->next(collection, row);
}
