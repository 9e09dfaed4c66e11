/* Checks rows and adds them to the tables with prepared statements. */
#include <stdio.h>
#include <string.h>

#include "arithmetic/row_types.h"
#include "arithmetic/row_values.h"
#include "base/checksum.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "store/writer/writer_state.h"
#include "vectors/collection.h"
#include "vectors/write/payloads.h"

enum { ROW_TEXT_BYTES = 64 };

/* Each takes the database and the collection, in this order, once. */
static const char *const TEXTS[STATEMENT_COUNT] = {
    [INSERT_ROW] =
        ("INSERT INTO \"%w\".\"%w_rows\"(handle, place, id, payload, checksum, text_checksum) VALUES(?1, ?2, ?3, ?4, "
         "?5, ?6)"),
    [INSERT_VECTOR] = "INSERT INTO \"%w\".\"%w_vectors\"(place, handle, vector, checksum) VALUES(?1, ?2, ?3, ?4)",
    [FIND_ID] = "SELECT handle, place FROM \"%w\".\"%w_rows\" WHERE id = ?1",
    [FIND_HANDLE] = "SELECT place, checksum, text_checksum FROM \"%w\".\"%w_rows\" WHERE handle = ?1",
    [GET_ENTRY] = "SELECT id, payload FROM \"%w\".\"%w_rows\" WHERE handle = ?1",
    [GET_CHECKSUM] = "SELECT checksum FROM \"%w\".\"%w_vectors\" WHERE place = ?1",
    [SET_PLACE] = "UPDATE \"%w\".\"%w_rows\" SET place = ?2, checksum = ?3, text_checksum = ?4 WHERE handle = ?1",
    [SET_ID] = "UPDATE \"%w\".\"%w_rows\" SET id = ?2 WHERE handle = ?1",
    [SET_ENTRY] = "UPDATE \"%w\".\"%w_rows\" SET place = ?2, checksum = ?3, text_checksum = ?4, payload = ?5 WHERE handle = ?1",
    [DELETE_ROW] = "DELETE FROM \"%w\".\"%w_rows\" WHERE handle = ?1",
    [LOG_REMOVAL] = "INSERT INTO \"%w\".\"%w_removed\"(sequence, place) VALUES(?1, ?2)",
};

ww_status writer_ready(writer *w, statement which)
{
    return w->statements[which] ? WW_OK
                                : schema_statement(w->db, &w->statements[which], TEXTS[which], w->schema, w->record.name);
}

/* Runs a statement that returns no rows. `constraint` says that a value already existed. */
ww_status writer_run(writer *w, statement which, bool *constraint)
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
ww_status writer_run_numbers(writer *w, statement which, int64_t first, int64_t second)
{
    bool constraint = false;
    ww_status status = writer_ready(w, which);
    if (status != WW_OK)
        return status;
    sqlite3_bind_int64(w->statements[which], 1, first);
    if (sqlite3_bind_parameter_count(w->statements[which]) > 1)
        sqlite3_bind_int64(w->statements[which], 2, second);
    status = writer_run(w, which, &constraint);
    if (constraint)
        status = ww_fail(WW_CORRUPT_FILE, "collection '%s': its tables contradict each other (%s)", w->name, TEXTS[which]);
    return status;
}

ww_status writer_find(writer *w, const char *id, int64_t *handle, int64_t *place)
{
    const ww_status status = writer_ready(w, FIND_ID);
    if (status != WW_OK)
        return status;
    sqlite3_stmt *s = w->statements[FIND_ID];
    sqlite3_bind_text(s, 1, id, -1, SQLITE_STATIC);
    const int code = sqlite3_step(s);
    *handle = code == SQLITE_ROW ? sqlite3_column_int64(s, 0) : -1;
    *place = code == SQLITE_ROW ? sqlite3_column_int64(s, 1) : -1;
    const ww_status read = code == SQLITE_ROW || code == SQLITE_DONE ? WW_OK : sqlite_failed(w->db, code, w->name);
    sqlite3_reset(s);
    return read;
}

/* ---- checks -------------------------------------------------------------------------------------------------------------- */

ww_status writer_check_id(const writer *w, const writer_row *row)
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
ww_status writer_check_vector(writer *w, writer_row *row)
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
    if (vector_is_finite(floats, dim))
        return WW_OK;
    return ww_fail(WW_INVALID_ARGUMENT,
                   "collection '%s': a vector has a value that is not finite, or values so large that its squared norm is not "
                   "finite",
                   w->name);
}

ww_status writer_check_payload(const writer *w, const writer_row *row)
{
    return row->payload && !row->payload_checked ? payload_check(w->name, 0, row->payload) : WW_OK;
}

ww_status writer_duplicate(const writer *w, const char *id, int64_t place)
{
    return ww_fail(WW_DUPLICATE_ID, "collection '%s': id '%s' %s", w->name, id,
                   place >= w->change_first_place ? "appears twice in the batch" : "already exists; upsert replaces it");
}

/* ---- changes ------------------------------------------------------------------------------------------------------------- */

size_t writer_payload_bytes(const writer_row *row)
{
    return !row->payload ? 0 : row->payload_bytes > 0 ? row->payload_bytes : strlen(row->payload);
}

void writer_bind_payload(sqlite3_stmt *s, int number, const writer_row *row)
{
    if (row->payload)
        sqlite3_bind_text64(s, number, row->payload, writer_payload_bytes(row), SQLITE_STATIC, SQLITE_UTF8);
    else
        sqlite3_bind_null(s, number);
}

void writer_bind_text_checksum(sqlite3_stmt *s, int number, uint64_t checksum)
{
    if (checksum != 0)
        sqlite3_bind_int64(s, number, (int64_t)checksum);
    else
        sqlite3_bind_null(s, number);
}

/* The checksum of the entry that is written. */
static uint64_t new_entry_checksum(const writer_row *row, const char *id)
{
    const checksum_parts parts = {id, strlen(id), row->payload, writer_payload_bytes(row), checksum_text(row->text)};
    return checksum_entry(&parts);
}

uint64_t writer_bind_entry(sqlite3_stmt *s, int first, const writer_row *row, const char *id)
{
    const uint64_t checksum = new_entry_checksum(row, id);
    sqlite3_bind_int64(s, first, row->handle);
    sqlite3_bind_int64(s, first + 1, row->place);
    sqlite3_bind_text(s, first + 2, id, -1, SQLITE_STATIC);
    writer_bind_payload(s, first + 3, row);
    sqlite3_bind_int64(s, first + 4, (int64_t)(checksum ^ checksum_mark(row->handle, row->place)));
    writer_bind_text_checksum(s, first + 5, checksum_text(row->text));
    return checksum;
}

/* Tries to add the row's entry; `taken` says that another row has its id or handle. */
static ww_status insert_entry(writer *w, const writer_row *row, const char *id, bool *taken)
{
    w->entry_checksum = writer_bind_entry(w->statements[INSERT_ROW], 1, row, id);
    return writer_run(w, INSERT_ROW, taken);
}

uint64_t writer_bind_vector(const writer *w, sqlite3_stmt *s, int first, const writer_row *row)
{
    const size_t bytes = (size_t)record_vector_bytes(&w->record);
    const uint64_t checksum = checksum_bytes(row->elements, bytes);
    sqlite3_bind_int64(s, first, row->place);
    sqlite3_bind_int64(s, first + 1, row->handle);
    sqlite3_bind_blob64(s, first + 2, row->elements, bytes, SQLITE_STATIC);
    sqlite3_bind_int64(s, first + 3, (int64_t)(checksum ^ checksum_mark(row->handle, row->place)));
    return checksum;
}

ww_status writer_place_taken(const writer *w, int64_t place)
{
    return ww_fail(WW_CORRUPT_FILE, "collection '%s': there is a vector at place %lld, which was never assigned", w->name,
                   (long long)place);
}

ww_status writer_index_vector(writer *w, const writer_row *row)
{
    const ivf_tables tables = ivf_tables_of(w);
    return ivf_is_there(&w->record) ? index_writer_add(&w->index, &tables, row->place, row->elements) : WW_OK;
}

ww_status writer_insert_vector(writer *w, const writer_row *row, uint64_t *checksum)
{
    bool taken = false;
    ww_status status = writer_ready(w, INSERT_VECTOR);
    if (status != WW_OK)
        return status;
    *checksum = writer_bind_vector(w, w->statements[INSERT_VECTOR], 1, row);
    status = writer_run(w, INSERT_VECTOR, &taken);
    if (taken)
        status = writer_place_taken(w, row->place);
    return status == WW_OK ? writer_index_vector(w, row) : status;
}

ww_status writer_insert_others(writer *w, const writer_row *row, uint64_t *vector)
{
    const sparse_tables tables = sparse_tables_of(w);
    uint64_t sparse = 0;
    const multi_table table = multi_table_of(w);
    uint64_t multi = 0;
    ww_status status =
        row->sparse ? sparse_writer_insert(&w->sparse, &tables, (sparse_new){row->handle, row->place, row->sparse}, &sparse)
                    : WW_OK;
    if (status == WW_OK && row->multi)
        status = multi_writer_insert(&w->multi, &table, (multi_new){row->handle, row->place, row->multi}, &multi);
    *vector = multi_checksum(sparse_checksum(*vector, sparse), multi);
    return status;
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
        return writer_duplicate(w, row->id, place);
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
                       : writer_duplicate(w, id, place);
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
    uint64_t vector = 0;
    ww_status status = asked ? writer_check_handle(w, row->handle) : WW_OK;
    if (status == WW_OK)
        status = check_room(w);
    if (status == WW_OK && row->id)
        status = writer_check_id(w, row);
    if (status == WW_OK)
        status = writer_check_vector(w, row);
    if (status == WW_OK)
        status = writer_check_payload(w, row);
    if (status == WW_OK)
        status = writer_ready(w, INSERT_ROW);
    if (status != WW_OK)
        return status;
    if (!asked)
        row->handle = w->record.next_handle;
    row->place = w->record.next_place;
    status = row->id ? insert_named(w, row) : insert_numbered(w, row, asked);
    if (status == WW_OK)
        status = writer_insert_vector(w, row, &vector);
    const text_tables tables = text_tables_of(w);
    if (status == WW_OK)
        status = text_writer_insert(&w->texts, &tables, row->handle, row->text);
    if (status == WW_OK)
        status = writer_insert_others(w, row, &vector);
    if (status != WW_OK)
        return status;
    w->record.next_handle = row->handle + 1;
    w->record.next_place++;
    w->record.live++;
    w->record.digest += checksum_row(w->entry_checksum, vector);
    return WW_OK;
}
