/* The table of segments that kernels read (kernels/search/segments.h), made of a search job's. */
#ifndef WW_GPU_SEARCH_SEGMENT_TABLE_H
#define WW_GPU_SEARCH_SEGMENT_TABLE_H

#include <stddef.h>

#include "device/backend.h"
#include "kernels/search/segments.h"

/* In host memory; goes to the device as it is. */
typedef struct segment_table {
    kernel_segment *segments; /* only those that have rows */
    size_t bytes;
} segment_table;

/* Makes the table, and fills in what `rows` says of it except for its address on the device and the mask. Freed with
 * memory_free(table->segments), which may be NULL. Fails without memory. */
ww_status segment_table_make(const search_job *job, segment_table *table, kernel_rows *rows);

/* Words of 64 rows in all segments. */
int64_t segment_table_words(const search_job *job);

#endif
