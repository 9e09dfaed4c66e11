/* Range search on the CPU: a search (search.c) whose threshold is given and never changes, so it needs no sample and no heaps.
 * Every worker lists its hits of each query; at the end the lists are joined and sorted. */
#ifndef WW_CPU_SEARCH_RANGE_H
#define WW_CPU_SEARCH_RANGE_H

#include "cpu/search/search_state.h"

/* What a range search has in place of heaps. */
typedef struct range_scan {
    const range_job *job;
    canon_key last;  /* the greatest key within the bound */
    float limit;     /* for isa->filter_sums and filter_dots */
    bool bounded;    /* is there a score that is not within it? */
    key_list *lists; /* round_queries for each worker but the first, whose lists are the job's */
} range_scan;

/* Sets the bound; range_create() makes the lists. */
range_scan range_of(const range_job *job);

/* Allocate the lists for `workers` and a round; free the lists and what they hold. */
ww_status range_create(range_scan *range, const scan *s);
void range_destroy(range_scan *range, const scan *s);

/* Lists those of the rows in `candidates` (bit r for row r, whose sum is sums[r]) that are within the bound. */
void range_offer(const scan *s, int32_t worker, int32_t query, const float *sums, const float *norms, uint32_t first_row,
                 uint64_t candidates);

/* Joins the workers' lists of a query and puts them in order. */
void range_finish(const scan *s, int32_t worker, int32_t query);

/* Was there enough memory for all hits? */
ww_status range_check(const scan *s);

#endif
