/* Making one list of those that shards have found: fused and thinned out by the library, or drawn at random. */
#ifndef WW_SERVER_NODES_FUSING_H
#define WW_SERVER_NODES_FUSING_H

#include "server/nodes/hits.h"

/* Fuses lists as the search says. `fused` gets ids and scores, the best first. */
ww_status hits_fuse(ww_device *device, const search *s, hit_list *const *lists, size_t count, hit_list *fused);

/* Orders the best of the candidates, which have vectors, by maximal marginal relevance. */
ww_status hits_diversify(ww_device *device, const search *s, ww_metric metric, hit_list *candidates);

/* A random sample of all shards' points. Each shard has sent an object with one of its own, "points" in a random order, and
 * with their number, "total". */
ww_status hits_draw(const char *const *ones, size_t shards, int64_t wanted, hit_list *drawn);

#endif
