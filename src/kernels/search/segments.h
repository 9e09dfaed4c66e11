/* The rows of a search as kernels see them: one table of segments, for full scans and screened searches. The host fills it
 * (gpu/search/segment_table.h), segment_walk.h reads it. */
#ifndef WW_KERNELS_SEARCH_SEGMENTS_H
#define WW_KERNELS_SEARCH_SEGMENTS_H

#include <stdint.h>

enum { SEARCH_WORD_ROWS = 64 }; /* rows of one word of a mask */

/* Empty segments are left out. codes, scales and residuals are NULL if the rows have no codes. */
typedef struct kernel_segment {
    const float *rows; /* packed (packed_layout.h); other types as in typed_rows.h */
    const uint32_t *codes;
    const float *scales, *residuals, *norms;
    const uint32_t *highs; /* planes of the codes, where the search has them (gpu/search/planes/planes.h), */
    const float *high_residuals;
    const uint64_t *live;
    uint32_t first_row; /* a multiple of 64 */
    uint32_t word_end;  /* words of 64 rows in this segment and all before it */
} kernel_segment;

typedef struct kernel_rows {
    const kernel_segment *segments;
    const uint64_t *mask; /* over all rows, one word per 64; NULL admits all */
    uint32_t mask_words;  /* rows beyond are not admitted */
    uint32_t segment_count;
    uint32_t word_count; /* of all segments */
    int32_t chunks;      /* chunks of 64 elements in a row */
    int32_t metric;
    int32_t type; /* of the rows: ROW_F32, ... (arithmetic/row_types.h) */
} kernel_rows;

#endif
