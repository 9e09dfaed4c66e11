/* A matrix over bytes in memory, for the fuzzers of the readers. */
#ifndef WW_FILES_MATRIX_H
#define WW_FILES_MATRIX_H

#include <stdbool.h>
#include <stddef.h>

#include <warpwave/files.h>

#include "base/files/output.h"
#include "base/text.h" /* path_ends_in() */

/* Like ww_matrix_open, for `size` bytes, which the caller keeps for as long as the matrix. `name` gives the format. */
ww_status matrix_open_bytes(const char *name, const void *bytes, size_t size, ww_matrix **matrix);

/* How a matrix is written: as .npy, or as rows, dim and the rows. */
typedef struct matrix_write {
    const void *data; /* NULL: the rows follow by output_write() */
    int64_t rows, dim;
    ww_element element; /* f32 or i32, of `data`; of rows that follow also i8 and u8, and in a .npy f16 and i64 */
    bool npy;
} matrix_write;

/* Writes the header before the rows, and returns its length: for callers that write the rows themselves. Refuses counts that
 * the format cannot hold. */
enum { MATRIX_HEADER_BYTES_MAX = 128 };
ww_status matrix_header_make(const char *path, const matrix_write *matrix, char *header, size_t *bytes);

/* Opens `o` for `path` and writes the matrix, or only the header. The caller calls output_finish(), and output_discard(), also
 * after a failure. */
ww_status matrix_write_begin(output *o, const char *path, const matrix_write *matrix);

#endif
