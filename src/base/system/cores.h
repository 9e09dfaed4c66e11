/* The cores that threads may be pinned to. */
#ifndef WW_BASE_SYSTEM_CORES_H
#define WW_BASE_SYSTEM_CORES_H

#include <stdint.h>

#include <warpwave/status.h>

enum { CORES_MAX = 1024 };

/* Returns the CPUs that this process may use, one per core (not per hyper-thread), at most `capacity`. `count` is at least 1,
 * and not more than the CPU quota of a container allows. WARPWAVE_THREADS, a number from 1 on, lowers the count; other values
 * of it are refused with WW_INVALID_ARGUMENT. */
ww_status cores_to_use(int32_t *cores, int32_t capacity, int32_t *count);

#endif
