/* Mirrors: the vectors of a collection in a file, kept in memory to be searched.
 *
 * A mirror is a plain collection without ids and payloads. Its rows are in order of *place*: a number that every vector gets
 * when it is written to the file and that is never used again. A process has one mirror for each file, collection and device,
 * shared by all its users: this table is in the core so that the store's library and the SQLite extension, which are linked
 * separately, share it through core.h. A mirror knows nothing about files. The code that reads the file says up to which
 * *sequence* (the number of the last write) the mirror is current, and which rows came and went.
 *
 * The places and handles of rows are kept as runs in which both are consecutive: 24 bytes per run, one run for rows that were
 * only ever added.
 */
#ifndef WW_VECTORS_INTERNAL_MIRROR_H
#define WW_VECTORS_INTERNAL_MIRROR_H

#include <stdbool.h>

#include <warpwave/vectors.h>

typedef struct mirror mirror;

/* The identity of a mirror. */
typedef struct mirror_key {
    uint64_t file_device, file_inode;
    const void *sqlite; /* an address in the SQLite that reads the file */
    bool exclusive;     /* only for mirror_file_enter(): other processes must be locked out */
    int64_t uid;        /* of the collection */
    int64_t epoch;      /* of the collection */
    char device[32];
    int64_t screen;
    int64_t rows; /* where they are */
} mirror_key;

/* How far a mirror has been read. */
typedef struct mirror_state {
    bool loaded;        /* else nothing was read yet, and the rest is 0 */
    bool abandoned;     /* do not use it any more: get another one */
    int64_t sequence;   /* of the last write that is in it */
    int64_t next_place; /* every vector with a smaller place is in it, or is gone */
    int64_t rows;       /* live and removed rows: what a mask must cover */
    int64_t rows_live;
} mirror_state;

/* Rows for the end of a mirror, in order of place. */
typedef struct mirror_rows {
    int64_t count;
    const float *vectors; /* count x dim, or NULL: */
    const void *elements; /* count x dim in the collection's type */
    int64_t row_stride;   /* numbers from one to the next; 0: dim */
    const int64_t *places;
    const int64_t *handles;
} mirror_rows;

/* Finds the mirror with this key, or makes an empty one. Release each with mirror_release(); the last release frees it. */
ww_status mirror_acquire(const mirror_key *key, ww_device *device, const ww_collection_config *config, mirror **found);

/* Makes a mirror that nobody else finds. */
ww_status mirror_create(ww_device *device, const ww_collection_config *config, mirror **made);

/* Accepts NULL. Does nothing in a child of fork(). */
void mirror_release(mirror *m);

/* Readers share the lock, a writer has it alone and goes first. */
void mirror_lock_read(mirror *m);
void mirror_lock_write(mirror *m);
void mirror_unlock(mirror *m);

/* With either lock. */
mirror_state mirror_state_of(const mirror *m);
ww_collection *mirror_collection(mirror *m);
/* Searches it with a checked query: rows of the results are places. The mask is over the mirror's own rows. */
ww_status mirror_query(mirror *m, const ww_query *query, ww_results **results);
/* Writes the places and handles of `count` row numbers; -1 stays -1 in both. `rows` and `places` may be the same array. */
void mirror_places(const mirror *m, const int64_t *rows, int64_t count, int64_t *places, int64_t *handles);
/* The row with this place, or -1 if there never was one here. */
int64_t mirror_row(const mirror *m, int64_t place);
/* Sets the bits in `mask`, which covers all rows and is zero, of the rows whose place has its bit set in `by_place`. */
void mirror_mask(const mirror *m, const uint64_t *by_place, int64_t places_count, uint64_t *mask);

/* Called with the writer's lock. If append or remove fails, the mirror is neither old nor new: abandon it. */
ww_status mirror_reserve(mirror *m, int64_t rows_more);
ww_status mirror_append(mirror *m, const mirror_rows *rows);
ww_status mirror_remove(mirror *m, const int64_t *places, int64_t count); /* ignores places that are not here */
void mirror_set_state(mirror *m, int64_t sequence, int64_t next_place);
/* Frees the memory of removed rows if most rows are removed. Row numbers change, places do not. */
ww_status mirror_tidy(mirror *m);
/* Removes it from the table: its holder must get another one, which is read from the beginning. */
void mirror_abandon(mirror *m);

/* One file must not be open in two SQLites of one process: closing it in one drops the locks of the other. Counts a use of the
 * file by this SQLite. Returns WW_UNSUPPORTED if another SQLite uses it. A child of fork() inherits SQLite's record of its
 * parent's locks and would take none itself: returns WW_OTHER_PROCESS if the file was open then. SQLite locks other processes
 * out only with the first connection of a process: returns WW_BUSY if the file is already open without that. `path` is for the
 * message. */
ww_status mirror_file_enter(const mirror_key *file, const char *path);
void mirror_file_leave(const mirror_key *file);

#endif
