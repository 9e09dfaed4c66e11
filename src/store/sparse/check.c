/* Checking the sparse vectors of a collection: every vector and every block against its checksum, and the index against the
 * vectors. Both sides sum a checksum of each entry, modulo 2^64, so that neither has to be in memory. */
#include <stdio.h>
#include <string.h>

#include "base/checksum.h"
#include "base/memory.h"
#include "store/sparse/sparse.h"

enum { FAULT_BYTES = 400 };

typedef struct checking {
    const sparse_tables *t;
    sparse_tell tell;
    void *user;
    int64_t next_place;
    uint64_t vectors, index; /* sums over entries */
    int64_t rows;            /* that the index should have */
    sparse_buffer space;
    uint32_t words[2 * SPARSE_BLOCK];
} checking;

static uint64_t entry_checksum(uint32_t index, uint32_t place, float value)
{
    uint32_t words[3] = {index, place};
    memcpy(&words[2], &value, sizeof value);
    return checksum_bytes(words, sizeof words);
}

static void fault_at(const checking *k, const char *what, int64_t number)
{
    char text[FAULT_BYTES];
    snprintf(text, sizeof text, "'%s': %s %lld", k->t->name, what, (long long)number);
    k->tell(k->user, text);
}

/* A failure that says that the file is damaged is a fault; others end the check. */
static ww_status as_fault(const checking *k, ww_status status)
{
    if (status != WW_CORRUPT_FILE)
        return status;
    k->tell(k->user, ww_error_message());
    return WW_OK;
}

static void add_vector(checking *k, int64_t place, const ww_sparse_vector *v, bool indexed)
{
    for (int64_t i = 0; indexed && i < v->count; i++)
        k->vectors += entry_checksum(v->indices[i], (uint32_t)place, v->values[i]);
    k->rows += indexed;
}

/* Live vectors: each belongs to its row, and is in the index unless it is pending. */
static ww_status check_vectors(checking *k)
{
    const sparse_tables *t = k->t;
    sqlite3_stmt *s = NULL;
    int code = SQLITE_DONE;
    ww_status status = schema_statement(
        t->db, &s,
        "SELECT s.place, s.handle, s.vector, s.checksum, r.place, p.place IS NOT NULL FROM \"%w\".\"%w_sparse\" AS s LEFT JOIN "
        "\"%w\".\"%w_rows\" AS r ON r.handle = s.handle LEFT JOIN \"%w\".\"%w_sparse_pending\" AS p ON p.place = s.place",
        t->schema, t->name, t->schema, t->name, t->schema, t->name);
    while (status == WW_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
        const int64_t place = sqlite3_column_int64(s, 0);
        ww_sparse_vector v = {0};
        if (place < 0 || place >= k->next_place)
            fault_at(k, "there is a sparse vector at a place that was never assigned:", place);
        else if (sqlite3_column_type(s, 4) == SQLITE_NULL || sqlite3_column_int64(s, 4) != place)
            fault_at(k, "there is a sparse vector that belongs to no row at place", place);
        status = as_fault(k, sparse_column(t, (sparse_cell){s, 1, place}, &k->space, &v));
        add_vector(k, place, &v, !sqlite3_column_int(s, 5));
    }
    if (status == WW_OK && code != SQLITE_DONE)
        status = sqlite_failed(t->db, code, t->name);
    sqlite3_finalize(s);
    return status;
}

/* Pending rows: those to add have a vector, those that were removed are still in the index. */
static ww_status check_pending(checking *k)
{
    const sparse_tables *t = k->t;
    sqlite3_stmt *s = NULL;
    int code = SQLITE_DONE;
    ww_status status = schema_statement(t->db, &s,
                                        "SELECT p.place, p.handle, p.vector, p.checksum, s.place IS NOT NULL FROM "
                                        "\"%w\".\"%w_sparse_pending\" AS p LEFT JOIN \"%w\".\"%w_sparse\" AS s ON s.place = "
                                        "p.place",
                                        t->schema, t->name, t->schema, t->name);
    while (status == WW_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
        const int64_t place = sqlite3_column_int64(s, 0);
        const bool removed = sqlite3_column_type(s, 2) != SQLITE_NULL;
        ww_sparse_vector v = {0};
        if (removed == sqlite3_column_int(s, 4))
            fault_at(k, removed ? "a sparse vector is removed and there at place" : "there is no sparse vector to add at place",
                     place);
        if (removed)
            status = as_fault(k, sparse_column(t, (sparse_cell){s, 1, place}, &k->space, &v));
        add_vector(k, place, &v, removed);
    }
    if (status == WW_OK && code != SQLITE_DONE)
        status = sqlite_failed(t->db, code, t->name);
    sqlite3_finalize(s);
    return status;
}

static ww_status check_block(checking *k, sqlite3_stmt *s, sparse_head *before, bool *any)
{
    sparse_head head;
    const int64_t key = sqlite3_column_int64(s, 0);
    const bool same = *any && before->key >> 31 == key >> 31;
    ww_status status = sparse_head_column(k->t, s, same ? before : NULL, &head);
    if (status == WW_OK)
        status = sparse_data_column(k->t, s, SPARSE_HEAD_COUNT, &head, k->words);
    for (int32_t i = 0; status == WW_OK && i < head.block.count; i++)
        k->index += entry_checksum((uint32_t)(key >> 31), sparse_entries_of(&head, k->words).rows[i],
                                   sparse_entries_of(&head, k->words).values[i]);
    *before = head;
    *any = status == WW_OK;
    return as_fault(k, status);
}

static ww_status check_blocks(checking *k)
{
    const sparse_tables *t = k->t;
    sqlite3_stmt *s = NULL;
    sparse_head before = {0};
    bool any = false;
    int code = SQLITE_DONE;
    ww_status status = schema_statement(
        t->db, &s, "SELECT " SPARSE_HEAD_COLUMNS ", data FROM \"%w\".\"%w_sparse_blocks\" WHERE key >= 0 ORDER BY key",
        t->schema, t->name);
    while (status == WW_OK && (code = sqlite3_step(s)) == SQLITE_ROW)
        status = check_block(k, s, &before, &any);
    if (status == WW_OK && code != SQLITE_DONE)
        status = sqlite_failed(t->db, code, t->name);
    sqlite3_finalize(s);
    return status;
}

ww_status sparse_check(const sparse_tables *t, int64_t next_place, sparse_tell tell, void *user)
{
    checking *k = memory_alloc_zeroed(1, sizeof *k);
    int64_t rows = 0;
    bool exist = false;
    if (!k)
        return memory_failed("a check of sparse vectors", sizeof *k);
    *k = (checking){.t = t, .tell = tell, .user = user, .next_place = next_place};
    ww_status status = sparse_exist(t, &exist);
    if (status == WW_OK && exist)
        status = check_vectors(k);
    if (status == WW_OK && exist)
        status = check_pending(k);
    if (status == WW_OK && exist)
        status = check_blocks(k);
    if (status == WW_OK && exist)
        status = as_fault(k, sparse_rows_indexed(t, &rows));
    if (status == WW_OK && exist && rows != k->rows)
        fault_at(k, "the index of sparse vectors has a wrong number of rows:", rows);
    if (status == WW_OK && exist && k->vectors != k->index)
        fault_at(k, "the index of sparse vectors does not follow from the vectors; compacting makes it again; rows:", rows);
    memory_free(k->space.words);
    memory_free(k);
    return status;
}
