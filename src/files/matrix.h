/* A matrix over bytes in memory: how the fuzzers reach the readers. */
#ifndef WW_FILES_MATRIX_H
#define WW_FILES_MATRIX_H

#include <stdbool.h>
#include <stddef.h>

#include <warpwave/files.h>

/* As ww_matrix_open, but of `size` bytes that stay the caller's and must outlive the matrix. The format follows from `name`. */
ww_status matrix_open_bytes(const char *name, const void *bytes, size_t size, ww_matrix **matrix);

/* True if `path` ends in `ending`, ".npy", whatever the case of its letters, and has something before it. */
bool path_ends_in(const char *path, const char *ending);

#endif
