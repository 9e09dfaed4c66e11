/* A node that checks itself, because another replica with the same rows gave another answer: it computes the answer from its
 * file on the CPU, in memory that nothing else uses, and once more as usual. If they differ, its memory or its device is wrong:
 * it leaves service and copies the tables anew. The answer from the file goes out. It leaves service, too, if a third replica
 * contradicts what it computes from its file. */
#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/cluster/values.h"
#include "server/route.h"
#include "server/state.h"

/* The file's rows on the CPU. */
typedef struct file_rows {
    ww_device *device;
    ww_store *store;
    ww_collection *collection;
} file_rows;

static ww_status file_rows_open(const server *s, const char *name, file_rows *rows)
{
    ww_store_config config = ww_store_config_default();
    config.read_only = 1;
    config.rows = WW_ROWS_HOST; /* another place than the server's: a process has one copy in memory for each place */
    ww_status status = ww_device_open("cpu", &rows->device);
    if (status == WW_OK)
        status = ww_store_open(s->config.store, rows->device, &config, &rows->store);
    return status == WW_OK ? ww_store_collection(rows->store, name, &rows->collection) : status;
}

static void file_rows_close(file_rows *rows)
{
    ww_collection_destroy(rows->collection);
    ww_store_close(rows->store);
    ww_device_close(rows->device);
}

/* Runs the request on the file's rows; `answer` gets what it says. */
static ww_status run_from_file(request *r, out *answer)
{
    file_rows rows = {0};
    entry *own = r->entry, copy = *own;
    const ww_status status = file_rows_open(r->server, own->name, &rows);
    if (status == WW_OK) {
        copy.collection = rows.collection;
        r->entry = &copy;
        r->route->run(r);
        r->entry = own;
        *answer = r->answer;
        r->answer = (out){0};
    }
    file_rows_close(&rows);
    return status;
}

/* Runs it as usual: it is read from its body anew, because running it has used up what was read. */
static bool run_as_usual(request *r)
{
    if (r->plan_free)
        r->plan_free(r->plan);
    r->plan = NULL;
    r->plan_free = NULL;
    if (!r->route->prepare(r))
        return false;
    r->route->run(r);
    return r->status == 200;
}

/* Ends the text of an answer, which stays as long as it is. */
static const char *result_of(out *answer)
{
    out_bytes(answer, "", 1);
    if (answer->failed)
        return NULL;
    answer->length--;
    return json_given(json_root(answer->bytes), "result");
}

static bool are_equal(const char *a, const char *b)
{
    const size_t length = (size_t)(json_end(a) - a);
    return length == (size_t)(json_end(b) - b) && memcmp(a, b, length) == 0;
}

static void check(request *r)
{
    server *s = r->server;
    out from_file = {0};
    const ww_status status = run_from_file(r, &from_file);
    if (status != WW_OK) {
        request_fail_status(r, status);
        return;
    }
    const int said = r->status;
    if (said == 200 && run_as_usual(r)) {
        const char *wanted = result_of(&from_file), *usual = result_of(&r->answer);
        if (wanted && usual && !are_equal(wanted, usual))
            follower_distrust(s->follower,
                              "a search gave another answer than the same rows in this node's file, computed on the "
                              "CPU: the memory of its device is wrong, or the device is; the tables are copied anew");
    }
    out_free(&r->answer);
    r->answer = from_file;
    r->status = said;
}

/* Without a key of the nodes anybody could say it, so then nothing happens. */
static void leave_service(request *r)
{
    static const char why[] =
        "two other replicas with the same rows gave another answer from their files than this node from its "
        "own: the file is wrong, or the processor is; the tables are copied anew";
    if (r->from_node)
        follower_distrust(r->server->follower, why);
    request_result_true(r);
}

bool again_run(queue *q, request *taken)
{
    server *s = q->server;
    for (request *r = taken, *next; r; r = next) {
        next = r->next;
        r->next = NULL;
        job_begin(r);
        follower_hold(s->follower);
        r->version = follower_version(s->follower);
        pg_lsn_write(follower_lsn(s->follower), r->lsn);
        if (r->outvoted)
            leave_service(r);
        else if (request_open_collection(r))
            check(r);
        follower_release(s->follower);
        job_end(r);
        request_done(r);
    }
    return false;
}
