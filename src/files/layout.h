/* The layout of a binary file: where its rows are.
 *
 * A reader looks only at the first bytes, checks them against the size of the source, and fills in a layout. The rest is the
 * same code for every binary format (matrix.c).
 */
#ifndef WW_FILES_LAYOUT_H
#define WW_FILES_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include <warpwave/files.h>

#include "base/files/source.h"

typedef struct file_layout {
    int64_t rows;
    int64_t dim; /* at least 1 */
    ww_element element;
    int64_t offset;       /* of the first row */
    int64_t prefix_bytes; /* 4: each row starts with its dim, which is checked when the row is read; 0: rows are contiguous */
} file_layout;

/* Each looks at `source` and fills in `layout`, or refuses the file with an offset and a reason. `element` is the type that the
 * file name's ending gives; a .npy has its own. Block on the disk. */
ww_status npy_layout(const file_source *source, ww_element element, file_layout *layout);
ww_status vecs_layout(const file_source *source, ww_element element, file_layout *layout);
ww_status bin_layout(const file_source *source, ww_element element, file_layout *layout);

/* Refuses a row at `offset` whose dim `found` is not `dim`. */
ww_status vecs_row_dim(const file_source *source, int64_t offset, int32_t found, int64_t dim);

/* Checks that rows x dim elements fill the source exactly, from layout->offset to its end. */
ww_status layout_fills(const file_layout *layout, const file_source *source);

/* Returns true if an element can be in a matrix: f32, f64, f16, i8, u8, i32. */
bool element_of_matrix(ww_element element);

/* Convert `count` elements, at any alignment. f64 and i32 round to nearest even. */
void elements_to_f32(ww_element element, const void *from, float *to, int64_t count);

/* The same for i8, u8 and i32. */
void elements_to_i32(ww_element element, const void *from, int32_t *to, int64_t count);

#endif
