/* The rows of a collection in memory that a selection has. */
#ifndef WW_VECTORS_FILTER_SELECT_H
#define WW_VECTORS_FILTER_SELECT_H

#include "vectors/collection.h"

typedef struct selected_row {
    int64_t handle, row;
} selected_row;

typedef struct selected_rows {
    selected_row *rows; /* in order of handles; memory_free() */
    int64_t count, capacity;
    bool disordered; /* while they are found */
} selected_rows;

/* Finds them. With a lock. Leaves nothing to free where it fails. */
ww_status selected_rows_find(const ww_collection *c, const ww_selection *selection, selected_rows *found);

/* Reads a selection of the caller's and checks all of it. */
ww_status selection_read(const ww_collection *c, const char *function, const ww_selection *callers, ww_selection *read);

#endif
