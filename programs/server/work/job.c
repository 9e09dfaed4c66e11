/* Jobs, and what ends them. */
#include "server/work/job.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
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

/* ---- sorting ------------------------------------------------------------------------------------------------------------- */

enum { SORTED_AT_ONCE = 8192 };

/* How elements are sorted. */
typedef struct sorting {
    size_t bytes;
    int (*compare)(const void *first, const void *second);
} sorting;

/* Merges two sorted neighbours of `from` into `to`; on a tie the first one's element comes first. A merge of half a million
 * elements with as many takes some 30 ms: soon enough for a job that is over. */
static void merge(sorting by, const char *from, size_t middle, size_t end, char *to)
{
    size_t a = 0, b = middle;
    for (size_t i = 0; i < end; i++) {
        const bool first = b == end || (a < middle && by.compare(from + a * by.bytes, from + b * by.bytes) <= 0);
        memcpy(to + i * by.bytes, from + (first ? a++ : b++) * by.bytes, by.bytes);
    }
}

/* Merges runs of `run` elements in pairs. */
static ww_status merge_all(sorting by, const char *from, char *to, size_t count, size_t run)
{
    ww_status status = WW_OK;
    for (size_t first = 0; status == WW_OK && first < count; first += 2 * run) {
        const size_t rest = count - first, end = rest < 2 * run ? rest : 2 * run;
        merge(by, from + first * by.bytes, run < end ? run : end, end, to + first * by.bytes);
        status = job_check();
    }
    return status;
}

ww_status job_sort(void *elements, size_t count, size_t bytes, int (*compare)(const void *a, const void *b))
{
    ww_status status = WW_OK;
    for (size_t first = 0; status == WW_OK && first < count; first += SORTED_AT_ONCE) {
        const size_t rest = count - first;
        qsort((char *)elements + first * bytes, rest < SORTED_AT_ONCE ? rest : SORTED_AT_ONCE, bytes, compare);
        status = job_check();
    }
    if (status != WW_OK || count <= SORTED_AT_ONCE)
        return status;
    char *other = memory_alloc(count * bytes), *from = elements, *to = other;
    if (!other)
        return memory_failed("a sort", count * bytes);
    for (size_t run = SORTED_AT_ONCE; status == WW_OK && run < count; run *= 2) {
        status = merge_all((sorting){bytes, compare}, from, to, count, run);
        char *const merged = to;
        to = from;
        from = merged;
    }
    if (status == WW_OK && from != elements)
        memcpy(elements, from, count * bytes);
    memory_free(other);
    return status;
}
