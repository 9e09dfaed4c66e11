/* Rows whose id is their row number.
 *
 * A store's `implicit_ids` counts them: all of its rows or none. All of them are live, since a removal stores the ids first.
 */
#include "vectors/implicit_ids.h"

#include "base/integers.h"
#include "base/memory.h"

id_text row_in_digits(int64_t row, char *digits)
{
    int at = ROW_DIGITS;
    do
        digits[--at] = (char)('0' + row % 10);
    while ((row /= 10) > 0);
    return (id_text){digits + at, (uint32_t)(ROW_DIGITS - at)};
}

/* The number that `id` is the decimal text of, or -1: no sign, no leading zero, nothing after it. */
static int64_t number_of(id_text id)
{
    if (id.length == 0 || id.length > ROW_DIGITS || (id.bytes[0] == '0' && id.length > 1))
        return -1;
    int64_t number = 0;
    for (uint32_t i = 0; i < id.length; i++) {
        if (id.bytes[i] < '0' || id.bytes[i] > '9')
            return -1;
        number = number * 10 + (id.bytes[i] - '0');
    }
    return number;
}

int64_t collection_find(const ww_collection *collection, id_text id)
{
    const row_store *store = &collection->store;
    if (store->implicit_ids > 0) {
        const int64_t number = number_of(id);
        return number < store->implicit_ids ? number : -1;
    }
    return id.length > 0 ? id_table_find(&collection->ids, store, id, id_hash(&collection->ids, id)) : -1;
}

id_text collection_row_id(const ww_collection *collection, int64_t row, char *digits)
{
    return collection->store.implicit_ids > 0 ? row_in_digits(row, digits) : store_id(&collection->store, row);
}

static void forget_pages(row_store *store)
{
    for (int64_t row = 0; row < store->implicit_ids; row += PAGE_ROWS) {
        row_page *page = store_page(store, row);
        memory_free(page->ids);
        page->ids = NULL;
    }
}

static ww_status make_pages(row_store *store, int64_t *bytes)
{
    for (int64_t row = 0; row < store->implicit_ids; row += PAGE_ROWS) {
        char digits[PAGE_ROWS][ROW_DIGITS];
        id_text ids[PAGE_ROWS];
        const int64_t left = store->implicit_ids - row;
        const int32_t count = (int32_t)min_i64(left, PAGE_ROWS);
        for (int32_t i = 0; i < count; i++)
            ids[i] = row_in_digits(row + i, digits[i]);
        id_page *made = id_page_make(NULL, 0, ids, count);
        if (!made)
            return memory_failed("a page of ids", sizeof *made + (size_t)count * ROW_DIGITS);
        store_page(store, row)->ids = made;
        *bytes += id_page_bytes(made, count);
    }
    return WW_OK;
}

ww_status collection_store_ids(ww_collection *collection)
{
    row_store *store = &collection->store;
    if (store->implicit_ids == 0)
        return WW_OK;
    int64_t bytes = 0;
    id_table made = {0};
    const id_table like = {.seed = collection->ids.seed, .entries = store->implicit_ids};
    ww_status status = make_pages(store, &bytes);
    if (status == WW_OK)
        status = id_table_grow(&like, store, store->implicit_ids, &made);
    if (status != WW_OK) {
        forget_pages(store);
        return status;
    }
    id_table_destroy(&collection->ids);
    collection->ids = made;
    store->bytes_ids += bytes;
    store->implicit_ids = 0;
    return WW_OK;
}
