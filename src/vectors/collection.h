/* A collection as the files of this folder see it, and its lock.
 *
 * Readers share the lock; a writer holds it alone. A waiting writer goes before readers that come later, so endless searches
 * cannot keep it out.
 */
#ifndef WW_VECTORS_COLLECTION_H
#define WW_VECTORS_COLLECTION_H

#include <pthread.h>

#include <warpwave/vectors.h>

#include "base/status.h"
#include "base/system/process.h"
#include "vectors/ids/ids.h"
#include "vectors/operations.h"
#include "vectors/segments.h"

struct ivf; /* vectors/ivf/ivf.h */

struct ww_collection {
    const collection_operations *operations;
    process_mark made_in; /* the only process that may use it: after fork() the lock could stay locked forever in the child */
    char *name;
    int32_t dim;
    ww_metric metric;
    ww_vector_type type;
    bool keep_host_copy; /* as requested; the device decides whether there is a screen */
    ww_screen screen;
    ww_row_place rows;
    /* Changes only under `lock` or, for a collection in a file, its store's lock; the fields above never change. */
    ww_device *device;

    /* For a collection in memory, else zero. */
    pthread_rwlock_t lock;
    device_stream *stream; /* the writers' */
    row_store store;
    id_table ids;           /* of live rows, if ids are stored */
    bool ids_are_stored;    /* otherwise all ids are automatic (automatic_ids.h), and neither tables nor pages have them */
    id_table moved;         /* rows whose handle is out of order (handles.h) */
    int64_t next_handle;    /* never decreases */
    int64_t highest_number; /* the largest number that a caller used as an id; -1: none */
    struct ivf *index;      /* NULL: no index */
    kept_map map;
    int64_t epoch;                /* incremented when rows are renumbered */
    pthread_mutex_t cursors_lock; /* protects the list; taken after `lock` */
    ww_cursor *cursors;           /* open ones */
};

/* Fills in what every collection has, from a checked config; the rest stays unchanged. Keeps `device` open. Nothing must be
 * freed after a failure. */
ww_status collection_init(ww_collection *collection, ww_device *device, const ww_collection_config *config,
                          const collection_operations *operations);
void collection_release(ww_collection *collection);

/* Makes a lock of readers and writers for which a waiting writer goes before new readers. */
ww_status collection_lock_create(pthread_rwlock_t *lock);

void collection_lock_read(ww_collection *collection);
void collection_lock_write(ww_collection *collection);
void collection_unlock(ww_collection *collection);

/* For writes that change rows: the writer's lock, after open cursors have copied what they need. */
void collection_lock_rows(ww_collection *collection);

/* What the collection's store keeps for each row while it is on `device`: on the CPU no second copy, because the rows are in
 * host memory. */
row_shape collection_shape(const ww_collection *collection, const ww_device *device);

/* Removes and frees everything. The caller holds the writer's lock. */
void collection_empty(ww_collection *collection);

/* Every public function calls this before it takes the lock. Fails unless it is a collection of this process. */
ww_status collection_check(const ww_collection *collection, const char *function);

/* Fails with WW_INVALID_ARGUMENT if the place of rows is unknown, or rows cannot be there. */
ww_status collection_check_rows(const char *function, const ww_collection_config *config);

/* The operations of a collection in memory (operations.h), each in the file of the public call; queries are in search.h. */
ww_status memory_write(ww_collection *c, const ww_rows *rows, write_kind kind);
ww_status memory_remove(ww_collection *c, const char *const *ids, int64_t count, int64_t *missing);
ww_status memory_select_remove(ww_collection *c, const ww_selection *selection, int64_t *removed);
ww_status memory_set_payloads(ww_collection *c, const payload_change *change, int64_t *changed);
ww_status memory_clear(ww_collection *c);
ww_status memory_compact(ww_collection *c, ww_progress progress, void *user);
ww_status memory_reserve(ww_collection *c, int64_t rows);
ww_status memory_move(ww_collection *c, ww_device *device);
ww_status memory_check(ww_collection *c, ww_damage_report *report, ww_progress progress, void *user);
ww_status memory_build_ivf(ww_collection *c, const ww_ivf_config *config);
ww_status memory_calibrate(ww_collection *c, const ww_calibrate_config *config);
ww_status memory_drop_ivf(ww_collection *c);
ww_status memory_describe_ivf(ww_collection *c, ww_ivf_info *info);
ww_status memory_get(ww_collection *c, const ww_get *get, ww_results **results);
ww_status memory_select(ww_collection *c, const ww_selection *selection, uint32_t fetch, ww_results **results);
ww_status memory_select_count(ww_collection *c, const ww_selection *selection, int64_t *count);
ww_status memory_find(ww_collection *c, const char *id, int64_t *row);
ww_status memory_find_handle(ww_collection *c, int64_t handle, int64_t *row);
ww_status memory_row(ww_collection *c, int64_t row, const row_request *request);
int64_t memory_next(ww_collection *c, int64_t row);
ww_status memory_map_read(ww_collection *c, kept_map *map, int64_t *epoch);
ww_status memory_map_write(ww_collection *c, const map_change *change, bool *kept);

/* Copies a text of `length` bytes to the buffer of a row_request. Fails with WW_OUT_OF_RANGE if the buffer is too small. */
ww_status row_text_copy(const row_request *request, const char *text, size_t length);

/* Fails with WW_INVALID_ARGUMENT and a message that `what` is NULL. */
ww_status fail_null(const char *function, const char *what);

/* Returns true if the canonical squared norm of `dim` floats is finite. Other vectors are refused. */
bool vector_is_finite(const float *vector, int32_t dim);

/* The canonical squared norm. */
float vector_squared_norm(const float *vector, int32_t dim);

/* Writes why such a vector is refused: "column 3 is NaN; ...", or that its squared norm is not finite. Returns `text`. */
enum { VECTOR_FAULT_BYTES = 80 };
const char *vector_fault(const float *vector, int32_t dim, char text[VECTOR_FAULT_BYTES]);

#endif
