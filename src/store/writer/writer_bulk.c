/* Adds many rows with few statements.
 *
 * A statement costs SQLite about as much as the row that it inserts: it opens the tables, seeks their ends and closes them. So
 * rows are inserted WRITER_ROWS_AT_ONCE at a time, by one statement per table. The statement is INSERT OR FAIL: rows before a
 * conflict stay inserted, and SQLite need not copy pages to undo them (a failed change is rolled back by the caller). The row
 * in conflict and those after it are inserted one by one, which finds the next free number or the message.
 */
#include <stdio.h>
#include <string.h>

#include "base/checksum.h"
#include "base/memory.h"
#include "base/status.h"
#include "store/writer/writer_state.h"

enum {
    ROW_COLUMNS = 6,
    VECTOR_COLUMNS = 4,
    VECTOR_BYTES_MAX = 16384, /* for longer vectors the statement's share of the time is small */
};

static const char *const INSERT_ROWS = "INSERT OR FAIL INTO \"%w\".\"%w_rows\"(handle, place, id, payload, checksum, "
                                       "text_checksum) VALUES";
static const char *const INSERT_VECTORS = "INSERT OR FAIL INTO \"%w\".\"%w_vectors\"(place, handle, vector, checksum) VALUES";

/* Prepares a statement with the values of WRITER_ROWS_AT_ONCE rows. */
static ww_status ready(const writer *w, sqlite3_stmt **prepared, const char *format, int columns)
{
    if (*prepared)
        return WW_OK;
    sqlite3_str *text = sqlite3_str_new(w->db);
    sqlite3_str_appendf(text, format, w->schema, w->record.name);
    for (int i = 0; i < WRITER_ROWS_AT_ONCE * columns; i++)
        sqlite3_str_appendall(text, i % columns > 0 ? ", ?" : i > 0 ? "), (?" : "(?");
    sqlite3_str_appendchar(text, 1, ')');
    char *sql = sqlite3_str_finish(text);
    if (!sql)
        return memory_failed("a statement of SQL", STORE_TEXT_BYTES);
    const int code = sqlite3_prepare_v3(w->db, sql, -1, SQLITE_PREPARE_PERSISTENT, prepared, NULL);
    sqlite3_free(sql);
    return code == SQLITE_OK ? WW_OK : sqlite_failed(w->db, code, w->name);
}

/* Runs a statement. `inserted` gets the number of rows that it inserted, which is smaller after a conflict. */
static ww_status run(const writer *w, sqlite3_stmt *s, int64_t *inserted)
{
    const int code = sqlite3_step(s);
    const bool conflict = code != SQLITE_DONE && (sqlite3_extended_errcode(w->db) & 0xff) == SQLITE_CONSTRAINT;
    *inserted = code == SQLITE_DONE || conflict ? sqlite3_changes(w->db) : 0;
    const ww_status status = code == SQLITE_DONE || conflict ? WW_OK : sqlite_failed(w->db, code, w->name);
    sqlite3_reset(s);
    return status;
}

/* Prepares the statements, and memory for vectors that are converted. */
static ww_status bulk_ready(const writer *w, bulk_writer *b)
{
    const size_t bytes = (size_t)(WRITER_ROWS_AT_ONCE * record_vector_bytes(&w->record));
    if (w->record.type != WW_VECTOR_F32 && !b->elements && !(b->elements = memory_alloc(bytes)))
        return memory_failed("vectors", bytes);
    const ww_status status = ready(w, &b->rows, INSERT_ROWS, ROW_COLUMNS);
    return status == WW_OK ? ready(w, &b->places, INSERT_VECTORS, VECTOR_COLUMNS) : status;
}

/* Checks all rows, and converts their vectors. Returns false if one is refused or the collection is almost full. */
static bool rows_check(writer *w, bulk_writer *b, writer_row *rows)
{
    const size_t bytes = (size_t)record_vector_bytes(&w->record);
    if (w->record.live > WW_ROWS_MAX - WRITER_ROWS_AT_ONCE || w->record.next_handle > INT64_MAX - WRITER_ROWS_AT_ONCE)
        return false;
    for (int64_t i = 0; i < WRITER_ROWS_AT_ONCE; i++) {
        writer_row *row = &rows[i];
        if (row->handle >= 0 || (row->id && writer_check_id(w, row) != WW_OK) || writer_check_vector(w, row) != WW_OK ||
            writer_check_payload(w, row) != WW_OK)
            return false;
        if (row->elements != w->elements) /* the caller's memory */
            continue;
        char *converted = (char *)b->elements + (size_t)i * bytes;
        memcpy(converted, w->elements, bytes);
        row->elements = converted;
    }
    return true;
}

static ww_status insert_entries(writer *w, bulk_writer *b, writer_row *rows, int64_t *inserted)
{
    char numbers[WRITER_ROWS_AT_ONCE][HANDLE_TEXT_BYTES];
    for (int i = 0; i < WRITER_ROWS_AT_ONCE; i++) {
        writer_row *row = &rows[i];
        row->handle = w->record.next_handle + i;
        row->place = w->record.next_place + i;
        if (!row->id)
            snprintf(numbers[i], sizeof numbers[i], "%lld", (long long)row->handle);
        b->entries[i] = writer_bind_entry(b->rows, 1 + i * ROW_COLUMNS, row, row->id ? row->id : numbers[i]);
    }
    return run(w, b->rows, inserted);
}

static ww_status insert_vectors(writer *w, bulk_writer *b, const writer_row *rows)
{
    int64_t inserted = 0;
    for (int i = 0; i < WRITER_ROWS_AT_ONCE; i++)
        b->vectors[i] = writer_bind_vector(w, b->places, 1 + i * VECTOR_COLUMNS, &rows[i]);
    const ww_status status = run(w, b->places, &inserted);
    return status == WW_OK && inserted < WRITER_ROWS_AT_ONCE ? writer_place_taken(w, rows[inserted].place) : status;
}

/* What is left to do for the first `count` rows, whose entries are inserted. */
static ww_status complete(writer *w, bulk_writer *b, const writer_row *rows, int64_t count)
{
    const bool all = count == WRITER_ROWS_AT_ONCE;
    const text_tables texts = text_tables_of(w);
    ww_status status = all ? insert_vectors(w, b, rows) : WW_OK;
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        status = all ? writer_index_vector(w, &rows[i]) : writer_insert_vector(w, &rows[i], &b->vectors[i]);
        if (status == WW_OK)
            status = text_writer_insert(&w->texts, &texts, rows[i].handle, rows[i].text);
        if (status == WW_OK)
            status = writer_insert_others(w, &rows[i], &b->vectors[i]);
        w->record.digest += checksum_row(b->entries[i], b->vectors[i]);
    }
    w->record.next_handle += count;
    w->record.next_place += count;
    w->record.live += count;
    return status;
}

static ww_status insert_each(writer *w, writer_row *rows, int64_t first, int64_t count)
{
    ww_status status = WW_OK;
    for (int64_t i = first; status == WW_OK && i < count; i++)
        status = writer_insert(w, &rows[i]);
    return status;
}

ww_status writer_insert_many(writer *w, writer_row *rows, int64_t count)
{
    bulk_writer *b = &w->bulk;
    int64_t inserted = 0;
    if (count != WRITER_ROWS_AT_ONCE || record_vector_bytes(&w->record) > VECTOR_BYTES_MAX)
        return insert_each(w, rows, 0, count);
    ww_status status = bulk_ready(w, b);
    if (status == WW_OK && !rows_check(w, b, rows))
        return insert_each(w, rows, 0, count);
    if (status == WW_OK)
        status = insert_entries(w, b, rows, &inserted);
    if (status == WW_OK)
        status = complete(w, b, rows, inserted);
    for (int64_t i = inserted; i < count; i++)
        rows[i].handle = -1;
    return status == WW_OK ? insert_each(w, rows, inserted, count) : status;
}

void bulk_writer_close(bulk_writer *b)
{
    sqlite3_finalize(b->rows);
    sqlite3_finalize(b->places);
    memory_free(b->elements);
}
