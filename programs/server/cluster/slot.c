/* Connecting to the database; the publication and the slot; whether what is in the store can be continued. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/memory.h"
#include "base/tables/hash.h"
#include "base/text.h"
#include "server/cluster/follow_state.h"
#include "server/cluster/shard.h"

enum { CONNECT_SECONDS = 10, VERSION_MIN = 100000, VERSION_ROW_FILTER = 150000 };

/* ---- connecting ---------------------------------------------------------------------------------------------------------- */

/* Who the database is and where its log ends. */
static ww_status identify(follower *f)
{
    PGresult *row = NULL;
    const ww_status status = pg_run(f->stream, "IDENTIFY_SYSTEM", "IDENTIFY_SYSTEM", NULL, &row);
    if (status != WW_OK)
        return status;
    text_copy(f->system, sizeof f->system, pg_field(row, 0, 0));
    text_copy(f->timeline, sizeof f->timeline, pg_field(row, 0, 1));
    const bool known = pg_lsn_read(pg_field(row, 0, 2), &f->database_end);
    PQclear(row);
    return known ? WW_OK : ww_fail(WW_IO_ERROR, "PostgreSQL: IDENTIFY_SYSTEM named no place in its log");
}

static ww_status check_database(follower *f)
{
    PGresult *row = NULL;
    if (PQserverVersion(f->sql) < VERSION_MIN)
        return ww_fail(WW_UNSUPPORTED, "PostgreSQL %d is older than 10, which first has logical replication",
                       PQserverVersion(f->sql) / 10000);
    ww_status status = pg_run(f->sql, "PostgreSQL", "SHOW wal_level", NULL, &row);
    if (status == WW_OK && strcmp(pg_field(row, 0, 0), "logical") != 0)
        status = ww_fail(WW_UNSUPPORTED,
                         "the database's wal_level is %s, which has no row changes; run ALTER SYSTEM SET wal_level "
                         "= logical and restart it",
                         pg_field(row, 0, 0));
    if (row)
        PQclear(row);
    return status;
}

uint64_t follow_tables_hash(const follow_config *config, bool shards)
{
    uint64_t hash = config->cluster ? fnv_word(FNV_BEGIN, 1) : FNV_BEGIN;
    for (size_t i = 0; i < config->table_count; i++) {
        const table_config *t = &config->tables[i];
        const char *const parts[] = {t->collection, t->table, t->vector, t->text, t->payload};
        for (size_t p = 0; p < sizeof parts / sizeof *parts; p++)
            hash = parts[p] ? fnv_bytes(hash, parts[p], strlen(parts[p]) + 1) : fnv_word(hash, 1);
        hash = fnv_word(hash, (uint64_t)t->metric);
    }
    return shards ? fnv_word(fnv_word(hash, (uint64_t)config->shard), (uint64_t)config->shards) : hash;
}

ww_status follow_connect(follower *f)
{
    ww_status status = pg_open(f->config.conninfo, false, CONNECT_SECONDS, &f->sql);
    if (status == WW_OK)
        status = check_database(f);
    if (status == WW_OK && f->shared)
        status = shared_make_schema(f->sql);
    if (status == WW_OK)
        status = pg_open(f->config.conninfo, true, CONNECT_SECONDS, &f->stream);
    return status == WW_OK ? identify(f) : status;
}

void follow_disconnect(follower *f)
{
    PQfinish(f->sql);
    PQfinish(f->stream);
    f->sql = f->stream = NULL;
    for (size_t i = 0; i < f->config.table_count; i++)
        f->tables[i].matched = false;
}

/* ---- continuing or copying ----------------------------------------------------------------------------------------------- */

enum { SLOT_EXISTS, SLOT_MISSING, SLOT_LOST };

/* wal_status exists from version 13 on. */
static ww_status find_slot(follower *f, int *found)
{
    static const char sql[] = "SELECT coalesce(to_jsonb(s)->>'wal_status', '') FROM pg_replication_slots s "
                              "WHERE s.slot_name = $1 AND s.plugin = 'pgoutput' AND s.database = current_database()";
    PGresult *row = NULL;
    const ww_status status = pg_run(f->sql, "the replication slot", sql, f->place.slot, &row);
    if (status != WW_OK)
        return status;
    *found = PQntuples(row) == 0 ? SLOT_MISSING : strcmp(pg_field(row, 0, 0), "lost") == 0 ? SLOT_LOST : SLOT_EXISTS;
    PQclear(row);
    return WW_OK;
}

/* Describes the tables and opens their collections; a copy does it at its snapshot. */
static ww_status describe_tables(follower *f)
{
    ww_status status = WW_OK;
    for (size_t i = 0; status == WW_OK && i < f->config.table_count; i++) {
        followed_table table;
        status = table_describe(f->sql, &f->config.tables[i], &table);
        if (!f->shared || i == SHARED_POINTS) {
            table.shard = f->config.shard;
            table.shards = f->config.shards;
            table.shard_key = f->shared ? 1 : 0; /* the point's id: all vectors of a point lie together */
        }
        if (status == WW_OK)
            status = shard_check(&table);
        if (status != WW_OK)
            break;
        f->tables[i].table = table;
        ww_collection *collection = NULL;
        if (!f->shared)
            status = applier_collection(f->applier, &f->tables[i].table, &collection);
    }
    return status == WW_OK && f->shared ? shared_read_store(f) : status;
}

ww_status follow_needs_copy(follower *f, bool *needed, char why[FOLLOW_WHY_BYTES])
{
    int slot = SLOT_MISSING;
    const uint64_t tables = follow_tables_hash(&f->config, f->config.shards > 1);
    char place[PG_LSN_BYTES], end[PG_LSN_BYTES];
    ww_status status = describe_tables(f);
    if (status == WW_OK && f->place.copied)
        status = find_slot(f, &slot);
    pg_lsn_write(f->place.lsn, place);
    pg_lsn_write(f->database_end, end);
    *needed = true;
    if (!f->place.copied)
        text_copy(why, FOLLOW_WHY_BYTES, "the first copy");
    else if (atomic_load(&f->distrusted))
        text_copy(why, FOLLOW_WHY_BYTES, "the rows differ from those of other replicas");
    else if (strcmp(f->place.system, f->system) != 0)
        text_copy(why, FOLLOW_WHY_BYTES, "this is another database than the one that was copied");
    else if (f->place.tables != tables)
        text_copy(why, FOLLOW_WHY_BYTES, "other tables or columns are to follow");
    else if (slot == SLOT_MISSING)
        text_copy(why, FOLLOW_WHY_BYTES, "the database no longer has the replication slot");
    else if (slot == SLOT_LOST)
        text_copy(why, FOLLOW_WHY_BYTES,
                  "the database has removed changes that were not followed yet (max_slot_wal_keep_size)");
    else if (f->place.lsn > f->database_end)
        snprintf(why, FOLLOW_WHY_BYTES,
                 "the database ends at %s, before %s, which was followed: it was replaced by an older copy", end, place);
    else
        *needed = false;
    f->place.tables = tables;
    return status;
}

/* ---- the slot and the publication ---------------------------------------------------------------------------------------- */

static ww_status name_slot(follower *f)
{
    uint64_t number = 0;
    if (f->place.slot[0] != '\0')
        return WW_OK;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return ww_fail(WW_IO_ERROR, "no random numbers for the name of a replication slot");
    snprintf(f->place.slot, sizeof f->place.slot, "warpwave_%016llx", (unsigned long long)number);
    return WW_OK;
}

/* CREATE PUBLICATION for the tables; it has the slot's name, so each follower has its own. From version 15 on it brings the
 * rows of the follower's shard only. */
static ww_status create_publication(follower *f)
{
    out sql = {0};
    ww_status status = WW_OK;
    if (f->config.publication)
        return WW_OK;
    out_format(&sql, "DROP PUBLICATION IF EXISTS \"%s\"; CREATE PUBLICATION \"%s\" FOR TABLE ", f->place.slot, f->place.slot);
    for (size_t i = 0; i < f->config.table_count; i++) {
        char *schema = pg_quoted(f->tables[i].table.schema), *name = pg_quoted(f->tables[i].table.name);
        if (schema && name)
            out_format(&sql, "%s%s.%s", i > 0 ? ", " : "", schema, name);
        else
            sql.failed = true;
        if (f->tables[i].table.shards > 1 && PQserverVersion(f->sql) >= VERSION_ROW_FILTER) {
            out_text(&sql, " WHERE ");
            shard_put_condition(&sql, &f->tables[i].table);
        }
        memory_free(schema);
        memory_free(name);
    }
    status = sql.failed ? memory_failed("a statement", sql.length) : pg_do(f->sql, "CREATE PUBLICATION", sql.bytes);
    if (status != WW_OK && !sql.failed) {
        char said[FOLLOW_WHY_BYTES];
        text_copy(said, sizeof said, ww_error_message());
        status = ww_fail(status,
                         "%s; an owner of the tables can make one, to be named with --publication: CREATE PUBLICATION "
                         "warpwave FOR TABLE ...",
                         said);
    }
    out_free(&sql);
    return status;
}

/* The name is in the store before the slot exists: a slot that nobody remembers would keep the database's log for ever. */
ww_status follow_create_slot(follower *f, char snapshot[FOLLOW_NAME_BYTES], pg_lsn *begin)
{
    char sql[256];
    PGresult *row = NULL;
    ww_status status = name_slot(f);
    f->place.copied = false;
    text_copy(f->place.system, sizeof f->place.system, f->system);
    if (status == WW_OK)
        status = follow_commit(f, f->place.lsn);
    if (status == WW_OK)
        status = create_publication(f);
    if (status == WW_OK)
        status = pg_run(f->sql, "the replication slot",
                        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
                        "WHERE slot_name = $1",
                        f->place.slot, &row);
    if (row)
        PQclear(row);
    row = NULL;
    snprintf(sql, sizeof sql, "CREATE_REPLICATION_SLOT \"%s\" LOGICAL pgoutput EXPORT_SNAPSHOT", f->place.slot);
    if (status == WW_OK)
        status = pg_run(f->stream, "CREATE_REPLICATION_SLOT", sql, NULL, &row);
    if (status == WW_OK && !pg_lsn_read(pg_field(row, 0, 1), begin))
        status = ww_fail(WW_IO_ERROR, "CREATE_REPLICATION_SLOT named no place in the log");
    if (status == WW_OK)
        text_copy(snapshot, FOLLOW_NAME_BYTES, pg_field(row, 0, 2));
    if (row)
        PQclear(row);
    return status;
}
