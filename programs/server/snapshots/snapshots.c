/* Snapshots of Qdrant's API: made, listed, sent, removed and recovered. They are stores (snapshot/snapshot.h).
 *
 * A recovered collection takes the place of the present one in one step: when all is copied and about to be committed, requests
 * for the collection wait, and go on with the new one.
 */
#include "server/snapshots/snapshots.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/notes.h"
#include "server/route.h"
#include "server/snapshots/folder.h"
#include "server/snapshots/upload.h"
#include "server/state.h"
#include "server/ui/ui.h"

/* ---- names --------------------------------------------------------------------------------------------------------------- */

/* The collection's own name, if the path has an alias; NULL, and the request failed, if there is none. */
static const char *collection_name(request *r)
{
    return request_open_collection(r) ? r->entry->name : NULL;
}

static int stop_early(int64_t done, int64_t total, void *user)
{
    const server *s = user;
    (void)done, (void)total;
    return job_is_over() || atomic_load(&s->draining) ? 1 : 0;
}

static bool fail_cancelled(request *r, ww_status status)
{
    return status == WW_CANCELLED && !r->late
               ? request_fail(r, 503, "the snapshot was stopped: the client has left, or the server is stopping")
               : request_fail_status(r, status);
}

/* ---- making -------------------------------------------------------------------------------------------------------------- */

static bool make(request *r, const char *collection, char path[PATH_MAX])
{
    server *s = r->server;
    char unfinished[PATH_MAX];
    ww_status status = snapshots_work(s, unfinished);
    if (status != WW_OK)
        return request_fail_status(r, status);
    const snapshot_call call = {s->store, s->config.device, unfinished, stop_early, s};
    status = collection ? snapshot_write(&call, collection) : ww_store_backup(s->store, unfinished, stop_early, s);
    if (status == WW_OK)
        status = snapshots_keep(s, unfinished, collection, path);
    snapshots_drop(unfinished);
    return status == WW_OK ? true : fail_cancelled(r, status);
}

static void make_and_tell(request *r, const char *collection)
{
    char path[PATH_MAX];
    if (!copy_begin(r))
        return;
    const bool made = make(r, collection, path);
    copy_end(r);
    if (!made)
        return;
    request_result_begin(r);
    if (snapshots_put(path, &r->answer))
        request_result_end(r);
    else
        request_fail(r, 404, "Not found: the snapshot was deleted at once");
}

static void run_make(request *r)
{
    const char *collection = collection_name(r);
    if (collection)
        make_and_tell(r, collection);
}

static void run_make_full(request *r)
{
    make_and_tell(r, NULL);
}

/* ---- listing, sending, removing ------------------------------------------------------------------------------------------ */

static void list(request *r, const char *collection)
{
    request_result_begin(r);
    const ww_status status = snapshots_list(r->server, collection, &r->answer);
    request_result_end(r);
    if (status != WW_OK)
        request_fail_status(r, status);
}

static void run_list(request *r)
{
    const char *collection = collection_name(r);
    if (collection)
        list(r, collection);
}

static void run_list_full(request *r)
{
    list(r, NULL);
}

/* A collection that was dropped still has its snapshots. */
static bool find_file(request *r, bool full, char path[PATH_MAX])
{
    entry *e = full ? NULL : entry_open(r->server, r->names[0]);
    r->entry = e;
    return snapshots_file(r, full ? NULL : e ? e->name : r->names[0], r->names[full ? 0 : 1], path);
}

static void send_file(request *r, bool full)
{
    static const char *const HEADERS[][2] = {
        {"content-disposition", "attachment"}, {"cache-control", "no-store"}, {NULL, NULL}};
    char path[PATH_MAX];
    if (!find_file(r, full, path))
        return;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) {
        request_fail_status(r, ww_fail_errno(WW_IO_ERROR, errno, "%s", path));
        return;
    }
    r->status = 200;
    r->content_type = "application/octet-stream";
    r->headers = HEADERS;
    r->file = file;
}

static void run_send(request *r)
{
    send_file(r, false);
}

static void run_send_full(request *r)
{
    send_file(r, true);
}

static void drop(request *r, bool full)
{
    char path[PATH_MAX + 8];
    if (!find_file(r, full, path))
        return;
    const size_t length = strlen(path);
    if (unlink(path) != 0) {
        request_fail_status(r, ww_fail_errno(WW_IO_ERROR, errno, "%s", path));
        return;
    }
    memcpy(path + length, ".sha256", sizeof ".sha256");
    (void)unlink(path);
    request_result_true(r);
}

static void run_drop(request *r)
{
    drop(r, false);
}

static void run_drop_full(request *r)
{
    drop(r, true);
}

/* ---- recovering ---------------------------------------------------------------------------------------------------------- */

typedef struct recovery {
    server *server;
    entry *old;  /* the collection that is replaced; NULL: there is none */
    bool locked; /* requests for it wait */
} recovery;

static int about_to_commit(int64_t done, int64_t total, void *user)
{
    recovery *v = user;
    if (stop_early(done, total, v->server))
        return 1;
    if (done == total && v->old && !v->locked) {
        pthread_rwlock_wrlock(&v->old->swap);
        v->locked = true;
    }
    return 0;
}

/* Qdrant's clients send the checksum of the file, or none. */
static bool check_sum(request *r, const char *path, const char *wanted)
{
    char text[SHA256_TEXT];
    if (!wanted)
        return true;
    const ww_status status = snapshots_hash(path, text);
    if (status != WW_OK)
        return fail_cancelled(r, status);
    return strcasecmp(text, wanted) == 0 ? true
                                         : request_fail(r, 400, "the checksum of the snapshot is %s, not %.80s", text, wanted);
}

/* Replaces the collection, or makes it. */
static void recover(request *r, const char *path, const char *checksum)
{
    server *s = r->server;
    recovery v = {.server = s, .old = entry_open(s, r->names[0])};
    const char *to = v.old ? v.old->name : r->names[0];
    if (check_sum(r, path, checksum)) {
        const snapshot_call call = {s->store, s->config.device, path, about_to_commit, &v};
        const ww_status status = snapshot_restore(&call, NULL, to);
        if (status == WW_OK) {
            entry_forget(s, to);
            request_result_true(r);
        } else if (status == WW_CORRUPT_FILE || status == WW_NOT_FOUND) {
            request_fail(r, 400, "the snapshot cannot be recovered: %s", ww_error_message());
        } else {
            fail_cancelled(r, status);
        }
    }
    if (v.locked)
        pthread_rwlock_unlock(&v.old->swap);
    if (v.old)
        entry_release(s, v.old);
}

static bool check_name(request *r)
{
    return strchr(r->names[0], '/') || strcmp(r->names[0], NOTES_COLLECTION) == 0
               ? request_fail(r, 400, "the name '%s' cannot be used", r->names[0])
               : true;
}

/* `priority` chooses between replicas of a cluster; here there is one. */
static bool check_priority(request *r, const char *priority)
{
    return !priority || strcmp(priority, "snapshot") == 0 || strcmp(priority, "replica") == 0 ||
                   strcmp(priority, "no_sync") == 0
               ? true
               : request_fail(r, 400, "priority: no_sync, snapshot or replica is needed");
}

typedef struct recover_plan {
    char *path, *checksum;
} recover_plan;

static void recover_plan_free(void *plan)
{
    recover_plan *p = plan;
    memory_free(p->path);
    memory_free(p->checksum);
    memory_free(p);
}

/* "file:///srv/docs.db.snapshots/collections/docs/x.snapshot" */
static bool read_location(request *r, char *location, recover_plan *p)
{
    int status = 200;
    if (strncmp(location, "http://", 7) == 0 || strncmp(location, "https://", 8) == 0)
        return request_fail(r, 403,
                            "location: this server fetches from no address; send the file to .../snapshots/upload, or put "
                            "it into the folder of snapshots");
    const char *path = strncmp(location, "file://", 7) == 0 ? location + 7 : location;
    if (path[0] != '/')
        return request_fail(r, 400, "location: file:///PATH is needed");
    p->path = url_decode(path, strlen(path), &status);
    return p->path ? true : request_fail(r, status, "location: the path is malformed");
}

static bool prepare_recover(request *r)
{
    const char *body = request_body(r);
    recover_plan *p = body && check_name(r) ? request_plan_create(r, sizeof *p, recover_plan_free) : NULL;
    if (!p)
        return false;
    const char *priority = json_given(body, "priority"), *checksum = json_given(body, "checksum");
    char *text = priority ? request_copy_text(r, priority, "priority") : NULL;
    bool good = (!priority || text) && check_priority(r, text);
    memory_free(text);
    if (good && checksum)
        good = (p->checksum = request_copy_text(r, checksum, "checksum")) != NULL;
    char *location = good ? request_copy_text(r, json_given(body, "location"), "location") : NULL;
    good = location && read_location(r, location, p);
    memory_free(location);
    return good;
}

static void run_recover(request *r)
{
    const recover_plan *p = r->plan;
    char unfinished[PATH_MAX];
    const ww_status status = snapshots_link(r->server, p->path, unfinished);
    if (status != WW_OK) {
        request_fail_status(r, status);
        return;
    }
    recover(r, unfinished, p->checksum);
    snapshots_drop(unfinished);
}

/* The deadline counts from the end of the upload. */
static bool prepare_upload(request *r)
{
    r->deadline_seconds = server_seconds() + r->seconds;
    return check_name(r) && check_priority(r, request_argument(r, "priority"));
}

static void run_upload(request *r)
{
    const char *path = upload_path(r);
    if (path)
        recover(r, path, request_argument(r, "checksum"));
}

bool route_uploads(const request *r)
{
    return r->route && r->route->run == run_upload;
}

/* ---- the table ----------------------------------------------------------------------------------------------------------- */

#define SNAPSHOTS "/collections/{collection_name}/snapshots"

static const route routes[] = {
    {"GET", SNAPSHOTS, RIGHT_COPY, WORK_STORE_READ, NULL, run_list, "List the snapshots of a collection", NULL,
     "Their names, times, sizes and SHA-256 checksums.", false},
    {"POST", SNAPSHOTS, RIGHT_COPY, WORK_STORE_READ, NULL, run_make, "Make a snapshot of a collection, while requests go on",
     NULL, "Its name, time, size and SHA-256 checksum.", false},
    {"PUT", SNAPSHOTS "/recover", RIGHT_WRITE, WORK_STORE, prepare_recover, run_recover,
     "Replace or create a collection by a snapshot in the folder of snapshots",
     "\"location\":{\"type\":\"string\"},\"checksum\":{\"type\":\"string\"},\"priority\":{\"type\":\"string\"}", "True.",
     false},
    {"POST", SNAPSHOTS "/upload", RIGHT_WRITE, WORK_STORE, prepare_upload, run_upload,
     "Replace or create a collection by a snapshot that is sent as the file 'snapshot' of a form", NULL, "True.", false},
    {"GET", SNAPSHOTS "/{snapshot_name}", RIGHT_COPY, WORK_STORE_READ, NULL, run_send, "Download a snapshot", NULL,
     "The snapshot, a SQLite file.", false},
    {"DELETE", SNAPSHOTS "/{snapshot_name}", RIGHT_COPY, WORK_STORE_READ, NULL, run_drop, "Delete a snapshot", NULL, "True.",
     false},
    {"GET", "/snapshots", RIGHT_COPY, WORK_STORE_READ, NULL, run_list_full, "List the snapshots of the whole store", NULL,
     "Their names, times, sizes and SHA-256 checksums.", false},
    {"POST", "/snapshots", RIGHT_COPY, WORK_STORE_READ, NULL, run_make_full, "Make a snapshot of the whole store", NULL,
     "Its name, time, size and SHA-256 checksum.", false},
    {"GET", "/snapshots/{snapshot_name}", RIGHT_COPY, WORK_STORE_READ, NULL, run_send_full,
     "Download a snapshot of the whole store", NULL, "The snapshot, a SQLite file.", false},
    {"DELETE", "/snapshots/{snapshot_name}", RIGHT_COPY, WORK_STORE_READ, NULL, run_drop_full,
     "Delete a snapshot of the whole store", NULL, "True.", false},
};

const route_table routes_snapshots = {routes, sizeof routes / sizeof *routes};
