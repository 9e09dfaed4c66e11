/* The cores that threads may be pinned to. */
#ifndef WW_BASE_SYSTEM_CORES_H
#define WW_BASE_SYSTEM_CORES_H

#include <stdint.h>

#include <warpwave/status.h>

enum { CORES_MAX = 1024 };

/* The CPUs this process may use, one for each core (not each hyper-thread), at most `capacity`; `count` says how many, at least
 * 1, and no more than the CPU quota of a container allows. WARPWAVE_THREADS, a number from 1, lowers the count; anything else
 * in it is refused with WW_INVALID_ARGUMENT. */
ww_status cores_to_use(int32_t *cores, int32_t capacity, int32_t *count);

#endif
