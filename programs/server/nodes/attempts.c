/* Asking replicas for parts: a second one when the first fails or is late. The first good answer counts. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/json/json.h"
#include "base/text.h"
#include "server/nodes/merge.h"
#include "server/nodes/scatter_state.h"

enum { CONNECT_MS = 2000, ANSWER_BYTES_MAX = 256 << 20 };

static const double LATE_SECONDS = 1; /* then another replica is asked, too */

/* ---- attempts ------------------------------------------------------------------------------------------------------------ */

static size_t take_body(char *bytes, size_t size, size_t count, void *user)
{
    attempt *a = user;
    if (a->body.length + size * count > ANSWER_BYTES_MAX)
        return 0;
    out_bytes(&a->body, bytes, size * count);
    return a->body.failed ? 0 : size * count;
}

/* Copies the value of a header with this name, if it is one. */
static void take_value(const char *name, const char *bytes, size_t length, char *value, size_t capacity)
{
    size_t at = strlen(name), to = 0;
    if (length < at || strncasecmp(bytes, name, at) != 0)
        return;
    for (; at < length && to + 1 < capacity; at++)
        if (strchr("0123456789ABCDEFabcdef/", bytes[at]) && bytes[at] != '\0')
            value[to++] = bytes[at];
    value[to] = '\0';
}

static size_t take_header(char *bytes, size_t size, size_t count, void *user)
{
    attempt *a = user;
    take_value("x-warpwave-lsn:", bytes, size * count, a->lsn, sizeof a->lsn);
    take_value("x-warpwave-rows:", bytes, size * count, a->rows, sizeof a->rows);
    return size * count;
}

static void attempt_end(scatter *sc, attempt *a)
{
    if (a->peer < 0)
        return;
    sc->peers.list[a->peer].running--;
    (void)curl_multi_remove_handle(sc->multi, a->easy);
    curl_easy_cleanup(a->easy);
    curl_slist_free_all(a->headers);
    out_free(&a->body);
    a->easy = NULL;
    a->headers = NULL;
    a->peer = -1;
}

static bool add_header(struct curl_slist **headers, const char *name, const char *value)
{
    char text[KEY_HEADER_BYTES + 64];
    if (!value || strlen(name) + strlen(value) + 3 > sizeof text)
        return true;
    snprintf(text, sizeof text, "%s%s", name, value);
    struct curl_slist *longer = curl_slist_append(*headers, text);
    if (longer)
        *headers = longer;
    return longer != NULL;
}

/* The headers of a part. Without a key of the nodes, the client's own is sent on, and beside it, if that one is limited. */
static bool make_headers(const scatter *sc, const gather *g, attempt *a)
{
    const request *r = g->request;
    char number[32];
    snprintf(number, sizeof number, "%d/%d", (int)(a->part % g->count) + 1, (int)g->count);
    const bool own = sc->key_header[0] != '\0', both = own && r->grant;
    const char *api_key = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "api-key");
    const char *bearer = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "authorization");
    return add_header(&a->headers, "x-warpwave-part: ", number) && add_header(&a->headers, "x-request-id: ", r->id) &&
           add_header(&a->headers, "x-warpwave-again: ",
                      g->parts[a->part].outvoted ? "outvoted"
                      : g->parts[a->part].again  ? "1"
                                                 : NULL) &&
           add_header(&a->headers, "x-warpwave-min-lsn: ",
                      MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "x-warpwave-min-lsn")) &&
           add_header(&a->headers, "", own ? sc->key_header : NULL) &&
           add_header(&a->headers, "api-key: ", own ? NULL : api_key) &&
           add_header(&a->headers, "authorization: Bearer ", both ? api_key : NULL) &&
           add_header(&a->headers, "authorization: ", (both && !api_key) || !own ? bearer : NULL) &&
           add_header(&a->headers, "content-type: ", r->body_length > 0 ? "application/json" : NULL) &&
           add_header(&a->headers, "Expect:", "");
}

static void set_options(const gather *g, attempt *a, const char *url, double now)
{
    const request *r = g->request;
    const double left = r->deadline_seconds - now;
    (void)curl_easy_setopt(a->easy, CURLOPT_URL, url);
    (void)curl_easy_setopt(a->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(a->easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(a->easy, CURLOPT_NOPROXY, "*");
    (void)curl_easy_setopt(a->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    (void)curl_easy_setopt(a->easy, CURLOPT_TIMEOUT_MS, left > 0.001 ? (long)(left * 1e3) : 1L);
    (void)curl_easy_setopt(a->easy, CURLOPT_HTTPHEADER, a->headers);
    (void)curl_easy_setopt(a->easy, CURLOPT_WRITEFUNCTION, take_body);
    (void)curl_easy_setopt(a->easy, CURLOPT_WRITEDATA, a);
    (void)curl_easy_setopt(a->easy, CURLOPT_HEADERFUNCTION, take_header);
    (void)curl_easy_setopt(a->easy, CURLOPT_HEADERDATA, a);
    (void)curl_easy_setopt(a->easy, CURLOPT_PRIVATE, a);
    if (strcmp(r->method, "POST") == 0) {
        (void)curl_easy_setopt(a->easy, CURLOPT_POST, 1L);
        const bool round = g->asked.length > 0;
        const size_t length = round ? g->asked.length : r->body_length;
        (void)curl_easy_setopt(a->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)length);
        (void)curl_easy_setopt(a->easy, CURLOPT_POSTFIELDS, round ? g->asked.bytes : r->body ? r->body : "");
    }
}

/* The replica to ask next; -1: there is none. */
static int32_t choose(const scatter *sc, const gather *g, int32_t index, double now)
{
    const part *p = &g->parts[index];
    if (p->only < 0)
        return peers_choose(&sc->peers, index % g->count, p->tried, now);
    const bool same = !p->tried[p->only] && strcmp(sc->peers.list[p->only].name, p->name) == 0;
    return same ? p->only : -1;
}

/* Asks the next replica. False: there is none. */
static bool attempt_begin(scatter *sc, gather *g, int32_t index, attempt *a)
{
    part *p = &g->parts[index];
    const double now = server_seconds();
    const int32_t chosen = choose(sc, g, index, now);
    out url = {0};
    if (chosen < 0)
        return false;
    p->tried[chosen] = 1;
    sc->peers.list[chosen].asked = ++sc->peers.asked;
    *a = (attempt){.owner = g, .part = index, .peer = -1, .begun_seconds = now, .easy = curl_easy_init()};
    out_text(&url, sc->peers.list[chosen].url);
    out_text(&url, g->path);
    bool begun = a->easy && !url.failed && url.length > 0 && make_headers(sc, g, a);
    if (begun) {
        out_bytes(&url, "", 1);
        set_options(g, a, url.failed ? "" : url.bytes, now);
        begun = curl_multi_add_handle(sc->multi, a->easy) == CURLM_OK;
    }
    out_free(&url);
    if (begun) {
        a->peer = chosen;
        sc->peers.list[chosen].running++;
        atomic_fetch_add(&sc->attempts, 1);
        return true;
    }
    curl_slist_free_all(a->headers);
    curl_easy_cleanup(a->easy);
    *a = (attempt){.peer = -1};
    text_copy(p->why, sizeof p->why, "not enough memory to ask it");
    return false;
}

/* ---- parts --------------------------------------------------------------------------------------------------------------- */

/* Answers that another replica would give, too: a result, or what is wrong with the request. */
static bool is_final(const gather *g, long status)
{
    return status == 200 || status == 400 || status == 422 || status == 501 ||
           (status == 404 && merge_takes_missing(g->request));
}

void part_begin(part *p)
{
    *p = (part){.only = -1, .from = -1};
    for (int i = 0; i < ATTEMPTS; i++)
        p->attempts[i].peer = -1;
}

void part_continue(scatter *sc, gather *g, int32_t index)
{
    part *p = &g->parts[index];
    bool running = false;
    for (int i = 0; i < ATTEMPTS; i++)
        running = running || p->attempts[i].peer >= 0;
    for (int i = 0; i < ATTEMPTS && !running; i++)
        running = attempt_begin(sc, g, index, &p->attempts[i]);
    p->done = p->missing = !running;
}

void part_take(scatter *sc, attempt *a, CURLcode code)
{
    gather *g = a->owner;
    part *p = &g->parts[a->part];
    peer *from = &sc->peers.list[a->peer];
    const int32_t index = a->part;
    long status = 0;
    json_fault fault;
    (void)curl_easy_getinfo(a->easy, CURLINFO_RESPONSE_CODE, &status);
    if (code == CURLE_OK)
        out_bytes(&a->body, "", 1);
    const bool whole =
        code == CURLE_OK && !a->body.failed && is_final(g, status) && json_check(a->body.bytes, a->body.length - 1, &fault);
    if (whole && !p->done) {
        p->done = true;
        p->status = (int)status;
        p->body = a->body;
        a->body = (out){0};
        p->from = a->peer;
        memcpy(p->name, from->name, sizeof p->name);
        memcpy(p->lsn, a->lsn, sizeof p->lsn);
        memcpy(p->rows, a->rows, sizeof p->rows);
    }
    if (!whole) {
        from->failed_seconds = server_seconds();
        atomic_fetch_add(&sc->retries, 1);
        if (code != CURLE_OK)
            snprintf(p->why, sizeof p->why, "%.120s: %s", from->url, curl_easy_strerror(code));
        else
            snprintf(p->why, sizeof p->why, "%.120s answered with %ld", from->url, status);
    }
    attempt_end(sc, a);
    for (int i = 0; i < ATTEMPTS && p->done; i++)
        attempt_end(sc, &p->attempts[i]);
    if (!p->done)
        part_continue(sc, g, index);
}

void parts_hurry(scatter *sc, gather *g, double now)
{
    for (int32_t i = 0; i < g->part_count; i++) {
        part *p = &g->parts[i];
        attempt *one = &p->attempts[0], *other = &p->attempts[1];
        if (one->peer < 0) {
            one = other;
            other = &p->attempts[0];
        }
        if (!p->done && one->peer >= 0 && other->peer < 0 && now > one->begun_seconds + LATE_SECONDS &&
            attempt_begin(sc, g, i, other))
            atomic_fetch_add(&sc->late, 1);
    }
}

void part_end(scatter *sc, part *p)
{
    for (int i = 0; i < ATTEMPTS; i++)
        attempt_end(sc, &p->attempts[i]);
}

void parts_end(scatter *sc, gather *g)
{
    for (int32_t i = 0; i < g->part_count; i++) {
        part_end(sc, &g->parts[i]);
        out_free(&g->parts[i].body);
    }
}
