/* Values: making, comparing, showing. */
#include "model/template/value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_value.h"
#include "base/text.h"

/* ---- lists and dictionaries -----------------------------------------------------------------------------------------------
 */

value list_make(work *w, size_t capacity)
{
    static value_list none;
    value_list *list = work_alloc(w, sizeof *list);
    value *items = capacity < TEMPLATE_MEMORY_MAX ? work_alloc(w, capacity * sizeof *items) : NULL;
    if (!list || !items) {
        work_fail(w, WW_OUT_OF_RANGE, "a list of %zu elements is too long", capacity);
        return (value){.type = VALUE_LIST, .list = &none};
    }
    list->items = items;
    return (value){.type = VALUE_LIST, .list = list};
}

static int depth_of(value v)
{
    return v.type == VALUE_LIST ? v.list->depth : v.type == VALUE_DICT ? v.dict->depth : 0;
}

static int deeper(work *w, int depth, value item)
{
    if (depth_of(item) >= TEMPLATE_NESTING_MAX)
        work_fail(w, WW_OUT_OF_RANGE, "lists and dictionaries more than %d levels deep", TEMPLATE_NESTING_MAX);
    return depth > depth_of(item) ? depth : depth_of(item) + 1;
}

void list_add(work *w, value *list, value item)
{
    const int depth = deeper(w, list->list->depth, item);
    if (!work_step(w, 1))
        return;
    list->list->depth = depth;
    list->list->items[list->list->count++] = item;
}

value dict_make(work *w, value_type type)
{
    static value_dict none;
    value_dict *dict = work_alloc(w, sizeof *dict);
    return (value){.type = type, .dict = dict ? dict : &none};
}

value *dict_find(work *w, const value_dict *dict, marked key)
{
    return dict_find_key(w, dict, TEXT_OF(key));
}

value *dict_find_key(work *w, const value_dict *dict, value key)
{
    work_step(w, 1 + dict->count / 8);
    for (size_t i = 0; i < dict->count; i++)
        if (key.type == dict->keys[i].type &&
            (key.type == VALUE_TEXT ? marked_equal(dict->keys[i].text, key.text) : dict->keys[i].integer == key.integer))
            return &dict->items[i];
    return NULL;
}

void dict_put(work *w, value *dict, marked key, value item)
{
    dict_put_key(w, dict, TEXT_OF(key), item);
}

void dict_put_key(work *w, value *dict, value key, value item)
{
    value_dict *d = dict->dict;
    value *old = dict_find_key(w, d, key);
    const int depth = dict->type == VALUE_DICT ? deeper(w, d->depth, item) : 0;
    if (w->status != WW_OK)
        return;
    if (!old && (d->count == d->capacity || !d->keys || !d->items)) {
        const size_t capacity = 2 * d->capacity + 4;
        value *keys = work_alloc(w, capacity * sizeof *keys);
        value *items = work_alloc(w, capacity * sizeof *items);
        if (!keys || !items)
            return;
        if (d->keys && d->items) {
            memcpy(keys, d->keys, d->count * sizeof *keys);
            memcpy(items, d->items, d->count * sizeof *items);
        }
        *d = (value_dict){keys, items, d->count, capacity, d->depth};
    }
    if (!old) {
        d->keys[d->count] = key;
        old = &d->items[d->count++];
    }
    *old = item;
    d->depth = depth;
}

/* ---- what is true, equal, less ---------------------------------------------------------------------------------------------
 */

bool value_is_number(value v)
{
    return v.type == VALUE_BOOL || v.type == VALUE_INTEGER || v.type == VALUE_REAL;
}

double value_real(value v)
{
    return v.type == VALUE_REAL ? v.real : (double)value_integer(v);
}

int64_t value_integer(value v)
{
    return v.type == VALUE_BOOL ? v.truth : v.integer;
}

bool value_truth(value v)
{
    switch (v.type) {
    case VALUE_UNDEFINED:
    case VALUE_NONE:
        return false;
    case VALUE_TEXT:
        return v.text.bytes > 0;
    case VALUE_LIST:
        return v.list->count > 0;
    case VALUE_DICT:
        return v.dict->count > 0;
    default:
        return !value_is_number(v) || value_real(v) != 0;
    }
}

bool value_equal(work *w, value a, value b)
{
    bool equal = true;
    if (value_is_number(a) && value_is_number(b))
        return a.type == VALUE_REAL || b.type == VALUE_REAL ? value_real(a) == value_real(b)
                                                            : value_integer(a) == value_integer(b);
    if (a.type != b.type || !work_step(w, 1))
        return false;
    switch (a.type) {
    case VALUE_TEXT:
        work_step(w, a.text.bytes / 64);
        return marked_equal(a.text, b.text);
    case VALUE_LIST:
        equal = a.list->count == b.list->count;
        for (size_t i = 0; equal && i < a.list->count; i++)
            equal = value_equal(w, a.list->items[i], b.list->items[i]);
        return equal;
    case VALUE_DICT:
        equal = a.dict->count == b.dict->count;
        for (size_t i = 0; equal && i < a.dict->count; i++) {
            const value *other = dict_find_key(w, b.dict, a.dict->keys[i]);
            equal = other && value_equal(w, a.dict->items[i], *other);
        }
        return equal;
    case VALUE_UNDEFINED:
    case VALUE_NONE:
        return true;
    case VALUE_FUNCTION:
        return marked_equal(a.text, b.text);
    default:
        return a.pair == b.pair;
    }
}

const char *value_kind_name(value v)
{
    static const char *const names[] = {"Undefined", "NoneType", "bool",      "int",   "float",    "str",
                                        "list",      "dict",     "Namespace", "Macro", "function", "method"};
    return v.type == VALUE_LIST && v.list->tuple ? "tuple" : names[v.type];
}

int value_compare(work *w, value a, value b)
{
    int order = 0;
    if (value_is_number(a) && value_is_number(b)) {
        if (a.type == VALUE_REAL || b.type == VALUE_REAL)
            return (value_real(a) > value_real(b)) - (value_real(a) < value_real(b));
        return (value_integer(a) > value_integer(b)) - (value_integer(a) < value_integer(b));
    }
    if (a.type == VALUE_TEXT && b.type == VALUE_TEXT) {
        const size_t shorter = a.text.bytes < b.text.bytes ? a.text.bytes : b.text.bytes;
        work_step(w, 1 + shorter / 64);
        order = shorter > 0 ? memcmp(a.text.text, b.text.text, shorter) : 0;
        return order ? order : (a.text.bytes > b.text.bytes) - (a.text.bytes < b.text.bytes);
    }
    if (a.type == VALUE_LIST && b.type == VALUE_LIST && work_step(w, 1)) {
        for (size_t i = 0; order == 0 && i < a.list->count && i < b.list->count; i++)
            if (!value_equal(w, a.list->items[i], b.list->items[i]))
                order = value_compare(w, a.list->items[i], b.list->items[i]);
        return order ? order : (a.list->count > b.list->count) - (a.list->count < b.list->count);
    }
    work_fail(w, WW_INVALID_ARGUMENT, "a %s and a %s have no order", value_kind_name(a), value_kind_name(b));
    return 0;
}

value value_elements(work *w, value v)
{
    if (v.type == VALUE_LIST)
        return v;
    value list = list_make(w, v.type == VALUE_DICT ? v.dict->count : v.type == VALUE_TEXT ? v.text.bytes : 0);
    if (v.type == VALUE_DICT)
        for (size_t i = 0; i < v.dict->count; i++)
            list_add(w, &list, v.dict->keys[i]);
    else if (v.type == VALUE_TEXT)
        for (size_t i = 0, bytes; i < v.text.bytes && w->status == WW_OK; i += bytes) {
            bytes = char_bytes(v.text, i);
            list_add(w, &list, TEXT_OF(marked_part(v.text, i, i + bytes)));
        }
    else if (v.type != VALUE_UNDEFINED)
        work_fail(w, WW_INVALID_ARGUMENT, "a %s has no elements", value_kind_name(v));
    return list;
}

/* ---- showing --------------------------------------------------------------------------------------------------------------
 */

/* The shortest digits that read back, laid out as Python does. Only digits are taken from printf(): the decimal point depends
 * on the locale. */
static void write_real(work *w, builder *b, double x)
{
    char text[40], digits[20] = "0", out[48];
    int count = 0, precision = 0;
    if (isnan(x) || isinf(x)) {
        build_text(w, b, isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
        return;
    }
    do
        snprintf(text, sizeof text, "%.*e", precision, x);
    while (strtod(text, NULL) != x && ++precision < 17);
    const char *e = strchr(text, 'e');
    for (const char *p = text; p < e; p++)
        if (*p >= '0' && *p <= '9' && count < 18)
            digits[count++] = *p;
    const int exponent = (int)strtol(e + 1, NULL, 10);
    char *to = out;
    *to = '-';
    to += signbit(x) != 0;
    if (exponent < -4 || exponent >= 16)
        snprintf(to, 40, "%c%s%.*se%+03d", digits[0], count > 1 ? "." : "", count - 1, digits + 1, exponent);
    else if (exponent < 0)
        snprintf(to, 40, "0.%.*s%.*s", -exponent - 1, "0000", count, digits);
    else if (count > exponent + 1)
        snprintf(to, 40, "%.*s.%.*s", exponent + 1, digits, count - exponent - 1, digits + exponent + 1);
    else
        snprintf(to, 40, "%.*s%.*s.0", count, digits, exponent + 1 - count, "0000000000000000");
    build_text(w, b, out);
}

/* How a text is written between quotes. */
typedef enum quoting { PYTHON, JSON, JSON_ASCII } quoting;

/* A character above 127 as JSON escapes it: one or two halves of four digits. */
static void write_unicode_escape(char escape[16], marked t, size_t at)
{
    uint32_t c = 0;
    utf8_read(t.text + at, t.bytes - at, &c);
    if (c < 0x10000)
        snprintf(escape, 16, "\\u%04x", c);
    else
        snprintf(escape, 16, "\\u%04x\\u%04x", 0xD800 + ((c - 0x10000) >> 10), 0xDC00 + ((c - 0x10000) & 0x3FF));
}

static void write_quoted(work *w, builder *b, marked t, quoting how)
{
    const bool json = how != PYTHON;
    const bool single = t.bytes > 0 && memchr(t.text, '\'', t.bytes), both = single && memchr(t.text, '"', t.bytes);
    const char quote[2] = {json || (single && !both) ? '"' : '\'', 0};
    size_t from = 0;
    build_text(w, b, quote);
    for (size_t i = 0, bytes; i < t.bytes && w->status == WW_OK; i += bytes) {
        const unsigned char c = (unsigned char)t.text[i];
        static const char names[] = "\bb\ff\nn\rr\tt";
        char escape[16] = {'\\', (char)c, 0}, marks[16];
        bytes = char_bytes(t, i);
        if (c >= 32 && c != '\\' && c != (unsigned char)quote[0] && (json || c != 127) && (c < 128 || how != JSON_ASCII))
            continue;
        const char *name = c < 32 && c > 0 ? strchr(names, c) : NULL;
        if (name && (json || c == '\n' || c == '\r' || c == '\t'))
            escape[1] = name[1];
        else if (c >= 128)
            write_unicode_escape(escape, t, i);
        else if (c < 32 || c == 127)
            snprintf(escape, sizeof escape, json ? "\\u%04x" : "\\x%02x", c);
        build(w, b, marked_part(t, from, i));
        memset(marks, t.marks ? t.marks[i] : 0, sizeof marks);
        build(w, b, (marked){escape, t.marks ? marks : NULL, strlen(escape)});
        from = i + bytes;
    }
    build(w, b, marked_part(t, from, t.bytes));
    build_text(w, b, quote);
}

static void write_plain(work *w, builder *b, value v, quoting how)
{
    const bool json = how != PYTHON;
    char number[24];
    if (v.type == VALUE_TEXT)
        write_quoted(w, b, v.text, how);
    else if (v.type == VALUE_NONE)
        build_text(w, b, json ? "null" : "None");
    else if (v.type == VALUE_BOOL)
        build_text(w, b, v.truth ? (json ? "true" : "True") : json ? "false" : "False");
    else if (v.type == VALUE_REAL)
        write_real(w, b, v.real);
    else if (v.type == VALUE_INTEGER) {
        snprintf(number, sizeof number, "%lld", (long long)v.integer);
        build_text(w, b, number);
    } else if (json || v.type != VALUE_UNDEFINED)
        work_fail(w, WW_INVALID_ARGUMENT, "a %s cannot be written", value_kind_name(v));
}

void value_write(work *w, builder *b, value v, bool quoted)
{
    if (v.type == VALUE_TEXT && !quoted) {
        build(w, b, v.text);
    } else if (v.type == VALUE_LIST) {
        build_text(w, b, v.list->tuple ? "(" : "[");
        for (size_t i = 0; i < v.list->count && w->status == WW_OK; i++) {
            build_text(w, b, i > 0 ? ", " : "");
            value_write(w, b, v.list->items[i], true);
        }
        build_text(w, b, !v.list->tuple ? "]" : v.list->count == 1 ? ",)" : ")");
    } else if (v.type == VALUE_DICT) {
        build_text(w, b, "{");
        for (size_t i = 0; i < v.dict->count && w->status == WW_OK; i++) {
            build_text(w, b, i > 0 ? ", " : "");
            value_write(w, b, v.dict->keys[i], true);
            build_text(w, b, ": ");
            value_write(w, b, v.dict->items[i], true);
        }
        build_text(w, b, "}");
    } else {
        write_plain(w, b, v, PYTHON);
    }
}

marked value_text(work *w, value v)
{
    builder b = {0};
    if (v.type == VALUE_TEXT)
        return v.text;
    value_write(w, &b, v, false);
    return built(&b);
}

static void write_line(work *w, builder *b, int64_t spaces)
{
    build_text(w, b, "\n");
    for (; spaces > 0 && w->status == WW_OK; spaces--)
        build_text(w, b, " ");
}

/* A key and what is behind it: integers are texts there. */
static void write_key(work *w, builder *b, value key, const json_style *style)
{
    write_quoted(w, b, value_text(w, key), style->ascii ? JSON_ASCII : JSON);
    build(w, b, style->colon);
}

void value_write_json(work *w, builder *b, value v, const json_style *style, int64_t level)
{
    const bool list = v.type == VALUE_LIST;
    const size_t count = list ? v.list->count : v.type == VALUE_DICT ? v.dict->count : 0;
    if (!list && v.type != VALUE_DICT) {
        write_plain(w, b, v, style->ascii ? JSON_ASCII : JSON);
        return;
    }
    build_text(w, b, list ? "[" : "{");
    for (size_t i = 0; i < count && w->status == WW_OK; i++) {
        build(w, b, i == 0 ? literal("") : style->comma);
        if (style->indent >= 0)
            write_line(w, b, (level + 1) * style->indent);
        if (!list)
            write_key(w, b, v.dict->keys[i], style);
        value_write_json(w, b, list ? v.list->items[i] : v.dict->items[i], style, level + 1);
    }
    if (style->indent >= 0 && count > 0)
        write_line(w, b, level * style->indent);
    build_text(w, b, list ? "]" : "}");
}

/* ---- JSON in --------------------------------------------------------------------------------------------------------------
 */

static marked text_from_json(work *w, const char *json)
{
    const size_t room = (size_t)(json_end(json) - json);
    char *text = work_alloc(w, 2 * room);
    if (!text)
        return literal("");
    memset(text + room, 1, room);
    return (marked){text, text + room, json_text_read(json, text)};
}

value value_from_json(work *w, const char *json)
{
    const json_type type = json_type_of(json);
    value made = NONE;
    size_t count = 0;
    if (type == JSON_FALSE || type == JSON_TRUE)
        return BOOLEAN(type == JSON_TRUE);
    if (type == JSON_NUMBER) {
        const json_number n = json_number_of(json);
        return n.is_integer ? INTEGER(n.integer) : REAL(n.real);
    }
    if (type == JSON_TEXT)
        return TEXT_OF(text_from_json(w, json));
    if (type == JSON_LIST) {
        for (const char *at = json_first(json); at; at = json_next(at))
            count++;
        made = list_make(w, count);
        for (const char *at = json_first(json); at && w->status == WW_OK; at = json_next(at))
            list_add(w, &made, value_from_json(w, at));
    } else if (type == JSON_OBJECT) {
        made = dict_make(w, VALUE_DICT);
        for (const char *at = json_first(json); at && w->status == WW_OK; at = json_next(at))
            dict_put(w, &made, text_from_json(w, at), value_from_json(w, json_member(at)));
    }
    return made;
}
