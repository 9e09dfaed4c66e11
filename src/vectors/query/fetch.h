/* Copying what belongs to rows into results. */
#ifndef WW_VECTORS_FETCH_H
#define WW_VECTORS_FETCH_H

#include "vectors/collection.h"
#include "vectors/query/results.h"

/* Copies the handle and what `fetch` names of every hit, whose rows are in the results already; row -1 gets nothing. With the
 * lock. */
ww_status results_fetch(ww_results *results, const ww_collection *collection, uint32_t fetch);

/* Reads the vectors of every hit into results->vectors, which has room; only starts, rows and vectors are looked at. */
ww_status results_read_vectors(ww_results *results, const ww_collection *collection);

#endif
