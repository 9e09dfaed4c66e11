/* A copy of the store as a download: one snapshot, consistent, made while requests go on.
 *
 * The copy is a file beside the store, because the disk with the store is the one that the operator has planned room on. Its
 * name is removed as soon as it is complete: the answer is sent from the open file, which is gone when the answer ends. One
 * copy is made at a time; it stops when its client leaves, at its deadline, and when the server stops.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "server/ui/ui.h"
#include "server/work/job.h"

static int stop_early(int64_t done, int64_t total, void *user)
{
    const server *s = user;
    (void)done;
    (void)total;
    return job_is_over() || atomic_load(&s->draining) ? 1 : 0;
}

/* Is there room for a copy beside what --disk-reserve keeps free? */
static bool check_room(request *r)
{
    const server *s = r->server;
    ww_store_info info = ww_store_info_default();
    const ww_status status = ww_store_describe(s->store, &info);
    if (status != WW_OK)
        return request_fail_status(r, status);
    const int64_t need = info.bytes_file + info.bytes_wal, reserve = s->config.disk_reserve_bytes;
    const int64_t have = atomic_load(&s->health.disk_free_bytes);
    if (have - need >= reserve)
        return true;
    return request_fail(r, 507, "a copy needs %lld MiB beside %s; %lld MiB are free, and --disk-reserve keeps %lld MiB",
                        (long long)(need >> 20) + 1, s->config.store, (long long)(have >> 20), (long long)(reserve >> 20));
}

/* Removes the copy's name, and what SQLite leaves beside it if it is interrupted. */
static void remove_names(const char *path)
{
    static const char *const ENDS[] = {"", "-journal", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof ENDS / sizeof *ENDS; i++) {
        out name = {0};
        out_format(&name, "%s%s", path, ENDS[i]);
        if (!name.failed)
            (void)unlink(name.bytes);
        out_free(&name);
    }
}

/* Makes the copy at `path`, a new empty file that is open as `file`, which is the request's then. */
static void copy_store(request *r, const char *path, int file)
{
    static const char *const HEADERS[][2] = {
        {"content-disposition", "attachment; filename=\"backup.db\""}, {"cache-control", "no-store"}, {NULL, NULL}};
    server *s = r->server;
    const ww_status status = ww_store_backup(s->store, path, stop_early, s);
    remove_names(path);
    if (status == WW_CANCELLED) {
        close(file);
        request_fail(r, 503, "the backup was stopped: the client has left, --timeout has passed, or the server is stopping");
        return;
    }
    if (status != WW_OK) {
        close(file);
        request_fail_status(r, status);
        return;
    }
    r->status = 200;
    r->content_type = "application/vnd.sqlite3";
    r->headers = HEADERS;
    r->file = file;
}

bool copy_begin(request *r)
{
    bool idle = false;
    if (!check_room(r))
        return false;
    return atomic_compare_exchange_strong(&r->server->copying, &idle, true)
               ? true
               : request_fail(r, 429, "another backup or snapshot is being made; try again when it is complete");
}

void copy_end(request *r)
{
    atomic_store(&r->server->copying, false);
}

void run_backup(request *r)
{
    server *s = r->server;
    if (!copy_begin(r))
        return;
    out path = {0};
    out_format(&path, "%s.backup-XXXXXX", s->config.store);
    const int file = path.failed ? -1 : mkostemp(path.bytes, O_CLOEXEC);
    if (path.failed)
        request_fail_status(r, memory_failed("a name", strlen(s->config.store)));
    else if (file < 0)
        request_fail_status(r, ww_fail_errno(WW_IO_ERROR, errno, "%s", path.bytes));
    else
        copy_store(r, path.bytes, file);
    out_free(&path);
    copy_end(r);
}
