/* A search in its steps, for the calls that do more than one under a lock. */
#ifndef WW_VECTORS_SEARCH_H
#define WW_VECTORS_SEARCH_H

#include "vectors/collection.h"
#include "vectors/tensor_rows.h"

/* Checks everything that can be checked without the lock, and fills in a query_stride of 0. Queries that came as a tensor are
 * held in `held`, which is all zero, until tensor_rows_release(), whatever the status; search->queries is where the host reads
 * them, or NULL: they are on a GPU, or the collection is kept elsewhere and the tensor goes to its owner. */
ww_status search_check(ww_collection *collection, const char *function, ww_search *search, tensor_rows *held);

/* Refuses a mask that covers no row. With the lock. */
ww_status search_check_mask(const ww_collection *collection, const ww_search *search);

/* Takes the reader's lock with the device's live words up to date. They are
 * behind only after a write failed while it changed them; then a writer's lock is needed first, to set them right. Not locked
 * after a failure. */
ww_status search_lock(ww_collection *collection);

/* The same for a checked search: queries that are on a GPU are checked there, or brought to the host if the collection is not.
 */
ww_status search_begin(ww_collection *collection, ww_search *search, tensor_rows *held);

/* The queries of a job, and where they are. With the lock. */
void search_queries_to(const ww_search *search, search_job *job);

/* The k best rows of each query, padded with row -1; at least one query, k at least 1. With the lock. */
ww_status search_run(const ww_collection *collection, const ww_search *search, int64_t *rows, float *scores,
                     search_stats *stats);

/* Gives the caller what the search did, if it was asked for. */
void search_tell_stats(ww_search_stats *callers, const search_stats *found);

#endif
