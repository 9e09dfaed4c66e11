/* The multivectors of rows (warpwave/multi.h) in the file, and their copy on the device.
 *
 *   NAME_multi(place INTEGER PRIMARY KEY, handle, checksum, dim, vectors BLOB)
 *
 * The first multivector of a collection creates it; all rows have the same dim. It is written in the transaction that writes
 * the row. `checksum` is that of the vectors' bytes and of dim. A search copies what it lacks to the mirror's set
 * (vectors/internal/mirror.h), whose rows are numbered by place.
 */
#ifndef WW_STORE_MULTI_MULTI_H
#define WW_STORE_MULTI_MULTI_H

#include <stdbool.h>
#include <stdint.h>

#include <warpwave/multi.h>

#include "store/schema.h"
#include "store/view/view.h"

/* A collection's table, as a connection sees it. */
typedef struct multi_table {
    sqlite3 *db;
    const char *schema;
    const char *name; /* of the collection, as in its record */
} multi_table;

/* Does the table exist? This and all functions below run in the caller's transaction. */
ww_status multi_table_exists(const multi_table *t, bool *exist);

/* Makes it. */
ww_status multi_table_create(const multi_table *t);

/* Drop it if it exists; rename it, if it exists, with its collection. */
ww_status multi_table_drop(const multi_table *t);
ww_status multi_table_rename(const multi_table *t, const char *name);

/* Checks every multivector; `tell` gets each fault. */
typedef void (*multi_tell)(void *user, const char *fault);
ww_status multi_table_check(const multi_table *t, int64_t next_place, multi_tell tell, void *user);

/* Reads rows by place. `statement` is prepared at the first call and finalized by the caller. Without a multivector the count
 * is 0, and so is the checksum. The vector is valid until `space`, which the caller frees (memory_free()), is used again. */
typedef struct multi_space {
    float *numbers;
    int64_t room;
} multi_space;
typedef struct multi_row {
    int64_t place, handle;
    uint64_t checksum; /* without its mark */
    ww_multivector vector;
} multi_row;
ww_status multi_read(const multi_table *t, sqlite3_stmt **statement, int64_t place, multi_space *space, multi_row *row);

/* Reads the columns of a statement's row, and checks them. */
#define MULTI_COLUMNS "place, handle, checksum, dim, vectors"
ww_status multi_columns(const multi_table *t, sqlite3_stmt *s, multi_space *space, multi_row *row);

/* The checksum of a row's vectors, from that of the others and that of its multivector (0: none). */
uint64_t multi_checksum(uint64_t others, uint64_t multi);

/* The same for the row with this place; *statement as with multi_read(); `exist`: is there a table? */
ww_status multi_checksum_at(const multi_table *t, bool exist, sqlite3_stmt **statement, int64_t place, uint64_t *others);

/* ---- writing ------------------------------------------------------------------------------------------------------------- */

enum { MULTI_STATEMENTS = 4 };

/* Statements of a writer, prepared when they are first used. Starts zeroed. */
typedef struct multi_writer {
    sqlite3_stmt *statements[MULTI_STATEMENTS];
    bool known, exist; /* exist: whether there is a table, if known */
    int32_t dim;       /* of all multivectors; 0: not known */
} multi_writer;

void multi_writer_close(multi_writer *w);
void multi_writer_forget(multi_writer *w); /* what is known about the table may have changed */
int64_t multi_writer_preparations(const multi_writer *w);

/* A row's new multivector; NULL: none. */
typedef struct multi_new {
    int64_t handle, place;
    const ww_multivector *vector;
} multi_new;

/* Adds the multivector of a row, which has none yet; `checksum` gets its checksum, 0 for none. WW_DIMENSION_MISMATCH if others
 * have another dim. */
ww_status multi_writer_insert(multi_writer *w, const multi_table *t, multi_new row, uint64_t *checksum);

/* Removes the multivector at a place, or moves it to another that is not -1. */
ww_status multi_writer_remove(multi_writer *w, const multi_table *t, int64_t place, int64_t moved);

/* The checksum of the multivector at a place; 0: there is none. */
ww_status multi_writer_checksum(multi_writer *w, const multi_table *t, int64_t place, uint64_t *checksum);

/* Removes all multivectors. */
ww_status multi_writer_clear(multi_writer *w, const multi_table *t);

#endif
