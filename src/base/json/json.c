/* A checker for JSON: a loop over tokens, with a stack of bits for the brackets. */
#include "base/json/json.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"

typedef struct reader {
    const char *text, *at, *end;
    const char *fault;
    uint64_t in_object[(JSON_DEPTH_MAX + 63) / 64]; /* one bit per open bracket: it is an object's */
    int depth;
} reader;

static bool refuse(reader *r, const char *what)
{
    if (!r->fault)
        r->fault = what;
    return false;
}

static void skip_space(reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

static bool next_is(reader *r, char c)
{
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static bool digits(reader *r)
{
    const char *first = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
        r->at++;
    return r->at > first || refuse(r, "a number without digits");
}

static bool number(reader *r)
{
    next_is(r, '-');
    if (r->at < r->end && *r->at == '0')
        r->at++;
    else if (!digits(r))
        return false;
    if (r->at < r->end && *r->at >= '0' && *r->at <= '9')
        return refuse(r, "a number that begins with 0");
    if (next_is(r, '.') && !digits(r))
        return false;
    if (r->at < r->end && (*r->at | 0x20) == 'e') {
        r->at++;
        if (!next_is(r, '+'))
            next_is(r, '-');
        return digits(r);
    }
    return true;
}

/* Returns the four digits of a \u escape, or -1. */
static int32_t hex4(reader *r)
{
    if (r->end - r->at < 4)
        return -1;
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        const char c = *r->at++;
        const char letter = (char)(c | 0x20);
        if (c >= '0' && c <= '9')
            value = value * 16 + (c - '0');
        else if (letter >= 'a' && letter <= 'f')
            value = value * 16 + (letter - 'a' + 10);
        else
            return -1;
    }
    return value;
}

static bool escape(reader *r)
{
    if (r->at == r->end)
        return refuse(r, "a string that does not end");
    const char kind = *r->at++;
    if (kind != 'u')
        return strchr("\"\\/bfnrt", kind) && kind != '\0' ? true : refuse(r, "an escape that JSON does not have");
    const int32_t first = hex4(r);
    if (first < 0)
        return refuse(r, "a \\u escape without four hexadecimal digits");
    if (first < 0xd800 || first > 0xdfff)
        return true;
    int32_t second = -1;
    if (first < 0xdc00 && next_is(r, '\\') && next_is(r, 'u'))
        second = hex4(r);
    return (second >= 0xdc00 && second <= 0xdfff) || refuse(r, "a \\u escape that is half of a surrogate pair");
}

/* Reads the remaining bytes of a UTF-8 character after its first. */
static bool utf8_rest(reader *r)
{
    uint32_t character;
    const size_t bytes = utf8_read(r->at - 1, (size_t)(r->end - r->at) + 1, &character);
    if (bytes == 0)
        return refuse(r, "bytes that are not UTF-8");
    r->at += bytes - 1;
    return true;
}

static bool string(reader *r)
{
    while (r->at < r->end) {
        const unsigned char c = (unsigned char)*r->at++;
        if (c == '"')
            return true;
        if (c < 0x20)
            return refuse(r, "a control character in a string");
        if (c == '\\' && !escape(r))
            return false;
        if (c >= 0x80 && !utf8_rest(r))
            return false;
    }
    return refuse(r, "a string that does not end");
}

static bool word(reader *r, const char *expected)
{
    const size_t length = strlen(expected);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, expected, length) != 0)
        return refuse(r, "a value expected");
    r->at += length;
    return true;
}

static bool scalar(reader *r)
{
    if (next_is(r, '"'))
        return string(r);
    switch (r->at < r->end ? *r->at : '\0') {
    case 't':
        return word(r, "true");
    case 'f':
        return word(r, "false");
    case 'n':
        return word(r, "null");
    default:
        break;
    }
    if (r->at < r->end && (*r->at == '-' || (*r->at >= '0' && *r->at <= '9')))
        return number(r);
    return refuse(r, r->at == r->end ? "the end where a value is expected" : "a value expected");
}

static bool in_object(const reader *r)
{
    return r->depth > 0 && (r->in_object[(r->depth - 1) / 64] >> (r->depth - 1) % 64 & 1);
}

static bool open_bracket(reader *r, bool object)
{
    if (r->depth == JSON_DEPTH_MAX)
        return refuse(r, "too deep: more than 1000 brackets inside each other");
    const uint64_t bit = UINT64_C(1) << r->depth % 64;
    uint64_t *bits = &r->in_object[r->depth / 64];
    *bits = object ? *bits | bit : *bits & ~bit;
    r->depth++;
    return true;
}

static bool key(reader *r)
{
    skip_space(r);
    if (!next_is(r, '"'))
        return refuse(r, "a key in quotes expected");
    if (!string(r))
        return false;
    skip_space(r);
    return next_is(r, ':') || refuse(r, "a colon expected");
}

/* After a value: closes brackets and skips a comma, up to the start of the next value. Returns true at the end of the text. */
static bool after_value(reader *r, bool *ended)
{
    for (;;) {
        skip_space(r);
        *ended = r->depth == 0;
        if (*ended)
            return r->at == r->end || refuse(r, "something after the value");
        const bool object = in_object(r);
        if (next_is(r, ','))
            return !object || key(r);
        if (!next_is(r, object ? '}' : ']'))
            return refuse(r, object ? "a comma or } expected" : "a comma or ] expected");
        r->depth--;
    }
}

/* At the start of a value. If a bracket is not empty, the next value is the first one in it. */
static bool value(reader *r, bool *complete)
{
    skip_space(r);
    *complete = true;
    const bool object = next_is(r, '{');
    if (!object && !next_is(r, '['))
        return scalar(r);
    if (!open_bracket(r, object))
        return false;
    skip_space(r);
    if (next_is(r, object ? '}' : ']')) {
        r->depth--;
        return true;
    }
    *complete = false;
    return !object || key(r);
}

static bool check(reader *r)
{
    bool ended = false;
    while (!ended) {
        bool complete;
        if (!value(r, &complete) || (complete && !after_value(r, &ended)))
            return false;
    }
    return true;
}

bool json_check(const char *text, size_t length, json_fault *fault)
{
    reader r = {.text = text, .at = text, .end = text + length};
    if (length > JSON_BYTES_MAX)
        refuse(&r, "too long: more than 256 MiB");
    else if (check(&r))
        return true;
    *fault = (json_fault){.what = r.fault, .line = 1, .column = 1};
    for (const char *c = text; c < r.at; c++) {
        fault->column = *c == '\n' ? 1 : fault->column + 1;
        fault->line += *c == '\n';
    }
    return false;
}
