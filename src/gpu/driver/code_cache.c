/* Code that was compiled on this machine, kept on disk. A file is the code followed by a seal of 32 bytes (a word, the size,
 * the hashes of the code and of the entry's name), so tools still recognize the ELF. The name contains module, chip, compiler
 * and source, so an entry that was copied to another name is not used. */
#include "gpu/driver/code_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/system/environment.h"
#include "base/tables/hash.h"

enum {
    PATH_BYTES = 4096,
    TEMPORARY_SECONDS = 60 * 60, /* a temporary file that old was left behind by a process that ended */
};

typedef struct seal {
    char word[8];
    uint64_t size;
    uint64_t hash;
    uint64_t name_hash;
} seal;

static const char seal_word[8] = {'w', 'w', 'c', 'o', 'd', 'e', '0', '2'};
static const int64_t size_max = INT64_C(1) << 30;   /* no module is that large; a file that is was not written here */
static const int64_t kept_max = INT64_C(256) << 20; /* of all entries: a chip's modules have some 10 MiB */

/* The folder, created if needed. The specification of XDG_CACHE_HOME says to ignore a relative path. */
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
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return false;
    struct stat about;
    if (lstat(path, &about) != 0 || !S_ISDIR(about.st_mode) || about.st_uid != geteuid())
        return false;
    return (about.st_mode & 077) == 0 || chmod(path, 0700) == 0;
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

/* Code from a file that another user can write must not be run. */
static bool is_ours(const struct stat *about)
{
    return S_ISREG(about->st_mode) && about->st_uid == geteuid() && (about->st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
           about->st_size > (off_t)sizeof(seal) && about->st_size < size_max;
}

static char *read_sealed(int file, const char *name, size_t *size)
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
               end.hash == fnv_bytes(FNV_BEGIN, content, *size) && end.name_hash == fnv_bytes(FNV_BEGIN, name, strlen(name));
    }
    if (good)
        return content;
    memory_free(content);
    return NULL;
}

bool code_cache_read(const char *name, driver_compiled *out)
{
    char path[sizeof out->cached];
    if (!path_of(name, path, sizeof path))
        return false;
    /* Non-blocking, because opening a FIFO of that name would wait. */
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0)
        return false;
    char *content = read_sealed(file, name, &out->bytes);
    if (content != NULL)
        (void)futimens(file, NULL); /* marks the entry as used; unused ones are removed first */
    close(file);
    if (content == NULL)
        return false;
    out->image = content;
    memcpy(out->cached, path, sizeof path);
    return true;
}

typedef struct cleaning {
    char folder[PATH_BYTES];
    time_t now;
    int64_t bytes; /* of all entries */
    char *oldest;  /* entry; NULL if there is none but the one to keep */
    time_t used;   /* when that was */
} cleaning;

static bool ends_like_temporary(const char *name)
{
    const char *ending = strstr(name, ".hsaco.");
    return ending != NULL && strlen(ending) == strlen(".hsaco.XXXXXX");
}

/* Handles one file: removes an old temporary, counts an entry. */
static void clean_file(cleaning *c, const char *name, const char *keep)
{
    char path[PATH_BYTES + 256];
    struct stat about;
    snprintf(path, sizeof path, "%s/%s", c->folder, name);
    if (lstat(path, &about) != 0 || !S_ISREG(about.st_mode))
        return;
    if (ends_like_temporary(name)) {
        if (c->now - about.st_mtime > TEMPORARY_SECONDS)
            (void)unlink(path);
        return;
    }
    c->bytes += about.st_size;
    if (strcmp(name, keep) == 0 || (c->oldest != NULL && about.st_mtime >= c->used))
        return;
    char *copy = memory_copy_text(path, strlen(path));
    if (copy == NULL)
        return;
    memory_free(c->oldest);
    c->oldest = copy;
    c->used = about.st_mtime;
}

static bool clean_once(cleaning *c, const char *keep)
{
    DIR *files = opendir(c->folder);
    if (files == NULL)
        return false;
    c->bytes = 0;
    for (const struct dirent *entry; (entry = readdir(files)) != NULL;)
        clean_file(c, entry->d_name, keep);
    closedir(files);
    const bool removed = c->bytes > kept_max && c->oldest != NULL && unlink(c->oldest) == 0;
    memory_free(c->oldest);
    c->oldest = NULL;
    return removed;
}

/* Removes what processes left behind, and the least recently used entries until the rest fits. */
static void clean(const char *keep)
{
    cleaning c = {.now = time(NULL)};
    if (!folder(c.folder, sizeof c.folder))
        return;
    while (clean_once(&c, keep))
        continue;
}

void code_cache_write(const char *name, const void *bytes, size_t size)
{
    char path[PATH_BYTES];
    char fresh[PATH_BYTES + 16];
    seal end = {.size = size, .hash = fnv_bytes(FNV_BEGIN, bytes, size), .name_hash = fnv_bytes(FNV_BEGIN, name, strlen(name))};
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
    clean(name);
}

bool code_cache_remove(const char *name)
{
    char path[PATH_BYTES];
    return path_of(name, path, sizeof path) && unlink(path) == 0;
}
