/* The server itself: version, health and metrics. */
#include <string.h>

#include "server/route.h"
#include "server/state.h"
#include "server/ui/ui.h"

/* The version of Qdrant's API that the server implements: clients compare it with their own. */
#define QDRANT_VERSION "1.19.0"

static bool say(request *r, int status, const char *text)
{
    r->status = status;
    r->content_type = "text/plain";
    out_text(&r->answer, text);
    return true;
}

/* Browsers get the page, other clients JSON. */
static bool root(request *r)
{
    if (page_root(r))
        return true;
    r->status = 200;
    out_text(&r->answer, "{\"title\":\"warpwave - vector search engine\",\"version\":\"" QDRANT_VERSION
                         "\",\"commit\":\"\",\"warpwave\":\"" WW_VERSION_TEXT "\"}");
    return true;
}

/* Where Qdrant has its page. */
static bool dashboard(request *r)
{
    static const char *const there[][2] = {{"location", "/"}, {NULL, NULL}};
    r->headers = there;
    return say(r, 302, "the page is at /");
}

static bool alive(request *r)
{
    return say(r, 200, "healthz check passed");
}

static bool ready(request *r)
{
    server *s = r->server;
    char failure[HEALTH_BYTES];
    health_failure(s, failure);
    pthread_mutex_lock(&s->lock);
    const bool is_ready = s->ready;
    pthread_mutex_unlock(&s->lock);
    if (!is_ready)
        return say(r, 503, "not ready");
    if (failure[0] == '\0' && s->follower) {
        const follow_health follows = follower_health(s->follower, failure, sizeof failure);
        if (follows == FOLLOW_STALE && failure[0] != '\0')
            return say(r, 200, failure);
    }
    return failure[0] == '\0' ? say(r, 200, "all shards are ready") : say(r, 503, failure);
}

static bool figures(request *r)
{
    r->status = 200;
    r->content_type = "text/plain; version=0.0.4";
    metrics_write(r->server, &r->answer);
    return true;
}

static bool describe(request *r)
{
    const out *description = &r->server->description;
    r->status = 200;
    out_bytes(&r->answer, description->bytes, description->length);
    return true;
}

static bool telemetry(request *r)
{
    server *s = r->server;
    request_result_begin(r);
    out_text(&r->answer, "{\"id\":\"warpwave\",\"app\":{\"name\":\"warpwave\",\"version\":\"" WW_VERSION_TEXT
                         "\"},\"collections\":{\"number_of_collections\":");
    pthread_mutex_lock(&s->lock);
    int64_t count = 0;
    for (const entry *e = s->entries; e; e = e->next)
        count++;
    pthread_mutex_unlock(&s->lock);
    out_format(&r->answer, "%lld},\"uptime_seconds\":%.3f}", (long long)count, server_seconds() - s->started_seconds);
    request_result_end(r);
    return true;
}

static const route routes[] = {
    {"GET", "/", RIGHT_NONE, WORK_HERE, root, NULL, "Title and version; the page for browsers", NULL, "Title and version.",
     false},
    {"GET", "/dashboard", RIGHT_NONE, WORK_HERE, dashboard, NULL, "Leads to the page for browsers", NULL, "302.", false},
    {"GET", "/healthz", RIGHT_NONE, WORK_HERE, alive, NULL, "Is the process running?", NULL, "It is.", false},
    {"GET", "/livez", RIGHT_NONE, WORK_HERE, alive, NULL, "Is the process running?", NULL, "It is.", false},
    {"GET", "/readyz", RIGHT_NONE, WORK_HERE, ready, NULL, "Are requests answered?", NULL,
     "Yes. 503 while the server loads and while it stops, and if the store's file or disk fails; the text says why.", false},
    {"GET", "/metrics", RIGHT_READ, WORK_HERE, figures, NULL, "Figures in Prometheus's format", NULL, "The figures.", false},
    {"GET", "/telemetry", RIGHT_READ, WORK_HERE, telemetry, NULL, "Name, version and how long the server runs", NULL,
     "An object.", false},
    {"GET", "/openapi.json", RIGHT_NONE, WORK_HERE, describe, NULL, "This description", NULL, "OpenAPI 3.0.", false},
};

const route_table routes_service = {routes, sizeof routes / sizeof *routes};
