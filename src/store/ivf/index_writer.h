/* Keeping the tables of an index in step with the rows: a part of the writer (store/writer.h).
 *
 * New vectors wait in a buffer until there are enough of them to be compared with the centroids at once, or until the change
 * ends. That is computed on the CPU, which gives the same lists as every other device.
 */
#ifndef WW_STORE_IVF_INDEX_WRITER_H
#define WW_STORE_IVF_INDEX_WRITER_H

#include "store/ivf/tables.h"

enum { INDEX_STATEMENTS = 8 };

/* Begins zeroed. */
typedef struct index_writer {
    sqlite3_stmt *statements[INDEX_STATEMENTS];
    ww_device *device; /* the CPU, or NULL */
    ivf_header header;
    ww_collection *outline; /* of the index whose header has this version, or NULL: */
    int64_t version;
    bool known;         /* the header, and what the outline says of lists, are as the transaction has them */
    uint8_t *dirty;     /* of each list: it has to be written; */
    int64_t dirty_room; /* in lists */
    float *pending;     /* vectors that are in no list yet */
    int64_t *places;    /* their places */
    int64_t pending_count, pending_room;
} index_writer;

void index_writer_close(index_writer *w);
void index_writer_forget(index_writer *w); /* after a rollback, and after a commit */
int64_t index_writer_preparations(const index_writer *w);

/* Tell the index that a vector was added (`elements` in the collection's type) or is about to be removed. The collection has an
 * index. */
ww_status index_writer_add(index_writer *w, const ivf_tables *t, int64_t place, const void *elements);
ww_status index_writer_remove(index_writer *w, const ivf_tables *t, int64_t place);

/* Ends the change: waiting rows enter their lists, lists that are too large are split, and everything is written. */
ww_status index_writer_finish(index_writer *w, const ivf_tables *t);

/* Writes an index that was built from the rows of a mirror, in place of one that there is; `t` has the sequence of the write.
 * What a calibration has learnt goes to the index that there is. */
ww_status index_writer_build(index_writer *w, const ivf_tables *t, const ivf *index, const mirror *rows);
ww_status index_writer_calibrate(index_writer *w, const ivf_tables *t, const ivf_calibration *learnt);

/* The outline (vectors/internal/lists.h) of what the tables say, on `device`. */
ww_status index_outline(const ivf_tables *t, const ivf_header *header, const ivf_lists *lists, ww_device *device,
                        ww_collection **outline);

/* Writes the lists of an outline and their centroids in place of all that there are; rows and header stay. */
ww_status index_writer_write_all(index_writer *w, const ivf_tables *t, const ww_collection *outline);

/* Merges lists that removals have left tiny; `t` has the sequence of a write after which everything is read anew. In a
 * transaction of the caller's, who rolls back after a failure. */
ww_status index_writer_merge(const ivf_tables *t);

#endif
