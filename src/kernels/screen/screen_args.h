/* Screened search: int8 codes exclude most rows; the others are scored exactly (arithmetic/screen.h). The arguments of its
 * kernels, and when each is used (gpu/search/screen_round.c chooses):
 *
 *   screen_small_batch_1_*  one query: two launches do everything. If the rows have high planes, _planes replaces _keep.
 *   screen_small_batch_4_*  up to 4 queries, and _8_* up to 8: bound by memory, one pass over the codes, no shared memory.
 *   screen_wgmma_*          more, on sm_90a: wgmma multiplies from shared memory, where the copy engine puts the codes.
 *   screen_mfma_keep        more, on chips with MFMA: 256 rows x 128 queries, rows in registers. Samples as for screen_batch_*.
 *   screen_batch_*          more, on every other chip: 128 x 128 tiles by the chip's int8 matrix instructions (matrix_i8.h).
 *   screen_lists_*          any number of queries that read lists of an index: up to 4 that read the same list share its codes.
 *
 * A round has five launches:
 *   screen_prepare  packs and quantizes the queries
 *   *_sample        looks at some of the rows and leaves the most promising row of every 32
 *   screen_pick     scores the k most promising of these exactly; the worst of their keys is the query's threshold
 *   *_keep          looks at all rows and lists those that the threshold does not exclude
 *   screen_score    scores the listed rows exactly and sorts the k best
 * The last two can run twice: over some of the rows, then over the rest with the better threshold that results.
 */
#ifndef WW_KERNELS_SCREEN_SCREEN_ARGS_H
#define WW_KERNELS_SCREEN_SCREEN_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/search/range_args.h"
#include "kernels/search/segments.h"

enum {
    SCREEN_THREADS = 256,
    SCREEN_BUCKET_ROWS = 32, /* a sample leaves the best row of each bucket */
    SCREEN_BUCKETS_MAX = 4096,
    SCREEN_LIST_QUERIES = 4,    /* queries that share an item of screen_lists_*; there are not enough registers for eight */
    SCREEN_SMALL_BATCH_MAX = 8, /* queries that one launch of screen_small_batch_* can take */
    SCREEN_TILE_WORDS = 2,      /* words of 64 rows in a tile of screen_batch_*; samples consist of such tiles, too */
    SCREEN_TILE_QUERIES = 128,  /* queries of a block of screen_batch_* */
    SCREEN_STAGES = 3,          /* stages in flight, each with 64 bytes of every row and query of a tile */
    SCREEN_STAGE_WORDS = (SCREEN_TILE_WORDS * 64 + SCREEN_TILE_QUERIES) * 16,
    SCREEN_SCORE_GROUPS = SCREEN_THREADS / 16, /* rows that a block of screen_score scores at a time */
    SCREEN_WGMMA_QUERIES = 64,                 /* queries of a team of screen_wgmma_* */
    SCREEN_WGMMA_TEAMS_MAX = 4,                /* teams of 128 threads in a block */
    SCREEN_WGMMA_FEEDERS = 128,                /* threads that fill the ring */
    SCREEN_WGMMA_STAGES_MIN = 2,
    SCREEN_WGMMA_STAGES_MAX = 8
};

/* Shared memory of screen_wgmma_*. A tile's numbers stay in their slot until all teams are done with it, and at most `stages`
 * stages are ahead of the last team. So there is one slot more than these stages need. */
#define SCREEN_WGMMA_SLOTS(chunks, stages) (1 + ((stages) + (chunks) - 1) / (chunks))
#define SCREEN_WGMMA_THREADS(teams)        ((teams) * 128 + SCREEN_WGMMA_FEEDERS)
#define SCREEN_WGMMA_BYTES(teams, chunks, stages)                                                                              \
    (1024 + (teams) * (4096 * (chunks) + 1024) + 8192 * (stages) + 1536 * SCREEN_WGMMA_SLOTS(chunks, stages) + 16 * (stages) + \
     16)

/* screen_code: makes codes, scales and residuals of packed rows. Blocks of SCREEN_THREADS, 16 rows each. Codes are in the order
 * of packed_layout.h, except that chunks are not interleaved in pairs: byte 4*group + i of a chunk is number i of that group.
 * screen_code_at() says where each word is.
 */
typedef struct screen_code_args {
    const float *rows; /* of the segment, packed; the other pointers belong to the segment, too */
    uint32_t *codes;
    float *scales, *residuals;
    uint32_t first, count; /* rows of the segment to code */
    int32_t chunks;
} screen_code_args;

/* screen_plane: makes high planes of codes (arithmetic/screen.h), and their residuals. Blocks as above. */
typedef struct screen_plane_args {
    const uint32_t *codes;
    const float *scales, *residuals;
    uint32_t *highs;
    float *high_residuals;
    uint32_t first, count; /* rows of the segment */
    int32_t chunks;
} screen_plane_args;

/* screen_gather: to[first + i] = from[sources[i]]. Blocks as above. */
typedef struct screen_gather_args {
    const uint32_t *from_codes;
    const float *from_scales, *from_residuals;
    uint32_t *to_codes;
    float *to_scales, *to_residuals;
    const int64_t *sources;
    uint32_t first, count;
    int32_t chunks;
} screen_gather_args;

/* Added to the number of kept rows, so that it is never 0, which means not written yet. */
#define SCREEN_ANSWERED ((uint64_t)1 << 32)

/* A query's numbers. */
typedef struct screen_query {
    float scale, residual, norm;
    float offset; /* of u8 rows: what the products with their codes lack, times the scale; of others 0 (row_types.h) */
} screen_query;

typedef struct screen_queries {
    float *packed;          /* slots x 64*chunks */
    uint32_t *codes;        /* slots, in whole words of 64 like rows; for a small batch: slots x 16*chunks, row by row */
    screen_query *numbers;  /* slots */
    uint64_t *thresholds;   /* slots: at least k keys are at or before it */
    uint32_t *counts;       /* slots: rows listed, whether or not there was room for them */
    uint32_t *before;       /* slots: rows that were kept, scored and dropped from the list again */
    uint32_t *scored;       /* slots: how many entries of the list are keys; the rest are positions */
    uint32_t *blocks_ready; /* slots + 1: of screen_score; or the first two of screen_small_batch_1_sample and _keep */
    uint32_t *rho;          /* one: the bits of the largest screen_rho(); NULL if no kernel needs it */
    uint32_t count;         /* queries; the other slots are zero and keep nothing */
    uint32_t slots;
} screen_queries;

/* Blocks of SCREEN_THREADS, 16 queries each. */
typedef struct screen_prepare_args {
    const float *from;          /* count x dim */
    const uint64_t *thresholds; /* the first threshold of each query; or NULL */
    screen_queries queries;
    int32_t dim;
    int32_t metric;
    bool small_batch; /* for screen_small_batch_* */
    bool offset;      /* the rows' codes are smaller than their numbers */
} screen_prepare_args;

/* screen_measure_rows: computes the numbers by which screen_wgmma_* tests rows, for all rows, and those by which a sample is
 * chosen, for the rows of the sample. One thread per row, in whole tiles of 128: first all rows, then the sample. */
typedef struct screen_measure_args {
    kernel_rows rows;
    const uint32_t *rho;
    float *pairs;   /* tiles x 128 x 2 */
    float *thirds;  /* tiles x 128, for l2 */
    float *guesses; /* sample_tiles x 128 x 2 */
    uint32_t tiles, sample_stride, sample_tiles;
} screen_measure_args;

/* screen_small_batch_*_sample and _keep: any number of blocks of SCREEN_THREADS. screen_batch_* and screen_mfma_keep: a grid of
 * any number x slots / SCREEN_TILE_QUERIES. screen_wgmma_*: blocks of SCREEN_WGMMA_THREADS, a grid of any number x slots /
 * teams / SCREEN_WGMMA_QUERIES, with SCREEN_WGMMA_BYTES of shared memory; _keep_2 for dot and cosine, _keep_3 for l2. */
typedef struct screen_scan_args {
    kernel_rows rows;
    screen_queries queries;
    uint64_t *samples;      /* queries x buckets: keys of the best approximate score and the row's position */
    uint32_t sample_stride; /* distance between sampled tiles, in tiles */
    uint32_t sample_tiles;  /* tiles of SCREEN_TILE_WORDS words; each has 4 buckets */
    uint32_t tile_begin,
        tile_end;    /* tiles for screen_batch_*, screen_mfma_keep and screen_wgmma_*: all of a sample, otherwise all or some */
    uint64_t *lists; /* queries x capacity: positions, 64 * word + row in the word; for a single query keys */
    uint32_t capacity;
    uint32_t k;        /* this and the next: for screen_small_batch_1_* */
    uint64_t *best;    /* in host memory, which the host polls: k keys in order, then CANON_KEY_WORST; then the threshold; then
                          SCREEN_ANSWERED + the number of kept rows */
    uint32_t backward; /* only for screen_small_batch_*; not 0: from the last row to the first */
    const float *pairs, *thirds, *guesses; /* of screen_measure_rows; these and the next: for screen_wgmma_* */
    uint32_t stages;
} screen_scan_args;

/* ---- lists of an index --------------------------------------------------------------------------------------------------- */

/* A list of rows on the device: their codes and numbers in the order of the list's entries, laid out as in a segment. It has
 * room for whole words of 64; entries from `count` on are 0. */
typedef struct kernel_list {
    uint32_t *codes;
    float *scales, *residuals, *norms;
    uint32_t *numbers; /* row numbers */
    uint32_t count;
} kernel_list;

/* Up to 64 entries of a list, all in the same word. */
typedef struct screen_list_page {
    uint32_t list, first, count;
} screen_list_page;

/* screen_lists_gather: copies what the screen reads of rows into lists. One block per page. Here and below, `rows` is indexed
 * by row numbers: row r is in word r / 64. */
typedef struct screen_lists_gather_args {
    kernel_rows rows;
    const kernel_list *lists;
    const screen_list_page *pages;
    const uint32_t *numbers; /* 64 for each page: the rows of its entries */
} screen_lists_gather_args;

/* Some words of a list, and the queries that read them: up to SCREEN_LIST_QUERIES pairs. */
typedef struct screen_list_item {
    uint32_t list, first_word, words;
    uint32_t first_pair, pairs;
} screen_list_item;

typedef struct screen_list_pair {
    uint32_t query;  /* the query's slot */
    uint32_t bucket; /* of a sample: the first of the list's buckets among the query's */
} screen_list_pair;

/* screen_lists_sample and _keep: blocks of SCREEN_THREADS, any number. */
typedef struct screen_lists_args {
    kernel_rows rows;
    screen_queries queries;
    const kernel_list *lists;
    const screen_list_item *items;
    const screen_list_pair *pairs;
    uint32_t item_count;
    bool all_count;    /* every row is live and admitted */
    uint32_t buckets;  /* of each query */
    uint64_t *samples; /* queries x buckets: keys of the best approximate score and the row's number */
    uint64_t *kept;    /* queries x capacity: numbers of rows */
    uint32_t capacity;
} screen_lists_args;

/* screen_pick: one block per query. */
typedef struct screen_pick_args {
    kernel_rows rows;
    screen_queries queries;
    const uint64_t *samples;
    uint32_t buckets;
    uint32_t k;
} screen_pick_args;

/* screen_score: a grid of any number x queries. The last block of a query to finish sorts its keys. If there is `more` to come,
 * it also leaves the k best in the list and makes the last of them the threshold. */
typedef struct screen_score_args {
    kernel_rows rows;
    screen_queries queries;
    uint64_t *lists; /* positions become keys */
    uint64_t *best;  /* queries x k keys in order, then CANON_KEY_WORST */
    uint32_t capacity;
    uint32_t k;
    bool more;
} screen_score_args;

/* screen_range: a grid of any number x queries. */
typedef struct screen_range_args {
    kernel_rows rows;
    screen_queries queries;
    const uint64_t *lists; /* positions */
    uint32_t capacity;
    range_list list;
} screen_range_args;

#endif
