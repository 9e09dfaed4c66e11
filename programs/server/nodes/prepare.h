/* What the shards are asked for before a search, because no shard knows it of the others' rows: the vectors of points that are
 * examples, and how many texts have the words that are searched for. */
#ifndef WW_SERVER_NODES_PREPARE_H
#define WW_SERVER_NODES_PREPARE_H

#include "server/nodes/merge.h"

/* Does a search of the request need it? */
bool prepare_needed(const request *r);

/* Appends what the shards have answered to `step`, as the next steps have it: ,"examples":[...],"words":[...]. Fails if a point
 * does not exist. */
ww_status prepare_take(const request *r, const shard_answers *from, out *step);

#endif
