/* Faults that were injected, by kind. */
#include "support/faults/fault_counts.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory_hooks.h"
#include "support/devices.h"

enum { KINDS_MAX = 32 };

static struct {
    const char *kind;
    long count;
} counts[KINDS_MAX];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void fault_count(const char *kind, long count)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < KINDS_MAX; i++) {
        if (counts[i].kind && strcmp(counts[i].kind, kind) != 0)
            continue;
        counts[i].kind = kind;
        counts[i].count += count;
        break;
    }
    pthread_mutex_unlock(&lock);
}

long fault_next(long n)
{
    if (test_is_long())
        return n + 1;
    return test_is_short() ? 2 * n + (n % 2 == 0) : n + 1 + n / 4;
}

long fault_after(long n)
{
    return test_is_short() ? fault_next(n) : n + 1;
}

__attribute__((destructor)) static void write_counts(void)
{
    const char *path = getenv("WARPWAVE_FAULT_COUNTS");
    if (path && memory_failures_made() > 0)
        fault_count("allocation", (long)memory_failures_made());
    FILE *file = path ? fopen(path, "ae") : NULL;
    for (int i = 0; file && i < KINDS_MAX && counts[i].kind; i++)
        fprintf(file, "%s|%s|%ld\n", program_invocation_short_name, counts[i].kind, counts[i].count);
    if (file)
        fclose(file);
}
