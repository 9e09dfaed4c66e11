/* A batch of rows that is being added to a collection, and its ids, which are checked and entered while everything can still be
 * undone (batch.c). */
#ifndef WARPWAVE_VECTORS_BATCH_H
#define WARPWAVE_VECTORS_BATCH_H

#include "vectors/collection.h"
#include "vectors/tensor_rows.h"

static const uint32_t NOT_REPLACED = UINT32_MAX; /* not the number of any row: there are at most 2^32-1 rows */

typedef struct batch {
    ww_rows rows;
    bool upsert;
    bool update;      /* an upsert of rows that are there; without payloads theirs stay */
    bool without_ids; /* neither the batch nor the collection has ids from the caller: nothing to store (automatic_ids.h) */
    char *narrowed;   /* rows that are converted from f32 to the collection's type, or NULL */
    int64_t narrowed_rows;   /* rows that `typed` has room for */
    tensor_rows given;       /* rows that came as a tensor, in its type; and if they stay on the device: */
    tensor_rows rounded;     /* the same rows in the collection's type, if it differs; */
    const tensor_rows *here; /* the one of the two that is written; NULL: the rows come from the host */
    int64_t first_row;       /* the number of the batch's first row */
    int64_t segments_before; /* how many there were */
    int64_t ids_staged;      /* rows whose ids are in the table */
    int64_t replaced_count;
    uint32_t *replaced; /* of an upsert: the older row with this row's id, or NOT_REPLACED */
    bool table_is_new;
    id_table table_before;  /* if so: what it was; then it has not been touched */
    int64_t moved_staged;   /* rows that were looked at for the table of those out of order */
    bool moved_is_new;      /* as with the table of ids */
    id_table moved_before;  /* if so: what it was */
    int64_t next_handle;    /* what the collection's will be */
    int64_t highest_number; /* what the collection's will be */
    bool first_page_saved;  /* the first page had rows: */
    row_page first_page;    /* what it was */
    int64_t bytes_ids;      /* what the batch adds to the store's figures */
    int64_t bytes_payloads;
    int64_t bytes_handles;
    struct ivf_place *places; /* the lists of the rows in the collection's index; NULL: it has none */
} batch;

/* Checks the ids of the batch and enters them, with the handles, in the pages and tables of the collection. On failure some are
 * entered: batch_unstage_ids() removes them. */
ww_status batch_stage_ids(batch *b, ww_collection *c);

/* Takes the ids and the rows that are out of order back out of the tables. The pages stay as they are. */
void batch_unstage_ids(batch *b, ww_collection *c);

#endif
