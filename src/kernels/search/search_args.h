/* Full scan: every row is scored. Its arguments, and its kernels (gpu/search/search_plan.c chooses):
 *
 *   search_one_*        one query. One launch does everything: a launch costs as much as reading 20 MB of rows.
 *   search_registers_*  more, and rows of one or two chunks (up to 128 elements): queries stay in registers, rows pass through
 *                       shared memory, so that each load of a row serves eight queries.
 *   search_stream_*     longer rows, if the chip has a copy engine (sm_90a) and shared memory holds the queries in full: a few
 *                       waves only fetch rows, the others never wait for each other. From 9 queries on.
 *   search_tile_*       longer rows, everywhere else: 8 x 8 tiles of rows and queries from shared memory.
 *
 * Except for search_one_*, a search has three launches. search_prepare packs the queries. One of these kernels scores the rows
 * and leaves the candidate keys of each query and part. search_merge merges them into the k best, in order. All give the same
 * bits: canonical scores (arithmetic/canon.h), ties by row number.
 */
#ifndef WW_KERNELS_SEARCH_SEARCH_ARGS_H
#define WW_KERNELS_SEARCH_SEARCH_ARGS_H

#include <stdint.h>

#include "kernels/search/segments.h"

enum {
    SEARCH_THREADS = 256,
    SEARCH_REGISTERS_ROWS = 32, /* rows in a tile of search_registers_*; a power of two, like the queries of a block */
    SEARCH_REGISTERS_QUERIES_MIN = 8,
    SEARCH_REGISTERS_QUERIES_MAX = 128,
    SEARCH_REGISTERS_STAGE_FLOATS = 4640, /* floats of shared memory for a tile with two chunks and norms */
    SEARCH_TILE_SIDE = 8,                 /* rows, and queries, that 32 lanes of search_tile_* score at once: a strip */
    SEARCH_TILE_LANES = 32,
    SEARCH_TILE_ROWS_FLOATS = 1152,    /* floats of shared memory for two chunks of a strip of rows (search_tile.c) */
    SEARCH_TILE_QUERIES_FLOATS = 1024, /* floats of shared memory for two chunks of a strip of queries */
    SEARCH_STREAM_SPAN = 2,            /* pairs of chunks in a stage of search_stream_* */
    SEARCH_STREAM_ROW_FLOATS = SEARCH_STREAM_SPAN * 128 + 4, /* floats of a row in such a stage, with 16 spare bytes */
    SEARCH_STREAM_FEEDERS = 128,                             /* threads of a block that only fill the stages */
    SEARCH_STREAM_THREADS = SEARCH_THREADS + SEARCH_STREAM_FEEDERS,
    SEARCH_STREAM_STAGES_MIN = 2,
    SEARCH_STREAM_STAGES_MAX = 12,
    SEARCH_STREAM_STATIC_BYTES = 10240, /* shared memory of search_stream_* beside the stages, at most */
    SEARCH_STAGES_MIN = 2,              /* stages of tiles, or of parts of them: in use or being filled */
    SEARCH_STAGES_MAX = 3,
    SEARCH_STATIC_BYTES = 3584,  /* shared memory of search_tile_* beside the stages, at most */
    SEARCH_ONE_ROWS = 128,       /* rows that a block of search_one_* scores at a time: 8 for each group of 16 lanes */
    SEARCH_ONE_DIM_MAX = 256,    /* longest query that travels in the kernel's arguments; a longer one would delay the launch */
    SEARCH_ONE_CHUNKS_MAX = 128, /* chunks of a row, at most, for search_one_*: 32 KB of shared memory for the query */
    SEARCH_MERGE_KEYS = 4096     /* keys that search_merge can sort: twice the largest k */
};

/* How many times SEARCH_ONE_ROWS a block of search_one_* scores in a step, by the bytes of an element. */
#define SEARCH_ONE_REPEAT(element_bytes) (4 / (element_bytes))

typedef struct search_queries {
    float *packed;   /* slots x 64*chunks */
    float *norms;    /* slots */
    uint64_t *worst; /* slots: the k-th best key is not larger than this; it decreases while rows are scored */
    uint32_t count;  /* queries; the other slots are zero and find nothing */
    uint32_t slots;  /* count, rounded up to the queries of a block */
} search_queries;

/* While rows are scored, list `part * slots + query` is keys[list * capacity ..]. It may grow up to its capacity and is cut to
 * `kept_max` keys when it is longer than `trigger`. At the end each part appends the keys that may be among the best, at most
 * `trigger`, to the query's: taken[query] keys from found[query * parts * trigger] on. */
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
    uint32_t *taken; /* slots: set to 0 */
    int32_t dim;
} search_prepare_args;

/* A grid of parts x slots / queries per block. Blocks of SEARCH_THREADS; search_tile_* also runs with half as many. Blocks of
 * search_stream_* have up to SEARCH_STREAM_THREADS and always all feeders; each of their working waves is a part. */
typedef struct search_args {
    kernel_rows rows;
    search_queries queries;
    search_lists lists;
    uint32_t stages; /* SEARCH_STAGES_MIN..MAX */
    uint32_t whole;  /* only for search_tile_*: not 0 if shared memory holds a block's queries in full; otherwise they pass in
                        pieces */
} search_args;

/* One block per query. */
typedef struct search_merge_args {
    search_lists lists;
    const uint64_t *worst;
    uint64_t *best; /* queries x k keys in order, then CANON_KEY_WORST */
} search_merge_args;

/* What the blocks of search_one_* share. The last block restores it: `worst` to CANON_KEY_WORST, the rest to 0. */
typedef struct search_one_state {
    uint64_t worst;
    uint32_t taken;
    uint32_t done;  /* blocks */
    uint32_t given; /* steps taken, beyond the first two of each block */
    uint32_t spare;
} search_one_state;

/* A grid of `parts` blocks of SEARCH_THREADS. Shared memory holds the packed query or, at the end, the keys that are sorted,
 * whichever is larger: SEARCH_MERGE_KEYS keys, or half of them if k is at most a quarter of that. */
typedef struct search_one_args {
    kernel_rows rows;
    search_lists lists; /* its `taken` is in the state */
    search_one_state *state;
    uint64_t *best;               /* k keys in order, then CANON_KEY_WORST: in host memory, which the host polls */
    const float *query_on_device; /* the query, if it is too long for the arguments */
    int32_t dim;
    uint32_t backward; /* not 0: from the last row to the first */
    float query[SEARCH_ONE_DIM_MAX];
} search_one_args;

#endif
