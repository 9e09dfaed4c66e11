/* Ranges of a file in memory, for callers who want a pointer: read when they are first asked for, kept until the file is
 * closed.
 *
 * Not a map: a process that touches a map of a file that was cut short meanwhile is ended by SIGBUS, and a library cannot make
 * an error of that. A copy costs its bytes of memory and one read; a file that is shorter by then is a status.
 */
#ifndef WW_FILES_COPIES_H
#define WW_FILES_COPIES_H

#include <pthread.h>

#include "files/source.h"

typedef struct file_copies {
    pthread_mutex_t lock;
    int64_t count;
    void **bytes; /* of each range, NULL while nobody has asked; NULL altogether before the first question */
} file_copies;

/* `count` ranges, none of which is in memory. Does not allocate. */
void copies_create(file_copies *copies, int64_t count);
void copies_destroy(file_copies *copies);

/* Where range number `index` is in the file. */
typedef struct file_range {
    int64_t index, offset, bytes;
} file_range;

/* Gives the range's bytes, aligned to a cache line, or in place in a source that is memory, if that is a multiple of
 * `align`. Fails as source_read() does, and with WW_OUT_OF_MEMORY. Any number of threads may ask. Blocks on the disk the first
 * time. */
ww_status copies_get(file_copies *copies, const file_source *source, file_range range, int64_t align, const void **bytes);

#endif
