/* Reads the types of Arrow's columns, and checks that each array has the buffers and children of its type. */
#include "files/arrow/arrow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"

enum { DEPTH_MAX = 64, CHILDREN_MAX = 4096, NAME_SHOWN = 64, DECIMAL_BITS_MAX = 128, DECIMAL_SCALE_MAX = 1000 };

ww_status column_refuse(const column *c, ww_status status, const char *reason)
{
    char shown[NAME_SHOWN];
    text_plain_copy(shown, sizeof shown, c->name);
    return ww_fail(status, "Arrow: the column '%s' %s", shown, reason);
}

ww_status column_refuse_row(const column *c, int64_t row, ww_status status, const char *reason)
{
    char shown[NAME_SHOWN];
    text_plain_copy(shown, sizeof shown, c->name);
    return ww_fail(status, "Arrow: row %lld: the column '%s' %s", (long long)row, shown, reason);
}

static ww_status unsupported(const column *c, const char *format)
{
    char reason[NAME_SHOWN + 64], shown[NAME_SHOWN];
    text_plain_copy(shown, sizeof shown, format);
    snprintf(reason, sizeof reason, "has the type '%s', which has no form as text here", shown);
    return column_refuse(c, WW_UNSUPPORTED, reason);
}

/* ---- types --------------------------------------------------------------------------------------------------------------- */

typedef struct simple_type {
    const char *format;
    column_kind kind;
    int32_t bytes;
    bool is_signed;
    int64_t per_second;
} simple_type;

static const simple_type SIMPLE_TYPES[] = {
    {"n", COLUMN_NULL, 0, false, 0},        {"b", COLUMN_BOOL, 0, false, 0},
    {"c", COLUMN_INTEGER, 1, true, 0},      {"C", COLUMN_INTEGER, 1, false, 0},
    {"s", COLUMN_INTEGER, 2, true, 0},      {"S", COLUMN_INTEGER, 2, false, 0},
    {"i", COLUMN_INTEGER, 4, true, 0},      {"I", COLUMN_INTEGER, 4, false, 0},
    {"l", COLUMN_INTEGER, 8, true, 0},      {"L", COLUMN_INTEGER, 8, false, 0},
    {"e", COLUMN_REAL, 2, true, 0},         {"f", COLUMN_REAL, 4, true, 0},
    {"g", COLUMN_REAL, 8, true, 0},         {"u", COLUMN_TEXT, 4, true, 0},
    {"U", COLUMN_TEXT, 8, true, 0},         {"vu", COLUMN_TEXT_VIEW, 16, false, 0},
    {"tdD", COLUMN_DATE, 4, true, 0},       {"tdm", COLUMN_DATE, 8, true, 1000},
    {"tts", COLUMN_TIME, 4, true, 1},       {"ttm", COLUMN_TIME, 4, true, 1000},
    {"ttu", COLUMN_TIME, 8, true, 1000000}, {"ttn", COLUMN_TIME, 8, true, 1000000000},
    {"+l", COLUMN_LIST, 4, true, 0},        {"+L", COLUMN_LIST, 8, true, 0},
    {"+m", COLUMN_LIST, 4, true, 0},        {"+s", COLUMN_STRUCT, 0, false, 0},
};

static bool all_digits(const char *text, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (text[i] < '0' || text[i] > '9')
            return false;
    return true;
}

/* Reads "", "UTC" or "+02:00". */
static bool zone_read(const char *zone, column *c)
{
    c->has_zone = zone[0] != '\0';
    if (!c->has_zone || strcmp(zone, "UTC") == 0)
        return true;
    const bool offset = strlen(zone) == 6 && (zone[0] == '+' || zone[0] == '-') && zone[3] == ':' && all_digits(zone + 1, 2) &&
                        all_digits(zone + 4, 2);
    if (!offset)
        return false;
    const int32_t hours = 10 * (zone[1] - '0') + zone[2] - '0', minutes = 10 * (zone[4] - '0') + zone[5] - '0';
    c->zone_minutes = (zone[0] == '-' ? -1 : 1) * (60 * hours + minutes);
    return hours < 24 && minutes < 60;
}

/* "tss:UTC": a timestamp in seconds (or m, u, n) and its zone. */
static bool timestamp_read(const char *format, column *c)
{
    static const char units[] = "smun";
    const char *unit = format[2] ? strchr(units, format[2]) : NULL;
    if (!unit || format[3] != ':')
        return false;
    c->kind = COLUMN_TIMESTAMP;
    c->bytes = 8;
    c->is_signed = true;
    c->per_second = 1;
    for (const char *at = units; at < unit; at++)
        c->per_second *= 1000;
    return zone_read(format + 4, c);
}

/* "d:precision,scale" or "d:precision,scale,bits". */
static bool decimal_read(const char *format, column *c)
{
    char *end = NULL;
    const long precision = strtol(format + 2, &end, 10);
    const bool has_scale = *end == ',';
    const long scale = has_scale ? strtol(end + 1, &end, 10) : 0;
    const long bits = has_scale && *end == ',' ? strtol(end + 1, &end, 10) : DECIMAL_BITS_MAX;
    c->kind = COLUMN_DECIMAL;
    c->bytes = (int32_t)(bits / 8);
    c->is_signed = true;
    c->scale = scale;
    return has_scale && *end == '\0' && precision > 0 && labs(scale) <= DECIMAL_SCALE_MAX &&
           (bits == 32 || bits == 64 || bits == DECIMAL_BITS_MAX);
}

static bool fixed_list_read(const char *format, column *c)
{
    char *end = NULL;
    c->kind = COLUMN_LIST_FIXED;
    c->list_size = strtol(format + 3, &end, 10);
    return end != format + 3 && *end == '\0' && c->list_size >= 0 && c->list_size <= INT32_MAX;
}

static bool type_read(const char *format, column *c)
{
    for (size_t i = 0; i < sizeof SIMPLE_TYPES / sizeof *SIMPLE_TYPES; i++) {
        const simple_type *type = &SIMPLE_TYPES[i];
        if (strcmp(format, type->format) != 0)
            continue;
        c->kind = type->kind;
        c->bytes = type->bytes;
        c->is_signed = type->is_signed;
        c->per_second = type->per_second;
        return true;
    }
    if (strncmp(format, "ts", 2) == 0)
        return timestamp_read(format, c);
    if (strncmp(format, "d:", 2) == 0)
        return decimal_read(format, c);
    return strncmp(format, "+w:", 3) == 0 && fixed_list_read(format, c);
}

/* Is there metadata with the key ARROW:extension:name? Metadata is a count, then for each pair the length and bytes of the key
 * and of the value, all counts and lengths as i32. */
static bool is_extension(const char *metadata)
{
    static const char key[] = "ARROW:extension:name";
    int32_t count = 0, length = 0;
    if (!metadata)
        return false;
    memcpy(&count, metadata, sizeof count);
    metadata += sizeof count;
    for (int64_t i = 0; i < 2 * (int64_t)count; i++, metadata += length) {
        memcpy(&length, metadata, sizeof length);
        metadata += sizeof length;
        if (length < 0)
            return true; /* cannot be read */
        if (i % 2 == 0 && (size_t)length == sizeof key - 1 && memcmp(metadata, key, sizeof key - 1) == 0)
            return true;
    }
    return false;
}

/* ---- arrays -------------------------------------------------------------------------------------------------------------- */

static int64_t buffers_needed(const column *c)
{
    switch (c->kind) {
    case COLUMN_NULL:
        return 0;
    case COLUMN_STRUCT:
    case COLUMN_LIST_FIXED:
        return 1;
    case COLUMN_TEXT:
    case COLUMN_TEXT_VIEW: /* and then those with the texts, and their lengths */
        return 3;
    default:
        return 2;
    }
}

static ww_status array_check(const column *c, const struct ArrowSchema *schema)
{
    const struct ArrowArray *a = c->array;
    const int64_t buffers = buffers_needed(c);
    const bool list = c->kind == COLUMN_LIST || c->kind == COLUMN_LIST_FIXED;
    const bool dictionary = c->kind == COLUMN_DICTIONARY;
    if (a->length < 0 || a->offset < 0 || a->offset > INT64_MAX / 2 - a->length)
        return column_refuse(c, WW_INVALID_ARGUMENT, "has a negative length or offset");
    if (a->n_buffers < buffers || (buffers > 0 && !a->buffers) || (buffers > 1 && a->length > 0 && !a->buffers[1]))
        return column_refuse(c, WW_INVALID_ARGUMENT, "lacks a buffer");
    if (schema->n_children != a->n_children || (list && a->n_children != 1) ||
        (!list && c->kind != COLUMN_STRUCT && a->n_children != 0) || a->n_children < 0 || a->n_children > CHILDREN_MAX ||
        (a->n_children > 0 && (!a->children || !schema->children)))
        return column_refuse(c, WW_INVALID_ARGUMENT, "has a number of children that its type does not have");
    return dictionary && !a->dictionary ? column_refuse(c, WW_INVALID_ARGUMENT, "lacks its dictionary") : WW_OK;
}

/* Structs and lists of one size use elements of their children up to their own end. */
static ww_status children_check(const column *c)
{
    const int64_t elements = c->array->offset + c->array->length;
    if (c->is_map && (c->children[0].kind != COLUMN_STRUCT || c->children[0].child_count != 2))
        return column_refuse(c, WW_INVALID_ARGUMENT, "is a map whose elements are not pairs");
    for (int64_t i = 0; i < c->child_count; i++) {
        const column *child = &c->children[i];
        const bool fits = c->kind == COLUMN_STRUCT       ? child->array->length >= elements
                          : c->kind == COLUMN_LIST_FIXED ? c->list_size == 0 || child->array->length / c->list_size >= elements
                                                         : true;
        if (!fits)
            return column_refuse(child, WW_INVALID_ARGUMENT, "is shorter than what it belongs to");
        for (int64_t j = 0; c->kind == COLUMN_STRUCT && j < i; j++)
            if (strcmp(c->children[j].name, child->name) == 0)
                return column_refuse(child, WW_INVALID_ARGUMENT, "exists twice; a field of JSON has its own name");
    }
    return WW_OK;
}

static ww_status key_make(column *c)
{
    text_builder key = {0};
    ww_status status = text_build_quoted(&key, c->name, (int64_t)strlen(c->name));
    if (status == WW_OK)
        status = text_build(&key, ":", 1);
    c->key = key.bytes;
    c->key_bytes = (size_t)key.count;
    return status;
}

static ww_status children_read(column *c, const struct ArrowSchema *schema, int depth)
{
    const bool dictionary = c->kind == COLUMN_DICTIONARY;
    const int64_t count = dictionary ? 1 : c->array->n_children;
    if (count == 0)
        return WW_OK;
    c->children = memory_alloc_zeroed((size_t)count, sizeof *c->children);
    if (!c->children)
        return memory_failed("a column of Arrow", (size_t)count * sizeof *c->children);
    c->child_count = count;
    ww_status status = WW_OK;
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        status = column_read(&c->children[i], dictionary ? schema->dictionary : schema->children[i],
                             dictionary ? c->array->dictionary : c->array->children[i], depth + 1);
    for (int64_t i = 0; status == WW_OK && c->kind == COLUMN_STRUCT && i < count; i++)
        status = key_make(&c->children[i]);
    return status == WW_OK ? children_check(c) : status;
}

ww_status column_read(column *c, const struct ArrowSchema *schema, const struct ArrowArray *array, int depth)
{
    c->name = schema && schema->name ? schema->name : "";
    c->array = array;
    if (!schema || !array || !schema->format || !schema->release || !array->release)
        return column_refuse(c, WW_INVALID_ARGUMENT, "has been released, or is incomplete");
    if (depth > DEPTH_MAX)
        return column_refuse(c, WW_OUT_OF_RANGE, "is nested in more than 64 others");
    if (!utf8_check(c->name, strlen(c->name)))
        return column_refuse(c, WW_INVALID_ARGUMENT, "has a name that is not UTF-8");
    if (!type_read(schema->format, c) || is_extension(schema->metadata))
        return unsupported(c, schema->format);
    if (schema->dictionary && c->kind != COLUMN_INTEGER)
        return column_refuse(c, WW_INVALID_ARGUMENT, "has a dictionary whose indices are not integers");
    if (schema->dictionary)
        c->kind = COLUMN_DICTIONARY;
    c->is_map = strcmp(schema->format, "+m") == 0;
    const ww_status status = array_check(c, schema);
    return status == WW_OK ? children_read(c, schema, depth) : status;
}

void column_free(column *c)
{
    for (int64_t i = 0; i < c->child_count; i++)
        column_free(&c->children[i]);
    memory_free(c->children);
    memory_free(c->key);
}

/* ---- elements ------------------------------------------------------------------------------------------------------------ */

bool column_is_null(const column *c, int64_t index)
{
    if (c->kind == COLUMN_NULL)
        return true;
    const uint8_t *valid = c->array->buffers[0];
    if (valid && (valid[index / 8] >> (index % 8) & 1) == 0)
        return true;
    if (c->kind != COLUMN_DICTIONARY)
        return false;
    const column *values = c->children;
    const int64_t value = column_integer(c, index);
    return value >= 0 && value < values->array->length && column_is_null(values, values->array->offset + value);
}

int64_t column_integer(const column *c, int64_t index)
{
    const char *at = (const char *)c->array->buffers[1] + index * c->bytes;
    union {
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
    } value;
    memcpy(&value, at, (size_t)c->bytes);
    switch (c->bytes) {
    case 1:
        return c->is_signed ? (int64_t)value.i8 : (int64_t)value.u8;
    case 2:
        return c->is_signed ? (int64_t)value.i16 : (int64_t)value.u16;
    case 4:
        return c->is_signed ? (int64_t)value.i32 : (int64_t)value.u32;
    default:
        return value.i64;
    }
}
