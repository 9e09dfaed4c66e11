/* The follower's thread, and what others may ask it. */
#include "server/cluster/follow.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "base/tables/hash.h"
#include "base/text.h"
#include "server/cluster/follow_state.h"
#include "server/work/job.h"

enum { RETRY_MS_MIN = 100, RETRY_MS_MAX = 5000 };

#define PLACE_NOTE "follow:place"

double follow_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

ww_status follow_wait(follower *f, PGconn *connection, int milliseconds)
{
    struct pollfd watched[2] = {{.fd = f->wake, .events = POLLIN},
                                {.fd = connection ? PQsocket(connection) : -1, .events = POLLIN}};
    (void)poll(watched, connection ? 2 : 1, milliseconds);
    if (f->stopping)
        return ww_fail(WW_CANCELLED, "the server is stopping");
    uint64_t woken = 0;
    if (watched[0].revents != 0)
        (void)!read(f->wake, &woken, sizeof woken);
    if (connection && watched[1].revents != 0 && !PQconsumeInput(connection))
        return pg_failed(connection, "PostgreSQL");
    return WW_OK;
}

/* ---- the place ----------------------------------------------------------------------------------------------------------- */

static void put_place(out *o, const follow_place *place)
{
    char lsn[PG_LSN_BYTES];
    pg_lsn_write(place->lsn, lsn);
    out_format(o, "{\"lsn\":\"%s\",\"copied\":%s,\"slot\":\"%s\",\"system\":\"%s\",\"tables\":\"%016llx\"}", lsn,
               place->copied ? "true" : "false", place->slot, place->system, (unsigned long long)place->tables);
}

static void read_text(const char *note, const char *key, char *text, size_t capacity)
{
    const char *value = json_find_field(note, key);
    text[0] = '\0';
    if (value && json_type_of(value) == JSON_TEXT && (size_t)(json_end(value) - value) <= capacity)
        text[json_text_read(value, text)] = '\0';
}

static ww_status read_place(follower *f)
{
    char *note = NULL, lsn[PG_LSN_BYTES + 2], tables[20];
    const ww_status status = applier_read_note(f->applier, PLACE_NOTE, &note);
    if (status != WW_OK || !note)
        return status;
    const char *copied = json_find_field(note, "copied");
    read_text(note, "slot", f->place.slot, sizeof f->place.slot);
    read_text(note, "system", f->place.system, sizeof f->place.system);
    read_text(note, "tables", tables, sizeof tables);
    read_text(note, "lsn", lsn, sizeof lsn);
    f->place.copied = copied && json_type_of(copied) == JSON_TRUE && pg_lsn_read(lsn, &f->place.lsn);
    unsigned long long hash = 0;
    (void)sscanf(tables, "%llx", &hash);
    f->place.tables = hash;
    memory_free(note);
    if (f->place.copied) { /* the rows of the last run, as long as the same is followed */
        pthread_mutex_lock(&f->lock);
        f->shown.copied = f->place.tables == follow_tables_hash(&f->config, f->config.shards > 1);
        text_copy(f->shown.slot, sizeof f->shown.slot, f->place.slot);
        pthread_mutex_unlock(&f->lock);
    }
    return WW_OK;
}

/* Commits, and counts the versions of the rows. A commit that moves only the place leaves the version as it is. */
static ww_status commit_counted(follower *f, const char *note)
{
    pthread_mutex_lock(&f->commit);
    const unsigned long long version = atomic_load(&f->version);
    atomic_store(&f->version, version + 1);
    const ww_status status = applier_commit(f->applier, PLACE_NOTE, note);
    const bool same = status == WW_OK && follow_note_digest(f);
    atomic_store(&f->version, same ? version : version + 2);
    pthread_mutex_unlock(&f->commit);
    return status;
}

ww_status follow_commit(follower *f, pg_lsn lsn)
{
    out note = {0};
    f->place.lsn = lsn;
    put_place(&note, &f->place);
    const ww_status status = note.failed ? memory_failed("a note", note.length) : commit_counted(f, note.bytes);
    out_free(&note);
    if (status != WW_OK)
        return status;
    shared_tell(f);
    pthread_mutex_lock(&f->lock);
    f->shown.lsn = lsn;
    pthread_cond_broadcast(&f->reached);
    f->shown.copied = f->shown.copied || f->place.copied;
    text_copy(f->shown.slot, sizeof f->shown.slot, f->place.slot);
    f->shown.end = f->shown.end > lsn ? f->shown.end : lsn;
    f->shown.figures = *applier_figures(f->applier);
    f->shown.applied_seconds = follow_seconds();
    pthread_mutex_unlock(&f->lock);
    f->listener.changed(f->listener.user);
    return WW_OK;
}

bool follow_note_digest(follower *f)
{
    uint64_t digest = 0;
    replica_digests *noted = &f->shown.digests;
    if (!f->config.advertise || !f->place.copied || applier_digest(f->applier, &digest) != WW_OK)
        return false;
    pthread_mutex_lock(&f->lock);
    const bool same = noted->count > 0 && noted->list[noted->count - 1].digest == digest;
    digests_add(noted, f->place.lsn, digest);
    pthread_mutex_unlock(&f->lock);
    return same;
}

void follow_show(follower *f, follow_state state, const char *why)
{
    pthread_mutex_lock(&f->lock);
    f->shown.state = state;
    text_copy(f->shown.why, sizeof f->shown.why, why ? why : ww_error_message());
    pthread_mutex_unlock(&f->lock);
}

static void note_refused(void *user, const refused_row *row)
{
    follower *f = user;
    pthread_mutex_lock(&f->lock);
    f->shown.refused[f->shown.refused_count++ % REFUSED_KEPT] = *row;
    pthread_mutex_unlock(&f->lock);
}

/* ---- the thread ---------------------------------------------------------------------------------------------------------- */

/* Connects, copies if that is needed, and follows; returns why it ended. */
static ww_status follow_once(follower *f)
{
    char why[FOLLOW_WHY_BYTES];
    bool copy = false;
    ww_status status = follow_connect(f);
    if (status == WW_OK)
        status = read_place(f);
    if (status == WW_OK)
        status = follow_needs_copy(f, &copy, why);
    if (status == WW_OK && copy) {
        follow_show(f, FOLLOW_COPYING, why);
        status = follow_copy(f);
    }
    if (status == WW_OK)
        status = follow_stream(f);
    return status;
}

static void *run(void *user)
{
    follower *f = user;
    int wait_ms = RETRY_MS_MIN;
    while (!f->stopping) {
        const double begun = follow_seconds();
        if (follow_once(f) != WW_CANCELLED)
            follow_show(f, FOLLOW_CONNECTING, NULL);
        applier_roll_back(f->applier);
        follow_disconnect(f);
        if (f->stopping)
            break;
        pthread_mutex_lock(&f->lock);
        f->shown.reconnects++;
        pthread_mutex_unlock(&f->lock);
        if (follow_seconds() - begun > 10) /* it worked for a while */
            wait_ms = RETRY_MS_MIN;
        (void)follow_wait(f, NULL, wait_ms);
        wait_ms = 2 * wait_ms < RETRY_MS_MAX ? 2 * wait_ms : RETRY_MS_MAX;
    }
    return NULL;
}

static void follower_free(follower *f)
{
    applier_destroy(f->applier);
    shared_destroy(f->shared);
    pgoutput_free(&f->reader);
    if (f->wake >= 0)
        close(f->wake);
    pthread_mutex_destroy(&f->commit);
    pthread_cond_destroy(&f->reached);
    pthread_mutex_destroy(&f->lock);
    memory_free(f->tables);
    memory_free(f);
}

static void init_locks(follower *f)
{
    pthread_condattr_t monotonic;
    pthread_mutex_init(&f->lock, NULL);
    pthread_mutex_init(&f->commit, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&f->reached, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

ww_status follower_start(ww_store *store, const follow_config *config, const follow_listener *listener, follower **started)
{
    follower *f = memory_alloc_zeroed(1, sizeof *f);
    if (!f)
        return memory_failed("a follower", sizeof *f);
    f->store = store;
    f->config = *config;
    f->listener = *listener;
    text_copy(f->shown.why, sizeof f->shown.why, "connecting to the database");
    if (config->cluster) {
        f->config.tables = shared_tables;
        f->config.table_count = SHARED_TABLES;
    }
    init_locks(f);
    f->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    f->tables = memory_alloc_zeroed(f->config.table_count, sizeof *f->tables);
    ww_status status =
        f->wake >= 0 && f->tables ? WW_OK : memory_failed("a follower", f->config.table_count * sizeof *f->tables);
    if (status == WW_OK && config->cluster)
        status = shared_create(store, &f->shared);
    if (status == WW_OK)
        status = applier_create(store, note_refused, f, &f->applier);
    if (status == WW_OK && pthread_create(&f->thread, NULL, run, f) != 0)
        status = ww_fail(WW_OUT_OF_MEMORY, "a thread that follows the database could not be started");
    if (status == WW_OK)
        *started = f;
    else
        follower_free(f);
    return status;
}

void follower_stop(follower *f)
{
    if (!f)
        return;
    const uint64_t one = 1;
    f->stopping = true;
    (void)!write(f->wake, &one, sizeof one);
    pthread_join(f->thread, NULL);
    follower_free(f);
}

/* ---- what others ask ----------------------------------------------------------------------------------------------------- */

void follower_name(follower *f, char name[NODE_NAME_BYTES])
{
    pthread_mutex_lock(&f->lock);
    text_copy(name, NODE_NAME_BYTES, f->shown.copied ? f->shown.slot : "");
    pthread_mutex_unlock(&f->lock);
}

bool follower_serves(follower *f)
{
    pthread_mutex_lock(&f->lock);
    const bool serves = f->shown.copied && f->shown.distrust[0] == '\0';
    pthread_mutex_unlock(&f->lock);
    return serves;
}

void follower_distrust(follower *f, const char *why)
{
    const uint64_t one = 1;
    pthread_mutex_lock(&f->lock);
    text_copy(f->shown.distrust, sizeof f->shown.distrust, why);
    pthread_mutex_unlock(&f->lock);
    atomic_store(&f->distrusted, true);
    (void)!write(f->wake, &one, sizeof one);
}

void follower_count_difference(follower *f)
{
    pthread_mutex_lock(&f->lock);
    f->shown.differences++;
    pthread_mutex_unlock(&f->lock);
}

void follower_digests(follower *f, replica_digests *digests)
{
    pthread_mutex_lock(&f->lock);
    *digests = f->shown.digests;
    text_copy(digests->name, sizeof digests->name, f->shown.slot);
    pthread_mutex_unlock(&f->lock);
}

uint64_t follower_version(follower *f)
{
    return atomic_load(&f->version);
}

bool follower_rows(follower *f, uint64_t version, uint64_t *digest)
{
    pthread_mutex_lock(&f->lock);
    const replica_digests *noted = &f->shown.digests;
    const bool known = noted->count > 0;
    *digest = known ? noted->list[noted->count - 1].digest : 0;
    pthread_mutex_unlock(&f->lock);
    return known && version % 2 == 0 && atomic_load(&f->version) == version;
}

void follower_hold(follower *f)
{
    pthread_mutex_lock(&f->commit);
}

void follower_release(follower *f)
{
    pthread_mutex_unlock(&f->commit);
}

uint64_t follower_lsn(follower *f)
{
    pthread_mutex_lock(&f->lock);
    const pg_lsn lsn = f->shown.lsn;
    pthread_mutex_unlock(&f->lock);
    return lsn;
}

follow_health follower_health(follower *f, char *why, size_t capacity)
{
    pthread_mutex_lock(&f->lock);
    const bool follows = f->shown.state == FOLLOW_FOLLOWING;
    follow_health health = follows ? FOLLOW_FRESH : f->shown.lsn > 0 ? FOLLOW_STALE : FOLLOW_BROKEN;
    text_copy(why, capacity, follows ? "" : f->shown.why);
    for (size_t i = 0; i < f->config.table_count; i++)
        if (f->tables[i].stopped[0] != '\0') {
            health = FOLLOW_BROKEN;
            text_copy(why, capacity, f->tables[i].stopped);
        }
    if (f->shown.distrust[0] != '\0') {
        health = FOLLOW_BROKEN;
        text_copy(why, capacity, f->shown.distrust);
    }
    pthread_mutex_unlock(&f->lock);
    return health;
}

void follower_hurry(follower *f, uint64_t lsn)
{
    const uint64_t one = 1;
    unsigned long long wanted = atomic_load(&f->wanted);
    while (wanted < lsn && !atomic_compare_exchange_weak(&f->wanted, &wanted, lsn))
        ;
    (void)!write(f->wake, &one, sizeof one);
}

bool follower_wait(follower *f, uint64_t lsn, double until_seconds)
{
    const long turn_ns = 50000000;
    bool reached = follower_lsn(f) >= lsn;
    if (!reached)
        follower_hurry(f, lsn);
    pthread_mutex_lock(&f->lock);
    while (!reached && follow_seconds() < until_seconds && !job_is_over()) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += (until.tv_nsec + turn_ns) / 1000000000;
        until.tv_nsec = (until.tv_nsec + turn_ns) % 1000000000;
        (void)pthread_cond_timedwait(&f->reached, &f->lock, &until);
        reached = f->shown.lsn >= lsn;
    }
    pthread_mutex_unlock(&f->lock);
    return reached;
}

static void put_text(out *o, const char *key, const char *text)
{
    out_format(o, ",\"%s\":", key);
    out_quoted(o, text, strlen(text));
}

static void put_refused(const follow_shown *shown, const char *collection, out *o)
{
    const int64_t first = shown->refused_count > REFUSED_KEPT ? shown->refused_count - REFUSED_KEPT : 0;
    bool any = false;
    out_text(o, ",\"refused\":[");
    for (int64_t i = shown->refused_count - 1; i >= first; i--) {
        const refused_row *row = &shown->refused[i % REFUSED_KEPT];
        char lsn[PG_LSN_BYTES];
        if (collection && strcmp(collection, row->collection) != 0)
            continue;
        pg_lsn_write(row->lsn, lsn);
        out_format(o, "%s{\"lsn\":\"%s\"", any ? "," : "", lsn);
        put_text(o, "collection", row->collection);
        put_text(o, "id", row->id);
        put_text(o, "why", row->why);
        out_text(o, "}");
        any = true;
    }
    out_text(o, "]");
}

static const char *const state_names[] = {"connecting", "copying", "following"};

void follower_describe(follower *f, const char *collection, out *o)
{
    char lsn[PG_LSN_BYTES];
    pthread_mutex_lock(&f->lock);
    const follow_shown *shown = &f->shown;
    pg_lsn_write(shown->lsn, lsn);
    out_format(o,
               "{\"state\":\"%s\",\"lsn\":\"%s\",\"lag_bytes\":%lld,\"lag_seconds\":%.3f,\"rows\":%lld,\"removed\":%lld,"
               "\"transactions\":%lld,\"copies\":%lld,\"reconnects\":%lld,\"refused_rows\":%lld",
               state_names[shown->state], lsn, (long long)(shown->end - shown->lsn),
               shown->applied_seconds > 0 ? follow_seconds() - shown->applied_seconds : -1.0, (long long)shown->figures.rows,
               (long long)shown->figures.removed, (long long)shown->figures.transactions, (long long)shown->figures.copies,
               (long long)shown->reconnects, (long long)shown->figures.refused);
    if (shown->why[0] != '\0')
        put_text(o, "why", shown->why);
    if (shown->distrust[0] != '\0')
        put_text(o, "out_of_service", shown->distrust);
    for (size_t i = 0; i < f->config.table_count; i++)
        if (f->tables[i].stopped[0] != '\0' && (!collection || f->shared || table_config_is(&f->config.tables[i], collection)))
            put_text(o, "stopped", f->tables[i].stopped);
    put_refused(shown, collection, o);
    pthread_mutex_unlock(&f->lock);
    out_text(o, "}");
}

void follower_metrics(follower *f, out *o)
{
    pthread_mutex_lock(&f->lock);
    const follow_shown *shown = &f->shown;
    const struct {
        const char *name, *help;
        double value;
        bool counter;
    } figures[] = {
        {"following", "1 while the stream of changes is followed", shown->state == FOLLOW_FOLLOWING, false},
        {"lag_bytes", "Bytes of the database's log that are not applied", (double)(shown->end - shown->lsn), false},
        {"lag_seconds", "Seconds since the collections were known to be up to date",
         shown->applied_seconds > 0 ? follow_seconds() - shown->applied_seconds : -1.0, false},
        {"rows_total", "Rows written", (double)shown->figures.rows, true},
        {"removed_total", "Rows removed", (double)shown->figures.removed, true},
        {"transactions_total", "Transactions committed here", (double)shown->figures.transactions, true},
        {"refused_rows_total", "Rows that could not be points", (double)shown->figures.refused, true},
        {"differences_total", "Comparisons in which replicas had different rows", (double)shown->differences, true},
        {"copies_total", "Copies of the tables", (double)shown->figures.copies, true},
        {"reconnects_total", "Connections that ended", (double)shown->reconnects, true},
    };
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        out_format(o, "# HELP warpwave_follow_%s %s.\n# TYPE warpwave_follow_%s %s\nwarpwave_follow_%s %.17g\n",
                   figures[i].name, figures[i].help, figures[i].name, figures[i].counter ? "counter" : "gauge", figures[i].name,
                   figures[i].value);
    pthread_mutex_unlock(&f->lock);
}
