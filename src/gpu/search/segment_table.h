/* The table of segments that kernels read (kernels/search/segments.h), made from a search job. */
#ifndef WW_GPU_SEARCH_SEGMENT_TABLE_H
#define WW_GPU_SEARCH_SEGMENT_TABLE_H

#include <stddef.h>

#include "device/backend.h"
#include "kernels/search/segments.h"

/* In host memory; copied to the device unchanged. */
typedef struct segment_table {
    kernel_segment *segments; /* without empty ones */
    size_t bytes;
} segment_table;

/* Makes the table and fills `rows`, except for the table's device address and the mask. Free table->segments, which may be
 * NULL, with memory_free(). Fails without memory.
 *
 * by_number: row r is in word r / 64. Where segments skip row numbers, there are entries without rows, which no kernel reads.
 */
ww_status segment_table_make(const search_job *job, bool by_number, segment_table *table, kernel_rows *rows);

/* Words of 64 rows in all segments. */
int64_t segment_table_words(const search_job *job);

#endif
