/* Mirrors: the vectors of a collection in a file, kept in memory to be searched.
 *
 * A mirror is a plain collection without ids and payloads. Its rows are in order of *place*: a number that every vector gets
 * when it is written to the file, and that is never reused. A process has one mirror for each file, collection and device,
 * shared by all its users. A mirror knows nothing about files. The code that reads the file tells it up to which
 * *sequence* (the number of the last write) it is current, and which rows were added and removed.
 *
 * The places and handles of rows are kept as runs in which both are consecutive: 24 bytes per run, one run for rows that were
 * only ever added.
 */
#ifndef WW_VECTORS_INTERNAL_MIRROR_H
#define WW_VECTORS_INTERNAL_MIRROR_H

#include <pthread.h>
#include <stdbool.h>

#include <warpwave/vectors.h>

#include "vectors/multi/multi.h"

typedef struct mirror mirror;

/* The identity of a mirror. */
typedef struct mirror_key {
    uint64_t file_device, file_inode;
    const void *sqlite; /* an address in the SQLite that reads the file */
    bool exclusive;     /* only for mirror_file_enter(): SQLite must lock out other processes */
    int64_t uid;        /* of the collection */
    int64_t epoch;      /* of the collection */
    char device[32];
    int64_t screen;
    int64_t rows; /* where rows are stored (WW_ROWS_...) */
} mirror_key;

/* How much of the file a mirror contains. */
typedef struct mirror_state {
    bool loaded;        /* false: nothing was read yet, and the other fields are 0 */
    bool abandoned;     /* do not use it any more; acquire another one */
    int64_t sequence;   /* of the last write that it contains */
    int64_t next_place; /* it contains every vector with a smaller place, unless it was removed */
    int64_t rows;       /* live and removed rows: a mask must cover all of them */
    int64_t rows_live;
} mirror_state;

/* Rows to append to a mirror, in order of place. */
typedef struct mirror_rows {
    int64_t count;
    const float *vectors; /* count x dim; NULL: use `elements` */
    const void *elements; /* count x dim in the collection's type */
    int64_t row_stride;   /* elements from one row to the next; 0: dim */
    const int64_t *places;
    const int64_t *handles;
} mirror_rows;

/* Finds the mirror with this key, or makes an empty one. Release each with mirror_release(); the last release frees it. */
ww_status mirror_acquire(const mirror_key *key, ww_device *device, const ww_collection_config *config, mirror **found);

/* Makes a mirror that is not in the table. */
ww_status mirror_create(ww_device *device, const ww_collection_config *config, mirror **made);

/* Accepts NULL. Does nothing in a child of fork(). */
void mirror_release(mirror *m);

/* Readers share the lock. A writer has it alone, and goes before waiting readers. */
void mirror_lock_read(mirror *m);
void mirror_lock_write(mirror *m);
void mirror_unlock(mirror *m);

/* Was this not called for the mirror before? */
bool mirror_first_search(mirror *m);
/* Memory of a mirror with this number of rows, about. */
int64_t mirror_bytes(const mirror *m, int64_t rows);
/* Memory of the mirrors of a file, estimated from their rows. */
int64_t mirror_file_bytes(const mirror_key *file);
/* Frees mirrors of the same file, the ones not searched for longest first, until they need at most `limit` bytes together with
 * `bytes` more for `m`. Those that are in use, or were less than a second ago, stay, so that searches which take turns do not
 * load again and again what the other one needs. `m` is locked for writing. */
void mirror_make_room(mirror *m, int64_t rows, int64_t limit);

/* Called with either lock. */
mirror_state mirror_state_of(const mirror *m);
ww_collection *mirror_collection(mirror *m);
/* Searches the mirror with a checked query; its results have places instead of rows. The mask covers the mirror's own rows. */
ww_status mirror_query(mirror *m, const ww_query *query, ww_results **results);
/* Writes the places and handles of `count` row numbers; -1 stays -1 in both. `rows` and `places` may be the same array. */
void mirror_places(const mirror *m, const int64_t *rows, int64_t count, int64_t *places, int64_t *handles);
/* Returns the row with this place, or -1 if this mirror never had it. */
int64_t mirror_row(const mirror *m, int64_t place);
/* For each row whose place has its bit set in `by_place`, sets the row's bit in `mask`, which covers all rows and is zero. */
void mirror_mask(const mirror *m, const uint64_t *by_place, int64_t places_count, uint64_t *mask);

/* The multivectors of the mirror's rows, for searches (store/multi), which bring them to the mirror's sequence. */
typedef struct mirror_multi {
    pthread_rwlock_t lock; /* of what follows; taken after the mirror's */
    int64_t sequence;      /* -1: nothing was read */
    int64_t next_place;    /* the set has all multivectors with a smaller place that were not removed, and some that were */
    multi_set set;         /* its rows are places */
    uint64_t *live;        /* bits of the places of live rows */
    int64_t live_rows;     /* of the set */
} mirror_multi;
mirror_multi *mirror_multi_of(mirror *m);
/* Fills in the live places, up to `places_count`, and counts the set's live rows. */
ww_status mirror_multi_live(mirror *m, int64_t places_count);

/* Called with the writer's lock. If append or remove fails, the mirror is inconsistent and must be abandoned. */
ww_status mirror_reserve(mirror *m, int64_t rows_more);
ww_status mirror_append(mirror *m, const mirror_rows *rows);
ww_status mirror_remove(mirror *m, const int64_t *places, int64_t count); /* ignores places that are not in the mirror */
void mirror_set_state(mirror *m, int64_t sequence, int64_t next_place);
/* Frees the memory of removed rows if most rows are removed. Row numbers change, places do not. */
ww_status mirror_tidy(mirror *m);
/* Removes the mirror from the table. Its users must acquire another one, which is read from the start. */
void mirror_abandon(mirror *m);

/* Counts a use of the file by this SQLite. Returns WW_UNSUPPORTED if another SQLite library in this process uses it, because
 * closing a file in one drops the locks of the other. Returns WW_OTHER_PROCESS if the file was open before fork(), because a
 * child inherits SQLite's record of its parent's locks and would take none itself. Returns WW_BUSY if `exclusive` is requested
 * and the file is already open without it, because SQLite can lock out other processes only with a process's first connection.
 * `path` is for the message. */
ww_status mirror_file_enter(const mirror_key *file, const char *path);
void mirror_file_leave(const mirror_key *file);

#endif
