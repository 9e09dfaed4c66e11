/* Checks rows and writes them to the tables with prepared statements. */
#include <stdio.h>
#include <string.h>

#include "arithmetic/row_types.h"
#include "arithmetic/row_values.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "store/writer/writer_state.h"
#include "vectors/internal/core.h"

enum { HANDLE_TEXT_BYTES = 24, ROW_TEXT_BYTES = 64 };

/* Each takes the database and the collection, in this order, once. */
static const char *const TEXTS[STATEMENT_COUNT] = {
    [INSERT_ROW] = "INSERT INTO \"%w\".\"%w_rows\"(handle, place, id, payload) VALUES(?1, ?2, ?3, ?4)",
    [INSERT_VECTOR] = "INSERT INTO \"%w\".\"%w_vectors\"(place, handle, vector) VALUES(?1, ?2, ?3)",
    [FIND_ID] = "SELECT handle, place FROM \"%w\".\"%w_rows\" WHERE id = ?1",
    [FIND_HANDLE] = "SELECT handle, place FROM \"%w\".\"%w_rows\" WHERE handle = ?1",
    [GET_PAYLOAD] = "SELECT payload FROM \"%w\".\"%w_rows\" WHERE handle = ?1",
    [SET_PLACE] = "UPDATE \"%w\".\"%w_rows\" SET place = ?2 WHERE handle = ?1",
    [SET_ID] = "UPDATE \"%w\".\"%w_rows\" SET id = ?2 WHERE handle = ?1",
    [SET_PAYLOAD] = "UPDATE \"%w\".\"%w_rows\" SET payload = ?2 WHERE handle = ?1",
    [DELETE_ROW] = "DELETE FROM \"%w\".\"%w_rows\" WHERE handle = ?1",
    [DELETE_VECTOR] = "DELETE FROM \"%w\".\"%w_vectors\" WHERE place = ?1",
    [LOG_REMOVAL] = "INSERT INTO \"%w\".\"%w_removed\"(sequence, place) VALUES(?1, ?2)",
};

static ww_status ready(writer *w, statement which)
{
    return w->statements[which] ? WW_OK
                                : schema_statement(w->db, &w->statements[which], TEXTS[which], w->schema, w->record.name);
}

/* Runs a statement that returns no rows. `constraint` says that a value already existed. */
static ww_status run(writer *w, statement which, bool *constraint)
{
    sqlite3_stmt *s = w->statements[which];
    const int code = sqlite3_step(s);
    ww_status status = WW_OK;
    if (code != SQLITE_DONE) {
        *constraint = (sqlite3_extended_errcode(w->db) & 0xff) == SQLITE_CONSTRAINT;
        status = sqlite_failed(w->db, code, w->name);
    }
    sqlite3_reset(s);
    return status;
}

/* Runs a statement whose parameters are one or two numbers. */
static ww_status run_numbers(writer *w, statement which, int64_t first, int64_t second)
{
    bool constraint = false;
    ww_status status = ready(w, which);
    if (status != WW_OK)
        return status;
    sqlite3_bind_int64(w->statements[which], 1, first);
    if (sqlite3_bind_parameter_count(w->statements[which]) > 1)
        sqlite3_bind_int64(w->statements[which], 2, second);
    status = run(w, which, &constraint);
    if (constraint)
        status = ww_fail(WW_CORRUPT_FILE, "collection '%s': its tables contradict each other (%s)", w->name, TEXTS[which]);
    return status;
}

/* Looks a row up: its handle and place, or -1 if there is none. */
static ww_status look(writer *w, statement which, int64_t *handle, int64_t *place)
{
    sqlite3_stmt *s = w->statements[which];
    const int code = sqlite3_step(s);
    *handle = code == SQLITE_ROW ? sqlite3_column_int64(s, 0) : -1;
    *place = code == SQLITE_ROW ? sqlite3_column_int64(s, 1) : -1;
    const ww_status status = code == SQLITE_ROW || code == SQLITE_DONE ? WW_OK : sqlite_failed(w->db, code, w->name);
    sqlite3_reset(s);
    return status;
}

ww_status writer_find(writer *w, const char *id, int64_t *handle, int64_t *place)
{
    const ww_status status = ready(w, FIND_ID);
    if (status != WW_OK)
        return status;
    sqlite3_bind_text(w->statements[FIND_ID], 1, id, -1, SQLITE_STATIC);
    return look(w, FIND_ID, handle, place);
}

static ww_status find_handle(writer *w, int64_t handle, int64_t *place)
{
    int64_t found = -1;
    ww_status status = ready(w, FIND_HANDLE);
    if (status != WW_OK)
        return status;
    sqlite3_bind_int64(w->statements[FIND_HANDLE], 1, handle);
    status = look(w, FIND_HANDLE, &found, place);
    if (status == WW_OK && found < 0)
        return ww_fail(WW_NOT_FOUND, "collection '%s': there is no row with handle %lld", w->name, (long long)handle);
    return status;
}

/* ---- checks -------------------------------------------------------------------------------------------------------------- */

static ww_status check_id(const writer *w, const writer_row *row)
{
    char which[ROW_TEXT_BYTES] = "an id";
    const size_t length = strnlen(row->id, WW_ID_BYTES_MAX + 1);
    const bool fits = length > 0 && length <= WW_ID_BYTES_MAX;
    if (fits && utf8_check(row->id, length))
        return WW_OK;
    if (row->batch_row > 0)
        snprintf(which, sizeof which, "the id of row %lld of the batch", (long long)row->batch_row - 1);
    if (fits)
        return ww_fail(WW_INVALID_ARGUMENT, "collection '%s': %s is not UTF-8: '%s'", w->name, which, row->id);
    return ww_fail(WW_INVALID_ARGUMENT, "collection '%s': %s %s; an id has 1 to %d bytes", w->name, which,
                   length == 0 ? "is empty" : "is too long", WW_ID_BYTES_MAX);
}

static ww_status elements_ready(writer *w)
{
    const size_t dim = (size_t)w->record.dim;
    if (!w->floats)
        w->floats = memory_alloc(dim * sizeof *w->floats);
    if (!w->elements)
        w->elements = memory_alloc(dim * sizeof *w->floats);
    return w->floats && w->elements ? WW_OK : memory_failed("a vector", 2 * dim * sizeof *w->floats);
}

/* Converts the row's vector to the collection's type, in row->elements, and checks that it is finite. */
static ww_status check_vector(writer *w, writer_row *row)
{
    const int32_t type = (int32_t)w->record.type, dim = w->record.dim;
    if (!row->vector && !row->elements)
        return ww_fail(WW_INVALID_ARGUMENT, "collection '%s': a row has no vector", w->name);
    const float *floats = row->vector;
    if (type != ROW_F32) {
        const ww_status status = elements_ready(w);
        if (status != WW_OK)
            return status;
        if (!row->elements && !row_narrow(type, row->vector, dim, w->elements))
            return ww_fail(WW_INVALID_ARGUMENT, "collection '%s' has rows of %s: a vector has a value that it cannot hold",
                           w->name, ww_vector_type_name(w->record.type));
        row->elements = row->elements ? row->elements : w->elements;
        row_widen(type, row->elements, dim, w->floats);
        floats = w->floats;
    } else if (row->elements) {
        floats = row->elements;
    } else {
        row->elements = row->vector;
    }
    if (ww_core()->is_finite(floats, dim))
        return WW_OK;
    return ww_fail(WW_INVALID_ARGUMENT,
                   "collection '%s': a vector has a value that is not finite, or values so large that its squared norm is not "
                   "finite",
                   w->name);
}

static ww_status check_payload(const writer *w, const writer_row *row)
{
    return row->payload && !row->payload_checked ? ww_core()->check_payload(w->name, 0, row->payload) : WW_OK;
}

static ww_status duplicate(const writer *w, const char *id, int64_t place)
{
    return ww_fail(WW_DUPLICATE_ID, "collection '%s': id '%s' %s", w->name, id,
                   place >= w->change_first_place ? "appears twice in the batch" : "already exists; upsert replaces it");
}

/* ---- changes ------------------------------------------------------------------------------------------------------------- */

static void bind_payload(sqlite3_stmt *s, int number, const writer_row *row)
{
    if (row->payload)
        sqlite3_bind_text64(s, number, row->payload, row->payload_bytes > 0 ? row->payload_bytes : strlen(row->payload),
                            SQLITE_STATIC, SQLITE_UTF8);
    else
        sqlite3_bind_null(s, number);
}

/* Tries to add the row's entry; `taken` says that another row has its id or handle. */
static ww_status insert_entry(writer *w, const writer_row *row, const char *id, bool *taken)
{
    sqlite3_stmt *s = w->statements[INSERT_ROW];
    sqlite3_bind_int64(s, 1, row->handle);
    sqlite3_bind_int64(s, 2, row->place);
    sqlite3_bind_text(s, 3, id, -1, SQLITE_STATIC);
    bind_payload(s, 4, row);
    return run(w, INSERT_ROW, taken);
}

static ww_status insert_vector(writer *w, const writer_row *row)
{
    bool taken = false;
    ww_status status = ready(w, INSERT_VECTOR);
    if (status != WW_OK)
        return status;
    sqlite3_stmt *s = w->statements[INSERT_VECTOR];
    sqlite3_bind_int64(s, 1, row->place);
    sqlite3_bind_int64(s, 2, row->handle);
    sqlite3_bind_blob64(s, 3, row->elements, (sqlite3_uint64)record_vector_bytes(&w->record), SQLITE_STATIC);
    status = run(w, INSERT_VECTOR, &taken);
    if (taken)
        status = ww_fail(WW_CORRUPT_FILE, "collection '%s': there is a vector at place %lld, which was never assigned", w->name,
                         (long long)row->place);
    const ivf_tables tables = ivf_tables_of(w);
    return status == WW_OK && ivf_is_there(&w->record) ? index_writer_add(&w->index, &tables, row->place, row->elements)
                                                       : status;
}

/* Inserts the entry with the caller's id. */
static ww_status insert_named(writer *w, const writer_row *row)
{
    bool taken = false;
    int64_t handle = -1, place = -1;
    const ww_status status = insert_entry(w, row, row->id, &taken);
    if (!taken)
        return status;
    if (writer_find(w, row->id, &handle, &place) == WW_OK && handle >= 0)
        return duplicate(w, row->id, place);
    return ww_fail(WW_CORRUPT_FILE, "collection '%s': there is a row with handle %lld, which was never assigned", w->name,
                   (long long)row->handle);
}

static ww_status no_handle_left(const writer *w)
{
    return ww_fail(WW_OUT_OF_RANGE, "collection '%s': all handles have been given; export its rows into a new collection",
                   w->name);
}

static ww_status check_room(const writer *w)
{
    if (w->record.live >= WW_ROWS_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "collection '%s' is full: it has %lld rows", w->name, (long long)WW_ROWS_MAX);
    return w->record.next_handle < INT64_MAX ? WW_OK : no_handle_left(w);
}

/* Inserts the entry with its handle as id. Skips handles that are already some row's id, unless the caller chose the handle. */
static ww_status insert_numbered(writer *w, writer_row *row, bool asked)
{
    for (; row->handle < INT64_MAX; row->handle++) {
        char id[HANDLE_TEXT_BYTES];
        int64_t handle = -1, place = -1;
        bool taken = false;
        snprintf(id, sizeof id, "%lld", (long long)row->handle);
        ww_status status = insert_entry(w, row, id, &taken);
        if (!taken)
            return status;
        status = writer_find(w, id, &handle, &place);
        if (status != WW_OK)
            return status;
        if (asked || handle < 0)
            return handle < 0
                       ? ww_fail(WW_CORRUPT_FILE, "collection '%s': there is a row with handle %lld, which was never assigned",
                                 w->name, (long long)row->handle)
                       : duplicate(w, id, place);
    }
    return no_handle_left(w);
}

ww_status writer_check_handle(const writer *w, int64_t handle)
{
    if (handle < w->record.next_handle)
        return ww_fail(WW_INVALID_ARGUMENT, "collection '%s': handle %lld was given before; no handle is given twice", w->name,
                       (long long)handle);
    if (handle > HANDLE_CHOSEN_MAX)
        return ww_fail(WW_OUT_OF_RANGE,
                       "collection '%s': handle %lld leaves too few numbers for later rows; choose one up to %lld (2^62 - 1)",
                       w->name, (long long)handle, (long long)HANDLE_CHOSEN_MAX);
    return WW_OK;
}

ww_status writer_insert(writer *w, writer_row *row)
{
    const bool asked = row->handle >= 0;
    ww_status status = asked ? writer_check_handle(w, row->handle) : WW_OK;
    if (status == WW_OK)
        status = check_room(w);
    if (status == WW_OK && row->id)
        status = check_id(w, row);
    if (status == WW_OK)
        status = check_vector(w, row);
    if (status == WW_OK)
        status = check_payload(w, row);
    if (status == WW_OK)
        status = ready(w, INSERT_ROW);
    if (status != WW_OK)
        return status;
    if (!asked)
        row->handle = w->record.next_handle;
    row->place = w->record.next_place;
    status = row->id ? insert_named(w, row) : insert_numbered(w, row, asked);
    if (status == WW_OK)
        status = insert_vector(w, row);
    const text_tables tables = text_tables_of(w);
    if (status == WW_OK)
        status = text_writer_insert(&w->texts, &tables, row->handle, row->text);
    if (status != WW_OK)
        return status;
    w->record.next_handle = row->handle + 1;
    w->record.next_place++;
    w->record.live++;
    return WW_OK;
}

static ww_status remove_vector(writer *w, int64_t place)
{
    const ivf_tables tables = ivf_tables_of(w);
    ww_status status = ivf_is_there(&w->record) ? index_writer_remove(&w->index, &tables, place) : WW_OK;
    if (status == WW_OK)
        status = run_numbers(w, DELETE_VECTOR, place, 0);
    return status == WW_OK ? run_numbers(w, LOG_REMOVAL, w->record.sequence, place) : status;
}

static ww_status set_payload(writer *w, const writer_row *row)
{
    bool constraint = false;
    ww_status status = check_payload(w, row);
    if (status == WW_OK)
        status = ready(w, SET_PAYLOAD);
    if (status != WW_OK)
        return status;
    sqlite3_bind_int64(w->statements[SET_PAYLOAD], 1, row->handle);
    bind_payload(w->statements[SET_PAYLOAD], 2, row);
    return run(w, SET_PAYLOAD, &constraint);
}

static ww_status set_id(writer *w, const writer_row *row)
{
    bool taken = false;
    ww_status status = row->id ? check_id(w, row) : ww_fail(WW_INVALID_ARGUMENT, "collection '%s': an id is NULL", w->name);
    if (status == WW_OK)
        status = ready(w, SET_ID);
    if (status != WW_OK)
        return status;
    sqlite3_bind_int64(w->statements[SET_ID], 1, row->handle);
    sqlite3_bind_text(w->statements[SET_ID], 2, row->id, -1, SQLITE_STATIC);
    status = run(w, SET_ID, &taken);
    return taken ? duplicate(w, row->id, -1) : status;
}

static ww_status set_vector(writer *w, writer_row *row, int64_t old_place)
{
    ww_status status = check_vector(w, row);
    row->place = w->record.next_place;
    if (status == WW_OK)
        status = remove_vector(w, old_place);
    if (status == WW_OK)
        status = run_numbers(w, SET_PLACE, row->handle, row->place);
    if (status == WW_OK)
        status = insert_vector(w, row);
    if (status == WW_OK)
        w->record.next_place++;
    return status;
}

ww_status writer_update(writer *w, writer_row *row, int what)
{
    int64_t place = -1;
    ww_status status = find_handle(w, row->handle, &place);
    row->place = place;
    if (status == WW_OK && what & WRITER_ID)
        status = set_id(w, row);
    if (status == WW_OK && what & WRITER_PAYLOAD)
        status = set_payload(w, row);
    if (status == WW_OK && what & WRITER_VECTOR)
        status = set_vector(w, row, place);
    const text_tables tables = text_tables_of(w);
    if (status == WW_OK && what & WRITER_TEXT)
        status = text_writer_set(&w->texts, &tables, row->handle, row->text);
    return status;
}

ww_status writer_upsert(writer *w, writer_row *row)
{
    int64_t handle = -1, place = -1;
    ww_status status = row->id ? check_id(w, row) : WW_OK;
    if (status == WW_OK && row->id)
        status = writer_find(w, row->id, &handle, &place);
    if (status != WW_OK)
        return status;
    if (handle < 0)
        return writer_insert(w, row);
    if (place >= w->change_first_place)
        return duplicate(w, row->id, place);
    row->handle = handle;
    return writer_update(w, row, WRITER_PAYLOAD | WRITER_VECTOR | WRITER_TEXT);
}

ww_status writer_replace(writer *w, writer_row *row, int what, int64_t *old_place)
{
    int64_t place = -1;
    ww_status status = check_id(w, row);
    if (status == WW_OK)
        status = writer_find(w, row->id, &row->handle, &place);
    if (status != WW_OK)
        return status;
    if (row->handle < 0)
        return ww_fail(WW_NOT_FOUND, "collection '%s': there is no id '%s' to update; nothing was changed", w->name, row->id);
    if (place >= w->change_first_place)
        return duplicate(w, row->id, place);
    if (old_place)
        *old_place = place;
    return writer_update(w, row, what);
}

ww_status writer_remove(writer *w, int64_t handle, int64_t *old_place)
{
    int64_t place = -1;
    ww_status status = find_handle(w, handle, &place);
    if (old_place)
        *old_place = place;
    if (status == WW_OK)
        status = run_numbers(w, DELETE_ROW, handle, 0);
    if (status == WW_OK)
        status = remove_vector(w, place);
    const text_tables tables = text_tables_of(w);
    if (status == WW_OK)
        status = text_writer_set(&w->texts, &tables, handle, NULL);
    if (status == WW_OK)
        w->record.live--;
    return status;
}

ww_status writer_payload(writer *w, int64_t handle, char **payload)
{
    ww_status status = ready(w, GET_PAYLOAD);
    if (status != WW_OK)
        return status;
    sqlite3_stmt *s = w->statements[GET_PAYLOAD];
    sqlite3_bind_int64(s, 1, handle);
    const int code = sqlite3_step(s);
    const char *text = code == SQLITE_ROW ? (const char *)sqlite3_column_text(s, 0) : NULL;
    *payload = NULL;
    if (code == SQLITE_DONE)
        status = ww_fail(WW_NOT_FOUND, "collection '%s': there is no row with handle %lld", w->name, (long long)handle);
    else if (code != SQLITE_ROW)
        status = sqlite_failed(w->db, code, w->name);
    else if (text && !(*payload = memory_copy_text(text, strlen(text))))
        status = memory_failed("a payload", strlen(text) + 1);
    sqlite3_reset(s);
    return status;
}
