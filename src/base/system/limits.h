/* The resources of the machine that this process may use: the limits of containers (cgroups, version 1 and 2) and of the
 * process.
 *
 * A container that exceeds its memory limit is killed; no call fails first. So the remaining memory must be read before memory
 * is promised.
 */
#ifndef WW_BASE_SYSTEM_LIMITS_H
#define WW_BASE_SYSTEM_LIMITS_H

#include <stdint.h>

typedef struct process_limits {
    int64_t memory_bytes;      /* the smallest limit of the process's cgroup and its ancestors; INT64_MAX: none */
    int64_t memory_left_bytes; /* the smallest remainder of any of them; reclaimable file cache counts as free */
    double cpus;               /* the smallest CPU quota, in CPUs, such as 1.5; 0: none */
} process_limits;

/* Reads the limits from /proc and the cgroup file systems under `root`, which is "" except in tests. If a controller is not
 * mounted, or a file does not exist or is invalid, that limit counts as none. */
process_limits limits_read(const char *root);

#endif
