/* The lists of an index that a GPU has: push.c makes them, search.c reads them. */
#ifndef WW_GPU_SEARCH_LISTS_LISTS_HELD_H
#define WW_GPU_SEARCH_LISTS_LISTS_HELD_H

#include "gpu/search/segment_table.h"
#include "kernels/screen/screen_args.h"

struct device_lists {
    buffer *parts; /* memory that lists lie in */
    int64_t part_count;
    buffer table;       /* a kernel_list for each list */
    kernel_list *lists; /* the same on the host */
    int64_t *room;      /* entries that each list has room for: whole words of 64 */
    int64_t count;
    int64_t entries, entries_lost; /* that there is room for, and of these in places that lists have outgrown */
};

/* A table in which row r is in word r / 64: where segments leave numbers out it has entries without rows, which nobody reads.
 * Otherwise like segment_table_make(). */
ww_status gpu_lists_segments(const search_job *job, segment_table *table, kernel_rows *rows);

#endif
