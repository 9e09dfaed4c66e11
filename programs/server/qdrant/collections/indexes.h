/* Payload keys that clients declare as indexed. That changes no answer; they are kept because clients read them back. */
#ifndef WW_SERVER_QDRANT_INDEXES_H
#define WW_SERVER_QDRANT_INDEXES_H

#include "server/state.h"

bool prepare_index(request *r);
void run_index(request *r);
void run_unindex(request *r);

/* Writes {"year": {"data_type": "integer", "points": 7}}, with the number of points that have such a value. That takes a look
 * at every payload if a point or an index has changed since the last time. */
ww_status indexes_put(out *o, entry *e);

/* Forgets what the last time found. */
void indexes_forget(entry *e);

#endif
