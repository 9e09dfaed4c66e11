/* Starting and stopping a server. */
#include "server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "server/reserve.h"
#include "server/route.h"
#include "server/snapshots/folder.h"
#include "server/state.h"
#include "server/tls.h"
#include "server/ui/map.h"
#include "snapshot/snapshot.h"

server_config server_config_default(void)
{
    return (server_config){.address = "127.0.0.1",
                           .port = 6333,
                           .queue_limit = 1024,
                           .body_bytes = 32 << 20,
                           .all_bodies_bytes = 512 << 20,
                           .upload_bytes = INT64_C(64) << 30,
                           .connections = 10240,
                           .disk_reserve_bytes = 16 << 20,
                           .request_seconds = 60,
                           .drain_seconds = 10,
                           .http_threads = 2,
                           .workers = 16};
}

int32_t server_port(const server *s)
{
    return s->port;
}

/* ---- starting ------------------------------------------------------------------------------------------------------------ */

static ww_status open_log(const char *path, int *log)
{
    if (!path)
        return WW_OK;
    *log = strcmp(path, "-") == 0 ? dup(STDOUT_FILENO) : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    return *log >= 0 ? WW_OK : ww_fail_errno(WW_IO_ERROR, errno, "%s", path);
}

static ww_status open_all(server *s)
{
    ww_store_config stored = ww_store_config_default();
    stored.memory_bytes = s->config.memory_bytes;
    route_describe(&s->description);
    ww_status status = s->description.failed ? memory_failed("the description of the server", s->description.length) : WW_OK;
    if (status == WW_OK)
        status = access_open(&s->access, &s->config);
    if (status == WW_OK)
        status = tls_load(s);
    if (status == WW_OK)
        status = open_log(s->config.access_log, &s->log);
    if (status == WW_OK)
        status = open_log(s->config.audit_log, &s->audit);
    if (status == WW_OK)
        status = ww_store_open(s->config.store, s->config.device, &stored, &s->store);
    if (status == WW_OK)
        status = snapshot_finish(s->store);
    if (status == WW_OK)
        status = snapshots_open(s);
    if (status == WW_OK)
        status = watch_start(s);
    if (status == WW_OK)
        status = workers_start(s);
    if (status == WW_OK)
        status = http_start(s);
    if (status == WW_OK)
        status = entries_load(s);
    if (status == WW_OK)
        status = models_load(s);
    if (status == WW_OK)
        status = health_start(s);
    return status == WW_OK ? following_start(s) : status;
}

ww_status server_start(const server_config *config, server **started)
{
    server *s = memory_alloc_zeroed(1, sizeof *s);
    if (!s)
        return memory_failed("a server", sizeof *s);
    s->config = *config;
    if (s->config.all_bodies_bytes <= s->config.body_bytes)
        s->config.all_bodies_bytes = s->config.body_bytes + 1; /* one request always fits, with the NUL at its end */
    s->log = s->audit = s->watch = -1;
    s->started_seconds = server_seconds();
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->notes_lock, NULL);
    pthread_cond_init(&s->work, NULL);
    queue_init(&s->store_queue, s, "store", requests_run);
    queue_init(&s->store_reads, s, "store", requests_run);
    queue_init(&s->reading, s, "reading", reading_run);
    s->store_reads.parallel = s->reading.parallel = true;
    const ww_status status = open_all(s);
    if (status != WW_OK) {
        server_stop(s);
        return status;
    }
    pthread_mutex_lock(&s->lock);
    s->ready = true;
    pthread_mutex_unlock(&s->lock);
    *started = s;
    return WW_OK;
}

/* Opens a log again, because it was rotated. */
static ww_status reopen_log(const char *path, int log)
{
    int opened = -1;
    if (log < 0 || strcmp(path, "-") == 0)
        return WW_OK;
    const ww_status status = open_log(path, &opened);
    if (status != WW_OK)
        return status;
    (void)dup3(opened, log, O_CLOEXEC); /* lines that are written now go to the old file or to the new one */
    close(opened);
    return WW_OK;
}

ww_status server_reload(server *s)
{
    ww_status status = reopen_log(s->config.access_log, s->log);
    if (status == WW_OK)
        status = reopen_log(s->config.audit_log, s->audit);
    if (status == WW_OK)
        status = access_reload(&s->access);
    return status == WW_OK ? tls_load(s) : status;
}

/* ---- stopping ------------------------------------------------------------------------------------------------------------ */

/* Waits until no request is active and none is half sent, or drain_seconds have passed. */
static void drain(server *s)
{
    const double end = server_seconds() + s->config.drain_seconds;
    for (bool busy = true; busy && server_seconds() < end;) {
        pthread_mutex_lock(&s->lock);
        busy = s->active_count > 0;
        for (const client *c = s->clients; !busy && c; c = c->next)
            busy = c->request != NULL; /* it is still sent, or its answer is */
        pthread_mutex_unlock(&s->lock);
        if (busy)
            nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
}

/* Answers requests that still wait, and asks running ones to end and waits for them: a write is never interrupted. */
static void give_up_rest(server *s)
{
    pthread_mutex_lock(&s->lock);
    for (request *r = s->active; r; r = r->next_active)
        r->deadline_seconds = 0; /* the watcher answers those that wait and marks those that run */
    bool busy = s->active_count > 0;
    pthread_mutex_unlock(&s->lock);
    while (busy) {
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        pthread_mutex_lock(&s->lock);
        busy = false;
        for (const request *r = s->active; r; r = r->next_active)
            busy = busy || r->state != REQUEST_DONE || r->stream;
        pthread_mutex_unlock(&s->lock);
    }
}

void server_stop(server *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->ready = false;
    s->draining = true;
    pthread_mutex_unlock(&s->lock);
    if (s->daemon) {
        drain(s);
        give_up_rest(s);
    }
    following_stop(s);
    workers_stop(s); /* the threads that resume connections must end before the daemon */
    maps_wait(s);
    health_stop(s);
    reserve_remove(s);
    watch_stop(s);
    if (s->daemon)
        MHD_stop_daemon(s->daemon);
    snapshots_close(s);
    models_free(s);
    entries_free(s);
    ww_store_close(s->store);
    if (s->log >= 0)
        close(s->log);
    if (s->audit >= 0)
        close(s->audit);
    access_close(&s->access);
    tls_free(s);
    memory_free(s->clients_by_socket);
    out_free(&s->description);
    pthread_cond_destroy(&s->work);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->notes_lock);
    memory_free(s);
}
