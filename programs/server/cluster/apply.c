/* Applying rows: a batch of new rows, and everything else at once, inside one transaction of the store. */
#include "server/cluster/apply.h"

#include <string.h>

#include <warpwave/multi.h>
#include <warpwave/sparse.h>

#include "base/memory.h"
#include "base/tables/hash.h"
#include "base/text.h"
#include "server/notes.h"

enum {
    BATCH_ROWS = 1024,
    BATCH_BYTES = 16 << 20,
    SLOTS = 4096 /* of the table of a batch's ids: a power of two, four times the rows */
};

#define OWN_NOTES "follow:"

/* Rows that wait to be written: their texts lie in `bytes`, at offsets, because it grows. */
typedef struct row_batch {
    const followed_table *table; /* of all rows */
    int64_t count;
    float *vectors; /* BATCH_ROWS x dim */
    int32_t dim;
    out bytes;
    size_t ids[BATCH_ROWS], payloads[BATCH_ROWS], texts[BATCH_ROWS]; /* SIZE_MAX: no payload, no text */
    size_t contents[BATCH_ROWS], content_bytes[BATCH_ROWS];          /* sparse vectors and multivectors */
    int16_t slots[SLOTS];                                            /* numbers of rows by their ids, from 1 */
} row_batch;

typedef struct followed_collection {
    const followed_table *table;
    ww_collection *collection;
    int32_t dim; /* of the collection; the table may be described anew with another one */
} followed_collection;

struct applier {
    ww_store *store;
    ww_collection *notes;
    followed_collection *followed; /* in the tables' order */
    int32_t followed_count, followed_capacity;
    bool open;
    row_batch batch;
    out id; /* of the row that is looked at */
    apply_figures figures, committed;
    void (*refuse)(void *user, const refused_row *row);
    void *user;
};

/* ---- collections --------------------------------------------------------------------------------------------------------- */

/* Opens the collection of notes; it is the server's, through a handle of the follower's own. */
static ww_status open_notes(applier *a)
{
    ww_status status = ww_store_collection(a->store, NOTES_COLLECTION, &a->notes);
    if (status != WW_NOT_FOUND)
        return status;
    ww_collection_config config = ww_collection_config_default();
    config.name = NOTES_COLLECTION;
    config.dim = 1;
    config.metric = WW_DOT;
    return ww_store_create(a->store, &config, &a->notes);
}

ww_status applier_create(ww_store *store, void (*refuse)(void *user, const refused_row *row), void *user, applier **made)
{
    applier *a = memory_alloc_zeroed(1, sizeof *a);
    if (!a)
        return memory_failed("a follower", sizeof *a);
    a->store = store;
    a->refuse = refuse;
    a->user = user;
    const ww_status status = open_notes(a);
    if (status == WW_OK)
        *made = a;
    else
        applier_destroy(a);
    return status;
}

void applier_destroy(applier *a)
{
    if (!a)
        return;
    applier_roll_back(a);
    for (int32_t i = 0; i < a->followed_count; i++)
        ww_collection_destroy(a->followed[i].collection);
    ww_collection_destroy(a->notes);
    memory_free(a->followed);
    memory_free(a->batch.vectors);
    out_free(&a->batch.bytes);
    out_free(&a->id);
    memory_free(a);
}

static ww_status check_same(ww_collection *collection, const followed_table *table)
{
    ww_collection_info info = ww_collection_info_default();
    const ww_status status = ww_collection_describe(collection, &info);
    if (status == WW_OK && (info.dim != table->dim || info.metric != table->metric))
        return ww_fail(WW_INVALID_ARGUMENT,
                       "the collection '%s' has dimension %d and metric %s; the table %s.%s needs %d and %s. "
                       "Drop the collection, or follow under another name: --table NAME=%s.%s",
                       table->collection, (int)info.dim, ww_metric_name(info.metric), table->schema, table->name,
                       (int)table->dim, ww_metric_name(table->metric), table->schema, table->name);
    return status;
}

/* Makes room for one more collection. */
static ww_status reserve_followed(applier *a)
{
    const int32_t larger = a->followed_capacity > 0 ? 2 * a->followed_capacity : 16;
    if (a->followed_count < a->followed_capacity)
        return WW_OK;
    followed_collection *moved = memory_resize(a->followed, (size_t)larger * sizeof *moved);
    if (!moved)
        return memory_failed("a list of collections", (size_t)larger * sizeof *moved);
    a->followed = moved;
    a->followed_capacity = larger;
    return WW_OK;
}

ww_status applier_collection(applier *a, const followed_table *table, ww_collection **collection)
{
    for (int32_t i = 0; i < a->followed_count; i++)
        if (a->followed[i].table == table) {
            if (a->followed[i].dim != table->dim)
                return ww_fail(WW_UNSUPPORTED,
                               "table %s.%s: vectors now have dimension %d, and the collection '%s' has %d; drop the "
                               "collection or the server's file, and start the server again",
                               table->schema, table->name, (int)table->dim, table->collection, (int)a->followed[i].dim);
            *collection = a->followed[i].collection;
            return WW_OK;
        }
    ww_collection *opened = NULL;
    ww_status status = reserve_followed(a);
    if (status == WW_OK)
        status = ww_store_collection(a->store, table->collection, &opened);
    if (status == WW_NOT_FOUND) {
        ww_collection_config config = ww_collection_config_default();
        config.name = table->collection;
        config.dim = table->dim;
        config.metric = table->metric;
        status = ww_store_create(a->store, &config, &opened);
    }
    if (status == WW_OK)
        status = check_same(opened, table);
    if (status != WW_OK) {
        ww_collection_destroy(opened);
        return status;
    }
    int32_t at = a->followed_count++;
    for (; at > 0 && a->followed[at - 1].table->order > table->order; at--)
        a->followed[at] = a->followed[at - 1];
    a->followed[at] = (followed_collection){table, opened, table->dim};
    *collection = opened;
    return WW_OK;
}

void applier_forget(applier *a, const followed_table *table)
{
    int32_t left = 0;
    for (int32_t i = 0; i < a->followed_count; i++)
        if (a->followed[i].table == table)
            ww_collection_destroy(a->followed[i].collection);
        else
            a->followed[left++] = a->followed[i];
    a->followed_count = left;
    if (a->batch.table == table)
        a->batch.table = NULL;
}

/* ---- transactions -------------------------------------------------------------------------------------------------------- */

static ww_status begin(applier *a)
{
    if (a->open)
        return WW_OK;
    const ww_status status = ww_store_begin(a->store);
    a->open = status == WW_OK;
    return status;
}

static void batch_reset(row_batch *b)
{
    b->count = 0;
    b->bytes.length = 0;
    memset(b->slots, 0, sizeof b->slots);
}

bool applier_is_open(const applier *a)
{
    return a->open;
}

void applier_roll_back(applier *a)
{
    if (a->open)
        (void)ww_store_rollback(a->store);
    a->open = false;
    a->figures = a->committed;
    batch_reset(&a->batch);
}

/* Writes the waiting rows. If a row cannot be a point, writes them one by one and leaves those out. */
static ww_status write_rows(applier *a, int64_t first, int64_t count)
{
    row_batch *b = &a->batch;
    const char *ids[BATCH_ROWS], *payloads[BATCH_ROWS], *texts[BATCH_ROWS];
    ww_sparse_vector sparse[BATCH_ROWS];
    ww_multivector multi[BATCH_ROWS];
    ww_collection *collection = NULL;
    bool any_text = false;
    ww_rows rows = ww_rows_default();
    for (int64_t i = 0; i < count; i++) {
        ids[i] = b->bytes.bytes + b->ids[first + i];
        payloads[i] = b->payloads[first + i] == SIZE_MAX ? NULL : b->bytes.bytes + b->payloads[first + i];
        texts[i] = b->texts[first + i] == SIZE_MAX ? NULL : b->bytes.bytes + b->texts[first + i];
        any_text = any_text || texts[i];
        if (b->table->kind == ROWS_DENSE)
            continue;
        const size_t bytes = b->content_bytes[first + i]; /* the place is a multiple of 4 */
        const float *content = (const void *)(b->bytes.bytes + b->contents[first + i]);
        const int64_t pairs = (int64_t)(bytes / (2 * sizeof *content));
        sparse[i] = (ww_sparse_vector){pairs, (const void *)content, content + pairs};
        multi[i] = (ww_multivector){(int32_t)(bytes / ((size_t)b->dim * sizeof *content)), b->dim, content};
    }
    rows.count = count;
    rows.dim = b->dim;
    rows.vectors = b->vectors + first * b->dim;
    rows.ids = ids;
    rows.payloads = payloads;
    rows.texts = any_text ? texts : NULL;
    rows.sparse = b->table->kind == ROWS_SPARSE ? sparse : NULL;
    rows.multi = b->table->kind == ROWS_MULTI ? multi : NULL;
    const ww_status status = applier_collection(a, b->table, &collection);
    return status == WW_OK ? ww_collection_upsert(collection, &rows) : status;
}

/* Failures of the row itself, not of the disk, the memory or the device. */
static bool is_the_rows_fault(ww_status status)
{
    return status == WW_INVALID_ARGUMENT || status == WW_OUT_OF_RANGE || status == WW_DIMENSION_MISMATCH;
}

static void refuse(applier *a, const followed_table *table, const char *id, const char *why, pg_lsn lsn)
{
    refused_row row = {.lsn = lsn};
    text_copy(row.collection, sizeof row.collection, table->collection);
    text_plain_copy(row.id, sizeof row.id, id);
    text_plain_copy(row.why, sizeof row.why, why);
    a->figures.refused++;
    a->refuse(a->user, &row);
}

static ww_status discard(applier *a, const followed_table *table, const char *id);

static ww_status flush(applier *a)
{
    row_batch *b = &a->batch;
    ww_status status = WW_OK;
    if (b->count == 0)
        return WW_OK;
    if (b->bytes.failed)
        status = memory_failed("rows of a table", b->bytes.length);
    if (status == WW_OK) {
        status = write_rows(a, 0, b->count);
        if (status == WW_OK)
            a->figures.rows += b->count;
    }
    if (is_the_rows_fault(status))
        for (int64_t i = status = WW_OK; status == WW_OK && i < b->count; i++) {
            const char *id = b->bytes.bytes + b->ids[i];
            status = write_rows(a, i, 1);
            if (status == WW_OK)
                a->figures.rows++;
            if (!is_the_rows_fault(status))
                continue;
            refuse(a, b->table, id, ww_error_message(), 0);
            status = discard(a, b->table, id); /* the old row is not the row's truth any more */
        }
    batch_reset(b);
    return status;
}

static ww_status put_note(applier *a, const char *name, const char *note)
{
    const float nothing = 0;
    ww_rows rows = ww_rows_default();
    rows.count = 1;
    rows.dim = 1;
    rows.vectors = &nothing;
    rows.ids = &name;
    rows.payloads = &note;
    return ww_collection_upsert(a->notes, &rows);
}

ww_status applier_note(applier *a, const pg_value *name, const pg_value *value)
{
    char *text = memory_copy_text(name->bytes ? name->bytes : "", name->length);
    char *copy = value ? memory_copy_text(value->bytes, value->length) : NULL;
    const char *const id = text;
    ww_status status = text && (copy || !value) ? begin(a) : memory_failed("a note", name->length);
    if (status == WW_OK)
        status = value ? put_note(a, text, copy) : ww_collection_discard(a->notes, &id, 1, NULL);
    memory_free(text);
    memory_free(copy);
    return status;
}

ww_status applier_clear_notes(applier *a)
{
    ww_results *all = NULL;
    ww_get get = ww_get_default();
    get.count = WW_ROWS_MAX;
    get.fetch = WW_FETCH_IDS;
    ww_status status = begin(a);
    if (status == WW_OK)
        status = ww_collection_get(a->notes, &get, &all);
    for (int64_t i = 0; status == WW_OK && i < ww_results_count(all, 0); i++) {
        const char *id = ww_results_id(all, 0, i);
        if (id && strncmp(id, OWN_NOTES, strlen(OWN_NOTES)) != 0)
            status = ww_collection_discard(a->notes, &id, 1, NULL);
    }
    ww_results_destroy(all);
    return status;
}

ww_status applier_commit(applier *a, const char *name, const char *note)
{
    ww_status status = begin(a);
    if (status == WW_OK)
        status = flush(a);
    if (status == WW_OK)
        status = put_note(a, name, note);
    if (status == WW_OK) {
        a->open = false;
        status = ww_store_commit(a->store);
    }
    if (status != WW_OK) {
        applier_roll_back(a);
        return status;
    }
    a->figures.transactions++;
    a->committed = a->figures;
    return WW_OK;
}

ww_status applier_read_note(applier *a, const char *name, char **note)
{
    ww_results *found = NULL;
    ww_get get = ww_get_default();
    get.ids = &name;
    get.count = 1;
    get.fetch = WW_FETCH_PAYLOADS;
    *note = NULL;
    ww_status status = ww_collection_get(a->notes, &get, &found);
    const char *text = status == WW_OK ? ww_results_payload(found, 0, 0) : NULL;
    if (text) {
        *note = memory_copy_text(text, strlen(text));
        status = *note ? WW_OK : memory_failed("a note", strlen(text));
    }
    ww_results_destroy(found);
    return status;
}

ww_status applier_digest(applier *a, uint64_t *digest)
{
    ww_status status = WW_OK;
    *digest = FNV_BEGIN;
    for (int32_t i = 0; status == WW_OK && i < a->followed_count; i++) {
        uint64_t one = 0;
        status = ww_collection_digest(a->followed[i].collection, &one);
        if (one != 0 || a->followed[i].table->order == 0) /* one of a cluster may be empty on some nodes only, for a moment */
            *digest = fnv_word(*digest, one);
    }
    return status;
}

void applier_count_copy(applier *a)
{
    a->figures.copies++;
}

const apply_figures *applier_figures(const applier *a)
{
    return &a->committed;
}

/* ---- the batch ----------------------------------------------------------------------------------------------------------- */

/* The slot of an id in the batch: its row's, or an empty one. */
static int16_t *find_slot(row_batch *b, const char *id, size_t length)
{
    size_t slot = (size_t)hash_bytes(hash_process_key(), id, length) & (SLOTS - 1);
    while (b->slots[slot] != 0 && strcmp(b->bytes.bytes + b->ids[b->slots[slot] - 1], id) != 0)
        slot = (slot + 1) & (SLOTS - 1);
    return &b->slots[slot];
}

/* Makes room for one more row of the table with this id. */
static ww_status batch_reserve(applier *a, const followed_table *table, const char *id, size_t length)
{
    row_batch *b = &a->batch;
    ww_status status = WW_OK;
    if (b->count == BATCH_ROWS || b->bytes.length > BATCH_BYTES || b->table != table || b->dim != table->dim ||
        *find_slot(b, id, length) != 0)
        status = flush(a);
    if (status == WW_OK && (b->table != table || b->dim != table->dim)) {
        float *vectors = memory_resize(b->vectors, BATCH_ROWS * (size_t)table->dim * sizeof *vectors);
        if (!vectors)
            return memory_failed("rows of a table", BATCH_ROWS * (size_t)table->dim * sizeof *vectors);
        b->vectors = vectors;
        b->dim = table->dim;
        b->table = table;
    }
    return status;
}

static size_t batch_text(row_batch *b, const char *text, size_t length)
{
    const size_t at = b->bytes.length;
    out_bytes(&b->bytes, text, length);
    out_bytes(&b->bytes, "", 1);
    return at;
}

static ww_status discard(applier *a, const followed_table *table, const char *id)
{
    ww_collection *collection = NULL;
    const ww_status status = applier_collection(a, table, &collection);
    return status == WW_OK ? ww_collection_discard(collection, &id, 1, NULL) : status;
}

/* Writes the id of a row to a->id. False, and the row is refused, if it cannot have one. */
static bool take_id(applier *a, const followed_table *table, const table_row *row, pg_lsn lsn)
{
    a->id.length = 0;
    const bool whole = table_put_id(&a->id, table, row);
    out_bytes(&a->id, "", 1);
    if (whole && !a->id.failed && a->id.length > 1 && a->id.length - 1 <= WW_ID_BYTES_MAX)
        return true;
    refuse(a, table, whole && !a->id.failed ? a->id.bytes : "",
           whole ? "has a key that is empty or too long for an id" : "has a NULL in its key", lsn);
    return false;
}

/* What the row was before the change, as far as the database did not send it again. */
typedef struct old_row {
    ww_results *found;
    const float *vector;
    const char *text, *payload;
} old_row;

static ww_status find_old(applier *a, const followed_table *table, const table_row *row, const char *id, old_row *old)
{
    bool needed = row->vector->presence == PG_UNCHANGED || (row->text && row->text->presence == PG_UNCHANGED);
    for (int32_t i = 0; i < table->payload_count; i++)
        needed = needed || row->payload[i]->presence == PG_UNCHANGED;
    *old = (old_row){0};
    if (!needed)
        return WW_OK;
    ww_collection *collection = NULL;
    ww_get get = ww_get_default();
    get.ids = &id;
    get.count = 1;
    get.fetch = WW_FETCH_VECTORS | WW_FETCH_PAYLOADS | (table->has_text ? WW_FETCH_TEXTS : 0);
    ww_status status = flush(a);
    if (status == WW_OK)
        status = applier_collection(a, table, &collection);
    if (status == WW_OK)
        status = ww_collection_get(collection, &get, &old->found);
    if (status == WW_OK && ww_results_count(old->found, 0) > 0 && ww_results_rows(old->found, 0)[0] >= 0) {
        old->vector = ww_results_vector(old->found, 0, 0);
        old->payload = ww_results_payload(old->found, 0, 0);
        old->text = table->has_text ? ww_results_text(old->found, 0, 0) : NULL;
    }
    return status;
}

/* Appends the bytes of a sparse vector or a multivector; the numbers beside it are 0. */
static vector_fault take_content(row_batch *b, const pg_value *value, float *vector)
{
    const size_t unit = b->table->kind == ROWS_SPARSE ? 2 * sizeof *vector : (size_t)b->dim * sizeof *vector;
    memset(vector, 0, (size_t)b->dim * sizeof *vector);
    while (b->bytes.length % sizeof *vector != 0)
        out_bytes(&b->bytes, "", 1);
    b->contents[b->count] = b->bytes.length;
    const bool read = value_put_bytes(&b->bytes, value);
    b->content_bytes[b->count] = b->bytes.length - b->contents[b->count];
    return read && b->content_bytes[b->count] % unit == 0 ? VECTOR_OK : VECTOR_UNREADABLE;
}

/* Gives a row a new payload, because its vector was not sent again. A row that is no longer there is removed by a change that
 * follows. */
static ww_status put_payload(applier *a, const row_source *from, const table_row *row)
{
    const char *id = a->id.bytes, *payload = NULL;
    ww_collection *collection = NULL;
    out text = {0};
    ww_status status = flush(a);
    if (status == WW_OK && row->payload[0]->presence != PG_UNCHANGED)
        status = applier_collection(a, from->table, &collection);
    if (status == WW_OK)
        status = table_put_payload(&text, from->table, row, from->connection, NULL);
    if (text.length > 0) {
        out_bytes(&text, "", 1);
        payload = text.bytes;
    }
    if (status == WW_OK && collection)
        status = ww_collection_set_payloads(collection, &id, &payload, 1);
    out_free(&text);
    return status == WW_NOT_FOUND ? WW_OK : status;
}

/* Adds the row, whose id is in a->id, to the batch; or removes and refuses it. */
static ww_status put(applier *a, const row_source *from, const table_row *row, const old_row *old)
{
    const followed_table *table = from->table;
    row_batch *b = &a->batch;
    const size_t id_length = a->id.length - 1;
    ww_status status = batch_reserve(a, table, a->id.bytes, id_length);
    if (status != WW_OK)
        return status;
    float *vector = b->vectors + b->count * b->dim;
    int32_t found = 0;
    vector_fault fault = table->kind != ROWS_DENSE
                             ? take_content(b, row->vector, vector)
                             : value_read_vector(table->vector_form, row->vector, vector, table->dim, &found);
    if (fault == VECTOR_NOT_SENT && old->vector) {
        memcpy(vector, old->vector, (size_t)table->dim * sizeof *vector);
        fault = VECTOR_OK;
    }
    if (fault != VECTOR_OK) {
        refuse(a, table, a->id.bytes, vector_fault_text(fault), from->lsn);
        return discard(a, table, a->id.bytes);
    }
    b->ids[b->count] = batch_text(b, a->id.bytes, id_length);
    b->texts[b->count] = SIZE_MAX;
    if (row->text && row->text->presence == PG_TEXT)
        b->texts[b->count] = batch_text(b, row->text->bytes, row->text->length);
    else if (row->text && row->text->presence == PG_UNCHANGED && old->text)
        b->texts[b->count] = batch_text(b, old->text, strlen(old->text));
    b->payloads[b->count] = b->bytes.length;
    status = table_put_payload(&b->bytes, table, row, from->connection, old->payload);
    if (b->bytes.length == b->payloads[b->count])
        b->payloads[b->count] = SIZE_MAX;
    out_bytes(&b->bytes, "", 1);
    if (status != WW_OK || b->bytes.failed)
        return status != WW_OK ? status : memory_failed("rows of a table", b->bytes.length);
    *find_slot(b, a->id.bytes, id_length) = (int16_t)(b->count + 1);
    b->count++;
    return WW_OK;
}

/* ---- changes ------------------------------------------------------------------------------------------------------------- */

ww_status applier_put(applier *a, const row_source *from, const table_row *row)
{
    const ww_status status = begin(a);
    if (status != WW_OK || !take_id(a, from->table, row, from->lsn))
        return status;
    return put(a, from, row, &(old_row){0});
}

ww_status applier_change(applier *a, const row_source *from, const table_row *old, const table_row *row)
{
    old_row before = {0};
    ww_status status = begin(a);
    if (status != WW_OK || !take_id(a, from->table, old ? old : row, from->lsn))
        return status;
    if (from->table->kind != ROWS_DENSE && row->vector->presence == PG_UNCHANGED)
        return put_payload(a, from, row);
    status = find_old(a, from->table, row, a->id.bytes, &before);
    bool named = true;
    if (status == WW_OK && old) {
        status = applier_remove(a, from->table, old);
        named = status == WW_OK && take_id(a, from->table, row, from->lsn);
    }
    if (status == WW_OK && named)
        status = put(a, from, row, &before);
    ww_results_destroy(before.found);
    return status;
}

ww_status applier_remove(applier *a, const followed_table *table, const table_row *old)
{
    ww_status status = begin(a);
    if (status == WW_OK)
        status = flush(a);
    if (status != WW_OK || !take_id(a, table, old, 0))
        return status;
    a->figures.removed++;
    return discard(a, table, a->id.bytes);
}

ww_status applier_clear(applier *a, const followed_table *table)
{
    ww_collection *collection = NULL;
    ww_status status = applier_collection(a, table, &collection); /* not inside the transaction, if it has to be created */
    if (status == WW_OK)
        status = begin(a);
    if (status == WW_OK)
        status = flush(a);
    return status == WW_OK ? ww_collection_clear(collection) : status;
}
