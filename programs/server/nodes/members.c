/* Listing and removing what the database keeps for servers that follow it. */
#include "server/nodes/members.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "server/cluster/connect.h"
#include "server/nodes/nodes.h"
#include "server/out.h"

enum { CONNECT_SECONDS = 10, SQL_BYTES = 4096, END_TURNS = 200 };

/* Names that a follower gives its slot and its publication. Nothing else is listed, and nothing else can be removed. */
#define NAMES_LIKE "'^warpwave_[0-9a-f]{16}$'"

/* Where no node was ever advertised there is no table of them. */
static const char no_nodes[] = "(SELECT ''::text AS name, ''::text AS url, 0 AS shard, 0 AS shards, 0 AS lock, "
                               "now() AS seen WHERE false)";

/* The publications of another database are not visible from here, so its slots are not listed either. */
static const char list_sql[] =
    "WITH nodes AS (SELECT name, url, shard, shards, lock, seen FROM %s AS n), slots AS (SELECT slot_name::text AS name, "
    "active, "
    "active_pid, restart_lsn FROM pg_replication_slots WHERE slot_name ~ " NAMES_LIKE " AND database = current_database()), "
    "names AS (SELECT name FROM nodes UNION SELECT name FROM slots UNION "
    "SELECT pubname::text FROM pg_publication WHERE pubname ~ " NAMES_LIKE ") "
    "SELECT name, url, shard + 1 || '/' || shards, (coalesce(active, false) OR EXISTS (SELECT FROM pg_locks l WHERE "
    "l.locktype = 'advisory' AND l.classid = " NODES_LOCK_CLASS " AND l.objid = n.lock::oid AND l.granted AND "
    "l.database = (SELECT oid FROM pg_database WHERE datname = current_database())))::int, "
    "CASE WHEN s.name IS NULL THEN -1 ELSE coalesce(pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN "
    "pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END, restart_lsn), 0) END::bigint, "
    "coalesce(extract(epoch FROM clock_timestamp() - seen), -1) "
    "FROM names LEFT JOIN nodes n USING (name) LEFT JOIN slots s USING (name) WHERE $1 IN ('', name) ORDER BY name";

/* Ends the sessions of a node: that of its slot, and that of its lock. */
static const char end_slot_sql[] = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = $1 "
                                   "AND active";
static const char end_lock_sql[] =
    "SELECT pg_terminate_backend(l.pid) FROM warpwave.nodes n JOIN pg_locks l ON l.objid = n.lock::oid WHERE n.name = $1 AND "
    "l.locktype = 'advisory' AND l.classid = " NODES_LOCK_CLASS " AND l.granted AND l.pid <> pg_backend_pid()";
static const char is_active_sql[] = "SELECT pg_sleep(0.05), count(*) FROM pg_replication_slots WHERE slot_name = $1 AND active";

static ww_status run_named(PGconn *sql, const char *statement, const char *name)
{
    PGresult *row = NULL;
    const ww_status status = pg_run(sql, "PostgreSQL", statement, name, &row);
    if (row)
        PQclear(row);
    return status;
}

static ww_status has_nodes(PGconn *sql, bool *has)
{
    PGresult *row = NULL;
    const ww_status status = pg_run(sql, "PostgreSQL", "SELECT (to_regclass('warpwave.nodes') IS NOT NULL)::int", NULL, &row);
    *has = status == WW_OK && strcmp(pg_field(row, 0, 0), "1") == 0;
    if (row)
        PQclear(row);
    return status;
}

/* All members, or the one with this name. */
static ww_status select_members(PGconn *sql, bool table, const char *name, PGresult **rows)
{
    char statement[SQL_BYTES];
    snprintf(statement, sizeof statement, list_sql, table ? "warpwave.nodes" : no_nodes);
    return pg_run(sql, "PostgreSQL", statement, name, rows);
}

static cluster_member member_of(const PGresult *rows, int row)
{
    return (cluster_member){.name = pg_field(rows, row, 0),
                            .url = pg_field(rows, row, 1),
                            .shard = pg_field(rows, row, 2),
                            .live = strcmp(pg_field(rows, row, 3), "1") == 0,
                            .kept_bytes = strtoll(pg_field(rows, row, 4), NULL, 10),
                            .seen_seconds = strtod(pg_field(rows, row, 5), NULL)};
}

ww_status members_list(const char *conninfo, void (*tell)(void *user, const cluster_member *member), void *user)
{
    PGconn *sql = NULL;
    PGresult *rows = NULL;
    bool table = false;
    ww_status status = pg_open(conninfo, false, CONNECT_SECONDS, &sql);
    if (status == WW_OK)
        status = has_nodes(sql, &table);
    if (status == WW_OK)
        status = select_members(sql, table, "", &rows);
    for (int i = 0; status == WW_OK && i < PQntuples(rows); i++) {
        const cluster_member member = member_of(rows, i);
        tell(user, &member);
    }
    if (rows)
        PQclear(rows);
    PQfinish(sql);
    return status;
}

/* Does the database have it, and may it be removed? */
static ww_status check_member(PGconn *sql, bool table, const char *name, bool force)
{
    PGresult *rows = NULL;
    ww_status status = select_members(sql, table, name, &rows);
    if (status != WW_OK)
        return status;
    if (PQntuples(rows) == 0) {
        status = ww_fail(WW_NOT_FOUND, "the database has no node '%s'; `warpwave cluster list` names those that it has", name);
    } else if (!force) {
        const cluster_member member = member_of(rows, 0);
        if (member.live)
            status =
                ww_fail(WW_BUSY,
                        "the node %s%s%s is live, as the database sees it; stop it first, or add --force if its machine is "
                        "gone and the database has not noticed that yet",
                        name, member.url[0] != '\0' ? " at " : "", member.url);
    }
    PQclear(rows);
    return status;
}

/* Ends its sessions, and waits until the slot is free: a server that still runs takes it again within a second. */
static ww_status end_sessions(PGconn *sql, bool table, const char *name)
{
    bool active = true;
    ww_status status = run_named(sql, end_slot_sql, name);
    if (status == WW_OK && table)
        status = run_named(sql, end_lock_sql, name);
    for (int i = 0; status == WW_OK && active && i < END_TURNS; i++) {
        PGresult *row = NULL;
        status = pg_run(sql, "PostgreSQL", is_active_sql, name, &row);
        active = status == WW_OK && strcmp(pg_field(row, 0, 1), "0") != 0;
        if (row)
            PQclear(row);
    }
    return status;
}

static ww_status drop_publication(PGconn *sql, const char *name)
{
    char *quoted = pg_quoted(name);
    out statement = {0};
    out_format(&statement, "DROP PUBLICATION IF EXISTS %s", quoted ? quoted : "");
    out_bytes(&statement, "", 1);
    const ww_status status = !quoted || statement.failed ? memory_failed("a statement", 2 * strlen(name))
                                                         : pg_do(sql, "DROP PUBLICATION", statement.bytes);
    out_free(&statement);
    memory_free(quoted);
    return status;
}

ww_status members_remove(const char *conninfo, const char *name, bool force)
{
    PGconn *sql = NULL;
    bool table = false;
    ww_status status = pg_open(conninfo, false, CONNECT_SECONDS, &sql);
    if (status == WW_OK)
        status = has_nodes(sql, &table);
    if (status == WW_OK)
        status = check_member(sql, table, name, force);
    if (status == WW_OK && force)
        status = end_sessions(sql, table, name);
    if (status == WW_OK)
        status =
            run_named(sql, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = $1", name);
    if (status == WW_OK)
        status = drop_publication(sql, name);
    if (status == WW_OK && table)
        status = run_named(sql, "DELETE FROM warpwave.nodes WHERE name = $1", name);
    PQfinish(sql);
    return status;
}
