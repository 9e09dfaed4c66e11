/* The lists of an index in device memory: push.c writes them, search.c reads them. */
#ifndef WW_GPU_SEARCH_LISTS_LISTS_HELD_H
#define WW_GPU_SEARCH_LISTS_LISTS_HELD_H

#include "gpu/search/segment_table.h"
#include "kernels/screen/screen_args.h"

struct device_lists {
    buffer *parts; /* device memory that holds the lists */
    int64_t part_count;
    buffer table;       /* a kernel_list for each list */
    kernel_list *lists; /* a host copy of the table */
    int64_t *room;      /* capacity of each list, in whole words of 64 entries */
    int64_t count;
    int64_t entries, entries_lost; /* capacity of all lists together, and how much of it lists have outgrown */
};

#endif
