/* What a database has of the servers that follow it, and removing it: a replication slot, a publication, a row of
 * warpwave.nodes. For `warpwave cluster`, which needs no server. */
#ifndef WW_SERVER_NODES_MEMBERS_H
#define WW_SERVER_NODES_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct cluster_member {
    const char *name, *url; /* the URL is empty for a server that answers by itself */
    const char *shard;      /* "2/4"; empty for such a server */
    bool live;              /* a session of it holds its slot or its lock */
    int64_t kept_bytes;     /* of the database's log, kept for it; -1: it has no slot */
    double seen_seconds;    /* since it wrote its row; -1: it has none */
} cluster_member;

/* Tells all of them, by name. */
ww_status members_list(const char *conninfo, void (*tell)(void *user, const cluster_member *member), void *user);

/* Drops the slot, the publication and the row. Refuses a live one with WW_BUSY unless `force`, which ends its sessions. Each
 * step may be missing already, so that an interrupted removal can be repeated. */
ww_status members_remove(const char *conninfo, const char *name, bool force);

#endif
