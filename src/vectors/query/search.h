/* Searches rows in memory. Queries were checked before (query.h). */
#ifndef WW_VECTORS_SEARCH_H
#define WW_VECTORS_SEARCH_H

#include "vectors/collection.h"

/* Runs a checked query and returns the results with the data of the hits. May wait for a writer. */
ww_status collection_query(ww_collection *collection, const ww_query *query, ww_results **results);

/* The same for the k nearest, to the caller's buffers, padded with row -1; at least one query, k at least 1. */
ww_status collection_search(ww_collection *collection, const ww_query *query, int64_t *rows, float *scores);

/* Takes the reader's lock, and makes sure that the device's live words are up to date. They are out of date only after a write
 * has failed while it changed them; then they are repaired under the writer's lock first. The lock is not held after a
 * failure. */
ww_status search_lock(ww_collection *collection);

#endif
