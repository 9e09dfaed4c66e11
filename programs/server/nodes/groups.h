/* Groups over shards, in two rounds. In the first each shard sends its best groups: a group that is among the best of all is
 * among the best of the shard that has its best hit. In the second each sends the hits of just those, because the others of a
 * group's best hits may be where the group itself is not among the best. */
#ifndef WW_SERVER_NODES_GROUPS_H
#define WW_SERVER_NODES_GROUPS_H

#include "server/nodes/hits.h"
#include "server/nodes/merge.h"

/* A group in the answer of a shard. */
typedef struct shard_group {
    const char *key; /* in JSON */
    char *id;        /* of its best hit */
    double rank;
    int64_t number; /* in the shard's answer: a hit may be the best of several groups */
} shard_group;

/* Starts zeroed. */
typedef struct group_merge {
    shard_group *groups; /* after the first round: the best of all */
    int64_t count, capacity;
    hit_list *hits;       /* of each of them, after the second */
    const char **lookups; /* what with_lookup found for them, or NULL */
    bool chosen, over;
} group_merge;

/* Writes what comes after "do": in a step. */
void group_merge_ask(const group_merge *m, out *body);

/* Takes the answers of a round. */
ww_status group_merge_take(group_merge *m, const request *r, const shard_answers *from);

/* Writes the result. */
ww_status group_merge_put(const group_merge *m, request *r);

void group_merge_free(group_merge *m);

#endif
