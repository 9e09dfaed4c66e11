/* Where a reader's bytes come from: a file, or memory (so that a fuzzer needs no files).
 *
 * A file is read with pread into the caller's memory, not through a memory map (map.h has the exception): if a file is cut
 * short while it is open, reading fails with a message, while a map would end the process with SIGBUS. The size is read once,
 * when the file is opened, and every count in the bytes is checked against it.
 */
#ifndef WW_BASE_FILES_SOURCE_H
#define WW_BASE_FILES_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the formats are little-endian and are read without conversion");

enum { SOURCE_NAME_BYTES = 256 };

typedef struct file_source {
    char name[SOURCE_NAME_BYTES]; /* for messages; the end of the path if it is longer */
    int descriptor;               /* -1 for memory */
    const unsigned char *bytes;   /* NULL for a file */
    int64_t size;
    unsigned char *owned; /* the bytes, if they were read from a stream */
} file_source;

/* Opens the regular file at `path`. Refuses directories, pipes and devices. Blocks on the disk. Close it with source_close().
 */
ww_status source_open(file_source *source, const char *path);

/* Like source_open(), but reads anything other than a regular file to its end into memory: a pipe, a terminal, and "-", which
 * is standard input. Refuses directories. Blocks until the writer has closed it. */
ww_status source_open_stream(file_source *source, const char *path);

/* Makes a source over `size` bytes of memory, which the caller keeps. */
void source_over(file_source *source, const char *name, const void *bytes, size_t size);

/* Also accepts a source that was never opened or is memory. */
void source_close(file_source *source);

/* Reads exactly `bytes` from `offset` on. Returns WW_CORRUPT_FILE if the file has become shorter. Any number of threads may
 * read. */
ww_status source_read(const file_source *source, int64_t offset, void *to, size_t bytes);

/* Returns WW_IO_ERROR if the file's size has changed since it was opened. */
ww_status source_unchanged(const file_source *source);

/* Fails with "NAME: offset N: ..."; `status` is WW_CORRUPT_FILE or WW_UNSUPPORTED. */
__attribute__((format(printf, 4, 5))) ww_status source_refuse(const file_source *source, ww_status status, int64_t offset,
                                                              const char *format, ...);

#ifdef __clang_analyzer__ /* as in base/status.h */
#define source_refuse(source, status, ...) ((void)(source_refuse)(source, status, __VA_ARGS__), (status))
#endif

/* Writes the path for messages: all of it, or "..." and its end. */
void source_name(char name[SOURCE_NAME_BYTES], const char *path);

#endif
