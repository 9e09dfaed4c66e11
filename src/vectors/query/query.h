/* What searches use of the entry point that checked their query (query.c). */
#ifndef WW_VECTORS_QUERY_H
#define WW_VECTORS_QUERY_H

#include "vectors/collection.h"
#include "vectors/tensor_rows.h"

/* Refuses a where, parameters and a filter that make no sense, or that the collection cannot have. */
ww_status query_check_conditions(const ww_collection *collection, const char *function, const ww_query *query);

/* WW_INVALID_ARGUMENT if one of `count` dense queries in memory of the host is not finite; the message says which and why. */
ww_status queries_check_finite(const ww_collection *collection, const float *queries, int64_t count);

/* Gives the caller what the search did, if the query asks for it. */
void query_tell_stats(const ww_query *query, const search_stats *found);

#endif
