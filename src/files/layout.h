/* What a reader finds out about a binary file: where its rows lie.
 *
 * A reader looks at the first bytes only, checks what they say against the size of the source, and fills in a layout. From
 * there on every binary format is read by the same code (matrix.c).
 */
#ifndef WW_FILES_LAYOUT_H
#define WW_FILES_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include <warpwave/files.h>

#include "files/source.h"

typedef struct file_layout {
    int64_t rows;
    int64_t dim; /* at least 1 */
    ww_element element;
    int64_t offset;       /* of the first row */
    int64_t prefix_bytes; /* 4: before each row stands its dim, to be checked when it is read; 0: rows are contiguous */
} file_layout;

/* Each looks at `source` and fills in `layout`, or refuses with offset and reason. `element` is what the file's ending says;
 * a .npy says for itself. Block on the disk. */
ww_status npy_layout(const file_source *source, ww_element element, file_layout *layout);
ww_status vecs_layout(const file_source *source, ww_element element, file_layout *layout);
ww_status bin_layout(const file_source *source, ww_element element, file_layout *layout);

/* Refuses a row at `offset` whose stated dim `found` is not `dim`. */
ww_status vecs_row_dim(const file_source *source, int64_t offset, int32_t found, int64_t dim);

/* Checks that rows x dim elements fill the source from layout->offset to its end: no byte is missing, none is left over. */
ww_status layout_fills(const file_layout *layout, const file_source *source);

/* Whether an element can be in a matrix: f32, f64, f16, i8, u8, i32. */
bool element_of_matrix(ww_element element);

/* Convert `count` elements, at any alignment. f64 and i32 round to nearest even. */
void elements_to_f32(ww_element element, const void *from, float *to, int64_t count);

/* The same for i8, u8 and i32. */
void elements_to_i32(ww_element element, const void *from, int32_t *to, int64_t count);

#endif
