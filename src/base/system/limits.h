/* What this process may use of its machine: the limits of containers (cgroups, version 1 and 2) and of the process itself.
 *
 * A container is killed when it goes past its memory limit; no call fails first. So what it may still take has to be read
 * before memory is promised.
 */
#ifndef WW_BASE_SYSTEM_LIMITS_H
#define WW_BASE_SYSTEM_LIMITS_H

#include <stdint.h>

typedef struct process_limits {
    int64_t memory_bytes;      /* the smallest limit of the process's cgroup and its ancestors; INT64_MAX: none */
    int64_t memory_left_bytes; /* the least that one of them leaves, reclaimable file cache counted as free */
    double cpus;               /* the smallest CPU quota, in CPUs: 1.5; 0: none */
} process_limits;

/* Reads the limits from /proc and the cgroup file systems under `root`, which is "" but in tests. A controller that is not
 * mounted, or a file that is not there or makes no sense, limits nothing. */
process_limits limits_read(const char *root);

#endif
