/* Queues. One that has work is in the list of scheduled queues once; a worker takes the first queue, and from it everything
 * that waits or, in a parallel queue, one job. */
#include "server/state.h"

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

void queue_run_first(server *s)
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
