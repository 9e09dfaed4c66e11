/* Range search: all rows within a bound. What its kernels take, and which is used when (gpu/search/range.c chooses):
 *
 *   screen_range    behind the keep kernels of a screened search, whose thresholds are the bound: scores the listed rows.
 *   range_tile_*    without codes, and where the screen keeps too much: scores every row.
 *
 * Both give the keys of the rows that are within the bound, with the numbers of their queries, in any order: the host puts them
 * in order. One list takes the entries of all queries, because the number of rows of each is unknown.
 */
#ifndef WW_KERNELS_SEARCH_RANGE_ARGS_H
#define WW_KERNELS_SEARCH_RANGE_ARGS_H

#include "kernels/search/search_args.h"

typedef struct range_entry {
    uint64_t key;
    uint64_t query;
} range_entry;

typedef struct range_list {
    uint64_t last;        /* keys at or before it are within the bound */
    const uint64_t *cuts; /* a query each: keys behind it are counted and not listed; NULL lists all */
    uint32_t *kept;       /* a query each: rows that the screen kept; only for screen_range */
    uint32_t *counts;     /* a query each: rows within the bound */
    uint64_t *length;     /* one: entries, whether or not there was room for them */
    range_entry *entries;
    uint64_t room;
} range_list;

/* As search_tile_* take it, except for the search's lists, of which only `parts` is looked at. */
typedef struct range_tile_args {
    search_args search;
    range_list list;
} range_tile_args;

#endif
