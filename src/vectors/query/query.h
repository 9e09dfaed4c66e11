/* The functions of the entry point (query.c) that searches use. */
#ifndef WW_VECTORS_QUERY_H
#define WW_VECTORS_QUERY_H

#include "vectors/collection.h"
#include "vectors/tensor_rows.h"

/* Refuses a where, parameters or a filter that are invalid, or that the collection does not support. */
ww_status query_check_conditions(const ww_collection *collection, const char *function, const ww_query *query);

/* Fails with WW_INVALID_ARGUMENT if one of `count` dense queries in host memory is not finite; the message says which and
 * why. */
ww_status queries_check_finite(const ww_collection *collection, const float *queries, int64_t count);

/* Reads a query of an index in memory that has rows and scores only: the struct, and what its mode needs. Refuses other
 * fields. */
ww_status query_read_rows_only(const char *function, const ww_query *callers, ww_query *query);

/* Writes the statistics of the search to the caller's struct, if the query has one. */
void query_tell_stats(const ww_query *query, const search_stats *found);

#endif
