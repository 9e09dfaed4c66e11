/* Range search on the CPU: a search (search.c) whose threshold is given and never changes, so it needs no sample and no heaps.
 * Every worker lists its hits of each query; at the end the lists are joined and sorted. */
#ifndef WW_CPU_SEARCH_RANGE_H
#define WW_CPU_SEARCH_RANGE_H

#include "cpu/search/search_state.h"

/* What a range search has instead of heaps. */
typedef struct range_scan {
    const range_job *job;
    canon_key last;  /* the largest key within the bound */
    float limit;     /* for isa->filter_sums and filter_dots */
    bool bounded;    /* false: every score is within the bound */
    key_list *lists; /* one list per worker and query of a round; the first worker uses the lists of the job */
} range_scan;

/* Sets the bound; range_create() makes the lists. */
range_scan range_of(const range_job *job);

/* Allocate the lists for all workers and a round; free the lists and their contents. */
ww_status range_create(range_scan *range, const scan *s);
void range_destroy(range_scan *range, const scan *s);

/* Lists those rows in `candidates` (bit r for row r, whose sum is sums[r]) that are within the bound. */
void range_offer(const scan *s, int32_t worker, int32_t query, const float *sums, const float *norms, uint32_t first_row,
                 uint64_t candidates);

/* Joins the workers' lists of a query and sorts them. */
void range_finish(const scan *s, int32_t worker, int32_t query);

/* Fails if there was not enough memory for all hits. */
ww_status range_check(const scan *s);

#endif
