/* Folding pending rows into the inverted index.
 *
 * The entries of many rows are brought into the order of their indices, so each block is read and written once for all of them.
 * Added rows have larger places than those in the index, so their entries go to the end of each index's last block, and into
 * new ones.
 */
#include <string.h>

#include "base/array.h"
#include "base/checksum.h"
#include "base/integers.h"
#include "base/memory.h"
#include "store/sparse/sparse.h"

enum { ENTRIES_AT_ONCE = 1 << 21 };

typedef enum fold_statement { READ_HEADS, READ_LAST, READ_BLOCK, WRITE_BLOCK, DELETE_BLOCK, FOLD_STATEMENTS } fold_statement;

/* Each takes the database and the collection once. */
static const char *const TEXTS[FOLD_STATEMENTS] = {
    [READ_HEADS] = "SELECT " SPARSE_HEAD_COLUMNS " FROM \"%w\".\"%w_sparse_blocks\" WHERE key BETWEEN ?1 AND ?2 ORDER BY key",
    [READ_LAST] = "SELECT " SPARSE_HEAD_COLUMNS ", data FROM \"%w\".\"%w_sparse_blocks\" WHERE key BETWEEN ?1 AND ?2 ORDER BY "
                  "key DESC LIMIT 1",
    [READ_BLOCK] = "SELECT " SPARSE_HEAD_COLUMNS ", data FROM \"%w\".\"%w_sparse_blocks\" WHERE key = ?1",
    [WRITE_BLOCK] = "INSERT OR REPLACE INTO \"%w\".\"%w_sparse_blocks\"(" SPARSE_HEAD_COLUMNS
                    ", data) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    [DELETE_BLOCK] = "DELETE FROM \"%w\".\"%w_sparse_blocks\" WHERE key = ?1",
};

typedef struct folding {
    const sparse_tables *t;
    sqlite3_stmt *statements[FOLD_STATEMENTS];
    sparse_buffer space;
    uint64_t *keys;   /* index << 32 | number of the entry */
    uint32_t *places; /* of the entries, in order of place */
    float *values;
    int64_t count, key_room, place_room, value_room;
    sparse_head *heads; /* of one index */
    int64_t head_count, head_room;
    int64_t rows; /* that were read */
    uint32_t words[2 * SPARSE_BLOCK], block_places[SPARSE_BLOCK];
    float block_values[SPARSE_BLOCK];
} folding;

static ww_status ready(folding *f, fold_statement which)
{
    return f->statements[which] ? WW_OK
                                : schema_statement(f->t->db, &f->statements[which], TEXTS[which], f->t->schema, f->t->name);
}

/* ---- blocks -------------------------------------------------------------------------------------------------------------- */

/* Writes the first `count` of block_places and block_values as the block with this key. */
static ww_status write_block(folding *f, int64_t key, int32_t count)
{
    const size_t bytes = (size_t)count * sizeof *f->words;
    sparse_head head = {.key = key,
                        .block = {.first = f->block_places[0],
                                  .last = f->block_places[count - 1],
                                  .count = count,
                                  .low = f->block_values[0],
                                  .high = f->block_values[0]}};
    for (int32_t i = 1; i < count; i++) {
        head.block.low = f->block_values[i] < head.block.low ? f->block_values[i] : head.block.low;
        head.block.high = f->block_values[i] > head.block.high ? f->block_values[i] : head.block.high;
    }
    head.block.low += 0.0f; /* SQLite has no -0 */
    head.block.high += 0.0f;
    memcpy(f->words, f->block_places, bytes);
    memcpy(f->words + count, f->block_values, bytes);
    head.sum = checksum_bytes(f->words, 2 * bytes);
    const ww_status status = ready(f, WRITE_BLOCK);
    if (status != WW_OK)
        return status;
    sqlite3_stmt *s = f->statements[WRITE_BLOCK];
    sqlite3_bind_int64(s, 1, key);
    sqlite3_bind_int64(s, 2, head.block.first);
    sqlite3_bind_int64(s, 3, head.block.last);
    sqlite3_bind_int64(s, 4, count);
    sqlite3_bind_double(s, 5, (double)head.block.low);
    sqlite3_bind_double(s, 6, (double)head.block.high);
    sqlite3_bind_int64(s, 7, (int64_t)head.sum);
    sqlite3_bind_int64(s, 8, (int64_t)sparse_head_checksum(&head));
    sqlite3_bind_blob64(s, 9, f->words, 2 * bytes, SQLITE_STATIC);
    return schema_step(s);
}

/* Reads a block with READ_LAST or READ_BLOCK, whose parameters are bound, into block_places and block_values. */
static ww_status read_block(folding *f, fold_statement which, bool *found, sparse_head *head)
{
    sqlite3_stmt *s = f->statements[which];
    const int code = sqlite3_step(s);
    ww_status status = WW_OK;
    *found = code == SQLITE_ROW;
    if (code == SQLITE_ROW) {
        status = sparse_head_column(f->t, s, NULL, head);
        if (status == WW_OK)
            status = sparse_data_column(f->t, s, SPARSE_HEAD_COUNT, head, f->words);
        if (status == WW_OK) {
            const sparse_entries entries = sparse_entries_of(head, f->words);
            memcpy(f->block_places, entries.rows, (size_t)head->block.count * sizeof *f->block_places);
            memcpy(f->block_values, entries.values, (size_t)head->block.count * sizeof *f->block_values);
        }
    } else if (code != SQLITE_DONE) {
        status = sqlite_failed(f->t->db, code, f->t->name);
    }
    sqlite3_reset(s);
    return status;
}

/* ---- adding -------------------------------------------------------------------------------------------------------------- */

/* Adds the entries `from` to `end` - 1 of the sorted keys, which have one index. */
static ww_status add_group(folding *f, int64_t from, int64_t end)
{
    const uint32_t index = (uint32_t)(f->keys[from] >> 32);
    sparse_head last = {.key = sparse_key(index, -1)};
    bool found = false;
    ww_status status = ready(f, READ_LAST);
    if (status != WW_OK)
        return status;
    sqlite3_bind_int64(f->statements[READ_LAST], 1, sparse_key(index, 0));
    sqlite3_bind_int64(f->statements[READ_LAST], 2, sparse_key(index, INT32_MAX));
    status = read_block(f, READ_LAST, &found, &last);
    int64_t key = last.key;
    int32_t count = found ? last.block.count : SPARSE_BLOCK;
    if (status == WW_OK && found && last.block.last >= f->places[(uint32_t)f->keys[from]])
        status = row_damaged(f->t->name, "the block of sparse vectors", last.key);
    for (int64_t i = from; status == WW_OK && i < end; i++) {
        if (count == SPARSE_BLOCK) {
            if (i > from)
                status = write_block(f, key, count);
            key++;
            count = 0;
        }
        f->block_places[count] = f->places[(uint32_t)f->keys[i]];
        f->block_values[count++] = f->values[(uint32_t)f->keys[i]];
    }
    return status == WW_OK ? write_block(f, key, count) : status;
}

/* ---- removing ------------------------------------------------------------------------------------------------------------ */

static ww_status read_heads(folding *f, uint32_t index)
{
    int code = SQLITE_DONE;
    ww_status status = ready(f, READ_HEADS);
    f->head_count = 0;
    if (status != WW_OK)
        return status;
    sqlite3_stmt *s = f->statements[READ_HEADS];
    sqlite3_bind_int64(s, 1, sparse_key(index, 0));
    sqlite3_bind_int64(s, 2, sparse_key(index, INT32_MAX));
    while (status == WW_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
        status = array_reserve(&f->heads, &f->head_room, f->head_count + 1, sizeof *f->heads, "blocks of sparse vectors");
        if (status == WW_OK)
            status =
                sparse_head_column(f->t, s, f->head_count > 0 ? &f->heads[f->head_count - 1] : NULL, &f->heads[f->head_count]);
        f->head_count++;
    }
    if (status == WW_OK && code != SQLITE_DONE)
        status = sqlite_failed(f->t->db, code, f->t->name);
    sqlite3_reset(s);
    return status;
}

/* Takes the entries from `*from` on that are in the block out of it. */
static ww_status remove_from_block(folding *f, const sparse_head *head, int64_t *from, int64_t end)
{
    sparse_head read;
    bool found = false;
    int32_t kept = 0;
    ww_status status = ready(f, READ_BLOCK);
    if (status != WW_OK)
        return status;
    sqlite3_bind_int64(f->statements[READ_BLOCK], 1, head->key);
    status = read_block(f, READ_BLOCK, &found, &read);
    for (int32_t i = 0; status == WW_OK && found && i < head->block.count; i++) {
        if (*from < end && f->block_places[i] == f->places[(uint32_t)f->keys[*from]]) {
            ++*from;
            continue;
        }
        f->block_places[kept] = f->block_places[i];
        f->block_values[kept++] = f->block_values[i];
    }
    if (status != WW_OK || kept == head->block.count)
        return status;
    if (kept > 0)
        return write_block(f, head->key, kept);
    status = ready(f, DELETE_BLOCK);
    if (status != WW_OK)
        return status;
    sqlite3_bind_int64(f->statements[DELETE_BLOCK], 1, head->key);
    return schema_step(f->statements[DELETE_BLOCK]);
}

/* Removes the entries `from` to `end` - 1 of the sorted keys, which have one index. */
static ww_status remove_group(folding *f, int64_t from, int64_t end)
{
    const uint32_t index = (uint32_t)(f->keys[from] >> 32);
    ww_status status = read_heads(f, index);
    for (int64_t b = 0; status == WW_OK && b < f->head_count && from < end; b++)
        if (f->places[(uint32_t)f->keys[from]] <= f->heads[b].block.last)
            status = remove_from_block(f, &f->heads[b], &from, end);
    if (status == WW_OK && from < end)
        status = row_damaged(f->t->name, "the index of sparse vectors, which lacks the row at place",
                             f->places[(uint32_t)f->keys[from]]);
    return status;
}

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

static ww_status append(folding *f, uint32_t place, const ww_sparse_vector *v)
{
    const int64_t count = f->count + v->count;
    ww_status status = array_reserve(&f->keys, &f->key_room, count, sizeof *f->keys, "sparse vectors");
    if (status == WW_OK)
        status = array_reserve(&f->places, &f->place_room, count, sizeof *f->places, "sparse vectors");
    if (status == WW_OK)
        status = array_reserve(&f->values, &f->value_room, count, sizeof *f->values, "sparse vectors");
    for (int64_t i = 0; status == WW_OK && i < v->count; i++, f->count++) {
        f->keys[f->count] = (uint64_t)v->indices[i] << 32 | (uint64_t)f->count;
        f->places[f->count] = place;
        f->values[f->count] = v->values[i];
    }
    return status;
}

/* Reads rows after `*place` until they have enough entries; `*end`: these were the last. */
static ww_status read_some(folding *f, sqlite3_stmt *s, int64_t *place, bool *end)
{
    int code = SQLITE_DONE;
    ww_status status = WW_OK;
    f->count = 0;
    sqlite3_bind_int64(s, 1, *place);
    while (status == WW_OK && f->count < ENTRIES_AT_ONCE && (code = sqlite3_step(s)) == SQLITE_ROW) {
        ww_sparse_vector v;
        *place = sqlite3_column_int64(s, 0);
        status = sparse_column(f->t, (sparse_cell){s, 1, *place}, &f->space, &v);
        if (status == WW_OK && (*place < 0 || *place >= WW_ROWS_MAX))
            status = row_damaged(f->t->name, "the sparse vector at place", *place);
        if (status == WW_OK)
            status = append(f, (uint32_t)*place, &v);
        f->rows++;
    }
    *end = code == SQLITE_DONE;
    if (status == WW_OK && code != SQLITE_ROW && code != SQLITE_DONE)
        status = sqlite_failed(f->t->db, code, f->t->name);
    sqlite3_reset(s);
    return status;
}

/* Folds the rows of a statement; `apply` takes the entries of one index. */
static ww_status fold_rows(folding *f, const char *text, ww_status (*apply)(folding *f, int64_t from, int64_t end))
{
    const sparse_tables *t = f->t;
    sqlite3_stmt *s = NULL;
    int64_t place = -1;
    bool end = false;
    ww_status status = schema_statement(t->db, &s, text, t->schema, t->name, t->schema, t->name);
    f->rows = 0;
    while (status == WW_OK && !end) {
        status = read_some(f, s, &place, &end);
        if (status == WW_OK)
            keys_sort(f->keys, f->count);
        for (int64_t from = 0, to = 0; status == WW_OK && from < f->count; from = to) {
            while (to < f->count && f->keys[to] >> 32 == f->keys[from] >> 32)
                to++;
            status = apply(f, from, to);
        }
    }
    sqlite3_finalize(s);
    return status;
}

ww_status sparse_fold(const sparse_tables *t)
{
    int64_t rows = 0;
    folding *f = memory_alloc_zeroed(1, sizeof *f);
    if (!f)
        return memory_failed("folding sparse vectors", sizeof *f);
    f->t = t;
    ww_status status = sparse_rows_indexed(t, &rows);
    if (status == WW_OK)
        status = fold_rows(f,
                           "SELECT place, handle, vector, checksum FROM \"%w\".\"%w_sparse_pending\" WHERE vector IS NOT NULL "
                           "AND place > ?1 ORDER BY place",
                           remove_group);
    rows -= f->rows;
    if (status == WW_OK)
        status = fold_rows(f,
                           "SELECT p.place, s.handle, s.vector, s.checksum FROM \"%w\".\"%w_sparse_pending\" AS p LEFT JOIN "
                           "\"%w\".\"%w_sparse\" AS s ON s.place = p.place WHERE p.vector IS NULL AND p.place > ?1 ORDER BY "
                           "p.place",
                           add_group);
    rows += f->rows;
    for (int i = 0; i < FOLD_STATEMENTS; i++)
        sqlite3_finalize(f->statements[i]);
    memory_free(f->space.words);
    memory_free(f->keys);
    memory_free(f->places);
    memory_free(f->values);
    memory_free(f->heads);
    memory_free(f);
    if (status == WW_OK)
        status = schema_run(t->db, "DELETE FROM \"%w\".\"%w_sparse_pending\"", t->schema, t->name);
    return status == WW_OK ? sparse_put_rows_indexed(t, rows) : status;
}

ww_status sparse_rebuild(const sparse_tables *t)
{
    bool exist = false;
    ww_status status = sparse_exist(t, &exist);
    if (status != WW_OK || !exist)
        return status;
    status = schema_run(t->db, "DELETE FROM \"%w\".\"%w_sparse_blocks\"", t->schema, t->name);
    if (status == WW_OK)
        status = schema_run(t->db, "DELETE FROM \"%w\".\"%w_sparse_pending\"", t->schema, t->name);
    if (status == WW_OK)
        status = schema_run(t->db, "INSERT INTO \"%w\".\"%w_sparse_pending\"(place) SELECT place FROM \"%w\".\"%w_sparse\"",
                            t->schema, t->name, t->schema, t->name);
    if (status == WW_OK)
        status = sparse_put_rows_indexed(t, 0);
    return status == WW_OK ? sparse_fold(t) : status;
}
