/* Searches that the shards cannot answer in one go: those that prefetch or fuse, and those by the ids of points, by words, by
 * maximal marginal relevance, in groups, or of a random sample. The shards get the request once per round, each time with a
 * step (step.h). First they say what prepare.h is about; then they search, from what is prefetched first up to the search
 * itself, each round with the ids that the rounds before have found; last they fetch what the answer shows of fused points.
 * Between rounds the library fuses and chooses here, from exact scores, as one server does. */
#ifndef WW_SERVER_NODES_ROUNDS_H
#define WW_SERVER_NODES_ROUNDS_H

#include "server/nodes/merge.h"

typedef struct rounds rounds;

/* Is this a search that needs rounds? */
bool rounds_needed(const request *r);

/* Begins them; fails if the search is not supported over shards. */
ww_status rounds_create(request *r, ww_metric metric, rounds **made);
void rounds_free(rounds *x); /* accepts NULL */

/* Writes the body of the next round. False: there is none, and rounds_answer() can be called. */
bool rounds_ask(rounds *x, out *body);

/* Takes what the shards answer. The texts must stay as they are until rounds_free(). */
ww_status rounds_take(rounds *x, const shard_answers *from);

/* Writes the request's answer. */
ww_status rounds_answer(rounds *x);

#endif
