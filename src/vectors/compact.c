/* Compacting and reserving.
 *
 * Compacting builds a second store and a second table of ids from the live rows, and swaps them in when they are complete.
 * Until then the collection is unchanged. Payloads are moved at that moment, not copied.
 */
#include <string.h>

#include "arithmetic/canon.h"
#include "arithmetic/row_types.h"
#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "vectors/collection.h"
#include "vectors/ids/handles.h"
#include "vectors/ivf/ivf.h"
#include "vectors/write/payloads.h"

enum { GATHER_BYTES = 64 * 1024 * 1024 }; /* rows between two progress reports */

typedef struct compaction {
    ww_collection *collection;
    row_store store; /* the new one */
    id_table ids;
    id_table moved;
    int64_t moved_count; /* rows of the new store whose handles are out of order */
    int64_t *sources;    /* rows of one old segment that are gathered together */
    int64_t sources_max;
    int64_t *ranks; /* of the rows in the index (ivf_rank) */
    ww_progress progress;
    void *user;
} compaction;

static ww_status told(const compaction *m, int64_t done)
{
    const int64_t total = m->collection->store.rows_live;
    if (!progress_tell(m->progress, m->user, done, total))
        return WW_OK;
    return ww_fail(WW_CANCELLED, "collection '%s': compact cancelled after %lld of %lld rows; nothing was changed",
                   m->collection->name, (long long)done, (long long)total);
}

static ww_status reserve(compaction *m)
{
    ww_collection *c = m->collection;
    ww_status status = store_create(&m->store, c->device, c->stream, collection_shape(c, c->device));
    if (status == WW_OK)
        status = store_grow(&m->store, c->store.rows_live);
    m->sources_max = GATHER_BYTES / ((int64_t)canon_padded(c->dim) * (int64_t)row_type_bytes((int32_t)c->type));
    if (m->sources_max > c->store.rows_live)
        m->sources_max = c->store.rows_live;
    const size_t bytes = (size_t)m->sources_max * sizeof *m->sources;
    if (status == WW_OK && !(m->sources = memory_alloc(bytes)))
        status = memory_failed("the list of rows to gather", bytes);
    return status;
}

/* Gathers live rows starting at `*row`: as many as are in one old segment, fit in one new segment, and do not exceed one step.
 * Advances `*row`. */
static ww_status gather_some(compaction *m, int64_t *row, int64_t *done)
{
    const row_store *old = &m->collection->store;
    const segment *from = &old->segments[store_segment_of(old, *row)];
    const segment *to = &m->store.segments[store_segment_of(&m->store, *done)];
    const int64_t first = *done - to->first_row;
    int64_t count_max = to->capacity - first;
    if (count_max > m->sources_max)
        count_max = m->sources_max;
    int64_t count = 0;
    for (; count < count_max && *row >= 0 && *row < from->first_row + from->capacity; *row = store_next(old, *row))
        m->sources[count++] = *row - from->first_row;
    char *copy = store_copy_of(&m->store, *done);
    const size_t bytes = store_element_bytes(old);
    for (int64_t i = 0; copy && i < count; i++)
        memcpy(copy + (size_t)i * bytes, store_copy_of(old, from->first_row + m->sources[i]), bytes);
    *done += count;
    ww_device *device = m->collection->device;
    const ww_status status = device->backend->rows_gather(device, (row_range){to, first, count, old->dim}, from, m->sources);
    return status == WW_OK ? told(m, *done) : status;
}

static ww_status gather(compaction *m)
{
    int64_t row = store_next(&m->collection->store, -1);
    int64_t done = 0;
    ww_status status = told(m, 0);
    while (status == WW_OK && row >= 0)
        status = gather_some(m, &row, &done);
    return status;
}

static ww_status copy_ids(compaction *m, row_page *page, const int64_t *rows, int32_t count)
{
    id_text ids[PAGE_ROWS];
    for (int32_t i = 0; i < count; i++)
        ids[i] = store_id(&m->collection->store, rows[i]);
    page->ids = id_page_make(NULL, 0, ids, count);
    if (!page->ids)
        return memory_failed("a page of ids", sizeof(id_page) + (size_t)count * WW_ID_BYTES_MAX);
    m->store.bytes_ids += id_page_bytes(page->ids, count);
    return WW_OK;
}

/* `*first` is larger than all handles of earlier pages; afterwards it is also larger than those of this page. */
static ww_status copy_handles(compaction *m, row_page *page, const int64_t *rows, int32_t count, int64_t *first)
{
    int64_t handles[PAGE_ROWS];
    int64_t end = *first;
    store_handles(&m->collection->store, rows, count, handles);
    for (int32_t i = 0; i < count; i++) {
        m->moved_count += handles[i] < *first;
        end = max_i64(end, handles[i] + 1);
    }
    const ww_status status = handle_page_set(page, (page_handles){handles, 0, count, *first}, &m->store.bytes_handles);
    *first = end;
    return status;
}

/* Copies ids and handles page by page, and makes pages for payloads if a row will need one. */
static ww_status copy_pages(compaction *m)
{
    const row_store *old = &m->collection->store;
    int64_t row = store_next(old, -1);
    int64_t first_handle = 0;
    ww_status status = WW_OK;
    for (int64_t done = 0; status == WW_OK && row >= 0;) {
        int64_t rows[PAGE_ROWS];
        int32_t count = 0;
        row_page *page = store_page(&m->store, done);
        for (; status == WW_OK && count < PAGE_ROWS && row >= 0; row = store_next(old, row)) {
            rows[count++] = row;
            const char *payload = payload_get(old, row);
            if (payload) {
                status = payload_page_make(page, &m->store.bytes_payloads);
                m->store.bytes_payloads += (int64_t)strlen(payload) + 1;
            }
        }
        if (status == WW_OK && m->collection->ids_are_stored)
            status = copy_ids(m, page, rows, count);
        if (status == WW_OK)
            status = copy_handles(m, page, rows, count, &first_handle);
        done += count;
    }
    return status;
}

static ww_status make_tables(compaction *m)
{
    const ww_collection *c = m->collection;
    ww_status status = WW_OK;
    if (c->ids_are_stored) {
        const id_table like = {.key = c->ids.key, .entries = c->ids.entries};
        status = id_table_grow(&like, &m->store, c->ids.entries, &m->ids);
    }
    const id_table like = {.key = c->moved.key};
    if (status == WW_OK && m->moved_count > 0)
        status = id_table_make(&like, m->moved_count, &m->moved);
    for (int64_t row = 0; status == WW_OK && m->moved.entries < m->moved_count; row++)
        if (handle_is_out_of_order(&m->store, row))
            id_table_insert(&m->moved, handle_hash(&m->moved, store_handle(&m->store, row)), row);
    return status;
}

/* Marks all rows of the new store as live on the device, and builds the tables from it. */
static ww_status finish(compaction *m)
{
    const ww_collection *c = m->collection;
    store_commit(&m->store, c->store.rows_live);
    m->store.rows_live = c->store.rows_live;
    store_mark(&m->store, 0, m->store.rows_live, true);
    const ww_status status = store_push_live(&m->store);
    return status == WW_OK ? make_tables(m) : status;
}

static void commit(compaction *m)
{
    ww_collection *c = m->collection;
    int64_t done = 0;
    ivf_compact(c, m->ranks);
    for (int64_t row = store_next(&c->store, -1); row >= 0; row = store_next(&c->store, row), done++) {
        row_page *from = store_page(&c->store, row);
        if (from->payloads && from->payloads[row % PAGE_ROWS]) {
            store_page(&m->store, done)->payloads[done % PAGE_ROWS] = from->payloads[row % PAGE_ROWS];
            from->payloads[row % PAGE_ROWS] = NULL;
        }
    }
    const row_store old_store = c->store;
    const id_table old_ids = c->ids, old_moved = c->moved;
    c->epoch++;
    c->store = m->store;
    c->ids = m->ids;
    c->moved = m->moved;
    m->store = old_store;
    m->ids = old_ids;
    m->moved = old_moved;
}

static ww_status compact(compaction *m)
{
    ww_status status = reserve(m);
    if (status == WW_OK)
        status = gather(m);
    if (status == WW_OK)
        status = copy_pages(m);
    if (status == WW_OK)
        status = finish(m);
    if (status == WW_OK)
        status = ivf_rank(m->collection, &m->ranks);
    if (status == WW_OK) {
        commit(m);
        ivf_compacted(m->collection);
    }
    memory_free(m->ranks);
    memory_free(m->sources);
    id_table_destroy(&m->moved);
    id_table_destroy(&m->ids);
    store_destroy(&m->store);
    return status;
}

ww_status memory_compact(ww_collection *c, ww_progress progress, void *user)
{
    ww_status status = WW_OK;
    compaction m = {.collection = c, .progress = progress, .user = user};
    collection_lock_write(c);
    m.ids.key = c->ids.key; /* if there are no stored ids, this empty table is used */
    m.moved.key = c->moved.key;
    const row_store *store = &c->store;
    if (store->rows_live == 0 && store->rows_count > 0)
        collection_empty(c);
    else if (store->rows_live < store->rows_count)
        status = compact(&m);
    collection_unlock(c);
    return status;
}

ww_status ww_collection_compact(ww_collection *collection, ww_progress progress, void *user)
{
    FLOAT_GUARD();
    const ww_status status = collection_check(collection, "ww_collection_compact");
    return status == WW_OK ? collection->operations->compact(collection, progress, user) : status;
}

ww_status memory_reserve(ww_collection *c, int64_t rows)
{
    collection_lock_write(c);
    row_store *store = &c->store;
    const int64_t removed = store->rows_count - store->rows_live;
    const int64_t segments_before = store->segment_count;
    ww_status status = store_grow(store, rows > store->rows_live ? rows + removed : 0);
    if (status == WW_OK && !id_table_holds(&c->ids, rows)) {
        id_table larger;
        status = id_table_grow(&c->ids, store, rows, &larger);
        if (status == WW_OK) {
            id_table_destroy(&c->ids);
            c->ids = larger;
        } else {
            store_shrink(store, segments_before);
        }
    }
    collection_unlock(c);
    return status;
}

ww_status ww_collection_reserve(ww_collection *collection, int64_t rows)
{
    FLOAT_GUARD();
    const ww_status status = collection_check(collection, "ww_collection_reserve");
    if (status != WW_OK)
        return status;
    if (rows < 0 || rows > WW_ROWS_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "ww_collection_reserve: rows is %lld; it must be 0 to %lld", (long long)rows,
                       (long long)WW_ROWS_MAX);
    return collection->operations->reserve(collection, rows);
}
