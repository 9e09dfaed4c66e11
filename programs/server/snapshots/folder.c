/* The folder of snapshots. */
#include "server/snapshots/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/files/output.h"
#include "base/memory.h"
#include "server/state.h"

#define ENDING          "." SNAPSHOT_ENDING
#define SNAPSHOT_ENDING "snapshot"
#define HASH_ENDING     ".sha256"
#define WORK            "work-"

enum { NAME_MAX_BYTES = 200, ENCODED_BYTES_MAX = 180, ENCODED_BEGIN_BYTES = 100, CLEAN_BYTES_MAX = 64 };

static ww_status too_long(void)
{
    return ww_fail(WW_OUT_OF_RANGE, "the path of the folder of snapshots is too long");
}

__attribute__((format(printf, 2, 3))) static ww_status path_write(char path[PATH_MAX], const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(path, PATH_MAX, format, arguments);
    va_end(arguments);
    return length > 0 && length < PATH_MAX ? WW_OK : too_long();
}

static ww_status root_path(const server *s, char path[PATH_MAX])
{
    return s->config.snapshots ? path_write(path, "%s", s->config.snapshots)
                               : path_write(path, "%s.snapshots", s->config.store);
}

static ww_status make_folder(const char *path)
{
    return mkdir(path, 0700) == 0 || errno == EEXIST ? WW_OK : ww_fail_errno(WW_IO_ERROR, errno, "%s", path);
}

/* ---- unfinished files ---------------------------------------------------------------------------------------------------- */

/* Opens the folder and locks it against other servers, which may clean it at the same time; -1: it does not exist. */
static int lock_root(const char *root)
{
    const int opened = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened >= 0)
        (void)flock(opened, LOCK_EX);
    return opened;
}

static void remove_work(int root, const char *name)
{
    const int opened = openat(root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *folder = opened >= 0 ? fdopendir(opened) : NULL;
    for (struct dirent *e = folder ? readdir(folder) : NULL; e; e = readdir(folder))
        (void)unlinkat(opened, e->d_name, 0);
    if (folder)
        closedir(folder);
    else if (opened >= 0)
        close(opened);
    (void)unlinkat(root, name, AT_REMOVEDIR);
}

/* Does no process have it? Its owner holds a lock, which ends with the process. */
static bool is_left(int root, const char *name)
{
    const int opened = openat(root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    const bool left = opened >= 0 && flock(opened, LOCK_EX | LOCK_NB) == 0;
    if (opened >= 0)
        close(opened);
    return left;
}

ww_status snapshots_open(server *s)
{
    char root[PATH_MAX];
    const ww_status status = root_path(s, root);
    const int opened = status == WW_OK ? lock_root(root) : -1;
    DIR *folder = opened >= 0 ? fdopendir(opened) : NULL;
    for (struct dirent *e = folder ? readdir(folder) : NULL; e; e = readdir(folder))
        if (strncmp(e->d_name, WORK, strlen(WORK)) == 0 && is_left(opened, e->d_name))
            remove_work(opened, e->d_name);
    if (folder)
        closedir(folder);
    else if (opened >= 0)
        close(opened);
    return status;
}

/* Makes this server's folder of unfinished files, under the lock of the root. */
static ww_status make_work(server *s, const char *root)
{
    char path[PATH_MAX];
    ww_status status = path_write(path, "%s/" WORK "XXXXXX", root);
    const int locked = lock_root(root);
    if (status == WW_OK && !mkdtemp(path))
        status = ww_fail_errno(WW_IO_ERROR, errno, "%s", path);
    const int opened = status == WW_OK ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (status == WW_OK && (opened < 0 || flock(opened, LOCK_EX | LOCK_NB) != 0))
        status = ww_fail_errno(WW_IO_ERROR, errno, "%s", path);
    if (status == WW_OK) {
        snprintf(s->snapshot_work, sizeof s->snapshot_work, "%s", path);
        s->snapshot_lock = opened;
    } else if (opened >= 0) {
        close(opened);
    }
    if (locked >= 0)
        close(locked);
    return status;
}

void snapshots_close(server *s)
{
    char root[PATH_MAX];
    if (s->snapshot_work[0] == '\0' || root_path(s, root) != WW_OK)
        return;
    const int opened = lock_root(root);
    if (opened >= 0) {
        remove_work(opened, strrchr(s->snapshot_work, '/') + 1);
        close(opened);
    }
    close(s->snapshot_lock);
}

ww_status snapshots_work(server *s, char path[PATH_MAX])
{
    char root[PATH_MAX];
    ww_status status = root_path(s, root);
    if (status == WW_OK)
        status = make_folder(root);
    pthread_mutex_lock(&s->notes_lock);
    if (status == WW_OK && s->snapshot_work[0] == '\0')
        status = make_work(s, root);
    pthread_mutex_unlock(&s->notes_lock);
    const unsigned long long number = (unsigned long long)atomic_fetch_add(&s->operations, 1);
    return status == WW_OK ? path_write(path, "%s/%llu", s->snapshot_work, number) : status;
}

void snapshots_drop(const char *path)
{
    static const char *const ENDS[] = {"", "-journal", "-wal", "-shm"};
    char name[PATH_MAX];
    for (size_t i = 0; i < sizeof ENDS / sizeof *ENDS; i++)
        if (path_write(name, "%s%s", path, ENDS[i]) == WW_OK)
            (void)unlink(name);
}

/* ---- names --------------------------------------------------------------------------------------------------------------- */

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

/* The name of the folder of a collection: with escapes, or its beginning and its checksum if that is too long for a file. */
static void encode(const char *collection, char encoded[NAME_MAX_BYTES])
{
    size_t bytes = 0;
    for (const char *at = collection; *at && bytes < ENCODED_BYTES_MAX; at++) {
        const bool plain = is_plain(*at) && (*at != '.' || at > collection);
        bytes += (size_t)snprintf(encoded + bytes, 4, plain ? "%c" : "%%%02X", plain ? *at : (int)(unsigned char)*at);
    }
    if (bytes < ENCODED_BYTES_MAX)
        return;
    sha256 sum;
    char text[SHA256_TEXT];
    sha256_begin(&sum);
    sha256_add(&sum, collection, strlen(collection));
    sha256_end(&sum, text);
    snprintf(encoded + ENCODED_BEGIN_BYTES, NAME_MAX_BYTES - ENCODED_BEGIN_BYTES, "~%s", text);
}

ww_status snapshots_of(const server *s, const char *collection, char path[PATH_MAX])
{
    char root[PATH_MAX], encoded[NAME_MAX_BYTES] = "";
    const ww_status status = root_path(s, root);
    if (status != WW_OK)
        return status;
    if (!collection)
        return path_write(path, "%s/full", root);
    encode(collection, encoded);
    return path_write(path, "%s/collections/%s", root, encoded);
}

static bool name_is_sound(const char *name)
{
    const size_t length = strlen(name), ending = strlen(ENDING);
    for (size_t i = 0; i < length; i++)
        if (!is_plain(name[i]))
            return false;
    return length > ending && length < NAME_MAX_BYTES && name[0] != '.' && strcmp(name + length - ending, ENDING) == 0;
}

bool snapshots_file(request *r, const char *collection, const char *name, char path[PATH_MAX])
{
    char folder[PATH_MAX];
    ww_status status = snapshots_of(r->server, collection, folder);
    if (status != WW_OK)
        return request_fail_status(r, status);
    struct stat file;
    if (name_is_sound(name) && path_write(path, "%s/%s", folder, name) == WW_OK && lstat(path, &file) == 0 &&
        S_ISREG(file.st_mode))
        return true;
    return request_fail(r, 404, "Not found: Snapshot `%.200s` doesn't exist!", name);
}

/* ---- keeping ------------------------------------------------------------------------------------------------------------- */

ww_status snapshots_hash(const char *path, char text[SHA256_TEXT])
{
    enum { PIECE_BYTES = 1 << 16 };
    unsigned char piece[PIECE_BYTES];
    sha256 sum;
    ssize_t count = 0;
    ww_status status = WW_OK;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return ww_fail_errno(WW_IO_ERROR, errno, "%s", path);
    sha256_begin(&sum);
    while (status == WW_OK && (count = read(file, piece, sizeof piece)) > 0) {
        sha256_add(&sum, piece, (size_t)count);
        status = job_check();
    }
    if (status == WW_OK && count < 0)
        status = ww_fail_errno(WW_IO_ERROR, errno, "%s", path);
    close(file);
    sha256_end(&sum, text);
    return status;
}

static ww_status sync_path(const char *path, int flags)
{
    const int opened = open(path, flags | O_CLOEXEC);
    const bool synced = opened >= 0 && fsync(opened) == 0;
    const ww_status status = synced ? WW_OK : ww_fail_errno(WW_IO_ERROR, errno, "%s", path);
    if (opened >= 0)
        close(opened);
    return status;
}

/* "docs-2026-11-19-17-03-53-123.snapshot" */
static ww_status new_name(const char *folder, const char *collection, char path[PATH_MAX])
{
    char clean[CLEAN_BYTES_MAX + 1] = "", time_text[32];
    struct timespec now;
    struct tm utc;
    const char *from = collection ? collection : "full-snapshot";
    for (size_t i = 0; from[i] && i < CLEAN_BYTES_MAX; i++)
        clean[i] = is_plain(from[i]) && from[i] != '.' ? from[i] : '_';
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(time_text, sizeof time_text, "%Y-%m-%d-%H-%M-%S", &utc);
    return path_write(path, "%s/%s-%s-%03ld" ENDING, folder, clean, time_text, now.tv_nsec / 1000000);
}

static ww_status write_hash(const char *path, const char *text)
{
    output file;
    char name[PATH_MAX];
    ww_status status = path_write(name, "%s" HASH_ENDING, path);
    if (status != WW_OK)
        return status;
    status = output_open(&file, name);
    if (status == WW_OK)
        status = output_write(&file, text, strlen(text));
    if (status == WW_OK)
        status = output_finish(&file);
    if (status != WW_OK)
        output_discard(&file);
    return status;
}

static ww_status make_folders(const server *s, const char *collection, char folder[PATH_MAX])
{
    char above[PATH_MAX];
    ww_status status = snapshots_of(s, collection, folder);
    if (status == WW_OK)
        status = path_write(above, "%s", folder);
    if (status == WW_OK && collection) {
        *strrchr(above, '/') = '\0';
        status = make_folder(above);
    }
    return status == WW_OK ? make_folder(folder) : status;
}

ww_status snapshots_keep(server *s, const char *work, const char *collection, char path[PATH_MAX])
{
    char folder[PATH_MAX], text[SHA256_TEXT], sum[PATH_MAX];
    ww_status status = snapshots_hash(work, text);
    if (status == WW_OK)
        status = make_folders(s, collection, folder);
    if (status == WW_OK)
        status = sync_path(work, O_RDWR);
    if (status == WW_OK)
        status = new_name(folder, collection, path);
    if (status == WW_OK)
        status = write_hash(path, text);
    if (status != WW_OK)
        return status;
    if (link(work, path) != 0) { /* never replaces a file */
        status = ww_fail_errno(WW_IO_ERROR, errno, "%s", path);
        if (path_write(sum, "%s" HASH_ENDING, path) == WW_OK)
            (void)unlink(sum);
        return status;
    }
    return sync_path(folder, O_RDONLY | O_DIRECTORY);
}

/* ---- listing ------------------------------------------------------------------------------------------------------------- */

/* The checksum that was kept with a snapshot; "" if there is none, as for a file that the operator has put there. */
static void read_hash(const char *path, char text[SHA256_TEXT])
{
    char name[PATH_MAX];
    text[0] = '\0';
    const int file = path_write(name, "%s" HASH_ENDING, path) == WW_OK ? open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    const ssize_t count = file >= 0 ? read(file, text, SHA256_TEXT - 1) : 0;
    if (file >= 0)
        close(file);
    text[count == SHA256_TEXT - 1 ? count : 0] = '\0';
    if (strspn(text, "0123456789abcdef") != strlen(text))
        text[0] = '\0';
}

bool snapshots_put(const char *path, out *o)
{
    struct stat file;
    struct tm utc;
    char time_text[32], sum[SHA256_TEXT];
    const char *name = strrchr(path, '/') + 1;
    if (lstat(path, &file) != 0 || !S_ISREG(file.st_mode))
        return false;
    gmtime_r(&file.st_mtim.tv_sec, &utc);
    strftime(time_text, sizeof time_text, "%Y-%m-%dT%H:%M:%S", &utc);
    read_hash(path, sum);
    out_format(o, "{\"name\":\"%s\",\"creation_time\":\"%s\",\"size\":%lld,\"checksum\":", name, time_text,
               (long long)file.st_size);
    if (sum[0] != '\0')
        out_format(o, "\"%s\"}", sum);
    else
        out_text(o, "null}");
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Reads the names of a folder's snapshots, sorted; none if the folder does not exist. */
static ww_status read_names(const char *path, char ***names, int64_t *count)
{
    enum { LISTED_MAX = 10000 };
    int64_t room = 0;
    ww_status status = WW_OK;
    DIR *folder = opendir(path);
    if (!folder && errno != ENOENT)
        return ww_fail_errno(WW_IO_ERROR, errno, "%s", path);
    for (struct dirent *e = folder ? readdir(folder) : NULL; status == WW_OK && e && *count < LISTED_MAX; e = readdir(folder)) {
        if (!name_is_sound(e->d_name))
            continue;
        status = array_reserve(names, &room, *count + 1, sizeof **names, "a list of snapshots");
        char *copy = status == WW_OK ? memory_copy_text(e->d_name, strlen(e->d_name)) : NULL;
        if (copy)
            (*names)[(*count)++] = copy;
        else if (status == WW_OK)
            status = memory_failed("a list of snapshots", strlen(e->d_name));
    }
    if (folder)
        closedir(folder);
    if (*count > 0)
        qsort(*names, (size_t)*count, sizeof **names, by_name);
    return status;
}

ww_status snapshots_list(const server *s, const char *collection, out *o)
{
    char folder[PATH_MAX], path[PATH_MAX], **names = NULL;
    int64_t count = 0;
    ww_status status = snapshots_of(s, collection, folder);
    if (status == WW_OK)
        status = read_names(folder, &names, &count);
    out_text(o, "[");
    for (int64_t i = 0; i < count; i++) {
        const size_t before = o->length, begin = before > 0 && o->bytes[before - 1] == '[' ? 0 : 1;
        if (status == WW_OK)
            status = path_write(path, "%s/%s", folder, names[i]);
        out_bytes(o, ",", begin);
        if (status != WW_OK || !snapshots_put(path, o))
            o->length = before; /* it has just been deleted */
        memory_free(names[i]);
    }
    out_text(o, "]");
    memory_free(names);
    return status;
}

/* ---- files that a client names ------------------------------------------------------------------------------------------- */

ww_status snapshots_link(server *s, const char *given, char work[PATH_MAX])
{
    char root[PATH_MAX], whole[PATH_MAX], real[PATH_MAX];
    struct stat file;
    ww_status status = root_path(s, root);
    if (status != WW_OK)
        return status;
    const size_t length = realpath(root, whole) ? strlen(whole) : 0;
    if (!realpath(given, real) || length == 0 || strncmp(real, whole, length) != 0 || real[length] != '/' ||
        strncmp(real + length + 1, WORK, strlen(WORK)) == 0 || stat(real, &file) != 0 || !S_ISREG(file.st_mode))
        return ww_fail(WW_INVALID_ARGUMENT, "location: there is no such file in the folder of snapshots, %s", root);
    status = snapshots_work(s, work);
    if (status == WW_OK && link(real, work) != 0)
        status = ww_fail_errno(WW_IO_ERROR, errno, "location");
    return status;
}
