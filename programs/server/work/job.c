/* Jobs, and what ends them. */
#include "server/work/job.h"

#include "base/cancel.h"
#include "base/tables/sort.h"
#include "server/state.h"

/* Of the worker that this thread is: each has its own, and other threads have none. */
static _Thread_local running_job *current;

ww_status job_create(running_job *j)
{
    *j = (running_job){0};
    current = j;
    return ww_cancel_create(&j->cancel);
}

void job_destroy(running_job *j)
{
    ww_cancel_destroy(j->cancel);
    current = NULL;
}

void job_begin(request *list)
{
    running_job *j = current;
    if (!j || !list)
        return;
    pthread_mutex_lock(&list->server->lock);
    j->alive = 0;
    for (request *r = list; r; r = r->next) {
        r->job = j;
        j->alive += !atomic_load(&r->gone);
    }
    ww_cancel_reset(j->cancel);
    atomic_store(&j->over, j->alive == 0);
    if (j->alive == 0)
        ww_cancel_ask(j->cancel);
    pthread_mutex_unlock(&list->server->lock);
}

void job_end(request *list)
{
    running_job *j = current;
    if (!j || !list)
        return;
    pthread_mutex_lock(&list->server->lock);
    for (request *r = list; r; r = r->next)
        r->job = NULL;
    job_reset();
    pthread_mutex_unlock(&list->server->lock);
}

void job_reset(void)
{
    if (!current)
        return;
    ww_cancel_reset(current->cancel);
    atomic_store(&current->over, false);
}

void job_lose(request *r)
{
    running_job *j = r->job;
    if (!j || --j->alive > 0)
        return;
    atomic_store(&j->over, true);
    ww_cancel_ask(j->cancel);
}

void job_leave(request *r)
{
    if (!atomic_load(&r->gone))
        job_lose(r);
    r->job = NULL;
}

bool job_is_over(void)
{
    return current && atomic_load_explicit(&current->over, memory_order_relaxed);
}

ww_cancel *job_cancel(void)
{
    return current ? current->cancel : NULL;
}

ww_status job_check(void)
{
    return job_is_over() ? ww_fail(WW_CANCELLED, "the client has left, or the deadline has passed") : WW_OK;
}

ww_status job_look(int64_t i)
{
    return i % 256 == 0 ? job_check() : WW_OK;
}

ww_status job_sort(void *elements, size_t count, size_t bytes, int (*compare)(const void *a, const void *b))
{
    CANCEL_BY(job_cancel());
    return sort_elements(elements, count, bytes, compare);
}
