/* The replicas to ask: which live node of a shard comes next. */
#ifndef WW_SERVER_NODES_PEERS_H
#define WW_SERVER_NODES_PEERS_H

#include "server/nodes/nodes.h"

/* A node that was asked before. */
typedef struct peer {
    char name[NODE_NAME_BYTES], url[NODE_URL_BYTES];
    int32_t shard;
    bool listed, alive;
    int32_t running;       /* requests that it has not answered */
    int64_t asked;         /* which of all questions was the last to it; 0: none */
    double failed_seconds; /* when it failed last; 0: never */
} peer;

typedef struct peers {
    peer list[NODES_MAX];
    int32_t count;
    int64_t asked;                 /* how often a peer was asked */
    cluster_node nodes[NODES_MAX]; /* the list that was taken over last */
} peers;

/* Takes over the nodes' list; nodes that are not in it stay as long as they have requests. */
void peers_update(peers *p, nodes *n);

/* The best live node of a shard that is not in `tried`, one byte for each peer: those that failed during the last second come
 * last, then the least busy, then the one that was asked longest ago. -1: there is none. */
int32_t peers_choose(const peers *p, int32_t shard, const unsigned char tried[NODES_MAX], double now);

#endif
