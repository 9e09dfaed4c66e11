/* Ids that are handles. */
#include "vectors/ids/automatic_ids.h"

#include "base/integers.h"
#include "base/memory.h"
#include "vectors/ids/handles.h"

id_text handle_in_digits(int64_t handle, char *digits)
{
    int at = HANDLE_DIGITS;
    do
        digits[--at] = (char)('0' + handle % 10);
    while ((handle /= 10) > 0);
    return (id_text){digits + at, (uint32_t)(HANDLE_DIGITS - at)};
}

int64_t handle_from_digits(id_text id)
{
    if (id.length == 0 || id.length > HANDLE_DIGITS || (id.bytes[0] == '0' && id.length > 1))
        return -1;
    uint64_t number = 0; /* a number of 19 digits is below 10^19, which fits in 64 bits without a sign */
    for (uint32_t i = 0; i < id.length; i++) {
        if (id.bytes[i] < '0' || id.bytes[i] > '9')
            return -1;
        number = number * 10 + (uint64_t)(id.bytes[i] - '0');
    }
    return number <= INT64_MAX ? (int64_t)number : -1;
}

int64_t collection_find(const ww_collection *collection, id_text id)
{
    if (!collection->ids_are_stored)
        return handle_find(&collection->moved, &collection->store, handle_from_digits(id));
    const id_table *ids = &collection->ids;
    return id.length > 0 ? id_table_find(ids, &collection->store, id, id_hash(ids, id)) : -1;
}

id_text collection_row_id(const ww_collection *collection, int64_t row, char *digits)
{
    const row_store *store = &collection->store;
    return collection->ids_are_stored ? store_id(store, row) : handle_in_digits(store_handle(store, row), digits);
}

static void forget_pages(row_store *store)
{
    for (int64_t row = 0; row < store->rows_count; row += PAGE_ROWS) {
        row_page *page = store_page(store, row);
        memory_free(page->ids);
        page->ids = NULL;
    }
}

/* Removed rows get ids, too, because a page has the ids of all its rows. */
static ww_status make_pages(row_store *store, int64_t *bytes)
{
    for (int64_t row = 0; row < store->rows_count; row += PAGE_ROWS) {
        char digits[PAGE_ROWS][HANDLE_DIGITS];
        id_text ids[PAGE_ROWS];
        const int64_t left = store->rows_count - row;
        const int32_t count = (int32_t)min_i64(left, PAGE_ROWS);
        for (int32_t i = 0; i < count; i++)
            ids[i] = handle_in_digits(store_handle(store, row + i), digits[i]);
        id_page *made = id_page_make(NULL, 0, ids, count);
        if (!made)
            return memory_failed("a page of ids", sizeof *made + (size_t)count * HANDLE_DIGITS);
        store_page(store, row)->ids = made;
        *bytes += id_page_bytes(made, count);
    }
    return WW_OK;
}

ww_status collection_store_ids(ww_collection *collection)
{
    row_store *store = &collection->store;
    if (collection->ids_are_stored)
        return WW_OK;
    int64_t bytes = 0;
    id_table made = collection->ids; /* no table to update; reserved memory stays */
    ww_status status = make_pages(store, &bytes);
    if (status == WW_OK && store->rows_live > 0) {
        const id_table like = {.key = collection->ids.key, .entries = store->rows_live};
        status = id_table_grow(&like, store, store->rows_live, &made);
    }
    if (status != WW_OK) {
        forget_pages(store);
        return status;
    }
    if (store->rows_live > 0) {
        id_table_destroy(&collection->ids);
        collection->ids = made;
    }
    store->bytes_ids += bytes;
    collection->ids_are_stored = true;
    return WW_OK;
}
