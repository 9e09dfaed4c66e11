/* Range search: all rows within a bound. Its arguments, and its kernels (gpu/search/range.c chooses):
 *
 *   screen_range    after the keep kernels of a screened search with the bound as threshold: scores the listed rows
 *   range_tile      without codes, or if the screen keeps too many rows: scores every row
 *
 * Both list the keys within the bound with the numbers of their queries, in any order; the host sorts them. All queries share
 * one list, because the number of rows of each is unknown.
 */
#ifndef WW_KERNELS_SEARCH_RANGE_ARGS_H
#define WW_KERNELS_SEARCH_RANGE_ARGS_H

#include "kernels/search/search_args.h"

typedef struct range_entry {
    uint64_t key;
    uint64_t query;
} range_entry;

typedef struct range_list {
    uint64_t last;        /* this key and smaller ones are within the bound */
    const uint64_t *cuts; /* one per query: larger keys are counted but not listed; NULL lists all */
    uint32_t *kept;       /* one per query: rows that the screen kept; only for screen_range */
    uint32_t *counts;     /* one per query: rows within the bound */
    uint64_t *length;     /* the number of entries, including those without room */
    range_entry *entries;
    uint64_t room;
} range_list;

/* As for search_tile_*, except that only `parts` of the search's lists is used. */
typedef struct range_tile_args {
    search_args search;
    range_list list;
} range_tile_args;

#endif
