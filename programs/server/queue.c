/* Queues and the workers that run them. A queue that has work is in the list of scheduled queues once; a worker takes the first
 * queue, and from it everything that waits or, in a parallel queue, one job. */
#include "server/state.h"

#include "base/memory.h"
#include "base/system/threads.h"
#include "server/body/encoding.h"
#include "server/openai/documents.h"
#include "server/route.h"

static const double RELIEF_SECONDS = 0.01; /* a shorter job ends before another worker would have helped much */

void queue_init(queue *q, server *s, const char *name, bool (*run)(queue *q, request *taken))
{
    *q = (queue){.server = s, .name = name, .run = run};
}

/* Appends a queue to the list of scheduled ones, if it is not in it. The caller holds the lock. */
static void enlist(queue *q)
{
    server *s = q->server;
    q->scheduled = true;
    q->next_scheduled = NULL;
    if (q->held)
        q->held->references++;
    *(s->last_scheduled ? &s->last_scheduled->next_scheduled : &s->first_scheduled) = q;
    s->last_scheduled = q;
}

/* Makes a worker run a queue, unless one has it: it looks again when it is done. The caller holds the lock. */
static void schedule(queue *q)
{
    if (q->scheduled || q->runners > 0)
        return;
    enlist(q);
    pthread_cond_signal(&q->server->work);
}

void queue_relieve(queue *q, double now)
{
    const server *s = q->server;
    if (!q->parallel || q->scheduled || !q->first || now < q->begun_seconds + RELIEF_SECONDS ||
        q->runners >= (s->config.workers + 1) / 2)
        return;
    enlist(q);
    pthread_cond_signal(&q->server->work);
}

void queue_park(queue *q, request *r)
{
    r->queue = q;
    r->state = REQUEST_WAITING;
    r->next = NULL;
    r->previous = q->last;
    *(q->last ? &q->last->next : &q->first) = r;
    q->last = r;
    q->waiting++;
}

void queue_wake(queue *q)
{
    pthread_mutex_lock(&q->server->lock);
    q->woken = true;
    if (q->first)
        schedule(q);
    pthread_mutex_unlock(&q->server->lock);
}

void queue_submit(queue *q, request *r)
{
    server *s = q->server;
    pthread_mutex_lock(&s->lock);
    const bool stopping = s->draining && r->state == REQUEST_READING;
    const bool full = q->waiting >= s->config.queue_limit;
    if (!stopping && !full && !atomic_load(&r->gone)) {
        job_leave(r);
        queue_park(q, r);
        schedule(q);
        pthread_mutex_unlock(&s->lock);
        return;
    }
    pthread_mutex_unlock(&s->lock);
    if (stopping)
        request_fail(r, 503, "the server is stopping");
    else if (full)
        request_fail(r, 429, "%lld requests are already waiting; try again", (long long)s->config.queue_limit);
    else
        request_fail(r, 504, "the deadline has passed");
    request_done(r);
}

void queue_remove(request *r)
{
    queue *q = r->queue;
    *(r->previous ? &r->previous->next : &q->first) = r->next;
    *(r->next ? &r->next->previous : &q->last) = r->previous;
    r->previous = r->next = NULL;
    r->state = REQUEST_RUNNING;
    q->waiting--;
}

/* Takes the requests for one job out of a queue, linked by `next`. The caller holds the lock. */
static request *take(queue *q)
{
    request *taken = NULL, **end = &taken;
    const uint64_t batch = q->first ? q->first->batch : 0;
    int64_t count = 0;
    for (request *r = q->first, *next; r; r = next) {
        next = r->next;
        if (!q->all && count > 0 && r->batch != batch)
            continue;
        queue_remove(r);
        *end = r;
        end = &r->next;
        count++;
        if (!q->all && batch == 0)
            break;
    }
    if (taken && q != &q->server->reading)
        metrics_batch(&q->server->metrics, count);
    return taken;
}

/* Runs the first scheduled queue. The caller holds the lock. */
static void run_first(server *s)
{
    queue *q = s->first_scheduled;
    s->first_scheduled = q->next_scheduled;
    if (!s->first_scheduled)
        s->last_scheduled = NULL;
    q->scheduled = false;
    q->runners++;
    q->begun_seconds = server_seconds();
    q->woken = false;
    request *taken = take(q);
    job_reset();
    pthread_mutex_unlock(&s->lock);
    const bool more = q->run(q, taken);
    pthread_mutex_lock(&s->lock);
    entry *held = q->held;
    q->runners--;
    if ((more || (q->first && (!q->sleeps || q->woken))) && !q->scheduled)
        enlist(q); /* this worker continues with the list: waking another one for each token would cost more than the token */
    pthread_mutex_unlock(&s->lock);
    if (held)
        entry_release(s, held); /* after this the queue may no longer exist */
    pthread_mutex_lock(&s->lock);
}

static void *worker_main(void *argument)
{
    server *s = argument;
    running_job own;
    if (job_create(&own) != WW_OK)
        job_destroy(&own); /* jobs of this worker are not stopped early */
    pthread_mutex_lock(&s->lock);
    while (!s->stopping) {
        if (s->first_scheduled)
            run_first(s);
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
    if (r->entry)
        return read ? &r->entry->reads : &r->entry->queue;
    return read ? &r->server->store_reads : &r->server->store_queue;
}

void request_dispatch(request *r)
{
    server *s = r->server;
    queue *q = r->route->work == WORK_STORE_READ ? &s->store_reads : &s->store_queue;
    if (following_waits(r))
        return;
    if (r->route->work == WORK_COLLECTION || r->route->work == WORK_READ) {
        r->entry = entry_find(s, r->names[0]);
        q = collection_queue(r); /* if it is not known, the store looks for the collection first */
    } else if (r->route->work == WORK_MODEL) {
        q = r->queue;
    }
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
