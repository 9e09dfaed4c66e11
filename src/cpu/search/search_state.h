/* The state of a running search on the CPU, for the files that carry it out: search.c plans it and writes the results, screen.c
 * finds the rows that need no score, scan.c scores rows, and thresholds.c has the thresholds of each query. Each calls only
 * files later in this list. A range search (range.h) is the same with lists instead of heaps. */
#ifndef WW_CPU_SEARCH_SEARCH_STATE_H
#define WW_CPU_SEARCH_SEARCH_STATE_H

#include <stdbool.h>

#include "base/integers.h"
#include "cpu/cpu.h"
#include "cpu/search/topk.h"

typedef struct screen screen;
struct range_scan;

/* What one worker has done. Aligned so that workers do not share cache lines. */
typedef struct scan_counts {
    int64_t screened, kept, scored;
    int64_t looked_at, likely; /* of the current item: rows tried by dot products, and those that were not excluded */
    int64_t lost_bytes;        /* of a range search: the bytes that could not be allocated, or 0 */
    float certificate;         /* the smallest certificate of the queries whose results it wrote */
    int32_t unused[3];
} scan_counts;

typedef struct scan {
    const search_job *job;
    const instruction_set *isa;
    screen *screen;                 /* NULL: every row is scored */
    const struct range_scan *range; /* NULL: the search is for the k best */
    bool planes;                    /* one query may read high planes first */
    int32_t padded;
    int32_t workers;
    int64_t words;         /* words of 64 rows, over all segments */
    int64_t *first_words;  /* the first word of each segment, counted over all segments: row numbers may have gaps */
    int64_t item_words;    /* words per item */
    int64_t row_items;     /* items that the rows are divided into */
    int32_t block_queries; /* queries per item */
    int32_t block_rows;    /* rows that stay in the first-level cache for all queries */
    int32_t round_queries; /* queries that there is memory for */
    int64_t sample_words;  /* words scored before all others for a first threshold; 0 with few rows */

    /* of this round */
    int64_t first_query;
    int32_t query_count;
    float *queries; /* padded */
    float *query_norms;
    canon_key *heaps; /* workers x query_count x k */
    float *limits;    /* workers x query_count, for isa->filter_sums; valid once the heap is full */
    float *sums;      /* workers x QUERY_GROUP x SUMS_ROWS_MAX */
    float *wide;      /* workers x block_rows x padded: rows of another type as floats; otherwise NULL */
    int64_t items;

    scan_counts *counts; /* one per worker, over all rounds */
} scan;

/* What the screen reads of a list's rows, in list order (list_codes.c). This is the device_lists of a CPU. */
typedef struct list_codes {
    int8_t *codes;
    float *scales, *residuals, *norms;
    int64_t capacity;
} list_codes;

typedef struct cpu_lists {
    int64_t count;
    int32_t padded;
    list_codes *lists;
} cpu_lists;

enum { QUERY_GROUP = 24 }; /* queries whose sums are computed, then filtered: 6 KiB of sums stay in the first-level cache */

static inline int64_t at_least_one(int64_t value)
{
    return value > 1 ? value : 1;
}

static inline canon_key *heap_of(const scan *s, int32_t worker, int32_t query)
{
    return s->heaps + ((int64_t)worker * s->query_count + query) * s->job->k;
}

/* ---- thresholds.c -------------------------------------------------------------------------------------------------------- */

/* Returns true if the query's sums have a limit: the worker's heap is full, or the range is bounded. With a screen, the heaps
 * of a group can fill at different times. */
bool has_limit(const scan *s, int32_t worker, int32_t query);

/* Sets the limits of a range search, which never change, for queries begin..end. With a screen, the queries must be encoded. */
void set_range_limits(const scan *s, int32_t begin, int32_t end);

/* Offers the rows in `candidates` (bit r for row r, whose sum is sums[r]) to a query's heap. */
void offer(const scan *s, int32_t worker, int32_t query, const float *sums, const float *norms, uint32_t first_row,
           uint64_t candidates);

/* Sets the limits of query `q` of a group so that they discard rows that are worse than the threshold, the upper half of a
 * key. */
void screen_limits_set(screen_limits *to, int32_t q, const search_job *job, screen_vector v, uint32_t threshold);

/* A worker's heap of this query is full, and its worst key is `key`. */
void screen_learn(const scan *s, int32_t worker, int32_t query, canon_key key);

/* Takes over better thresholds of other workers for queries begin..end. */
void screen_learn_from_others(const scan *s, int32_t worker, int32_t begin, int32_t end);

/* ---- scan.c -------------------------------------------------------------------------------------------------------------- */

/* Returns the live and admitted ones of the 64 rows of this word of the segment. */
uint64_t admitted_rows(const search_job *job, const segment *seg, int64_t word);

/* Scores `count` <= 64 rows from `row` of the segment, of which bit r of `admitted` admits row r, for queries begin..end. */
void scan_rows(const scan *s, int32_t worker, const segment *seg, int64_t row, int32_t count, uint64_t admitted, int32_t begin,
               int32_t end);

/* Scores the admitted rows of one word for queries begin..end. */
void scan_word(const scan *s, int32_t worker, const segment *seg, int64_t word, int32_t begin, int32_t end);

/* Returns the segment of a row, of segments in the order of their rows. */
const segment *segment_of_row(const segment *segments, int64_t count, int64_t row);

/* Returns the index of the segment that holds a word of 64 rows. */
int64_t segment_of_word(const scan *s, int64_t word);

/* ---- screen.c ------------------------------------------------------------------------------------------------------------ */

/* Returns the bytes that a screen needs for each query, besides the scan's own. */
int64_t screen_query_bytes(const scan *s);

/* Allocates the screen of a planned search; below, frees it. */
ww_status screen_create(scan *s);
void screen_destroy(scan *s);

/* Encodes the queries of a group (up to GROUP of them); they have no threshold yet. */
void screen_code_group(const scan *s, int32_t group);

/* Called before and after the words of an item: takes over better thresholds of other workers. */
void screen_begin_item(const scan *s, int32_t worker, int32_t begin, int32_t end);
void screen_end_item(const scan *s);

/* Scores those of the word's admitted rows that the screen keeps, for queries begin..end. */
void screen_word(const scan *s, int32_t worker, const segment *seg, int64_t word, int32_t begin, int32_t end);

/* Compares the k-th result of a query, or the bound of a range, with the thresholds that discarded its rows. */
void screen_prove(const scan *s, int32_t worker, int32_t query, canon_key last);

/* Returns true if that comparison failed. */
bool screen_failed(const scan *s, int32_t query);

/* After the results are written, adds the counts of the round to the job's statistics. */
void screen_end_round(const scan *s);

#endif
