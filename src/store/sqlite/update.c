/* INSERT, UPDATE and DELETE, one row per call.
 *
 * A rowid is the row's handle. An INSERT may choose it if it was never used; it never changes. OR REPLACE goes by id: the row
 * with that id gets the new vector and payload, and keeps its handle. SQLite resolves every other conflict itself;
 * SQLITE_CONSTRAINT tells it that there is one.
 */
#include "store/sqlite/table.h"

#include <stdio.h>
#include <string.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "base/text.h"
#include "vectors/collection.h"
#include "vectors/write/payloads.h"

enum { FIRST_COLUMN = 2 }; /* values[0] is the old rowid, values[1] the new one */

/* A row as the statement has it. */
typedef struct new_row {
    writer_row row;
    int changed; /* WRITER_ID, ... */
} new_row;

static bool is_unchanged(sqlite3_value *value)
{
    return sqlite3_value_nochange(value) != 0;
}

/* Reads a text and refuses a NUL byte in it. Numbers become texts as SQLite writes them, and NULL stays NULL. */
static ww_status read_text(sqlite3_value *value, const char *what, const char **text)
{
    const int type = sqlite3_value_type(value);
    *text = NULL;
    if (type == SQLITE_NULL)
        return WW_OK;
    if (type == SQLITE_BLOB)
        return ww_fail(WW_INVALID_ARGUMENT, "%s is a blob; it must be a text", what);
    *text = (const char *)sqlite3_value_text(value);
    if (!*text)
        return memory_failed(what, 0);
    if (strlen(*text) != (size_t)sqlite3_value_bytes(value))
        return ww_fail(WW_INVALID_ARGUMENT, "%s has a NUL at byte %zu", what, strlen(*text) + 1);
    return WW_OK;
}

static ww_status check_hidden(sqlite3_value **columns)
{
    static const char *const NAMES[] = {[COLUMN_QUERY] = "query",           [COLUMN_K] = "k",
                                        [COLUMN_RADIUS] = "radius",         [COLUMN_FILTER] = "filter",
                                        [COLUMN_PARAMETERS] = "parameters", [COLUMN_SCORE] = "score",
                                        [COLUMN_DISTANCE] = "distance",     [COLUMN_NPROBE] = "nprobe",
                                        [COLUMN_RECALL] = "recall",         [COLUMN_PROVEN] = "proven",
                                        [COLUMN_MODIFIER] = "modifier"};
    for (int column = COLUMN_QUERY; column <= COLUMN_MODIFIER; column++)
        if (NAMES[column] && !is_unchanged(columns[column]) && sqlite3_value_type(columns[column]) != SQLITE_NULL)
            return ww_fail(WW_INVALID_ARGUMENT, "%s cannot be written; a row has id, vector, payload, text and sparse",
                           NAMES[column]);
    return WW_OK;
}

static ww_status read_vector(table *t, sqlite3_value *value, new_row *new)
{
    if (sqlite3_value_type(value) == SQLITE_NULL)
        return ww_fail(WW_INVALID_ARGUMENT, "vector is NULL; every row has a vector of %d numbers", t->arguments.dim);
    ww_status status = vector_read(value, t->arguments.type, t->arguments.dim, &t->vector);
    if (status == WW_OK)
        status = table_check_model(t, value);
    new->row.vector = t->vector.values;
    new->changed |= WRITER_VECTOR;
    return status;
}

/* A row's vectors are written together. */
static ww_status read_sparse(table *t, sqlite3_value *value, new_row *new)
{
    if (!(new->changed &WRITER_VECTOR))
        return ww_fail(WW_INVALID_ARGUMENT, "sparse cannot be written without vector: SET vector = vector, sparse = ...");
    const ww_status status = sparse_text_read(value, &t->sparse);
    new->row.sparse = t->sparse.sorted.vector.count > 0 ? &t->sparse.sorted.vector : NULL;
    new->changed |= WRITER_SPARSE;
    return status;
}

/* Checks everything before anything is changed: OR FAIL keeps what was done before a refusal. */
static ww_status check_row(const table *t, new_row *new)
{
    if (new->row.vector && !vector_is_finite(new->row.vector, t->arguments.dim))
        return ww_fail(WW_INVALID_ARGUMENT, "the values of the vector are so large that its squared norm is not finite");
    const ww_status status = new->row.vector ? vector_check(new->row.vector, t->arguments.dim, t->arguments.type) : WW_OK;
    if (status != WW_OK)
        return status;
    new->row.payload_checked = true;
    return new->row.payload ? payload_check(t->name, 0, new->row.payload) : WW_OK;
}

static ww_status read_row(table *t, sqlite3_value **columns, new_row *new)
{
    *new = (new_row){.row.handle = -1, .row.place = -1};
    ww_status status = check_hidden(columns);
    if (status == WW_OK && !is_unchanged(columns[COLUMN_ID])) {
        status = read_text(columns[COLUMN_ID], "id", &new->row.id);
        new->changed |= WRITER_ID;
    }
    if (status == WW_OK && !is_unchanged(columns[COLUMN_PAYLOAD])) {
        status = read_text(columns[COLUMN_PAYLOAD], "payload", &new->row.payload);
        new->changed |= WRITER_PAYLOAD;
    }
    if (status == WW_OK && !is_unchanged(columns[COLUMN_TEXT])) {
        status = read_text(columns[COLUMN_TEXT], "text", &new->row.text);
        new->changed |= WRITER_TEXT;
    }
    if (status == WW_OK && new->row.text && !utf8_check(new->row.text, strlen(new->row.text)))
        status = ww_fail(WW_INVALID_ARGUMENT, "text is not UTF-8");
    if (status == WW_OK && !is_unchanged(columns[COLUMN_VECTOR]))
        status = read_vector(t, columns[COLUMN_VECTOR], new);
    if (status == WW_OK && !is_unchanged(columns[COLUMN_SPARSE]))
        status = read_sparse(t, columns[COLUMN_SPARSE], new);
    return status == WW_OK ? check_row(t, new) : status;
}

/* Is there a row with this handle? */
static ww_status is_live(table *t, int64_t handle, bool *live)
{
    sqlite3_stmt *statement = NULL;
    ww_status status = schema_statement(t->db, &statement, "SELECT 1 FROM \"%w\".\"%w_rows\" WHERE handle = %lld", t->schema,
                                        t->name, (long long)handle);
    const int code = status == WW_OK ? sqlite3_step(statement) : SQLITE_DONE;
    *live = code == SQLITE_ROW;
    if (status == WW_OK && code != SQLITE_ROW && code != SQLITE_DONE)
        status = sqlite_failed(t->db, code, t->name);
    sqlite3_finalize(statement);
    return status;
}

/* Removes the row that has the id, unless it is the one with `handle`. */
static ww_status make_way(writer *w, const char *id, int64_t handle)
{
    int64_t other = -1, place = -1;
    ww_status status = id ? writer_find(w, id, &other, &place) : WW_OK;
    if (status == WW_OK && other >= 0 && other != handle)
        status = writer_remove(w, other, NULL);
    return status;
}

/* Inserts a row with the caller's rowid. */
static ww_status insert_at(table *t, writer *w, new_row *new, bool replace)
{
    bool live = false;
    ww_status status = is_live(t, new->row.handle, &live);
    if (status == WW_OK && live && !replace)
        return ww_fail(WW_DUPLICATE_ID, "rowid %lld exists already", (long long)new->row.handle);
    if (status == WW_OK && !live)
        status = writer_check_handle(w, new->row.handle); /* before any row is removed */
    if (status == WW_OK && replace)
        status = make_way(w, new->row.id, new->row.handle);
    if (status != WW_OK)
        return status;
    return live ? writer_update(w, &new->row,
                                WRITER_ID | WRITER_PAYLOAD | WRITER_VECTOR | WRITER_TEXT | WRITER_SPARSE | WRITER_MULTI)
                : writer_insert(w, &new->row);
}

static ww_status insert(table *t, writer *w, sqlite3_value **values, sqlite3_int64 *rowid)
{
    const bool replace = sqlite3_vtab_on_conflict(t->db) == SQLITE_REPLACE;
    const int type = sqlite3_value_type(values[1]);
    new_row new;
    ww_status status = read_row(t, values + FIRST_COLUMN, &new);
    if (status == WW_OK && !(new.changed &WRITER_VECTOR))
        status = ww_fail(WW_INVALID_ARGUMENT, "vector is NULL; every row has a vector of %d numbers", t->arguments.dim);
    if (status != WW_OK)
        return status;
    if (type != SQLITE_NULL && (type != SQLITE_INTEGER || sqlite3_value_int64(values[1]) < 0))
        return ww_fail(WW_INVALID_ARGUMENT, "rowid must be an integer, 0 or more, or left out");
    if (type != SQLITE_NULL) {
        new.row.handle = sqlite3_value_int64(values[1]);
        status = insert_at(t, w, &new, replace);
    } else {
        status = replace && new.row.id ? writer_upsert(w, &new.row) : writer_insert(w, &new.row);
    }
    *rowid = new.row.handle;
    return status;
}

static ww_status update(table *t, writer *w, sqlite3_value **values)
{
    const int64_t handle = sqlite3_value_int64(values[0]);
    new_row new;
    if (sqlite3_value_type(values[1]) != SQLITE_INTEGER || sqlite3_value_int64(values[1]) != handle)
        return ww_fail(WW_INVALID_ARGUMENT, "rowid %lld cannot be changed: it names the row permanently", (long long)handle);
    ww_status status = read_row(t, values + FIRST_COLUMN, &new);
    if (status == WW_OK && new.changed & WRITER_ID &&sqlite3_vtab_on_conflict(t->db) == SQLITE_REPLACE)
        status = make_way(w, new.row.id, handle);
    new.row.handle = handle;
    return status == WW_OK && new.changed ? writer_update(w, &new.row, new.changed) : status;
}

/* Is it INSERT INTO docs(docs) VALUES ('...')? */
static bool is_command(int count, sqlite3_value **values)
{
    return count > FIRST_COLUMN + COLUMN_COMMAND && sqlite3_value_type(values[0]) == SQLITE_NULL &&
           sqlite3_value_type(values[FIRST_COLUMN + COLUMN_COMMAND]) != SQLITE_NULL;
}

static ww_status command(table *t, writer *w, sqlite3_value **values)
{
    const char *text = NULL;
    for (int column = 0; column < COLUMN_COMMAND; column++)
        if (sqlite3_value_type(values[FIRST_COLUMN + column]) != SQLITE_NULL)
            return ww_fail(WW_INVALID_ARGUMENT, "a command stands alone: INSERT INTO %s(%s) VALUES ('build-ivf')", t->name,
                           t->name);
    const ww_status status = read_text(values[FIRST_COLUMN + COLUMN_COMMAND], "the command", &text);
    return status == WW_OK ? table_command(t, w, text) : status;
}

/* Before a change: reads the record from the file and checks that nothing of the host's is on the tables. */
static ww_status change_begin(table *t, writer **opened)
{
    ww_status status = table_writer(t, opened);
    if (status == WW_OK && t->changes != sqlite3_total_changes64(t->db))
        writer_forget(*opened);
    if (status == WW_OK && !t->shadow_is_checked)
        status = shadow_check(t, true);
    if (status != WW_OK)
        return status;
    t->shadow_is_checked = true;
    t->written_by = writer_preparations(*opened);
    status = writer_begin(*opened); /* a sequence per row: the next row of the statement may have the same id */
    return status == WW_OK ? table_check_record(t, writer_record(*opened)) : status;
}

/* After a change. If a statement was prepared again, a trigger may have been added after the check and may have run. */
static ww_status change_end(table *t, writer *w)
{
    ww_status status = writer_flush(w);
    t->changes = sqlite3_total_changes64(t->db);
    if (status == WW_OK && writer_preparations(w) != t->written_by)
        status = shadow_check(t, true);
    return status;
}

static ww_status change(table *t, int count, sqlite3_value **values, sqlite3_int64 *rowid)
{
    writer *w = NULL;
    ww_status status = change_begin(t, &w);
    if (status != WW_OK)
        return status;
    if (is_command(count, values))
        status = command(t, w, values);
    else if (count == 1)
        status = writer_remove(w, sqlite3_value_int64(values[0]), NULL);
    else if (sqlite3_value_type(values[0]) == SQLITE_NULL)
        status = insert(t, w, values, rowid);
    else
        status = update(t, w, values);
    if (status == WW_OK)
        status = change_end(t, w);
    if (status != WW_OK)
        table_close_writer(t);
    return status;
}

/* SQLite can undo a one-row statement only by rolling back the transaction, and does so only for these codes. */
static bool undoes_the_transaction(int code)
{
    return code == SQLITE_NOMEM || code == SQLITE_IOERR || code == SQLITE_INTERRUPT || code == SQLITE_FULL;
}

int table_update(sqlite3_vtab *vtab, int count, sqlite3_value **values, sqlite3_int64 *rowid)
{
    FLOAT_GUARD();
    table *t = (table *)vtab;
    const int64_t changes = sqlite3_total_changes64(t->db);
    ww_status status = table_enter(t);
    if (status == WW_OK) {
        status = change(t, count, values, rowid);
        table_leave(t);
    }
    const int code = table_failed(t, status);
    /* A half-made change must not be committed. */
    const bool half_made = code != SQLITE_OK && sqlite3_total_changes64(t->db) != changes;
    return half_made && !undoes_the_transaction(code) ? SQLITE_IOERR : code;
}
