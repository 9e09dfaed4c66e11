/* Snapshots that arrive as forms. libmicrohttpd takes the forms apart. */
#include "server/snapshots/upload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "server/snapshots/folder.h"
#include "server/state.h"

enum { FORM_BYTES = 1 << 16, WHY_BYTES = 300 };

struct upload {
    server *server;
    struct MHD_PostProcessor *form;
    char path[PATH_MAX];
    int file;
    int64_t bytes;
    bool found; /* the form has a file */
    int status; /* of what went wrong; 0: nothing */
    char why[WHY_BYTES];
};

static void fail(struct upload *u, int status, const char *why)
{
    if (u->status != 0)
        return;
    u->status = status;
    snprintf(u->why, sizeof u->why, "%s", why);
}

static void take(struct upload *u, const char *bytes, size_t count)
{
    const server *s = u->server;
    u->bytes += (int64_t)count;
    if (u->bytes > s->config.upload_bytes)
        fail(u, 413, "the snapshot is too large; --upload-limit says how large it may be");
    else if (atomic_load(&s->health.disk_free_bytes) < s->config.disk_reserve_bytes)
        fail(u, 507, "the disk has no room for the snapshot beside what --disk-reserve keeps free");
    for (size_t done = 0; u->status == 0 && done < count;) {
        const ssize_t written = write(u->file, bytes + done, count - done);
        if (written < 0 && errno != EINTR)
            fail(u, 507, errno == ENOSPC ? "the disk is full" : "the snapshot could not be written");
        else if (written > 0)
            done += (size_t)written;
    }
}

/* libmicrohttpd's own list of parameters. */
static enum MHD_Result field(void *cls, enum MHD_ValueKind kind, const char *key, const char *filename, const char *type,
                             const char *encoding, const char *bytes, uint64_t offset, size_t count)
{
    struct upload *u = cls;
    (void)kind, (void)filename, (void)type, (void)encoding, (void)offset;
    if (!key || strcmp(key, "snapshot") != 0)
        return MHD_YES;
    u->found = true;
    take(u, bytes, count);
    return u->status == 0 ? MHD_YES : MHD_NO;
}

bool upload_begin(request *r)
{
    struct upload *u = memory_alloc_zeroed(1, sizeof *u);
    if (!u)
        return request_fail_status(r, memory_failed("an upload", sizeof *u));
    r->upload = u;
    u->server = r->server;
    u->file = -1;
    const ww_status status = snapshots_work(r->server, u->path);
    if (status != WW_OK)
        return request_fail_status(r, status);
    u->form = MHD_create_post_processor(r->connection, FORM_BYTES, field, u);
    u->file = u->form ? open(u->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
    if (!u->form)
        return request_fail(r, 415, "the header Content-Type must be multipart/form-data with a boundary");
    return u->file >= 0 ? true : request_fail_status(r, ww_fail_errno(WW_IO_ERROR, errno, "%s", u->path));
}

void upload_add(request *r, const char *bytes, size_t count)
{
    struct upload *u = r->upload;
    if (u->status == 0 && MHD_post_process(u->form, bytes, count) != MHD_YES)
        fail(u, 400, "the body is not a form as multipart/form-data has it");
}

const char *upload_path(request *r)
{
    struct upload *u = r->upload;
    const bool whole = MHD_destroy_post_processor(u->form) == MHD_YES;
    u->form = NULL;
    if (close(u->file) != 0)
        fail(u, 507, "the snapshot could not be written");
    u->file = -1;
    if (!whole || !u->found)
        fail(u, 400, "the body must be a form with a file, called snapshot");
    if (u->status == 0)
        return u->path;
    request_fail(r, u->status, "%s", u->why);
    return NULL;
}

void upload_free(struct upload *u)
{
    if (!u)
        return;
    if (u->form)
        MHD_destroy_post_processor(u->form);
    if (u->file >= 0)
        close(u->file);
    if (u->path[0] != '\0')
        snapshots_drop(u->path);
    memory_free(u);
}
