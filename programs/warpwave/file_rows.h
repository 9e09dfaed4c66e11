/* Adds rows of a file to a collection: unconverted if the file has the collection's type, else as f32. Everything is
 * inline, on public calls, for the commands that add files. */
#ifndef CLI_FILE_ROWS_H
#define CLI_FILE_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include <warpwave/files.h>
#include <warpwave/vectors.h>

typedef struct file_rows {
    const ww_matrix *file;
    ww_vector_type type; /* of the collection */
    void *room;          /* memory for the rows that are read at once, as f32 */
    bool as_stored;      /* the rows that were read last are elements of that type */
} file_rows;

static inline ww_element row_element(ww_vector_type type)
{
    static const ww_element elements[] = {[WW_VECTOR_F32] = WW_ELEMENT_F32,
                                          [WW_VECTOR_F16] = WW_ELEMENT_F16,
                                          [WW_VECTOR_BF16] = WW_ELEMENT_BF16,
                                          [WW_VECTOR_I8] = WW_ELEMENT_I8,
                                          [WW_VECTOR_U8] = WW_ELEMENT_U8};
    return elements[type];
}

static inline bool halves_are_finite(const uint16_t *halves, int64_t count)
{
    bool finite = true;
    for (int64_t i = 0; i < count; i++)
        finite &= (halves[i] & 0x7c00) != 0x7c00;
    return finite;
}

/* Reads `count` rows, from row `first` on. Refuses a number that is not finite with WW_INVALID_ARGUMENT and its place in the
 * file. */
static inline ww_status file_rows_read(file_rows *rows, int64_t first, int64_t count)
{
    ww_matrix_info info = ww_matrix_info_default();
    ww_status status = ww_matrix_describe(rows->file, &info);
    rows->as_stored = status == WW_OK && rows->type != WW_VECTOR_F32 && info.element == row_element(rows->type);
    if (status == WW_OK && rows->as_stored) {
        status = ww_matrix_read_elements(rows->file, first, count, rows->room);
        if (status != WW_OK || info.element != WW_ELEMENT_F16 || halves_are_finite(rows->room, count * info.dim))
            return status;
        rows->as_stored = false; /* reading again fails, with the place of the number that is not finite */
    }
    if (status == WW_OK)
        status = ww_matrix_read_f32(rows->file, first, count, rows->room);
    return status == WW_OK ? ww_matrix_check_finite(rows->file, first, count, rows->room) : status;
}

/* Passes the rows that were read last to the collection. */
static inline void file_rows_give(const file_rows *from, ww_rows *rows)
{
    rows->vectors = from->as_stored ? NULL : from->room;
    rows->elements = from->as_stored ? from->room : NULL;
    rows->type = from->type;
}

#endif
