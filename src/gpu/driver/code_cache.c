/* Code that was compiled on this machine, kept on disk for the next time. A file is the code with a seal of 24 bytes behind it
 * (a word, the size, the hash), so that tools still know it for the ELF it is. */
#include "gpu/driver/code_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/memory.h"

enum { PATH_BYTES = 4096 };

typedef struct seal {
    char word[8];
    uint64_t size;
    uint64_t hash;
} seal;

static const char seal_word[8] = {'w', 'w', 'c', 'o', 'd', 'e', '0', '1'};
static const int64_t size_max = INT64_C(1) << 30; /* no module is near this; a file that is was not written here */

uint64_t code_hash(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* The folder, made if need be. A relative XDG_CACHE_HOME is to be ignored, says its specification. */
static bool folder(char *path, size_t capacity)
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
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static bool path_of(const char *name, char *path, size_t capacity)
{
    if (!folder(path, capacity))
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

/* Code from a file that another user can write is not to be run. */
static bool is_ours(const struct stat *about)
{
    return S_ISREG(about->st_mode) && about->st_uid == geteuid() && (about->st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
           about->st_size > (off_t)sizeof(seal) && about->st_size < size_max;
}

static char *read_sealed(int file, size_t *size)
{
    struct stat about;
    seal end;
    if (fstat(file, &about) != 0 || !is_ours(&about))
        return NULL;
    char *content = memory_alloc((size_t)about.st_size);
    if (content == NULL)
        return NULL;
    *size = (size_t)about.st_size - sizeof end;
    bool good = read_all(file, content, (size_t)about.st_size);
    if (good) {
        memcpy(&end, content + *size, sizeof end);
        good = memcmp(end.word, seal_word, sizeof end.word) == 0 && end.size == *size &&
               end.hash == code_hash(CODE_HASH_BEGIN, content, *size);
    }
    if (good)
        return content;
    memory_free(content);
    return NULL;
}

bool code_cache_read(const char *name, void **bytes, size_t *size)
{
    char path[PATH_BYTES];
    if (!path_of(name, path, sizeof path))
        return false;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return false;
    char *content = read_sealed(file, size);
    close(file);
    *bytes = content;
    return content != NULL;
}

void code_cache_write(const char *name, const void *bytes, size_t size)
{
    char path[PATH_BYTES];
    char fresh[PATH_BYTES + 16];
    seal end = {.size = size, .hash = code_hash(CODE_HASH_BEGIN, bytes, size)};
    memcpy(end.word, seal_word, sizeof end.word);
    if (!path_of(name, path, sizeof path))
        return;
    snprintf(fresh, sizeof fresh, "%s.XXXXXX", path);
    const int file = mkostemp(fresh, O_CLOEXEC);
    if (file < 0)
        return;
    bool good = write_all(file, bytes, size) && write_all(file, (const char *)&end, sizeof end);
    good = close(file) == 0 && good;
    if (!good || rename(fresh, path) != 0)
        (void)unlink(fresh);
}
