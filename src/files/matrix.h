/* A matrix over bytes in memory: how the fuzzers reach the readers. */
#ifndef WW_FILES_MATRIX_H
#define WW_FILES_MATRIX_H

#include <stdbool.h>
#include <stddef.h>

#include <warpwave/files.h>

#include "files/output.h"

/* As ww_matrix_open, but of `size` bytes that stay the caller's and must outlive the matrix. The format follows from `name`. */
ww_status matrix_open_bytes(const char *name, const void *bytes, size_t size, ww_matrix **matrix);

/* How a matrix is written: as .npy, or as rows, dim and the rows. */
typedef struct matrix_write {
    const void *data; /* NULL: the rows follow by output_write() */
    int64_t rows, dim;
    ww_element element; /* f32 or i32, of `data`; of rows that follow also i8 and u8, and in a .npy f16 and i64 */
    bool npy;
} matrix_write;

/* Makes what stands before the rows, and returns its bytes: for those who write the rows at their places themselves. Refuses
 * counts that the format does not hold. */
enum { MATRIX_HEADER_BYTES_MAX = 128 };
ww_status matrix_header_make(const char *path, const matrix_write *matrix, char *header, size_t *bytes);

/* Opens `o` on `path` and writes the matrix, or what stands before its rows; output_finish() is left to the caller, and
 * output_discard(), also after a failure. */
ww_status matrix_write_begin(output *o, const char *path, const matrix_write *matrix);

/* True if `path` ends in `ending`, ".npy", whatever the case of its letters, and has something before it. */
bool path_ends_in(const char *path, const char *ending);

#endif
