/* How a screened search is divided on a GPU: the size of the sample, the length of the lists, and the queries of a round. Pure
 * arithmetic. */
#ifndef WW_GPU_SEARCH_SCREEN_PLAN_H
#define WW_GPU_SEARCH_SCREEN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

typedef struct screen_plan {
    uint32_t sample_tiles;  /* of 128 rows */
    uint32_t sample_stride; /* tiles from one sampled tile to the next */
    int32_t capacity;       /* of a query's list */
    int32_t round_queries;  /* of a round */
    bool one;               /* the host codes the only query, and screen_one.c does the round with fewer driver calls */
} screen_plan;

/* The search that is planned. */
typedef struct screen_size {
    int64_t queries;
    int32_t dim;
    int32_t k;
    int64_t words;          /* of 64 rows; at least two */
    int32_t capacity;       /* of lists, or 0 for the plan's own */
    bool host_f32;          /* the queries are in host memory and the rows f32 */
    bool watched;           /* a callback watches; rounds must be short enough for cancelling */
    int32_t sample_buckets; /* buckets of the sample for each result */
    int32_t sample_tiles;   /* minimum number of tiles in the sample (gpu/chip.h) */
} screen_size;

screen_plan screen_plan_make(screen_size size);

/* Returns the number of parts of the rows for a grid with `columns` columns of queries, if the device holds `resident` blocks
 * at once. */
int64_t screen_plan_parts(int64_t resident, int64_t columns, int64_t parts_max);

#endif
