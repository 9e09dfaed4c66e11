/* How a full scan is divided on a GPU: which kernel, how many queries at a time, how many parts of the rows. Pure arithmetic,
 * so it can be tested without a device. */
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
    int32_t slot_queries;  /* queries of a block; the number of slots is a multiple of it */
    int32_t tile_rows;     /* rows that a block scores at a time */
    int32_t stages;        /* of the ring in shared memory */
    bool whole;            /* SEARCH_SHAPE_TILE: a block holds its queries in shared memory in full */
    int32_t block_parts;   /* parts of a block: one, or one for each of its waves */
    size_t shared_bytes;   /* dynamic */
    int32_t list_capacity; /* keys */
    int32_t list_trigger;
    int32_t list_kept_max;
} search_plan;

/* The search and what the chip offers. */
typedef struct search_size {
    int64_t queries; /* at once */
    int32_t dim;
    int32_t k;
    bool watched;           /* rounds must be short enough for cancelling */
    int64_t shared_bytes;   /* of a block, at most */
    int32_t stream_wave;    /* threads of a wave if search_stream may be used, or 0: */
    int32_t stream_queries; /* from this many queries on, */
    int32_t stream_teams;   /* in blocks of at least this many teams (gpu/chip.h) */
    int32_t element_bytes;  /* of the rows; 0 means 4, f32; other types have kernels for one query, and tiles */
    bool tile;              /* use the tiles of search_tile_* for any size: for range_tile */
    int32_t shrunk;         /* how many times the round must shrink because memory ran out */
} search_size;

search_plan search_plan_make(search_size size);

/* Returns the number of slots that `queries` of a round take. */
int64_t search_plan_slots(const search_plan *plan, int64_t queries);

/* What decides the number of parts of a round. */
typedef struct search_parts_size {
    int64_t slots;
    int64_t words;     /* of 64 rows */
    int64_t resident;  /* thread blocks that the device holds at once */
    int64_t lists_max; /* as many as memory allows */
} search_parts_size;

/* Returns the number of parts of the rows: a multiple of the plan's block_parts, at least one block's. */
int64_t search_plan_parts(const search_plan *plan, const search_parts_size *size);

#endif
