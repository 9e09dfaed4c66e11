/* Reads bytes from a file or from memory. */
#include "base/files/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

/* One read requests at most this much: Linux reads at most 2 GiB per call, and some systems refuse more. */
enum { READ_BYTES_MAX = 1 << 30, STREAM_BYTES_FIRST = 1 << 20 };

void source_name(char name[SOURCE_NAME_BYTES], const char *path)
{
    const size_t length = strlen(path);
    if (length < SOURCE_NAME_BYTES)
        memcpy(name, path, length + 1);
    else
        snprintf(name, SOURCE_NAME_BYTES, "...%s", path + length - (SOURCE_NAME_BYTES - 4));
}

ww_status source_open(file_source *source, const char *path)
{
    memset(source, 0, sizeof *source);
    source_name(source->name, path);
    /* Opening a pipe would wait for a writer; O_NONBLOCK has no effect on a regular file. */
    source->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (source->descriptor < 0)
        return ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot open the file for reading", source->name);

    struct stat facts;
    ww_status status = WW_OK;
    if (fstat(source->descriptor, &facts) != 0)
        status = ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot get the file's size", source->name);
    else if (S_ISDIR(facts.st_mode))
        status = ww_fail(WW_IO_ERROR, "%s: is a directory, not a file", source->name);
    else if (!S_ISREG(facts.st_mode))
        status = ww_fail(WW_UNSUPPORTED, "%s: is not a regular file; copy its content to one", source->name);
    else
        source->size = facts.st_size;
    if (status != WW_OK)
        source_close(source);
    return status;
}

void source_over(file_source *source, const char *name, const void *bytes, size_t size)
{
    memset(source, 0, sizeof *source);
    source_name(source->name, name);
    source->descriptor = -1;
    source->bytes = bytes ? bytes : (const unsigned char *)"";
    source->size = (int64_t)size;
}

void source_close(file_source *source)
{
    if (!source->bytes && source->descriptor >= 0)
        close(source->descriptor);
    source->descriptor = -1;
    memory_free(source->owned);
    source->owned = NULL;
}

/* ---- streams ------------------------------------------------------------------------------------------------------------- */

/* The length is unknown, so the buffer grows by half as it fills. */
static ww_status read_to_end(file_source *source, int descriptor)
{
    size_t room = STREAM_BYTES_FIRST, size = 0;
    unsigned char *bytes = memory_alloc(room);
    if (!bytes)
        return memory_failed("what comes from a pipe", room);
    for (;;) {
        if (size == room) {
            unsigned char *larger = memory_resize(bytes, room + room / 2);
            if (!larger) {
                memory_free(bytes);
                return memory_failed("what comes from a pipe", room + room / 2);
            }
            bytes = larger;
            room += room / 2;
        }
        const size_t left = room - size;
        const ssize_t got = read(descriptor, bytes + size, left < READ_BYTES_MAX ? left : READ_BYTES_MAX);
        if (got == 0)
            break;
        if (got < 0 && errno != EINTR) {
            const ww_status status = ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot read", source->name);
            memory_free(bytes);
            return status;
        }
        size += got > 0 ? (size_t)got : 0;
    }
    source->owned = bytes;
    source->bytes = bytes;
    source->size = (int64_t)size;
    return WW_OK;
}

ww_status source_open_stream(file_source *source, const char *path)
{
    struct stat facts;
    const bool standard = strcmp(path, "-") == 0;
    if (!standard && (stat(path, &facts) != 0 || S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode)))
        return source_open(source, path);
    memset(source, 0, sizeof *source);
    source_name(source->name, standard ? "standard input" : path);
    source->descriptor = -1;
    const int descriptor = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor < 0)
        return ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot open it for reading", source->name);
    const ww_status status = read_to_end(source, descriptor);
    if (!standard)
        close(descriptor);
    return status;
}

static ww_status ended_early(const file_source *source, int64_t offset)
{
    return source_refuse(source, WW_CORRUPT_FILE, offset, "the file ends here, but had %lld bytes when it was opened",
                         (long long)source->size);
}

ww_status source_read(const file_source *source, int64_t offset, void *to, size_t bytes)
{
    if (source->bytes) {
        if (offset > source->size || bytes > (uint64_t)(source->size - offset))
            return ended_early(source, source->size);
        memcpy(to, source->bytes + offset, bytes);
        return WW_OK;
    }
    char *next = to;
    while (bytes > 0) {
        const ssize_t got = pread(source->descriptor, next, bytes < READ_BYTES_MAX ? bytes : READ_BYTES_MAX, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return ww_fail_errno(WW_IO_ERROR, errno, "%s: offset %lld: cannot read", source->name, (long long)offset);
        if (got == 0)
            return ended_early(source, offset);
        next += got;
        offset += got;
        bytes -= (size_t)got;
    }
    return WW_OK;
}

ww_status source_unchanged(const file_source *source)
{
    struct stat facts;
    if (source->bytes)
        return WW_OK;
    if (fstat(source->descriptor, &facts) != 0)
        return ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot get the file's size", source->name);
    if (facts.st_size != source->size)
        return ww_fail(WW_IO_ERROR, "%s: had %lld bytes, now %lld: the file changed while it was read; try again", source->name,
                       (long long)source->size, (long long)facts.st_size);
    return WW_OK;
}

ww_status(source_refuse)(const file_source *source, ww_status status, int64_t offset, const char *format, ...)
{
    char reason[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return ww_fail(status, "%s: offset %lld: %s", source->name, (long long)offset, reason);
}
