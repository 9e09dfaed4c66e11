/* Figures of a server. */
#include "server/metrics.h"

#include <inttypes.h>

#include "server/route.h"
#include "server/state.h"

static const double bounds[METRIC_BUCKETS - 1] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5, 10};

void metrics_answered(metrics *m, const request *r, double seconds)
{
    const size_t number = r->route ? route_number(r->route) : METRIC_ROUTES_MAX - 1;
    const int class = r->status / 100;
    size_t bucket = 0;
    while (bucket < METRIC_BUCKETS - 1 && seconds > bounds[bucket])
        bucket++;
    if (number < METRIC_ROUTES_MAX && class >= 0 && class < METRIC_CLASSES)
        atomic_fetch_add(&m->answered[number][class], 1);
    atomic_fetch_add(&m->durations[bucket], 1);
    atomic_fetch_add(&m->microseconds, (long long)(seconds * 1e6));
}

void metrics_batch(metrics *m, int64_t requests)
{
    atomic_fetch_add(&m->batches, 1);
    atomic_fetch_add(&m->batched, requests);
}

static void put_head(out *o, const char *name, const char *type, const char *help)
{
    out_format(o, "# HELP warpwave_%s %s\n# TYPE warpwave_%s %s\n", name, help, name, type);
}

static void put_one(out *o, const char *name, const char *type, long long value, const char *help)
{
    put_head(o, name, type, help);
    out_format(o, "warpwave_%s %lld\n", name, value);
}

static void put_requests(const metrics *m, out *o)
{
    put_head(o, "requests_total", "counter", "Requests that were answered.");
    for (size_t number = 0; number < METRIC_ROUTES_MAX; number++) {
        const route *at = number < route_count() ? route_at(number) : NULL;
        for (int class = 0; class < METRIC_CLASSES; class ++) {
            const long long count = atomic_load(&m->answered[number][class]);
            if (count > 0)
                out_format(o, "warpwave_requests_total{method=\"%s\",path=\"%s\",status=\"%dxx\"} %lld\n", at ? at->method : "",
                           at ? at->path : "", class, count);
        }
    }
}

static void put_durations(const metrics *m, out *o)
{
    long long below = 0;
    put_head(o, "request_duration_seconds", "histogram", "From the first byte of a request to its answer.");
    for (size_t bucket = 0; bucket < METRIC_BUCKETS; bucket++) {
        below += atomic_load(&m->durations[bucket]);
        if (bucket < METRIC_BUCKETS - 1)
            out_format(o, "warpwave_request_duration_seconds_bucket{le=\"%g\"} %lld\n", bounds[bucket], below);
        else
            out_format(o, "warpwave_request_duration_seconds_bucket{le=\"+Inf\"} %lld\n", below);
    }
    out_format(o, "warpwave_request_duration_seconds_sum %.6f\n", (double)atomic_load(&m->microseconds) * 1e-6);
    out_format(o, "warpwave_request_duration_seconds_count %lld\n", below);
}

/* The label's value is written as a JSON string, whose escapes Prometheus reads the same way. */
static void put_queue(out *o, const char *kind, const char *name, long long waiting)
{
    out_format(o, "warpwave_queue_length{kind=\"%s\",name=", kind);
    size_t length = 0;
    while (name[length] != '\0')
        length++;
    out_quoted(o, name, length);
    out_format(o, "} %lld\n", waiting);
}

static void put_queues(server *s, out *o)
{
    put_head(o, "queue_length", "gauge", "Requests that wait for a collection, a model or the store.");
    pthread_mutex_lock(&s->lock);
    put_queue(o, "store", "", s->store_queue.waiting);
    for (const entry *e = s->entries; e; e = e->next)
        put_queue(o, "collection", e->name, e->queue.waiting);
    for (size_t i = 0; i < s->model_count; i++)
        put_queue(o, "model", s->models[i].name, s->models[i].queue.waiting);
    const int64_t active = s->active_count;
    pthread_mutex_unlock(&s->lock);
    put_one(o, "requests_active", "gauge", active, "Requests that wait or run.");
}

void metrics_write(server *s, out *o)
{
    metrics *m = &s->metrics;
    put_requests(m, o);
    put_durations(m, o);
    put_queues(s, o);
    put_one(o, "batches_total", "counter", atomic_load(&m->batches), "Batches that were computed.");
    put_one(o, "batched_requests_total", "counter", atomic_load(&m->batched), "Requests in these batches.");
    put_one(o, "searches_total", "counter", atomic_load(&m->searches), "Queries that were searched for.");
    put_one(o, "rows_read_total", "counter", atomic_load(&m->rows_read), "Rows that searches screened or scored.");
    put_one(o, "prompt_tokens_total", "counter", atomic_load(&m->tokens_read), "Tokens that models read.");
    put_one(o, "generated_tokens_total", "counter", atomic_load(&m->tokens_written), "Tokens that models generated.");
    ww_device_info info = ww_device_info_default();
    if (ww_device_describe(s->config.device, &info) == WW_OK) {
        put_one(o, "device_memory_bytes", "gauge", (long long)info.memory_total_bytes, "Memory of the device.");
        put_one(o, "device_memory_free_bytes", "gauge", (long long)info.memory_free_bytes,
                "Memory of the device that is free.");
    }
}
