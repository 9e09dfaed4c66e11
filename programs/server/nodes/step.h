/* One step of a search that several shards answer together. The asking node sends the request as the client gave it, with one
 * more member, "shard_step", which says what this shard is to do with it now:
 *   {"do":"prepare"}   the vectors of examples that are points of this shard, and how many of its texts have the words
 *   {"do":"search","nodes":[[number,null or [ids]],...]}
 *                      searches of the request, counted from 0 with what they prefetch, in the order of reading: each by itself
 *                      and, where there are ids, among these instead of what it prefetches
 *   {"do":"points","lists":[[ids],...]}
 *                      for each search of the request, what it selects of the points with these ids
 *   {"do":"groups","keys":null or [keys]}
 *                      the best groups, or those with these keys
 * All but the first may have "examples":[[search,example,[vector]],...] and "words":[[search,texts,words,[texts with each
 * word]],...], the counts of all shards. Rounds (rounds.h) are the other side. */
#ifndef WW_SERVER_NODES_STEP_H
#define WW_SERVER_NODES_STEP_H

#include "server/qdrant/search.h"

/* The step in a part of a request; NULL: it has none. */
const char *step_of(const request *r);

/* Computes the step, on a worker. */
void step_run(request *r);

/* Search number `*number`, counted from 0 as above; subtracts those that it passes. NULL: there are fewer. */
search *step_search(search *list, size_t count, size_t *number);

#endif
