/* What every fuzz target does with its input: opens it as a file with a given name, and if that works reads it in every way and
 * compares the results. A disagreement aborts, which reports it to the fuzzer.
 */
#ifndef TESTS_FUZZ_READING_H
#define TESTS_FUZZ_READING_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <warpwave/files.h>

#include "files/matrix.h"

/* A memory block of exactly this size, so that the address sanitizer sees one byte too many. */
static inline void *reading_block(int64_t count)
{
    void *block = malloc(count > 0 ? (size_t)count * sizeof(float) : 1);
    if (!block)
        abort();
    return block;
}

/* One row at a time, from the last to the first, must give the same as reading all at once. */
static inline void reading_by_row(const ww_matrix *matrix, int64_t rows, int64_t dim, const float *all)
{
    float *row = reading_block(dim);
    for (int64_t i = rows - 1; i >= 0; i--)
        if (ww_matrix_read_f32(matrix, i, 1, row) != WW_OK || memcmp(row, all + i * dim, (size_t)dim * sizeof *row) != 0)
            abort();
    free(row);
}

static inline void reading_try(const char *name, const uint8_t *bytes, size_t size)
{
    ww_matrix *matrix = NULL;
    ww_matrix_info info = ww_matrix_info_default();
    if (matrix_open_bytes(name, bytes, size, &matrix) != WW_OK) {
        if (matrix || strncmp(ww_error_message(), name, strlen(name)) != 0)
            abort();
        return;
    }
    if (ww_matrix_describe(matrix, &info) != WW_OK || info.rows < 0 || info.dim < 1 || !ww_element_name(info.element))
        abort();
    /* No format stores an element in less than a byte, and no text in less than a digit; so this number is small. */
    if (info.rows > 0 && info.dim > (int64_t)size / info.rows)
        abort();
    const int64_t count = info.rows > 0 ? info.rows * info.dim : 0;
    float *all = reading_block(count);
    int32_t *integers = reading_block(count);
    const float *view = ww_matrix_view_f32(matrix);
    const ww_status status = ww_matrix_read_f32(matrix, 0, info.rows, all);
    if (status == WW_OK && count > 0) {
        reading_by_row(matrix, info.rows, info.dim, all);
        if (view && memcmp(view, all, (size_t)count * sizeof *all) != 0)
            abort();
    }
    if (status != WW_OK && status != WW_CORRUPT_FILE)
        abort();
    const ww_status integer_status = ww_matrix_read_i32(matrix, 0, info.rows, integers);
    if (integer_status != status && integer_status != WW_UNSUPPORTED)
        abort();
    for (int64_t i = 0; integer_status == WW_OK && i < count; i++)
        if ((float)integers[i] != all[i])
            abort();
    if (ww_matrix_read_f32(matrix, 0, info.rows + 1, all) != WW_OUT_OF_RANGE)
        abort();
    free(all);
    free(integers);
    ww_matrix_close(matrix);
}

#endif
