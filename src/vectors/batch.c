/* Adding and upserting: a batch goes in whole or not at all.
 *
 * What does not depend on the collection is checked first, without its lock. Then come memory, ids, payloads, values, and the
 * live mask, each put where it will stay but behind the last row, where nobody looks; every one of them can be undone. Raising
 * the number of rows is the commit, and cannot fail.
 */
#include <string.h>

#include "arithmetic/canon.h"
#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/structs.h"
#include "vectors/automatic_ids.h"
#include "vectors/handles.h"
#include "vectors/payloads.h"

enum { WRITE_BYTES = 64 * 1024 * 1024 }; /* of stored rows in one write: between two, the caller is told and may cancel */

static const uint32_t NOT_REPLACED = UINT32_MAX; /* no row's number: 2^32-1 rows end before it */

typedef struct batch {
    const char *function; /* for messages */
    ww_rows rows;
    bool upsert;
    bool without_ids;        /* of the caller's, here or in the collection: nothing to store (automatic_ids.h) */
    int64_t first_row;       /* the number of the batch's first row */
    int64_t segments_before; /* how many there were */
    int64_t ids_staged;      /* rows whose ids are in the table */
    int64_t replaced_count;
    uint32_t *replaced; /* of an upsert: the older row with this row's id, or NOT_REPLACED */
    bool table_is_new;
    id_table table_before;  /* if so: what it was; then it has not been touched */
    int64_t moved_staged;   /* rows that were looked at for the table of those out of order */
    bool moved_is_new;      /* as with the table of ids */
    id_table moved_before;  /* likewise */
    int64_t next_handle;    /* what the collection's will be */
    int64_t highest_number; /* likewise */
    bool first_page_saved;  /* the first page had rows: */
    row_page first_page;    /* what it was */
    int64_t bytes_ids;      /* what the batch adds to the store's figures */
    int64_t bytes_payloads;
    int64_t bytes_handles;
} batch;

STRUCT_INIT(ww_rows, {0})

static ww_status batch_check(batch *b, const ww_collection *c, const ww_rows *rows)
{
    const ww_status checked = collection_check(c, b->function);
    if (checked != WW_OK)
        return checked;
    if (!rows)
        return fail_null(b->function, "rows");
    if (struct_read(&b->rows, sizeof b->rows, rows, b->function, "ww_rows"))
        return WW_INVALID_ARGUMENT;
    if (b->rows.count < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: count is %lld; it must not be negative", b->function,
                       (long long)b->rows.count);
    if (b->rows.dim != c->dim)
        return ww_fail(WW_DIMENSION_MISMATCH, "collection '%s' has dimension %d, the rows have %d", c->name, c->dim,
                       b->rows.dim);
    if (b->rows.count > 0 && !b->rows.vectors)
        return fail_null(b->function, "rows->vectors");
    if (b->rows.row_stride == 0)
        b->rows.row_stride = b->rows.dim;
    if (b->rows.row_stride < b->rows.dim)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: row_stride is %lld; it must be at least dim, %d", b->function,
                       (long long)b->rows.row_stride, b->rows.dim);
    if (b->rows.count > WW_ROWS_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "%s: %lld rows; the maximum is %lld", b->function, (long long)b->rows.count,
                       (long long)WW_ROWS_MAX);
    for (int64_t i = 0; b->rows.payloads && i < b->rows.count; i++) {
        const ww_status status = b->rows.payloads[i] ? payload_check(c->name, i, b->rows.payloads[i]) : WW_OK;
        if (status != WW_OK)
            return status;
    }
    return WW_OK;
}

/* Host and device memory for the rows, and a larger table of ids if this one is too small. The old one is kept until the
 * commit: it is the way back. */
static ww_status batch_reserve(batch *b, ww_collection *c)
{
    row_store *store = &c->store;
    b->first_row = store->rows_count;
    b->segments_before = store->segment_count;
    b->next_handle = c->next_handle;
    b->highest_number = c->highest_number;
    if (b->rows.count > WW_ROWS_MAX - store->rows_count)
        return ww_fail(WW_OUT_OF_RANGE, "collection '%s' has %lld rows, and %lld more would exceed %lld; compact it first",
                       c->name, (long long)store->rows_count, (long long)b->rows.count, (long long)WW_ROWS_MAX);
    if (b->upsert) {
        b->replaced = memory_alloc((size_t)b->rows.count * sizeof *b->replaced);
        if (!b->replaced)
            return memory_failed("the list of replaced rows", (size_t)b->rows.count * sizeof *b->replaced);
    }
    ww_status status = store_grow(store, b->first_row + b->rows.count);
    const int64_t entries = c->ids.entries + b->rows.count;
    if (status == WW_OK && !b->without_ids && !id_table_holds(&c->ids, entries)) {
        id_table larger;
        status = id_table_grow(&c->ids, store, entries, &larger);
        if (status == WW_OK) {
            b->table_before = c->ids;
            b->table_is_new = true;
            c->ids = larger;
        }
    }
    if (status == WW_OK && b->first_row % PAGE_ROWS != 0) {
        b->first_page = *store_page(store, b->first_row);
        b->first_page_saved = true;
    }
    return status;
}

static ww_status id_check(const batch *b, int64_t number, id_text *id)
{
    const char *text = b->rows.ids[number];
    if (!text)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the id of row %lld of the batch is NULL", b->function, (long long)number);
    const size_t length = strnlen(text, WW_ID_BYTES_MAX + 1);
    if (length == 0 || length > WW_ID_BYTES_MAX)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the id of row %lld of the batch %s; an id has 1 to %d bytes", b->function,
                       (long long)number, length == 0 ? "is empty" : "is too long", WW_ID_BYTES_MAX);
    *id = (id_text){text, (uint32_t)length};
    return WW_OK;
}

static ww_status duplicate_in_batch(const batch *b, const ww_collection *c, id_text id, int64_t existing)
{
    return ww_fail(WW_DUPLICATE_ID, "collection '%s': id '%.*s' appears twice in the batch, as rows %lld and %lld", c->name,
                   (int)id.length, id.bytes, (long long)(existing - b->first_row), (long long)b->ids_staged);
}

/* A row that has its id from us is another thing than the one that the caller wants to add: then upsert is no advice. */
static ww_status duplicate(const batch *b, const ww_collection *c, id_text id, int64_t existing)
{
    const bool automatic = handle_from_digits(id) == store_handle(&c->store, existing);
    return ww_fail(WW_DUPLICATE_ID, "collection '%s': id '%.*s' (row %lld of the batch) already exists; %s", c->name,
                   (int)id.length, id.bytes, (long long)b->ids_staged,
                   automatic ? "a row that was added without an id has it; choose another id" : "upsert replaces it");
}

/* Puts one id into the table, where those of the batch before it are, too: that finds both kinds of duplicate. A row whose id
 * is there keeps the handle of the one that it replaces. */
static ww_status stage_id(batch *b, ww_collection *c, id_text id, uint64_t hash, int64_t *handle)
{
    const int64_t row = b->first_row + b->ids_staged;
    const int64_t existing = id_table_find(&c->ids, &c->store, id, hash);
    if (existing >= b->first_row)
        return duplicate_in_batch(b, c, id, existing);
    if (existing >= 0 && !b->upsert)
        return duplicate(b, c, id, existing);
    if (existing >= 0)
        id_table_replace(&c->ids, hash, existing, row);
    else
        id_table_insert(&c->ids, hash, row);
    if (b->upsert)
        b->replaced[b->ids_staged] = existing >= 0 ? (uint32_t)existing : NOT_REPLACED;
    if (b->rows.ids)
        *handle = existing >= 0 ? store_handle(&c->store, existing) : b->next_handle++;
    b->replaced_count += existing >= 0;
    b->ids_staged++;
    return WW_OK;
}

/* The next handle, which is an id as well: numbers that the caller took for ids are left out. */
static id_text automatic_id(batch *b, const ww_collection *c, char *digits, int64_t *handle)
{
    id_text id = handle_in_digits(b->next_handle, digits);
    while (b->next_handle <= b->highest_number && collection_find(c, id) >= 0)
        id = handle_in_digits(++b->next_handle, digits);
    *handle = b->next_handle++;
    return id;
}

/* The ids of `count` rows that share a page. All are hashed before the first is looked up, so that the table's cache lines
 * are on their way together. */
static ww_status stage_page_ids(batch *b, ww_collection *c, int64_t number, int32_t count, int64_t *handles)
{
    char digits[PAGE_ROWS][HANDLE_DIGITS];
    id_text ids[PAGE_ROWS];
    uint64_t hashes[PAGE_ROWS];
    for (int32_t i = 0; i < count; i++) {
        if (b->rows.ids) {
            const ww_status status = id_check(b, number + i, &ids[i]);
            if (status != WW_OK)
                return status;
            b->highest_number = max_i64(b->highest_number, handle_from_digits(ids[i]));
        } else {
            ids[i] = automatic_id(b, c, digits[i], &handles[i]);
        }
        hashes[i] = id_hash(&c->ids, ids[i]);
        id_table_prefetch(&c->ids, hashes[i]);
    }
    row_page *page = store_page(&c->store, b->first_row + number);
    const int32_t kept = (int32_t)((b->first_row + number) % PAGE_ROWS);
    id_page *made = id_page_make(page->ids, kept, ids, count);
    if (!made)
        return memory_failed("a page of ids", sizeof *made + (size_t)count * WW_ID_BYTES_MAX);
    b->bytes_ids += id_page_bytes(made, kept + count) - (kept > 0 ? id_page_bytes(page->ids, kept) : 0);
    page->ids = made;
    ww_status status = WW_OK;
    for (int32_t i = 0; status == WW_OK && i < count; i++)
        status = stage_id(b, c, ids[i], hashes[i], &handles[i]);
    return status;
}

static ww_status stage_page(batch *b, ww_collection *c, int64_t number, int32_t count)
{
    int64_t handles[PAGE_ROWS];
    const int64_t row = b->first_row + number;
    const int64_t first_handle = b->next_handle;
    ww_status status = WW_OK;
    if (b->without_ids && handle_page_follow(store_page(&c->store, row), row % PAGE_ROWS, first_handle)) {
        b->next_handle += count;
        return WW_OK;
    }
    if (b->without_ids)
        for (int32_t i = 0; i < count; i++)
            handles[i] = b->next_handle++;
    else
        status = stage_page_ids(b, c, number, count, handles);
    if (status != WW_OK)
        return status;
    return handle_page_set(store_page(&c->store, row), row % PAGE_ROWS, handles, count, first_handle, &b->bytes_handles);
}

static ww_status stage_ids(batch *b, ww_collection *c)
{
    ww_status status = WW_OK;
    for (int64_t number = 0; status == WW_OK && number < b->rows.count;) {
        const int64_t room = PAGE_ROWS - (b->first_row + number) % PAGE_ROWS;
        const int64_t left = b->rows.count - number;
        const int32_t count = (int32_t)min_i64(left, room);
        status = stage_page(b, c, number, count);
        number += count;
    }
    return status;
}

/* Makes room in the table of rows that are out of order for as many as there can be. */
static ww_status reserve_moved(batch *b, ww_collection *c)
{
    const int64_t entries = c->moved.entries + b->replaced_count;
    if (id_table_holds(&c->moved, entries))
        return WW_OK;
    id_table larger;
    const ww_status status = handle_table_grow(&c->moved, &c->store, entries, &larger);
    if (status != WW_OK)
        return status;
    b->moved_before = c->moved;
    b->moved_is_new = true;
    c->moved = larger;
    return WW_OK;
}

/* The next rows of the batch, up to a page of them: which have to be entered, with their hashes, whose buckets are on their way
 * together. Returns how many rows of the batch that were; NOT_REPLACED in `old` where there is nothing to do. */
static int64_t prepare_moved(const batch *b, const ww_collection *c, uint32_t *old, uint64_t *hashes)
{
    const int64_t count = min_i64(PAGE_ROWS, b->rows.count - b->moved_staged);
    for (int64_t i = 0; i < count; i++) {
        int64_t handle;
        old[i] = b->replaced[b->moved_staged + i];
        if (old[i] != NOT_REPLACED && !handle_order(&c->store, b->first_row + b->moved_staged + i, &handle))
            old[i] = NOT_REPLACED;
        if (old[i] == NOT_REPLACED)
            continue;
        hashes[i] = handle_hash(&c->moved, handle);
        id_table_prefetch(&c->moved, hashes[i]);
    }
    return count;
}

/* Rows that replaced others have a smaller handle than the rows before them, and are entered where such ones are found. */
static ww_status stage_moved(batch *b, ww_collection *c)
{
    if (b->replaced_count == 0)
        return WW_OK;
    const ww_status status = reserve_moved(b, c);
    const bool first_ones = c->moved.entries == 0; /* then no row that is replaced was out of order */
    while (status == WW_OK && b->moved_staged < b->rows.count) {
        uint32_t old[PAGE_ROWS];
        uint64_t hashes[PAGE_ROWS];
        const int64_t count = prepare_moved(b, c, old, hashes);
        for (int64_t i = 0; i < count; i++) {
            const int64_t row = b->first_row + b->moved_staged + i;
            if (old[i] == NOT_REPLACED)
                continue;
            if (!first_ones && handle_is_out_of_order(&c->store, old[i]))
                id_table_replace(&c->moved, hashes[i], old[i], row);
            else
                id_table_insert(&c->moved, hashes[i], row);
        }
        b->moved_staged += count;
    }
    return status;
}

static ww_status stage_payloads(batch *b, ww_collection *c)
{
    ww_status status = WW_OK;
    for (int64_t i = 0; status == WW_OK && b->rows.payloads && i < b->rows.count; i++)
        if (b->rows.payloads[i])
            status = payload_put(&c->store, b->first_row + i, b->rows.payloads[i], &b->bytes_payloads);
    return status;
}

static ww_status told(const batch *b, const ww_collection *c, int64_t done)
{
    if (!progress_tell(b->rows.progress, b->rows.progress_user, done, b->rows.count))
        return WW_OK;
    return ww_fail(WW_CANCELLED, "collection '%s': cancelled after %lld of %lld rows; nothing was added", c->name,
                   (long long)done, (long long)b->rows.count);
}

static ww_status write_rows(batch *b, ww_collection *c)
{
    const row_store *store = &c->store;
    /* Nobody to tell: as much as goes into a segment at once. */
    const int64_t step =
        b->rows.progress ? WRITE_BYTES / ((int64_t)canon_padded(c->dim) * (int64_t)sizeof(float)) : b->rows.count;
    ww_status status = told(b, c, 0);
    for (int64_t done = 0; status == WW_OK && done < b->rows.count;) {
        const segment *part = &store->segments[store_segment_of(store, b->first_row + done)];
        const int64_t at = b->first_row + done - part->first_row;
        int64_t count = b->rows.count - done < step ? b->rows.count - done : step;
        if (count > part->capacity - at)
            count = part->capacity - at;
        int64_t refused = -1;
        status = c->device->backend->rows_write(c->device, part, at, b->rows.vectors + done * b->rows.row_stride, count, c->dim,
                                                b->rows.row_stride, &refused);
        if (status == WW_OK && refused >= 0) {
            char digits[HANDLE_DIGITS], fault[VECTOR_FAULT_BYTES];
            const id_text id = collection_row_id(c, b->first_row + done + refused, digits);
            status = ww_fail(WW_INVALID_ARGUMENT, "collection '%s': row %lld of the batch (id '%.*s'): %s", c->name,
                             (long long)(done + refused), (int)id.length, id.bytes,
                             vector_fault(b->rows.vectors + (done + refused) * b->rows.row_stride, c->dim, fault));
        }
        float *copy = status == WW_OK ? store_copy_of(store, b->first_row + done) : NULL;
        for (int64_t i = 0; copy && i < count; i++)
            memcpy(copy + i * c->dim, b->rows.vectors + (done + i) * b->rows.row_stride, (size_t)c->dim * sizeof *copy);
        done += count;
        if (status == WW_OK)
            status = told(b, c, done);
    }
    return status;
}

static void mark(batch *b, row_store *store, bool in)
{
    store_mark(store, b->first_row, b->rows.count, in);
    for (int64_t i = 0; b->replaced_count > 0 && i < b->rows.count; i++)
        if (b->replaced[i] != NOT_REPLACED)
            store_mark(store, b->replaced[i], 1, !in);
}

static ww_status publish(batch *b, row_store *store)
{
    mark(b, store, true);
    const ww_status status = store_push_live(store);
    if (status != WW_OK)
        mark(b, store, false);
    return status;
}

static void batch_commit(batch *b, ww_collection *c)
{
    row_store *store = &c->store;
    store_commit(store, b->first_row + b->rows.count);
    c->next_handle = b->next_handle;
    c->highest_number = b->highest_number;
    store->rows_live += b->rows.count - b->replaced_count;
    store->bytes_ids += b->bytes_ids;
    store->bytes_payloads += b->bytes_payloads;
    store->bytes_handles += b->bytes_handles;
    if (b->first_page_saved)
        memory_free(b->first_page.ids);
    if (b->table_is_new)
        id_table_destroy(&b->table_before);
    if (b->moved_is_new)
        id_table_destroy(&b->moved_before);
}

static void unstage_moved(batch *b, ww_collection *c)
{
    if (b->moved_is_new) {
        id_table_destroy(&c->moved);
        c->moved = b->moved_before;
        return;
    }
    while (b->moved_staged > 0) {
        const int64_t row = b->first_row + --b->moved_staged;
        const uint32_t old = b->replaced[b->moved_staged];
        if (old == NOT_REPLACED || !handle_is_out_of_order(&c->store, row))
            continue;
        const uint64_t hash = handle_hash(&c->moved, store_handle(&c->store, row));
        if (handle_is_out_of_order(&c->store, old))
            id_table_replace(&c->moved, hash, row, old);
        else
            id_table_remove(&c->moved, hash, row);
    }
}

static void unstage_ids(batch *b, ww_collection *c)
{
    if (b->table_is_new) {
        id_table_destroy(&c->ids);
        c->ids = b->table_before;
        return;
    }
    while (b->ids_staged > 0) {
        const int64_t number = --b->ids_staged;
        const int64_t row = b->first_row + number;
        const uint64_t hash = id_hash(&c->ids, store_id(&c->store, row));
        if (b->upsert && b->replaced[number] != NOT_REPLACED)
            id_table_replace(&c->ids, hash, row, b->replaced[number]);
        else
            id_table_remove(&c->ids, hash, row);
    }
}

/* The first page had rows that stay: what it was is put back, and only the payloads behind them go. */
static void unstage_first_page(batch *b, row_store *store)
{
    row_page *page = store_page(store, b->first_row);
    payload_drop(page, b->first_row % PAGE_ROWS, PAGE_ROWS - b->first_row % PAGE_ROWS);
    if (page->payloads != b->first_page.payloads)
        memory_free(page->payloads);
    if (page->handles != b->first_page.handles)
        memory_free(page->handles);
    if (page->ids != b->first_page.ids)
        memory_free(page->ids);
    *page = b->first_page;
}

static void batch_rollback(batch *b, ww_collection *c)
{
    row_store *store = &c->store;
    unstage_moved(b, c);
    unstage_ids(b, c);
    store_shrink(store, b->segments_before);
    if (b->first_page_saved)
        unstage_first_page(b, store);
    int64_t row = (b->first_row + PAGE_ROWS - 1) / PAGE_ROWS * PAGE_ROWS;
    for (; row < store->rows_capacity && row < b->first_row + b->rows.count; row += PAGE_ROWS) {
        row_page *page = store_page(store, row);
        payload_drop(page, 0, PAGE_ROWS);
        memory_free(page->payloads);
        memory_free(page->handles);
        memory_free(page->ids);
        *page = (row_page){0};
    }
    if (b->first_row == 0)
        c->ids_are_stored = false; /* there are none: as before */
}

/* All of it, or a way back to where it was. */
static ww_status batch_stage(batch *b, ww_collection *c)
{
    ww_status status = batch_reserve(b, c);
    if (status == WW_OK)
        status = stage_ids(b, c);
    if (status == WW_OK)
        status = stage_moved(b, c);
    if (status == WW_OK)
        status = stage_payloads(b, c);
    if (status == WW_OK)
        status = write_rows(b, c);
    if (status == WW_OK)
        status = publish(b, &c->store);
    if (status == WW_OK)
        batch_commit(b, c);
    else
        batch_rollback(b, c);
    return status;
}

static ww_status batch_run(batch *b, ww_collection *c, const ww_rows *rows)
{
    ww_status status = batch_check(b, c, rows);
    if (status != WW_OK || b->rows.count == 0)
        return status;
    collection_lock_write(c);
    b->without_ids = !b->rows.ids && !c->ids_are_stored;
    status = b->without_ids ? WW_OK : collection_store_ids(c);
    if (status == WW_OK)
        status = batch_stage(b, c);
    collection_unlock(c);
    memory_free(b->replaced);
    return status;
}

ww_status ww_collection_add(ww_collection *collection, const ww_rows *rows)
{
    FLOAT_GUARD();
    batch b = {.function = "ww_collection_add"};
    return batch_run(&b, collection, rows);
}

ww_status ww_collection_upsert(ww_collection *collection, const ww_rows *rows)
{
    FLOAT_GUARD();
    batch b = {.function = "ww_collection_upsert", .upsert = true};
    return batch_run(&b, collection, rows);
}
