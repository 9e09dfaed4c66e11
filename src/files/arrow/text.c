/* Writes elements of Arrow's columns as texts and as JSON. */
#include <string.h>

#include "base/array.h"
#include "base/status.h"
#include "base/text.h"
#include "files/arrow/arrow.h"

ww_status text_build(text_builder *to, const char *bytes, int64_t count)
{
    const ww_status status = array_reserve(&to->bytes, &to->room, to->count + count, 1, "texts");
    if (status == WW_OK && count > 0)
        memcpy(to->bytes + to->count, bytes, (size_t)count);
    to->count += status == WW_OK ? count : 0;
    return status;
}

static bool needs_escape(char c)
{
    return (unsigned char)c < 32 || c == '"' || c == '\\';
}

/* Writes the escape of a character, at most six bytes; returns how many. */
static int escape(char c, char *to)
{
    static const char digits[] = "0123456789abcdef", names[] = "\nn\rr\tt\bb\ff";
    const char *name = c != '\0' ? strchr(names, c) : NULL;
    to[0] = '\\';
    if (c == '"' || c == '\\' || name) {
        to[1] = name ? name[1] : c;
        return 2;
    }
    memcpy(to + 1, "u00", 3);
    to[4] = digits[(unsigned char)c >> 4];
    to[5] = digits[c & 15];
    return 6;
}

ww_status text_build_quoted(text_builder *to, const char *bytes, int64_t count)
{
    const ww_status status = array_reserve(&to->bytes, &to->room, to->count + 6 * count + 2, 1, "texts");
    if (status != WW_OK)
        return status;
    char *at = to->bytes + to->count;
    *at++ = '"';
    for (int64_t i = 0; i < count; i++) {
        if (needs_escape(bytes[i]))
            at += escape(bytes[i], at);
        else
            *at++ = bytes[i];
    }
    *at++ = '"';
    to->count = at - to->bytes;
    return WW_OK;
}

/* ---- where texts and lists are ------------------------------------------------------------------------------------------- */

/* The two offsets that enclose an element. */
static ww_status offsets_of(const column *c, int64_t index, int64_t *begin, int64_t *end)
{
    const void *offsets = c->array->buffers[1];
    *begin = c->bytes == 4 ? ((const int32_t *)offsets)[index] : ((const int64_t *)offsets)[index];
    *end = c->bytes == 4 ? ((const int32_t *)offsets)[index + 1] : ((const int64_t *)offsets)[index + 1];
    return *begin >= 0 && *end >= *begin ? WW_OK : column_refuse(c, WW_INVALID_ARGUMENT, "has offsets that do not ascend");
}

static ww_status view_of(const column *c, int64_t index, text_span *text)
{
    enum { INLINE_BYTES_MAX = 12, FIRST_BUFFER = 2 };
    const char *view = (const char *)c->array->buffers[1] + 16 * index;
    const int64_t buffers = c->array->n_buffers - FIRST_BUFFER - 1;
    int32_t parts[4]; /* length, the first bytes, the buffer and the offset in it */
    memcpy(parts, view, sizeof parts);
    *text = (text_span){view + 4, parts[0]};
    if (parts[0] >= 0 && parts[0] <= INLINE_BYTES_MAX)
        return WW_OK;
    const int64_t *lengths = c->array->buffers[FIRST_BUFFER + buffers];
    if (parts[0] < 0 || parts[2] < 0 || parts[2] >= buffers || !lengths || parts[3] < 0 ||
        parts[3] > lengths[parts[2]] - parts[0])
        return column_refuse(c, WW_INVALID_ARGUMENT, "has a text outside its buffers");
    text->bytes = (const char *)c->array->buffers[FIRST_BUFFER + parts[2]] + parts[3];
    return WW_OK;
}

static ww_status text_of(const column *c, int64_t index, const text_builder *to, text_span *text)
{
    int64_t begin = 0, end = 0;
    ww_status status = c->kind == COLUMN_TEXT_VIEW ? view_of(c, index, text) : offsets_of(c, index, &begin, &end);
    if (status == WW_OK && c->kind == COLUMN_TEXT) {
        const char *bytes = c->array->buffers[2];
        *text = (text_span){bytes ? bytes + begin : "", end - begin};
        if (!bytes && end > begin)
            status = column_refuse(c, WW_INVALID_ARGUMENT, "lacks a buffer");
    }
    if (status == WW_OK && !utf8_check(text->bytes, (size_t)text->count))
        status = column_refuse_row(c, to->row, WW_INVALID_ARGUMENT, "has a text that is not UTF-8");
    return status;
}

/* The element of the dictionary, in the array of its values. */
static ww_status value_of(const column *c, int64_t index, int64_t *value)
{
    const struct ArrowArray *values = c->children->array;
    const int64_t number = column_integer(c, index);
    *value = values->offset + number;
    return number >= 0 && number < values->length
               ? WW_OK
               : column_refuse(c, WW_INVALID_ARGUMENT, "has an index outside its dictionary");
}

/* ---- elements ------------------------------------------------------------------------------------------------------------ */

ww_status column_write_plain(const column *c, int64_t index, text_builder *to)
{
    text_span text;
    if (c->kind == COLUMN_DICTIONARY) {
        const ww_status status = value_of(c, index, &index);
        return status == WW_OK ? column_write_plain(c->children, index, to) : status;
    }
    if (c->kind == COLUMN_INTEGER)
        return column_write_integer(c, index, to);
    if (c->kind != COLUMN_TEXT && c->kind != COLUMN_TEXT_VIEW)
        return column_refuse(c, WW_UNSUPPORTED, "has neither texts nor integers");
    const ww_status status = text_of(c, index, to, &text);
    if (status == WW_OK && memchr(text.bytes, '\0', (size_t)text.count))
        return column_refuse_row(c, to->row, WW_INVALID_ARGUMENT, "has a text with a NUL character");
    return status == WW_OK ? text_build(to, text.bytes, text.count) : status;
}

static ww_status write_or_null(const column *c, int64_t index, text_builder *to)
{
    return column_is_null(c, index) ? text_build(to, "null", 4) : column_write_json(c, index, to);
}

static ww_status write_struct(const column *c, int64_t index, text_builder *to, bool keys)
{
    ww_status status = text_build(to, keys ? "{" : "[", 1);
    for (int64_t i = 0; status == WW_OK && i < c->child_count; i++) {
        const column *child = &c->children[i];
        if (i > 0)
            status = text_build(to, ",", 1);
        if (status == WW_OK && keys)
            status = text_build(to, child->key, (int64_t)child->key_bytes);
        if (status == WW_OK)
            status = write_or_null(child, child->array->offset + index, to);
    }
    return status == WW_OK ? text_build(to, keys ? "}" : "]", 1) : status;
}

static ww_status write_list(const column *c, int64_t index, text_builder *to)
{
    const column *child = c->children;
    int64_t begin = index * c->list_size, end = begin + c->list_size;
    ww_status status = c->kind == COLUMN_LIST ? offsets_of(c, index, &begin, &end) : WW_OK;
    if (status == WW_OK && end > child->array->length)
        status = column_refuse(c, WW_INVALID_ARGUMENT, "has offsets beyond its elements");
    if (status == WW_OK)
        status = text_build(to, "[", 1);
    for (int64_t i = begin; status == WW_OK && i < end; i++) {
        if (i > begin)
            status = text_build(to, ",", 1);
        if (status == WW_OK)
            status = c->is_map ? write_struct(child, child->array->offset + i, to, false)
                               : write_or_null(child, child->array->offset + i, to);
    }
    return status == WW_OK ? text_build(to, "]", 1) : status;
}

static ww_status write_bool(const column *c, int64_t index, text_builder *to)
{
    const uint8_t *bits = c->array->buffers[1];
    const bool set = bits[index / 8] >> (index % 8) & 1;
    return text_build(to, set ? "true" : "false", set ? 4 : 5);
}

static ww_status write_text(const column *c, int64_t index, text_builder *to)
{
    text_span text;
    const ww_status status = text_of(c, index, to, &text);
    return status == WW_OK ? text_build_quoted(to, text.bytes, text.count) : status;
}

static ww_status write_instant(const column *c, int64_t index, text_builder *to)
{
    ww_status status = text_build(to, "\"", 1);
    if (status == WW_OK)
        status = column_write_instant(c, index, to);
    return status == WW_OK ? text_build(to, "\"", 1) : status;
}

ww_status column_write_json(const column *c, int64_t index, text_builder *to)
{
    ww_status status = WW_OK;
    switch (c->kind) {
    case COLUMN_NULL:
        return text_build(to, "null", 4);
    case COLUMN_BOOL:
        return write_bool(c, index, to);
    case COLUMN_INTEGER:
        return column_write_integer(c, index, to);
    case COLUMN_REAL:
        return column_write_real(c, index, to);
    case COLUMN_DECIMAL:
        return column_write_decimal(c, index, to);
    case COLUMN_TEXT:
    case COLUMN_TEXT_VIEW:
        return write_text(c, index, to);
    case COLUMN_DATE:
    case COLUMN_TIME:
    case COLUMN_TIMESTAMP:
        return write_instant(c, index, to);
    case COLUMN_LIST:
    case COLUMN_LIST_FIXED:
        return write_list(c, index, to);
    case COLUMN_STRUCT:
        return write_struct(c, index, to, true);
    case COLUMN_DICTIONARY:
        status = value_of(c, index, &index);
        return status == WW_OK ? write_or_null(c->children, index, to) : status;
    }
    return WW_INTERNAL;
}
