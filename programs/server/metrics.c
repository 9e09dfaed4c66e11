/* Figures of a server. */
#include "server/metrics.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "server/nodes/scatter.h"
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
    if (number < METRIC_ROUTES_MAX) {
        atomic_fetch_add(&m->durations[number][bucket], 1);
        atomic_fetch_add(&m->microseconds[number], (long long)(seconds * 1e6));
    }
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

/* The durations of one route. */
static void put_route_durations(const metrics *m, out *o, size_t number)
{
    const route *at = number < route_count() ? route_at(number) : NULL;
    const char *method = at ? at->method : "", *path = at ? at->path : "";
    long long below = 0;
    for (size_t bucket = 0; bucket < METRIC_BUCKETS; bucket++) {
        char bound[16] = "+Inf";
        below += atomic_load(&m->durations[number][bucket]);
        if (bucket < METRIC_BUCKETS - 1)
            snprintf(bound, sizeof bound, "%g", bounds[bucket]);
        out_format(o, "warpwave_request_duration_seconds_bucket{method=\"%s\",path=\"%s\",le=\"%s\"} %lld\n", method, path,
                   bound, below);
    }
    out_format(o, "warpwave_request_duration_seconds_sum{method=\"%s\",path=\"%s\"} %.6f\n", method, path,
               (double)atomic_load(&m->microseconds[number]) * 1e-6);
    out_format(o, "warpwave_request_duration_seconds_count{method=\"%s\",path=\"%s\"} %lld\n", method, path, below);
}

static void put_durations(const metrics *m, out *o)
{
    put_head(o, "request_duration_seconds", "histogram",
             "From the first byte of a request to its answer; le is an upper bound in seconds.");
    for (size_t number = 0; number < METRIC_ROUTES_MAX; number++) {
        long long count = 0;
        for (size_t bucket = 0; bucket < METRIC_BUCKETS; bucket++)
            count += atomic_load(&m->durations[number][bucket]);
        if (count > 0)
            put_route_durations(m, o, number);
    }
}

/* The figures that Prometheus's own libraries give of a process. */
static void put_process(const server *s, out *o)
{
    struct rusage used = {0};
    struct rlimit files = {0};
    long long pages = 0, resident = 0, open_files = 0;
    const double now = server_seconds();
    (void)getrusage(RUSAGE_SELF, &used);
    (void)getrlimit(RLIMIT_NOFILE, &files);
    FILE *memory = fopen("/proc/self/statm", "re");
    if (memory && fscanf(memory, "%lld %lld", &pages, &resident) != 2)
        pages = resident = 0;
    if (memory)
        fclose(memory);
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        open_files++;
    if (folder)
        closedir(folder);
    const double cpu =
        (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + 1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    out_format(o, "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total %.6f\n", cpu);
    out_format(o, "# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes %lld\n",
               resident * (long long)sysconf(_SC_PAGESIZE));
    out_format(o, "# TYPE process_virtual_memory_bytes gauge\nprocess_virtual_memory_bytes %lld\n",
               pages * (long long)sysconf(_SC_PAGESIZE));
    out_format(o, "# TYPE process_open_fds gauge\nprocess_open_fds %lld\n",
               open_files > 3 ? open_files - 3 : 0); /* ., .., folder */
    out_format(o, "# TYPE process_max_fds gauge\nprocess_max_fds %lld\n", (long long)files.rlim_cur);
    out_format(o, "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %.3f\n",
               (double)time(NULL) - (now - s->started_seconds));
}

static void put_audit(const server *s, out *o)
{
    if (!s->config.audit_log)
        return;
    put_head(o, "audit_lines_lost_total", "counter", "Lines of the audit log that could not be written.");
    out_format(o, "warpwave_audit_lines_lost_total %lld\n", (long long)atomic_load(&s->audit_lost));
}

/* Rows and bytes of each collection, and room on the disk. */
static void put_sizes(server *s, out *o)
{
    put_head(o, "collection_points", "gauge", "Points of a collection.");
    pthread_mutex_lock(&s->lock);
    for (const entry *e = s->entries; e; e = e->next) {
        out_text(o, "warpwave_collection_points{name=");
        out_quoted(o, e->name, strlen(e->name));
        out_format(o, "} %lld\n", (long long)atomic_load(&e->rows));
    }
    put_head(o, "collection_memory_bytes", "gauge", "Memory of a collection, on the device and on the host.");
    for (const entry *e = s->entries; e; e = e->next) {
        out_text(o, "warpwave_collection_memory_bytes{name=");
        out_quoted(o, e->name, strlen(e->name));
        out_format(o, "} %lld\n", (long long)atomic_load(&e->bytes));
    }
    pthread_mutex_unlock(&s->lock);
    put_one(o, "store_bytes", "gauge", atomic_load(&s->health.file_bytes), "The store's file with its log.");
    put_one(o, "store_memory_bytes", "gauge", atomic_load(&s->health.memory_bytes),
            "Vectors of all collections in memory, about.");
    put_one(o, "store_memory_limit_bytes", "gauge", s->config.memory_bytes, "What --memory allows for them; 0: no limit.");
    put_one(o, "disk_free_bytes", "gauge", atomic_load(&s->health.disk_free_bytes), "Free room on the store's disk.");
    put_one(o, "body_memory_bytes", "gauge", atomic_load(&s->body_bytes), "Memory of the bodies of all requests.");
}

/* The label's value is written as a JSON string, whose escapes Prometheus reads the same way. */
static void put_queue(out *o, const char *kind, const char *name, long long waiting)
{
    out_format(o, "warpwave_queue_length{kind=\"%s\",name=", kind);
    out_quoted(o, name, strlen(name));
    out_format(o, "} %lld\n", waiting);
}

static void put_queues(server *s, out *o)
{
    put_head(o, "queue_length", "gauge", "Requests that wait for a collection, a model or the store.");
    pthread_mutex_lock(&s->lock);
    put_queue(o, "store", "", s->store_queue.waiting + s->store_reads.waiting);
    put_queue(o, "bodies", "", s->reading.waiting);
    for (const entry *e = s->entries; e; e = e->next)
        put_queue(o, "collection", e->name, e->queue.waiting + e->reads.waiting);
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
    put_sizes(s, o);
    put_audit(s, o);
    put_process(s, o);
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
    if (s->follower)
        follower_metrics(s->follower, o);
    if (s->scatter)
        scatter_metrics(s->scatter, o);
}
