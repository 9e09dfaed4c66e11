/* Metadata by name and type: the file's value is converted exactly to the requested type, or the call is refused. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/float_guard.h"
#include "gguf/gguf.h"

/* Any number of a file: an integer with a separate sign, because neither i64 nor u64 holds all of them; or a float. */
typedef struct number {
    bool is_float, negative;
    uint64_t magnitude;
    double real;
} number;

/* A key's value, and the name of the call for messages. */
typedef struct asked {
    const char *call, *file, *key;
    ww_gguf_value value;
} asked;

static ww_status find(const char *call, const ww_gguf *gguf, const char *key, const void *out, asked *a)
{
    int64_t index = 0;
    *a = (asked){.call = call, .key = key, .value = ww_gguf_value_default()};
    if (!gguf || !key || !out)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", call, !gguf ? "gguf" : key ? "the place for the value" : "key");
    a->file = gguf->parts[0].source.name;
    const ww_status status = ww_gguf_find_value(gguf, key, &index);
    return status == WW_OK ? ww_gguf_value_at(gguf, index, &a->value) : status;
}

static ww_status other_kind(const asked *a, const char *wanted)
{
    const bool array = a->value.kind == WW_GGUF_ARRAY;
    return ww_fail(WW_UNSUPPORTED, "%s: '%.200s' is %s%s; %s was asked for", a->file, a->key, array ? "an array of " : "",
                   ww_gguf_kind_name(array ? a->value.element : a->value.kind), wanted);
}

static bool is_number(ww_gguf_kind kind)
{
    return kind != WW_GGUF_STRING && kind != WW_GGUF_ARRAY && kind != WW_GGUF_BOOL;
}

/* Finds a single number; `wanted` names the requested type in messages. */
static ww_status find_number(const char *wanted, const ww_gguf *gguf, const char *key, const void *out, asked *a)
{
    const ww_status status = find(a->call, gguf, key, out, a);
    return status != WW_OK || is_number(a->value.kind) ? status : other_kind(a, wanted);
}

static number signed_number(int64_t value)
{
    return (number){.negative = value < 0, .magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value};
}

/* Element `i` of a value of numbers, or of bools, which read as 0 or 1. */
static number number_at(const ww_gguf_value *v, int64_t i)
{
    const size_t bytes = (size_t)gguf_kind_bytes((int64_t)v->element);
    const char *at = (const char *)v->data + (size_t)i * bytes;
    uint64_t bits = 0;
    memcpy(&bits, at, bytes);
    switch (v->element) {
    case WW_GGUF_I8:
        return signed_number((int8_t)bits);
    case WW_GGUF_I16:
        return signed_number((int16_t)bits);
    case WW_GGUF_I32:
        return signed_number((int32_t)bits);
    case WW_GGUF_I64:
        return signed_number((int64_t)bits);
    case WW_GGUF_F32: {
        float value;
        memcpy(&value, at, sizeof value);
        return (number){.is_float = true, .real = (double)value};
    }
    case WW_GGUF_F64: {
        double value;
        memcpy(&value, at, sizeof value);
        return (number){.is_float = true, .real = value};
    }
    default:
        return (number){.magnitude = bits};
    }
}

/* Converts a float with an integral value to that integer. */
static number as_integer(number n)
{
    const double size = fabs(n.real);
    if (!n.is_float || !(size < 0x1p64) || trunc(size) != size)
        return n;
    return (number){.negative = n.real < 0.0, .magnitude = (uint64_t)size};
}

static ww_status does_not_fit(const asked *a, int64_t i, number n, const char *wanted)
{
    char place[32] = "", text[48];
    if (a->value.kind == WW_GGUF_ARRAY)
        snprintf(place, sizeof place, "[%lld]", (long long)i);
    if (n.is_float)
        snprintf(text, sizeof text, "%.17g", n.real);
    else
        snprintf(text, sizeof text, "%s%llu", n.negative ? "-" : "", (unsigned long long)n.magnitude);
    return ww_fail(WW_OUT_OF_RANGE, "%s: '%.200s'%s is %s, %s; no %s is equal to it", a->file, a->key, place,
                   ww_gguf_kind_name(a->value.element), text, wanted);
}

static ww_status to_u64(const asked *a, int64_t i, uint64_t *value)
{
    const number n = as_integer(number_at(&a->value, i));
    if (n.is_float || (n.negative && n.magnitude > 0))
        return does_not_fit(a, i, n, "u64");
    *value = n.magnitude;
    return WW_OK;
}

static ww_status to_i64(const asked *a, int64_t i, int64_t *value)
{
    const number n = as_integer(number_at(&a->value, i));
    if (n.is_float || n.magnitude > (uint64_t)INT64_MAX + n.negative)
        return does_not_fit(a, i, n, "i64");
    /* A negative number has a magnitude of 1 to 2^63. */
    *value = n.negative ? -(int64_t)(n.magnitude - 1) - 1 : (int64_t)n.magnitude;
    return WW_OK;
}

static ww_status to_f64(const asked *a, int64_t i, double *value)
{
    const number n = number_at(&a->value, i);
    const double real = n.is_float ? n.real : n.negative ? -(double)n.magnitude : (double)n.magnitude;
    if (!n.is_float && (fabs(real) >= 0x1p64 || (uint64_t)fabs(real) != n.magnitude))
        return does_not_fit(a, i, n, "f64");
    *value = real;
    return WW_OK;
}

/* ---- single values ------------------------------------------------------------------------------------------------------- */

ww_status ww_gguf_u64(const ww_gguf *gguf, const char *key, uint64_t *value)
{
    FLOAT_GUARD();
    asked a = {.call = "ww_gguf_u64"};
    const ww_status status = find_number("a u64", gguf, key, value, &a);
    return status == WW_OK ? to_u64(&a, 0, value) : status;
}

ww_status ww_gguf_i64(const ww_gguf *gguf, const char *key, int64_t *value)
{
    FLOAT_GUARD();
    asked a = {.call = "ww_gguf_i64"};
    const ww_status status = find_number("an i64", gguf, key, value, &a);
    return status == WW_OK ? to_i64(&a, 0, value) : status;
}

ww_status ww_gguf_f64(const ww_gguf *gguf, const char *key, double *value)
{
    FLOAT_GUARD();
    asked a = {.call = "ww_gguf_f64"};
    const ww_status status = find_number("an f64", gguf, key, value, &a);
    return status == WW_OK ? to_f64(&a, 0, value) : status;
}

ww_status ww_gguf_bool(const ww_gguf *gguf, const char *key, int32_t *value)
{
    FLOAT_GUARD();
    asked a;
    const ww_status status = find("ww_gguf_bool", gguf, key, value, &a);
    if (status != WW_OK)
        return status;
    if ((!is_number(a.value.kind) && a.value.kind != WW_GGUF_BOOL) || a.value.kind == WW_GGUF_F32 ||
        a.value.kind == WW_GGUF_F64)
        return other_kind(&a, "a bool");
    const number n = number_at(&a.value, 0);
    if (n.negative || n.magnitude > 1)
        return does_not_fit(&a, 0, n, "bool");
    *value = (int32_t)n.magnitude;
    return WW_OK;
}

ww_status ww_gguf_text(const ww_gguf *gguf, const char *key, const char **text, size_t *bytes)
{
    FLOAT_GUARD();
    asked a;
    const ww_status status = find("ww_gguf_text", gguf, key, text, &a);
    if (status != WW_OK)
        return status;
    if (a.value.kind != WW_GGUF_STRING)
        return other_kind(&a, "a string");
    if (!bytes && memchr(a.value.data, 0, a.value.data_bytes))
        return ww_fail(WW_OUT_OF_RANGE, "%s: '%.200s' has a NUL inside; ask for its bytes, too", a.file, key);
    *text = a.value.data;
    if (bytes)
        *bytes = a.value.data_bytes;
    return WW_OK;
}

/* ---- arrays -------------------------------------------------------------------------------------------------------------- */

/* Finds an array and returns its number of elements. */
static ww_status find_array(const ww_gguf *gguf, asked *a, int64_t capacity, int64_t *count, const char *wanted)
{
    const char *call = a->call;
    const void *values = a->value.data; /* the caller's array */
    const ww_status status = find(call, gguf, a->key, count, a);
    if (status != WW_OK)
        return status;
    if (capacity < 0 || (!values && capacity > 0))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: capacity is %lld, values is %s", call, (long long)capacity,
                       values ? "not NULL" : "NULL");
    const bool texts = strcmp(wanted, "an array of strings") == 0;
    if (a->value.kind != WW_GGUF_ARRAY || (texts ? a->value.element != WW_GGUF_STRING : !is_number(a->value.element)))
        return other_kind(a, wanted);
    *count = a->value.count;
    if (values && capacity < a->value.count)
        return ww_fail(WW_OUT_OF_RANGE, "%s: '%.200s' has %lld elements; there is room for %lld", a->file, a->key,
                       (long long)a->value.count, (long long)capacity);
    return WW_OK;
}

/* All elements are converted before the first is written. */
ww_status ww_gguf_i64s(const ww_gguf *gguf, const char *key, int64_t *values, int64_t capacity, int64_t *count)
{
    FLOAT_GUARD();
    int64_t value;
    asked a = {.call = "ww_gguf_i64s", .key = key, .value = {.data = values}};
    ww_status status = find_array(gguf, &a, capacity, count, "an array of integers");
    for (int64_t i = 0; status == WW_OK && values && i < *count; i++)
        status = to_i64(&a, i, &value);
    for (int64_t i = 0; status == WW_OK && values && i < *count; i++)
        status = to_i64(&a, i, &values[i]);
    return status;
}

ww_status ww_gguf_f64s(const ww_gguf *gguf, const char *key, double *values, int64_t capacity, int64_t *count)
{
    FLOAT_GUARD();
    double value;
    asked a = {.call = "ww_gguf_f64s", .key = key, .value = {.data = values}};
    ww_status status = find_array(gguf, &a, capacity, count, "an array of numbers");
    for (int64_t i = 0; status == WW_OK && values && i < *count; i++)
        status = to_f64(&a, i, &value);
    for (int64_t i = 0; status == WW_OK && values && i < *count; i++)
        status = to_f64(&a, i, &values[i]);
    return status;
}

ww_status ww_gguf_texts(const ww_gguf *gguf, const char *key, ww_gguf_span *values, int64_t capacity, int64_t *count)
{
    FLOAT_GUARD();
    asked a = {.call = "ww_gguf_texts", .key = key, .value = {.data = values}};
    const ww_status status = find_array(gguf, &a, capacity, count, "an array of strings");
    const char *at = a.value.data;
    for (int64_t i = 0; status == WW_OK && values && i < *count; i++) {
        uint64_t length;
        memcpy(&length, at, sizeof length);
        values[i] = (ww_gguf_span){.text = at + sizeof length, .bytes = (size_t)length};
        at += sizeof length + length;
    }
    return status;
}
