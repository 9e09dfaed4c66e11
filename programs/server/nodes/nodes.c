/* The thread that keeps warpwave.nodes. */
#include "server/nodes/nodes.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/system/threads.h"
#include "base/tables/hash.h"
#include "base/text.h"
#include "server/cluster/follow_state.h"

enum { TURN_MS = 500, CONNECT_SECONDS = 3, WHY_BYTES = 400 };

struct nodes {
    const follow_config *config;
    follower *follower;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping;
    cluster_node list[NODES_MAX];
    int32_t count;
    char why[WHY_BYTES];
    /* The thread's own. */
    PGconn *sql;
    char locked[NODE_NAME_BYTES]; /* the name whose lock the session holds */
    replica_digests replicas[NODES_MAX];
    pg_lsn differed; /* the place where replicas differed last */
};

/* Nodes that start together would create the table at the same time, so they do it one after the other. */
static const char create_sql[] =
    "SELECT pg_advisory_xact_lock(" NODES_LOCK_CLASS ", 0); CREATE SCHEMA IF NOT EXISTS warpwave; "
    "CREATE TABLE IF NOT EXISTS warpwave.nodes (name text PRIMARY KEY, url text NOT NULL, shard int NOT NULL, shards int NOT "
    "NULL, tables text NOT NULL, lock int NOT NULL, lsn pg_lsn NOT NULL, seen timestamptz NOT NULL, serving boolean NOT NULL, "
    "copied pg_lsn NOT NULL, digests text NOT NULL)";

static const char write_sql[] =
    "INSERT INTO warpwave.nodes VALUES ($1, $2, $3::int, $4::int, $5, $6::int, $7::pg_lsn, clock_timestamp(), $8::boolean, "
    "$9::pg_lsn, $10) "
    "ON CONFLICT (name) DO UPDATE SET url = EXCLUDED.url, shard = EXCLUDED.shard, shards = EXCLUDED.shards, "
    "tables = EXCLUDED.tables, lock = EXCLUDED.lock, lsn = EXCLUDED.lsn, seen = EXCLUDED.seen, serving = EXCLUDED.serving, "
    "copied = EXCLUDED.copied, digests = EXCLUDED.digests";

static const char read_sql[] =
    "SELECT n.name, n.url, n.shard, n.lsn, extract(epoch FROM clock_timestamp() - n.seen), "
    "EXISTS (SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.classid = " NODES_LOCK_CLASS
    " AND l.objid = n.lock::oid "
    "AND l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()))::int, n.serving::int, "
    "n.copied, n.digests "
    "FROM warpwave.nodes n WHERE n.tables = $1 AND n.shards = $2::int ORDER BY n.shard, n.name LIMIT 256";

/* ---- statements ---------------------------------------------------------------------------------------------------------- */

static ww_status run_with(nodes *n, const char *sql, const char *const *values, int count, PGresult **result)
{
    PGresult *got = PQexecParams(n->sql, sql, count, NULL, values, NULL, NULL, 0);
    const ExecStatusType state = PQresultStatus(got);
    if (state == PGRES_TUPLES_OK || state == PGRES_COMMAND_OK) {
        *result = got;
        return WW_OK;
    }
    PQclear(got);
    return pg_failed(n->sql, "warpwave.nodes");
}

static ww_status connect_nodes(nodes *n)
{
    n->locked[0] = '\0';
    const ww_status status = pg_open(n->config->conninfo, false, CONNECT_SECONDS, &n->sql);
    return status == WW_OK ? pg_do(n->sql, "warpwave.nodes", create_sql) : status;
}

static void lock_number(const char *name, char text[16])
{
    snprintf(text, 16, "%d", (int)(fnv_bytes(FNV_BEGIN, name, strlen(name)) & INT32_MAX));
}

/* Takes the lock that says that this node lives. */
static ww_status take_lock(nodes *n, const char *name)
{
    PGresult *got = NULL;
    char number[16], sql[128];
    lock_number(name, number);
    snprintf(sql, sizeof sql, "SELECT pg_try_advisory_lock(" NODES_LOCK_CLASS ", %s)::int", number);
    ww_status status = pg_run(n->sql, "warpwave.nodes", sql, NULL, &got);
    if (status == WW_OK && strcmp(pg_field(got, 0, 0), "1") != 0)
        status = ww_fail(WW_BUSY, "another server, or this one's last run, still holds the lock of the node %s", name);
    if (status == WW_OK)
        text_copy(n->locked, sizeof n->locked, name);
    if (got)
        PQclear(got);
    return status;
}

static ww_status write_own(nodes *n, const char *name)
{
    char shard[16], shards[16], tables[24], lock[16], lsn[PG_LSN_BYTES], copied[PG_LSN_BYTES], digests[DIGESTS_TEXT_BYTES];
    PGresult *got = NULL;
    replica_digests own;
    follower_digests(n->follower, &own);
    digests_write(&own, digests);
    pg_lsn_write(own.copied, copied);
    snprintf(shard, sizeof shard, "%d", (int)n->config->shard);
    snprintf(shards, sizeof shards, "%d", (int)n->config->shards);
    snprintf(tables, sizeof tables, "%016llx", (unsigned long long)follow_tables_hash(n->config, false));
    lock_number(name, lock);
    pg_lsn_write(follower_lsn(n->follower), lsn);
    const char *const values[] = {
        name,   n->config->advertise, shard, shards, tables, lock, lsn, follower_serves(n->follower) ? "t" : "f", copied,
        digests};
    ww_status status = strcmp(n->locked, name) == 0 ? WW_OK : take_lock(n, name);
    if (status == WW_OK)
        status = run_with(n, write_sql, values, sizeof values / sizeof *values, &got);
    if (got)
        PQclear(got);
    return status;
}

/* Compares this node's rows with those of the other replicas of its shard, at places where several have said what they have.
 * What was compared is not compared again. */
static void compare_replicas(nodes *n, const PGresult *rows)
{
    char why[WHY_BYTES], place[PG_LSN_BYTES];
    int32_t count = 0, own = -1;
    pg_lsn at = 0;
    for (int32_t i = 0; i < n->count; i++) {
        replica_digests *to = &n->replicas[count];
        if (!n->list[i].alive || n->list[i].shard != n->config->shard)
            continue;
        *to = (replica_digests){.count = 0};
        text_copy(to->name, sizeof to->name, n->list[i].name);
        (void)pg_lsn_read(pg_field(rows, i, 7), &to->copied);
        digests_read(pg_field(rows, i, 8), to);
        own = n->list[i].self ? count : own;
        count++;
    }
    const digest_verdict verdict = own < 0 ? DIGESTS_AGREE : digests_compare(n->replicas, count, own, &at);
    if (verdict == DIGESTS_AGREE || at == n->differed)
        return;
    n->differed = at;
    pg_lsn_write(at, place);
    snprintf(why, sizeof why, "at %s this node's rows differ from those of other replicas of shard %d/%d; they are copied anew",
             place, (int)n->config->shard + 1, (int)n->config->shards);
    follower_count_difference(n->follower);
    if (verdict == DIGESTS_OWN_WRONG)
        follower_distrust(n->follower, why);
}

static ww_status read_all(nodes *n, const char *own)
{
    char shards[16], tables[24];
    PGresult *rows = NULL;
    snprintf(shards, sizeof shards, "%d", (int)n->config->shards);
    snprintf(tables, sizeof tables, "%016llx", (unsigned long long)follow_tables_hash(n->config, false));
    const char *const values[] = {tables, shards};
    const ww_status status = run_with(n, read_sql, values, 2, &rows);
    if (status != WW_OK)
        return status;
    pthread_mutex_lock(&n->lock);
    n->count = PQntuples(rows) < NODES_MAX ? PQntuples(rows) : NODES_MAX;
    for (int32_t i = 0; i < n->count; i++) {
        cluster_node *to = &n->list[i];
        text_copy(to->name, sizeof to->name, pg_field(rows, i, 0));
        text_copy(to->url, sizeof to->url, pg_field(rows, i, 1));
        to->shard = (int32_t)strtol(pg_field(rows, i, 2), NULL, 10);
        (void)pg_lsn_read(pg_field(rows, i, 3), &to->lsn);
        to->seen_seconds = strtod(pg_field(rows, i, 4), NULL);
        to->serving = strcmp(pg_field(rows, i, 6), "1") == 0;
        to->alive = to->serving && strcmp(pg_field(rows, i, 5), "1") == 0;
        to->self = strcmp(to->name, own) == 0;
    }
    pthread_mutex_unlock(&n->lock);
    compare_replicas(n, rows);
    PQclear(rows);
    return WW_OK;
}

/* ---- the thread ---------------------------------------------------------------------------------------------------------- */

/* A node has a row once it has copied the tables: before that it can answer nothing. */
static ww_status turn(nodes *n)
{
    char name[NODE_NAME_BYTES];
    follower_name(n->follower, name);
    ww_status status = n->sql ? WW_OK : connect_nodes(n);
    if (status == WW_OK && name[0] != '\0')
        status = write_own(n, name);
    return status == WW_OK ? read_all(n, name) : status;
}

static void *run(void *user)
{
    nodes *n = user;
    pthread_mutex_lock(&n->lock);
    while (!n->stopping) {
        pthread_mutex_unlock(&n->lock);
        const ww_status status = turn(n);
        if (status != WW_OK && n->sql && (PQstatus(n->sql) != CONNECTION_OK || status != WW_BUSY)) {
            PQfinish(n->sql);
            n->sql = NULL;
        }
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += (long)TURN_MS * 1000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_mutex_lock(&n->lock);
        text_copy(n->why, sizeof n->why, status == WW_OK ? "" : ww_error_message());
        while (!n->stopping && pthread_cond_timedwait(&n->wake, &n->lock, &until) != ETIMEDOUT)
            ;
    }
    pthread_mutex_unlock(&n->lock);
    return NULL;
}

ww_status nodes_start(const follow_config *config, follower *f, nodes **started)
{
    nodes *n = memory_alloc_zeroed(1, sizeof *n);
    pthread_condattr_t monotonic;
    if (!n)
        return memory_failed("a list of nodes", sizeof *n);
    n->config = config;
    n->follower = f;
    pthread_mutex_init(&n->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&n->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    const int code = thread_start(&n->thread, "ww-nodes", run, n);
    if (code == 0) {
        *started = n;
        return WW_OK;
    }
    pthread_cond_destroy(&n->wake);
    pthread_mutex_destroy(&n->lock);
    memory_free(n);
    return ww_fail_errno(WW_IO_ERROR, code, "the thread that looks after the other nodes could not be started");
}

void nodes_stop(nodes *n)
{
    if (!n)
        return;
    pthread_mutex_lock(&n->lock);
    n->stopping = true;
    pthread_cond_signal(&n->wake);
    pthread_mutex_unlock(&n->lock);
    pthread_join(n->thread, NULL);
    PQfinish(n->sql);
    pthread_cond_destroy(&n->wake);
    pthread_mutex_destroy(&n->lock);
    memory_free(n);
}

int32_t nodes_list(nodes *n, cluster_node list[NODES_MAX])
{
    pthread_mutex_lock(&n->lock);
    const int32_t count = n->count;
    memcpy(list, n->list, (size_t)count * sizeof *list);
    pthread_mutex_unlock(&n->lock);
    return count;
}

void nodes_why(nodes *n, char *why, size_t capacity)
{
    pthread_mutex_lock(&n->lock);
    text_copy(why, capacity, n->why);
    pthread_mutex_unlock(&n->lock);
}
