/* Reads memory with all cores. Threads wait at a gate until all have started, so that their start is not measured. Each is
 * pinned to its core: on a small machine two unpinned threads may share one, and the figure would be wrong. */
#include "warpwave/memory_read.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>

#include "base/memory.h"
#include "warpwave/terminal.h"

typedef struct reader {
    pthread_t thread;
    pthread_mutex_t *gate;
    int core;
    const uint64_t *words;
    size_t count;
    uint64_t sum; /* keeps the compiler from removing the reads */
} reader;

static void *reader_run(void *argument)
{
    reader *r = argument;
    uint64_t sums[16] = {0};
    size_t i = 0;
    pthread_mutex_lock(r->gate);
    pthread_mutex_unlock(r->gate);
    for (; i + 16 <= r->count; i += 16)
        for (int j = 0; j < 16; j++)
            sums[j] += r->words[i + (size_t)j];
    for (; i < r->count; i++)
        sums[0] += r->words[i];
    for (int j = 0; j < 16; j++)
        r->sum += sums[j];
    return NULL;
}

/* Starts a reader on its core. If the core cannot be chosen, the thread runs anywhere. */
static int reader_start(reader *r)
{
    pthread_attr_t attributes;
    cpu_set_t set;
    int failed = pthread_attr_init(&attributes);
    if (failed)
        return failed;
    CPU_ZERO(&set);
    CPU_SET(r->core, &set);
    pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
    failed = pthread_create(&r->thread, &attributes, reader_run, r);
    pthread_attr_destroy(&attributes);
    return failed;
}

/* Makes one reader per core that this process may use, with even shares of the words. */
static reader *readers_take(const void *data, size_t bytes, pthread_mutex_t *gate, int *count)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        CPU_ZERO(&allowed);
        CPU_SET(0, &allowed);
    }
    const size_t words = bytes / sizeof(uint64_t), share = words / (size_t)CPU_COUNT(&allowed);
    reader *readers = memory_alloc_zeroed((size_t)CPU_COUNT(&allowed), sizeof *readers);
    *count = 0;
    for (int core = 0; core < CPU_SETSIZE && readers; core++)
        if (CPU_ISSET(core, &allowed)) {
            const size_t first = (size_t)*count * share;
            const bool last = *count + 1 == CPU_COUNT(&allowed);
            readers[*count] = (reader){
                .gate = gate, .core = core, .words = (const uint64_t *)data + first, .count = last ? words - first : share};
            ++*count;
        }
    return readers;
}

ww_status memory_read_measure(const void *data, size_t bytes, double *seconds, int *threads)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    int failed = 0, started = 0;
    reader *readers = readers_take(data, bytes, &gate, threads);
    if (!readers)
        return memory_failed("the threads that read memory", sizeof *readers);
    pthread_mutex_lock(&gate);
    while (started < *threads && !failed) {
        failed = reader_start(&readers[started]);
        started += !failed;
    }
    const double start = seconds_now();
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < started; i++)
        pthread_join(readers[i].thread, NULL);
    *seconds = seconds_now() - start;
    memory_free(readers);
    return failed ? ww_fail_errno(WW_INTERNAL, failed, "thread %d that reads memory could not be started", started) : WW_OK;
}
