/* Finds the handles of rows, and the rows of handles. */
#include "vectors/ids/handles.h"

#include "base/memory.h"

static int64_t page_handle(const row_page *page, int64_t slot)
{
    return page->handles ? page->handles[slot] : page->first_handle + slot;
}

int64_t store_handle(const row_store *store, int64_t row)
{
    return page_handle(store_page(store, row), row % PAGE_ROWS);
}

void store_handles(const row_store *store, const int64_t *rows, int64_t count, int64_t *handles)
{
    const row_page *page = NULL;
    for (int64_t i = 0; i < count; i++) {
        if (i == 0 || rows[i] / PAGE_ROWS != rows[i - 1] / PAGE_ROWS)
            page = store_page(store, rows[i]);
        handles[i] = page_handle(page, rows[i] % PAGE_ROWS);
    }
}

bool handle_order(const row_store *store, int64_t row, int64_t *handle)
{
    const row_page *page = store_page(store, row);
    *handle = page_handle(page, row % PAGE_ROWS);
    return *handle < page->first_handle;
}

bool handle_is_out_of_order(const row_store *store, int64_t row)
{
    int64_t handle;
    return handle_order(store, row, &handle);
}

uint64_t handle_hash(const id_table *moved, int64_t handle)
{
    return id_hash(moved, (id_text){(const char *)&handle, sizeof handle});
}

int64_t handle_page(const row_store *store, int64_t handle)
{
    int64_t low = 0, high = (store->rows_count - 1) / PAGE_ROWS;
    while (low < high) {
        const int64_t middle = (low + high + 1) / 2;
        if (store_page(store, middle * PAGE_ROWS)->first_handle <= handle)
            low = middle;
        else
            high = middle - 1;
    }
    return low * PAGE_ROWS;
}

static int64_t find_in_page(const row_store *store, int64_t first_row, int64_t handle)
{
    const row_page *page = store_page(store, first_row);
    if (!page->handles) {
        const int64_t slot = handle - page->first_handle;
        return slot >= 0 && slot < PAGE_ROWS && store_is_live(store, first_row + slot) ? first_row + slot : -1;
    }
    for (int64_t slot = 0; slot < PAGE_ROWS && first_row + slot < store->rows_count; slot++)
        if (page->handles[slot] == handle && store_is_live(store, first_row + slot))
            return first_row + slot;
    return -1;
}

int64_t handle_find(const id_table *moved, const row_store *store, int64_t handle)
{
    if (handle < 0 || store->rows_count == 0)
        return -1;
    const int64_t found = find_in_page(store, handle_page(store, handle), handle);
    if (found >= 0 || moved->entries == 0)
        return found;
    id_probe probe = id_table_probe(moved, handle_hash(moved, handle));
    for (int64_t row = id_probe_next(&probe); row >= 0; row = id_probe_next(&probe))
        if (store_handle(store, row) == handle)
            return row;
    return -1;
}

/* Returns the smallest handle that is in order, or `first` if there is none. */
static int64_t smallest_in_order(const int64_t *handles, int64_t count, int64_t first)
{
    int64_t smallest = INT64_MAX;
    for (int64_t i = 0; i < count; i++)
        if (handles[i] >= first && handles[i] < smallest)
            smallest = handles[i];
    return smallest < INT64_MAX ? smallest : first;
}

ww_status handle_page_set(row_page *page, page_handles set, int64_t *bytes)
{
    const int64_t begins = set.slot == 0 ? smallest_in_order(set.handles, set.count, set.first) : page->first_handle;
    bool follow = !page->handles;
    for (int64_t i = 0; i < set.count && follow; i++)
        follow = set.handles[i] == begins + set.slot + i;
    if (!follow && !page->handles) {
        page->handles = memory_alloc(PAGE_ROWS * sizeof *page->handles);
        if (!page->handles)
            return memory_failed("a page of handles", PAGE_ROWS * sizeof *page->handles);
        *bytes += (int64_t)(PAGE_ROWS * sizeof *page->handles);
        for (int64_t i = 0; i < set.slot; i++)
            page->handles[i] = begins + i;
    }
    page->first_handle = begins;
    for (int64_t i = 0; i < set.count && page->handles; i++)
        page->handles[set.slot + i] = set.handles[i];
    return WW_OK;
}

bool handle_page_follow(row_page *page, int64_t slot, int64_t first)
{
    if (page->handles || (slot > 0 && page->first_handle + slot != first))
        return false;
    if (slot == 0)
        page->first_handle = first;
    return true;
}

ww_status handle_table_grow(const id_table *moved, const row_store *store, int64_t entries, id_table *larger)
{
    const ww_status status = id_table_make(moved, entries, larger);
    for (uint64_t b = 0; status == WW_OK && b < moved->bucket_count; b++)
        for (int i = 0; i < BUCKET_SLOTS; i++)
            if (moved->buckets[b].tags[i] != 0) {
                const int64_t row = moved->buckets[b].rows[i];
                id_table_insert(larger, handle_hash(larger, store_handle(store, row)), row);
            }
    return status;
}
