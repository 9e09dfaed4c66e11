/* Changes and removes rows.
 *
 * The collection's digest is kept up to date from the checksums that the row has in the file: they are taken from the sum, and
 * the new ones added. Where a new checksum covers something that stays, the old entry is verified first, so that damage is
 * never covered by a valid checksum.
 */
#include <string.h>

#include "base/checksum.h"
#include "base/memory.h"
#include "base/status.h"
#include "store/writer/writer_state.h"

/* A row as it is in the file. */
typedef struct old_row {
    int64_t handle, place;
    uint64_t entry, vector, text; /* checksums; `vector` is that of the dense one */
    uint64_t sparse, multi;       /* 0: none */
} old_row;

/* ---- looking up ---------------------------------------------------------------------------------------------------------- */

static ww_status no_row(const writer *w, int64_t handle)
{
    return ww_fail(WW_NOT_FOUND, "collection '%s': there is no row with handle %lld", w->name, (long long)handle);
}

static ww_status read_vector_checksum(writer *w, old_row *old)
{
    ww_status status = writer_ready(w, GET_CHECKSUM);
    if (status != WW_OK)
        return status;
    sqlite3_stmt *s = w->statements[GET_CHECKSUM];
    sqlite3_bind_int64(s, 1, old->place);
    const int code = sqlite3_step(s);
    if (code == SQLITE_ROW)
        old->vector = (uint64_t)sqlite3_column_int64(s, 0) ^ checksum_mark(old->handle, old->place);
    else if (code == SQLITE_DONE)
        status = ww_fail(WW_CORRUPT_FILE, "collection '%s': the row with handle %lld has no vector", w->name,
                         (long long)old->handle);
    else
        status = sqlite_failed(w->db, code, w->name);
    sqlite3_reset(s);
    return status;
}

static ww_status find_row(writer *w, int64_t handle, old_row *old)
{
    *old = (old_row){.handle = handle, .place = -1};
    ww_status status = writer_ready(w, FIND_HANDLE);
    if (status != WW_OK)
        return status;
    sqlite3_stmt *s = w->statements[FIND_HANDLE];
    sqlite3_bind_int64(s, 1, handle);
    const int code = sqlite3_step(s);
    if (code == SQLITE_ROW) {
        old->place = sqlite3_column_int64(s, 0);
        old->entry = (uint64_t)sqlite3_column_int64(s, 1) ^ checksum_mark(handle, old->place);
        old->text = (uint64_t)sqlite3_column_int64(s, 2);
    } else {
        status = code == SQLITE_DONE ? no_row(w, handle) : sqlite_failed(w->db, code, w->name);
    }
    sqlite3_reset(s);
    if (status == WW_OK)
        status = read_vector_checksum(w, old);
    const sparse_tables tables = sparse_tables_of(w);
    if (status == WW_OK)
        status = sparse_writer_checksum(&w->sparse, &tables, old->place, &old->sparse);
    const multi_table table = multi_table_of(w);
    return status == WW_OK ? multi_writer_checksum(&w->multi, &table, old->place, &old->multi) : status;
}

ww_status writer_payload(writer *w, int64_t handle, char **payload)
{
    ww_status status = writer_ready(w, GET_ENTRY);
    if (status != WW_OK)
        return status;
    sqlite3_stmt *s = w->statements[GET_ENTRY];
    sqlite3_bind_int64(s, 1, handle);
    const int code = sqlite3_step(s);
    const char *text = code == SQLITE_ROW ? (const char *)sqlite3_column_text(s, 1) : NULL;
    *payload = NULL;
    if (code != SQLITE_ROW)
        status = code == SQLITE_DONE ? no_row(w, handle) : sqlite_failed(w->db, code, w->name);
    else if (text && !(*payload = memory_copy_text(text, strlen(text))))
        status = memory_failed("a payload", strlen(text) + 1);
    sqlite3_reset(s);
    return status;
}

/* ---- checksums ----------------------------------------------------------------------------------------------------------- */

/* The checksum of the entry with what stays of the old one, which is verified. */
static ww_status partly_new_entry(writer *w, const writer_row *row, int what, const old_row *old, uint64_t *entry)
{
    ww_status status = writer_ready(w, GET_ENTRY);
    if (status != WW_OK)
        return status;
    sqlite3_stmt *s = w->statements[GET_ENTRY];
    sqlite3_bind_int64(s, 1, old->handle);
    const int code = sqlite3_step(s);
    const char *id = code == SQLITE_ROW ? (const char *)sqlite3_column_text(s, 0) : NULL;
    const char *payload = id ? (const char *)sqlite3_column_text(s, 1) : NULL;
    if (id) {
        checksum_parts parts = {id, (size_t)sqlite3_column_bytes(s, 0), payload, (size_t)sqlite3_column_bytes(s, 1), old->text};
        if (checksum_entry(&parts) != old->entry)
            status = row_damaged(w->name, "the row with handle", old->handle);
        if ((what & WRITER_ID) && row->id)
            parts.id = row->id, parts.id_bytes = strlen(row->id);
        if (what & WRITER_PAYLOAD)
            parts.payload = row->payload, parts.payload_bytes = writer_payload_bytes(row);
        if (what & WRITER_TEXT)
            parts.text = checksum_text(row->text);
        *entry = checksum_entry(&parts);
    } else {
        status = code == SQLITE_ROW || code == SQLITE_DONE ? no_row(w, old->handle) : sqlite_failed(w->db, code, w->name);
    }
    sqlite3_reset(s);
    return status;
}

static ww_status new_entry(writer *w, const writer_row *row, int what, const old_row *old, uint64_t *entry)
{
    *entry = old->entry;
    if (!(what & (WRITER_ID | WRITER_PAYLOAD | WRITER_TEXT)))
        return WW_OK;
    if (!row->id || !(what & WRITER_PAYLOAD) || !(what & WRITER_TEXT))
        return partly_new_entry(w, row, what, old, entry);
    const checksum_parts parts = {row->id, strlen(row->id), row->payload, writer_payload_bytes(row), checksum_text(row->text)};
    *entry = checksum_entry(&parts);
    return WW_OK;
}

/* ---- changes ------------------------------------------------------------------------------------------------------------- */

/* Only notes that the vector is gone: deleting it would rewrite its page, and removing some rows of every page would rewrite
 * the file. Trimming the log and compacting delete the vectors that it names. */
static ww_status remove_vector(writer *w, int64_t place)
{
    const ivf_tables tables = ivf_tables_of(w);
    ww_status status = ivf_is_there(&w->record) ? index_writer_remove(&w->index, &tables, place) : WW_OK;
    w->logged++;
    return status == WW_OK ? writer_run_numbers(w, LOG_REMOVAL, w->record.sequence, place) : status;
}

static ww_status set_id(writer *w, const writer_row *row)
{
    bool taken = false;
    ww_status status = writer_ready(w, SET_ID);
    if (status != WW_OK)
        return status;
    sqlite3_bind_int64(w->statements[SET_ID], 1, row->handle);
    sqlite3_bind_text(w->statements[SET_ID], 2, row->id, -1, SQLITE_STATIC);
    status = writer_run(w, SET_ID, &taken);
    return taken ? writer_duplicate(w, row->id, -1) : status;
}

/* Writes place, checksums and, if it is new, the payload. */
static ww_status set_entry(writer *w, const writer_row *row, int what, uint64_t entry, uint64_t text)
{
    const bool payload = what & WRITER_PAYLOAD;
    const statement which = payload ? SET_ENTRY : SET_PLACE;
    bool constraint = false;
    const ww_status status = writer_ready(w, which);
    if (status != WW_OK)
        return status;
    sqlite3_stmt *s = w->statements[which];
    sqlite3_bind_int64(s, 1, row->handle);
    sqlite3_bind_int64(s, 2, row->place);
    sqlite3_bind_int64(s, 3, (int64_t)(entry ^ checksum_mark(row->handle, row->place)));
    writer_bind_text_checksum(s, 4, text);
    if (payload)
        writer_bind_payload(s, 5, row);
    return writer_run(w, which, &constraint);
}

/* Checks everything before anything is changed. */
static ww_status check_change(writer *w, writer_row *row, int what)
{
    ww_status status = WW_OK;
    if (what & WRITER_ID)
        status = row->id ? writer_check_id(w, row) : ww_fail(WW_INVALID_ARGUMENT, "collection '%s': an id is NULL", w->name);
    if (status == WW_OK && what & WRITER_PAYLOAD)
        status = writer_check_payload(w, row);
    if (status == WW_OK && what & WRITER_VECTOR)
        status = writer_check_vector(w, row);
    return status;
}

/* The row's vectors go to another place: its sparse vector with them, or a new one instead of it. */
static ww_status change_sparse(writer *w, const writer_row *row, int what, const old_row *old, uint64_t *sparse)
{
    const sparse_tables tables = sparse_tables_of(w);
    const int64_t moved = what & WRITER_SPARSE ? -1 : row->place;
    ww_status status = old->sparse != 0 ? sparse_writer_remove(&w->sparse, &tables, old->place, moved, sparse) : WW_OK;
    if (status == WW_OK && what & WRITER_SPARSE)
        status = sparse_writer_insert(&w->sparse, &tables, (sparse_new){row->handle, row->place, row->sparse}, sparse);
    return status;
}

/* The same for its multivector. */
static ww_status change_multi(writer *w, const writer_row *row, int what, const old_row *old, uint64_t *multi)
{
    const multi_table table = multi_table_of(w);
    const int64_t moved = what & WRITER_MULTI ? -1 : row->place;
    ww_status status = old->multi != 0 ? multi_writer_remove(&w->multi, &table, old->place, moved) : WW_OK;
    if (status == WW_OK && what & WRITER_MULTI)
        status = multi_writer_insert(&w->multi, &table, (multi_new){row->handle, row->place, row->multi}, multi);
    return status;
}

/* The checksum of all vectors of a row. */
static uint64_t vectors_checksum(uint64_t dense, uint64_t sparse, uint64_t multi)
{
    return multi_checksum(sparse_checksum(dense, sparse), multi);
}

ww_status writer_update(writer *w, writer_row *row, int what)
{
    old_row old;
    uint64_t entry = 0;
    ww_status status = find_row(w, row->handle, &old);
    uint64_t vector = old.vector, sparse = old.sparse, multi = old.multi;
    if (status == WW_OK)
        status = check_change(w, row, what);
    if (status == WW_OK)
        status = new_entry(w, row, what, &old, &entry);
    if (status != WW_OK)
        return status;
    row->place = what & WRITER_VECTOR ? w->record.next_place : old.place;
    if (what & WRITER_ID)
        status = set_id(w, row);
    if (status == WW_OK)
        status = set_entry(w, row, what, entry, what & WRITER_TEXT ? checksum_text(row->text) : old.text);
    if (status == WW_OK && what & WRITER_VECTOR) {
        status = remove_vector(w, old.place);
        if (status == WW_OK)
            status = writer_insert_vector(w, row, &vector);
        w->record.next_place += status == WW_OK;
    }
    if (status == WW_OK && what & WRITER_VECTOR)
        status = change_sparse(w, row, what, &old, &sparse);
    if (status == WW_OK && what & WRITER_VECTOR)
        status = change_multi(w, row, what, &old, &multi);
    const text_tables tables = text_tables_of(w);
    if (status == WW_OK && what & WRITER_TEXT)
        status = text_writer_set(&w->texts, &tables, row->handle, row->text);
    if (status == WW_OK)
        w->record.digest += checksum_row(entry, vectors_checksum(vector, sparse, multi)) -
                            checksum_row(old.entry, vectors_checksum(old.vector, old.sparse, old.multi));
    return status;
}

ww_status writer_upsert(writer *w, writer_row *row)
{
    int64_t handle = -1, place = -1;
    ww_status status = row->id ? writer_check_id(w, row) : WW_OK;
    if (status == WW_OK && row->id)
        status = writer_find(w, row->id, &handle, &place);
    if (status != WW_OK)
        return status;
    if (handle < 0)
        return writer_insert(w, row);
    if (place >= w->change_first_place)
        return writer_duplicate(w, row->id, place);
    row->handle = handle;
    return writer_update(w, row, WRITER_PAYLOAD | WRITER_VECTOR | WRITER_TEXT | WRITER_SPARSE | WRITER_MULTI);
}

ww_status writer_replace(writer *w, writer_row *row, int what, int64_t *old_place)
{
    int64_t place = -1;
    ww_status status = writer_check_id(w, row);
    if (status == WW_OK)
        status = writer_find(w, row->id, &row->handle, &place);
    if (status != WW_OK)
        return status;
    if (row->handle < 0)
        return ww_fail(WW_NOT_FOUND, "collection '%s': there is no id '%s' to update; nothing was changed", w->name, row->id);
    if (place >= w->change_first_place)
        return writer_duplicate(w, row->id, place);
    if (old_place)
        *old_place = place;
    return writer_update(w, row, what);
}

ww_status writer_remove(writer *w, int64_t handle, int64_t *old_place)
{
    old_row old;
    ww_status status = find_row(w, handle, &old);
    if (old_place)
        *old_place = old.place;
    if (status == WW_OK)
        status = writer_run_numbers(w, DELETE_ROW, handle, 0);
    if (status == WW_OK)
        status = remove_vector(w, old.place);
    const text_tables tables = text_tables_of(w);
    if (status == WW_OK && old.text != 0)
        status = text_writer_set(&w->texts, &tables, handle, NULL);
    const sparse_tables sparse = sparse_tables_of(w);
    uint64_t removed = 0;
    if (status == WW_OK && old.sparse != 0)
        status = sparse_writer_remove(&w->sparse, &sparse, old.place, -1, &removed);
    const multi_table table = multi_table_of(w);
    if (status == WW_OK && old.multi != 0)
        status = multi_writer_remove(&w->multi, &table, old.place, -1);
    if (status != WW_OK)
        return status;
    w->record.live--;
    w->record.digest -= checksum_row(old.entry, vectors_checksum(old.vector, old.sparse, old.multi));
    return WW_OK;
}
