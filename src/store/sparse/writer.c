/* Writing the sparse vectors of rows, in the transaction that writes the row. */
#include <string.h>

#include "base/array.h"
#include "base/checksum.h"
#include "base/integers.h"
#include "base/memory.h"
#include "store/sparse/sparse.h"

typedef enum sparse_statement {
    INSERT_VECTOR,
    ADD_PENDING,
    READ_VECTOR,
    TAKE_PENDING,
    KEEP_REMOVED,
    DELETE_VECTOR,
    COUNT_PENDING
} sparse_statement;

/* Each takes the database and the collection once or twice. */
static const char *const TEXTS[SPARSE_STATEMENTS] = {
    [INSERT_VECTOR] = "INSERT INTO \"%w\".\"%w_sparse\"(place, handle, vector, checksum) VALUES(?1, ?2, ?3, ?4)",
    [ADD_PENDING] = "INSERT INTO \"%w\".\"%w_sparse_pending\"(place) VALUES(?1)",
    [READ_VECTOR] = "SELECT handle, vector, checksum FROM \"%w\".\"%w_sparse\" WHERE place = ?1",
    [TAKE_PENDING] = "DELETE FROM \"%w\".\"%w_sparse_pending\" WHERE place = ?1 AND vector IS NULL",
    [KEEP_REMOVED] = ("INSERT INTO \"%w\".\"%w_sparse_pending\"(place, handle, vector, checksum) SELECT place, handle, vector, "
                      "checksum FROM \"%w\".\"%w_sparse\" WHERE place = ?1"),
    [DELETE_VECTOR] = "DELETE FROM \"%w\".\"%w_sparse\" WHERE place = ?1",
    [COUNT_PENDING] = "SELECT count(*) FROM \"%w\".\"%w_sparse_pending\"",
};

void sparse_writer_close(sparse_writer *w)
{
    for (int i = 0; i < SPARSE_STATEMENTS; i++)
        sqlite3_finalize(w->statements[i]);
    memory_free(w->space.words);
    *w = (sparse_writer){0};
}

void sparse_writer_forget(sparse_writer *w)
{
    w->known = w->counted = false;
}

int64_t sparse_writer_preparations(const sparse_writer *w)
{
    int64_t count = 0;
    for (int i = 0; i < SPARSE_STATEMENTS; i++)
        count += sqlite_preparations(w->statements[i]);
    return count;
}

static ww_status ready(sparse_writer *w, const sparse_tables *t, sparse_statement which)
{
    return w->statements[which]
               ? WW_OK
               : schema_statement(t->db, &w->statements[which], TEXTS[which], t->schema, t->name, t->schema, t->name);
}

static ww_status run(sparse_writer *w, const sparse_tables *t, sparse_statement which, int64_t place)
{
    const ww_status status = ready(w, t, which);
    if (status != WW_OK)
        return status;
    sqlite3_bind_int64(w->statements[which], 1, place);
    return schema_step(w->statements[which]);
}

/* Learns whether there are tables, and how many rows are pending. */
static ww_status tables_known(sparse_writer *w, const sparse_tables *t)
{
    ww_status status = w->known ? WW_OK : sparse_exist(t, &w->exist);
    w->known = status == WW_OK;
    if (status != WW_OK || !w->exist || w->counted)
        return status;
    status = ready(w, t, COUNT_PENDING);
    if (status != WW_OK)
        return status;
    const int code = sqlite3_step(w->statements[COUNT_PENDING]);
    if (code == SQLITE_ROW)
        w->pending = sqlite3_column_int64(w->statements[COUNT_PENDING], 0);
    else
        status = sqlite_failed(t->db, code, t->name);
    sqlite3_reset(w->statements[COUNT_PENDING]);
    w->counted = status == WW_OK;
    return status;
}

/* Inserts the vector in the space, and notes that it is not in the index. */
static ww_status insert(sparse_writer *w, const sparse_tables *t, int64_t handle, int64_t place, int64_t count)
{
    const size_t bytes = (size_t)count * 2 * sizeof *w->space.words;
    if (place >= WW_ROWS_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "collection '%s': rows have been written %lld times; compact it to number them anew",
                       t->name, (long long)place);
    const ww_status status = ready(w, t, INSERT_VECTOR);
    if (status != WW_OK)
        return status;
    sqlite3_stmt *s = w->statements[INSERT_VECTOR];
    sqlite3_bind_int64(s, 1, place);
    sqlite3_bind_int64(s, 2, handle);
    sqlite3_bind_blob64(s, 3, w->space.words, bytes, SQLITE_STATIC);
    sqlite3_bind_int64(s, 4, (int64_t)(checksum_bytes(w->space.words, bytes) ^ checksum_mark(handle, place)));
    const ww_status written = schema_step(s);
    w->pending += written == WW_OK;
    return written == WW_OK ? run(w, t, ADD_PENDING, place) : written;
}

ww_status sparse_writer_insert(sparse_writer *w, const sparse_tables *t, sparse_new row, uint64_t *checksum)
{
    const ww_sparse_vector *vector = row.vector;
    sparse_sorted sorted;
    *checksum = 0;
    if (!vector || vector->count == 0)
        return WW_OK;
    ww_status status = tables_known(w, t);
    if (status == WW_OK && !w->exist) {
        status = sparse_create(t);
        w->exist = w->counted = status == WW_OK;
        w->pending = 0;
    }
    if (status == WW_OK)
        status = sparse_sort("row", row.handle, vector, &sorted);
    if (status != WW_OK)
        return status;
    const size_t count = (size_t)vector->count;
    status = array_reserve(&w->space.words, &w->space.room, 2 * vector->count, sizeof *w->space.words, "sparse vectors");
    if (status == WW_OK) {
        memcpy(w->space.words, sorted.vector.indices, count * sizeof *w->space.words);
        memcpy(w->space.words + count, sorted.vector.values, count * sizeof *w->space.words);
        *checksum = checksum_bytes(w->space.words, 2 * count * sizeof *w->space.words);
        status = insert(w, t, row.handle, row.place, vector->count);
    }
    sparse_sorted_free(&sorted);
    return status;
}

/* Reads the row at a place into the space; handle -1: there is none. */
static ww_status read_row(sparse_writer *w, const sparse_tables *t, int64_t place, sparse_row *row)
{
    *row = (sparse_row){.handle = -1};
    ww_status status = tables_known(w, t);
    if (status == WW_OK && w->exist)
        status = ready(w, t, READ_VECTOR);
    return status == WW_OK && w->exist ? sparse_read(t, &w->statements[READ_VECTOR], place, &w->space, row) : status;
}

ww_status sparse_writer_checksum(sparse_writer *w, const sparse_tables *t, int64_t place, uint64_t *checksum)
{
    sparse_row row;
    const ww_status status = read_row(w, t, place, &row);
    *checksum = row.checksum;
    return status;
}

ww_status sparse_writer_remove(sparse_writer *w, const sparse_tables *t, int64_t place, int64_t moved, uint64_t *checksum)
{
    sparse_row row;
    ww_status status = read_row(w, t, place, &row);
    *checksum = row.checksum;
    if (status != WW_OK || row.handle < 0)
        return status;
    status = run(w, t, TAKE_PENDING, place);
    const bool was_pending = status == WW_OK && sqlite3_changes(t->db) > 0;
    if (status == WW_OK && !was_pending)
        status = run(w, t, KEEP_REMOVED, place);
    w->pending += was_pending ? -1 : 1;
    if (status == WW_OK)
        status = run(w, t, DELETE_VECTOR, place);
    return status == WW_OK && moved >= 0 ? insert(w, t, row.handle, moved, row.vector.count) : status;
}

ww_status sparse_writer_clear(sparse_writer *w, const sparse_tables *t)
{
    ww_status status = tables_known(w, t);
    if (status == WW_OK && w->exist)
        status = schema_run(t->db, "DELETE FROM \"%w\".\"%w_sparse\"", t->schema, t->name);
    if (status == WW_OK && w->exist)
        status = sparse_rebuild(t);
    w->counted = false;
    return status;
}

ww_status sparse_writer_flush(sparse_writer *w, const sparse_tables *t)
{
    int64_t rows = 0;
    if (!w->known || !w->exist || !w->counted || w->pending <= SPARSE_PENDING_MIN)
        return WW_OK;
    const ww_status status = sparse_rows_indexed(t, &rows);
    if (status != WW_OK || w->pending <= min_i64(rows / SPARSE_PENDING_SHARE, SPARSE_PENDING_MAX))
        return status;
    w->counted = false;
    return sparse_fold(t);
}
