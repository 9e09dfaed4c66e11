/* What the search kernels take: the rows, the queries, and the lists in which candidates gather.
 *
 * A search is three launches: search_prepare packs the queries; search_few_*, search_tall_* or search_wide_* scores the rows
 * and leaves, for each query and each part of the rows, a short list of candidates; search_merge makes the k best of them, in
 * order.
 */
#ifndef WW_KERNELS_SEARCH_H
#define WW_KERNELS_SEARCH_H

#include <stdint.h>

enum {
    SEARCH_THREADS = 256,
    SEARCH_WORD_ROWS = 64, /* rows go by words of their masks */
    SEARCH_FEW_WORDS = 4,  /* that a block of search_few_* takes at a time: 16 rows for each group of 16 lanes */
    SEARCH_FEW_MAX = 8,    /* queries one launch of search_few_* can take */
    SEARCH_WIDE_WORDS = 1, /* in a tile of search_wide_*, and the queries in it */
    SEARCH_WIDE_QUERIES = 64,
    SEARCH_TALL_WORDS = 4, /* the same for search_tall_* */
    SEARCH_TALL_QUERIES = 16,
    SEARCH_HELD_ROWS = 32, /* in a tile of search_held_*, and the queries of a block: a power of two */
    SEARCH_HELD_QUERIES_MIN = 8,
    SEARCH_HELD_QUERIES_MAX = 128,
    SEARCH_MERGE_KEYS = 4096 /* that search_merge can sort: twice the largest k */
};

/* A segment as kernels see it. Segments without rows are left out. */
typedef struct search_segment {
    const float *rows; /* packed */
    const float *norms;
    const uint64_t *live;
    uint32_t first_row; /* a multiple of 64 */
    uint32_t word_end;  /* words of 64 rows in this segment and all before it */
} search_segment;

typedef struct search_rows {
    const search_segment *segments;
    const uint64_t *mask; /* over all rows, a word for 64; NULL admits all */
    uint32_t mask_words;  /* rows past them are not admitted */
    uint32_t word_count;  /* of all segments */
    int32_t runs;
    int32_t metric;
} search_rows;

typedef struct search_queries {
    float *packed;   /* slots x 64*runs; for search_few_* a bundle (packed.h) */
    float *zeros;    /* four; not for search_few_* */
    float *norms;    /* slots; not for search_few_*, which compute them */
    uint64_t *worst; /* slots: a key that the k-th best is certainly not behind; it falls while rows are scored */
    uint32_t count;  /* queries; the other slots are zero and find nothing */
    uint32_t slots;  /* count rounded up to what the kernel takes at once */
} search_queries;

/* List `part * slots + query` holds keys[list * capacity ..], counts[list] of them. While rows are scored a list may grow up to
 * its capacity and is cut back when it is longer than `trigger`; in the end none is longer than `kept_max`. */
typedef struct search_lists {
    uint64_t *keys;
    uint32_t *counts;
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
    int32_t dim;
} search_prepare_args;

/* search_few_*: a grid of `parts`. The others: parts x slots / queries in a tile. Blocks of SEARCH_THREADS. */
typedef struct search_args {
    search_rows rows;
    search_queries queries;
    search_lists lists;
} search_args;

/* A block a query. */
typedef struct search_merge_args {
    search_lists lists;
    const uint64_t *worst;
    uint64_t *best; /* queries x k keys in order, then CANON_KEY_WORST */
    uint32_t slots;
} search_merge_args;

#endif
