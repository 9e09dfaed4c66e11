/* Elapsed time, by a clock that never goes back. */
#ifndef WW_BASE_CLOCK_H
#define WW_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_nanoseconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline double clock_seconds(void)
{
    return (double)clock_nanoseconds() * 1e-9;
}

#endif
