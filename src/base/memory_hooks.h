/* More test hooks of base/memory.h. */
#ifndef WW_BASE_MEMORY_HOOKS_H
#define WW_BASE_MEMORY_HOOKS_H

#include <stdint.h>

/* Returns how many allocations memory_fail_at() has made fail, in the whole process. */
int64_t memory_failures_made(void);

#endif
