/* A file of vectors as a matrix: the file name's ending gives the format.
 *
 * A binary format is a layout over a source, and one loop reads all of them through a buffer on the stack. It allocates
 * nothing, so reading fails only if the file does. A CSV is parsed when it is opened, and then is in memory.
 */
#include <warpwave/files.h>

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/files/source.h"
#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/structs.h"
#include "files/copies.h"
#include "files/csv.h"
#include "files/layout.h"
#include "files/matrix.h"

enum { PIECE_BYTES = 32768 };

struct ww_matrix {
    file_source source;
    file_layout layout;
    csv_table table;    /* for a CSV: its rows */
    file_copies copies; /* one range: all rows of another file, if a caller has requested a pointer to them */
};

typedef struct file_format {
    const char *ending;
    ww_status (*read_layout)(const file_source *source, ww_element element, file_layout *layout); /* NULL: text */
    ww_element element;
} file_format;

static const file_format formats[] = {
    {".npy", npy_layout, WW_ELEMENT_F32},    {".fvecs", vecs_layout, WW_ELEMENT_F32}, {".bvecs", vecs_layout, WW_ELEMENT_U8},
    {".ivecs", vecs_layout, WW_ELEMENT_I32}, {".fbin", bin_layout, WW_ELEMENT_F32},   {".f32bin", bin_layout, WW_ELEMENT_F32},
    {".f16bin", bin_layout, WW_ELEMENT_F16}, {".hbin", bin_layout, WW_ELEMENT_F16},   {".u8bin", bin_layout, WW_ELEMENT_U8},
    {".bbin", bin_layout, WW_ELEMENT_U8},    {".i8bin", bin_layout, WW_ELEMENT_I8},   {".ibin", bin_layout, WW_ELEMENT_I32},
    {".i32bin", bin_layout, WW_ELEMENT_I32}, {".csv", NULL, WW_ELEMENT_F32},          {".tsv", NULL, WW_ELEMENT_F32},
};

static const file_format *format_of(const char *path)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (path_ends_in(path, formats[i].ending))
            return &formats[i];
    return NULL;
}

/* The ending of the name decides. The caller's format is used if the name has no known ending. */
static ww_status find_format(const char *path, const char *said, const file_format **found)
{
    char name[SOURCE_NAME_BYTES];
    *found = format_of(path);
    for (size_t i = 0; !*found && said && i < sizeof formats / sizeof *formats; i++)
        if (strcasecmp(said + (said[0] == '.'), formats[i].ending + 1) == 0)
            *found = &formats[i];
    if (*found)
        return WW_OK;
    source_name(name, path);
    return ww_fail(said ? WW_INVALID_ARGUMENT : WW_UNSUPPORTED,
                   "%s: unknown format%s%.60s%s; %s .npy .fvecs .bvecs .ivecs .fbin .f32bin .f16bin .hbin .u8bin .bbin .i8bin "
                   ".ibin .i32bin .csv or .tsv",
                   name, said ? " '" : "", said ? said : "", said ? "'" : "", said ? "it must be" : "the name must end in");
}

static ww_status read_content(ww_matrix *m, const file_format *format, const char *id_column)
{
    if (id_column && format->read_layout)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: only CSV has a column of ids", m->source.name);
    if (format->read_layout)
        return format->read_layout(&m->source, format->element, &m->layout);
    m->layout.element = WW_ELEMENT_F32;
    const ww_status status = csv_read(&m->source, id_column, &m->table);
    m->layout.rows = m->table.rows;
    m->layout.dim = m->table.dim;
    source_close(&m->source);
    m->source.bytes = NULL; /* they may have been those of the stream */
    return status;
}

/* Opens `path`, or bytes in memory if there are any. */
static ww_status open_matrix(const char *path, const file_source *bytes, const ww_matrix_options *options, ww_matrix **matrix)
{
    const file_format *format = NULL;
    ww_status status = find_format(path, options->format, &format);
    if (status != WW_OK)
        return status;
    ww_matrix *m = memory_alloc_zeroed(1, sizeof *m);
    if (!m)
        return memory_failed("opening a file of vectors", sizeof *m);
    copies_create(&m->copies, 1);
    if (bytes)
        m->source = *bytes;
    else
        status = options->streams ? source_open_stream(&m->source, path) : source_open(&m->source, path);
    if (status == WW_OK)
        status = read_content(m, format, options->id_column);
    if (status == WW_OK)
        *matrix = m;
    else
        ww_matrix_close(m);
    return status;
}

STRUCT_INIT(ww_matrix_options, {0})

ww_status ww_matrix_open_with(const char *path, const ww_matrix_options *options, ww_matrix **matrix)
{
    FLOAT_GUARD();
    ww_matrix_options ours = {.struct_size = sizeof ours};
    if (!path || !matrix)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_matrix_open_with: %s is NULL", path ? "matrix" : "path");
    const ww_status status =
        options ? struct_read(&ours, sizeof ours, options, "ww_matrix_open_with", "ww_matrix_options") : WW_OK;
    return status == WW_OK ? open_matrix(path, NULL, &ours, matrix) : status;
}

ww_status ww_matrix_open(const char *path, ww_matrix **matrix)
{
    FLOAT_GUARD();
    const ww_matrix_options none = {.struct_size = sizeof none};
    if (!path || !matrix)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_matrix_open: path and matrix must not be NULL");
    return open_matrix(path, NULL, &none, matrix);
}

ww_status matrix_open_bytes(const char *name, const void *bytes, size_t size, ww_matrix **matrix)
{
    const ww_matrix_options none = {.struct_size = sizeof none};
    file_source source;
    source_over(&source, name, bytes, size);
    return open_matrix(name, &source, &none, matrix);
}

const char *ww_matrix_id(const ww_matrix *matrix, int64_t row)
{
    if (!matrix || !matrix->table.ids || row < 0 || row >= matrix->layout.rows)
        return NULL;
    return matrix->table.ids + matrix->table.id_at[row];
}

void ww_matrix_close(ww_matrix *matrix)
{
    if (!matrix)
        return;
    copies_destroy(&matrix->copies);
    source_close(&matrix->source);
    csv_free(&matrix->table);
    memory_free(matrix);
}

STRUCT_INIT(ww_matrix_info, {0})

ww_status ww_matrix_describe(const ww_matrix *matrix, ww_matrix_info *info)
{
    FLOAT_GUARD();
    if (!matrix || !info)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_matrix_describe: matrix and info must not be NULL");
    const ww_matrix_info ours = {sizeof ours, matrix->layout.rows, matrix->layout.dim, matrix->layout.element};
    return struct_write(info, &ours, sizeof ours, "ww_matrix_describe", "ww_matrix_info");
}

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

/* Where converted elements go: to whichever pointer is not NULL. Floats and integers both have 4 bytes. */
typedef struct target {
    float *f32;
    int32_t *i32;
    unsigned char *stored; /* unconverted */
} target;

static void convert(ww_element element, const void *from, target to, int64_t at, int64_t count)
{
    if (to.stored)
        memcpy(to.stored + at * ww_element_bytes(element), from, (size_t)(count * ww_element_bytes(element)));
    else if (to.f32)
        elements_to_f32(element, from, to.f32 + at, count);
    else
        elements_to_i32(element, from, to.i32 + at, count);
}

/* Converts `count` contiguous elements, starting at `offset`, to elements at.. of the target. */
static ww_status read_run(const ww_matrix *m, int64_t offset, int64_t count, target to, int64_t at)
{
    const ww_element element = m->layout.element;
    const int64_t bytes = ww_element_bytes(element);
    if (to.stored)
        return source_read(&m->source, offset, to.stored + at * bytes, (size_t)(count * bytes));
    if (element == WW_ELEMENT_F32 && to.f32)
        return source_read(&m->source, offset, to.f32 + at, (size_t)(count * bytes));
    if (element == WW_ELEMENT_I32 && to.i32)
        return source_read(&m->source, offset, to.i32 + at, (size_t)(count * bytes));

    _Alignas(8) unsigned char piece[PIECE_BYTES];
    ww_status status = WW_OK;
    for (int64_t done = 0; status == WW_OK && done < count;) {
        const int64_t fit = PIECE_BYTES / bytes, now = min_i64(count - done, fit);
        status = source_read(&m->source, offset + done * bytes, piece, (size_t)(now * bytes));
        if (status == WW_OK)
            convert(element, piece, to, at + done, now);
        done += now;
    }
    return status;
}

/* Reads rows that start with their dim: as many whole rows at a time as fit in the buffer, or one row in several pieces. */
static ww_status read_prefixed(const ww_matrix *m, int64_t first, int64_t count, target to)
{
    const file_layout *l = &m->layout;
    const int64_t row_bytes = l->prefix_bytes + l->dim * ww_element_bytes(l->element);
    const int64_t fit = PIECE_BYTES / row_bytes;
    unsigned char piece[PIECE_BYTES];
    ww_status status = WW_OK;
    for (int64_t done = 0; status == WW_OK && done < count;) {
        const int64_t now = fit == 0 ? 1 : min_i64(count - done, fit);
        const int64_t offset = l->offset + (first + done) * row_bytes;
        status = source_read(&m->source, offset, piece, (size_t)(fit == 0 ? l->prefix_bytes : now * row_bytes));
        for (int64_t row = 0; status == WW_OK && row < now; row++) {
            int32_t dim;
            memcpy(&dim, piece + row * row_bytes, sizeof dim);
            status = vecs_row_dim(&m->source, offset + row * row_bytes, dim, l->dim);
            if (status == WW_OK && fit > 0)
                convert(l->element, piece + row * row_bytes + l->prefix_bytes, to, (done + row) * l->dim, l->dim);
        }
        if (status == WW_OK && fit == 0)
            status = read_run(m, offset + l->prefix_bytes, l->dim, to, done * l->dim);
        done += now;
    }
    return status;
}

static ww_status read_rows(const ww_matrix *m, int64_t first, int64_t count, target to)
{
    if (!m || (count > 0 && !to.f32 && !to.i32 && !to.stored))
        return ww_fail(WW_INVALID_ARGUMENT, "reading rows: matrix and out must not be NULL");
    const file_layout *l = &m->layout;
    if (first < 0 || count < 0 || first > l->rows || count > l->rows - first)
        return ww_fail(WW_OUT_OF_RANGE, "%s: %lld rows from row %lld requested; the file has %lld", m->source.name,
                       (long long)count, (long long)first, (long long)l->rows);
    if (count == 0)
        return WW_OK;
    if (m->table.values && (to.f32 || to.stored)) { /* a CSV has f32, and no other type is read from it */
        memcpy(to.f32 ? (void *)to.f32 : to.stored, m->table.values + first * l->dim, (size_t)(count * l->dim) * sizeof(float));
        return WW_OK;
    }
    if (l->prefix_bytes != 0)
        return read_prefixed(m, first, count, to);
    return read_run(m, l->offset + first * l->dim * ww_element_bytes(l->element), count * l->dim, to, 0);
}

ww_status ww_matrix_read_f32(const ww_matrix *matrix, int64_t first, int64_t count, float *out)
{
    FLOAT_GUARD();
    return read_rows(matrix, first, count, (target){.f32 = out});
}

ww_status ww_matrix_read_elements(const ww_matrix *matrix, int64_t first, int64_t count, void *out)
{
    FLOAT_GUARD();
    return read_rows(matrix, first, count, (target){.stored = out});
}

ww_status ww_matrix_read_i32(const ww_matrix *matrix, int64_t first, int64_t count, int32_t *out)
{
    FLOAT_GUARD();
    if (matrix && matrix->layout.element != WW_ELEMENT_I8 && matrix->layout.element != WW_ELEMENT_U8 &&
        matrix->layout.element != WW_ELEMENT_I32)
        return ww_fail(WW_UNSUPPORTED, "%s: the elements are %s; only i8, u8 and i32 can be read as integers",
                       matrix->source.name, ww_element_name(matrix->layout.element));
    return read_rows(matrix, first, count, (target){.i32 = out});
}

const float *ww_matrix_view_f32(const ww_matrix *matrix)
{
    FLOAT_GUARD();
    const void *rows = NULL;
    if (!matrix)
        return NULL;
    if (matrix->table.values)
        return matrix->table.values;
    const file_layout *l = &matrix->layout;
    if (l->element != WW_ELEMENT_F32 || l->prefix_bytes != 0)
        return NULL;
    const file_range all = {.offset = l->offset, .bytes = l->rows * l->dim * (int64_t)sizeof(float)};
    /* The copies in memory are no visible change of the matrix, so callers have a const pointer. */
    return copies_get(&((ww_matrix *)matrix)->copies, &matrix->source, all, sizeof(float), &rows) == WW_OK ? rows : NULL;
}

ww_status ww_matrix_check_finite(const ww_matrix *matrix, int64_t first, int64_t count, const float *values)
{
    FLOAT_GUARD();
    if (!matrix || (!values && count > 0))
        return ww_fail(WW_INVALID_ARGUMENT, "ww_matrix_check_finite: %s is NULL", matrix ? "values" : "matrix");
    const int64_t dim = matrix->layout.dim;
    for (int64_t row = 0; row < count; row++) {
        bool finite = true;
        for (int64_t i = 0; i < dim; i++)
            finite &= fabsf(values[row * dim + i]) <= FLT_MAX;
        for (int64_t i = 0; !finite && i < dim; i++)
            if (!isfinite(values[row * dim + i]))
                return ww_fail(WW_INVALID_ARGUMENT, "%s: row %lld, column %lld is %s; every number must be finite",
                               matrix->source.name, (long long)(first + row), (long long)i,
                               isnan(values[row * dim + i]) ? "NaN" : "infinite");
    }
    return WW_OK;
}
