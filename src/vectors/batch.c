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
#include "vectors/batch.h"
#include "vectors/ids/automatic_ids.h"
#include "vectors/payloads.h"

enum { WRITE_BYTES = 64 * 1024 * 1024 }; /* of stored rows in one write: between two, the caller is told and may cancel */

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
        status = c->device->backend->rows_write(c->device, (row_range){part, at, count, c->dim},
                                                b->rows.vectors + done * b->rows.row_stride, b->rows.row_stride, &refused);
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
    batch_unstage_ids(b, c);
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
        status = batch_stage_ids(b, c);
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
    if (c->durable)
        return c->durable->add(c->owner, &b->rows, b->upsert);
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
