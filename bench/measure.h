/* Shared by the benchmarks in C: the clock, the median, and ending a run that failed. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <warpwave/status.h>

static inline double seconds_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts the values, at least one; the middle one, or the upper of two. */
static inline double median_of(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return values[count / 2];
}

/* Ends the benchmark if `what` failed. */
static inline void check(ww_status status, const char *what)
{
    if (status == WW_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", what, ww_status_name(status), ww_error_message());
    exit(1);
}

#endif
