/* The thread that asks the other nodes: requests come in, parts go out, answers are merged. */
#include "server/nodes/scatter.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/system/threads.h"
#include "server/cluster/values.h"
#include "server/nodes/merge.h"
#include "server/nodes/scatter_state.h"
#include "server/route.h"

enum { TURN_MS = 10, IDLE_MS = 1000 };

/* ---- gathers ------------------------------------------------------------------------------------------------------------- */

static void gather_free(scatter *sc, gather *g)
{
    parts_end(sc, g);
    rounds_free(g->rounds);
    for (int64_t i = 0; i < g->kept_count; i++)
        out_free(&g->kept[i]);
    memory_free(g->kept);
    out_free(&g->asked);
    memory_free(g->parts);
    memory_free(g->path);
    memory_free(g);
}

/* The answer has everything up to the lowest of the shards' places. */
static void set_lsn(gather *g)
{
    for (int32_t i = 0; i < g->count; i++) {
        pg_lsn lsn = 0;
        if (!g->parts[i].missing && pg_lsn_read(g->parts[i].lsn, &lsn) && lsn < g->lowest)
            g->lowest = lsn;
    }
    if (g->lowest != UINT64_MAX)
        pg_lsn_write(g->lowest, g->request->lsn);
}

/* Appends ,"missing_shards":["2/4"] to a partial answer. */
static void put_missing(const gather *g, int32_t missing)
{
    out *o = &g->request->answer;
    if (missing == 0 || o->failed || o->length < 2 || o->bytes[o->length - 1] != '}')
        return;
    bool begun = false;
    o->length--;
    out_text(o, ",\"missing_shards\":[");
    for (int32_t i = 0; i < g->count; i++)
        if (g->parts[i].missing) {
            out_format(o, "%s\"%d/%d\"", begun ? "," : "", (int)i + 1, (int)g->count);
            begun = true;
        }
    out_text(o, "]}");
}

/* Keeps the texts that the shards have answered with: rounds point into them. */
static ww_status keep_bodies(gather *g)
{
    const ww_status status = array_reserve(&g->kept, &g->kept_room, g->kept_count + g->count, sizeof *g->kept, "answers");
    for (int32_t i = 0; status == WW_OK && i < g->count; i++) {
        g->kept[g->kept_count++] = g->parts[i].body;
        g->parts[i].body = (out){0};
    }
    return status;
}

/* Asks for the next round. A shard that is missing stays so. */
static void ask_round(scatter *sc, gather *g)
{
    for (int32_t i = 0; i < g->count; i++) {
        if (g->parts[i].missing)
            continue;
        part_begin(&g->parts[i]);
        part_continue(sc, g, i);
    }
}

/* Takes a round's answers. True: the request is answered. */
static bool end_round(scatter *sc, gather *g, const shard_answers *from)
{
    request *r = g->request;
    out body = {0};
    ww_status status = keep_bodies(g);
    if (status == WW_OK)
        status = rounds_take(g->rounds, from);
    if (status == WW_OK && rounds_ask(g->rounds, &body)) {
        out_free(&g->asked);
        g->asked = body;
        if (!body.failed) {
            ask_round(sc, g);
            return false;
        }
        status = memory_failed("a request to other nodes", body.length);
    }
    if (status == WW_OK)
        status = rounds_answer(g->rounds);
    if (status == WW_OK)
        request_result_end(r);
    else
        request_fail_status(r, status);
    return true;
}

/* Merges what the shards have answered. False: they are asked for more. */
static bool merge_parts(scatter *sc, gather *g, const shard_answers *from)
{
    set_lsn(g);
    if (g->rounds)
        return end_round(sc, g, from);
    merge_answers(g->request, from);
    return true;
}

/* Answers the request, or asks for the next round and returns false. */
static bool answer_parts(scatter *sc, gather *g)
{
    request *r = g->request;
    shard_answer *answers = memory_alloc((size_t)g->count * sizeof *answers);
    size_t count = 0;
    int32_t missing = 0, first_missing = -1;
    bool answered = true;
    const part *refused = NULL;
    for (int32_t i = 0; answers && i < g->count; i++) { /* without `partial` the first missing part ends the others */
        const part *p = &g->parts[i];
        missing += p->missing;
        first_missing = p->missing && first_missing < 0 ? i : first_missing;
        if (!p->done || p->missing)
            continue;
        refused = !refused && p->status != 200 && p->status != 404 ? p : refused;
        answers[count++] = (shard_answer){p->body.bytes, p->status};
    }
    if (!answers) {
        request_fail_status(r, memory_failed("answers of shards", (size_t)g->count * sizeof *answers));
    } else if (missing > 0 && (!g->partial || count == 0)) {
        request_fail(r, 503, "shard %d/%d has no replica that answers%s%s", (int)first_missing + 1, (int)g->count,
                     g->parts[first_missing].why[0] ? ": " : "", g->parts[first_missing].why);
    } else if (refused) {
        r->status = refused->status;
        out_text(&r->answer, refused->body.bytes);
    } else {
        answered = merge_parts(sc, g, &(shard_answers){answers, count, g->metric});
        if (answered && r->status == 200)
            put_missing(g, missing);
    }
    memory_free(answers);
    return answered;
}

/* Answers the request if that is possible now. */
static bool gather_ends(scatter *sc, gather *g, bool stopping)
{
    request *r = g->request;
    bool done = true;
    for (int32_t i = 0; i < g->count; i++) {
        const part *p = &g->parts[i];
        if (p->missing && !g->partial) {
            done = true;
            break;
        }
        done = done && p->done;
    }
    if (atomic_load(&r->gone) && r->late)
        request_fail(r, 504, "the deadline has passed: the request had %g seconds (--timeout)", r->seconds);
    else if (atomic_load(&r->gone))
        request_fail(r, 499, "the client closed the connection");
    else if (stopping)
        request_fail(r, 503, "the server is stopping");
    else
        return done && (g->verify == VERIFY_NOT || verify_done(sc, g)) && answer_parts(sc, g);
    return true;
}

static void gather_begin(scatter *sc, gather *g)
{
    atomic_fetch_add(&sc->requests, 1);
    peers_update(&sc->peers, sc->nodes);
    for (int32_t i = 0; i < g->count; i++)
        part_continue(sc, g, i);
    if (g->verify != VERIFY_NOT)
        verify_begin(sc, g);
    g->next = sc->first;
    sc->first = g;
}

/* ---- the thread ---------------------------------------------------------------------------------------------------------- */

static gather *take_submitted(scatter *sc, bool *stopping)
{
    pthread_mutex_lock(&sc->lock);
    gather *list = sc->submitted;
    sc->submitted = NULL;
    *stopping = sc->stopping;
    pthread_mutex_unlock(&sc->lock);
    return list;
}

static void end_finished(scatter *sc, bool stopping)
{
    for (gather **at = &sc->first; *at;) {
        gather *g = *at;
        parts_hurry(sc, g, server_seconds());
        if (!gather_ends(sc, g, stopping)) {
            at = &g->next;
            continue;
        }
        *at = g->next;
        if (g->request->status >= 500)
            atomic_fetch_add(&sc->failures, 1);
        request *r = g->request;
        gather_free(sc, g); /* before the request's body is gone */
        atomic_fetch_sub(&sc->waiting, 1);
        request_done(r);
    }
}

static void *run(void *user)
{
    scatter *sc = user;
    bool stopping = false;
    while (!stopping || sc->first) {
        for (gather *g = take_submitted(sc, &stopping), *next; g; g = next) {
            next = g->next;
            gather_begin(sc, g);
        }
        int running = 0, waiting = 0;
        (void)curl_multi_perform(sc->multi, &running);
        for (CURLMsg *message; (message = curl_multi_info_read(sc->multi, &waiting));) {
            attempt *a = NULL;
            if (message->msg != CURLMSG_DONE)
                continue;
            const CURLcode code = message->data.result;
            if (curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&a) == CURLE_OK && a)
                part_take(sc, a, code);
        }
        end_finished(sc, stopping);
        if (!stopping)
            (void)curl_multi_poll(sc->multi, NULL, 0, sc->first ? TURN_MS : IDLE_MS, NULL);
    }
    return NULL;
}

static ww_status read_key(scatter *sc, const char *path)
{
    char line[256] = "";
    FILE *file = path ? fopen(path, "re") : NULL;
    if (!path)
        return WW_OK;
    if (!file)
        return ww_fail(WW_IO_ERROR, "--node-key-file: %s cannot be read", path);
    const bool read = fgets(line, sizeof line, file) != NULL;
    (void)fclose(file);
    line[strcspn(line, " \t\r\n")] = '\0';
    if (!read || line[0] == '\0')
        return ww_fail(WW_INVALID_ARGUMENT, "--node-key-file: %s has no key", path);
    snprintf(sc->key_header, sizeof sc->key_header, "api-key: %s", line);
    return WW_OK;
}

ww_status scatter_start(server *s, nodes *n, scatter **started)
{
    scatter *sc = memory_alloc_zeroed(1, sizeof *sc);
    if (!sc)
        return memory_failed("what asks the other nodes", sizeof *sc);
    sc->server = s;
    sc->nodes = n;
    pthread_mutex_init(&sc->lock, NULL);
    ww_status status = read_key(sc, s->config.follow.node_key_file);
    if (status == WW_OK && (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(sc->multi = curl_multi_init())))
        status = ww_fail(WW_OUT_OF_MEMORY, "libcurl could not be started");
    if (status == WW_OK) {
        const int code = thread_start(&sc->thread, "ww-scatter", run, sc);
        sc->running = code == 0;
        if (code != 0)
            status = ww_fail_errno(WW_IO_ERROR, code, "the thread that asks the other nodes could not be started");
    }
    if (status == WW_OK)
        *started = sc;
    else
        scatter_stop(sc);
    return status;
}

void scatter_stop(scatter *sc)
{
    if (!sc)
        return;
    if (sc->running) {
        pthread_mutex_lock(&sc->lock);
        sc->stopping = true;
        pthread_mutex_unlock(&sc->lock);
        (void)curl_multi_wakeup(sc->multi);
        pthread_join(sc->thread, NULL);
    }
    if (sc->multi)
        (void)curl_multi_cleanup(sc->multi);
    pthread_mutex_destroy(&sc->lock);
    memory_free(sc);
}

/* ---- submitting ---------------------------------------------------------------------------------------------------------- */

/* "/collections/docs/points/query", with the collection's own name in place of an alias. */
static char *make_path(const request *r, const char *collection)
{
    static const char digits[] = "0123456789ABCDEF", before[] = "/collections/";
    out path = {0};
    const char *rest = strlen(r->url) > sizeof before ? strchr(r->url + sizeof before - 1, '/') : NULL;
    out_text(&path, before);
    for (const char *at = collection; *at != '\0'; at++) {
        const unsigned char c = (unsigned char)*at;
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
        if (plain)
            out_bytes(&path, at, 1);
        else
            out_bytes(&path, (const char[3]){'%', digits[c >> 4], digits[c & 15]}, 3);
    }
    out_text(&path, rest ? rest : "");
    out_bytes(&path, "", 1);
    if (!path.failed)
        return path.bytes;
    out_free(&path);
    return NULL;
}

static gather *gather_create(scatter *sc, request *r, const scatter_target *target)
{
    const int32_t shards = sc->server->config.follow.shards;
    const char *partial = request_argument(r, "partial");
    gather *g = memory_alloc_zeroed(1, sizeof *g);
    if (!g)
        return NULL;
    *g = (gather){.request = r,
                  .path = make_path(r, target->collection),
                  .count = shards,
                  .part_count = target->verified ? PART_KINDS * shards : shards,
                  .verify = target->verified ? VERIFY_COMPARES : VERIFY_NOT,
                  .metric = target->metric,
                  .lowest = UINT64_MAX,
                  .partial = partial && strcmp(partial, "true") == 0};
    g->parts = memory_alloc_zeroed((size_t)g->part_count, sizeof *g->parts);
    for (int32_t i = 0; g->parts && i < g->part_count; i++)
        part_begin(&g->parts[i]);
    if (g->path && g->parts)
        return g;
    memory_free(g->path);
    memory_free(g->parts);
    memory_free(g);
    return NULL;
}

/* Makes what a request needs, and checks whether it can be answered. */
static gather *gather_make(scatter *sc, request *r, const scatter_target *target)
{
    if (!merge_can(r)) {
        request_fail(r, 501, "%s: not available on a collection that is spread over shards", r->route->path);
        return NULL;
    }
    gather *g = gather_create(sc, r, target);
    ww_status status = g ? WW_OK : memory_failed("a request to other nodes", sizeof *g);
    if (status == WW_OK && merge_searches_rows(r) && rounds_needed(r))
        status = rounds_create(r, target->metric, &g->rounds);
    if (status == WW_OK && g->rounds && rounds_ask(g->rounds, &g->asked) && g->asked.failed)
        status = memory_failed("a request to other nodes", g->asked.length);
    if (status == WW_OK)
        return g;
    request_fail_status(r, status);
    if (g)
        gather_free(sc, g);
    return NULL;
}

void scatter_submit(scatter *sc, request *r, const scatter_target *target)
{
    const bool full = atomic_fetch_add(&sc->waiting, 1) >= sc->server->config.queue_limit;
    gather *g = full ? NULL : gather_make(sc, r, target);
    if (full)
        request_fail(r, 429, "%lld requests are already waiting; try again", (long long)sc->server->config.queue_limit);
    if (!g) {
        atomic_fetch_sub(&sc->waiting, 1);
        request_done(r);
        return;
    }
    pthread_mutex_lock(&sc->server->lock);
    r->state = REQUEST_RUNNING;
    pthread_mutex_unlock(&sc->server->lock);
    pthread_mutex_lock(&sc->lock);
    g->next = sc->submitted;
    sc->submitted = g;
    pthread_mutex_unlock(&sc->lock);
    (void)curl_multi_wakeup(sc->multi);
}

void scatter_metrics(scatter *sc, out *o)
{
    const struct {
        const char *name, *help;
        long long value;
    } figures[] = {
        {"requests_total", "Requests that were sent to the shards", atomic_load(&sc->requests)},
        {"parts_total", "Parts of requests that a replica was asked for", atomic_load(&sc->attempts)},
        {"retries_total", "Parts that a replica did not answer", atomic_load(&sc->retries)},
        {"late_total", "Parts that a second replica was asked for because the first was late", atomic_load(&sc->late)},
        {"failures_total", "Requests to the shards that failed", atomic_load(&sc->failures)},
        {"verified_total", "Searches that two replicas answered alike", atomic_load(&sc->verified)},
        {"unverified_total", "Searches that --verify chose and that could not be compared", atomic_load(&sc->unverified)},
        {"verify_differences_total", "Searches that two replicas with the same rows answered differently",
         atomic_load(&sc->differences)},
    };
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        out_format(o, "# HELP warpwave_cluster_%s %s.\n# TYPE warpwave_cluster_%s counter\nwarpwave_cluster_%s %lld\n",
                   figures[i].name, figures[i].help, figures[i].name, figures[i].name, figures[i].value);
}
