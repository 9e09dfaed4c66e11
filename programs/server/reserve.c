/* Room for deleting. Even a deletion writes: changed pages go to the store's log first. So that a full disk can be emptied,
 * some room is kept in a file which is made again once there is room. */
#include "server/reserve.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "server/state.h"

enum { RESERVE_BYTES = 8 << 20 };

static bool reserve_path(const server *s, char *path, size_t capacity)
{
    const int length = snprintf(path, capacity, "%s-reserve", s->config.store);
    return length > 0 && (size_t)length < capacity;
}

void reserve_keep(const server *s, long long disk_free_bytes)
{
    char path[4096];
    if (disk_free_bytes - 2LL * RESERVE_BYTES < s->config.disk_reserve_bytes || !reserve_path(s, path, sizeof path))
        return;
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return; /* it is there, or cannot be made: then a full disk refuses deletions, too */
    const bool made = posix_fallocate(file, 0, RESERVE_BYTES) == 0;
    close(file);
    if (!made)
        (void)unlink(path);
}

bool reserve_give(const server *s, ww_status status)
{
    char path[4096];
    return status == WW_IO_ERROR && reserve_path(s, path, sizeof path) && unlink(path) == 0;
}

void reserve_remove(const server *s)
{
    char path[4096];
    if (reserve_path(s, path, sizeof path))
        (void)unlink(path);
}
