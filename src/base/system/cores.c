/* Finds the cores that threads may be pinned to: from the affinity mask, the topology in /sys and a container's quota. */
#include "base/system/cores.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/integers.h"
#include "base/status.h"
#include "base/system/limits.h"

/* Returns the lowest CPU that shares a core with `cpu`, or `cpu` itself if the system does not tell. */
static int32_t first_sibling(int32_t cpu)
{
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *file = fopen(path, "re");
    int32_t first = cpu;
    if (file) {
        if (fscanf(file, "%d", &first) != 1)
            first = cpu;
        fclose(file);
    }
    return first;
}

/* Fills `cores` from the affinity mask, skipping CPUs whose core is already in it. */
static int32_t cores_of_mask(int32_t *cores, int32_t capacity)
{
    int32_t siblings[CORES_MAX];
    cpu_set_t set;
    int32_t count = 0;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 0;
    for (int32_t cpu = 0; cpu < CPU_SETSIZE && count < capacity; cpu++) {
        if (!CPU_ISSET(cpu, &set))
            continue;
        const int32_t sibling = first_sibling(cpu);
        bool seen = false;
        for (int32_t i = 0; i < count && !seen; i++)
            seen = siblings[i] == sibling;
        if (seen)
            continue;
        siblings[count] = sibling;
        cores[count++] = cpu;
    }
    return count;
}

ww_status cores_to_use(int32_t *cores, int32_t capacity, int32_t *count)
{
    *count = cores_of_mask(cores, capacity);
    if (*count == 0) { /* the mask is larger than our set: use the CPUs in order, and pin those that can be pinned */
        const long online = sysconf(_SC_NPROCESSORS_ONLN);
        *count = (int32_t)max_i64(1, min_i64(online, capacity));
        for (int32_t i = 0; i < *count; i++)
            cores[i] = i;
    }
    const double quota = limits_read("").cpus; /* more threads than a container's quota would only stop each other */
    if (quota > 0 && quota < *count)
        *count = max_i32(1, (int32_t)ceil(quota));
    const char *asked = getenv("WARPWAVE_THREADS");
    if (!asked || !*asked)
        return WW_OK;
    char *end;
    errno = 0;
    const long limit = strtol(asked, &end, 10);
    if (*end || errno || limit < 1)
        return ww_fail(WW_INVALID_ARGUMENT, "WARPWAVE_THREADS is '%s'; it takes a number of threads, 1 or more", asked);
    if (limit < *count)
        *count = (int32_t)limit;
    return WW_OK;
}
