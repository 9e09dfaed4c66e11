/* Writes values as text, like Python's str() and repr(), and as JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/template/value.h"

/* Writes the shortest digits that read back, formatted as in Python. A character that is not a digit, sign or e is the locale's
 * decimal point. */
static void write_real(work *w, builder *b, double x)
{
    char printed[64];
    int precision = 0;
    if (isnan(x) || isinf(x)) {
        build_words(w, b, isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
        return;
    }
    do
        snprintf(printed, sizeof printed, "%.*e", precision, x);
    while (strtod(printed, NULL) != x && ++precision < 17);
    const int exponent = (int)strtol(strchr(printed, 'e') + 1, NULL, 10);
    if (exponent >= -4 && exponent < 16)
        snprintf(printed, sizeof printed, "%.*f", precision > exponent ? precision - exponent : 1, x);
    for (const char *c = printed; *c; c++)
        build_character(w, b, strchr("0123456789+-e", *c) ? (unsigned char)*c : '.');
}

/* Writes the escape of a character into `escape`; false if it needs none. */
static bool find_escape(uint32_t c, uint32_t quote, const style *how, char escape[16])
{
    static const char names[] = "\nn\rr\tt\bb\ff"; /* Python's repr() has only the first three */
    const char *name = c > 0 && c < 32 ? strchr(names, (int)c) : NULL;
    if (name && !how->json && name - names >= 6)
        name = NULL;
    if (name || c == quote || c == '\\')
        snprintf(escape, 16, "\\%c", name ? name[1] : (char)c);
    else if (!how->json && (c < 32 || c == 127))
        snprintf(escape, 16, "\\x%02x", c);
    else if (c < 32 || (how->ascii && c > 126 && c < 0x10000))
        snprintf(escape, 16, "\\u%04x", c);
    else if (how->ascii && c >= 0x10000)
        snprintf(escape, 16, "\\u%04x\\u%04x", 0xD800 + ((c - 0x10000) >> 10), 0xDC00 + ((c - 0x10000) & 0x3FF));
    else
        return false;
    return true;
}

static bool has_character(text t, uint32_t c)
{
    for (size_t i = 0; i < t.count; i++)
        if (CODE(t.chars[i]) == c)
            return true;
    return false;
}

static void write_quoted(work *w, builder *b, text t, const style *how)
{
    const bool twice = how->json || (has_character(t, '\'') && !has_character(t, '"'));
    const char *quote = twice ? "\"" : "'";
    build_words(w, b, quote);
    for (size_t i = 0; i < t.count; i++) {
        char escape[16];
        if (!find_escape(CODE(t.chars[i]), (uint32_t)quote[0], how, escape)) {
            build_character(w, b, t.chars[i]);
            continue;
        }
        for (const char *c = escape; *c; c++)
            build_character(w, b, (unsigned char)*c | (t.chars[i] & QUOTED));
    }
    build_words(w, b, quote);
}

static void write_line(work *w, builder *b, const style *how, int64_t level)
{
    if (how->indent < 0)
        return;
    build_words(w, b, "\n");
    for (int64_t i = 0; i < level * how->indent; i++)
        build_words(w, b, " ");
}

static void write_collection(work *w, builder *b, value v, const style *how, int64_t level)
{
    const bool list = v.type == VALUE_LIST, tuple = list && v.all->tuple && !how->json;
    build_words(w, b, tuple ? "(" : list ? "[" : "{");
    for (size_t i = 0; i < v.all->count; i++) {
        if (i > 0)
            build(w, b, how->comma);
        write_line(w, b, how, level + 1);
        if (!list) {
            const value key = v.all->keys[i];
            value_write(w, b, how->json ? TEXT(value_text(w, key)) : key, how, level);
            build(w, b, how->colon);
        }
        value_write(w, b, v.all->items[i], how, level + 1);
    }
    if (v.all->count > 0)
        write_line(w, b, how, level);
    build_words(w, b, tuple && v.all->count == 1 ? ",)" : tuple ? ")" : list ? "]" : "}");
}

void value_write(work *w, builder *b, value v, const style *how, int64_t level)
{
    char number[24];
    switch (v.type) {
    case VALUE_TEXT:
        write_quoted(w, b, v.text, how);
        break;
    case VALUE_LIST:
    case VALUE_DICT:
        write_collection(w, b, v, how, level);
        break;
    case VALUE_NONE:
        build_words(w, b, how->json ? "null" : "None");
        break;
    case VALUE_BOOL:
        build_words(w, b, v.truth ? (how->json ? "true" : "True") : how->json ? "false" : "False");
        break;
    case VALUE_INTEGER:
        snprintf(number, sizeof number, "%lld", (long long)v.integer);
        build_words(w, b, number);
        break;
    case VALUE_REAL:
        write_real(w, b, v.real);
        break;
    default:
        if (v.type != VALUE_UNDEFINED || how->json)
            work_fail(w, WW_INVALID_ARGUMENT, "a %s cannot be written", value_python_name(v));
    }
}

text value_text(work *w, value v)
{
    builder b = {0};
    if (v.type == VALUE_TEXT)
        return v.text;
    const style python = {.indent = -1, .comma = literal(w, ", "), .colon = literal(w, ": ")};
    value_write(w, &b, v, &python, 0);
    return built(&b);
}
