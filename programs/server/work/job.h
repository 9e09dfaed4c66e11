/* What a worker computes at a time: one request, or several that are computed together. When the clients of all of them have
 * left or their deadlines have passed, the job is over: its token stops the call of the library that runs, and loops of the
 * server look at job_is_over(). */
#ifndef WW_SERVER_WORK_JOB_H
#define WW_SERVER_WORK_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <warpwave/status.h>

struct request;
struct server;

typedef struct running_job {
    ww_cancel *cancel;
    atomic_bool over;
    int64_t alive; /* requests that somebody waits for; guarded by the server's lock */
} running_job;

/* Makes the calling thread's job, and frees it. */
ww_status job_create(running_job *j);
void job_destroy(running_job *j);

/* Begins the thread's job with a list of requests, linked by `next`; ends it. A request leaves it earlier when it is done or
 * goes to another queue. */
void job_begin(struct request *list);
void job_end(struct request *list);

/* Called with the server's lock: forgets what ended the thread's last job. */
void job_reset(void);

/* Called with the server's lock: the request is done or goes elsewhere; its client has left. */
void job_leave(struct request *r);
void job_lose(struct request *r);

/* Of the thread's job; false and NULL on threads that are no worker's. */
bool job_is_over(void);
ww_cancel *job_cancel(void);

/* Fails with WW_CANCELLED if the job is over. job_look() looks only if `i`, the number of a turn of a loop, is a multiple of
 * 256. */
ww_status job_check(void);
ww_status job_look(int64_t i);

/* Sorts like qsort(), and fails if the job is over or memory runs out. */
ww_status job_sort(void *elements, size_t count, size_t bytes, int (*compare)(const void *a, const void *b));

#endif
