/* Searching the rows of a collection in memory. Queries come checked (query.h). */
#ifndef WW_VECTORS_SEARCH_H
#define WW_VECTORS_SEARCH_H

#include "vectors/internal/part.h"

/* Finds what a checked query asks for, with what belongs to the hits, and gives the results to the caller. May wait for a
 * writer. */
ww_status collection_query(ww_collection *collection, const ww_query *query, ww_results **results);

/* The same in a part of an index (internal/part.h), and what the part has to say before. */
ww_status collection_query_part(ww_collection *collection, const ww_query *query, const ivf_whole *whole, ww_results **results);
ww_status collection_count_part(ww_collection *collection, const ww_query *query, part_counts *counts);

/* The same into the caller's buffers, for the k nearest, padded with row -1: at least one query, k at least 1. */
ww_status collection_search(ww_collection *collection, const ww_query *query, int64_t *rows, float *scores);

/* Takes the reader's lock with the device's live words up to date. They are behind only after a write failed while it changed
 * them; then a writer's lock is needed first, to set them right. Not locked after a failure. */
ww_status search_lock(ww_collection *collection);

#endif
