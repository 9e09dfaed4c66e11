/* A file mapped into memory. */
#include "files/map.h"

#include <sys/mman.h>

void map_open(file_map *map, const file_source *source)
{
    *map = (file_map){0};
    if (source->descriptor < 0 || source->size <= 0 || (uint64_t)source->size > SIZE_MAX)
        return;
    void *bytes = mmap(NULL, (size_t)source->size, PROT_READ, MAP_PRIVATE, source->descriptor, 0);
    if (bytes != MAP_FAILED)
        *map = (file_map){.bytes = bytes, .size = (size_t)source->size};
}

void map_close(file_map *map)
{
    if (map->bytes)
        munmap((void *)map->bytes, map->size);
    *map = (file_map){0};
}
