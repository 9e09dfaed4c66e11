/* The tables of sparse vectors: made, dropped, renamed, and their rows read and checked. */
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/checksum.h"
#include "base/memory.h"
#include "store/sparse/sparse.h"
#include "vectors/collection.h"

static const char *const SUFFIXES[] = {"_sparse", "_sparse_blocks", "_sparse_pending"};
enum { SUFFIX_COUNT = sizeof SUFFIXES / sizeof *SUFFIXES };

#define VECTOR_TABLE "(place INTEGER PRIMARY KEY, handle INTEGER, vector BLOB, checksum INTEGER)"

static const char *const DECLARATIONS[SUFFIX_COUNT] = {
    VECTOR_TABLE,
    ("(key INTEGER PRIMARY KEY, first INTEGER, last INTEGER, entries INTEGER, low REAL, high REAL, sum INTEGER, head INTEGER, "
     "data BLOB)"),
    VECTOR_TABLE,
};

ww_status sparse_exist(const sparse_tables *t, bool *exist)
{
    sqlite3_stmt *found = NULL;
    *exist = false;
    ww_status status = schema_statement(
        t->db, &found, "SELECT 1 FROM \"%w\".sqlite_schema WHERE type = 'table' AND lower(name) = lower(?1 || '_sparse')",
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

ww_status sparse_put_rows_indexed(const sparse_tables *t, int64_t rows)
{
    sparse_head head = {.key = SPARSE_KEY_ROWS, .block = {.count = (int32_t)(uint32_t)rows}};
    return schema_run(t->db,
                      "INSERT OR REPLACE INTO \"%w\".\"%w_sparse_blocks\"(key, first, last, entries, low, high, sum, head) "
                      "VALUES(%d, 0, 0, %lld, 0.0, 0.0, 0, %lld)",
                      t->schema, t->name, (int)SPARSE_KEY_ROWS, (long long)rows, (long long)sparse_head_checksum(&head));
}

ww_status sparse_rows_indexed(const sparse_tables *t, int64_t *rows)
{
    sqlite3_stmt *s = NULL;
    ww_status status = schema_statement(t->db, &s, "SELECT entries, head FROM \"%w\".\"%w_sparse_blocks\" WHERE key = %d",
                                        t->schema, t->name, (int)SPARSE_KEY_ROWS);
    const int code = status == WW_OK ? sqlite3_step(s) : SQLITE_DONE;
    if (status == WW_OK && code != SQLITE_ROW && code != SQLITE_DONE)
        status = sqlite_failed(t->db, code, t->name);
    if (status == WW_OK) {
        *rows = code == SQLITE_ROW ? sqlite3_column_int64(s, 0) : -1;
        const sparse_head head = {.key = SPARSE_KEY_ROWS, .block = {.count = (int32_t)(uint32_t)*rows}};
        if (*rows < 0 || *rows > WW_ROWS_MAX || (uint64_t)sqlite3_column_int64(s, 1) != sparse_head_checksum(&head))
            status = row_damaged(t->name, "the block of sparse vectors", SPARSE_KEY_ROWS);
    }
    sqlite3_finalize(s);
    return status;
}

ww_status sparse_create(const sparse_tables *t)
{
    ww_status status = WW_OK;
    for (int i = 0; status == WW_OK && i < SUFFIX_COUNT; i++)
        status = schema_run(t->db, "CREATE TABLE \"%w\".\"%w%s\"%s", t->schema, t->name, SUFFIXES[i], DECLARATIONS[i]);
    return status == WW_OK ? sparse_put_rows_indexed(t, 0) : status;
}

ww_status sparse_drop(const sparse_tables *t)
{
    ww_status status = WW_OK;
    for (int i = 0; status == WW_OK && i < SUFFIX_COUNT; i++)
        status = schema_run(t->db, "DROP TABLE IF EXISTS \"%w\".\"%w%s\"", t->schema, t->name, SUFFIXES[i]);
    return status;
}

ww_status sparse_rename(const sparse_tables *t, const char *name)
{
    bool exist = false;
    ww_status status = sparse_exist(t, &exist);
    for (int i = 0; status == WW_OK && exist && i < SUFFIX_COUNT; i++)
        status = schema_run(t->db, "ALTER TABLE \"%w\".\"%w%s\" RENAME TO \"%w%s\"", t->schema, t->name, SUFFIXES[i], name,
                            SUFFIXES[i]);
    return status;
}

/* ---- vectors ------------------------------------------------------------------------------------------------------------- */

static bool is_valid(const ww_sparse_vector *v)
{
    for (int64_t i = 1; i < v->count; i++)
        if (v->indices[i - 1] >= v->indices[i])
            return false;
    return vector_is_finite(v->values, (int32_t)v->count);
}

ww_status sparse_column(const sparse_tables *t, sparse_cell from, sparse_buffer *space, ww_sparse_vector *vector)
{
    const int64_t handle = sqlite3_column_int64(from.row, from.column);
    const void *bytes = sqlite3_column_blob(from.row, from.column + 1);
    const int64_t size = sqlite3_column_bytes(from.row, from.column + 1), count = size / 8;
    *vector = (ww_sparse_vector){0};
    if (!bytes || size % 8 != 0 || count < 1 || count > WW_SPARSE_MAX ||
        !checksum_agrees(bytes, (size_t)size, handle, from.place, sqlite3_column_int64(from.row, from.column + 2)))
        return row_damaged(t->name, "the sparse vector at place", from.place);
    const ww_status status = array_reserve(&space->words, &space->room, 2 * count, sizeof *space->words, "sparse vectors");
    uint32_t *words = space->words;
    if (status != WW_OK || !words)
        return status;
    memcpy(words, bytes, (size_t)size);
    *vector = (ww_sparse_vector){count, words, (const float *)(const void *)(words + count)};
    return is_valid(vector) ? WW_OK : row_damaged(t->name, "the sparse vector at place", from.place);
}

ww_status sparse_read(const sparse_tables *t, sqlite3_stmt **statement, int64_t place, sparse_buffer *space, sparse_row *row)
{
    ww_status status = *statement ? WW_OK
                                  : schema_statement(t->db, statement,
                                                     "SELECT handle, vector, checksum FROM \"%w\".\"%w_sparse\" WHERE place = "
                                                     "?1",
                                                     t->schema, t->name);
    *row = (sparse_row){.handle = -1};
    if (status != WW_OK)
        return status;
    sqlite3_bind_int64(*statement, 1, place);
    const int code = sqlite3_step(*statement);
    if (code == SQLITE_ROW) {
        row->handle = sqlite3_column_int64(*statement, 0);
        row->checksum = (uint64_t)sqlite3_column_int64(*statement, 2) ^ checksum_mark(row->handle, place);
        status = sparse_column(t, (sparse_cell){*statement, 0, place}, space, &row->vector);
    } else if (code != SQLITE_DONE) {
        status = sqlite_failed(t->db, code, t->name);
    }
    sqlite3_reset(*statement);
    return status;
}

uint64_t sparse_checksum(uint64_t dense, uint64_t sparse)
{
    return sparse != 0 ? checksum_row(dense, sparse) : dense;
}

ww_status sparse_checksum_at(const sparse_tables *t, bool exist, sqlite3_stmt **statement, int64_t place, uint64_t *dense)
{
    sparse_buffer space = {0};
    sparse_row row;
    const ww_status status = exist ? sparse_read(t, statement, place, &space, &row) : WW_OK;
    if (status == WW_OK && exist)
        *dense = sparse_checksum(*dense, row.checksum);
    memory_free(space.words);
    return status;
}

/* ---- blocks -------------------------------------------------------------------------------------------------------------- */

uint64_t sparse_head_checksum(const sparse_head *head)
{
    const sparse_block *b = &head->block;
    uint32_t words[5] = {b->first, b->last, (uint32_t)b->count};
    memcpy(&words[3], &b->low, sizeof b->low);
    memcpy(&words[4], &b->high, sizeof b->high);
    return checksum_row(checksum_bytes(words, sizeof words), head->sum) ^ checksum_mark(head->key, -2);
}

ww_status sparse_head_column(const sparse_tables *t, sqlite3_stmt *s, const sparse_head *after, sparse_head *head)
{
    const int64_t first = sqlite3_column_int64(s, 1), last = sqlite3_column_int64(s, 2), count = sqlite3_column_int64(s, 3);
    *head = (sparse_head){.key = sqlite3_column_int64(s, 0),
                          .block = {.first = (uint32_t)first,
                                    .last = (uint32_t)last,
                                    .count = (int32_t)count,
                                    .low = (float)sqlite3_column_double(s, 4),
                                    .high = (float)sqlite3_column_double(s, 5)},
                          .sum = (uint64_t)sqlite3_column_int64(s, 6)};
    const bool fits = first >= 0 && first <= last && last < WW_ROWS_MAX && count > 0 && count <= SPARSE_BLOCK &&
                      isfinite(head->block.low) && isfinite(head->block.high) && (!after || after->block.last < first);
    return fits && (uint64_t)sqlite3_column_int64(s, 7) == sparse_head_checksum(head)
               ? WW_OK
               : row_damaged(t->name, "the block of sparse vectors", head->key);
}

ww_status sparse_data_column(const sparse_tables *t, sqlite3_stmt *s, int column, const sparse_head *head, uint32_t *words)
{
    const sparse_block *b = &head->block;
    const void *bytes = sqlite3_column_blob(s, column);
    const size_t size = (size_t)b->count * 2 * sizeof *words;
    if (!bytes || (size_t)sqlite3_column_bytes(s, column) != size || checksum_bytes(bytes, size) != head->sum)
        return row_damaged(t->name, "the block of sparse vectors", head->key);
    memcpy(words, bytes, size);
    const sparse_entries entries = sparse_entries_of(head, words);
    int wrong = words[0] != b->first || words[b->count - 1] != b->last;
    for (int32_t i = 1; i < b->count; i++) /* without a branch, so that the compiler makes vectors of it */
        wrong |= words[i - 1] >= words[i];
    for (int32_t i = 0; i < b->count; i++)
        wrong |= !(entries.values[i] >= b->low) | !(entries.values[i] <= b->high);
    return !wrong ? WW_OK : row_damaged(t->name, "the block of sparse vectors", head->key);
}
