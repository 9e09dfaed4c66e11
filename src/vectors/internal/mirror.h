/* Mirrors: the vectors of a collection in a file, in memory, where they are searched.
 *
 * A mirror is a plain collection without ids and payloads. Its rows are in order of *place*: a number that every vector gets
 * when it is written to the file and that no other ever gets. There is one mirror for each file, collection and device in a
 * process, for all its users: this table is in the core so that the library of the store and the extension of SQLite, which are
 * linked apart, share it, and they reach it through core.h. A mirror knows no file. Who reads the file says up to which
 * *sequence* (the number of the last write) the mirror is read, and what came and went.
 *
 * Which row is which place and which handle is kept as runs of rows for which both follow one another: 24 bytes a run, one run
 * for rows that were only ever added.
 */
#ifndef WW_VECTORS_INTERNAL_MIRROR_H
#define WW_VECTORS_INTERNAL_MIRROR_H

#include <stdbool.h>

#include <warpwave/vectors.h>

typedef struct mirror mirror;

/* What makes two mirrors the same one. */
typedef struct mirror_key {
    uint64_t file_device, file_inode;
    const void *sqlite; /* an address in the SQLite that reads the file */
    bool exclusive;     /* for mirror_file_enter() alone: other processes must be kept out */
    int64_t uid;        /* of the collection */
    int64_t epoch;      /* of the collection */
    char device[32];
    int64_t screen;
    int64_t rows; /* where they are */
} mirror_key;

/* How far a mirror is read. */
typedef struct mirror_state {
    bool loaded;        /* else nothing was read yet, and the rest is 0 */
    bool abandoned;     /* nobody may use it any more: get another one */
    int64_t sequence;   /* of the last write that is in it */
    int64_t next_place; /* every vector with a smaller place is in it, or is gone */
    int64_t rows;       /* live and removed: what a mask has to cover */
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

/* Finds the mirror with that key, or makes an empty one. Each is released with mirror_release(), and freed with the last. */
ww_status mirror_acquire(const mirror_key *key, ww_device *device, const ww_collection_config *config, mirror **found);

/* Makes one that nobody else finds. */
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
/* Searches it with a query that is checked: rows of the results are places. The mask is over the mirror's own rows. */
ww_status mirror_query(mirror *m, const ww_query *query, ww_results **results);
/* Puts places and handles for `count` row numbers; -1 stays -1 in both. `rows` and `places` may be the same. */
void mirror_places(const mirror *m, const int64_t *rows, int64_t count, int64_t *places, int64_t *handles);
/* The row with this place, or -1 if there never was one here. */
int64_t mirror_row(const mirror *m, int64_t place);
/* Sets in `mask`, which covers all rows and is zero, the bits of rows whose place has its bit set in `by_place`. */
void mirror_mask(const mirror *m, const uint64_t *by_place, int64_t places_count, uint64_t *mask);

/* With the writer's lock. A failure of append or remove leaves a mirror that is neither old nor new: abandon it. */
ww_status mirror_reserve(mirror *m, int64_t rows_more);
ww_status mirror_append(mirror *m, const mirror_rows *rows);
ww_status mirror_remove(mirror *m, const int64_t *places, int64_t count); /* places that are not here are left out */
void mirror_set_state(mirror *m, int64_t sequence, int64_t next_place);
/* Gives back the memory of removed rows if they are most of them. Row numbers change, places do not. */
ww_status mirror_tidy(mirror *m);
/* Takes it out of the table: its holder must get another one, which is read from the beginning. */
void mirror_abandon(mirror *m);

/* One file must not be open in two SQLites of one process: closing it in one of them drops the locks of the other. Counts a use
 * of the file by this SQLite; WW_UNSUPPORTED if another one is using it. A child of fork() has SQLite's notes of the locks that
 * its parent holds, and would take none: WW_OTHER_PROCESS if the file was open then. SQLite locks other
 * processes out only with the first connection of a process: WW_BUSY if the file is open already, not exclusively. `path` is
 * for the message. */
ww_status mirror_file_enter(const mirror_key *file, const char *path);
void mirror_file_leave(const mirror_key *file);

#endif
