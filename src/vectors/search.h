/* A search in its steps, for the calls that do more than one under a lock. */
#ifndef WW_VECTORS_SEARCH_H
#define WW_VECTORS_SEARCH_H

#include "vectors/collection.h"

/* Checks everything that can be checked without the lock, and fills in a query_stride of 0. */
ww_status search_check(ww_collection *collection, const char *function, ww_search *search);

/* Refuses a mask that covers no row. With the lock. */
ww_status search_check_mask(const ww_collection *collection, const ww_search *search);

/* Takes the reader's lock with the device's live words up to date. They are behind only after a write failed while it
 * changed them; then a writer's lock is needed first, to set them right. Not locked after a failure. */
ww_status search_lock(ww_collection *collection);

/* The k best rows of each query, padded with row -1; at least one query, k at least 1. With the lock. */
ww_status search_run(const ww_collection *collection, const ww_search *search, int64_t *rows, float *scores,
                     search_stats *stats);

/* Gives the caller what the search did, if it was asked for. */
void search_tell_stats(ww_search_stats *callers, const search_stats *found);

#endif
