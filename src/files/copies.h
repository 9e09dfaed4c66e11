/* Ranges of a file in memory, for callers who want a pointer: read when they are first requested, kept until the file is
 * closed.
 *
 * They are copies, not a memory map: if a file is cut short, SIGBUS ends a process that reads the map, and a library cannot
 * turn that into an error. A copy costs its bytes of memory and one read; a file that has become shorter gives a status.
 */
#ifndef WW_FILES_COPIES_H
#define WW_FILES_COPIES_H

#include <pthread.h>

#include "base/files/source.h"

typedef struct file_copies {
    pthread_mutex_t lock;
    int64_t count;
    void **bytes; /* one per range, NULL until it is requested; NULL before the first request */
} file_copies;

/* Initialises `count` ranges, none of which is in memory. Does not allocate. */
void copies_create(file_copies *copies, int64_t count);
void copies_destroy(file_copies *copies);

/* Where range number `index` is in the file. */
typedef struct file_range {
    int64_t index, offset, bytes;
} file_range;

/* Returns the range's bytes, aligned to a cache line. If the source is memory, they are used in place if their address is a
 * multiple of `align`. Fails as source_read() does, and with WW_OUT_OF_MEMORY. Any number of threads may call it. Blocks on the
 * disk the first time. */
ww_status copies_get(file_copies *copies, const file_source *source, file_range range, int64_t align, const void **bytes);

#endif
