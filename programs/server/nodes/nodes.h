/* The nodes that share a table: rows of warpwave.nodes in the database that they follow. A node is alive while its session
 * holds an advisory lock, so PostgreSQL is the judge of that; while the database cannot be reached, the last judgement stays.
 */
#ifndef WW_SERVER_NODES_NODES_H
#define WW_SERVER_NODES_NODES_H

#include "server/cluster/follow.h"

enum { NODES_MAX = 256, NODE_URL_BYTES = 256 };

/* "warp" as a number: the first half of the keys of the advisory locks that live nodes hold. */
#define NODES_LOCK_CLASS "2002874992"

typedef struct cluster_node {
    char name[NODE_NAME_BYTES], url[NODE_URL_BYTES];
    int32_t shard;             /* from 0 */
    bool alive, serving, self; /* alive: it serves, too */
    uint64_t lsn;              /* up to which place in the log it had everything when it was seen last */
    double seen_seconds;       /* how long ago that was */
} cluster_node;

typedef struct nodes nodes;

/* Starts the thread that writes this node's row and reads those of the nodes which follow the same tables in as many shards.
 * `f` and what `config` points at must live longer. */
ww_status nodes_start(const follow_config *config, follower *f, nodes **started);
void nodes_stop(nodes *n); /* accepts NULL */

/* Copies the list, ordered by shard and name. Returns the number of nodes. */
int32_t nodes_list(nodes *n, cluster_node list[NODES_MAX]);

/* Why the list is not up to date; empty if it is. */
void nodes_why(nodes *n, char *why, size_t capacity);

#endif
