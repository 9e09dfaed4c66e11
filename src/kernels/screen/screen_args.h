/* Screened search: int8 codes exclude most rows, the others are scored exactly (arithmetic/screen.h). What its kernels take,
 * and which is used when (gpu/search/screen_round.c chooses):
 *
 *   screen_small_batch_1_*  one query: two launches do everything; _planes in the place of _keep where there are planes.
 *   screen_small_batch_4_*  up to 4 queries, and _8_* up to 8: bound by memory, one pass over the codes, no shared memory.
 *   screen_wgmma_*          more, on sm_90a: wgmma multiplies from shared memory, where the copy engine puts the codes.
 *   screen_mfma_keep        more, on chips with MFMA: 256 rows x 128 queries, rows in registers; the sample as on the others.
 *   screen_batch_*          more, on every other chip: 128 x 128 tiles by the chip's int8 matrix instructions (matrix_i8.h).
 *   screen_lists_*          any number that read lists of an index: 4 of the queries that read the same list share its codes.
 *
 * A round is five launches: screen_prepare packs and codes the queries; *_sample looks at some of the rows and leaves the most
 * promising row of each 32; screen_pick scores the k most promising of those exactly: the worst of their keys is the query's
 * threshold; *_keep looks at all rows and lists those that the threshold does not exclude; screen_score scores the listed rows
 * exactly and puts the k best in order. The last two may go twice, over some of the rows and then over the rest with the better
 * threshold that the first have given.
 */
#ifndef WW_KERNELS_SCREEN_SCREEN_ARGS_H
#define WW_KERNELS_SCREEN_SCREEN_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/search/range_args.h"
#include "kernels/search/segments.h"

enum {
    SCREEN_THREADS = 256,
    SCREEN_BUCKET_ROWS = 32, /* of which a sample names one */
    SCREEN_BUCKETS_MAX = 4096,
    SCREEN_LIST_QUERIES = 4,    /* queries that share an item of screen_lists_*: for eight there are not registers enough */
    SCREEN_SMALL_BATCH_MAX = 8, /* queries one launch of screen_small_batch_* can take */
    SCREEN_TILE_WORDS = 2,      /* rows by words of 64 that screen_batch_* takes at a time; a sample goes by these, too */
    SCREEN_TILE_QUERIES = 128,  /* that a block of screen_batch_* takes */
    SCREEN_STAGES = 3,          /* of 64 bytes of each row and query of a tile, on their way together */
    SCREEN_STAGE_WORDS = (SCREEN_TILE_WORDS * 64 + SCREEN_TILE_QUERIES) * 16,
    SCREEN_SCORE_GROUPS = SCREEN_THREADS / 16, /* rows that a block of screen_score scores at a time */
    SCREEN_WGMMA_QUERIES = 64,                 /* that a team of screen_wgmma_* takes */
    SCREEN_WGMMA_TEAMS_MAX = 4,                /* in a block: of 128 threads; */
    SCREEN_WGMMA_FEEDERS = 128,                /* of whom one fills the ring */
    SCREEN_WGMMA_STAGES_MIN = 2,
    SCREEN_WGMMA_STAGES_MAX = 8
};

/* What screen_wgmma_* has in shared memory. A tile's numbers stay in their slot until all teams are behind it, and at most
 * `stages` stages are ahead of the last team: so there are slots for those, and one more. */
#define SCREEN_WGMMA_SLOTS(chunks, stages) (1 + ((stages) + (chunks) - 1) / (chunks))
#define SCREEN_WGMMA_THREADS(teams)        ((teams) * 128 + SCREEN_WGMMA_FEEDERS)
#define SCREEN_WGMMA_BYTES(teams, chunks, stages)                                                                              \
    (1024 + (teams) * (4096 * (chunks) + 1024) + 8192 * (stages) + 1536 * SCREEN_WGMMA_SLOTS(chunks, stages) + 16 * (stages) + \
     16)

/* screen_code: codes, scales and residuals of packed rows. Blocks of SCREEN_THREADS, 16 rows each. Codes stand in the order of
 * packed_layout.h without its pairs of chunks, byte 4*group + i of a chunk is number i of that group, in the places of
 * screen_code_at().
 */
typedef struct screen_code_args {
    const float *rows; /* of the segment, packed, as the rest is the segment's */
    uint32_t *codes;
    float *scales, *residuals;
    uint32_t first, count; /* rows of it to code */
    int32_t chunks;
} screen_code_args;

/* screen_plane: high planes of codes (arithmetic/screen.h), and their residuals. Blocks as above. */
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

/* So that a number of rows is not 0, which stands where nothing was written. */
#define SCREEN_ANSWERED ((uint64_t)1 << 32)

/* A query's numbers. */
typedef struct screen_query {
    float scale, residual, norm;
    float offset; /* what the products with codes of u8 rows lack, times the scale; 0 for others (arithmetic/row_types.h) */
} screen_query;

typedef struct screen_queries {
    float *packed;   /* slots x 64*chunks */
    uint32_t *codes; /* slots, in whole words of 64, as rows have them; for a small batch: slots x 16*chunks, row by row */
    screen_query *numbers;  /* slots */
    uint64_t *thresholds;   /* slots: k keys at least are at or before it */
    uint32_t *counts;       /* slots: rows listed, whether or not there was room for them */
    uint32_t *before;       /* slots: rows that were kept, scored and dropped from the list again */
    uint32_t *scored;       /* slots: how many entries of the list are keys; the rest are positions */
    uint32_t *blocks_ready; /* slots + 1: of screen_score; or the first two of screen_small_batch_1_sample and _keep */
    uint32_t *rho;          /* one: the bits of the largest screen_rho(), or NULL where nobody needs it */
    uint32_t count;         /* queries; the other slots are zero and keep nothing */
    uint32_t slots;
} screen_queries;

/* Blocks of SCREEN_THREADS, 16 queries each. */
typedef struct screen_prepare_args {
    const float *from;          /* count x dim */
    const uint64_t *thresholds; /* to begin with, a query each; or NULL */
    screen_queries queries;
    int32_t dim;
    int32_t metric;
    bool small_batch; /* for screen_small_batch_* */
    bool offset;      /* are the rows' codes less than their numbers? */
} screen_prepare_args;

/* screen_measure_rows: the numbers by which screen_wgmma_* tests rows, for all of them, and those by which a sample is chosen,
 * for the sample's. A thread a row, whole tiles of 128: first all, then the sample. */
typedef struct screen_measure_args {
    kernel_rows rows;
    const uint32_t *rho;
    float *pairs;   /* tiles x 128 x 2 */
    float *thirds;  /* tiles x 128, for l2 */
    float *guesses; /* sample_tiles x 128 x 2 */
    uint32_t tiles, sample_stride, sample_tiles;
} screen_measure_args;

/* screen_small_batch_*_sample and _keep: blocks of SCREEN_THREADS, any number. screen_batch_*: a grid of any number x slots /
 * SCREEN_TILE_QUERIES; screen_mfma_keep: likewise. screen_wgmma_*: blocks of SCREEN_WGMMA_THREADS, a grid of any number x slots
 * / teams / SCREEN_WGMMA_QUERIES, with SCREEN_WGMMA_BYTES of shared memory; _keep_2 for dot and cosine, _keep_3 for l2. */
typedef struct screen_scan_args {
    kernel_rows rows;
    screen_queries queries;
    uint64_t *samples;      /* queries x buckets: keys of the best approximate score and the row's position */
    uint32_t sample_stride; /* tiles from one that is sampled to the next */
    uint32_t sample_tiles;  /* of SCREEN_TILE_WORDS; buckets is their number times 4 */
    uint32_t tile_begin,
        tile_end;    /* that screen_batch_*, screen_mfma_keep and screen_wgmma_* look at: all of a sample, or some of all */
    uint64_t *lists; /* queries x capacity: positions, a word's number times 64 plus the row in it; of one query keys */
    uint32_t capacity;
    uint32_t k;        /* for screen_small_batch_1_*, as is the next */
    uint64_t *best;    /* k keys in order, then CANON_KEY_WORST; then the threshold, and SCREEN_ANSWERED and how many were kept:
                        * on the host, which looks for them */
    uint32_t backward; /* only for screen_small_batch_*; not 0: from the last row to the first */
    const float *pairs, *thirds, *guesses; /* of screen_measure_rows, for screen_wgmma_*, as is the next */
    uint32_t stages;
} screen_scan_args;

/* ---- lists of an index --------------------------------------------------------------------------------------------------- */

/* A list of rows on the device: codes and numbers in the order of its entries, as a segment has them in the order of rows. Room
 * for whole words of 64; what is past `count` is 0. */
typedef struct kernel_list {
    uint32_t *codes;
    float *scales, *residuals, *norms;
    uint32_t *numbers; /* of the rows */
    uint32_t count;
} kernel_list;

/* Up to 64 entries of a list, none beyond its word. */
typedef struct screen_list_page {
    uint32_t list, first, count;
} screen_list_page;

/* screen_lists_gather: copies what the screen reads of rows into lists. A block a page. Here and below, the words of `rows` are
 * those of row numbers: row r is in word r / 64. */
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
    uint32_t query;  /* its slot */
    uint32_t bucket; /* of a sample: where the list's buckets begin among the query's */
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

/* screen_pick: a block a query. */
typedef struct screen_pick_args {
    kernel_rows rows;
    screen_queries queries;
    const uint64_t *samples;
    uint32_t buckets;
    uint32_t k;
} screen_pick_args;

/* screen_score: a grid of any number x queries. The last block of a query to be ready puts its keys in order; and if there is
 * `more` to come, leaves the k best in the list and makes the last of them the threshold. */
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
