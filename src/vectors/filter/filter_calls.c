/* The public calls of filters: checks of what a caller gives. */
#include <math.h>
#include <string.h>

#include "base/float_guard.h"
#include "base/instant.h"
#include "base/json/json.h"
#include "base/memory.h"
#include "base/message.h"
#include "vectors/filter/filter_match.h"

static ww_status fail_argument(const char *function, const char *what)
{
    return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", function, what);
}

ww_status ww_filter_create(ww_filter **filter)
{
    FLOAT_GUARD();
    return filter ? filter_create(filter) : fail_argument("ww_filter_create", "filter");
}

ww_status ww_filter_read(const char *json, ww_filter **filter)
{
    FLOAT_GUARD();
    if (!json || !filter)
        return fail_argument("ww_filter_read", json ? "filter" : "json");
    return filter_read(json, filter);
}

void ww_filter_destroy(ww_filter *filter)
{
    filter_destroy(filter);
}

/* ---- conditions ---------------------------------------------------------------------------------------------------------- */

enum {
    TYPE_NUMBER = 1 << WW_FILTER_INTEGER | 1 << WW_FILTER_REAL,
    TYPE_TEXT = 1 << WW_FILTER_TEXT,
    TYPE_DATE = 1 << WW_FILTER_DATE
};
enum { TYPE_ANY = TYPE_NUMBER | TYPE_TEXT | TYPE_DATE | 1 << WW_FILTER_NULL | 1 << WW_FILTER_FALSE | 1 << WW_FILTER_TRUE };

/* The values that each condition takes. */
static const struct {
    int64_t least, most; /* how many */
    int types;
    bool bounds;
} TESTS[] = {
    [WW_FILTER_EXISTS] = {0, 0, 0, false},
    [WW_FILTER_EQUAL] = {0, INT64_MAX, TYPE_ANY, false},
    [WW_FILTER_CONTAINS] = {1, 1, TYPE_NUMBER | TYPE_TEXT | 1 << WW_FILTER_FALSE | 1 << WW_FILTER_TRUE, false},
    [WW_FILTER_LESS] = {1, 1, TYPE_NUMBER | TYPE_TEXT | TYPE_DATE, false},
    [WW_FILTER_LESS_EQUAL] = {1, 1, TYPE_NUMBER | TYPE_TEXT | TYPE_DATE, false},
    [WW_FILTER_GREATER] = {1, 1, TYPE_NUMBER | TYPE_TEXT | TYPE_DATE, false},
    [WW_FILTER_GREATER_EQUAL] = {1, 1, TYPE_NUMBER | TYPE_TEXT | TYPE_DATE, false},
    [WW_FILTER_SAME] = {0, INT64_MAX, TYPE_ANY, false},
    [WW_FILTER_OTHER] = {0, INT64_MAX, TYPE_ANY, false},
    [WW_FILTER_ALL_WORDS] = {1, 1, TYPE_TEXT, false},
    [WW_FILTER_ANY_WORD] = {1, 1, TYPE_TEXT, false},
    [WW_FILTER_PHRASE] = {1, 1, TYPE_TEXT, false},
    [WW_FILTER_PREFIX] = {1, 1, TYPE_TEXT, false},
    [WW_FILTER_SUBSTRING] = {1, 1, TYPE_TEXT, false},
    [WW_FILTER_WITHIN] = {0, INT64_MAX, TYPE_NUMBER | TYPE_TEXT | TYPE_DATE, true},
    [WW_FILTER_COUNT] = {0, INT64_MAX, TYPE_NUMBER, true},
    [WW_FILTER_EMPTY] = {0, 0, 0, false},
    [WW_FILTER_HAS_NULL] = {0, 0, 0, false},
    [WW_FILTER_CIRCLE] = {3, 3, 1 << WW_FILTER_REAL, false},
    [WW_FILTER_BOX] = {4, 4, 1 << WW_FILTER_REAL, false},
    [WW_FILTER_POLYGON] = {9, INT64_MAX, 1 << WW_FILTER_REAL, false},
};
enum { TEST_COUNT = sizeof TESTS / sizeof *TESTS };

static ww_status read_value(const ww_filter_value *value, ww_filter_test test, filter_operand *operand)
{
    static const char function[] = "ww_filter_add";
    *operand = (filter_operand){.type = value->type};
    if ((unsigned)value->type > WW_FILTER_DATE || !(TESTS[test].types >> value->type & 1))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: condition %d takes no value of type %d", function, (int)test,
                       (int)value->type);
    if (TESTS[test].bounds && (value->bound < WW_FILTER_LESS || value->bound > WW_FILTER_GREATER_EQUAL))
        return ww_fail(WW_INVALID_ARGUMENT,
                       "%s: bound is %d; it must be WW_FILTER_LESS, _LESS_EQUAL, _GREATER or _GREATER_EQUAL", function,
                       (int)value->bound);
    if (TESTS[test].bounds)
        operand->bound = value->bound;
    if (value->type == WW_FILTER_INTEGER)
        operand->number = (json_number){.is_integer = true, .integer = value->integer};
    if (value->type == WW_FILTER_REAL)
        operand->number = (json_number){.real = value->real};
    if (value->type == WW_FILTER_REAL && isnan(value->real))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: a value is not a number", function);
    if (value->type != WW_FILTER_TEXT && value->type != WW_FILTER_DATE)
        return WW_OK;
    if (!value->text)
        return fail_argument(function, "the text of a value");
    operand->text = value->text;
    operand->length = value->text_bytes > 0 ? value->text_bytes : strlen(value->text);
    operand->number.is_integer = value->type == WW_FILTER_DATE;
    if (value->type == WW_FILTER_DATE && !instant_read(operand->text, operand->length, &operand->number.integer))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: '%.64s' is not a date; write 2024-01-31 or 2024-01-31T12:00:00Z", function,
                       value->text);
    return WW_OK;
}

static ww_status read_field(const char *function, const char *field, json_path *path)
{
    if (!field)
        return fail_argument(function, "field");
    const char *wrong = json_path_read(field, strlen(field), path);
    return wrong ? ww_fail(WW_INVALID_ARGUMENT, "%s: '%.200s': %s", function, field, wrong) : WW_OK;
}

static ww_status check_add(const ww_filter *filter, ww_filter_test test, const ww_filter_value *values, int64_t count)
{
    static const char function[] = "ww_filter_add";
    if (!filter)
        return fail_argument(function, "filter");
    if ((unsigned)test >= TEST_COUNT)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: there is no condition %d", function, (int)test);
    if (count < TESTS[test].least || count > TESTS[test].most)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: condition %d has %lld values; it takes %s%lld", function, (int)test,
                       (long long)count, TESTS[test].most > TESTS[test].least ? "at least " : "", (long long)TESTS[test].least);
    return count > 0 && !values ? fail_argument(function, "values") : WW_OK;
}

ww_status ww_filter_add(ww_filter *filter, const char *field, ww_filter_test test, const ww_filter_value *values, int64_t count)
{
    FLOAT_GUARD();
    json_path path;
    ww_status status = check_add(filter, test, values, count);
    if (status == WW_OK)
        status = read_field("ww_filter_add", field, &path);
    if (status != WW_OK)
        return status;
    size_t bytes = SIZE_MAX;
    filter_operand *operands = size_multiply((size_t)count, sizeof *operands, &bytes) ? memory_alloc(bytes) : NULL;
    if (!operands)
        return memory_failed("a filter", bytes);
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        status = read_value(&values[i], test, &operands[i]);
    const char *wrong = status == WW_OK && test >= WW_FILTER_CIRCLE ? filter_place_wrong(test, operands, count) : NULL;
    if (wrong)
        status = ww_fail(WW_INVALID_ARGUMENT, "ww_filter_add: %s", wrong);
    if (status == WW_OK)
        status = filter_add(filter, &(filter_condition){.kind = FILTER_FIELD,
                                                        .test = test,
                                                        .parts = path.parts,
                                                        .part_count = path.count,
                                                        .operands = operands,
                                                        .operand_count = count});
    memory_free(operands);
    return status;
}

ww_status ww_filter_add_ids(ww_filter *filter, const char *const *ids, int64_t count)
{
    FLOAT_GUARD();
    static const char function[] = "ww_filter_add_ids";
    size_t bytes = SIZE_MAX;
    if (!filter || (count > 0 && !ids))
        return fail_argument(function, filter ? "ids" : "filter");
    if (count < 0)
        return ww_fail(WW_OUT_OF_RANGE, "%s: count is %lld; it must not be negative", function, (long long)count);
    filter_operand *operands = size_multiply((size_t)count, sizeof *operands, &bytes) ? memory_alloc(bytes) : NULL;
    if (!operands)
        return memory_failed("a filter", bytes);
    ww_status status = WW_OK;
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        operands[i] = (filter_operand){.type = WW_FILTER_TEXT, .text = ids[i], .length = ids[i] ? strlen(ids[i]) : 0};
        if (!ids[i])
            status = fail_argument(function, "an id");
    }
    if (status == WW_OK)
        status = filter_add(filter, &(filter_condition){.kind = FILTER_IDS, .operands = operands, .operand_count = count});
    memory_free(operands);
    return status;
}

ww_status ww_filter_add_filter(ww_filter *filter, const ww_filter *other)
{
    FLOAT_GUARD();
    static const char function[] = "ww_filter_add_filter";
    if (!filter)
        return fail_argument(function, "filter");
    if (filter == other)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: a filter cannot be added to itself", function);
    const ww_status status = filter_check_closed(other, function);
    return status == WW_OK && other ? filter_add_filter(filter, other) : status;
}

/* ---- groups -------------------------------------------------------------------------------------------------------------- */

ww_status ww_filter_begin(ww_filter *filter, ww_filter_group group, int64_t at_least)
{
    FLOAT_GUARD();
    static const char function[] = "ww_filter_begin";
    const bool counted = group == WW_FILTER_SOME;
    if (!filter)
        return fail_argument(function, "filter");
    if ((unsigned)group > WW_FILTER_SOME)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: there is no group %d", function, (int)group);
    if (counted ? at_least < 1 : at_least != 0)
        return ww_fail(WW_OUT_OF_RANGE, "%s: at_least is %lld; it must be %s", function, (long long)at_least,
                       counted ? "at least 1" : "0 for this group");
    return filter_add(filter, &(filter_condition){.kind = FILTER_GROUP,
                                                  .negated = group == WW_FILTER_NONE,
                                                  .at_least = counted                  ? at_least
                                                              : group == WW_FILTER_ALL ? FILTER_EVERY
                                                                                       : 1});
}

ww_status ww_filter_begin_element(ww_filter *filter, const char *field)
{
    FLOAT_GUARD();
    json_path path;
    if (!filter)
        return fail_argument("ww_filter_begin_element", "filter");
    const ww_status status = read_field("ww_filter_begin_element", field, &path);
    if (status != WW_OK)
        return status;
    if (path.count > 1 && path.parts[path.count - 1].step == JSON_EACH)
        path.count--; /* data[] means data: its elements are tested anyway */
    return filter_add(
        filter,
        &(filter_condition){.kind = FILTER_ELEMENT, .at_least = FILTER_EVERY, .parts = path.parts, .part_count = path.count});
}

ww_status ww_filter_end(ww_filter *filter)
{
    FLOAT_GUARD();
    return filter ? filter_end(filter) : fail_argument("ww_filter_end", "filter");
}

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

ww_status ww_filter_matches(const ww_filter *filter, const char *id, const char *payload, int32_t *matches)
{
    FLOAT_GUARD();
    static const char function[] = "ww_filter_matches";
    json_fault fault;
    bool found = false;
    if (!filter || !matches)
        return fail_argument(function, filter ? "matches" : "filter");
    ww_status status = filter_check_closed(filter, function);
    if (status == WW_OK && payload && !json_check(payload, strlen(payload), &fault))
        status = ww_fail(WW_INVALID_ARGUMENT, "%s: the payload is not JSON: %s in line %zu, column %zu", function, fault.what,
                         fault.line, fault.column);
    if (status == WW_OK)
        status = filter_matches(filter, &(filter_row){id, id ? strlen(id) : 0, payload}, &found);
    if (status == WW_OK)
        *matches = found;
    return status;
}

int32_t ww_filter_equal(const ww_filter *a, const ww_filter *b)
{
    return a == b || (a && b && filter_equal(a, b));
}

size_t ww_filter_text(const ww_filter *filter, char *text, size_t capacity)
{
    if (filter)
        return filter_show(filter, text, text ? capacity : 0);
    if (text && capacity > 0)
        *text = '\0';
    return 0;
}
