/* The map of a collection. Making one can take minutes, so a separate thread does it and searches continue; the page asks for
 * the progress. Each collection makes at most one map at a time.
 *
 * The thread leaves its result in `made`. Only the worker that has the collection's queue takes it from there and reads `map`,
 * so points, handles and colours of one generation agree.
 */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "base/text.h"
#include "server/route.h"
#include "server/ui/map.h"
#include "server/ui/ui.h"

/* ---- making -------------------------------------------------------------------------------------------------------------- */

static int tell_progress(int64_t done, int64_t total, void *user)
{
    map_job *job = user;
    atomic_store(&job->done, done);
    atomic_store(&job->total, total);
    return atomic_load(&job->owner->queue.server->draining) ? 1 : 0;
}

/* The thread. It holds a reference to the owner, and the server waits for it before stopping. */
static void *make_map(void *argument)
{
    map_job *job = argument;
    entry *owner = job->owner;
    server *s = owner->queue.server;
    ww_map *made = NULL;
    ww_map_config config = ww_map_config_default();
    config.remake = job->remake;
    config.progress = tell_progress;
    config.progress_user = job;
    const ww_status status = ww_collection_map(job->collection, &config, &made);
    char message[MAP_MESSAGE_BYTES] = "";
    if (status != WW_OK)
        text_copy(message, sizeof message, ww_error_message());
    pthread_mutex_lock(&s->lock);
    ww_map *unread = job->made;
    job->made = made;
    memcpy(job->failure, message, sizeof message);
    job->running = false;
    pthread_mutex_unlock(&s->lock);
    ww_map_destroy(unread);
    entry_release(s, owner);
    pthread_mutex_lock(&s->lock);
    s->maps_running--;
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* Starts a thread, unless one runs. */
static ww_status start(const request *r, entry *e, bool remake)
{
    pthread_t thread;
    server *s = r->server;
    entry *owner = r->entry;
    map_job *job = e->map ? e->map : memory_alloc_zeroed(1, sizeof *job);
    if (!job)
        return memory_failed("a map", sizeof *job);
    if (!e->map) {
        job->owner = owner;
        job->collection = e->collection;
        e->map = job;
    }
    pthread_mutex_lock(&s->lock);
    const bool runs = job->running;
    if (!runs) {
        job->running = true;
        job->remake = remake;
        atomic_store(&job->done, 0);
        atomic_store(&job->total, 0);
        owner->references++;
        s->maps_running++;
    }
    pthread_mutex_unlock(&s->lock);
    if (runs)
        return WW_OK;
    const int code = pthread_create(&thread, NULL, make_map, job);
    if (code == 0) {
        pthread_detach(thread);
        return WW_OK;
    }
    pthread_mutex_lock(&s->lock);
    job->running = false;
    owner->references--;
    s->maps_running--;
    pthread_mutex_unlock(&s->lock);
    return ww_fail_errno(WW_OUT_OF_MEMORY, code, "the map needs a thread");
}

void maps_wait(server *s)
{
    for (bool busy = true; busy;) {
        pthread_mutex_lock(&s->lock);
        busy = s->maps_running > 0;
        pthread_mutex_unlock(&s->lock);
        if (busy)
            nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
}

void map_job_free(map_job *job)
{
    if (!job)
        return;
    ww_map_destroy(job->map);
    ww_map_destroy(job->made);
    memory_free(job);
}

/* ---- how far it is ------------------------------------------------------------------------------------------------------- */

static bool same_map(const ww_map *a, const ww_map *b)
{
    const size_t count = (size_t)ww_map_count(a);
    return a && ww_map_count(a) == ww_map_count(b) &&
           (count == 0 || (memcmp(ww_map_points(a), ww_map_points(b), 2 * count * sizeof(float)) == 0 &&
                           memcmp(ww_map_handles(a), ww_map_handles(b), count * sizeof(int64_t)) == 0));
}

/* Takes the thread's result. An equal map keeps its generation, because pages that show it can continue. Returns whether the
 * thread still runs, and in `failure` why the last one failed. */
static bool take_made(server *s, map_job *job, char failure[MAP_MESSAGE_BYTES])
{
    pthread_mutex_lock(&s->lock);
    ww_map *made = job->made;
    const bool running = job->running;
    job->made = NULL;
    memcpy(failure, job->failure, MAP_MESSAGE_BYTES);
    pthread_mutex_unlock(&s->lock);
    if (made) {
        job->generation += same_map(job->map, made) ? 0 : 1;
        ww_map_destroy(job->map);
        job->map = made;
    }
    return running;
}

static void put_state(request *r, const entry *e)
{
    map_job *job = e->map;
    char failure[MAP_MESSAGE_BYTES] = "";
    const bool running = job && take_made(r->server, job, failure);
    ww_map_info info = ww_map_info_default();
    request_result_begin(r);
    out_format(&r->answer, "{\"running\":%s,\"done\":%lld,\"total\":%lld,\"failure\":", running ? "true" : "false",
               job ? atomic_load(&job->done) : 0, job ? atomic_load(&job->total) : 0);
    out_quoted(&r->answer, failure, strlen(failure));
    if (job && job->map && ww_map_describe(job->map, &info) == WW_OK)
        out_format(&r->answer,
                   ",\"map\":{\"generation\":%u,\"rows\":%lld,\"rows_placed\":%lld,\"neighbours\":%d,\"steps\":%d,"
                   "\"seed\":%lld,\"origin\":\"%s\"}}",
                   job->generation, (long long)info.rows, (long long)info.rows_placed, (int)info.neighbours, (int)info.steps,
                   (long long)info.seed, ww_map_origin_name(info.origin));
    else
        out_text(&r->answer, ",\"map\":null}");
    request_result_end(r);
}

entry *entry_of_vector(request *r)
{
    entry *e = r->entry;
    const char *given = request_argument(r, "using");
    int status = 200;
    char *name = given ? url_decode(given, strlen(given), &status) : NULL;
    const entry *found = status == 200 ? entry_part(e, name ? name : "") : NULL;
    found = found && !found->sparse && !found->multi ? found : NULL; /* the page shows dense vectors */
    if (status != 200)
        request_fail(r, status, "using: '%s' is not a name, or there is no memory for it", given);
    else if (!found && given)
        request_fail(r, 404, "using: the collection '%s' has no vector '%s'", e->name, name);
    else if (!found)
        request_fail(r, 400, "using: the name of a vector is needed; the first is '%s'", e->parts[0].name);
    memory_free(name);
    if (!found)
        return NULL;
    return found == e ? e : &e->parts[found - e->parts];
}

void run_map_state(request *r)
{
    const entry *e = entry_of_vector(r);
    if (e)
        put_state(r, e);
}

static void begin_map(request *r, bool remake)
{
    entry *e = entry_of_vector(r);
    if (!e)
        return;
    const ww_status status = start(r, e, remake);
    if (status == WW_OK)
        put_state(r, e);
    else
        request_fail_status(r, status);
}

void run_map(request *r)
{
    begin_map(r, false);
}

void run_map_remake(request *r)
{
    begin_map(r, true);
}

/* ---- points -------------------------------------------------------------------------------------------------------------- */

map_job *map_of_request(request *r)
{
    const entry *e = entry_of_vector(r);
    if (!e)
        return NULL;
    if (e->map && e->map->map)
        return e->map;
    request_fail(r, 404, "the collection '%s' has no map yet; POST to its map makes one", r->entry->name);
    return NULL;
}

/* Writes the handles of the rows as runs of consecutive ones: the first handle and how many follow each other, 64 bits each.
 * Rows that were added in order and stayed are one run. */
static void put_runs(out *o, const int64_t *handles, int64_t count)
{
    int64_t run[2] = {0, 0};
    for (int64_t i = 0; i < count; i++) {
        if (run[1] > 0 && handles[i] == run[0] + run[1]) {
            run[1]++;
            continue;
        }
        if (run[1] > 0)
            out_bytes(o, (const char *)run, sizeof run);
        run[0] = handles[i];
        run[1] = 1;
    }
    if (run[1] > 0)
        out_bytes(o, (const char *)run, sizeof run);
}

/* Little-endian, like every machine that this is built for: the generation and the count, 32 bits each; x and y of each point,
 * 32 bits each; the handles of the rows, in runs. */
void run_map_points(request *r)
{
    const map_job *job = map_of_request(r);
    if (!job)
        return;
    const ww_map *map = job->map;
    const size_t count = (size_t)ww_map_count(map);
    const uint32_t head[2] = {job->generation, (uint32_t)count};
    r->status = 200;
    r->content_type = "application/octet-stream";
    out_bytes(&r->answer, (const char *)head, sizeof head);
    out_bytes(&r->answer, (const char *)ww_map_points(map), 2 * count * sizeof(float));
    put_runs(&r->answer, ww_map_handles(map), ww_map_count(map));
}
