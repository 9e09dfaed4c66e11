/* How a search is cut up for a GPU: which kernel, how many queries at a time, how many parts of the rows. Pure arithmetic, so
 * that it can be tested without a device. */
#ifndef WW_GPU_SEARCH_SEARCH_PLAN_H
#define WW_GPU_SEARCH_SEARCH_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum search_shape {
    SEARCH_SHAPE_ONE,
    SEARCH_SHAPE_REGISTERS_1,
    SEARCH_SHAPE_REGISTERS_2,
    SEARCH_SHAPE_TILE,
    SEARCH_SHAPE_STREAM
} search_shape;

typedef struct search_plan {
    search_shape shape;
    int32_t round_queries; /* queries a round */
    int32_t threads;       /* of a block */
    int32_t slot_queries;  /* that a block takes: slots are a multiple of it */
    int32_t tile_rows;     /* that a block takes at a time */
    int32_t stages;        /* of what goes through shared memory */
    bool whole;            /* SEARCH_SHAPE_TILE: a block has its queries in shared memory whole */
    int32_t block_parts;   /* that a block makes: one, or one for each of its waves */
    size_t shared_bytes;   /* dynamic */
    int32_t list_capacity; /* keys */
    int32_t list_trigger;
    int32_t list_kept_max;
} search_plan;

/* What is asked for, and of what. */
typedef struct search_size {
    int64_t queries; /* at once */
    int32_t dim;
    int32_t k;
    bool watched;           /* rounds must be short enough for cancelling */
    int64_t shared_bytes;   /* that a block may have */
    int32_t stream_wave;    /* threads of a wave if search_stream may be used, or 0: */
    int32_t stream_queries; /* from this many queries on, */
    int32_t stream_teams;   /* in blocks of at least this many teams (gpu/chip.h) */
    int32_t element_bytes;  /* of the rows; 0 is 4, f32; others have kernels for one query, and tiles */
    bool tile;              /* by tiles of search_tile_* whatever the size: for range_tile_* */
    int32_t shrunk;         /* how many times a round was to be made smaller, because there was no memory for it */
} search_size;

search_plan search_plan_make(search_size size);

/* How many slots `queries` of a round take. */
int64_t search_plan_slots(const search_plan *plan, int64_t queries);

/* What a round's rows are cut by. */
typedef struct search_parts_size {
    int64_t slots;
    int64_t words;     /* of 64 rows */
    int64_t resident;  /* thread blocks that the device holds at once */
    int64_t lists_max; /* that there is memory for */
} search_parts_size;

/* Into how many parts the rows go: a multiple of the plan's block_parts, at least one block's. */
int64_t search_plan_parts(const search_plan *plan, const search_parts_size *size);

#endif
