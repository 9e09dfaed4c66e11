/* Moves a collection to another device.
 *
 * A second store is made on the new device and filled piece by piece through the host, from the old device's rows or from the
 * host's own copy. When it is complete it replaces the first one; ids and payloads, which are on the host, are handed over at
 * that moment and never copied. Until then the collection is unchanged.
 *
 * A collection that moves within its group, because a member is lost or the shares have changed, may not fit twice. Then
 * segments move one by one to members that have less than their share; if one fails, the others stay where they are.
 */
#include <string.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "base/text.h"
#include "vectors/collection.h"
#include "vectors/ivf/ivf.h"

enum { PIECE_BYTES = 16 * 1024 * 1024, REASON_BYTES = 512 };

typedef struct move {
    ww_collection *collection;
    ww_device *device;     /* the new device */
    device_stream *stream; /* on the new device */
    row_store store;       /* on the new device */
    row_store centroids;   /* of the index, on the new device */
    char *piece;           /* a piece of rows, if the host has no copy */
    int64_t piece_rows;
} move;

static ww_status take_piece(move *m)
{
    const row_store *store = &m->collection->store;
    m->piece_rows = PIECE_BYTES / (int64_t)store_element_bytes(store); /* at least 64, because dim is at most 65536 */
    if (m->piece_rows > store->rows_count)
        m->piece_rows = store->rows_count;
    if (store->keep_copy)
        return WW_OK;
    const size_t bytes = (size_t)m->piece_rows * store_element_bytes(store);
    m->piece = memory_alloc(bytes);
    return m->piece ? WW_OK : memory_failed("rows on their way to another device", bytes);
}

/* Keeps the capacity, so that an earlier reserve still holds. */
static ww_status reserve(move *m)
{
    const ww_collection *c = m->collection;
    ww_status status = m->device->backend->stream_create(m->device, &m->stream);
    if (status == WW_OK)
        status = store_create(&m->store, m->device, m->stream, collection_shape(c, m->device));
    if (status == WW_OK)
        status = store_grow(&m->store, c->store.rows_capacity);
    return status == WW_OK ? take_piece(m) : status;
}

/* Adds to the message of a failed read what it means for the collection; other failures need no explanation. */
static ww_status cannot_read(const move *m, ww_status status)
{
    if (status != WW_DRIVER_ERROR)
        return status;
    const ww_collection *c = m->collection;
    char reason[REASON_BYTES];
    text_copy(reason, sizeof reason, ww_error_message());
    return ww_fail(WW_DRIVER_ERROR,
                   "collection '%s' cannot move to %s: its rows cannot be read: %s; ids and payloads still can, and a "
                   "collection made with keep_host_copy could move",
                   c->name, m->device->info.id, reason);
}

/* Reads `count` rows starting at `first`, all in segment `from`: from the host's copy, or from the device. */
static ww_status read_piece(move *m, const segment *from, int64_t first, int64_t count, const void **rows)
{
    const ww_collection *c = m->collection;
    *rows = store_copy_of(&c->store, first);
    if (*rows)
        return WW_OK;
    const ww_status status =
        c->device->backend->rows_read(c->device, (row_range){from, first - from->first_row, count, c->dim}, m->piece);
    *rows = m->piece;
    return status == WW_OK ? WW_OK : cannot_read(m, status);
}

static ww_status write_piece(move *m, const segment *to, int64_t first, int64_t count, const void *rows)
{
    const ww_collection *c = m->collection;
    int64_t refused = -1;
    const ww_status status = m->device->backend->rows_write(m->device, (row_range){to, first - to->first_row, count, c->dim},
                                                            rows, c->dim, &refused);
    if (status == WW_OK && refused >= 0)
        return ww_fail(WW_DRIVER_ERROR,
                       "collection '%s': row %lld was read back from %s with values that were never stored; the device or its "
                       "memory is faulty",
                       c->name, (long long)(first + refused), c->device->info.id);
    return status;
}

/* Removed rows move, too, so that later rows keep their numbers. */
static ww_status carry_rows(move *m)
{
    const row_store *old = &m->collection->store;
    ww_status status = WW_OK;
    for (int64_t row = 0; status == WW_OK && row < old->rows_count;) {
        const segment *from = &old->segments[store_segment_of(old, row)];
        const segment *to = &m->store.segments[store_segment_of(&m->store, row)];
        int64_t end = row + m->piece_rows;
        if (end > from->first_row + from->count)
            end = from->first_row + from->count;
        if (end > to->first_row + to->capacity)
            end = to->first_row + to->capacity;
        const void *rows;
        status = read_piece(m, from, row, end - row, &rows);
        if (status == WW_OK)
            status = write_piece(m, to, row, end - row, rows);
        char *copy = store_copy_of(&m->store, row);
        if (status == WW_OK && copy)
            memcpy(copy, rows, (size_t)(end - row) * store_element_bytes(old));
        row = end;
    }
    return status;
}

static void swap_centroids(move *m)
{
    ivf *index = m->collection->index;
    if (!index)
        return;
    ivf_forget(index);
    const row_store old = index->store;
    index->store = m->centroids;
    m->centroids = old;
}

static void commit(move *m)
{
    ww_collection *c = m->collection;
    store_move_pages(&m->store, &c->store);
    const move old = {.device = c->device, .stream = c->stream, .store = c->store};
    c->device = device_retain(m->device);
    c->stream = m->stream;
    c->store = m->store;
    swap_centroids(m);
    m->device = old.device;
    m->stream = old.stream;
    m->store = old.store;
}

static ww_status move_to(move *m)
{
    ww_status status = reserve(m);
    if (status == WW_OK)
        status = carry_rows(m);
    if (status == WW_OK) {
        store_copy_state(&m->store, &m->collection->store);
        status = store_push_live(&m->store);
    }
    if (status == WW_OK)
        status = ivf_place_centroids(m->collection, m->device, m->stream, &m->centroids);
    if (status == WW_OK)
        commit(m);
    /* Frees the rest: the new device's part of a failed move, or the old device's part of a successful one. */
    store_destroy(&m->centroids);
    store_destroy(&m->store);
    m->device->backend->stream_destroy(m->device, m->stream);
    if (status == WW_OK)
        ww_device_close(m->device);
    memory_free(m->piece);
    return status;
}

/* ---- one segment at a time ----------------------------------------------------------------------------------------------- */

static ww_status segment_fill(move *m, const segment *to, const segment *from)
{
    ww_status status = WW_OK;
    const int64_t end = from->first_row + from->count;
    for (int64_t row = from->first_row; status == WW_OK && row < end; row += m->piece_rows) {
        const int64_t count = end - row < m->piece_rows ? end - row : m->piece_rows;
        const void *rows;
        status = read_piece(m, from, row, count, &rows);
        if (status == WW_OK)
            status = write_piece(m, to, row, count, rows);
    }
    return status;
}

static ww_status segment_move(move *m, int64_t s, int32_t member)
{
    row_store *store = &m->collection->store;
    const backend *api = m->device->backend;
    segment_plan plan = store_plan(store);
    segment old = store->segments[s], made = {0};
    plan.capacity = old.capacity;
    plan.member = member;
    ww_status status = api->segment_create(m->device, &plan, &made);
    made.first_row = old.first_row;
    if (status == WW_OK)
        status = segment_fill(m, &made, &old);
    if (status != WW_OK) {
        api->segment_destroy(m->device, &made);
        return status;
    }
    made.count = old.count;
    store->segments[s] = made;
    store_push_all(store, s);
    api->segment_destroy(m->device, &old);
    return WW_OK;
}

/* Moves a segment to the member that should have it. If that member has no room, another one gets it, or it stays. */
static ww_status segment_settle(move *m, int64_t s)
{
    const row_store *store = &m->collection->store;
    const segment_list list = {store->segments, store->segment_count};
    ww_status status = WW_OK;
    for (uint64_t without = 0;;) {
        const int32_t member = m->device->backend->segment_place(m->device, &list, s, without);
        if (member == store->segments[s].member)
            return status;
        status = segment_move(m, s, member);
        if (status != WW_OUT_OF_MEMORY)
            return status;
        without |= UINT64_C(1) << member;
    }
}

static ww_status rebalance(move *m)
{
    row_store *store = &m->collection->store;
    ww_status status = take_piece(m);
    for (int64_t s = 0; status == WW_OK && s < store->segment_count; s++)
        status = segment_settle(m, s);
    if (status == WW_OK)
        status = store_push_live(store);
    if (status == WW_OK)
        status = ivf_place_centroids(m->collection, m->device, m->collection->stream, &m->centroids);
    if (status == WW_OK)
        swap_centroids(m);
    store_destroy(&m->centroids);
    memory_free(m->piece);
    return status;
}

/* Returns true if nothing has to move. Even in the same group, members or their shares may have changed. */
static bool is_there(const move *m)
{
    const backend *api = m->device->backend;
    const row_store *store = &m->collection->store;
    return m->collection->device == m->device &&
           (!api->segments_balanced || api->segments_balanced(m->device, store->segments, store->segment_count));
}

ww_status memory_move(ww_collection *c, ww_device *device)
{
    move m = {.collection = c, .device = device};
    collection_lock_write(c);
    ww_status status = is_there(&m) ? WW_OK : move_to(&m);
    if (status == WW_OUT_OF_MEMORY && c->device == device && device->backend->segment_place) {
        m = (move){.collection = c, .device = device};
        status = rebalance(&m);
    }
    collection_unlock(c);
    return status;
}

ww_status ww_collection_move(ww_collection *collection, ww_device *device)
{
    FLOAT_GUARD();
    ww_status status = collection_check(collection, "ww_collection_move");
    if (status == WW_OK && !device)
        return fail_null("ww_collection_move", "device");
    if (status == WW_OK)
        status = device_check(device);
    return status == WW_OK ? collection->operations->move(collection, device) : status;
}
