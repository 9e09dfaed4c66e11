/* How a screened search is cut up for a GPU: how many rows are a sample, how long lists are, how many queries go at a time.
 * Pure arithmetic. */
#ifndef WW_GPU_SEARCH_SCREEN_PLAN_H
#define WW_GPU_SEARCH_SCREEN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

typedef struct screen_plan {
    uint32_t sample_tiles;  /* of 128 rows */
    uint32_t sample_stride; /* tiles from one to the next */
    int32_t capacity;       /* of a query's list */
    int32_t round_queries;  /* queries at a time */
} screen_plan;

/* What a plan is for. */
typedef struct screen_size {
    int64_t queries;
    int32_t dim;
    int32_t k;
    int64_t words;          /* of 64 rows; two at least */
    int32_t capacity;       /* of lists, or 0 to let the plan say */
    bool watched;           /* rounds short enough to be cancelled in */
    int32_t sample_buckets; /* for each result, */
    int32_t sample_tiles;   /* and tiles of the sample at least (gpu/chip.h) */
} screen_size;

screen_plan screen_plan_make(screen_size size);

/* Parts of the rows for a grid with `columns` columns of queries; the device holds `resident` of its blocks at once. */
int64_t screen_plan_parts(int64_t resident, int64_t columns, int64_t parts_max);

#endif
