/* Writing a matrix: whole or not at all.
 *
 * The bytes go to a new file beside the target, are brought to the disk, and only then does the new file take the target's
 * name. Whoever reads the target meanwhile, or after a crash, finds the old file or the new one and nothing between. On failure
 * the new file is removed and the target is as it was.
 */
#include <warpwave/files.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "files/layout.h"
#include "files/matrix.h"
#include "files/source.h"

enum { WRITE_BYTES_MAX = 1 << 30, TEMPORARY_NAME_BYTES = 64, TEMPORARY_TRIES = 1000, NPY_HEADER_BYTES = 128 };

typedef struct output {
    char name[SOURCE_NAME_BYTES]; /* for messages */
    char target[PATH_MAX];
    char temporary[PATH_MAX]; /* "" while there is none */
    int descriptor;
} output;

static ww_status output_failed(const output *o, const char *what)
{
    return ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot %s", o->name, what);
}

/* A link is followed, so that it stays a link and what it names is replaced; anything but a file is left alone. */
static ww_status find_target(output *o, const char *path, mode_t *mode)
{
    struct stat facts;
    *mode = 0;
    source_name(o->name, path);
    if (strlen(path) + TEMPORARY_NAME_BYTES >= PATH_MAX)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the path is too long", o->name);
    text_copy(o->target, sizeof o->target, path);
    if (lstat(path, &facts) == 0 && S_ISLNK(facts.st_mode) && !realpath(path, o->target))
        return output_failed(o, "follow the link");
    if (strlen(o->target) + TEMPORARY_NAME_BYTES >= PATH_MAX)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the path is too long", o->name);
    if (stat(o->target, &facts) != 0)
        return errno == ENOENT ? WW_OK : output_failed(o, "look at the file");
    if (!S_ISREG(facts.st_mode))
        return ww_fail(WW_IO_ERROR, "%s: is there and is not a regular file, so it is not replaced", o->name);
    *mode = facts.st_mode & 0777;
    return WW_OK;
}

/* The new file has a short name of its own in the target's directory: a name made from the target's could be too long. */
static ww_status output_open(output *o, const char *path)
{
    static atomic_uint serial;
    mode_t mode;
    o->descriptor = -1;
    o->temporary[0] = '\0';
    const ww_status status = find_target(o, path, &mode);
    if (status != WW_OK)
        return status;
    const char *slash = strrchr(o->target, '/');
    const size_t directory = slash ? (size_t)(slash - o->target) + 1 : 0;
    memcpy(o->temporary, o->target, directory);
    for (int tries = 0; o->descriptor < 0 && tries < TEMPORARY_TRIES; tries++) {
        snprintf(o->temporary + directory, TEMPORARY_NAME_BYTES, ".warpwave-%ld-%u.tmp", (long)getpid(),
                 atomic_fetch_add(&serial, 1));
        o->descriptor = open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (o->descriptor < 0 && errno != EEXIST && errno != EINTR)
            break;
    }
    if (o->descriptor < 0) {
        const ww_status failed = output_failed(o, "make a new file in its directory");
        o->temporary[0] = '\0';
        return failed;
    }
    if (mode != 0 && fchmod(o->descriptor, mode) != 0)
        return output_failed(o, "give the new file the permissions of the old one");
    return WW_OK;
}

static ww_status output_write(output *o, const void *from, size_t bytes)
{
    const char *next = from;
    while (bytes > 0) {
        const ssize_t put = write(o->descriptor, next, bytes < WRITE_BYTES_MAX ? bytes : WRITE_BYTES_MAX);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return output_failed(o, "write");
        next += put;
        bytes -= (size_t)put;
    }
    return WW_OK;
}

/* After a crash of the machine the directory may still have the old name; that is either of the two whole files, so a system
 * that cannot bring a directory to the disk is no failure. */
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

static ww_status output_finish(output *o)
{
    if (fsync(o->descriptor) != 0)
        return output_failed(o, "bring the new file to the disk");
    const int descriptor = o->descriptor;
    o->descriptor = -1; /* whatever close says, it is closed */
    if (close(descriptor) != 0)
        return output_failed(o, "close the new file");
    if (rename(o->temporary, o->target) != 0)
        return output_failed(o, "put the new file in its place");
    o->temporary[0] = '\0';
    sync_directory(o);
    return WW_OK;
}

/* Removes what was begun and not finished. */
static void output_discard(output *o)
{
    if (o->descriptor >= 0)
        close(o->descriptor);
    if (o->temporary[0] != '\0')
        unlink(o->temporary);
}

/* ---- formats ------------------------------------------------------------------------------------------------------------- */

/* Both headers leave the elements aligned: 8 bytes, and 128, which NumPy wants to be a multiple of 64. */
static size_t make_bin_header(char *header, int64_t rows, int64_t dim)
{
    const uint32_t counts[2] = {(uint32_t)rows, (uint32_t)dim};
    memcpy(header, counts, sizeof counts);
    return sizeof counts;
}

static size_t make_npy_header(char *header, const char *type, int64_t rows, int64_t dim)
{
    const uint16_t length = NPY_HEADER_BYTES - 10;
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    memcpy(header + 8, &length, sizeof length);
    char *text = header + 10;
    /* At most 96 characters: 58 and two counts of up to 19. */
    const int used = snprintf(text, length, "{'descr': '%s', 'fortran_order': False, 'shape': (%lld, %lld), }", type,
                              (long long)rows, (long long)dim);
    memset(text + used, ' ', length - (size_t)used);
    text[length - 1] = '\n';
    return NPY_HEADER_BYTES;
}

static ww_status check(const char *path, const void *data, int64_t rows, int64_t dim, bool bin)
{
    char name[SOURCE_NAME_BYTES];
    int64_t elements, bytes;
    source_name(name, path);
    if (rows < 0 || dim < 1 || __builtin_mul_overflow(rows, dim, &elements) || __builtin_mul_overflow(elements, 4, &bytes))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %lld rows of dim %lld cannot be written; rows is at least 0, dim at least 1",
                       name, (long long)rows, (long long)dim);
    if (!data && elements > 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: data must not be NULL", name);
    if (bin && (rows > UINT32_MAX || dim > UINT32_MAX))
        return ww_fail(WW_UNSUPPORTED, "%s: %lld rows of dim %lld do not fit the format's 32-bit counts; write a .npy", name,
                       (long long)rows, (long long)dim);
    return WW_OK;
}

static ww_status write_matrix(const char *path, const void *data, int64_t rows, int64_t dim, ww_element element)
{
    const bool f32 = element == WW_ELEMENT_F32;
    if (!path)
        return ww_fail(WW_INVALID_ARGUMENT, "writing a matrix: path must not be NULL");
    const bool npy = path_ends_in(path, ".npy");
    if (!npy && !path_ends_in(path, f32 ? ".fbin" : ".ibin") && !path_ends_in(path, f32 ? ".f32bin" : ".i32bin")) {
        char name[SOURCE_NAME_BYTES];
        source_name(name, path);
        return ww_fail(WW_UNSUPPORTED, "%s: %s is written to a name that ends in .npy, %s", name, ww_element_name(element),
                       f32 ? ".fbin or .f32bin" : ".ibin or .i32bin");
    }
    ww_status status = check(path, data, rows, dim, !npy);
    if (status != WW_OK)
        return status;

    char header[NPY_HEADER_BYTES];
    const size_t header_bytes =
        npy ? make_npy_header(header, f32 ? "<f4" : "<i4", rows, dim) : make_bin_header(header, rows, dim);
    output *o = memory_take(sizeof *o);
    if (!o)
        return memory_failed("writing a file of vectors", sizeof *o);
    status = output_open(o, path);
    if (status == WW_OK)
        status = output_write(o, header, header_bytes);
    if (status == WW_OK)
        status = output_write(o, data, (size_t)(rows * dim * 4));
    if (status == WW_OK)
        status = output_finish(o);
    output_discard(o);
    memory_give(o);
    return status;
}

ww_status ww_matrix_write_f32(const char *path, const float *data, int64_t rows, int64_t dim)
{
    return write_matrix(path, data, rows, dim, WW_ELEMENT_F32);
}

ww_status ww_matrix_write_i32(const char *path, const int32_t *data, int64_t rows, int64_t dim)
{
    return write_matrix(path, data, rows, dim, WW_ELEMENT_I32);
}
