/* A batch of rows that is being added to a collection, and its ids, which are checked and entered while everything can still be
 * undone (batch.c). */
#ifndef WARPWAVE_VECTORS_BATCH_H
#define WARPWAVE_VECTORS_BATCH_H

#include "vectors/collection.h"
#include "vectors/tensor_rows.h"

static const uint32_t NOT_REPLACED = UINT32_MAX; /* larger than every row number, because there are at most 2^32-1 rows */

typedef struct batch {
    ww_rows rows;
    bool upsert;
    bool update;           /* an upsert of existing rows; without payloads, rows keep theirs */
    bool without_ids;      /* neither the batch nor the collection has ids from callers, so none are stored (automatic_ids.h) */
    char *narrowed;        /* rows that are converted from f32 to the collection's type, or NULL */
    int64_t narrowed_rows; /* rows that `typed` has room for */
    tensor_rows given;     /* rows of a tensor, in its type, ... */
    tensor_rows rounded;   /* ... and, if they stay on the device, in the collection's type if it differs */
    const tensor_rows *here; /* which of the two is written; NULL: the rows come from the host */
    int64_t first_row;       /* the number of the batch's first row */
    int64_t segments_before; /* number of segments before the batch */
    int64_t ids_staged;      /* rows whose ids are in the table */
    int64_t replaced_count;
    uint32_t *replaced; /* of an upsert: the older row with this row's id, or NOT_REPLACED */
    bool table_is_new;
    id_table table_before;  /* if table_is_new: the old table, unchanged */
    int64_t moved_staged;   /* rows that were checked for the table of rows out of order */
    bool moved_is_new;      /* like table_is_new */
    id_table moved_before;  /* if so: the old table */
    int64_t next_handle;    /* the collection's next value */
    int64_t highest_number; /* the collection's next value */
    bool first_page_saved;  /* the first page had rows before */
    row_page first_page;    /* if so: its old contents */
    int64_t bytes_ids;      /* what the batch adds to the store's counts */
    int64_t bytes_payloads;
    int64_t bytes_handles;
    struct ivf_place *places; /* the lists of the rows in the collection's index; NULL: no index */
} batch;

/* Checks the ids of the batch and enters them, with the handles, in the pages and tables of the collection. If it fails, some
 * are entered: batch_unstage_ids() removes them. */
ww_status batch_stage_ids(batch *b, ww_collection *c);

/* Removes the ids, and the rows that are out of order, from the tables. Pages do not change. */
void batch_unstage_ids(batch *b, ww_collection *c);

#endif
