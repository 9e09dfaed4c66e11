/* Writing rows to the tables of a collection, for both the C calls and SQL.
 *
 * A writer works through a connection, inside a transaction that its caller has begun and ends. It reads the collection's
 * record with the first change, keeps it while changes go on, and writes it back with writer_flush(): before the transaction is
 * committed, and before anybody reads the file through the same connection. A failed change may be half made: the caller rolls
 * back (the transaction, or a savepoint around it) and calls writer_forget().
 */
#ifndef WW_STORE_WRITER_WRITER_H
#define WW_STORE_WRITER_WRITER_H

#include "store/schema.h"
#include "vectors/internal/mirror.h"

struct ivf;             /* vectors/ivf/ivf.h */
struct ivf_calibration; /* vectors/ivf/ivf.h */

typedef struct writer writer;

/* A row as it is written. */
typedef struct writer_row {
    const char *id;                        /* NULL: the handle in decimal */
    const char *payload;                   /* JSON, checked by the writer; NULL: none */
    size_t payload_bytes;                  /* without a NUL, which is not needed; 0: strlen() */
    bool payload_checked;                  /* the caller knows that it is JSON */
    const float *vector;                   /* dim floats, converted to the collection's type; checked */
    const void *elements;                  /* instead of `vector`: dim elements in that type; checked */
    const char *text;                      /* UTF-8, checked; NULL: none */
    const struct ww_sparse_vector *sparse; /* checked; NULL: none */
    const struct ww_multivector *multi;    /* checked; NULL: none */
    int64_t handle;                        /* in: -1, or the handle to use, larger than any before. out: the row's handle */
    int64_t place;                         /* out */
    int64_t batch_row;                     /* for messages: from 1 in a batch; 0: not in a batch */
} writer_row;

enum { WRITER_ROWS_AT_ONCE = 64 };

/* What writer_update() changes. */
/* WRITER_SPARSE and WRITER_MULTI only with WRITER_VECTOR. */
enum { WRITER_ID = 1, WRITER_PAYLOAD = 2, WRITER_VECTOR = 4, WRITER_TEXT = 8, WRITER_SPARSE = 16, WRITER_MULTI = 32 };

/* Keeps the connection; prepares statements on it when they are first used. */
ww_status writer_open(sqlite3 *db, const char *schema, const char *name, writer **opened);
void writer_close(writer *w); /* accepts NULL */

/* Reads the record if it is not known. */
ww_status writer_read(writer *w);

/* How often its statements have been prepared: by the writer, and again by SQLite after a change of the schema, including
 * TEMP's. */
int64_t writer_preparations(const writer *w);

/* Begins a change with a new sequence, for a batch or a statement. Reads the record if it is not known. */
ww_status writer_begin(writer *w);

/* May a new row get this handle, chosen by the caller? WW_INVALID_ARGUMENT if it was used before, WW_OUT_OF_RANGE if it leaves
 * too few for later rows. */
ww_status writer_check_handle(const writer *w, int64_t handle);

/* Adds a row. WW_DUPLICATE_ID if the id exists, WW_INVALID_ARGUMENT for a bad id, payload or vector, or a handle that was used
 * before. */
ww_status writer_insert(writer *w, writer_row *row);

/* Adds rows, fastest with WRITER_ROWS_AT_ONCE. It has the effect of as many calls of writer_insert(), up to the first failure.
 */
ww_status writer_insert_many(writer *w, writer_row *rows, int64_t count);

/* Adds a row, or gives the row with this id a new vector, payload, text, sparse vector and multivector; it keeps its handle. */
ww_status writer_upsert(writer *w, writer_row *row);

/* Changes what `what` names of the row with row->handle. WW_NOT_FOUND, WW_DUPLICATE_ID. */
ww_status writer_update(writer *w, writer_row *row, int what);

/* Removes the row with this handle. WW_NOT_FOUND. `place`, which may be NULL, gets the place of its vector. */
ww_status writer_remove(writer *w, int64_t handle, int64_t *place);

/* A copy of the payload of the row with this handle (memory_free()); NULL: it has none. WW_NOT_FOUND. */
ww_status writer_payload(writer *w, int64_t handle, char **payload);

/* The handle and place of an id; -1 if it does not exist. */
ww_status writer_find(writer *w, const char *id, int64_t *handle, int64_t *place);

/* Like writer_update(), for the row with row->id; WW_NOT_FOUND if there is none. `old_place`, which may be NULL, gets the old
 * place of its vector. */
ww_status writer_replace(writer *w, writer_row *row, int what, int64_t *old_place);

/* Removes all rows, with a new epoch. */
ww_status writer_clear(writer *w);

/* Write an index that was built from a mirror with all of the collection's rows; write what a calibration has learnt; drop the
 * index. Call them after writer_begin(). */
ww_status writer_build_index(writer *w, const struct ivf *index, const mirror *rows);
ww_status writer_calibrate_index(writer *w, const struct ivf_calibration *learnt);
ww_status writer_drop_index(writer *w);

/* Writes the record, if there were changes. After writer_read() or writer_begin(). */
ww_status writer_flush(writer *w);

/* The record as it is now, with changes; valid after writer_read() and writer_begin(). */
const collection_record *writer_record(const writer *w);

/* Forgets the record. Call it after a commit and after a full rollback or one to a savepoint. */
void writer_forget(writer *w);

#endif
