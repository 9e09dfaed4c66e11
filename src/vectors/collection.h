/* A collection as the files of this room see it, and its lock.
 *
 * Readers share the lock; a writer has it alone, and one that waits goes before readers that come later, so that endless
 * searches cannot keep it out.
 */
#ifndef WW_VECTORS_COLLECTION_H
#define WW_VECTORS_COLLECTION_H

#include <pthread.h>

#include <warpwave/vectors.h>

#include "base/process.h"
#include "base/status.h"
#include "vectors/durable/operations.h"
#include "vectors/ids/ids.h"
#include "vectors/segments.h"

struct ww_collection {
    pthread_rwlock_t lock; /* for `device`, `stream` and from `store` on; the rest never changes */
    process_mark made_in;  /* the one process that may use it: in a child the lock may be held for ever */
    ww_device *device;
    device_stream *stream; /* the writers' */
    char *name;
    int32_t dim;
    ww_metric metric;
    ww_vector_type type;
    bool keep_host_copy; /* asked for; whether there is one also depends on the device */
    ww_screen screen;
    ww_row_place rows;
    const collection_operations *durable; /* of a collection that is kept elsewhere (durable/operations.h), or NULL */
    void *owner;                          /* for them */
    row_store store;
    id_table ids;           /* of live rows, if ids are stored */
    bool ids_are_stored;    /* else all ids are automatic (automatic_ids.h), and in no table or page */
    id_table moved;         /* rows whose handle is out of order (handles.h) */
    int64_t next_handle;    /* never goes back */
    int64_t highest_number; /* no id that the caller gave was the decimal text of a larger one; -1: none was a number */
};

void collection_lock_read(ww_collection *collection);
void collection_lock_write(ww_collection *collection);
void collection_unlock(ww_collection *collection);

/* What a store of the collection's keeps of a row while it is on `device`: no second copy on the CPU, whose rows the host has.
 */
row_shape collection_shape(const ww_collection *collection, const ww_device *device);

/* Forgets everything and frees it. With the writer's lock. */
void collection_empty(ww_collection *collection);

/* What every public function asks first, before it takes the lock: is it a collection, and of this process? */
ww_status collection_check(const ww_collection *collection, const char *function);

/* WW_INVALID_ARGUMENT for rows in a place that is none, or where they cannot be. */
ww_status collection_check_rows(const char *function, const ww_collection_config *config);

/* WW_INVALID_ARGUMENT that says `what` was NULL. */
ww_status fail_null(const char *function, const char *what);

/* Is the canonical squared norm of `dim` floats finite? No other vector is let in. */
bool vector_is_finite(const float *vector, int32_t dim);

/* Says of such a vector why not: "column 3 is NaN; ...", or that its squared norm is not finite. Returns `text`. */
enum { VECTOR_FAULT_BYTES = 80 };
const char *vector_fault(const float *vector, int32_t dim, char text[VECTOR_FAULT_BYTES]);

#endif
