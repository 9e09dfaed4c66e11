/* Queues and the workers that run them. A queue that has work is in the list of scheduled queues once; a worker takes the first
 * queue and everything that waits in it. */
#include "server/state.h"

#include "base/memory.h"
#include "base/system/threads.h"

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

/* Makes a worker run a queue. The caller holds the lock. */
static void schedule(queue *q)
{
    if (q->scheduled)
        return;
    enlist(q);
    pthread_cond_signal(&q->server->work);
}

void queue_submit(queue *q, request *r)
{
    server *s = q->server;
    pthread_mutex_lock(&s->lock);
    const bool stopping = s->draining && r->state == REQUEST_READING;
    const bool full = q->waiting >= s->config.queue_limit;
    if (!stopping && !full && !atomic_load(&r->gone)) {
        r->queue = q;
        r->state = REQUEST_WAITING;
        r->next = NULL;
        r->previous = q->last;
        *(q->last ? &q->last->next : &q->first) = r;
        q->last = r;
        q->waiting++;
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

/* Takes everything that waits in a queue and marks it as running. The caller holds the lock. */
static request *take_all(queue *q)
{
    request *taken = q->first;
    for (request *r = taken; r; r = r->next)
        r->state = REQUEST_RUNNING;
    if (taken)
        metrics_batch(&q->server->metrics, q->waiting);
    q->first = q->last = NULL;
    q->waiting = 0;
    return taken;
}

static void *work(void *argument)
{
    server *s = argument;
    pthread_mutex_lock(&s->lock);
    while (!s->stopping) {
        queue *q = s->first_scheduled;
        if (!q) {
            pthread_cond_wait(&s->work, &s->lock);
            continue;
        }
        s->first_scheduled = q->next_scheduled;
        if (!s->first_scheduled)
            s->last_scheduled = NULL;
        request *taken = take_all(q);
        pthread_mutex_unlock(&s->lock);
        const bool more = q->run(q, taken);
        pthread_mutex_lock(&s->lock);
        entry *held = q->held;
        q->scheduled = false;
        if (more || q->first)
            enlist(
                q); /* this worker continues with the list: waking another one for each token would cost more than the token */
        pthread_mutex_unlock(&s->lock);
        if (held)
            entry_release(s, held); /* after this the queue may no longer exist */
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

ww_status workers_start(server *s)
{
    s->workers = memory_alloc_zeroed((size_t)s->config.workers, sizeof *s->workers);
    if (!s->workers)
        return memory_failed("workers", (size_t)s->config.workers * sizeof *s->workers);
    for (; s->worker_count < s->config.workers; s->worker_count++) {
        const int code = thread_start(&s->workers[s->worker_count], "ww-worker", work, s);
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
