/* A pool of threads, one per core: the caller, and workers that are pinned to all cores except the first.
 *
 * A job is a number of items; its caller and the workers take items one after the other, in increasing order, until none is
 * left. Several callers may run jobs at once. A job starts at once, because its caller takes items itself, and ends
 * without a sleep if the workers end soon after: both sides stay awake for 200 microseconds, yielding to other threads, and
 * then sleep. A pool of one thread starts none, so that programs that bring their own threads have all their cores.
 */
#ifndef WW_BASE_POOL_H
#define WW_BASE_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include <warpwave/status.h>

typedef struct pool pool;

/* Does one item. `worker`, below pool_threads(), is never at work on two items of a job at once; for one worker the items of
 * a job come in increasing order. */
typedef void (*pool_work)(void *context, int64_t item, int32_t worker);

/* Told, on the caller's thread, how many items are done; true stops the job before its next item. */
typedef bool (*pool_watch)(void *context, int64_t done);

/* Starts `threads` - 1 workers on `cores` (one CPU number each, the first left to the caller; NULL leaves them unpinned, and so
 * does a core that refuses).
 * A thread that cannot be started is WW_OUT_OF_MEMORY and leaves none behind. */
ww_status pool_create(const int32_t *cores, int32_t threads, pool **out);

/* Ends and joins the workers. Accepts NULL. No job may be running. */
void pool_destroy(pool *pool);

int32_t pool_threads(const pool *pool);

/* Runs items 0..items-1 on the workers and the calling thread, which is worker 0, and returns when they are done. `watch` may
 * be NULL; it is called between items, some fifty times a second. False if the watch stopped the job. Blocks; a worker must
 * not call it. */
bool pool_run(pool *pool, int64_t items, pool_work work, pool_watch watch, void *context);

/* The same on the calling thread, as worker 0, for jobs that are shorter than waking a thread: the watch is not called. */
void pool_run_here(int64_t items, pool_work work, void *context);

/* Test hook: the n-th thread to be started from now on (counting from 1) fails, once; 0 switches it off. */
void pool_fail_at(int64_t n);

#endif
