/* Requests whose answer needs several shards: one thread sends each to a live replica of every shard, and merges what they
 * answer. Nothing here computes scores, so workers never wait for another node. */
#ifndef WW_SERVER_NODES_SCATTER_H
#define WW_SERVER_NODES_SCATTER_H

#include <stdbool.h>

#include <warpwave/vectors.h>

#include "base/status.h"

struct nodes;
struct out;
struct request;
struct server;

typedef struct scatter scatter;

/* Starts the thread; the server and the nodes must live longer. */
ww_status scatter_start(struct server *s, struct nodes *n, scatter **started);
void scatter_stop(scatter *sc); /* answers what still waits with 503. Accepts NULL */

/* What a request reads. */
typedef struct scatter_target {
    const char *collection; /* its own name, not an alias */
    ww_metric metric;
    bool verified; /* two replicas of each shard compute it, and what they say is compared */
} scatter_target;

/* Takes a request whose connection is suspended; the thread answers it. */
void scatter_submit(scatter *sc, struct request *r, const scatter_target *target);

/* Is it an exact search by vectors, whose answer depends on nothing but the rows? */
bool scatter_is_exact(const struct request *r);

/* May replicas be compared by this request? Only by an exact search by vectors, and only if there are several. */
bool scatter_can_verify(scatter *sc, const struct request *r);

void scatter_metrics(scatter *sc, struct out *o);

#endif
