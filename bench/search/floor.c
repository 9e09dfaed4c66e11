/* Lower bounds for the time of a search: how fast the cores of this machine, with one pinned thread each, read memory, and how
 * many floats and bytes they multiply and add. All are what plain code reaches in the same run, not numbers of a data sheet. */
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "search/floor_int8.h"

enum { THREADS_MAX = 1024, ACCUMULATORS = 8 };

typedef float floats __attribute__((vector_size(64)));
typedef uint64_t words __attribute__((vector_size(64)));

typedef struct share {
    pthread_t thread;
    pthread_barrier_t *gate;
    int core;
    const words *data; /* NULL: multiply instead */
    double (*multiply)(size_t);
    size_t count;
    double seconds;
    volatile double result; /* so that the compiler does not remove the work */
} share;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double read_all(const words *data, size_t count)
{
    words sum[4] = {{0}, {0}, {0}, {0}};
    for (size_t i = 0; i + 4 <= count; i += 4)
        for (size_t j = 0; j < 4; j++)
            sum[j] += data[i + j];
    const words all = sum[0] + sum[1] + sum[2] + sum[3];
    return (double)all[0];
}

static double multiply(size_t count)
{
    floats acc[ACCUMULATORS] = {{0}}, factor = (floats){0} + 0.999f;
    for (size_t i = 0; i < count; i++)
        for (int j = 0; j < ACCUMULATORS; j++)
            acc[j] = acc[j] * factor + factor;
    floats all = acc[0];
    for (int j = 1; j < ACCUMULATORS; j++)
        all += acc[j];
    return (double)all[0];
}

static void *share_run(void *argument)
{
    share *s = argument;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(s->core, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    pthread_barrier_wait(s->gate);
    const double start = now();
    s->result = s->data ? read_all(s->data, s->count) : s->multiply(s->count);
    s->seconds = now() - start;
    return NULL;
}

/* Runs `threads` shares on the first cores this process may use; returns the seconds of the slowest, or -1. */
static double run(const void *data, double (*multiply_by)(size_t), size_t count, int threads)
{
    static share shares[THREADS_MAX];
    cpu_set_t allowed;
    pthread_barrier_t gate;
    if (threads < 1 || threads > THREADS_MAX || sched_getaffinity(0, sizeof allowed, &allowed) != 0 ||
        CPU_COUNT(&allowed) < threads)
        return -1.0;
    pthread_barrier_init(&gate, NULL, (unsigned)threads);
    int started = 0;
    for (int core = 0; core < CPU_SETSIZE && started < threads; core++) {
        if (!CPU_ISSET(core, &allowed))
            continue;
        const words *from = data ? (const words *)data + (size_t)started * (count / (size_t)threads) : NULL;
        shares[started] = (share){.gate = &gate,
                                  .core = core,
                                  .data = from,
                                  .multiply = multiply_by,
                                  .count = data ? count / (size_t)threads : count};
        if (pthread_create(&shares[started].thread, NULL, share_run, &shares[started]) != 0)
            return -1.0;
        started++;
    }
    double slowest = started == threads ? 0.0 : -1.0;
    for (int i = 0; i < started; i++) {
        pthread_join(shares[i].thread, NULL);
        slowest = shares[i].seconds > slowest ? shares[i].seconds : slowest;
    }
    pthread_barrier_destroy(&gate);
    return slowest;
}

/* Returns the seconds for reading `bytes` at `data` (64-byte aligned) once. Two threads must not call it at once. */
__attribute__((visibility("default"))) double bench_read_seconds(const void *data, size_t bytes, int threads);
double bench_read_seconds(const void *data, size_t bytes, int threads)
{
    return run(data, NULL, bytes / sizeof(words), threads);
}

/* Multiply-adds of floats a second, in registers. */
__attribute__((visibility("default"))) double bench_multiply_rate(int threads);
double bench_multiply_rate(int threads)
{
    const size_t count = 20000000;
    return (double)threads * (double)count * ACCUMULATORS * 16.0 / run(NULL, multiply, count, threads);
}

/* Returns how many multiply-adds of bytes per second this machine does in registers, with the instruction that the library's
 * screen uses; 0 if it has none. */
__attribute__((visibility("default"))) double bench_int8_rate(int threads);
double bench_int8_rate(int threads)
{
    const int8_way *way = int8_way_here();
    if (!way->name)
        return 0.0;
    return (double)threads * (double)way->steps * way->products / run(NULL, way->work, way->steps, threads);
}

/* The name of that instruction. */
__attribute__((visibility("default"))) const char *bench_int8_name(void);
const char *bench_int8_name(void)
{
    const int8_way *way = int8_way_here();
    return way->name ? way->name : "no such instruction";
}
