/* A view as its files see it (view.h). */
#ifndef WW_STORE_VIEW_VIEW_STATE_H
#define WW_STORE_VIEW_VIEW_STATE_H

#include "store/view/view.h"

typedef enum view_statement {
    READ_VECTORS, /* place, handle, vector, checksum, starting at a place */
    READ_REMOVED, /* places removed after a sequence */
    READ_ENTRY,   /* place, id, payload, checksums of a handle */
    READ_VECTOR,  /* handle, vector, checksum of a place */
    FIND_BY_ID,   /* handle, place */
    LIST_PLACES,  /* place, handle after a place */
    FIND_PLACE,   /* handle of a place */
    READ_GONE,    /* removed places, starting at a place, in order */
    READ_TEXT,    /* text of a handle; only if there are texts */
    VIEW_STATEMENT_COUNT
} view_statement;

struct view {
    sqlite3 *db;
    char *schema;
    char *name;
    char *device_name;
    ww_device *device;
    ww_screen screen;
    bool keep_host_copy;
    ww_row_place rows;
    int64_t memory_bytes;
    ww_progress progress;
    void *progress_user;

    bool file_entered;
    mirror_key file; /* of the connection's database, if there is a file */
    sqlite3_stmt *find;
    sqlite3_stmt *statements[VIEW_STATEMENT_COUNT];
    bool has_checksums;       /* the statements read them: the tables of an earlier version have none */
    collection_record record; /* of the snapshot */

    mirror *shared; /* or NULL */
    mirror_key key; /* of `shared` */
    bool restarts;
    bool behind; /* the snapshot was older than the shared mirror; a newer one will do */

    bool changed;           /* the connection's transaction has changes */
    bool uncertain;         /* view_uncertain() */
    collection_record base; /* the record before those changes */
    mirror *overlay;        /* vectors that the changes added, or NULL */
    uint64_t *overlay_mask; /* rows of the shared mirror that the changes left; memory_free() */
    int64_t overlay_rows;   /* covered by the mask */

    mirror *own; /* a private mirror, or NULL */
    int64_t own_uid, own_epoch;
    int64_t own_changes; /* the connection's change count when it was read, if the view is uncertain; else 0 */

    bool index_changed;  /* by the transaction: the mirrors have the old index */
    int64_t index_reads; /* how often the tables of an index were read */

    bool streaming; /* between begin and end: rows are read from the file */
    mirror *active; /* between begin and end, unless streaming: shared or own, locked */
    bool overlaid;  /* the overlay must be searched too */

    uint64_t *kept_mask; /* of a list (view_places.number) */
    int64_t kept_number, kept_sequence, kept_rows;
    const mirror *kept_of;
};

/* Fetches what `what` names for the hits of results whose rows are places. Frees the results if this fails or `status` is a
 * failure. */
ww_status view_finish(view *v, ww_status status, uint32_t what, ww_results *made, ww_results **results);

/* Makes the bits of the places that the query's mask and the list, which may be NULL, admit (memory_free()); NULL: all. */
ww_status view_admit(const view *v, const ww_query *query, const view_places *only, uint64_t **admitted);

/* A search, and the list of places that it may find; NULL: all. */
typedef struct view_search {
    view *v;
    const ww_query *query;
    const view_places *only;
} view_search;

/* Searches the mirror with the mask of the search and, if not NULL, with `removed`: the bits of rows that still exist. */
ww_status view_search_mirror(const view_search *s, mirror *m, const uint64_t *removed, ww_results **results);
/* Merges two results, query by query, keeping the best hits. All places of the second are larger. */
ww_status view_merge(const view_search *s, ww_results *const parts[2], ww_results **results);
/* Searches the rows in the file, without a mirror. */
ww_status view_stream(const view_search *asked, ww_results **results);

/* Reading vectors: `take` gets them in pieces, in order of place, on another thread. */
typedef struct view_reading {
    int64_t first_place, rows_expected;
    ww_status (*take)(void *context, const mirror_rows *rows);
    void *context;
    const ww_query *query; /* whose caller is asked whether to go on; NULL: none */
} view_reading;
ww_status view_read(view *v, const view_reading *reading, int64_t *count);
/* WW_CORRUPT_FILE unless this is the number of rows. */
ww_status view_check_count(const view *v, int64_t rows);

/* The settings of a mirror of this collection. */
ww_collection_config view_mirror_config(const view *v);

/* Prepares a statement if necessary. */
ww_status view_ready(view *v, view_statement which);

/* Brings `m` to the snapshot: adds new rows and removes old ones, or loads everything. Rows before `first_place` belong to
 * another mirror, `base`: if they were removed, their bits in `gone` (a mask over the rows of `base`) are cleared. The caller
 * holds the mirror's lock for writing. After a failure the mirror is unusable. */
typedef struct view_overlay {
    int64_t first_place;
    const mirror *base;
    uint64_t *gone; /* may be NULL */
} view_overlay;
ww_status view_catch_up(view *v, mirror *m, const view_overlay *overlay);

#endif
