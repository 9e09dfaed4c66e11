/* Reading and writing vectors as blobs and JSON texts. Numbers in texts are read in the C locale, whatever the host's locale
 * is. */
#include "store/sqlite/value.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <warpwave/vectors.h>

#include "arithmetic/half.h"
#include "base/json/json.h"
#include "base/json/json_value.h"
#include "base/memory.h"

static const struct {
    const char *name;
    size_t bytes;
} TYPES[VALUE_TYPES] = {
    [WW_VECTOR_F32] = {"f32", 4}, [WW_VECTOR_F16] = {"f16", 2}, [WW_VECTOR_BF16] = {"bf16", 2},
    [WW_VECTOR_I8] = {"i8", 1},   [WW_VECTOR_U8] = {"u8", 1},
};

const char *value_type_name(ww_vector_type type)
{
    return TYPES[type].name;
}

size_t value_type_bytes(ww_vector_type type)
{
    return TYPES[type].bytes;
}

bool value_type_find(const char *name, ww_vector_type *type)
{
    for (int i = 0; i < VALUE_TYPES; i++)
        if (strcasecmp(name, TYPES[i].name) == 0) {
            *type = (ww_vector_type)i;
            return true;
        }
    return false;
}

void vector_buffer_free(vector_buffer *buffer)
{
    memory_free(buffer->values);
    *buffer = (vector_buffer){0};
}

static ww_status buffer_reserve(vector_buffer *buffer, int32_t dim)
{
    if (dim <= buffer->capacity)
        return WW_OK;
    float *values = memory_resize(buffer->values, (size_t)dim * sizeof *values);
    if (!values)
        return memory_failed("a vector", (size_t)dim * sizeof *values);
    buffer->values = values;
    buffer->capacity = dim;
    return WW_OK;
}

static ww_status check_finite(const vector_buffer *buffer)
{
    for (int32_t i = 0; i < buffer->dim; i++)
        if (!isfinite(buffer->values[i]))
            return ww_fail(WW_INVALID_ARGUMENT, "element %d is %s; a vector's values must be finite", i,
                           isnan(buffer->values[i]) ? "nan" : "infinite");
    return WW_OK;
}

static void widen(const unsigned char *bytes, ww_vector_type type, vector_buffer *buffer)
{
    float *to = buffer->values;
    const size_t count = (size_t)buffer->dim;
    if (type == WW_VECTOR_F32)
        memcpy(to, bytes, count * sizeof *to);
    for (size_t i = 0; type == WW_VECTOR_I8 && i < count; i++)
        to[i] = (float)(signed char)bytes[i];
    for (size_t i = 0; type == WW_VECTOR_U8 && i < count; i++)
        to[i] = (float)bytes[i];
    for (size_t i = 0; TYPES[type].bytes == 2 && i < count; i++) {
        uint16_t half;
        memcpy(&half, bytes + 2 * i, sizeof half);
        to[i] = type == WW_VECTOR_F16 ? f32_from_f16(half) : f32_from_bf16(half);
    }
}

/* Finds the type and the number of elements of a blob by its length. */
static ww_status blob_shape(size_t bytes, ww_vector_type type, int32_t dim, ww_vector_type *found, int32_t *count)
{
    const size_t size = TYPES[type].bytes;
    if (dim > 0) {
        *count = dim;
        *found = bytes == (size_t)dim * sizeof(float) ? WW_VECTOR_F32 : type;
        if (bytes == (size_t)dim * TYPES[*found].bytes)
            return WW_OK;
        if (type == WW_VECTOR_F32)
            return ww_fail(WW_DIMENSION_MISMATCH, "a blob of %zu bytes; %d f32 numbers take %zu", bytes, dim, (size_t)dim * 4);
        return ww_fail(WW_DIMENSION_MISMATCH, "a blob of %zu bytes; %d numbers take %zu as f32 and %zu as %s", bytes, dim,
                       (size_t)dim * 4, (size_t)dim * size, TYPES[type].name);
    }
    if (bytes == 0 || bytes % size != 0 || bytes / size > WW_DIM_MAX)
        return ww_fail(WW_DIMENSION_MISMATCH, "a blob of %zu bytes; a vector is 1 to %d %s numbers of %zu bytes", bytes,
                       WW_DIM_MAX, TYPES[type].name, size);
    *found = type;
    *count = (int32_t)(bytes / size);
    return WW_OK;
}

static ww_status read_blob(sqlite3_value *value, ww_vector_type type, int32_t dim, vector_buffer *buffer)
{
    const unsigned char *bytes = sqlite3_value_blob(value);
    const size_t length = (size_t)sqlite3_value_bytes(value);
    if (!bytes && length > 0)
        return memory_failed("a blob", length);
    ww_vector_type found = type;
    int32_t count = 0;
    ww_status status = blob_shape(length, type, dim, &found, &count);
    if (status == WW_OK)
        status = buffer_reserve(buffer, count);
    if (status != WW_OK)
        return status;
    buffer->dim = count;
    widen(bytes, found, buffer);
    return check_finite(buffer);
}

static const char *skip_space(const char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')
        at++;
    return at;
}

/* Which element of the array is not a number? */
static ww_status no_number(const char *array)
{
    int64_t element = 0;
    for (const char *at = json_first(array); at && json_type_of(at) == JSON_NUMBER; at = json_next(at))
        element++;
    return ww_fail(WW_INVALID_ARGUMENT, "element %lld of the JSON array is not a number", (long long)element);
}

/* Reads the numbers of a JSON array, which json_check() has accepted. */
static ww_status read_numbers(const char *array, vector_buffer *buffer)
{
    const int64_t count = json_first(array) ? json_numbers_count(array) : 0;
    buffer->dim = 0;
    if (count > WW_DIM_MAX)
        return ww_fail(WW_DIMENSION_MISMATCH, "a JSON array of more than %d numbers, the maximum for a vector", WW_DIM_MAX);
    const ww_status status = count > 0 ? buffer_reserve(buffer, (int32_t)count) : WW_OK;
    if (status != WW_OK || count == 0)
        return status;
    if (count < 0 || !json_numbers_read(array, buffer->values))
        return no_number(array);
    buffer->dim = (int32_t)count;
    return WW_OK;
}

static ww_status read_json(const char *text, size_t length, int32_t dim, vector_buffer *buffer)
{
    json_fault fault = {0};
    if (!json_check(text, length, &fault))
        return ww_fail(WW_INVALID_ARGUMENT, "a text that is not JSON: %s at line %zu, column %zu; write it as [1, 2.5, -3]",
                       fault.what, fault.line, fault.column);
    text = skip_space(text);
    if (*text != '[')
        return ww_fail(WW_INVALID_ARGUMENT, "a JSON text that is not an array; write it as [1, 2.5, -3]");
    ww_status status = read_numbers(text, buffer);
    if (status == WW_OK && buffer->dim == 0)
        return ww_fail(WW_DIMENSION_MISMATCH, "an empty JSON array; a vector has 1 to %d numbers", WW_DIM_MAX);
    if (status == WW_OK && dim > 0 && buffer->dim != dim)
        return ww_fail(WW_DIMENSION_MISMATCH, "a JSON array of %d numbers; %d are needed", buffer->dim, dim);
    return status == WW_OK ? check_finite(buffer) : status;
}

const char *value_kind(sqlite3_value *value)
{
    switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER:
        return "an integer";
    case SQLITE_FLOAT:
        return "a number";
    case SQLITE_TEXT:
        return "a text";
    case SQLITE_BLOB:
        return "a blob";
    default:
        return "NULL";
    }
}

ww_status vector_read(sqlite3_value *value, ww_vector_type type, int32_t dim, vector_buffer *buffer)
{
    const int kind = sqlite3_value_type(value);
    if (kind == SQLITE_BLOB)
        return read_blob(value, type, dim, buffer);
    if (kind == SQLITE_TEXT) {
        const char *text = (const char *)sqlite3_value_text(value);
        return text ? read_json(text, (size_t)sqlite3_value_bytes(value), dim, buffer) : memory_failed("a text", 0);
    }
    return ww_fail(WW_INVALID_ARGUMENT, "%s; a vector is a blob of f32 numbers or a JSON array", value_kind(value));
}

ww_status vector_check(const float *values, int32_t dim, ww_vector_type type)
{
    const float min = type == WW_VECTOR_I8 ? -128.0f : 0.0f, max = type == WW_VECTOR_I8 ? 127.0f : 255.0f;
    for (int32_t i = 0; i < dim; i++) {
        const float value = values[i];
        const bool fits = type == WW_VECTOR_F32    ? true
                          : type == WW_VECTOR_F16  ? isfinite(f32_from_f16(f16_from_f32(value)))
                          : type == WW_VECTOR_BF16 ? isfinite(f32_from_bf16(bf16_from_f32(value)))
                                                   : value >= min && value <= max && value == truncf(value);
        if (!fits && TYPES[type].bytes == 2)
            return ww_fail(WW_INVALID_ARGUMENT, "element %d, %g, is too large for %s", i, (double)value, TYPES[type].name);
        if (!fits)
            return ww_fail(WW_INVALID_ARGUMENT, "element %d, %g, is not an integer from %g to %g; %s takes no other", i,
                           (double)value, (double)min, (double)max, TYPES[type].name);
    }
    return WW_OK;
}

void vector_write(const float *values, int32_t dim, ww_vector_type type, void *bytes)
{
    unsigned char *to = bytes;
    if (type == WW_VECTOR_F32)
        memcpy(to, values, (size_t)dim * sizeof *values);
    for (size_t i = 0; TYPES[type].bytes == 2 && i < (size_t)dim; i++) {
        const uint16_t half = type == WW_VECTOR_BF16 ? bf16_from_f32(values[i]) : f16_from_f32(values[i]);
        memcpy(to + 2 * i, &half, sizeof half);
    }
    for (size_t i = 0; TYPES[type].bytes == 1 && i < (size_t)dim; i++)
        to[i] = type == WW_VECTOR_I8 ? (unsigned char)(signed char)values[i] : (unsigned char)values[i];
}

/* Six digits are enough for most numbers, nine for every f32. */
static void append_number(sqlite3_str *json, float value, locale_t c_locale)
{
    char text[32];
    int digits = 6;
    do
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
    while (digits++ < 9 && strtof_l(text, NULL, c_locale) != value);
    sqlite3_str_appendall(json, text);
}

char *vector_to_json(const float *values, int32_t dim)
{
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale)
        return NULL;
    locale_t before = uselocale(c_locale);
    sqlite3_str *json = sqlite3_str_new(NULL);
    for (int32_t i = 0; i < dim; i++) {
        sqlite3_str_appendchar(json, 1, i == 0 ? '[' : ',');
        append_number(json, values[i], c_locale);
    }
    sqlite3_str_appendchar(json, 1, ']');
    uselocale(before);
    freelocale(c_locale);
    if (sqlite3_str_errcode(json) != SQLITE_OK) {
        sqlite3_free(sqlite3_str_finish(json));
        return NULL;
    }
    return sqlite3_str_finish(json);
}

int value_result_code(ww_status status)
{
    switch (status) {
    case WW_OK:
        return SQLITE_OK;
    case WW_OUT_OF_MEMORY:
        return SQLITE_NOMEM;
    case WW_DUPLICATE_ID:
        return SQLITE_CONSTRAINT;
    case WW_CORRUPT_FILE:
        return SQLITE_CORRUPT_VTAB;
    case WW_IO_ERROR:
        return SQLITE_IOERR;
    case WW_BUSY:
        return SQLITE_BUSY;
    case WW_CANCELLED:
        return SQLITE_INTERRUPT;
    default:
        return SQLITE_ERROR;
    }
}
