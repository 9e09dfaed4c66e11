/* The ids of a batch: checked, entered into the table, which finds duplicates, and removed again if the batch fails.
 *
 * This works on a page of 64 rows at a time: all ids are hashed before the first is looked up, so the table's cache lines are
 * fetched together. Rows that replace others keep their handles, so they are out of order and are entered in a separate table.
 */
#include <string.h>

#include "base/integers.h"
#include "base/memory.h"
#include "base/text.h"
#include "vectors/ids/automatic_ids.h"
#include "vectors/ids/handles.h"
#include "vectors/write/batch.h"

static ww_status id_check(const batch *b, const ww_collection *c, int64_t number, id_text *id)
{
    const char *text = b->rows.ids[number];
    if (!text)
        return ww_fail(WW_INVALID_ARGUMENT, "collection '%s': the id of row %lld of the batch is NULL", c->name,
                       (long long)number);
    const size_t length = strnlen(text, WW_ID_BYTES_MAX + 1);
    if (length == 0 || length > WW_ID_BYTES_MAX)
        return ww_fail(WW_INVALID_ARGUMENT, "collection '%s': the id of row %lld of the batch %s; an id has 1 to %d bytes",
                       c->name, (long long)number, length == 0 ? "is empty" : "is too long", WW_ID_BYTES_MAX);
    if (!utf8_check(text, length))
        return ww_fail(WW_INVALID_ARGUMENT, "collection '%s': the id of row %lld of the batch is not UTF-8: '%s'", c->name,
                       (long long)number, text);
    *id = (id_text){text, (uint32_t)length};
    return WW_OK;
}

static ww_status duplicate_in_batch(const batch *b, const ww_collection *c, id_text id, int64_t existing)
{
    return ww_fail(WW_DUPLICATE_ID, "collection '%s': id '%.*s' appears twice in the batch, as rows %lld and %lld", c->name,
                   (int)id.length, id.bytes, (long long)(existing - b->first_row), (long long)b->ids_staged);
}

/* The caller did not choose an automatic id, so this message does not recommend an upsert. */
static ww_status duplicate(const batch *b, const ww_collection *c, id_text id, int64_t existing)
{
    const bool automatic = handle_from_digits(id) == store_handle(&c->store, existing);
    return ww_fail(WW_DUPLICATE_ID, "collection '%s': id '%.*s' (row %lld of the batch) already exists; %s", c->name,
                   (int)id.length, id.bytes, (long long)b->ids_staged,
                   automatic ? "a row that was added without an id has it; choose another id" : "upsert replaces it");
}

/* Enters one id into the table. Earlier ids of the batch are in the table, too, so this finds both kinds of duplicate. A row
 * whose id exists keeps the handle of the row that it replaces. */
static ww_status stage_id(batch *b, ww_collection *c, id_text id, uint64_t hash, int64_t *handle)
{
    const int64_t row = b->first_row + b->ids_staged;
    const int64_t existing = id_table_find(&c->ids, &c->store, id, hash);
    if (existing >= b->first_row)
        return duplicate_in_batch(b, c, id, existing);
    if (existing >= 0 && !b->upsert)
        return duplicate(b, c, id, existing);
    if (existing < 0 && b->update)
        return ww_fail(WW_NOT_FOUND, "collection '%s': there is no id '%.*s' to update; nothing was changed", c->name,
                       (int)id.length, id.bytes);
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

/* Returns the next handle, which is also an id. Skips numbers that callers used as ids. */
static id_text automatic_id(batch *b, const ww_collection *c, char *digits, int64_t *handle)
{
    id_text id = handle_in_digits(b->next_handle, digits);
    while (b->next_handle <= b->highest_number && collection_find(c, id) >= 0)
        id = handle_in_digits(++b->next_handle, digits);
    *handle = b->next_handle++;
    return id;
}

/* Enters the ids of `count` rows that share a page. All are hashed before the first is looked up, so the table's cache lines
 * are fetched together. */
static ww_status stage_page_ids(batch *b, ww_collection *c, int64_t number, int32_t count, int64_t *handles)
{
    char digits[PAGE_ROWS][HANDLE_DIGITS];
    id_text ids[PAGE_ROWS];
    uint64_t hashes[PAGE_ROWS];
    for (int32_t i = 0; i < count; i++) {
        if (b->rows.ids) {
            const ww_status status = id_check(b, c, number + i, &ids[i]);
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
    const page_handles set = {handles, row % PAGE_ROWS, count, first_handle};
    return handle_page_set(store_page(&c->store, row), set, &b->bytes_handles);
}

static ww_status stage_pages(batch *b, ww_collection *c)
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

/* Reserves room in the table of rows that are out of order for as many rows as the batch can add to it. */
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

/* Hashes the next rows of the batch, up to a page, so their buckets are fetched together. Returns the number of rows; `old` has
 * NOT_REPLACED for rows that need no entry. */
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

/* Rows that replaced others have smaller handles than the rows before them, so they go into the table of rows out of order. */
static ww_status stage_moved(batch *b, ww_collection *c)
{
    if (b->replaced_count == 0)
        return WW_OK;
    const ww_status status = reserve_moved(b, c);
    const bool first_ones = c->moved.entries == 0; /* then no replaced row was out of order */
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

ww_status batch_stage_ids(batch *b, ww_collection *c)
{
    const ww_status status = stage_pages(b, c);
    return status == WW_OK ? stage_moved(b, c) : status;
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

static void unstage_entries(batch *b, ww_collection *c)
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

void batch_unstage_ids(batch *b, ww_collection *c)
{
    unstage_moved(b, c);
    unstage_entries(b, c);
}
