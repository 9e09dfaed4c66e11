/* The pool: a list of jobs under one lock, and in each job an atomic counter from which workers and the caller take items.
 *
 * Workers hold the lock only to find a job and to leave it, so items cost one atomic addition. Every item runs with the default
 * floating-point environment, because a program may have switched off denormals, which canonical bits need.
 */
#include "base/pool.h"

#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/float_guard.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/system/threads.h"

enum {
    WATCH_INTERVAL_NS = 20 * 1000 * 1000,
    /* How long a worker waits awake. Waking a sleeping worker takes about ten microseconds, on virtual machines up to a
     * hundred, and the caller's own work between two jobs of a model's step may take as long. */
    AWAKE_NS = 200 * 1000,
};

typedef struct job {
    struct job *next;
    pool_work work;
    void *context;
    int64_t items;
    atomic_int_least64_t taken;
    atomic_int_least64_t done;
    atomic_bool stopped;
    atomic_int_least32_t workers_inside; /* changed under the lock, like the two below */
    bool listed;
    pthread_cond_t left; /* signals that the last worker has left the job and none will enter */
} job;

typedef struct worker {
    pool *pool;
    pthread_t thread;
    int32_t index;
} worker;

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t job_listed;
    job *jobs;
    bool ending;
    atomic_bool wanted;       /* the list has a job, or the pool ends; for threads that check without the lock */
    int32_t threads, started; /* including the caller's thread */
    worker workers[];
};

static atomic_int_least64_t fail_countdown; /* for tests: which thread cannot be started; 0: off */

void pool_fail_at(int64_t n)
{
    atomic_store(&fail_countdown, n);
}

static bool thread_must_fail(void)
{
    return atomic_load(&fail_countdown) != 0 && atomic_fetch_sub(&fail_countdown, 1) == 1;
}

static void take_items(job *j, int32_t index)
{
    while (!atomic_load_explicit(&j->stopped, memory_order_relaxed)) {
        const int64_t item = atomic_fetch_add_explicit(&j->taken, 1, memory_order_relaxed);
        if (item >= j->items)
            break;
        j->work(j->context, item, index);
        atomic_fetch_add_explicit(&j->done, 1, memory_order_release);
    }
}

/* Called under the lock: all items of the job are taken, so no other worker should look at it. */
static void unlist(pool *p, job *j)
{
    if (!j->listed)
        return;
    job **link = &p->jobs;
    while (*link != j)
        link = &(*link)->next;
    *link = j->next;
    j->listed = false;
    atomic_store_explicit(&p->wanted, p->jobs || p->ending, memory_order_relaxed);
}

/* Waits until there is a job or the pool ends. At first it stays awake, because a program that computes has its next job within
 * microseconds. A worker that waits awake yields, so that the caller and other threads get the core at once. Called with the
 * lock. */
static void wait_for_job(pool *p)
{
    if (!p->jobs && !p->ending) {
        pthread_mutex_unlock(&p->lock);
        for (const int64_t until = clock_nanoseconds() + AWAKE_NS;
             !atomic_load_explicit(&p->wanted, memory_order_relaxed) && clock_nanoseconds() < until;)
            sched_yield();
        pthread_mutex_lock(&p->lock);
    }
    while (!p->jobs && !p->ending)
        pthread_cond_wait(&p->job_listed, &p->lock);
}

static void *worker_main(void *argument)
{
    worker *self = argument;
    pool *p = self->pool;
    fesetenv(FE_DFL_ENV);
    pthread_mutex_lock(&p->lock);
    for (;;) {
        wait_for_job(p);
        if (p->ending)
            break;
        job *j = p->jobs;
        atomic_fetch_add_explicit(&j->workers_inside, 1, memory_order_relaxed);
        pthread_mutex_unlock(&p->lock);
        take_items(j, self->index);
        pthread_mutex_lock(&p->lock);
        unlist(p, j);
        if (atomic_fetch_sub_explicit(&j->workers_inside, 1, memory_order_release) == 1)
            pthread_cond_signal(&j->left);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void pin(pthread_t thread, int32_t core)
{
    cpu_set_t *set = CPU_ALLOC(core + 1);
    if (!set)
        return;
    const size_t bytes = CPU_ALLOC_SIZE(core + 1);
    CPU_ZERO_S(bytes, set);
    CPU_SET_S(core, bytes, set);
    (void)pthread_setaffinity_np(thread, bytes, set); /* if the core was taken away since, the thread runs unpinned */
    CPU_FREE(set);
}

/* The lock is only held for a few instructions, but all workers that waited awake want it at once. If the C library has such
 * locks, a worker that does not get it retries for a while before it sleeps. */
static void lock_init(pthread_mutex_t *lock)
{
#if defined(__GLIBC__)
    pthread_mutexattr_t patient;
    pthread_mutexattr_init(&patient);
    pthread_mutexattr_settype(&patient, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(lock, &patient);
    pthread_mutexattr_destroy(&patient);
#else
    pthread_mutex_init(lock, NULL);
#endif
}

ww_status pool_create(const int32_t *cores, int32_t threads, pool **out)
{
    const size_t bytes = sizeof(pool) + (size_t)threads * sizeof(worker);
    pool *p = memory_alloc_zeroed(1, bytes);
    if (!p)
        return memory_failed("thread pool", bytes);
    lock_init(&p->lock);
    pthread_cond_init(&p->job_listed, NULL);
    for (int32_t i = 1; i < threads; i++) { /* number 0 is the caller */
        worker *w = &p->workers[i];
        w->pool = p;
        w->index = i;
        char name[16];
        snprintf(name, sizeof name, "ww-pool-%d", i % 1000);
        const int code = thread_must_fail() ? EAGAIN : thread_start(&w->thread, name, worker_main, w);
        if (code != 0) {
            pool_destroy(p);
            return ww_fail_errno(WW_OUT_OF_MEMORY, code, "cannot start thread %d of the pool's %d", i, threads - 1);
        }
        p->started++;
        if (cores)
            pin(w->thread, cores[i]);
    }
    p->threads = threads;
    *out = p;
    return WW_OK;
}

void pool_destroy(pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->ending = true;
    atomic_store_explicit(&p->wanted, true, memory_order_relaxed);
    pthread_cond_broadcast(&p->job_listed);
    pthread_mutex_unlock(&p->lock);
    for (int32_t i = 1; i <= p->started; i++)
        pthread_join(p->workers[i].thread, NULL);
    pthread_cond_destroy(&p->job_listed);
    pthread_mutex_destroy(&p->lock);
    memory_free(p);
}

int32_t pool_threads(const pool *p)
{
    return p->threads;
}

/* ---- the caller ---------------------------------------------------------------------------------------------------------- */

/* Takes items as worker 0 and calls the watch in between. Returns false if the watch stopped the job. */
static bool take_items_watched(job *j, pool_watch watch)
{
    FLOAT_GUARD();
    int64_t next_watch = watch ? clock_nanoseconds() + WATCH_INTERVAL_NS : 0;
    for (;;) {
        const int64_t item = atomic_fetch_add_explicit(&j->taken, 1, memory_order_relaxed);
        if (item >= j->items)
            return true;
        j->work(j->context, item, 0);
        const int64_t done = atomic_fetch_add_explicit(&j->done, 1, memory_order_acq_rel) + 1;
        if (!watch || done == j->items || clock_nanoseconds() < next_watch)
            continue;
        if (watch(j->context, done)) {
            atomic_store(&j->stopped, true);
            return false;
        }
        next_watch = clock_nanoseconds() + WATCH_INTERVAL_NS;
    }
}

/* Waits until the workers have left the job, which is unlisted; at first awake, like they do. Called with the lock. */
static void wait_for_workers(pool *p, job *j)
{
    if (atomic_load_explicit(&j->workers_inside, memory_order_acquire) > 0) {
        pthread_mutex_unlock(&p->lock);
        for (const int64_t until = clock_nanoseconds() + AWAKE_NS;
             atomic_load_explicit(&j->workers_inside, memory_order_acquire) > 0 && clock_nanoseconds() < until;)
            sched_yield();
        pthread_mutex_lock(&p->lock);
    }
    while (atomic_load_explicit(&j->workers_inside, memory_order_acquire) > 0)
        pthread_cond_wait(&j->left, &p->lock);
}

bool pool_run(pool *p, int64_t items, pool_work work, pool_watch watch, void *context)
{
    if (items <= 0)
        return true;
    job j = {.work = work, .context = context, .items = items};
    if (p->threads == 1)
        return take_items_watched(&j, watch);
    pthread_cond_init(&j.left, NULL);
    pthread_mutex_lock(&p->lock);
    job **last = &p->jobs;
    while (*last)
        last = &(*last)->next;
    *last = &j;
    j.listed = true;
    pthread_cond_broadcast(&p->job_listed);
    atomic_store_explicit(&p->wanted, true, memory_order_relaxed); /* last, because threads that see it want the lock at once */
    pthread_mutex_unlock(&p->lock);

    const bool finished = take_items_watched(&j, watch);

    pthread_mutex_lock(&p->lock);
    unlist(p, &j);
    wait_for_workers(p, &j);
    pthread_mutex_unlock(&p->lock);
    pthread_cond_destroy(&j.left);
    return finished;
}

void pool_run_here(int64_t items, pool_work work, void *context)
{
    FLOAT_GUARD();
    for (int64_t item = 0; item < items; item++)
        work(context, item, 0);
}
