/* A directory for one test, files in it, and the process's open files: for tests that use the disk. */
#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H

#include <stddef.h>

enum { SCRATCH_PATH_BYTES = 4096 };

/* cmocka set-up and tear-down: create an empty directory; remove it with all its contents. */
int scratch_setup(void **state);
int scratch_teardown(void **state);

/* The path of `name` in the directory, in one of a few buffers that take turns. */
const char *scratch_path(const char *name);

/* Writes a file in the directory, or reads a whole file (NUL added, free() it); returns its path or content. */
const char *scratch_write(const char *name, const void *bytes, size_t size);
char *scratch_content(const char *path, size_t *size);

/* How many entries the directory has, and how many files this process has open. */
int scratch_entries(void);
int scratch_open_files(void);

/* Returns the reading end of a pipe that has a file's bytes, at most 64 KiB, and writes its path to `name`. Close it. */
int scratch_pipe(const char *path, char name[32]);

#endif
