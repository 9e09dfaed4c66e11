/* A server among others that follow the same tables: which requests other nodes must help to answer, and GET /cluster. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/nodes/nodes.h"
#include "server/nodes/scatter.h"
#include "server/nodes/step.h"
#include "server/route.h"
#include "server/state.h"

ww_status cluster_start(server *s)
{
    if (!s->config.follow.advertise)
        return WW_OK;
    const ww_status status = nodes_start(&s->config.follow, s->follower, &s->nodes);
    return status == WW_OK ? scatter_start(s, s->nodes, &s->scatter) : status;
}

void cluster_stop(server *s)
{
    scatter_stop(s->scatter);
    nodes_stop(s->nodes);
    s->scatter = NULL;
    s->nodes = NULL;
}

/* ---- parts of requests --------------------------------------------------------------------------------------------------- */

bool cluster_begin(request *r)
{
    server *s = r->server;
    const follow_config *config = &s->config.follow;
    const char *part = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "x-warpwave-part");
    char own[32];
    if (!part)
        return true;
    if (!s->scatter)
        return request_fail(r, 400, "x-warpwave-part: this server is not a node of a cluster");
    if (config->node_key_file && !r->from_node)
        return request_fail(r, 403, "x-warpwave-part: only nodes may ask for a part, with the key in --node-key-file");
    snprintf(own, sizeof own, "%d/%d", (int)config->shard + 1, (int)config->shards);
    if (strcmp(part, own) != 0)
        return request_fail(r, 421, "this node has shard %s, not %.20s", own, part);
    if (!follower_serves(s->follower))
        return request_fail(r, 503, "this node is copying the tables");
    r->part = true;
    const char *again = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "x-warpwave-again");
    r->again = again != NULL;
    r->outvoted = again && strcmp(again, "outvoted") == 0;
    return true;
}

/* Does the request read a collection that follows a table? Copies its own name, and its metric. */
static bool reads_followed(const request *r, char *collection, size_t capacity, ww_metric *metric)
{
    server *s = r->server;
    entry *e = entry_find(s, r->names[0]); /* the name may be an alias */
    bool found = e && s->config.follow.cluster;
    if (found)
        *metric = e->metric;
    snprintf(collection, capacity, "%s", e ? e->name : r->names[0]);
    for (size_t i = 0; !found && i < s->config.follow.table_count; i++) {
        found = table_config_is(&s->config.follow.tables[i], collection);
        *metric = s->config.follow.tables[i].metric;
    }
    if (e)
        entry_release(s, e);
    return found;
}

/* Does the answer depend on the rows of a collection? */
static bool reads_rows(const request *r)
{
    if (!r->names[0] || route_writes(r->route))
        return false;
    return r->route->work == WORK_READ || r->route->work == WORK_COLLECTION ||
           strcmp(r->route->path, "/collections/{collection_name}") == 0;
}

bool cluster_takes(request *r)
{
    enum { COLLECTION_BYTES = 512 };
    server *s = r->server;
    char collection[COLLECTION_BYTES];
    const int64_t every = s->config.follow.verify;
    r->step = r->part && reads_rows(r) ? step_of(r) : NULL;
    r->batch = r->step ? 0 : r->batch;
    if (!s->scatter || !reads_rows(r) || (r->part && !r->again))
        return false;
    ww_metric metric = WW_COSINE;
    const bool followed = reads_followed(r, collection, sizeof collection, &metric);
    if (r->again) {
        if (followed && scatter_is_exact(r))
            queue_submit(&s->again, r);
        else if (!request_fail(r, 400, "x-warpwave-again: only for exact searches by vectors of followed tables"))
            request_done(r);
        return true;
    }
    if (followed && step_of(r)) {
        if (!request_fail(r, 400, "shard_step: only other nodes may send it"))
            request_done(r);
        return true;
    }
    const bool verified =
        followed && every > 0 && scatter_can_verify(s->scatter, r) && (atomic_fetch_add(&s->verify_turns, 1) + 1) % every == 0;
    if (!followed || (!verified && s->config.follow.shards == 1 && follower_serves(s->follower)))
        return false;
    scatter_submit(s->scatter, r, &(scatter_target){collection, metric, verified});
    return true;
}

/* ---- GET /cluster ---------------------------------------------------------------------------------------------------------
 */

/* Qdrant's peers are numbers: the 16 digits at the end of a node's name. */
static uint64_t peer_id(const char *name)
{
    const char *digits = strrchr(name, '_');
    return digits ? strtoull(digits + 1, NULL, 16) >> 11 : 0; /* 53 bits, so that JavaScript reads them */
}

static uint64_t own_id(const server *s)
{
    char name[NODE_NAME_BYTES] = "";
    if (s->nodes)
        follower_name(s->follower, name);
    return peer_id(name);
}

static void put_lsn(out *o, uint64_t lsn)
{
    out_format(o, "\"%X/%X\"", (unsigned)(lsn >> 32), (unsigned)lsn);
}

static void put_node(out *o, const cluster_node *node, const server *s)
{
    out_text(o, "{\"name\":");
    out_quoted(o, node->name, strlen(node->name));
    out_text(o, ",\"url\":");
    out_quoted(o, node->url, strlen(node->url));
    out_format(o, ",\"shard\":\"%d/%d\",\"alive\":%s,\"self\":%s,\"seen_seconds\":%.1f,\"lsn\":", (int)node->shard + 1,
               (int)s->config.follow.shards, node->alive ? "true" : "false", node->self ? "true" : "false", node->seen_seconds);
    put_lsn(o, node->lsn);
    out_text(o, "}");
}

static bool show_cluster(request *r)
{
    server *s = r->server;
    out *o = &r->answer;
    cluster_node list[NODES_MAX];
    char why[512] = "";
    request_result_begin(r);
    if (!s->nodes) {
        out_text(o, "{\"status\":\"disabled\"}");
        request_result_end(r);
        return true;
    }
    const int32_t count = nodes_list(s->nodes, list);
    nodes_why(s->nodes, why, sizeof why);
    out_format(o, "{\"status\":\"enabled\",\"peer_id\":%llu,\"peers\":{", (unsigned long long)own_id(s));
    for (int32_t i = 0; i < count; i++) {
        out_format(o, "%s\"%llu\":{\"uri\":", i > 0 ? "," : "", (unsigned long long)peer_id(list[i].name));
        out_quoted(o, list[i].url, strlen(list[i].url));
        out_text(o, "}");
    }
    out_text(o, "},\"raft_info\":{\"term\":0,\"commit\":0,\"pending_operations\":0,\"leader\":null,\"role\":null,\"is_voter\":"
                "false},\"consensus_thread_status\":{\"consensus_thread_status\":");
    out_text(o, why[0] == '\0' ? "\"working\",\"last_update\":null}" : "\"stopped_with_err\",\"err\":");
    if (why[0] != '\0') {
        out_quoted(o, why, strlen(why));
        out_text(o, "}");
    }
    out_text(o, ",\"message_send_failures\":{},\"nodes\":[");
    for (int32_t i = 0; i < count; i++) {
        out_text(o, i > 0 ? "," : "");
        put_node(o, &list[i], s);
    }
    out_text(o, "]}");
    request_result_end(r);
    return true;
}

/* ---- GET /collections/{name}/cluster ---------------------------------------------------------------------------------------
 */

static void put_remote(out *o, const cluster_node *list, int32_t count)
{
    bool begun = false;
    for (int32_t i = 0; i < count; i++) {
        if (list[i].self)
            continue;
        out_format(o, "%s{\"shard_id\":%d,\"peer_id\":%llu,\"state\":\"%s\"}", begun ? "," : "", (int)list[i].shard,
                   (unsigned long long)peer_id(list[i].name), list[i].alive ? "Active" : "Dead");
        begun = true;
    }
}

static void run_collection_cluster(request *r)
{
    server *s = r->server;
    out *o = &r->answer;
    cluster_node list[NODES_MAX];
    if (!request_open_collection(r))
        return;
    const bool spread = s->nodes && following_has(s, r->entry->name);
    const int32_t count = spread ? nodes_list(s->nodes, list) : 0;
    request_result_begin(r);
    out_format(o, "{\"peer_id\":%llu,\"shard_count\":%d,\"local_shards\":[{\"shard_id\":%d,\"points_count\":%lld,",
               (unsigned long long)own_id(s), spread ? (int)s->config.follow.shards : 1,
               spread ? (int)s->config.follow.shard : 0, (long long)ww_collection_count(r->entry->collection));
    out_text(o, "\"state\":\"Active\"}],\"remote_shards\":[");
    put_remote(o, list, count);
    out_text(o, "],\"shard_transfers\":[]}");
    request_result_end(r);
}

static const route routes[] = {
    {"GET", "/cluster", RIGHT_READ, WORK_HERE, show_cluster, NULL, "The nodes that follow the same tables", NULL,
     "The nodes with their shards.", false},
    {"GET", "/collections/{collection_name}/cluster", RIGHT_READ, WORK_STORE_READ, NULL, run_collection_cluster,
     "The shards of a collection and their nodes", NULL, "Local and remote shards.", false},
};

const route_table routes_cluster = {routes, sizeof routes / sizeof *routes};
