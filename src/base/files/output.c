/* Writes a file completely or not at all. */
#include "base/files/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/integers.h"
#include "base/text.h"

enum { WRITE_BYTES_MAX = 1 << 30, TEMPORARY_NAME_BYTES = 64, TEMPORARY_TRIES = 1000 };

static ww_status output_failed(const output *o, const char *what)
{
    return ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot %s", o->name, what);
}

/* Opens a target that is written directly. For a pipe, it waits for a reader. */
static ww_status open_direct(output *o)
{
    o->direct = true;
    do {
        o->descriptor = strcmp(o->target, OUTPUT_STDOUT) == 0 ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
                                                              : open(o->target, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    } while (o->descriptor < 0 && errno == EINTR);
    return o->descriptor >= 0 ? WW_OK : output_failed(o, "open it for writing");
}

/* Follows links, so that a link stays and its target is replaced. Refuses directories and disks. */
static ww_status find_target(output *o, const char *path, mode_t *mode)
{
    struct stat facts;
    *mode = 0;
    source_name(o->name, path);
    if (strlen(path) + TEMPORARY_NAME_BYTES >= PATH_MAX)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the path is too long", o->name);
    text_copy(o->target, sizeof o->target, path);
    if (strcmp(path, OUTPUT_STDOUT) == 0) {
        o->direct = true;
        return WW_OK;
    }
    if (lstat(path, &facts) == 0 && S_ISLNK(facts.st_mode) && !realpath(path, o->target))
        return output_failed(o, "follow the link");
    if (strlen(o->target) + TEMPORARY_NAME_BYTES >= PATH_MAX)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the path is too long", o->name);
    if (stat(o->target, &facts) != 0)
        return errno == ENOENT ? WW_OK : output_failed(o, "stat the file");
    if (S_ISFIFO(facts.st_mode) || S_ISCHR(facts.st_mode)) {
        o->direct = true;
        return WW_OK;
    }
    if (!S_ISREG(facts.st_mode))
        return ww_fail(WW_IO_ERROR, "%s: exists and is not a regular file; it was not replaced", o->name);
    *mode = facts.st_mode & 0777;
    return WW_OK;
}

/* The new file has a short name in the target's directory: a name made from the target's could be too long. */
ww_status output_open(output *o, const char *path)
{
    static atomic_uint serial; /* so that two threads do not try the same name */
    mode_t mode;
    o->descriptor = -1;
    o->failed = false;
    o->direct = false;
    o->temporary[0] = '\0';
    const ww_status status = find_target(o, path, &mode);
    if (status != WW_OK || o->direct)
        return status != WW_OK ? status : open_direct(o);
    const char *slash = strrchr(o->target, '/');
    const size_t directory = slash ? (size_t)(slash - o->target) + 1 : 0;
    memcpy(o->temporary, o->target, directory);
    for (int tries = 0; o->descriptor < 0 && tries < TEMPORARY_TRIES; tries++) {
        snprintf(o->temporary + directory, TEMPORARY_NAME_BYTES, ".warpwave-%ld-%u.tmp", (long)getpid(),
                 atomic_fetch_add(&serial, 1));
        /* If only the owner may read the old file, others must not be able to read the new one, not even at first. */
        o->descriptor =
            open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode != 0 ? S_IRUSR | S_IWUSR : 0666);
        if (o->descriptor < 0 && errno != EEXIST && errno != EINTR)
            break;
    }
    if (o->descriptor < 0) {
        const ww_status failed = output_failed(o, "create a new file in its directory");
        o->temporary[0] = '\0';
        return failed;
    }
    if (mode != 0 && fchmod(o->descriptor, mode) != 0)
        return output_failed(o, "give the new file the permissions of the old one");
    return WW_OK;
}

static ww_status fail_again(const output *o)
{
    return ww_fail(WW_IO_ERROR, "%s: an earlier write failed, so the file was not written", o->name);
}

/* Writing to a pipe without a reader, or to a file that has reached RLIMIT_FSIZE, would end the process by a signal, unless it
 * ignores that signal. The library returns a status instead, so this thread blocks both signals during the write and removes
 * those that the write has raised. A signal that was pending before stays pending. */
static ssize_t write_quietly(int descriptor, const void *from, size_t bytes)
{
    sigset_t held, before, pending, raised;
    sigemptyset(&held);
    sigaddset(&held, SIGPIPE);
    sigaddset(&held, SIGXFSZ);
    sigpending(&pending);
    const int masked = pthread_sigmask(SIG_BLOCK, &held, &before);
    const ssize_t put = write(descriptor, from, bytes);
    const int error = errno;
    const int number = error == EPIPE ? SIGPIPE : SIGXFSZ;
    sigemptyset(&raised);
    sigaddset(&raised, number);
    if (put < 0 && (error == EPIPE || error == EFBIG) && sigismember(&pending, number) == 0)
        while (sigtimedwait(&raised, NULL, &(struct timespec){0}) < 0 && errno == EINTR)
            continue;
    if (masked == 0)
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return put;
}

ww_status output_write(output *o, const void *from, size_t bytes)
{
    const char *next = from;
    if (o->failed)
        return fail_again(o);
    while (bytes > 0) {
        const ssize_t put = write_quietly(o->descriptor, next, min_size(bytes, WRITE_BYTES_MAX));
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0) {
            o->failed = true;
            return output_failed(o, "write");
        }
        next += put;
        bytes -= (size_t)put;
    }
    return WW_OK;
}

/* After a crash of the machine, the directory may still have the old name, which stands for a complete file, too. So it is no
 * failure if a system cannot sync a directory. */
static void sync_directory(const output *o)
{
    char directory[PATH_MAX];
    const char *slash = strrchr(o->target, '/');
    const size_t length = slash ? (size_t)(slash - o->target) + 1 : 0;
    memcpy(directory, o->target, length);
    text_copy(directory + length, sizeof directory - length, length ? "" : ".");
    const int descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor >= 0) {
        (void)fsync(descriptor);
        close(descriptor);
    }
}

ww_status output_settle(output *o)
{
    if (o->failed)
        return fail_again(o);
    if (o->descriptor < 0)
        return WW_OK;
    if (!o->direct && fsync(o->descriptor) != 0) {
        o->failed = true;
        return output_failed(o, "flush the new file to the disk");
    }
    const int descriptor = o->descriptor;
    o->descriptor = -1; /* it counts as closed, whatever close() returned */
    o->failed = close(descriptor) != 0;
    return o->failed ? output_failed(o, "close the new file") : WW_OK;
}

ww_status output_finish(output *o)
{
    const ww_status status = output_settle(o);
    if (status != WW_OK || o->direct)
        return status;
    if (rename(o->temporary, o->target) != 0)
        return output_failed(o, "rename the new file");
    o->temporary[0] = '\0';
    sync_directory(o);
    return WW_OK;
}

void output_discard(output *o)
{
    if (o->descriptor >= 0)
        close(o->descriptor);
    if (o->temporary[0] != '\0')
        unlink(o->temporary);
}
