/* Code that was compiled on this machine, kept on disk. A file is the code followed by a seal of 32 bytes (a word, the size,
 * the hashes of the code and of the entry's name), so tools still recognize the ELF. The name contains module, chip, compiler
 * and source, so an entry that was copied to another name is not used. */
#include "gpu/driver/code_cache.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/system/cache.h"
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
static const size_t size_max = (size_t)1 << 30;     /* no module is that large; a file that is was not written here */
static const int64_t kept_max = INT64_C(256) << 20; /* of all entries: a chip's modules have some 10 MiB */

bool code_cache_read(const char *name, driver_compiled *out)
{
    char path[sizeof out->cached];
    size_t bytes = 0;
    seal end;
    char *content = cache_path(name, path, sizeof path) ? cache_read(path, size_max, &bytes) : NULL;
    if (content == NULL)
        return false;
    bool good = bytes > sizeof end;
    const size_t code_bytes = good ? bytes - sizeof end : 0;
    if (good) {
        memcpy(&end, content + code_bytes, sizeof end);
        good = memcmp(end.word, seal_word, sizeof end.word) == 0 && end.size == code_bytes &&
               end.hash == fnv_bytes(FNV_BEGIN, content, code_bytes) &&
               end.name_hash == fnv_bytes(FNV_BEGIN, name, strlen(name));
    }
    if (!good) {
        memory_free(content);
        return false;
    }
    out->image = content;
    out->bytes = code_bytes;
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
    if (!cache_folder(c.folder, sizeof c.folder))
        return;
    while (clean_once(&c, keep))
        continue;
}

void code_cache_write(const char *name, const void *bytes, size_t size)
{
    char path[PATH_BYTES];
    seal end = {.size = size, .hash = fnv_bytes(FNV_BEGIN, bytes, size), .name_hash = fnv_bytes(FNV_BEGIN, name, strlen(name))};
    memcpy(end.word, seal_word, sizeof end.word);
    if (!cache_path(name, path, sizeof path))
        return;
    cache_write(path, (cache_part[]){{bytes, size}, {&end, sizeof end}}, 2);
    clean(name);
}

bool code_cache_remove(const char *name)
{
    char path[PATH_BYTES];
    return cache_path(name, path, sizeof path) && unlink(path) == 0;
}
