/* Adding and upserting in memory: all of a batch is added, or none of it.
 *
 * write.c has checked everything that does not depend on the collection. Then come memory, ids, payloads, values and the live
 * mask. Each is put in its final place, but after the last row, where no reader looks, and each can be undone. Increasing the
 * number of rows is the commit, and cannot fail.
 */
#include <stdatomic.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "arithmetic/row_values.h"
#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "vectors/ids/automatic_ids.h"
#include "vectors/ivf/ivf.h"
#include "vectors/write/batch.h"
#include "vectors/write/payloads.h"

enum {
    WRITE_BYTES = 64 * 1024 * 1024, /* of rows per write; between two writes, progress is reported and the caller may cancel */
    NARROW_BYTES = 8 << 20,         /* of rows that are converted to the collection's type at a time */
    NARROW_ITEM_NUMBERS = 1 << 16,  /* numbers that a thread converts at a time */
};

/* Reserves host and device memory for the rows, and a larger table of ids if this one is too small. The old table is kept until
 * the commit, so that a failure can restore it. */
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
    const bool kept = b->update && !b->rows.payloads;
    for (int64_t i = 0; status == WW_OK && (kept || b->rows.payloads) && i < b->rows.count; i++) {
        const char *text = kept ? payload_get(&c->store, b->replaced[i]) : b->rows.payloads[i];
        if (text)
            status = payload_put(&c->store, b->first_row + i, text, &b->bytes_payloads);
    }
    return status;
}

static ww_status told(const batch *b, const ww_collection *c, int64_t done)
{
    if (!progress_tell(b->rows.progress, b->rows.progress_user, done, b->rows.count))
        return WW_OK;
    return ww_fail(WW_CANCELLED, "collection '%s': cancelled after %lld of %lld rows; nothing was added", c->name,
                   (long long)done, (long long)b->rows.count);
}

/* ---- values -------------------------------------------------------------------------------------------------------------- */

typedef struct narrow_job {
    const ww_rows *rows;
    int64_t first, count; /* rows of the batch */
    int64_t item_rows;
    int32_t type;
    size_t row_bytes;
    char *to;
    atomic_int_least64_t refused; /* the first refused of these rows, or count */
} narrow_job;

static void narrow_item(void *context, int64_t item, int32_t worker)
{
    (void)worker;
    narrow_job *job = context;
    const int64_t end = min_i64((item + 1) * job->item_rows, job->count);
    for (int64_t r = item * job->item_rows; r < end; r++) {
        const float *from = job->rows->vectors + (job->first + r) * job->rows->row_stride;
        if (row_narrow(job->type, from, job->rows->dim, job->to + (size_t)r * job->row_bytes))
            continue;
        int64_t first = atomic_load(&job->refused);
        while (r < first && !atomic_compare_exchange_weak(&job->refused, &first, r))
            continue;
        return;
    }
}

/* Fails with a message that names the element of row `number` that does not fit. */
static ww_status fail_narrow(const batch *b, const ww_collection *c, int64_t number, const float *row)
{
    int32_t column = 0;
    while (column + 1 < c->dim && row_value_fits((int32_t)c->type, row[column]))
        column++;
    char digits[HANDLE_DIGITS];
    const id_text id = collection_row_id(c, b->first_row + number, digits);
    static const char *const held[] = {[WW_VECTOR_F16] = "it is not finite, or more than 65504 when rounded to f16",
                                       [WW_VECTOR_BF16] = "it is not finite, or too large when rounded to bf16",
                                       [WW_VECTOR_I8] = "i8 rows hold integers from -128 to 127",
                                       [WW_VECTOR_U8] = "u8 rows hold integers from 0 to 255",
                                       [WW_VECTOR_F32] = ""};
    return ww_fail(WW_INVALID_ARGUMENT, "collection '%s': row %lld of the batch (id '%.*s'), column %d is %g: %s", c->name,
                   (long long)number, (int)id.length, id.bytes, column, (double)row[column], held[c->type]);
}

/* Fails with a message that says why the device refused a row of the collection's type. */
static ww_status fail_refused(const batch *b, const ww_collection *c, int64_t number, const void *row)
{
    char digits[HANDLE_DIGITS], fault[VECTOR_FAULT_BYTES];
    const id_text id = collection_row_id(c, b->first_row + number, digits);
    const bool typed = c->type != WW_VECTOR_F32;
    float *wide = typed ? memory_alloc((size_t)c->dim * sizeof *wide) : NULL;
    if (typed && !wide)
        return memory_failed("a row that is refused", (size_t)c->dim * sizeof *wide);
    if (typed)
        row_widen((int32_t)c->type, row, c->dim, wide);
    const ww_status status =
        ww_fail(WW_INVALID_ARGUMENT, "collection '%s': row %lld of the batch (id '%.*s'): %s", c->name, (long long)number,
                (int)id.length, id.bytes, vector_fault(typed ? wide : row, c->dim, fault));
    memory_free(wide);
    return status;
}

/* Rows in the collection's type: as the caller gave them, or narrowed. */
typedef struct typed_rows {
    const void *rows;
    int64_t stride; /* elements */
    int64_t count;
} typed_rows;

/* Sets where rows, from `first` on, are in the collection's type: at most typed->count of them, which is reduced if there are
 * fewer. */
static ww_status rows_in_type(batch *b, const ww_collection *c, int64_t first, typed_rows *typed)
{
    const size_t row_bytes = store_element_bytes(&c->store);
    const void *given = c->type == WW_VECTOR_F32 && b->rows.vectors ? b->rows.vectors : b->rows.elements;
    if (given) {
        typed->stride = b->rows.row_stride;
        typed->rows = (const char *)given + (size_t)(first * typed->stride) * row_type_bytes((int32_t)c->type);
        return WW_OK;
    }
    if (!b->narrowed) {
        /* At least 64, because dim is at most 65536. */
        b->narrowed_rows = min_i64(NARROW_BYTES / (int64_t)row_bytes, b->rows.count);
        b->narrowed = memory_alloc((size_t)b->narrowed_rows * row_bytes);
        if (!b->narrowed)
            return memory_failed("rows on their way to their type", (size_t)b->narrowed_rows * row_bytes);
    }
    const int64_t count = min_i64(typed->count, b->narrowed_rows);
    *typed = (typed_rows){b->narrowed, c->dim, count};
    narrow_job job = {.rows = &b->rows,
                      .first = first,
                      .count = count,
                      .item_rows = NARROW_ITEM_NUMBERS / c->dim + 1,
                      .type = (int32_t)c->type,
                      .row_bytes = row_bytes,
                      .to = b->narrowed};
    atomic_init(&job.refused, count);
    const int64_t items = divide_up_i64(count, job.item_rows);
    pool *threads = items > 1 ? c->device->backend->threads(c->device) : NULL;
    if (threads)
        (void)pool_run(threads, items, narrow_item, NULL, &job);
    else
        pool_run_here(items, narrow_item, &job);
    const int64_t refused = atomic_load(&job.refused);
    const int64_t number = first + refused;
    return refused < count ? fail_narrow(b, c, number, b->rows.vectors + number * b->rows.row_stride) : WW_OK;
}

/* Writes host rows, starting at number `done`: at most to->count, which is set to the number of written rows. */
static ww_status write_from_host(batch *b, ww_collection *c, int64_t done, row_range *to)
{
    const size_t row_bytes = store_element_bytes(&c->store), element_bytes = row_type_bytes((int32_t)c->type);
    typed_rows typed = {.count = to->count};
    int64_t refused = -1;
    ww_status status = rows_in_type(b, c, done, &typed);
    const char *rows = typed.rows;
    const int64_t stride = typed.stride;
    to->count = typed.count;
    if (status == WW_OK)
        status = c->device->backend->rows_write(c->device, *to, rows, stride, &refused);
    if (status == WW_OK && refused >= 0)
        status = fail_refused(b, c, done + refused, rows + (size_t)(refused * stride) * element_bytes);
    char *copy = status == WW_OK ? store_copy_of(&c->store, b->first_row + done) : NULL;
    for (int64_t i = 0; copy && i < to->count; i++)
        memcpy(copy + (size_t)i * row_bytes, rows + (size_t)(i * stride) * element_bytes, row_bytes);
    return status;
}

/* Says what is wrong with a row of a tensor: a number that does not fit in the type, or a norm that is not finite. */
static ww_status fail_here(const batch *b, const ww_collection *c, int64_t number)
{
    float *row = memory_alloc((size_t)c->dim * sizeof *row);
    if (!row)
        return memory_failed("a row that is refused", (size_t)c->dim * sizeof *row);
    const int64_t first = number * c->dim;
    const bool rounded = b->here == &b->rounded;
    ww_status status = rounded ? tensor_rows_read(&b->given, first, c->dim, row) : WW_OK;
    bool fits = true;
    for (int32_t i = 0; status == WW_OK && rounded && i < c->dim; i++)
        fits = fits && row_value_fits((int32_t)c->type, row[i]);
    if (status == WW_OK && !fits)
        status = fail_narrow(b, c, number, row);
    else if (status == WW_OK)
        status = tensor_rows_read(b->here, first, c->dim, row);
    if (status == WW_OK)
        status = fail_refused(b, c, number, row);
    memory_free(row);
    return status;
}

/* Writes rows that are on the device. */
static ww_status write_from_device(const batch *b, ww_collection *c, int64_t done, row_range to)
{
    const backend *table = c->device->backend;
    int64_t refused = -1;
    const char *rows = (const char *)tensor_rows_data(b->here) + (size_t)done * store_element_bytes(&c->store);
    ww_status status = table->rows_write_here(c->device, to, rows, &refused);
    if (status == WW_OK && refused >= 0)
        status = fail_here(b, c, done + refused);
    char *copy = status == WW_OK ? store_copy_of(&c->store, b->first_row + done) : NULL;
    return copy ? table->rows_read(c->device, to, copy) : status;
}

static ww_status write_rows(batch *b, ww_collection *c)
{
    const row_store *store = &c->store;
    const int64_t padded_bytes = (int64_t)canon_padded(c->dim) * (int64_t)row_type_bytes((int32_t)c->type);
    /* Without a progress callback, as many rows at once as fit in a segment. */
    const int64_t step = b->rows.progress ? WRITE_BYTES / padded_bytes : b->rows.count;
    ww_status status = told(b, c, 0);
    for (int64_t done = 0; status == WW_OK && done < b->rows.count;) {
        const segment *part = &store->segments[store_segment_of(store, b->first_row + done)];
        const int64_t at = b->first_row + done - part->first_row;
        row_range to = {part, at, min_i64(min_i64(b->rows.count - done, step), part->capacity - at), c->dim};
        status = b->here ? write_from_device(b, c, done, to) : write_from_host(b, c, done, &to);
        done += to.count;
        if (status == WW_OK)
            status = told(b, c, done);
    }
    return status;
}

/* ---- tensors ------------------------------------------------------------------------------------------------------------- */

static ww_status read_from_copy(batch *b, const ww_collection *c)
{
    const ww_status status = tensor_rows_to_host(&b->given);
    if (status == WW_OK)
        rows_read_in_place(&b->rows, c, b->given.host);
    return status;
}

/* The caller holds the lock, so the collection's device does not change. */
static ww_status place_tensor(batch *b, ww_collection *c)
{
    const ww_dtype type = tensor_type_of(c->type), given = ww_tensor_dtype(&b->given.dense);
    const bool bytes = c->type == WW_VECTOR_I8 || c->type == WW_VECTOR_U8;
    if (!tensor_rows_on(&b->given, c->device) || (given != type && bytes))
        return read_from_copy(b, c);
    b->here = given == type ? &b->given : &b->rounded;
    return given == type ? WW_OK : tensor_rows_make(&b->given.dense, type, &b->rounded);
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
    ivf_commit(c, b->first_row, b->rows.count, b->places);
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

/* If the first page had rows before, restores the page and frees only the payloads after those rows. */
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
        c->ids_are_stored = false; /* none are stored, as before */
}

/* Enters everything. If that fails, undoes what was entered. */
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
        status = ivf_stage(c, b->first_row, b->rows.count, &b->places);
    if (status == WW_OK)
        status = publish(b, &c->store);
    if (status == WW_OK)
        batch_commit(b, c);
    else
        batch_rollback(b, c);
    return status;
}

ww_status memory_write(ww_collection *c, const ww_rows *rows, write_kind kind)
{
    batch b = {.rows = *rows, .upsert = kind != WRITE_ADD, .update = kind == WRITE_UPDATE};
    ww_status status = WW_OK;
    if (rows->tensor)
        b.given.dense = *rows->tensor; /* the caller keeps the tensor */
    if (kind == WRITE_ADD)
        collection_lock_write(c);
    else
        collection_lock_rows(c);
    b.without_ids = !rows->ids && !c->ids_are_stored;
    if (rows->tensor)
        status = place_tensor(&b, c);
    if (status == WW_OK && !b.without_ids)
        status = collection_store_ids(c);
    if (status == WW_OK)
        status = batch_stage(&b, c);
    collection_unlock(c);
    tensor_rows_release(&b.rounded);
    memory_free(b.given.host);
    memory_free(b.places);
    memory_free(b.narrowed);
    memory_free(b.replaced);
    return status;
}
