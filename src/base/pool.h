/* A pool of threads, one per core: the caller, and workers that are pinned to all cores except the first.
 *
 * A job has a number of items. Its caller and the workers take items one after the other, in ascending order, until none is
 * left. Several callers may run jobs at once. A job starts at once, because its caller takes items itself, and ends without a
 * sleep if the workers end soon after: both sides stay awake for 200 microseconds, yielding to other threads, and then sleep. A
 * pool of one thread starts none, so that programs that bring their own threads have all their cores.
 */
#ifndef WW_BASE_POOL_H
#define WW_BASE_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include <warpwave/status.h>

typedef struct pool pool;

/* Does one item. Two items of a job with the same `worker`, below pool_threads(), never run at once; a worker gets the items of
 * a job in ascending order. */
typedef void (*pool_work)(void *context, int64_t item, int32_t worker);

/* Called on the caller's thread with the number of finished items. Returns true to stop the job before its next item. */
typedef bool (*pool_watch)(void *context, int64_t done);

/* Starts `threads` - 1 workers on `cores` (one CPU number each, the first for the caller). With NULL workers are not pinned,
 * and neither is a worker whose core refuses. If a thread cannot be started, it returns WW_OUT_OF_MEMORY and leaves none
 * behind. */
ww_status pool_create(const int32_t *cores, int32_t threads, pool **out);

/* Stops and joins the workers. Accepts NULL. No job may be running. */
void pool_destroy(pool *pool);

int32_t pool_threads(const pool *pool);

/* Runs items 0..items-1 on the workers and the calling thread, which is worker 0, and returns when they are done. `watch` may
 * be NULL; it is called between items, about fifty times a second. Returns false if the watch stopped the job. Blocks. Workers
 * must not call it. */
bool pool_run(pool *pool, int64_t items, pool_work work, pool_watch watch, void *context);

/* The same on the calling thread, as worker 0, for jobs that take less time than waking a thread. There is no watch. */
void pool_run_here(int64_t items, pool_work work, void *context);

/* Test hook: the n-th thread to be started from now on (counting from 1) fails, once; 0 switches it off. */
void pool_fail_at(int64_t n);

#endif
