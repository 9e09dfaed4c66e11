/* Files of vectors: .npy, .fvecs/.bvecs/.ivecs, the .fbin family, and CSV.
 *
 * A matrix is an open file seen as rows of numbers. The format follows from the file's ending. Readers trust nothing: every
 * count is checked against the file's size before it is used, and an error names the file, the offset and the reason.
 */
#ifndef WARPWAVE_FILES_H
#define WARPWAVE_FILES_H

#include <stddef.h>
#include <stdint.h>

#include <warpwave/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What elements are. Those up to i32 can be elements of a matrix; all of them can be elements of an array (arrays.h). */
typedef enum ww_element {
    WW_ELEMENT_UNKNOWN = -1,
    WW_ELEMENT_F32 = 0,
    WW_ELEMENT_F64 = 1,
    WW_ELEMENT_F16 = 2,
    WW_ELEMENT_I8 = 3,
    WW_ELEMENT_U8 = 4,
    WW_ELEMENT_I32 = 5,
    WW_ELEMENT_BF16 = 6,
    WW_ELEMENT_I16 = 7,
    WW_ELEMENT_I64 = 8,
    WW_ELEMENT_U16 = 9,
    WW_ELEMENT_U32 = 10,
    WW_ELEMENT_U64 = 11,
    WW_ELEMENT_BOOL = 12, /* a byte, 0 or 1 */
    WW_ELEMENT_F8E4M3 = 13,
    WW_ELEMENT_F8E5M2 = 14
} ww_element;

typedef struct ww_matrix ww_matrix;

typedef struct ww_matrix_info {
    size_t struct_size;
    int64_t rows;
    int64_t dim;
    ww_element element; /* as stored */
} ww_matrix_info;

/* An empty struct to be filled in; device.h says how ..._default() and ..._init() differ. */
WW_API ww_status ww_matrix_info_init(void *value, size_t struct_size);
static inline ww_matrix_info ww_matrix_info_default(void)
{
    ww_matrix_info value;
    ww_matrix_info_init(&value, sizeof value);
    return value;
}

/* Take an element type; return "f32", "u8", ..., or NULL, and its bytes, or 0, for anything else. */
WW_API const char *ww_element_name(ww_element element);
WW_API int64_t ww_element_bytes(ww_element element);

/* How a file is opened; begin with ww_matrix_options_default(). */
typedef struct ww_matrix_options {
    size_t struct_size;
    const char *format;    /* "npy", "fbin", "csv", ...: the format if the file's name does not show it; NULL: none */
    const char *id_column; /* of CSV: the name of the column, or its number from 1 on, that holds the rows' ids; NULL: none */
    int32_t streams; /* not 0: "-" is standard input, and a file that is not regular (a pipe) is read to its end into memory */
} ww_matrix_options;

/* No format, no ids, files only. */
WW_API ww_status ww_matrix_options_init(void *value, size_t struct_size);
static inline ww_matrix_options ww_matrix_options_default(void)
{
    ww_matrix_options value;
    ww_matrix_options_init(&value, sizeof value);
    return value;
}

/* Opens the file at `path` for reading and returns it in `matrix`. Refuses an unknown ending and anything malformed. Blocks on
 * the disk. */
WW_API ww_status ww_matrix_open(const char *path, ww_matrix **matrix);

/* The same with options; NULL: none. Refuses an unknown format, and an id column if the file is not CSV or has no such column.
 */
WW_API ww_status ww_matrix_open_with(const char *path, const ww_matrix_options *options, ww_matrix **matrix);

/* Closes it. Accepts NULL. */
WW_API void ww_matrix_close(ww_matrix *matrix);

/* Describes an open matrix into `info`. Refuses NULL. Does not block. */
WW_API ww_status ww_matrix_describe(const ww_matrix *matrix, ww_matrix_info *info);

/* Reads `count` rows from row `first` on into `out`, count x dim, converted to the nearest f32, ties to even. Refuses a range
 * outside the matrix. Blocks on the disk. Any number of threads may read. */
WW_API ww_status ww_matrix_read_f32(const ww_matrix *matrix, int64_t first, int64_t count, float *out);

/* The same for integers, if the matrix is of i8, u8 or i32; otherwise WW_UNSUPPORTED. */
WW_API ww_status ww_matrix_read_i32(const ww_matrix *matrix, int64_t first, int64_t count, int32_t *out);

/* The same without a conversion: count x dim elements of ww_matrix_info.element, as ww_rows.elements takes them. CSV is f32. */
WW_API ww_status ww_matrix_read_elements(const ww_matrix *matrix, int64_t first, int64_t count, void *out);

/* Returns the id of a row from the id column, valid until close; NULL if there is no such column or no such row. */
WW_API const char *ww_matrix_id(const ww_matrix *matrix, int64_t row);

/* Checks what ww_matrix_read_f32() read: WW_INVALID_ARGUMENT if a number is not finite, and the message names the file, the
 * row and the column (both from 0). Does not block. */
WW_API ww_status ww_matrix_check_finite(const ww_matrix *matrix, int64_t first, int64_t count, const float *values);

/* Returns all rows in memory, if the file has them as f32 one after the other (.npy, .fbin, CSV); otherwise NULL. The first
 * call reads them, and they stay in memory until close. NULL with a message if that fails, for lack of memory or because the
 * file was cut short. Blocks on the disk the first time. Any number of threads may call it. */
WW_API const float *ww_matrix_view_f32(const ww_matrix *matrix);

/* Write rows x dim numbers to `path`, format by its ending: .npy or .fbin for f32, .npy or .ibin for i32. An existing file is
 * replaced only when the new one is whole. Block on the disk. */
WW_API ww_status ww_matrix_write_f32(const char *path, const float *data, int64_t rows, int64_t dim);
WW_API ww_status ww_matrix_write_i32(const char *path, const int32_t *data, int64_t rows, int64_t dim);

#ifdef __cplusplus
}
#endif

#endif
