/* Copies the data of rows to results. */
#ifndef WW_VECTORS_FETCH_H
#define WW_VECTORS_FETCH_H

#include "vectors/collection.h"
#include "vectors/query/results.h"

/* Copies the handle, and the fields in `fetch`, of every hit; results->rows must be set. Row -1 has none. Called with the
 * lock. */
ww_status results_fetch(ww_results *results, const ww_collection *collection, uint32_t fetch);

/* Reads the vectors of every hit to results->vectors, which has room. Uses only starts, rows and vectors. */
ww_status results_read_vectors(ww_results *results, const ww_collection *collection);

#endif
