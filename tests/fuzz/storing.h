/* The file of a fuzz target that has a store: it belongs to this process, and it is in memory where there is such a file
 * system, because on a disk the syncs are most of an execution.
 */
#ifndef TESTS_FUZZ_STORING_H
#define TESTS_FUZZ_STORING_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char storing_path[256];

static inline void storing_remove(void)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        char file[sizeof storing_path + 16];
        snprintf(file, sizeof file, "%s%s", storing_path, suffixes[i]);
        (void)unlink(file);
    }
}

/* Names the file, and removes it now and at the end. One thread searches: an execution is too short to wake others. */
static inline void storing_begin(const char *name)
{
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(storing_path, sizeof storing_path, "%s/fuzz-%s-%d.db", folder, name, (int)getpid());
    storing_remove();
    (void)atexit(storing_remove);
    (void)setenv("WARPWAVE_THREADS", "1", 1);
}

#endif
