/* Maps of files. */
#include "base/files/map.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"

#if !defined(MADV_POPULATE_READ)
#define MADV_POPULATE_READ 22 /* of Linux 5.14; older ones answer EINVAL */
#endif

ww_status file_map_open(const file_source *source, file_map **map)
{
    *map = NULL;
    if (source->bytes || source->descriptor < 0 || source->size <= 0)
        return WW_OK;
    file_map *made = memory_alloc(sizeof *made);
    if (!made)
        return memory_failed("map of a file", sizeof *made);
    void *bytes = mmap(NULL, (size_t)source->size, PROT_READ, MAP_PRIVATE, source->descriptor, 0);
    if (bytes == MAP_FAILED) { /* a file system without maps, or no room for addresses: reading works */
        memory_free(made);
        return WW_OK;
    }
    made->bytes = bytes;
    made->size = source->size;
    atomic_init(&made->users, 1);
    *map = made;
    return WW_OK;
}

file_map *file_map_retain(file_map *map)
{
    atomic_fetch_add(&map->users, 1);
    return map;
}

void file_map_release(file_map *map)
{
    if (!map || atomic_fetch_sub(&map->users, 1) != 1)
        return;
    (void)munmap((void *)(uintptr_t)map->bytes, (size_t)map->size);
    memory_free(map);
}

ww_status file_map_load(const file_map *map, const file_source *source, int64_t offset, size_t bytes)
{
    const int64_t page = sysconf(_SC_PAGESIZE), first = offset / page * page;
    char *at = (char *)(uintptr_t)map->bytes + first;
    const size_t length = (size_t)(offset - first) + bytes;
    if (bytes == 0)
        return WW_OK;
    (void)madvise(at, length, MADV_WILLNEED); /* one large read instead of one for each fault */
    if (madvise(at, length, MADV_POPULATE_READ) == 0)
        return WW_OK;
    if (errno == EINVAL) /* an older system: the size is all that can be checked */
        return source_unchanged(source);
    const ww_status status = source_unchanged(source);
    return status != WW_OK ? status
                           : ww_fail_errno(WW_IO_ERROR, errno, "%s: offset %lld: cannot read", source->name, (long long)offset);
}
