/* Writes a matrix completely or not at all (files/output.h). */
#include <warpwave/files.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/files/output.h"
#include "base/files/source.h"
#include "base/float_guard.h"
#include "base/memory.h"
#include "files/layout.h"
#include "files/matrix.h"

enum { NPY_HEADER_BYTES = MATRIX_HEADER_BYTES_MAX };

/* ---- formats ------------------------------------------------------------------------------------------------------------- */

/* Both headers keep the elements aligned: 8 bytes, and 128, because NumPy wants a multiple of 64. */
static size_t make_bin_header(char *header, int64_t rows, int64_t dim)
{
    const uint32_t counts[2] = {(uint32_t)rows, (uint32_t)dim};
    memcpy(header, counts, sizeof counts);
    return sizeof counts;
}

static size_t make_npy_header(char *header, const char *type, int64_t rows, int64_t dim)
{
    const uint16_t length = NPY_HEADER_BYTES - 10;
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    memcpy(header + 8, &length, sizeof length);
    char *text = header + 10;
    /* At most 96 characters: 58 and two counts of up to 19. */
    const int used = snprintf(text, length, "{'descr': '%s', 'fortran_order': False, 'shape': (%lld, %lld), }", type,
                              (long long)rows, (long long)dim);
    memset(text + used, ' ', length - (size_t)used);
    text[length - 1] = '\n';
    return NPY_HEADER_BYTES;
}

static ww_status check(const char *path, int64_t rows, int64_t dim, bool bin)
{
    char name[SOURCE_NAME_BYTES];
    int64_t elements, bytes;
    source_name(name, path);
    if (rows < 0 || dim < 1 || __builtin_mul_overflow(rows, dim, &elements) || __builtin_mul_overflow(elements, 4, &bytes))
        return ww_fail(WW_INVALID_ARGUMENT,
                       "%s: %lld rows of dim %lld cannot be written; rows must be at least 0, dim at least 1", name,
                       (long long)rows, (long long)dim);
    if (bin && (rows > UINT32_MAX || dim > UINT32_MAX))
        return ww_fail(WW_UNSUPPORTED, "%s: %lld rows of dim %lld do not fit the format's 32-bit counts; write a .npy", name,
                       (long long)rows, (long long)dim);
    return WW_OK;
}

ww_status matrix_header_make(const char *path, const matrix_write *m, char *header, size_t *bytes)
{
    static const char *const types[] = {[WW_ELEMENT_F32] = "<f4", [WW_ELEMENT_F16] = "<f2", [WW_ELEMENT_I8] = "|i1",
                                        [WW_ELEMENT_U8] = "|u1",  [WW_ELEMENT_I32] = "<i4", [WW_ELEMENT_I64] = "<i8"};
    const char *type = types[m->element];
    const ww_status status = check(path, m->rows, m->dim, !m->npy);
    if (status == WW_OK)
        *bytes = m->npy ? make_npy_header(header, type, m->rows, m->dim) : make_bin_header(header, m->rows, m->dim);
    return status;
}

ww_status matrix_write_begin(output *o, const char *path, const matrix_write *m)
{
    char header[NPY_HEADER_BYTES];
    size_t header_bytes = 0;
    o->descriptor = -1;
    o->temporary[0] = '\0';
    ww_status status = matrix_header_make(path, m, header, &header_bytes);
    if (status == WW_OK)
        status = output_open(o, path);
    if (status == WW_OK)
        status = output_write(o, header, header_bytes);
    return status == WW_OK && m->data ? output_write(o, m->data, (size_t)(m->rows * m->dim * 4)) : status;
}

static ww_status write_matrix(const char *path, const void *data, int64_t rows, int64_t dim, ww_element element)
{
    const bool f32 = element == WW_ELEMENT_F32;
    if (!path)
        return ww_fail(WW_INVALID_ARGUMENT, "writing a matrix: path must not be NULL");
    const bool npy = path_ends_in(path, ".npy");
    if (!npy && !path_ends_in(path, f32 ? ".fbin" : ".ibin") && !path_ends_in(path, f32 ? ".f32bin" : ".i32bin")) {
        char name[SOURCE_NAME_BYTES];
        source_name(name, path);
        return ww_fail(WW_UNSUPPORTED, "%s: unknown format for %s; the name must end in .npy, %s", name,
                       ww_element_name(element), f32 ? ".fbin or .f32bin" : ".ibin or .i32bin");
    }
    if (!data && rows > 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: data must not be NULL", path);
    output *o = memory_alloc(sizeof *o);
    if (!o)
        return memory_failed("writing a file of vectors", sizeof *o);
    const matrix_write m = {data, rows, dim, element, npy};
    ww_status status = matrix_write_begin(o, path, &m);
    if (status == WW_OK)
        status = output_finish(o);
    output_discard(o);
    memory_free(o);
    return status;
}

ww_status ww_matrix_write_f32(const char *path, const float *data, int64_t rows, int64_t dim)
{
    FLOAT_GUARD();
    return write_matrix(path, data, rows, dim, WW_ELEMENT_F32);
}

ww_status ww_matrix_write_i32(const char *path, const int32_t *data, int64_t rows, int64_t dim)
{
    FLOAT_GUARD();
    return write_matrix(path, data, rows, dim, WW_ELEMENT_I32);
}
