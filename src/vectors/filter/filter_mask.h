/* The rows of a collection in memory that a query's filter admits. */
#ifndef WW_VECTORS_FILTER_MASK_H
#define WW_VECTORS_FILTER_MASK_H

#include "vectors/collection.h"

/* Makes a mask in `mask` (memory_free()) with a bit for each row below rows_count that is live, that the query's own mask
 * admits, and whose payload meets query->filter, which must not be NULL. Reads every such payload, on the device's threads if
 * there are many. Needs the reader's lock. */
ww_status filter_mask_make(const ww_collection *collection, const ww_query *query, uint64_t **mask);

#endif
