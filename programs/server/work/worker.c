/* Workers: the threads that prepare requests, compute them and send them from queue to queue. Each runs every kind of job. */
#include "base/memory.h"
#include "base/system/threads.h"
#include "server/body/encoding.h"
#include "server/nodes/step.h"
#include "server/qdrant/collections/layout.h"
#include "server/qdrant/collections/strict.h"
#include "server/route.h"
#include "server/state.h"
#include "server/work/changes.h"
#include "server/work/documents.h"

/* ---- threads ------------------------------------------------------------------------------------------------------------- */

static void *worker_main(void *argument)
{
    server *s = argument;
    running_job own;
    if (job_create(&own) != WW_OK)
        job_destroy(&own); /* jobs of this worker are not stopped early */
    pthread_mutex_lock(&s->lock);
    while (!s->stopping) {
        if (s->first_scheduled)
            queue_run_first(s);
        else
            pthread_cond_wait(&s->work, &s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    job_destroy(&own);
    return NULL;
}

ww_status workers_start(server *s)
{
    s->workers = memory_alloc_zeroed((size_t)s->config.workers, sizeof *s->workers);
    if (!s->workers)
        return memory_failed("workers", (size_t)s->config.workers * sizeof *s->workers);
    for (; s->worker_count < s->config.workers; s->worker_count++) {
        const int code = thread_start(&s->workers[s->worker_count], "ww-worker", worker_main, s);
        if (code != 0)
            return ww_fail_errno(WW_IO_ERROR, code, "a worker could not be started");
    }
    return WW_OK;
}

void workers_stop(server *s)
{
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_broadcast(&s->work);
    pthread_mutex_unlock(&s->lock);
    for (int32_t i = 0; i < s->worker_count; i++)
        pthread_join(s->workers[i], NULL);
    memory_free(s->workers);
    s->workers = NULL;
    s->worker_count = 0;
}

/* ---- from reading to running --------------------------------------------------------------------------------------------- */

bool request_prepare(request *r)
{
    return !r->route->prepare || (encoding_read(r) && r->route->prepare(r));
}

bool request_prepares_long(const request *r)
{
    enum { BODY_BYTES = 16 << 10 }; /* checked as JSON and read in a fraction of a millisecond */
    const bool model = r->route->work == WORK_MODEL || (r->route->work == WORK_HERE && r->body_length > 0);
    const bool packed = r->body_length > 0 && MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "content-encoding");
    return r->route->prepare &&
           (model || packed || r->body_length > BODY_BYTES); /* models tokenize, and evaluate templates and grammars */
}

queue *collection_queue(request *r)
{
    const bool read = r->route->work == WORK_READ;
    if (changes_cluster(r))
        return &r->server->writes;
    if (r->entry)
        return read ? &r->entry->reads : &r->entry->queue;
    return read ? &r->server->store_reads : &r->server->store_queue;
}

void request_dispatch(request *r)
{
    server *s = r->server;
    queue *q = r->route->work == WORK_STORE_READ ? &s->store_reads : &s->store_queue;
    if (cluster_takes(r) || following_waits(r))
        return;
    if (r->route->work == WORK_COLLECTION || r->route->work == WORK_READ) {
        r->entry = entry_find(s, r->names[0]);
        q = collection_queue(r); /* if it is not known, the store looks for the collection first */
    } else if (r->route->work == WORK_MODEL) {
        q = r->queue;
    }
    if (changes_cluster(r))
        q = &s->writes;
    if (r->documents && !documents_prefix(r)) {
        request_done(r);
        return;
    }
    queue_submit(r->documents ? &r->documents->model->queue : q, r); /* the model's worker sends it on to the collection */
}

bool reading_run(queue *q, request *taken)
{
    (void)q;
    if (!taken) /* its client left before a worker came */
        return false;
    job_begin(taken);
    const bool wanted = !atomic_load(&taken->gone) || request_fail(taken, 499, "the client has left");
    const bool prepared = wanted && request_prepare(taken);
    if (prepared && taken->route->work != WORK_HERE)
        request_dispatch(taken);
    else
        request_done(taken);
    return false;
}

/* ---- running ------------------------------------------------------------------------------------------------------------- */

/* Makes sure that a request which was taken out of a queue can run now: it is still wanted, its collection is known and permits
 * it, and its texts have become vectors. */
static readiness make_ready(request *r)
{
    const bool of_collection = r->route->work == WORK_COLLECTION || r->route->work == WORK_READ;
    if (atomic_load(&r->gone)) {
        request_fail(r, 499, "the client has left, or the deadline has passed");
        return REQUEST_REFUSED;
    }
    if (of_collection && r->entry && layout_is_old(r)) {
        entry_release(r->server, r->entry);
        r->entry = NULL;
    }
    if (of_collection && !r->entry) { /* it was not known when the request came, or was replaced */
        if (!changes_find_collection(r) || !request_open_collection(r))
            return REQUEST_REFUSED;
        queue_submit(collection_queue(r), r);
        return REQUEST_SENT_ON;
    }
    if (of_collection && (!access_entry(r) || !strict_obeyed(r)))
        return REQUEST_REFUSED;
    return documents_check(r);
}

/* Runs requests that are computed together as one job. */
static void run_together(request *list)
{
    job_begin(list);
    if (list->step)
        step_run(list);
    else
        changes_run(list);
    job_end(list);
    for (request *r = list, *next; r; r = next) {
        next = r->next;
        request_done(r);
    }
}

bool requests_run(queue *q, request *taken)
{
    request *batch = NULL, **batch_end = &batch;
    (void)q;
    for (request *r = taken, *next; r; r = next) {
        next = r->next;
        r->next = NULL;
        const readiness ready = make_ready(r);
        if (ready == REQUEST_REFUSED) {
            request_done(r);
        } else if (ready == REQUEST_READY && r->route->batched && !r->step) {
            *batch_end = r;
            batch_end = &r->next;
        } else if (ready == REQUEST_READY) {
            run_together(r);
        }
    }
    if (batch)
        run_together(batch);
    return false;
}
