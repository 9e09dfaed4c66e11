/* The operations of a collection as one table, filled by collections in memory (collection.c) and by those in a store's file
 * (store/reading.c).
 *
 * Every public call checks its arguments once, in this folder, and then goes through the table. So all arguments are checked,
 * except for what only the rows can tell, such as whether an id exists. These functions are only called in the process that
 * made the collection.
 */
#ifndef WW_VECTORS_OPERATIONS_H
#define WW_VECTORS_OPERATIONS_H

#include <stdbool.h>

#include <warpwave/ivf.h>
#include <warpwave/selection.h>
#include <warpwave/vectors.h>

typedef enum write_kind {
    WRITE_ADD,
    WRITE_UPSERT,
    WRITE_UPDATE /* of existing rows; without payloads or texts, rows keep theirs */
} write_kind;

/* One field of a row and where to write it; `fetch` says which. */
typedef struct row_request {
    uint32_t fetch;  /* 0: the handle; WW_FETCH_VECTORS: elements; WW_FETCH_IDS or WW_FETCH_PAYLOADS: text */
    int64_t *handle; /* only the requested field is used */
    void *elements;  /* dim, in the collection's type */
    const char *function;
    char *text; /* like ww_collection_id() */
    size_t capacity;
    size_t *length;
} row_request;

/* New payloads: payloads[i] for ids[i], or, with a selection, payloads[0] for each of its rows. */
typedef struct payload_change {
    const char *const *ids;
    const char *const *payloads;
    int64_t count;                 /* entries of the lists */
    const ww_selection *selection; /* NULL: `ids` names the rows */
    bool merge;                    /* fields replace fields of the same name, and the others stay */
} payload_change;

/* A row on a collection's map (src/map makes and reads maps). */
typedef struct map_point {
    int64_t handle;
    int64_t row; /* the row's number, valid while the collection's epoch is that of the map */
    float x, y;
    uint32_t hash;   /* hash of the vector that determined its position */
    uint32_t placed; /* 1: placed at the mean of its neighbours after the map was made */
} map_point;

typedef struct kept_map {
    int64_t version; /* changes with every write; 0: there is no map */
    int64_t epoch;   /* the collection's epoch when its rows were read: row numbers are valid while it is the same */
    int64_t seed;
    int32_t neighbours, steps;
    int64_t count;
    map_point *points; /* by handle; from memory_alloc() */
} kept_map;

/* What to write of a map: everything or, if the stored map still has that version, only the changes. */
typedef struct map_change {
    const kept_map *map;    /* the new map, with the old one's version */
    const int64_t *changed; /* indices of new and changed points */
    int64_t changed_count;
    const int64_t *gone; /* handles of removed points */
    int64_t gone_count;
    bool whole; /* true: write everything */
} map_change;

typedef struct collection_operations {
    bool host_rows; /* writes only take rows from host memory, not tensors of a GPU */
    bool where;     /* queries may have a `where` */
    bool texts;     /* rows may have texts, queries a `match`, and writes ids to discard */

    /* Writes: complete or not at all. Those of a store are on disk when they return. */
    ww_status (*write)(ww_collection *c, const ww_rows *rows, write_kind kind);
    ww_status (*remove)(ww_collection *c, const char *const *ids, int64_t count, int64_t *missing); /* NULL: all or none */
    ww_status (*select_remove)(ww_collection *c, const ww_selection *selection, int64_t *removed);
    ww_status (*set_payloads)(ww_collection *c, const payload_change *change, int64_t *changed);
    ww_status (*clear)(ww_collection *c);
    ww_status (*compact)(ww_collection *c, ww_progress progress, void *user);
    ww_status (*reserve)(ww_collection *c, int64_t rows);
    ww_status (*move)(ww_collection *c, ww_device *device);
    ww_status (*check)(ww_collection *c, ww_damage_report *report, ww_progress progress, void *user);

    /* Indexes (ivf.h). The structs are read; their values are not checked yet. */
    ww_status (*build_ivf)(ww_collection *c, const ww_ivf_config *config);
    ww_status (*calibrate)(ww_collection *c, const ww_calibrate_config *config);
    ww_status (*drop_ivf)(ww_collection *c);
    ww_status (*describe_ivf)(ww_collection *c, ww_ivf_info *info); /* called internally: struct_size need not be checked */

    /* Reads. Queries in host memory are finite; a query_tensor is dense f32 on a GPU. */
    ww_status (*query)(ww_collection *c, const ww_query *query, ww_results **results);
    /* There is at least one result to find. */
    ww_status (*search)(ww_collection *c, const ww_query *query, int64_t *rows, float *scores);
    ww_status (*get)(ww_collection *c, const ww_get *get, ww_results **results);
    ww_status (*select)(ww_collection *c, const ww_selection *selection, uint32_t fetch, ww_results **results);
    ww_status (*select_count)(ww_collection *c, const ww_selection *selection, int64_t *count);
    /* Cursors (vectors/internal/cursor.h). A selection of NULL means all rows. Reading at the end gives results without hits.
     * After a failed open nothing is closed. */
    ww_status (*cursor_open)(ww_cursor *cursor, const ww_selection *selection);
    ww_status (*cursor_read)(ww_cursor *cursor, int64_t count, ww_results **results);
    void (*cursor_close)(ww_cursor *cursor);
    ww_status (*find)(ww_collection *c, const char *id, int64_t *row);
    ww_status (*find_handle)(ww_collection *c, int64_t handle, int64_t *row);
    /* Returns WW_NOT_FOUND if the row does not exist. */
    ww_status (*row)(ww_collection *c, int64_t row, const row_request *request);
    int64_t (*next)(ww_collection *c, int64_t row);
    int64_t (*count)(ww_collection *c);
    ww_status (*digest)(ww_collection *c, uint64_t *digest);
    ww_status (*count_words)(ww_collection *c, const char *text, ww_word_counts *counts); /* only with `texts` */
    ww_status (*describe)(ww_collection *c, ww_collection_info *info); /* called internally: struct_size need not be checked */
    /* Returns the device that currently searches, which the caller closes; NULL: not available. */
    ww_device *(*device)(ww_collection *c);

    /* The collection's map. A damaged map counts as none. `epoch` changes when rows are renumbered. Writing NULL drops the map;
     * `*kept` says whether it could be written. */
    ww_status (*map_read)(ww_collection *c, kept_map *map, int64_t *epoch);
    ww_status (*map_write)(ww_collection *c, const map_change *change, bool *kept);

    void (*destroy)(ww_collection *c); /* also frees the struct */
} collection_operations;

#endif
