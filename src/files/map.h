/* A file mapped into memory, for ww_matrix_view_f32() alone.
 *
 * Whoever reads a map of a file that has been cut short meanwhile is ended by SIGBUS; a library cannot make an error of that.
 * So the readers use source_read(), and a map is handed out only to callers who ask for a view and know that the file stays.
 */
#ifndef WW_FILES_MAP_H
#define WW_FILES_MAP_H

#include <stddef.h>

#include "files/source.h"

typedef struct file_map {
    const unsigned char *bytes; /* NULL: there is none */
    size_t size;
} file_map;

/* Maps the whole source. Where that cannot be (an empty file, memory, a system that refuses), the map is empty: no failure,
 * since everything can be read without it. Does not touch the disk. */
void map_open(file_map *map, const file_source *source);

/* Accepts an empty map. */
void map_close(file_map *map);

#endif
