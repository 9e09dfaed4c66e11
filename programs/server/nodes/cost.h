/* What a search over shards has read: the sum of what the shards say ("cost", with "with_cost"). */
#ifndef WW_SERVER_NODES_COST_H
#define WW_SERVER_NODES_COST_H

#include "server/nodes/hits.h"

typedef struct cost_sum {
    int64_t rows_screened, rows_scored, lists_read, bytes, queries;
    bool some;
    char device[64]; /* of the shard that was added first */
} cost_sum;

/* Adds a shard's; NULL: it has not said it. */
void cost_add(cost_sum *sum, const char *cost);

/* The number of its hits that a shard guarantees to be the nearest, in order. */
int64_t cost_proven(const char *cost);

/* Writes ,"cost":{...} */
void cost_put(const cost_sum *sum, int64_t proven, out *o);

#endif
