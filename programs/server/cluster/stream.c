/* Following the stream of changes, in the order of commits.
 *
 * Transactions that arrive together are committed together here, at the end of one of them: a reader never sees a part of one.
 * A place is reported to the database only when everything before it is on this machine's disk.
 */
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include "base/memory.h"
#include "base/text.h"
#include "server/cluster/follow_state.h"
#include "server/cluster/shard.h"

enum {
    FEEDBACK_MS = 5000,
    HURRY_MS = 5,      /* between two questions how far the database is, while somebody waits for that */
    GROUP_MS = 20,     /* transactions wait at most so long for others */
    HEADER_BYTES = 25, /* of a message with changes */
    KEEPALIVE_BYTES = 18,
    FEEDBACK_BYTES = 34,
    SILENCE_SECONDS = 60 /* the database sends something at least every 30 seconds (wal_sender_timeout / 2) */
};

#define SECONDS_1970_TO_2000 INT64_C(946684800)

/* What is known of the stream. */
typedef struct progress {
    pg_lsn transaction; /* where the open transaction of the database commits; 0: none is open */
    pg_lsn pending;     /* the end of the last whole transaction that is not committed here; 0: none */
    pg_lsn received;    /* the end of what the database has sent */
    double pending_since, told_seconds, heard_seconds;
} progress;

static void put_number(char *to, uint64_t value)
{
    for (int i = 7; i >= 0; i--, value >>= 8)
        to[i] = (char)(value & 0xff);
}

static uint64_t get_number(const char *bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | (unsigned char)bytes[i];
    return value;
}

/* Tells the database up to where everything is on disk. Without changes that wait, that is all it has sent. */
static ww_status tell(follower *f, progress *p, bool answer)
{
    char message[FEEDBACK_BYTES] = {'r'};
    struct timeval now;
    const bool idle = p->transaction == 0 && !applier_is_open(f->applier);
    const pg_lsn safe = idle && p->received > f->place.lsn ? p->received : f->place.lsn;
    gettimeofday(&now, NULL);
    put_number(message + 1, p->received > safe ? p->received : safe);
    put_number(message + 9, safe);
    put_number(message + 17, safe);
    put_number(message + 25, (uint64_t)((now.tv_sec - SECONDS_1970_TO_2000) * 1000000 + now.tv_usec));
    message[33] = (char)answer;
    if (PQputCopyData(f->stream, message, sizeof message) != 1 || PQflush(f->stream) != 0)
        return pg_failed(f->stream, "PostgreSQL");
    p->told_seconds = follow_seconds();
    if (idle)
        shared_tell(f);
    pthread_mutex_lock(&f->lock);
    if (idle) {
        f->shown.lsn = safe;
        pthread_cond_broadcast(&f->reached);
        f->shown.applied_seconds = p->told_seconds;
    }
    f->shown.end = p->received > f->shown.end ? p->received : f->shown.end;
    pthread_mutex_unlock(&f->lock);
    if (idle)
        f->listener.changed(f->listener.user);
    return WW_OK;
}

static tracked_table *find_table(follower *f, uint32_t relation)
{
    for (size_t i = 0; i < f->config.table_count; i++)
        if (f->tables[i].table.relation == relation)
            return &f->tables[i];
    return NULL;
}

/* Leaves a table's further changes out, with a sentence that says why. */
static void stop_table(follower *f, tracked_table *t)
{
    pthread_mutex_lock(&f->lock);
    text_copy(t->stopped, sizeof t->stopped, ww_error_message());
    pthread_mutex_unlock(&f->lock);
}

/* Collections are made and dropped outside of transactions, so whatever is applied is committed before. What comes of the
 * open transaction of the database is applied again after a kill, which changes nothing. */
static ww_status settle(follower *f, progress *p)
{
    const pg_lsn lsn = p->pending ? p->pending : f->place.lsn;
    if (!applier_is_open(f->applier))
        return WW_OK;
    p->pending = 0;
    return follow_commit(f, lsn);
}

static ww_status apply_change(follower *f, progress *p, const pg_message *m)
{
    tracked_table *t = find_table(f, m->relation);
    table_row old, row;
    if (!t || t->stopped[0] != '\0')
        return WW_OK;
    const int32_t count = t->table.column_count;
    if (!t->matched || (m->old_values && m->old_count != count) || (m->new_values && m->new_count != count))
        return ww_fail(WW_CORRUPT_FILE, "PostgreSQL sent a row of table %s.%s that does not match its description",
                       t->table.schema, t->table.name);
    if (f->shared && t == &f->tables[SHARED_COLLECTIONS]) {
        const ww_status settled = settle(f, p);
        if (settled != WW_OK)
            return settled;
    }
    if (m->old_values)
        table_row_of_stream(&t->table, m->old_values, &old);
    if (m->new_values)
        table_row_of_stream(&t->table, m->new_values, &row);
    const row_source from = {&t->table, p->transaction, f->sql};
    const bool had = m->old_values && shard_has(&t->table, &old), has = m->new_values && shard_has(&t->table, &row);
    if (f->shared)
        return shared_apply(f, (int)(t - f->tables), &from, had ? &old : NULL, has ? &row : NULL);
    if (!has)
        return had ? applier_remove(f->applier, &t->table, &old) : WW_OK;
    if (m->kind == PG_INSERT || (m->old_values && !had)) /* it may come from another shard */
        return applier_put(f->applier, &from, &row);
    return applier_change(f->applier, &from, m->old_values ? &old : NULL, &row);
}

static ww_status apply_truncate(follower *f, progress *p, const pg_message *m)
{
    ww_status status = f->shared ? settle(f, p) : WW_OK;
    for (int32_t i = 0; status == WW_OK && i < m->truncated_count; i++) {
        const tracked_table *t = find_table(f, m->truncated[i]);
        if (t && t->stopped[0] == '\0')
            status = f->shared ? shared_truncate(f, (int)(t - f->tables)) : applier_clear(f->applier, &t->table);
    }
    return status;
}

static void match_relation(follower *f, const pg_message *m)
{
    tracked_table *t = find_table(f, m->relation);
    if (!t || t->stopped[0] != '\0')
        return;
    t->matched = table_match(&t->table, m) == WW_OK;
    if (!t->matched)
        stop_table(f, t);
}

/* One message of the plugin. Transactions that end at or before the place in the store were applied before. */
static ww_status apply_message(follower *f, progress *p, const char *bytes, size_t length)
{
    pg_message m;
    ww_status status = pgoutput_read(&f->reader, bytes, length, &m);
    if (status != WW_OK)
        return status;
    const bool again = p->transaction != 0 && p->transaction < f->place.lsn;
    switch (m.kind) {
    case PG_BEGIN:
        p->transaction = m.commit;
        break;
    case PG_COMMIT:
        p->transaction = 0;
        if (m.end <= f->place.lsn)
            break;
        if (p->pending == 0)
            p->pending_since = follow_seconds();
        p->pending = m.end;
        break;
    case PG_RELATION:
        match_relation(f, &m);
        break;
    case PG_INSERT:
    case PG_UPDATE:
    case PG_DELETE:
        return again ? WW_OK : apply_change(f, p, &m);
    case PG_TRUNCATE:
        return again ? WW_OK : apply_truncate(f, p, &m);
    case PG_OTHER:
        break;
    }
    return WW_OK;
}

/* One message of the replication protocol: changes, or a sign of life that may want an answer. */
static ww_status take_message(follower *f, progress *p, const char *bytes, size_t length)
{
    p->heard_seconds = follow_seconds();
    if (length >= HEADER_BYTES && bytes[0] == 'w') {
        const pg_lsn begin = get_number(bytes + 1);
        p->received = begin > p->received ? begin : p->received;
        return apply_message(f, p, bytes + HEADER_BYTES, length - HEADER_BYTES);
    }
    if (length == KEEPALIVE_BYTES && bytes[0] == 'k') {
        const pg_lsn end = get_number(bytes + 1);
        p->received = end > p->received ? end : p->received;
        return tell(f, p, false);
    }
    return ww_fail(WW_CORRUPT_FILE, "PostgreSQL sent a message of %zu bytes that is not part of streaming replication", length);
}

/* Commits the whole transactions that were applied. */
static ww_status commit_pending(follower *f, progress *p)
{
    const pg_lsn lsn = p->pending;
    p->pending = 0;
    if (!applier_is_open(f->applier)) { /* they changed none of the tables' rows */
        f->place.lsn = lsn > f->place.lsn ? lsn : f->place.lsn;
        return tell(f, p, false);
    }
    const ww_status status = follow_commit(f, lsn);
    return status == WW_OK ? tell(f, p, false) : status;
}

static ww_status start(follower *f)
{
    char sql[512], lsn[PG_LSN_BYTES];
    pg_lsn_write(f->place.lsn, lsn);
    char *publication = pg_quoted(f->config.publication ? f->config.publication : f->place.slot);
    if (!publication)
        return memory_failed("a statement", sizeof sql);
    char *literal = PQescapeLiteral(f->stream, publication, strlen(publication));
    snprintf(sql, sizeof sql, "START_REPLICATION SLOT \"%s\" LOGICAL %s (proto_version '1', publication_names %s)",
             f->place.slot, lsn, literal ? literal : "''");
    PQfreemem(literal);
    memory_free(publication);
    PGresult *result = PQexec(f->stream, sql);
    const ww_status status = PQresultStatus(result) == PGRES_COPY_BOTH ? WW_OK : pg_failed(f->stream, "START_REPLICATION");
    PQclear(result);
    return status;
}

/* Nothing can be read at once: commits what waits, and waits. */
static ww_status pause_stream(follower *f, progress *p)
{
    ww_status status = p->pending && p->transaction == 0 ? commit_pending(f, p) : WW_OK;
    const double now = follow_seconds();
    const bool hurry = atomic_load(&f->wanted) > follower_lsn(f);
    if (status == WW_OK && (hurry || now - p->told_seconds > FEEDBACK_MS * 1e-3))
        status = tell(f, p, hurry || now - p->heard_seconds > SILENCE_SECONDS / 2.0);
    if (status == WW_OK && now - p->heard_seconds > SILENCE_SECONDS)
        status = ww_fail(WW_IO_ERROR, "PostgreSQL has sent nothing for %d seconds", SILENCE_SECONDS);
    return status == WW_OK ? follow_wait(f, f->stream, hurry ? HURRY_MS : FEEDBACK_MS) : status;
}

ww_status follow_stream(follower *f)
{
    progress p = {.received = f->place.lsn, .heard_seconds = follow_seconds()};
    ww_status status = start(f);
    if (status == WW_OK) {
        follow_show(f, FOLLOW_FOLLOWING, "");
        status = tell(f, &p, true);
    }
    (void)follow_note_digest(f);
    while (status == WW_OK && !f->stopping) {
        char *bytes = NULL;
        if (atomic_load(&f->distrusted)) {
            status = ww_fail(WW_DAMAGED, "the rows differ from those of other replicas, and are copied anew");
            break;
        }
        const int length = PQgetCopyData(f->stream, &bytes, 1);
        if (length > 0)
            status = take_message(f, &p, bytes, (size_t)length);
        else if (length == 0)
            status = pause_stream(f, &p);
        else
            status = pg_failed(f->stream, "PostgreSQL");
        PQfreemem(bytes);
        if (status == WW_OK && p.pending && p.transaction == 0 && follow_seconds() - p.pending_since > GROUP_MS * 1e-3)
            status = commit_pending(f, &p);
    }
    return status;
}
