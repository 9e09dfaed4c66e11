/* Plain search: every row is scored. What its kernels take, and which is used when (gpu/search/search_plan.c chooses):
 *
 *   search_one_*        one query. One launch does everything: a launch costs as much as reading 20 MB of rows.
 *   search_registers_*  more, and rows of one or two chunks (up to 128 elements): queries stay in registers, rows pass through
 *                       shared memory, so that each load of a row serves eight queries.
 *   search_stream_*     longer rows, where the chip has a copy engine (sm_90a) and shared memory holds the queries whole: a few
 *                       waves only fetch rows, the others never wait for one another. From 9 queries on.
 *   search_tile_*       longer rows, everywhere else: 8 x 8 tiles of rows and queries from shared memory.
 *
 * Except for search_one_*, a search is three launches: search_prepare packs the queries; one of these scores the rows and
 * leaves, for each query, what each part of the rows has to offer; search_merge makes the k best of that, in order. All give
 * the same bits: canonical scores (arithmetic/canon.h), ties by row number.
 */
#ifndef WW_KERNELS_SEARCH_SEARCH_ARGS_H
#define WW_KERNELS_SEARCH_SEARCH_ARGS_H

#include <stdint.h>

#include "kernels/search/segments.h"

enum {
    SEARCH_THREADS = 256,
    SEARCH_REGISTERS_ROWS = 32, /* in a tile of search_registers_*, and the queries of a block: a power of two */
    SEARCH_REGISTERS_QUERIES_MIN = 8,
    SEARCH_REGISTERS_QUERIES_MAX = 128,
    SEARCH_REGISTERS_STAGE_FLOATS = 4640, /* of shared memory for a tile of it, with two chunks and norms */
    SEARCH_TILE_SIDE = 8,                 /* rows, and queries, that 32 lanes of search_tile_* score at once: a strip */
    SEARCH_TILE_LANES = 32,
    SEARCH_TILE_ROWS_FLOATS = 1152,    /* of shared memory for two chunks of a strip of rows (search_tile.c), ... */
    SEARCH_TILE_QUERIES_FLOATS = 1024, /* ... and of queries */
    SEARCH_STREAM_SPAN = 2,            /* pairs of chunks in a stage of search_stream_*; ... */
    SEARCH_STREAM_ROW_FLOATS = SEARCH_STREAM_SPAN * 128 + 4, /* ... for a row of it, with 16 spare bytes; ... */
    SEARCH_STREAM_FEEDERS = 128,                             /* threads of a block that only fill the stages */
    SEARCH_STREAM_THREADS = SEARCH_THREADS + SEARCH_STREAM_FEEDERS,
    SEARCH_STREAM_STAGES_MIN = 2,
    SEARCH_STREAM_STAGES_MAX = 12,
    SEARCH_STREAM_STATIC_BYTES = 10240, /* ... and what these have beside the stages, at most */
    SEARCH_STAGES_MIN = 2,              /* of tiles, or parts of them, that are worked on or on their way to shared memory */
    SEARCH_STAGES_MAX = 3,
    SEARCH_STATIC_BYTES = 3584,  /* of shared memory that search_tile_* have beside the stages, at most */
    SEARCH_ONE_ROWS = 128,       /* that a block of search_one_* takes at a time: 8 for each group of 16 lanes */
    SEARCH_ONE_DIM_MAX = 256,    /* of a query that comes along with the launch: more would make that longer */
    SEARCH_ONE_CHUNKS_MAX = 128, /* of a row that search_one_* can take: 32 KB of shared memory for the query */
    SEARCH_MERGE_KEYS = 4096     /* that search_merge can sort: twice the largest k */
};

/* How often a block of search_one_* takes SEARCH_ONE_ROWS in a step, by the bytes of an element. */
#define SEARCH_ONE_REPEAT(element_bytes) (4 / (element_bytes))

typedef struct search_queries {
    float *packed;   /* slots x 64*chunks */
    float *norms;    /* slots */
    uint64_t *worst; /* slots: a key that the k-th best is certainly not behind; it falls while rows are scored */
    uint32_t count;  /* queries; the other slots are zero and find nothing */
    uint32_t slots;  /* count rounded up to what the kernel takes at once */
} search_queries;

/* While rows are scored, list `part * slots + query` holds keys[list * capacity ..]; it may grow up to its capacity and is cut
 * back to `kept_max` keys when it is longer than `trigger`. In the end each part appends what may be among the best, `trigger`
 * keys at most, to the query's, taken[query] of them from found[query * parts * trigger] on. */
typedef struct search_lists {
    uint64_t *keys;
    uint64_t *found;
    uint32_t *taken;
    uint32_t capacity;
    uint32_t trigger;
    uint32_t kept_max;
    uint32_t parts;
    uint32_t k;
} search_lists;

/* Blocks of SEARCH_THREADS, 16 queries each. */
typedef struct search_prepare_args {
    const float *from; /* count x dim */
    search_queries queries;
    uint32_t *taken; /* slots: become 0 */
    int32_t dim;
} search_prepare_args;

/* A grid of parts x slots / queries of a block. Blocks of SEARCH_THREADS; for search_tile_* of half as many, too. Blocks of
 * search_stream_* have SEARCH_STREAM_THREADS, or fewer except for their feeders, and make as many parts as they have waves that
 * work. */
typedef struct search_args {
    kernel_rows rows;
    search_queries queries;
    search_lists lists;
    uint32_t stages; /* SEARCH_STAGES_MIN..MAX */
    uint32_t
        whole; /* only for search_tile_*: not 0 if the queries of a block are in shared memory whole, and not piece by piece */
} search_args;

/* A block a query. */
typedef struct search_merge_args {
    search_lists lists;
    const uint64_t *worst;
    uint64_t *best; /* queries x k keys in order, then CANON_KEY_WORST */
} search_merge_args;

/* What the blocks of search_one_* share. The last of them leaves it as it was found: CANON_KEY_WORST, and 0 all others. */
typedef struct search_one_state {
    uint64_t worst;
    uint32_t taken;
    uint32_t done;  /* blocks */
    uint32_t given; /* steps, beyond the first two of each block */
    uint32_t spare;
} search_one_state;

/* A grid of `parts` blocks of SEARCH_THREADS, with shared memory for the packed query, or for the keys that are sorted in the
 * end if that is more: SEARCH_MERGE_KEYS, or half of them if k is a quarter of that or less. */
typedef struct search_one_args {
    kernel_rows rows;
    search_lists lists; /* whose `taken` is the state's */
    search_one_state *state;
    uint64_t *best;               /* k keys in order, then CANON_KEY_WORST: on the host, which looks for them */
    const float *query_on_device; /* the query on the device, if it is too long to come along */
    int32_t dim;
    uint32_t backward; /* not 0: from the last row to the first */
    float query[SEARCH_ONE_DIM_MAX];
} search_one_args;

#endif
