/* Reads a filter from a dictionary:
 *
 *     {"year": {"$gt": 2000}, "lang": {"$in": ["en", "de"]}, "$or": [{"draft": false}, {"owner.name": "ann"}]}
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/instant.h"
#include "base/json/json.h"
#include "base/memory.h"
#include "vectors/filter/filter.h"

enum { PLACE_BYTES = 256 };

typedef struct reader {
    ww_filter *out;
    char *texts;             /* texts without their escapes, which are never longer: a text is at its place in the JSON */
    const char *json;        /* its beginning */
    filter_operand *values;  /* of the condition that is being read */
    int64_t capacity;        /* of `values` */
    char place[PLACE_BYTES]; /* "$or.1.year.$gt", for messages */
} reader;

/* ---- the place in the filter, for messages ------------------------------------------------------------------------------- */

/* Goes one level down. Returns the length to which leave() cuts the place again. */
static size_t enter(reader *r, const char *name, size_t length)
{
    const size_t before = strlen(r->place);
    snprintf(r->place + before, sizeof r->place - before, "%s%.*s", before > 0 ? "." : "", (int)length, name);
    return before;
}

/* Appends the name of an entry: its number in a list, its key in an object. */
static size_t enter_entry(reader *r, const char *entries, const char *entry, int64_t number)
{
    char digits[24];
    if (json_type_of(entries) == JSON_OBJECT)
        return enter(r, entry + 1, (size_t)(json_end(entry) - entry) - 2);
    return enter(r, digits, (size_t)snprintf(digits, sizeof digits, "%lld", (long long)number));
}

static void leave(reader *r, size_t before)
{
    r->place[before] = '\0';
}

__attribute__((format(printf, 2, 3))) static ww_status refuse(const reader *r, const char *format, ...)
{
    char why[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    return ww_fail(WW_INVALID_ARGUMENT, "filter: %s%s%s", r->place, r->place[0] != '\0' ? ": " : "", why);
}

/* ---- values -------------------------------------------------------------------------------------------------------------- */

static const char *read_text(reader *r, const char *value, size_t *length)
{
    char *text = r->texts + (value - r->json);
    *length = json_text_read(value, text);
    return text;
}

/* {"$date": "2024-01-31"} */
static ww_status read_date(reader *r, const char *object, filter_operand *operand)
{
    const char *date = json_find(object, "$date", 5);
    if (!date || json_next(json_first(object)) || json_type_of(date) != JSON_TEXT)
        return refuse(r, "an object is not a value; a date is {\"$date\": \"2024-01-31T12:00:00Z\"}");
    operand->type = WW_FILTER_DATE;
    operand->text = read_text(r, date, &operand->length);
    operand->number.is_integer = true;
    return instant_read(operand->text, operand->length, &operand->number.integer)
               ? WW_OK
               : refuse(r, "'%.*s' is not a date; write 2024-01-31 or 2024-01-31T12:00:00Z", (int)operand->length,
                        operand->text);
}

static ww_status read_value(reader *r, const char *value, filter_operand *operand)
{
    *operand = (filter_operand){0};
    switch (json_type_of(value)) {
    case JSON_NULL:
        break;
    case JSON_FALSE:
        operand->type = WW_FILTER_FALSE;
        break;
    case JSON_TRUE:
        operand->type = WW_FILTER_TRUE;
        break;
    case JSON_NUMBER:
        operand->number = json_number_of(value);
        operand->type = operand->number.is_integer ? WW_FILTER_INTEGER : WW_FILTER_REAL;
        break;
    case JSON_TEXT:
        operand->type = WW_FILTER_TEXT;
        operand->text = read_text(r, value, &operand->length);
        break;
    case JSON_LIST:
        return refuse(r, "a list is not a value; {\"$in\": [...]} is true for each of its elements");
    case JSON_OBJECT:
        return read_date(r, value, operand);
    }
    return WW_OK;
}

/* Reads one value, or each element of a list, into r->values. */
static ww_status read_values(reader *r, const char *value, bool list, int64_t *count)
{
    if (list && json_type_of(value) != JSON_LIST)
        return refuse(r, "a list of values is needed");
    ww_status status = WW_OK;
    *count = 0;
    for (const char *at = list ? json_first(value) : value; status == WW_OK && at; at = list ? json_next(at) : NULL) {
        const ww_status grown = array_reserve(&r->values, &r->capacity, *count + 1, sizeof *r->values, "a filter");
        if (grown != WW_OK)
            return grown;
        status = read_value(r, at, &r->values[(*count)++]);
    }
    return status;
}

/* ---- conditions ---------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    ww_filter_test test;
    bool opposite, list;
} OPERATORS[] = {
    {"$eq", WW_FILTER_EQUAL, false, false},          {"$ne", WW_FILTER_EQUAL, true, false},
    {"$in", WW_FILTER_EQUAL, false, true},           {"$nin", WW_FILTER_EQUAL, true, true},
    {"$gt", WW_FILTER_GREATER, false, false},        {"$gte", WW_FILTER_GREATER_EQUAL, false, false},
    {"$lt", WW_FILTER_LESS, false, false},           {"$lte", WW_FILTER_LESS_EQUAL, false, false},
    {"$contains", WW_FILTER_CONTAINS, false, false},
};
static const char OPERATOR_NAMES[] = "$eq, $ne, $gt, $gte, $lt, $lte, $in, $nin, $contains, $exists and $not";

/* Adds a condition on the field; `operator` is an index of OPERATORS. */
static ww_status add_condition(reader *r, const json_path *field, size_t operator, const char * value)
{
    const ww_filter_test test = OPERATORS[operator].test;
    filter_condition c = {.kind = FILTER_FIELD,
                          .test = test,
                          .negated = OPERATORS[operator].opposite,
                          .parts = field->parts,
                          .part_count = field->count};
    const ww_status status = read_values(r, value, OPERATORS[operator].list, &c.operand_count);
    if (status != WW_OK)
        return status;
    c.operands = r->values;
    const ww_filter_type type = c.operand_count > 0 ? r->values->type : WW_FILTER_NULL;
    if (test >= WW_FILTER_LESS && (type == WW_FILTER_NULL || type == WW_FILTER_FALSE || type == WW_FILTER_TRUE))
        return refuse(r, "a number, a text or a date is needed");
    if (test == WW_FILTER_CONTAINS && (type == WW_FILTER_NULL || type == WW_FILTER_DATE))
        return refuse(r, "a text, a number or a boolean is needed");
    return filter_add(r->out, &c);
}

static ww_status read_operators(reader *r, const json_path *field, const char *object, bool negated);

static ww_status read_operator(reader *r, const json_path *field, const char *key)
{
    const char *value = json_member(key);
    if (json_text_is(key, "$not", 4))
        return json_type_of(value) == JSON_OBJECT ? read_operators(r, field, value, true)
                                                  : refuse(r, "an object of operators is needed");
    if (json_text_is(key, "$exists", 7)) {
        if (json_type_of(value) != JSON_TRUE && json_type_of(value) != JSON_FALSE)
            return refuse(r, "true or false is needed");
        return filter_add(r->out, &(filter_condition){.kind = FILTER_FIELD,
                                                      .test = WW_FILTER_EXISTS,
                                                      .negated = json_type_of(value) == JSON_FALSE,
                                                      .parts = field->parts,
                                                      .part_count = field->count});
    }
    for (size_t i = 0; i < sizeof OPERATORS / sizeof *OPERATORS; i++)
        if (json_text_is(key, OPERATORS[i].name, strlen(OPERATORS[i].name)))
            return add_condition(r, field, i, value);
    return refuse(r, "unknown operator; there are %s", OPERATOR_NAMES);
}

static ww_status begin(reader *r, int64_t at_least, bool negated)
{
    return filter_add(r->out, &(filter_condition){.kind = FILTER_GROUP, .at_least = at_least, .negated = negated});
}

/* A single operator needs no group. */
static ww_status read_operators(reader *r, const json_path *field, const char *object, bool negated)
{
    const bool group = negated || json_next(json_first(object));
    ww_status status = group ? begin(r, FILTER_EVERY, negated) : WW_OK;
    for (const char *key = json_first(object); status == WW_OK && key; key = json_next(key)) {
        const size_t before = enter_entry(r, object, key, 0);
        status = read_operator(r, field, key);
        leave(r, before);
    }
    return status == WW_OK && group ? filter_end(r->out) : status;
}

/* ---- fields -------------------------------------------------------------------------------------------------------------- */

static ww_status add_part(reader *r, json_path *path, const char *text, size_t length)
{
    if (length == 0)
        return refuse(r, "a part of the field's name is empty");
    if (memchr(text, '"', length) || memchr(text, '\0', length))
        return refuse(r, "a field's name with a quote or a NUL in it cannot be filtered by");
    if (path->count == JSON_PATH_PARTS_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "filter: %s: a field's name of more than %d parts", r->place, JSON_PATH_PARTS_MAX);
    path->parts[path->count++] = (json_part){.text = text, .length = length};
    return WW_OK;
}

/* "a.b" is the field b of the object a; a name in quotes is one field, with dots in it. */
static ww_status read_name(reader *r, const char *key, json_path *path)
{
    size_t length = 0;
    const char *text = read_text(r, key, &length), *const end = text + length;
    ww_status status = WW_OK;
    path->count = 0;
    if (length > 2 && text[0] == '"' && text[length - 1] == '"')
        return add_part(r, path, text + 1, length - 2);
    while (status == WW_OK && text <= end) {
        const char *dot = memchr(text, '.', (size_t)(end - text));
        const size_t part = (size_t)((dot ? dot : end) - text);
        status = add_part(r, path, text, part);
        text += part + 1;
    }
    return status;
}

static bool is_operator(const char *key)
{
    return key && key[1] == '$';
}

static ww_status read_field(reader *r, const char *key)
{
    const char *value = json_member(key);
    json_path path;
    const ww_status status = read_name(r, key, &path);
    if (status != WW_OK)
        return status;
    if (json_type_of(value) != JSON_OBJECT || json_find(value, "$date", 5))
        return add_condition(r, &path, 0, value);
    if (!is_operator(json_first(value)))
        return refuse(r, "an object of operators is needed (%s); a field of an object is named \"a.b\"", OPERATOR_NAMES);
    return read_operators(r, &path, value, false);
}

/* ---- the whole ----------------------------------------------------------------------------------------------------------- */

static ww_status read_entry(reader *r, const char *key);

static ww_status read_entries(reader *r, const char *object)
{
    ww_status status =
        json_type_of(object) == JSON_OBJECT ? WW_OK : refuse(r, "an object is needed, as in {\"year\": {\"$gt\": 2000}}");
    for (const char *key = status == WW_OK ? json_first(object) : NULL; status == WW_OK && key; key = json_next(key)) {
        const size_t before = enter_entry(r, object, key, 0);
        status = read_entry(r, key);
        leave(r, before);
    }
    return status;
}

/* An object is a group of which every entry holds, or not every one. */
static ww_status read_group(reader *r, const char *object, bool negated)
{
    ww_status status = begin(r, FILTER_EVERY, negated);
    if (status == WW_OK)
        status = read_entries(r, object);
    return status == WW_OK ? filter_end(r->out) : status;
}

static ww_status read_list(reader *r, const char *list, bool either)
{
    if (json_type_of(list) != JSON_LIST || !json_first(list))
        return refuse(r, "a list of filters is needed");
    ww_status status = begin(r, either ? 1 : FILTER_EVERY, false);
    int64_t number = 0;
    for (const char *at = json_first(list); status == WW_OK && at; at = json_next(at)) {
        const size_t before = enter_entry(r, list, at, number++);
        const bool single = json_type_of(at) == JSON_OBJECT && json_first(at) && !json_next(json_first(at));
        status = single ? read_entries(r, at) : read_group(r, at, false);
        leave(r, before);
    }
    return status == WW_OK ? filter_end(r->out) : status;
}

static ww_status read_entry(reader *r, const char *key)
{
    const char *value = json_member(key);
    const bool either = json_text_is(key, "$or", 3);
    if (either || json_text_is(key, "$and", 4))
        return read_list(r, value, either);
    if (json_text_is(key, "$not", 4))
        return read_group(r, value, true);
    if (is_operator(key))
        return refuse(r, "unknown operator; beside fields there are $and, $or and $not");
    return read_field(r, key);
}

ww_status filter_read(const char *json, ww_filter **filter)
{
    json_fault fault;
    reader r = {.json = json};
    const size_t length = strnlen(json, WW_FILTER_JSON_MAX + 1);
    if (length > WW_FILTER_JSON_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "filter: more than %d bytes", WW_FILTER_JSON_MAX);
    if (!json_check(json, length, &fault))
        return ww_fail(WW_INVALID_ARGUMENT, "filter: not JSON: %s in line %zu, column %zu", fault.what, fault.line,
                       fault.column);
    ww_status status = filter_create(&r.out);
    r.texts = status == WW_OK ? memory_alloc(length + 1) : NULL;
    if (status == WW_OK && !r.texts)
        status = memory_failed("a filter", length + 1);
    if (status == WW_OK)
        status = read_entries(&r, json_root(json));
    memory_free(r.texts);
    memory_free(r.values);
    if (status == WW_OK)
        *filter = r.out;
    else
        filter_destroy(r.out);
    return status;
}
