/* Vectors of PostgreSQL's columns: as text in the stream of changes, in the types' binary forms in the copy, where they are a
 * quarter of the bytes and need no conversion on either side. The texts have all digits, so both give the same bits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/decimal.h"
#include "server/cluster/values.h"

enum { OID_BYTEA = 17, OID_FLOAT4 = 700, OID_FLOAT8 = 701, OID_FLOAT4_ARRAY = 1021, OID_FLOAT8_ARRAY = 1022 };

vector_form vector_form_of(uint32_t type, const char *type_name)
{
    if (strcmp(type_name, "vector") == 0)
        return VECTOR_PGVECTOR;
    if (strcmp(type_name, "halfvec") == 0)
        return VECTOR_HALF;
    if (type == OID_FLOAT4_ARRAY)
        return VECTOR_SINGLE;
    return type == OID_FLOAT8_ARRAY ? VECTOR_DOUBLE : type == OID_BYTEA ? VECTOR_BYTES : VECTOR_NONE;
}

bool vector_form_is_binary(vector_form form)
{
    return form != VECTOR_NONE && form != VECTOR_HALF;
}

/* Where a vector is written: as far as there is room, and counted in any case. */
typedef struct target {
    float *vector; /* NULL: only counted */
    int32_t dim, found;
    bool finite;
} target;

static void put(target *to, float number)
{
    if (to->vector && to->found < to->dim)
        to->vector[to->found] = number;
    to->finite = to->finite && isfinite(number);
    to->found++;
}

static vector_fault fault_of(const target *to)
{
    if (to->vector && to->found != to->dim)
        return VECTOR_WRONG_DIM;
    return to->finite ? VECTOR_OK : VECTOR_NOT_FINITE;
}

/* ---- texts --------------------------------------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads a number such as -1.25e-07 and moves behind it. False if it is none, or if its nearest f32 is not certain. */
static bool read_plain(const char **at, const char *end, float *number)
{
    const char *c = *at;
    decimal d = {.exponent_known = true};
    int32_t digits = 0;
    bool point = false;
    d.negative = c < end && *c == '-';
    for (c += d.negative; c < end && (is_digit(*c) || (*c == '.' && !point)); c++) {
        if (*c == '.') {
            point = true;
            continue;
        }
        d.digits = 10 * d.digits + (uint64_t)(*c - '0');
        d.exponent -= point;
        digits++;
    }
    if (digits == 0 || digits >= DECIMAL_DIGITS_MAX)
        return false;
    if (c < end && *c == 'e') {
        int32_t exponent = 0, places = 0;
        const bool negative = c + 1 < end && c[1] == '-';
        for (c += 1 + (c + 1 < end && (c[1] == '-' || c[1] == '+')); c < end && is_digit(*c) && places < 4; c++, places++)
            exponent = 10 * exponent + (*c - '0');
        if (places == 0 || places == 4)
            return false;
        d.exponent += negative ? -exponent : exponent;
    }
    *at = c;
    return (c == end || *c == ',') && decimal_to_f32(&d, number);
}

/* Reads any number of a list, exactly rounded, and moves behind it. False if there is none. */
static bool read_element(const char **at, const char *end, bool twice, float *number)
{
    char text[64];
    size_t length = 0;
    const char *first = *at;
    if (!twice && read_plain(at, end, number))
        return true;
    *at = first;
    while (*at + length < end && length < sizeof text && !strchr(",]} ", (*at)[length]))
        length++;
    if (length == 0 || length == sizeof text)
        return false;
    memcpy(text, *at, length);
    text[length] = '\0';
    char *stop = NULL;
    *number = twice ? (float)strtod(text, &stop) : strtof(text, &stop);
    *at += length;
    return *stop == '\0';
}

static vector_fault read_list(const pg_value *value, bool twice, target *to)
{
    const char *at = value->bytes, *end = at + value->length;
    if (value->length < 2 || (at[0] != '[' && at[0] != '{') || (end[-1] != ']' && end[-1] != '}'))
        return VECTOR_UNREADABLE;
    at++, end--;
    while (at < end) {
        float number = 0;
        if (!read_element(&at, end, twice, &number))
            return VECTOR_UNREADABLE;
        put(to, number);
        while (at < end && *at == ' ')
            at++;
        if (at < end && *at++ != ',')
            return VECTOR_UNREADABLE;
    }
    return fault_of(to);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* \x and eight digits for each number. */
static vector_fault read_hex(const pg_value *value, target *to)
{
    if (value->length < 2 || value->bytes[0] != '\\' || value->bytes[1] != 'x' || (value->length - 2) % 8 != 0)
        return VECTOR_UNREADABLE;
    for (const char *at = value->bytes + 2, *end = value->bytes + value->length; at < end; at += 8) {
        uint32_t bits = 0;
        for (size_t byte = 0; byte < 4; byte++) {
            const int high = hex_digit(at[2 * byte]), low = hex_digit(at[2 * byte + 1]);
            if (high < 0 || low < 0)
                return VECTOR_UNREADABLE;
            bits |= (uint32_t)(16 * high + low) << 8 * byte;
        }
        float number = 0;
        memcpy(&number, &bits, sizeof number);
        put(to, number);
    }
    return fault_of(to);
}

bool value_put_bytes(out *o, const pg_value *value)
{
    if (value->presence == PG_BINARY) {
        out_bytes(o, value->bytes, value->length);
        return true;
    }
    if (value->presence != PG_TEXT || value->length < 2 || value->length % 2 != 0 || memcmp(value->bytes, "\\x", 2) != 0)
        return false;
    for (size_t i = 2; i < value->length; i += 2) {
        const int high = hex_digit(value->bytes[i]), low = hex_digit(value->bytes[i + 1]);
        const char byte = (char)(16 * high + low);
        if (high < 0 || low < 0)
            return false;
        out_bytes(o, &byte, 1);
    }
    return true;
}

/* ---- binary forms -------------------------------------------------------------------------------------------------------- */

static uint64_t big_endian(const char *bytes, int count)
{
    uint64_t value = 0;
    for (int i = 0; i < count; i++)
        value = value << 8 | (unsigned char)bytes[i];
    return value;
}

static float single_of(const char *bytes)
{
    const uint32_t bits = (uint32_t)big_endian(bytes, 4);
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static float double_of(const char *bytes)
{
    const uint64_t bits = big_endian(bytes, 8);
    double number;
    memcpy(&number, &bits, sizeof number);
    return (float)number;
}

/* The number of dimensions, whether there are NULLs, and the elements' type; the length and the first index of each dimension;
 * then the length of each element and the element. An empty array has no dimensions. */
static vector_fault read_array(const pg_value *value, int bytes, target *to)
{
    enum { HEAD = 12, DIMENSION = 8 };
    const char *at = value->bytes;
    const uint64_t dimensions = value->length >= HEAD ? big_endian(at, 4) : 2;
    if (dimensions > 1 || big_endian(at + 8, 4) != (bytes == 4 ? OID_FLOAT4 : OID_FLOAT8))
        return VECTOR_UNREADABLE;
    if (dimensions == 0)
        return value->length == HEAD ? fault_of(to) : VECTOR_UNREADABLE;
    const size_t count = value->length >= HEAD + DIMENSION ? (size_t)big_endian(at + HEAD, 4) : 0;
    if (value->length < HEAD + DIMENSION || (value->length - HEAD - DIMENSION) / (4 + (size_t)bytes) != count ||
        (value->length - HEAD - DIMENSION) % (4 + (size_t)bytes) != 0)
        return VECTOR_UNREADABLE;
    at += HEAD + DIMENSION;
    for (size_t i = 0; i < count; i++, at += 4 + bytes) {
        if (big_endian(at, 4) != (uint64_t)bytes) /* NULL has -1 and no bytes */
            return VECTOR_UNREADABLE;
        put(to, bytes == 4 ? single_of(at + 4) : double_of(at + 4));
    }
    return fault_of(to);
}

/* The dimension, two bytes that are 0, and the numbers. */
static vector_fault read_pgvector(const pg_value *value, target *to)
{
    if (value->length < 4 || value->length != 4 + 4 * (size_t)big_endian(value->bytes, 2) ||
        big_endian(value->bytes + 2, 2) != 0)
        return VECTOR_UNREADABLE;
    for (size_t at = 4; at < value->length; at += 4)
        put(to, single_of(value->bytes + at));
    return fault_of(to);
}

static vector_fault read_bytes(const pg_value *value, target *to)
{
    if (value->length % 4 != 0)
        return VECTOR_UNREADABLE;
    for (size_t at = 0; at < value->length; at += 4) {
        float number;
        memcpy(&number, value->bytes + at, sizeof number);
        put(to, number);
    }
    return fault_of(to);
}

static vector_fault read_binary(vector_form form, const pg_value *value, target *to)
{
    switch (form) {
    case VECTOR_SINGLE:
        return read_array(value, 4, to);
    case VECTOR_DOUBLE:
        return read_array(value, 8, to);
    case VECTOR_PGVECTOR:
        return read_pgvector(value, to);
    case VECTOR_BYTES:
        return read_bytes(value, to);
    case VECTOR_HALF:
    case VECTOR_NONE:
        break;
    }
    return VECTOR_UNREADABLE;
}

vector_fault value_read_vector(vector_form form, const pg_value *value, float *vector, int32_t dim, int32_t *found)
{
    target to = {.vector = vector, .dim = dim, .finite = true};
    vector_fault fault = VECTOR_NOT_SENT;
    if (value->presence == PG_NULL)
        fault = VECTOR_IS_NULL;
    else if (value->presence == PG_BINARY)
        fault = read_binary(form, value, &to);
    else if (value->presence == PG_TEXT && form == VECTOR_BYTES)
        fault = read_hex(value, &to);
    else if (value->presence == PG_TEXT)
        fault = read_list(value, form == VECTOR_DOUBLE, &to);
    *found = to.found;
    return fault;
}

const char *vector_fault_text(vector_fault fault)
{
    switch (fault) {
    case VECTOR_OK:
        return "";
    case VECTOR_IS_NULL:
        return "has no vector";
    case VECTOR_NOT_SENT:
        return "has a vector that the database did not send: its key changed, and the row was in another shard before. Delete "
               "and "
               "insert it, or set REPLICA IDENTITY FULL";
    case VECTOR_NOT_FINITE:
        return "has a vector with NaN, an infinity or a number beyond f32";
    case VECTOR_WRONG_DIM:
        return "has a vector of another dimension";
    case VECTOR_UNREADABLE:
        break;
    }
    return "has a vector that cannot be read";
}
