/* Files in the user's cache folder (cache.h). */
#include "base/system/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/system/environment.h"

enum { PATH_BYTES = 4096 };

/* The specification of XDG_CACHE_HOME says to ignore a relative path. */
bool cache_folder(char *path, size_t capacity)
{
    const char *cache = environment_folder("XDG_CACHE_HOME");
    const char *home = environment_folder("HOME");
    int length = -1;
    if (cache != NULL)
        length = snprintf(path, capacity, "%s", cache);
    else if (home != NULL)
        length = snprintf(path, capacity, "%s/.cache", home);
    if (length < 0 || (size_t)length + sizeof "/warpwave" > capacity)
        return false;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return false;
    memcpy(path + length, "/warpwave", sizeof "/warpwave");
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return false;
    struct stat about;
    if (lstat(path, &about) != 0 || !S_ISDIR(about.st_mode) || about.st_uid != geteuid())
        return false;
    return (about.st_mode & 077) == 0 || chmod(path, 0700) == 0;
}

bool cache_path(const char *name, char *path, size_t capacity)
{
    if (!cache_folder(path, capacity))
        return false;
    const size_t length = strlen(path);
    const int added = snprintf(path + length, capacity - length, "/%s", name);
    return added > 0 && (size_t)added < capacity - length;
}

static bool read_all(int file, char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t got = read(file, bytes, size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        bytes += got;
        size -= (size_t)got;
    }
    return true;
}

static bool write_all(int file, const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t put = write(file, bytes, size);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        bytes += put;
        size -= (size_t)put;
    }
    return true;
}

/* Code from a file that another user can write must not be run. */
static bool is_ours(const struct stat *about, size_t bytes_max)
{
    return S_ISREG(about->st_mode) && about->st_uid == geteuid() && (about->st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
           about->st_size > 0 && (size_t)about->st_size <= bytes_max;
}

char *cache_read(const char *path, size_t bytes_max, size_t *bytes)
{
    /* Non-blocking, because opening a FIFO of that name would wait. */
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat about;
    char *content = NULL;
    *bytes = 0;
    if (file < 0)
        return NULL;
    if (fstat(file, &about) == 0 && is_ours(&about, bytes_max)) {
        *bytes = (size_t)about.st_size;
        content = memory_alloc(*bytes);
    }
    if (content != NULL && !read_all(file, content, *bytes)) {
        memory_free(content);
        content = NULL;
    }
    if (content != NULL)
        (void)futimens(file, NULL);
    close(file);
    return content;
}

void cache_write(const char *path, const cache_part *parts, int count)
{
    char fresh[PATH_BYTES + 16];
    snprintf(fresh, sizeof fresh, "%s.XXXXXX", path);
    const int file = mkostemp(fresh, O_CLOEXEC);
    bool good = file >= 0;
    for (int i = 0; i < count && good; i++)
        good = write_all(file, parts[i].data, parts[i].bytes);
    if (file < 0)
        return;
    good = close(file) == 0 && good;
    if (!good || rename(fresh, path) != 0)
        (void)unlink(fresh);
}
