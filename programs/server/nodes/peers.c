/* Choosing replicas. */
#include "server/nodes/peers.h"

#include <string.h>

static const double FAILED_SECONDS = 1; /* the nodes' list is at most half a second old: by then it knows */

static int32_t find(const peers *p, const char *name)
{
    for (int32_t i = 0; i < p->count; i++)
        if (strcmp(p->list[i].name, name) == 0)
            return i;
    return -1;
}

/* A place for a new peer: one that is not used any more, or a new one. */
static int32_t reserve(peers *p)
{
    for (int32_t i = 0; i < p->count; i++)
        if (!p->list[i].listed && p->list[i].running == 0)
            return i;
    return p->count < NODES_MAX ? p->count++ : -1;
}

void peers_update(peers *p, nodes *n)
{
    const int32_t count = nodes_list(n, p->nodes);
    for (int32_t i = 0; i < p->count; i++)
        p->list[i].listed = p->list[i].alive = false;
    for (int32_t i = 0; i < count; i++) {
        const int32_t at = find(p, p->nodes[i].name);
        if (at >= 0)
            p->list[at].listed = true;
    }
    for (int32_t i = 0; i < count; i++) {
        const cluster_node *node = &p->nodes[i];
        const int32_t known = find(p, node->name), at = known >= 0 ? known : reserve(p);
        if (at < 0)
            continue;
        peer *to = &p->list[at];
        if (known < 0)
            *to = (peer){.listed = true};
        memcpy(to->name, node->name, sizeof to->name);
        memcpy(to->url, node->url, sizeof to->url);
        to->shard = node->shard;
        to->alive = node->alive;
    }
}

int32_t peers_choose(const peers *p, int32_t shard, const unsigned char tried[NODES_MAX], double now)
{
    int32_t best = -1;
    for (int32_t i = 0; i < p->count; i++) {
        const peer *one = &p->list[i];
        if (!one->alive || one->shard != shard || tried[i])
            continue;
        const peer *other = best < 0 ? NULL : &p->list[best];
        const bool failed = one->failed_seconds > now - FAILED_SECONDS;
        const bool other_failed = other && other->failed_seconds > now - FAILED_SECONDS;
        if (!other || (failed != other_failed           ? other_failed
                       : one->running != other->running ? one->running < other->running
                                                        : one->asked < other->asked))
            best = i;
    }
    return best;
}
