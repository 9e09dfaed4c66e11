/* The sparse vectors of rows (warpwave/sparse.h), and the inverted index that finds them, in the file.
 *
 *   NAME_sparse(place INTEGER PRIMARY KEY, handle, vector BLOB, checksum)          the vectors: indices, then values
 *   NAME_sparse_blocks(key INTEGER PRIMARY KEY, first, last, entries, low, high, sum, head, data BLOB)
 *   NAME_sparse_pending(place INTEGER PRIMARY KEY, handle, vector BLOB, checksum)
 *
 * The first sparse vector of a collection creates them. A block has up to 512 entries of one index, by place: places, then
 * values. Its key is the index times 2^31 plus the number of the block. `sum` is the checksum of `data`, `head` that of all
 * other columns, so that the bounds can be trusted before the data is read. The block with key -1 has no data; its `entries` is
 * the number of rows in the index.
 *
 * A write only puts the vector into NAME_sparse and its place into NAME_sparse_pending; a removal moves an indexed vector to
 * NAME_sparse_pending. A search looks at all of these. When they are more than an eighth of the rows in the index, but at
 * least 32 and at most 512, the transaction folds them into the blocks, and the entries of removed rows are taken out. So a
 * write costs little, a block is written once for many rows, and the index has no garbage. All of it is written in the
 * transaction that writes the row.
 */
#ifndef WW_STORE_SPARSE_SPARSE_H
#define WW_STORE_SPARSE_SPARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "store/schema.h"
#include "store/view/view.h"
#include "vectors/sparse/sparse.h"

/* A collection's tables, as a connection sees them. */
typedef struct sparse_tables {
    sqlite3 *db;
    const char *schema;
    const char *name; /* of the collection, as in its record */
} sparse_tables;

enum { SPARSE_PENDING_MIN = 32, SPARSE_PENDING_MAX = 512, SPARSE_PENDING_SHARE = 8, SPARSE_KEY_ROWS = -1 };

/* Do the tables exist? This and all functions below run in the caller's transaction. */
ww_status sparse_exist(const sparse_tables *t, bool *exist);

/* Create them; drop them if they exist; rename them, if they exist, with their collection. */
ww_status sparse_create(const sparse_tables *t);
ww_status sparse_drop(const sparse_tables *t);
ww_status sparse_rename(const sparse_tables *t, const char *name);

/* Makes the index again from the vectors, whose places may have changed, if there are any. */
ww_status sparse_rebuild(const sparse_tables *t);

/* Folds what is pending into the index. */
ww_status sparse_fold(const sparse_tables *t);

/* Checks the vectors, the index, and that one follows from the other; `tell` gets each fault. */
typedef void (*sparse_tell)(void *user, const char *fault);
ww_status sparse_check(const sparse_tables *t, int64_t next_place, sparse_tell tell, void *user);

/* ---- vectors in the file ------------------------------------------------------------------------------------------------- */

/* Reads the vector in a statement's row. It is valid until `space`, whose words the caller frees (memory_free()), is used
 * again. */
typedef struct sparse_buffer {
    uint32_t *words;
    int64_t room;
} sparse_buffer;

/* Where a statement has a vector: in columns handle, vector, checksum, starting at `column`. */
typedef struct sparse_cell {
    sqlite3_stmt *row;
    int column;
    int64_t place;
} sparse_cell;
ww_status sparse_column(const sparse_tables *t, sparse_cell from, sparse_buffer *space, ww_sparse_vector *vector);

/* Reads rows by place. `statement` is prepared at the first call and finalized by the caller. Without a vector the count is 0,
 * and so is the checksum. */
typedef struct sparse_row {
    int64_t handle;
    uint64_t checksum; /* without its mark */
    ww_sparse_vector vector;
} sparse_row;
ww_status sparse_read(const sparse_tables *t, sqlite3_stmt **statement, int64_t place, sparse_buffer *space, sparse_row *row);

/* The checksum of a row's vectors, from that of its dense and that of its sparse vector (0: none). */
uint64_t sparse_checksum(uint64_t dense, uint64_t sparse);

/* The same for the row with this place; *statement as with sparse_read(); `exist`: are there tables? */
ww_status sparse_checksum_at(const sparse_tables *t, bool exist, sqlite3_stmt **statement, int64_t place, uint64_t *dense);

/* ---- writing ------------------------------------------------------------------------------------------------------------- */

enum { SPARSE_STATEMENTS = 7 };

/* Statements of a writer, prepared when they are first used. Starts zeroed. */
typedef struct sparse_writer {
    sqlite3_stmt *statements[SPARSE_STATEMENTS];
    bool known, exist; /* exist: whether there are tables, if known */
    bool counted;
    int64_t pending; /* if counted */
    sparse_buffer space;
} sparse_writer;

void sparse_writer_close(sparse_writer *w);
void sparse_writer_forget(sparse_writer *w); /* what is known about the tables may have changed */
int64_t sparse_writer_preparations(const sparse_writer *w);

/* A row's new vector; NULL: none. */
typedef struct sparse_new {
    int64_t handle, place;
    const ww_sparse_vector *vector;
} sparse_new;

/* Adds the vector of a row, which has none yet; `checksum` gets its checksum, 0 for none. */
ww_status sparse_writer_insert(sparse_writer *w, const sparse_tables *t, sparse_new row, uint64_t *checksum);

/* Removes the vector at a place, if there is one; `checksum` gets its checksum. With `moved`, which is not -1, it is then at
 * that place instead. */
ww_status sparse_writer_remove(sparse_writer *w, const sparse_tables *t, int64_t place, int64_t moved, uint64_t *checksum);

/* The checksum of the vector at a place; 0: there is none. */
ww_status sparse_writer_checksum(sparse_writer *w, const sparse_tables *t, int64_t place, uint64_t *checksum);

/* Removes all vectors. */
ww_status sparse_writer_clear(sparse_writer *w, const sparse_tables *t);

/* Folds what is pending if it is much. Call it before the transaction ends. */
ww_status sparse_writer_flush(sparse_writer *w, const sparse_tables *t);

/* ---- blocks -------------------------------------------------------------------------------------------------------------- */

static inline int64_t sparse_key(uint32_t index, int64_t number)
{
    return ((int64_t)index << 31) + number;
}

#define SPARSE_HEAD_COLUMNS "key, first, last, entries, low, high, sum, head"
enum { SPARSE_HEAD_COUNT = 8 };

/* A block without its entries. */
typedef struct sparse_head {
    int64_t key;
    sparse_block block;
    uint64_t sum;
} sparse_head;

uint64_t sparse_head_checksum(const sparse_head *head);

/* Reads the head in a statement's first columns, and checks it; `after` is the head before it of the same index, or NULL. */
ww_status sparse_head_column(const sparse_tables *t, sqlite3_stmt *s, const sparse_head *after, sparse_head *head);

/* Copies and checks the data of a block, in column `column`, to `words`, which has room for 2 x SPARSE_BLOCK. */
ww_status sparse_data_column(const sparse_tables *t, sqlite3_stmt *s, int column, const sparse_head *head, uint32_t *words);

/* The entries in the words. */
static inline sparse_entries sparse_entries_of(const sparse_head *head, const uint32_t *words)
{
    return (sparse_entries){words, (const float *)(const void *)(words + head->block.count)};
}

/* The number of rows in the index. */
ww_status sparse_rows_indexed(const sparse_tables *t, int64_t *rows);
ww_status sparse_put_rows_indexed(const sparse_tables *t, int64_t rows);

#endif
