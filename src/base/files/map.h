/* A file as read-only memory that all processes share.
 *
 * For the weights of models only. If another program cuts the file short while it is mapped, reading what is gone ends the
 * process (SIGBUS), so everything else is read by source.h. A file that is replaced by renaming stays as it was.
 */
#ifndef WW_BASE_FILES_MAP_H
#define WW_BASE_FILES_MAP_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/files/source.h"

typedef struct file_map {
    const unsigned char *bytes;
    int64_t size;
    atomic_int users; /* the last one to release it unmaps it */
} file_map;

/* Maps all of an open source, which may be closed afterwards. `map` stays NULL if the source is memory, or if the system does
 * not map its file; then it must be read. */
ww_status file_map_open(const file_source *source, file_map **map);

file_map *file_map_retain(file_map *map);
void file_map_release(file_map *map); /* accepts NULL */

/* Brings bytes of the file into memory. Fails where touching them would end the process: if the disk fails, or the file has
 * become shorter. Blocks on the disk. */
ww_status file_map_load(const file_map *map, const file_source *source, int64_t offset, size_t bytes);

#endif
