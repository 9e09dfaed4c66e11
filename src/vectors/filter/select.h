/* The rows of a collection in memory that belong to a selection. */
#ifndef WW_VECTORS_FILTER_SELECT_H
#define WW_VECTORS_FILTER_SELECT_H

#include "vectors/collection.h"

typedef struct selected_row {
    int64_t handle, row;
} selected_row;

typedef struct selected_rows {
    selected_row *rows; /* in order of handles; memory_free() */
    int64_t count, capacity;
    bool disordered; /* not in order of handles; used while rows are being found */
} selected_rows;

/* Finds them. Called with a lock. If it fails, nothing must be freed. */
ww_status selected_rows_find(const ww_collection *c, const ww_selection *selection, selected_rows *found);

/* Reads the caller's selection and checks all of it. */
ww_status selection_read(const ww_collection *c, const char *function, const ww_selection *callers, ww_selection *read);

#endif
