/* Followed collections in the server: requests that wait for a place in the database's log, refused changes, what is shown. */
#include <stdio.h>
#include <string.h>

#include "server/cluster/sql_writer.h"
#include "server/cluster/values.h"
#include "server/route.h"
#include "server/state.h"
#include "server/work/changes.h"

bool table_config_is(const table_config *table, const char *collection)
{
    if (table->collection)
        return strcmp(table->collection, collection) == 0;
    const char *dot = strrchr(table->table, '.'), *name = dot ? dot + 1 : table->table;
    const size_t length = strlen(name);
    return strcmp(name, collection) == 0 ||
           (name[0] == '"' && length == strlen(collection) + 2 && strncmp(name + 1, collection, length - 2) == 0);
}

bool following_has(const server *s, const char *collection)
{
    if (s->config.follow.cluster)
        return true;
    for (size_t i = 0; i < s->config.follow.table_count; i++)
        if (table_config_is(&s->config.follow.tables[i], collection))
            return true;
    return false;
}

/* On the follower's thread, after each commit: collections may be new, and requests may have waited for it. */
static void changed(void *user)
{
    queue_wake(&((server *)user)->behind);
}

static bool behind_run(queue *q, request *taken)
{
    (void)q;
    for (request *r = taken, *next; r; r = next) {
        next = r->next;
        if (atomic_load(&r->gone) && !request_fail(r, 503, "the place in the log was not reached in time"))
            request_done(r);
        else
            request_dispatch(r);
    }
    return false;
}

ww_status following_start(server *s)
{
    queue_init(&s->behind, s, "follow", behind_run);
    s->behind.all = s->behind.sleeps = true;
    queue_init(&s->writes, s, "writes", requests_run);
    queue_init(&s->again, s, "again", again_run);
    if (!s->config.follow.conninfo)
        return WW_OK;
    const follow_listener listener = {changed, changes_came, s};
    ww_status status = s->config.follow.cluster ? changes_read_models(s) : WW_OK;
    if (status == WW_OK)
        status = follower_start(s->store, &s->config.follow, &listener, &s->follower);
    if (status == WW_OK && s->config.follow.cluster)
        status = sql_writer_create(&s->config.follow, s->follower, &s->writer);
    return status == WW_OK ? cluster_start(s) : status;
}

void following_stop(server *s)
{
    cluster_stop(s);
    follower_stop(s->follower);
    sql_writer_destroy(s->writer);
    s->writer = NULL;
    s->follower = NULL;
}

bool following_begin(request *r)
{
    server *s = r->server;
    const char *wanted = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "x-warpwave-min-lsn");
    if (!s->follower)
        return wanted ? request_fail(r, 400, "x-warpwave-min-lsn: this server follows no database") : cluster_begin(r);
    if (wanted && !pg_lsn_read(wanted, &r->lsn_min))
        return request_fail(r, 400, "x-warpwave-min-lsn: '%.40s' is not a place in PostgreSQL's log, as in 16/B374D848",
                            wanted);
    if (s->config.follow.cluster)
        return changes_permitted(r) && cluster_begin(r);
    entry *e = route_changes(r->route) && r->names[0] ? entry_find(s, r->names[0]) : NULL; /* the name may be an alias */
    const bool followed = route_changes(r->route) && r->names[0] && following_has(s, e ? e->name : r->names[0]);
    if (e)
        entry_release(s, e);
    if (followed)
        return request_fail(r, 403,
                            "the collection '%s' follows a table of PostgreSQL and cannot be changed here; change the table",
                            r->names[0]);
    return cluster_begin(r);
}

bool following_waits(request *r)
{
    server *s = r->server;
    if (!s->follower)
        return false;
    r->version = follower_version(s->follower);
    pthread_mutex_lock(&s->lock);
    const pg_lsn lsn = follower_lsn(s->follower);
    const bool waits = lsn < r->lsn_min;
    if (waits)
        queue_park(&s->behind, r);
    pthread_mutex_unlock(&s->lock);
    if (waits)
        follower_hurry(s->follower, r->lsn_min);
    else
        pg_lsn_write(lsn, r->lsn);
    return waits;
}

void following_tell(const request *r, struct MHD_Response *response)
{
    uint64_t digest = 0;
    char text[20];
    if (r->lsn[0] != '\0')
        MHD_add_response_header(response, "x-warpwave-lsn", r->lsn);
    if (!r->part || !follower_rows(r->server->follower, r->version, &digest))
        return;
    snprintf(text, sizeof text, "%016llx", (unsigned long long)digest);
    MHD_add_response_header(response, "x-warpwave-rows", text);
}

static bool show(request *r)
{
    if (!r->server->follower || !following_has(r->server, r->names[0]))
        return request_fail(r, 404, "the collection '%s' follows no table", r->names[0]);
    request_result_begin(r);
    follower_describe(r->server->follower, r->names[0], &r->answer);
    request_result_end(r);
    return true;
}

static const route routes[] = {
    {"GET", "/collections/{name}/follow", RIGHT_READ, WORK_HERE, show, NULL,
     "How a collection follows its table of PostgreSQL: the state, the lag, rows that were left out", NULL, "An object.",
     false},
};

const route_table routes_following = {routes, sizeof routes / sizeof *routes};
