/* The copy of SQLite in the wheel's library, for the command, and for a Python whose own SQLite cannot be had.
 *
 * Two copies in one process drop each other's locks: to POSIX they are one owner, which is never in its own way, and which
 * loses all locks on a file when it closes any descriptor of it. So this copy counts its own descriptors, and while there is
 * another one of the same file it neither takes nor gives back a lock, nor closes what it is done with. A store refuses such a
 * file when it is opened and at each write.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/float_guard.h"
#include "base/status.h"

/* Functions of the store, which knows SQLite only through its table of functions (store/sqlite_api.h). */
extern ww_status (*sqlite_file_check)(const char *path);
ww_status sqlite_host_ready(void);

/* Makes store.h use this copy if Python's SQLite is not usable; called by python/warpwave/_library.py. */
WW_API ww_status ww_sqlite_use_bundled(void);

enum { DESCRIPTORS_MAX = 1 << 20, WORD_BITS = 64 };

typedef _Atomic(uint64_t) descriptor_set[DESCRIPTORS_MAX / WORD_BITS];
static descriptor_set own;  /* descriptors that this copy has opened and not closed */
static descriptor_set kept; /* those of them that it no longer uses */
static atomic_int kept_count;

static void set_add(descriptor_set set, unsigned descriptor)
{
    if (descriptor < DESCRIPTORS_MAX)
        atomic_fetch_or(&set[descriptor / WORD_BITS], UINT64_C(1) << (descriptor % WORD_BITS));
}

static void set_remove(descriptor_set set, unsigned descriptor)
{
    if (descriptor < DESCRIPTORS_MAX)
        atomic_fetch_and(&set[descriptor / WORD_BITS], ~(UINT64_C(1) << (descriptor % WORD_BITS)));
}

static bool set_has(descriptor_set set, unsigned descriptor)
{
    return descriptor >= DESCRIPTORS_MAX || (atomic_load(&set[descriptor / WORD_BITS]) >> (descriptor % WORD_BITS) & 1) != 0;
}

typedef enum descriptor_answer { NOBODY_ELSE, SOMEBODY_ELSE, UNKNOWN } descriptor_answer;

/* Finds out whether this process has the file open by a descriptor of other code. */
static descriptor_answer open_elsewhere(const struct stat *file)
{
    DIR *folder = opendir("/proc/self/fd");
    if (!folder)
        return UNKNOWN;
    descriptor_answer answer = NOBODY_ELSE;
    const struct dirent *entry = NULL;
    while (answer == NOBODY_ELSE && (entry = readdir(folder))) { /* NOLINT(concurrency-mt-unsafe): this folder is ours alone */
        const int descriptor = (int)strtol(entry->d_name, NULL, 10); /* 0, the standard input, for . and .. */
        struct stat other;
        if (descriptor != dirfd(folder) && !set_has(own, (unsigned)descriptor) && fstat(descriptor, &other) == 0 &&
            other.st_dev == file->st_dev && other.st_ino == file->st_ino)
            answer = SOMEBODY_ELSE;
    }
    closedir(folder);
    return answer;
}

/* Closes descriptors that were kept because of others, which are closed by now. */
static void close_kept(void)
{
    for (int word = 0; word < DESCRIPTORS_MAX / WORD_BITS && atomic_load(&kept_count) > 0; word++)
        for (int bit = 0; bit < WORD_BITS && atomic_load(&kept[word]) != 0; bit++) {
            const int descriptor = word * WORD_BITS + bit;
            struct stat file;
            if (!set_has(kept, (unsigned)descriptor) || fstat(descriptor, &file) != 0 || open_elsewhere(&file) != NOBODY_ELSE)
                continue;
            const uint64_t mask = UINT64_C(1) << bit;
            if (!(atomic_fetch_and(&kept[word], ~mask) & mask))
                continue; /* another thread closes it */
            atomic_fetch_sub(&kept_count, 1);
            set_remove(own, (unsigned)descriptor);
            close(descriptor);
        }
}

static int open_own(const char *path, int flags, int mode)
{
    close_kept();
    const int descriptor = open(path, flags, mode);
    if (descriptor >= 0)
        set_add(own, (unsigned)descriptor);
    return descriptor;
}

static int close_own(int descriptor)
{
    struct stat file;
    if (descriptor < DESCRIPTORS_MAX && fstat(descriptor, &file) == 0 && open_elsewhere(&file) == SOMEBODY_ELSE) {
        set_add(kept, (unsigned)descriptor);
        atomic_fetch_add(&kept_count, 1);
        return 0;
    }
    set_remove(own, (unsigned)descriptor);
    return close(descriptor);
}

static int lock_own(int descriptor, struct flock *lock)
{
    struct stat file;
    if (fstat(descriptor, &file) != 0 || open_elsewhere(&file) != SOMEBODY_ELSE)
        return fcntl(descriptor, F_SETLK, lock);
    if (lock->l_type == F_UNLCK)
        return 0; /* it may be the other's by now */
    errno = EAGAIN;
    return -1;
}

static int fcntl_own(int descriptor, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    int result = 0;
    if (command == F_SETLK || command == F_GETLK) {
        struct flock *lock = va_arg(arguments, struct flock *);
        result = command == F_SETLK ? lock_own(descriptor, lock) : fcntl(descriptor, F_GETLK, lock);
    } else {
        const int value = va_arg(arguments, int);
        result = fcntl(descriptor, command, value);
    }
    va_end(arguments);
    return result;
}

static ww_status refuse_if_open_elsewhere(const char *path)
{
    struct stat file;
    if (stat(path, &file) != 0)
        return WW_OK; /* there is nothing that anybody could have open */
    switch (open_elsewhere(&file)) {
    case NOBODY_ELSE:
        return WW_OK;
    case SOMEBODY_ELSE:
        return ww_fail(
            WW_UNSUPPORTED,
            "%s is open in this process otherwise, perhaps by Python's sqlite3, which this store cannot work with here; two "
            "copies of SQLite lose each other's locks on a file. Close it there, or use it in another process",
            path);
    default:
        return ww_fail(WW_UNSUPPORTED,
                       "%s: whether this process has it open already is not known: /proc/self/fd cannot be read", path);
    }
}

ww_status ww_sqlite_use_bundled(void)
{
    FLOAT_GUARD();
    const ww_status status = sqlite_host_ready(); /* of the SQLite that the library is linked with, which is this copy */
    if (status != WW_OK)
        return status;
    sqlite3_vfs *files = sqlite3_vfs_find(NULL);
    if (files->xSetSystemCall(files, "open", (sqlite3_syscall_ptr)open_own) != SQLITE_OK ||
        files->xSetSystemCall(files, "close", (sqlite3_syscall_ptr)close_own) != SQLITE_OK ||
        files->xSetSystemCall(files, "fcntl", (sqlite3_syscall_ptr)fcntl_own) != SQLITE_OK)
        return ww_fail(WW_INTERNAL, "the bundled SQLite %s does not let its files be watched", sqlite3_libversion());
    sqlite_file_check = refuse_if_open_elsewhere;
    return WW_OK;
}
