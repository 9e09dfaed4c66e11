/* .npy, as NumPy writes it: a magic, a version, the length of a header, the header, the elements.
 *
 * The header is a Python dict literal with exactly three keys, {'descr': '<f4', 'fortran_order': False, 'shape': (10, 4), }. A
 * small parser reads only this subset of Python and never looks past the header's length. A matrix is a 2-d array; a 1-d array
 * is one row. Arrays that cannot be a matrix are refused with the reason: other dimensions, column order, big-endian,
 * structured and pickled elements. npy_array.c reads arrays of any rank.
 */
#include "files/npy.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum {
    NPY_PREAMBLE_BYTES = 8, /* the magic and the version */
    NPY_HEADER_MAX = 65535, /* the maximum of version 1; only structured arrays need more, and those are refused anyway */
    NPY_KEY_BYTES = 32
};

typedef struct header {
    const file_source *source;
    const char *text;
    size_t length, at;
    int64_t offset; /* of text[0] in the file */
} header;

/* ---- tokens of the header ------------------------------------------------------------------------------------------------ */

static int64_t here(const header *h)
{
    return h->offset + (int64_t)h->at;
}

/* Returns the next non-blank character without consuming it; NUL at the end, because a NUL is invalid in the header, too. */
static char peek(header *h)
{
    while (h->at < h->length && strchr(" \t\r\n", h->text[h->at]) && h->text[h->at] != '\0')
        h->at++;
    return h->at < h->length ? h->text[h->at] : '\0';
}

static bool accept(header *h, char wanted)
{
    const bool found = peek(h) == wanted;
    h->at += found;
    return found;
}

static ww_status unexpected(header *h, const char *wanted)
{
    const unsigned char c = (unsigned char)peek(h);
    char found[16] = "its end";
    if (h->at < h->length)
        snprintf(found, sizeof found, c > ' ' && c < 127 ? "'%c'" : "byte 0x%02x", c);
    return source_refuse(h->source, WW_CORRUPT_FILE, here(h), "the header has %s; expected %s", found, wanted);
}

static ww_status expect(header *h, char wanted)
{
    const char text[4] = {'\'', wanted, '\'', '\0'};
    return accept(h, wanted) ? WW_OK : unexpected(h, text);
}

/* Reads a quoted text without escapes, cut to `capacity`: valid texts are not longer than the buffers used here. */
static ww_status read_text(header *h, char *text, size_t capacity, const char *wanted)
{
    const char quote = peek(h);
    if (quote != '\'' && quote != '"')
        return unexpected(h, wanted);
    const char *first = h->text + h->at + 1;
    const char *last = memchr(first, quote, h->length - h->at - 1);
    if (!last)
        return source_refuse(h->source, WW_CORRUPT_FILE, here(h), "the header has an unclosed quote");
    snprintf(text, capacity, "%.*s", (int)(last - first), first);
    h->at = (size_t)(last - h->text) + 1;
    return WW_OK;
}

static ww_status read_count(header *h, int64_t *count)
{
    char c = peek(h);
    if (c < '0' || c > '9')
        return unexpected(h, "a count");
    const int64_t first = here(h);
    for (*count = 0; c >= '0' && c <= '9'; c = h->at < h->length ? h->text[h->at] : '\0') {
        if (__builtin_mul_overflow(*count, 10, count) || __builtin_add_overflow(*count, c - '0', count))
            return source_refuse(h->source, WW_CORRUPT_FILE, first, "the shape has a number that is too large");
        h->at++;
    }
    if (c == 'L') /* a long integer of Python 2 */
        h->at++;
    return WW_OK;
}

static ww_status read_truth(header *h, bool *truth)
{
    static const char *const words[] = {"False", "True"};
    peek(h);
    for (int i = 0; i < 2; i++) {
        const size_t length = strlen(words[i]);
        if (h->length - h->at >= length && memcmp(h->text + h->at, words[i], length) == 0) {
            h->at += length;
            *truth = i;
            return WW_OK;
        }
    }
    return unexpected(h, "True or False");
}

/* ---- the three entries --------------------------------------------------------------------------------------------------- */

static ww_status type_not_supported(const file_source *source, const npy_header *a)
{
    return source_refuse(source, WW_UNSUPPORTED, a->element_offset,
                         "element type '%s' is not supported (f4, f8, f2, i1, u1 and i4 are); save a.astype('float32')",
                         a->type);
}

static ww_status read_type(header *h, npy_header *a)
{
    static const struct {
        const char *name; /* without the byte order, which is meaningless for bytes */
        ww_element element;
    } types[] = {{"f4", WW_ELEMENT_F32}, {"f8", WW_ELEMENT_F64}, {"f2", WW_ELEMENT_F16}, {"i4", WW_ELEMENT_I32},
                 {"i2", WW_ELEMENT_I16}, {"i8", WW_ELEMENT_I64}, {"u2", WW_ELEMENT_U16}, {"u4", WW_ELEMENT_U32},
                 {"u8", WW_ELEMENT_U64}, {"i1", WW_ELEMENT_I8},  {"u1", WW_ELEMENT_U8},  {"b1", WW_ELEMENT_BOOL}};
    const char first = peek(h);
    const int64_t offset = here(h);
    if (first == '[' || first == '(')
        return source_refuse(h->source, WW_UNSUPPORTED, offset,
                             "structured elements are not supported; save one plain field of the array");
    const ww_status status = read_text(h, a->type, sizeof a->type, "the element type");
    if (status != WW_OK)
        return status;
    a->element_offset = offset;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(a->type + (a->type[0] != '\0'), types[i].name) == 0 &&
            (a->type[0] == '<' || (a->type[0] == '|' && types[i].name[1] == '1'))) {
            a->element = types[i].element;
            return WW_OK;
        }
    if (strchr(a->type, 'O'))
        return source_refuse(h->source, WW_UNSUPPORTED, offset,
                             "pickled Python objects are never loaded; save an array of float32");
    if (a->type[0] == '>')
        return source_refuse(h->source, WW_UNSUPPORTED, offset,
                             "big-endian elements are not supported; save a.astype(a.dtype.newbyteorder('<'))");
    for (char *c = a->type; *c; c++) /* so that the message is text, regardless of the file's contents */
        if (*c < ' ' || *c > '~')
            *c = '?';
    return type_not_supported(h->source, a);
}

static ww_status read_shape(header *h, npy_header *a)
{
    peek(h);
    a->shape_offset = here(h);
    ww_status status = expect(h, '(');
    while (status == WW_OK && !accept(h, ')')) {
        int64_t count = 0;
        status = read_count(h, &count);
        if (status == WW_OK && a->rank < WW_ARRAY_RANK_MAX)
            a->shape[a->rank] = count;
        a->rank++; /* at most NPY_HEADER_MAX, because each takes a character */
        if (status == WW_OK && !accept(h, ',') && peek(h) != ')')
            status = unexpected(h, "',' or ')'");
    }
    return status;
}

static ww_status read_dict(header *h, npy_header *a)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    unsigned seen = 0;
    ww_status status = expect(h, '{');
    while (status == WW_OK && !accept(h, '}')) {
        char key[NPY_KEY_BYTES];
        peek(h);
        const int64_t offset = here(h);
        status = read_text(h, key, sizeof key, "a key");
        if (status != WW_OK)
            break;
        unsigned which = 0;
        while (which < 3 && strcmp(key, keys[which]) != 0)
            which++;
        if (which == 3 || (seen & 1u << which))
            return source_refuse(h->source, WW_CORRUPT_FILE, offset,
                                 "the header has %s; descr, fortran_order and shape must each appear once",
                                 which == 3 ? "an unknown key" : "a key twice");
        seen |= 1u << which;
        status = expect(h, ':');
        if (status == WW_OK)
            status = which == 0 ? read_type(h, a) : which == 1 ? read_truth(h, &a->fortran_order) : read_shape(h, a);
        if (status == WW_OK && !accept(h, ',') && peek(h) != '}')
            status = unexpected(h, "',' or '}'");
    }
    if (status == WW_OK && seen != 7)
        return source_refuse(h->source, WW_CORRUPT_FILE, here(h), "the header lacks descr, fortran_order or shape");
    if (status == WW_OK && (peek(h), h->at < h->length))
        return unexpected(h, "its end");
    return status;
}

/* ---- the file ------------------------------------------------------------------------------------------------------------ */

/* Finds the length of the header and where it starts, from the preamble. */
static ww_status find_header(const file_source *source, int64_t *offset, size_t *length)
{
    static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    unsigned char preamble[NPY_PREAMBLE_BYTES];
    if (source->size < NPY_PREAMBLE_BYTES)
        return source_refuse(source, WW_CORRUPT_FILE, source->size,
                             source->size == 0 ? "the file is empty" : "the file is cut short inside its first 8 bytes");
    ww_status status = source_read(source, 0, preamble, sizeof preamble);
    if (status != WW_OK)
        return status;
    if (memcmp(preamble, magic, sizeof magic) != 0)
        return source_refuse(source, WW_CORRUPT_FILE, 0, "not a .npy file: it does not begin with \\x93NUMPY");
    const int version = preamble[6];
    if (version < 1 || version > 3 || preamble[7] != 0)
        return source_refuse(source, WW_UNSUPPORTED, 6, "version %d.%d is not supported; 1.0, 2.0 and 3.0 are", version,
                             preamble[7]);

    uint32_t header_bytes = 0; /* version 1 has 2 bytes for it, later versions 4; little-endian */
    const size_t width = version == 1 ? 2 : 4;
    *offset = NPY_PREAMBLE_BYTES + (int64_t)width;
    if (source->size < *offset)
        return source_refuse(source, WW_CORRUPT_FILE, source->size, "the file is cut short before its header");
    status = source_read(source, NPY_PREAMBLE_BYTES, &header_bytes, width);
    if (status != WW_OK)
        return status;
    if (header_bytes > source->size - *offset)
        return source_refuse(source, WW_CORRUPT_FILE, NPY_PREAMBLE_BYTES, "the header should have %lu bytes; %lld follow",
                             (unsigned long)header_bytes, (long long)(source->size - *offset));
    if (header_bytes > NPY_HEADER_MAX)
        return source_refuse(source, WW_UNSUPPORTED, NPY_PREAMBLE_BYTES, "the header has %lu bytes; the maximum is %d",
                             (unsigned long)header_bytes, NPY_HEADER_MAX);
    *length = header_bytes;
    return WW_OK;
}

ww_status npy_header_read(const file_source *source, npy_header *array)
{
    header h = {.source = source};
    *array = (npy_header){.element = WW_ELEMENT_UNKNOWN};
    ww_status status = find_header(source, &h.offset, &h.length);
    if (status != WW_OK)
        return status;
    char *text = memory_alloc(h.length);
    if (!text)
        return memory_failed("the header of a .npy file", h.length);
    h.text = text;
    status = source_read(source, h.offset, text, h.length);
    if (status == WW_OK)
        status = read_dict(&h, array);
    array->data_offset = h.offset + (int64_t)h.length;
    memory_free(text);
    return status;
}

ww_status npy_layout(const file_source *source, ww_element element, file_layout *layout)
{
    npy_header a;
    (void)element; /* the file has its own type */
    const ww_status status = npy_header_read(source, &a);
    if (status != WW_OK)
        return status;
    if (!element_of_matrix(a.element))
        return type_not_supported(source, &a);
    if (a.rank == 0 || a.rank > 2)
        return source_refuse(source, WW_UNSUPPORTED, a.shape_offset,
                             "the array has %d dimensions; a matrix has 2 (or 1, which is one row)", a.rank);
    layout->offset = a.data_offset;
    layout->rows = a.rank == 2 ? a.shape[0] : 1;
    layout->dim = a.shape[a.rank - 1];
    layout->element = a.element;
    layout->prefix_bytes = 0;
    if (layout->dim == 0)
        return source_refuse(source, WW_CORRUPT_FILE, a.shape_offset, "the rows have dim 0");
    if (a.fortran_order && layout->rows > 1 && layout->dim > 1)
        return source_refuse(source, WW_UNSUPPORTED, a.shape_offset,
                             "the array is in Fortran order; save numpy.ascontiguousarray(a)");
    return layout_fills(layout, source);
}
