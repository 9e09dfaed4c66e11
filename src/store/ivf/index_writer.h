/* Keeping the tables of an index in step with the rows: a part of the writer (store/writer.h).
 *
 * New vectors wait in a buffer until there are enough to compare with the centroids together, or until the change ends. The CPU
 * computes this; every other device would give the same lists.
 */
#ifndef WW_STORE_IVF_INDEX_WRITER_H
#define WW_STORE_IVF_INDEX_WRITER_H

#include "store/ivf/tables.h"

enum { INDEX_STATEMENTS = 8 };

/* Starts zeroed. */
typedef struct index_writer {
    sqlite3_stmt *statements[INDEX_STATEMENTS];
    ww_device *device; /* the CPU, or NULL */
    ivf_header header;
    ww_collection *outline; /* of the index with `version`, or NULL */
    int64_t version;
    bool known;         /* header and outline agree with the transaction */
    uint8_t *dirty;     /* per list: what must be written */
    int64_t dirty_room; /* capacity of `dirty`, in lists */
    float *pending;     /* vectors that are in no list yet */
    int64_t *places;    /* their places */
    int64_t pending_count, pending_room;
} index_writer;

void index_writer_close(index_writer *w);
void index_writer_forget(index_writer *w); /* after a rollback, and after a commit */
int64_t index_writer_preparations(const index_writer *w);

/* Tell the index that a vector was added (`elements` in the collection's type) or is about to be removed. The collection must
 * have an index. */
ww_status index_writer_add(index_writer *w, const ivf_tables *t, int64_t place, const void *elements);
ww_status index_writer_remove(index_writer *w, const ivf_tables *t, int64_t place);

/* Ends the change: puts waiting rows into their lists, splits lists that are too large, and writes everything. */
ww_status index_writer_finish(index_writer *w, const ivf_tables *t);

/* The first writes an index that was built from the rows of a mirror, replacing any other; `t` has the sequence of the write.
 * The second adds what a calibration has learnt to the existing index. */
ww_status index_writer_build(index_writer *w, const ivf_tables *t, const ivf *index, const mirror *rows);
ww_status index_writer_calibrate(index_writer *w, const ivf_tables *t, const ivf_calibration *learnt);

/* Makes the outline (vectors/internal/lists.h) of the index in the tables, on `device`. */
ww_status index_outline(const ivf_tables *t, const ivf_header *header, const ivf_lists *lists, ww_device *device,
                        ww_collection **outline);

/* Replaces all lists and centroids by those of an outline; leaves rows and header unchanged. */
ww_status index_writer_write_all(index_writer *w, const ivf_tables *t, const ww_collection *outline);

/* Merges lists that removals have left tiny; `t` has the sequence of a write after which everything is read again. Runs in the
 * caller's transaction, which the caller rolls back after a failure. */
ww_status index_writer_merge(const ivf_tables *t);

#endif
