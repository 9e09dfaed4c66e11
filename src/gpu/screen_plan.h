/* How a screened search is cut up for a GPU: how many rows are a sample, how long lists are, how many queries go at a time.
 * Pure arithmetic. */
#ifndef WW_GPU_SCREEN_PLAN_H
#define WW_GPU_SCREEN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

typedef struct screen_plan {
    uint32_t sample_tiles;  /* of 128 rows */
    uint32_t sample_stride; /* tiles from one to the next */
    int32_t capacity;       /* of a query's list */
    int32_t chunk;          /* queries at a time */
} screen_plan;

/* For `queries` queries, k results each, over `words` words of 64 rows. `capacity` is what the lists have room for, 0 to let
 * the plan say. A sample_stride of less than SCREEN_STRIDE_LEAST says that the rows are too few beside the sample. */
screen_plan screen_plan_make(int64_t queries, int32_t dim, int32_t k, int64_t words, int32_t capacity, bool watched);

enum { SCREEN_STRIDE_LEAST = 4 };

/* Blocks a column of queries, so that the last round of blocks leaves few places empty; at most `most`. */
int64_t screen_plan_parts(int64_t resident, int64_t columns, int64_t most);

#endif
