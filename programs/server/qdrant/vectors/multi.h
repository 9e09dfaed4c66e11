/* Multivectors of Qdrant's API: [[1, 0], [0, 1]], for vectors with a multivector_config. Such a vector has a collection of its
 * own in the store, even without a name; its rows have multivectors, and dense ones of zeros. A note says so (layout.h). */
#ifndef WW_SERVER_QDRANT_VECTORS_MULTI_H
#define WW_SERVER_QDRANT_VECTORS_MULTI_H

#include <warpwave/multi.h>

#include "server/state.h"

struct search;

/* Checks {"comparator": "max_sim"} of a vector with this distance. */
bool multi_check_config(request *r, const char *config, ww_metric metric);

/* Is the value a list of lists? */
bool is_multi(const char *value);

/* Reads one, whose memory multi_value_free() frees, even after a failure. `what` is its place in the body, for messages.
 * False: the request failed. */
bool multi_value_read(request *r, const char *value, const char *what, ww_multivector *vector);
void multi_value_free(ww_multivector *vector);

/* Writes the multivector of a hit, each of its vectors by `put`. */
typedef void (*multi_writer)(out *o, const entry *e, const float *vector);
void put_multi(out *o, const entry *part, const ww_results *of_one, multi_writer put);

/* Makes a search of a multivector ready: one by a vector or a point gets its multivector. */
ww_status multi_ready(struct search *s);

#endif
