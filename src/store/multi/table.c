/* The table of multivectors: made, dropped, renamed, written, and its rows read and checked. */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/checksum.h"
#include "base/memory.h"
#include "store/multi/multi.h"
#include "vectors/multi/multi.h"

enum { FAULT_BYTES = 400 };

ww_status multi_table_exists(const multi_table *t, bool *exist)
{
    sqlite3_stmt *found = NULL;
    *exist = false;
    ww_status status = schema_statement(
        t->db, &found, "SELECT 1 FROM \"%w\".sqlite_schema WHERE type = 'table' AND lower(name) = lower(?1 || '_multi')",
        t->schema);
    if (status != WW_OK)
        return status;
    sqlite3_bind_text(found, 1, t->name, -1, SQLITE_STATIC);
    const int code = sqlite3_step(found);
    *exist = code == SQLITE_ROW;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        status = sqlite_failed(t->db, code, t->name);
    sqlite3_finalize(found);
    return status;
}

ww_status multi_table_drop(const multi_table *t)
{
    return schema_run(t->db, "DROP TABLE IF EXISTS \"%w\".\"%w_multi\"", t->schema, t->name);
}

ww_status multi_table_rename(const multi_table *t, const char *name)
{
    bool exist = false;
    const ww_status status = multi_table_exists(t, &exist);
    return status == WW_OK && exist
               ? schema_run(t->db, "ALTER TABLE \"%w\".\"%w_multi\" RENAME TO \"%w_multi\"", t->schema, t->name, name)
               : status;
}

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

static uint64_t checksum_of(const void *bytes, size_t size, int64_t dim)
{
    return checksum_row(checksum_bytes(bytes, size), (uint64_t)dim);
}

ww_status multi_columns(const multi_table *t, sqlite3_stmt *s, multi_space *space, multi_row *row)
{
    const int64_t place = sqlite3_column_int64(s, 0), dim = sqlite3_column_int64(s, 3);
    const void *bytes = sqlite3_column_blob(s, 4);
    const int64_t size = sqlite3_column_bytes(s, 4), vector_bytes = dim * (int64_t)sizeof(float);
    const bool fits =
        bytes && dim >= 1 && dim <= WW_DIM_MAX && size % vector_bytes == 0 && size > 0 && size / vector_bytes <= WW_MULTI_MAX;
    *row = (multi_row){.place = place, .handle = sqlite3_column_int64(s, 1)};
    row->checksum = (uint64_t)sqlite3_column_int64(s, 2) ^ checksum_mark(row->handle, place);
    if (!fits || checksum_of(bytes, (size_t)size, dim) != row->checksum)
        return row_damaged(t->name, "the multivector at place", place);
    const ww_status status =
        array_reserve(&space->numbers, &space->room, size / (int64_t)sizeof(float), sizeof *space->numbers, "multivectors");
    if (status != WW_OK || !space->numbers)
        return status;
    memcpy(space->numbers, bytes, (size_t)size);
    row->vector = (ww_multivector){(int32_t)(size / vector_bytes), (int32_t)dim, space->numbers};
    return multi_check("place", place, &row->vector) == WW_OK ? WW_OK : row_damaged(t->name, "the multivector at place", place);
}

ww_status multi_read(const multi_table *t, sqlite3_stmt **statement, int64_t place, multi_space *space, multi_row *row)
{
    ww_status status =
        *statement ? WW_OK
                   : schema_statement(t->db, statement, "SELECT " MULTI_COLUMNS " FROM \"%w\".\"%w_multi\" WHERE place = ?1",
                                      t->schema, t->name);
    *row = (multi_row){.place = place, .handle = -1};
    if (status != WW_OK)
        return status;
    sqlite3_bind_int64(*statement, 1, place);
    const int code = sqlite3_step(*statement);
    if (code == SQLITE_ROW)
        status = multi_columns(t, *statement, space, row);
    else if (code != SQLITE_DONE)
        status = sqlite_failed(t->db, code, t->name);
    sqlite3_reset(*statement);
    return status;
}

uint64_t multi_checksum(uint64_t others, uint64_t multi)
{
    return multi != 0 ? checksum_row(others, multi) : others;
}

ww_status multi_checksum_at(const multi_table *t, bool exist, sqlite3_stmt **statement, int64_t place, uint64_t *others)
{
    multi_space space = {0};
    multi_row row;
    const ww_status status = exist ? multi_read(t, statement, place, &space, &row) : WW_OK;
    if (status == WW_OK && exist)
        *others = multi_checksum(*others, row.checksum);
    memory_free(space.numbers);
    return status;
}

/* ---- checking ------------------------------------------------------------------------------------------------------------ */

static void fault_at(const multi_table *t, const char *what, int64_t number, multi_tell tell, void *user)
{
    char text[FAULT_BYTES];
    snprintf(text, sizeof text, "'%s': %s %lld", t->name, what, (long long)number);
    tell(user, text);
}

ww_status multi_table_check(const multi_table *t, int64_t next_place, multi_tell tell, void *user)
{
    sqlite3_stmt *s = NULL;
    multi_space space = {0};
    bool exist = false;
    int32_t dim = 0;
    int code = SQLITE_DONE;
    ww_status status = multi_table_exists(t, &exist);
    if (status != WW_OK || !exist)
        return status;
    status = schema_statement(t->db, &s,
                              "SELECT m.place, m.handle, m.checksum, m.dim, m.vectors, r.place FROM \"%w\".\"%w_multi\" AS m "
                              "LEFT JOIN \"%w\".\"%w_rows\" AS r ON r.handle = m.handle",
                              t->schema, t->name, t->schema, t->name);
    while (status == WW_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
        multi_row row;
        const int64_t place = sqlite3_column_int64(s, 0);
        if (place < 0 || place >= next_place)
            fault_at(t, "there is a multivector at a place that was never assigned:", place, tell, user);
        else if (sqlite3_column_type(s, 5) == SQLITE_NULL || sqlite3_column_int64(s, 5) != place)
            fault_at(t, "there is a multivector that belongs to no row at place", place, tell, user);
        status = multi_columns(t, s, &space, &row);
        if (status == WW_CORRUPT_FILE) {
            tell(user, ww_error_message());
            status = WW_OK;
        } else if (status == WW_OK && dim != 0 && row.vector.dim != dim) {
            fault_at(t, "multivectors have different dimensions, one of them at place", place, tell, user);
        }
        dim = row.vector.count > 0 ? row.vector.dim : dim;
    }
    if (status == WW_OK && code != SQLITE_DONE)
        status = sqlite_failed(t->db, code, t->name);
    sqlite3_finalize(s);
    memory_free(space.numbers);
    return status;
}

/* ---- writing ------------------------------------------------------------------------------------------------------------- */

typedef enum multi_statement { INSERT, READ_CHECKSUM, MOVE, READ_DIM } multi_statement;

static const char *const TEXTS[MULTI_STATEMENTS] = {
    [INSERT] = "INSERT INTO \"%w\".\"%w_multi\"(" MULTI_COLUMNS ") VALUES(?1, ?2, ?3, ?4, ?5)",
    [READ_CHECKSUM] = "SELECT handle, checksum FROM \"%w\".\"%w_multi\" WHERE place = ?1",
    [MOVE] = "UPDATE \"%w\".\"%w_multi\" SET place = ?2, checksum = ?3 WHERE place = ?1",
    [READ_DIM] = "SELECT dim FROM \"%w\".\"%w_multi\" LIMIT 1",
};

void multi_writer_close(multi_writer *w)
{
    for (int i = 0; i < MULTI_STATEMENTS; i++)
        sqlite3_finalize(w->statements[i]);
    *w = (multi_writer){0};
}

void multi_writer_forget(multi_writer *w)
{
    w->known = false;
    w->dim = 0;
}

int64_t multi_writer_preparations(const multi_writer *w)
{
    int64_t count = 0;
    for (int i = 0; i < MULTI_STATEMENTS; i++)
        count += sqlite_preparations(w->statements[i]);
    return count;
}

static ww_status ready(multi_writer *w, const multi_table *t, multi_statement which)
{
    return w->statements[which] ? WW_OK : schema_statement(t->db, &w->statements[which], TEXTS[which], t->schema, t->name);
}

static ww_status table_known(multi_writer *w, const multi_table *t)
{
    const ww_status status = w->known ? WW_OK : multi_table_exists(t, &w->exist);
    w->known = status == WW_OK;
    return status;
}

/* Learns the dimension of the multivectors, 0 if there are none. */
static ww_status dim_known(multi_writer *w, const multi_table *t)
{
    ww_status status = w->dim == 0 ? ready(w, t, READ_DIM) : WW_OK;
    if (status != WW_OK || w->dim != 0)
        return status;
    const int code = sqlite3_step(w->statements[READ_DIM]);
    if (code == SQLITE_ROW)
        w->dim = sqlite3_column_int(w->statements[READ_DIM], 0);
    else if (code != SQLITE_DONE)
        status = sqlite_failed(t->db, code, t->name);
    sqlite3_reset(w->statements[READ_DIM]);
    return status;
}

ww_status multi_table_create(const multi_table *t)
{
    return schema_run(
        t->db,
        "CREATE TABLE \"%w\".\"%w_multi\"(place INTEGER PRIMARY KEY, handle INTEGER, checksum INTEGER, dim INTEGER, "
        "vectors BLOB)",
        t->schema, t->name);
}

ww_status multi_writer_insert(multi_writer *w, const multi_table *t, multi_new row, uint64_t *checksum)
{
    const ww_multivector *v = row.vector;
    *checksum = 0;
    if (!v || v->count == 0)
        return WW_OK;
    if (row.place >= WW_ROWS_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "collection '%s': rows have been written %lld times; compact it to number them anew",
                       t->name, (long long)row.place);
    ww_status status = table_known(w, t);
    if (status == WW_OK && !w->exist) {
        status = multi_table_create(t);
        w->exist = status == WW_OK;
    }
    if (status == WW_OK)
        status = dim_known(w, t);
    if (status == WW_OK && w->dim != 0 && w->dim != v->dim)
        status = multi_wrong_dim(t->name, w->dim, v->dim);
    if (status == WW_OK)
        status = ready(w, t, INSERT);
    if (status != WW_OK)
        return status;
    const size_t bytes = (size_t)v->count * (size_t)v->dim * sizeof *v->vectors;
    sqlite3_stmt *s = w->statements[INSERT];
    w->dim = v->dim;
    *checksum = checksum_of(v->vectors, bytes, v->dim);
    sqlite3_bind_int64(s, 1, row.place);
    sqlite3_bind_int64(s, 2, row.handle);
    sqlite3_bind_int64(s, 3, (int64_t)(*checksum ^ checksum_mark(row.handle, row.place)));
    sqlite3_bind_int64(s, 4, v->dim);
    sqlite3_bind_blob64(s, 5, v->vectors, bytes, SQLITE_STATIC);
    status = schema_step(s);
    sqlite3_clear_bindings(s);
    return status;
}

/* Reads the checksum at a place, with its mark, and the handle, -1 if there is no multivector. */
static ww_status read_checksum(multi_writer *w, const multi_table *t, int64_t place, int64_t *handle, uint64_t *checksum)
{
    *handle = -1;
    *checksum = 0;
    ww_status status = table_known(w, t);
    if (status == WW_OK && w->exist)
        status = ready(w, t, READ_CHECKSUM);
    if (status != WW_OK || !w->exist)
        return status;
    sqlite3_stmt *s = w->statements[READ_CHECKSUM];
    sqlite3_bind_int64(s, 1, place);
    const int code = sqlite3_step(s);
    if (code == SQLITE_ROW) {
        *handle = sqlite3_column_int64(s, 0);
        *checksum = (uint64_t)sqlite3_column_int64(s, 1);
    } else if (code != SQLITE_DONE) {
        status = sqlite_failed(t->db, code, t->name);
    }
    sqlite3_reset(s);
    return status;
}

ww_status multi_writer_checksum(multi_writer *w, const multi_table *t, int64_t place, uint64_t *checksum)
{
    int64_t handle = -1;
    const ww_status status = read_checksum(w, t, place, &handle, checksum);
    if (status == WW_OK && handle >= 0)
        *checksum ^= checksum_mark(handle, place);
    return status;
}

ww_status multi_writer_remove(multi_writer *w, const multi_table *t, int64_t place, int64_t moved)
{
    int64_t handle = -1;
    uint64_t checksum = 0;
    ww_status status = read_checksum(w, t, place, &handle, &checksum);
    if (status != WW_OK || handle < 0)
        return status;
    if (moved < 0) {
        w->dim = 0; /* it may have been the last one */
        return schema_run(t->db, "DELETE FROM \"%w\".\"%w_multi\" WHERE place = %lld", t->schema, t->name, (long long)place);
    }
    status = ready(w, t, MOVE);
    if (status != WW_OK)
        return status;
    sqlite3_stmt *s = w->statements[MOVE];
    sqlite3_bind_int64(s, 1, place);
    sqlite3_bind_int64(s, 2, moved);
    sqlite3_bind_int64(s, 3, (int64_t)(checksum ^ checksum_mark(handle, place) ^ checksum_mark(handle, moved)));
    return schema_step(s);
}

ww_status multi_writer_clear(multi_writer *w, const multi_table *t)
{
    const ww_status status = table_known(w, t);
    w->dim = 0;
    return status == WW_OK && w->exist ? schema_run(t->db, "DELETE FROM \"%w\".\"%w_multi\"", t->schema, t->name) : status;
}
