/* Filters, tests and functions of templates. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json/json.h"
#include "base/json/json_value.h"
#include "model/template/evaluate.h"

static value fail_unknown(run *r, const char *what, marked name)
{
    work_fail(&r->w, WW_UNSUPPORTED, "the %s '%.*s' is not known", what, (int)(name.bytes < 100 ? name.bytes : 100), name.text);
    return UNDEFINED("");
}

/* ---- one value -------------------------------------------------------------------------------------------------------------
 */

static value filter_length(run *r, value of, const arguments *given)
{
    (void)given;
    if (of.type == VALUE_TEXT)
        return INTEGER(char_count(of.text));
    if (of.type == VALUE_DICT)
        return INTEGER(of.dict->count);
    return INTEGER(value_elements(&r->w, of).list->count);
}

static value filter_tojson(run *r, value of, const arguments *given)
{
    const value indent = argument(r, given, 1, "indent", NONE), separators = argument(r, given, 2, "separators", NONE);
    json_style style = {.indent = indent.type == VALUE_INTEGER ? indent.integer : -1,
                        .comma = literal(indent.type == VALUE_INTEGER ? "," : ", "),
                        .colon = literal(": "),
                        .ascii = value_truth(argument(r, given, 0, "ensure_ascii", BOOLEAN(false)))};
    builder made = {0};
    if (separators.type == VALUE_LIST && separators.list->count == 2) {
        style.comma = value_text(&r->w, separators.list->items[0]);
        style.colon = value_text(&r->w, separators.list->items[1]);
    }
    if (value_truth(argument(r, given, 3, "sort_keys", BOOLEAN(false))))
        work_fail(&r->w, WW_UNSUPPORTED, "tojson with sort_keys is not known");
    value_write_json(&r->w, &made, of, &style, 0);
    return built_value(&made);
}

static value filter_string(run *r, value of, const arguments *given)
{
    (void)given;
    return TEXT_OF(value_text(&r->w, of));
}

static value filter_default(run *r, value of, const arguments *given)
{
    const bool also_false = value_truth(argument(r, given, 1, "boolean", BOOLEAN(false)));
    const bool there = of.type != VALUE_UNDEFINED && (!also_false || value_truth(of));
    return there ? of : argument(r, given, 0, "default_value", LITERAL(""));
}

/* A number, or the text of one; otherwise `missing`. */
static value to_number(run *r, value of, value missing)
{
    if (value_is_number(of))
        return of;
    char number[64] = {0};
    json_fault fault;
    if (of.type == VALUE_UNDEFINED)
        fail_undefined(r, of);
    const marked text = marked_strip(of.type == VALUE_TEXT ? of.text : literal(""), NULL, true, true);
    if (text.bytes == 0 || text.bytes >= sizeof number || !work_step(&r->w, 1))
        return missing;
    memcpy(number, text.text, text.bytes);
    if (!json_check(number, text.bytes, &fault) || json_type_of(number) != JSON_NUMBER)
        return missing;
    const json_number n = json_number_of(number);
    return n.is_integer ? INTEGER(n.integer) : REAL(n.real);
}

static value filter_int(run *r, value of, const arguments *given)
{
    const value missing = argument(r, given, 0, "default", INTEGER(0)), n = to_number(r, of, missing);
    if (n.type == VALUE_REAL && n.real > -9e18 && n.real < 9e18)
        return INTEGER(n.real);
    return n.type == VALUE_REAL ? missing : n.type == VALUE_BOOL ? INTEGER(n.truth) : n;
}

static value filter_float(run *r, value of, const arguments *given)
{
    const value n = to_number(r, of, argument(r, given, 0, "default", REAL(0)));
    return value_is_number(n) ? REAL(value_real(n)) : n;
}

static value filter_abs(run *r, value of, const arguments *given)
{
    (void)given;
    if (!value_is_number(of) || (of.type == VALUE_INTEGER && of.integer == INT64_MIN))
        work_fail(&r->w, WW_INVALID_ARGUMENT, "abs of a %s", value_kind_name(of));
    else if (value_real(of) < 0)
        return of.type == VALUE_REAL ? REAL(-of.real) : INTEGER(-value_integer(of));
    return of;
}

/* Every line but the first behind spaces; empty ones not, unless `blank`. */
static value filter_indent(run *r, value of, const arguments *given)
{
    const value width = argument(r, given, 0, "width", INTEGER(4));
    const bool first = value_truth(argument(r, given, 1, "first", BOOLEAN(false)));
    const bool blank = value_truth(argument(r, given, 2, "blank", BOOLEAN(false)));
    const marked line = literal("\n");
    builder made = {0}, spaces = {0};
    if (of.type == VALUE_UNDEFINED)
        fail_undefined(r, of);
    for (int64_t i = 0; width.type == VALUE_INTEGER && i < width.integer && r->w.status == WW_OK; i++)
        build_text(&r->w, &spaces, " ");
    if (width.type == VALUE_TEXT)
        build(&r->w, &spaces, width.text);
    const value lines = text_split(r, value_text(&r->w, of), &line, -1);
    for (size_t i = 0; i < lines.list->count && r->w.status == WW_OK; i++) {
        const marked text = lines.list->items[i].text;
        build_text(&r->w, &made, i > 0 ? "\n" : "");
        if (i == 0 ? first : blank || text.bytes > 0)
            build(&r->w, &made, built(&spaces));
        build(&r->w, &made, text);
    }
    return built_value(&made);
}

/* ---- lists -----------------------------------------------------------------------------------------------------------------
 */

/* The first element, or with RIGHT the last. */
static value filter_end(run *r, value of, const arguments *given)
{
    const value list = value_elements(&r->w, of);
    if (list.list->count == 0)
        return UNDEFINED("an element of an empty list");
    return list.list->items[given->how == LEFT ? 0 : list.list->count - 1];
}

static value filter_reverse(run *r, value of, const arguments *given)
{
    (void)given;
    const value list = value_elements(&r->w, of);
    value made = list_make(&r->w, list.list->count);
    builder text = {0};
    for (size_t i = list.list->count; i > 0 && r->w.status == WW_OK; i--)
        if (of.type == VALUE_TEXT)
            build(&r->w, &text, list.list->items[i - 1].text);
        else
            list_add(&r->w, &made, list.list->items[i - 1]);
    return of.type == VALUE_TEXT ? built_value(&text) : made;
}

/* The part of a value that "a.b" names. */
static value attribute(run *r, value of, marked path)
{
    const marked dot = literal(".");
    const value names = text_split(r, path, &dot, -1);
    for (size_t i = 0; i < names.list->count && r->w.status == WW_OK; i++)
        of = value_member(r, of, names.list->items[i].text, false);
    return of;
}

static value filter_join(run *r, value of, const arguments *given)
{
    const value list = value_elements(&r->w, of), path = argument(r, given, 1, "attribute", NONE);
    const marked between = value_text(&r->w, argument(r, given, 0, "d", LITERAL("")));
    builder made = {0};
    for (size_t i = 0; i < list.list->count && r->w.status == WW_OK; i++) {
        const value item = list.list->items[i];
        build(&r->w, &made, i > 0 ? between : literal(""));
        value_write(&r->w, &made, path.type == VALUE_TEXT ? attribute(r, item, path.text) : item, false);
    }
    return built_value(&made);
}

/* The elements; none of a value that is not true. */
static value true_elements(run *r, value of)
{
    return value_truth(of) ? value_elements(&r->w, of) : list_make(&r->w, 0);
}

static value filter_map(run *r, value of, const arguments *given)
{
    const value list = true_elements(r, of), missing = argument(r, given, given->count, "default", NONE);
    const value path = argument(r, given, given->count, "attribute", NONE), name = argument(r, given, 0, "filter", NONE);
    const arguments rest = {given->items + 1, given->count > 0 ? given->count - 1 : 0, given->named, 0};
    value made = list_make(&r->w, list.list->count);
    if (!argument_is_text(r, path.type == VALUE_NONE ? name : path, "what map does"))
        return made;
    for (size_t i = 0; i < list.list->count && r->w.status == WW_OK; i++) {
        value item = list.list->items[i];
        item = path.type == VALUE_TEXT ? attribute(r, item, path.text) : filter_apply(r, name.text, item, &rest);
        list_add(&r->w, &made, item.type == VALUE_UNDEFINED && missing.type != VALUE_NONE ? missing : item);
    }
    return made;
}

/* select, reject, and of attributes: those elements for which a test says so, or that are true. */
enum { KEEP = 1, OF_ATTRIBUTE = 2 };
static value filter_select(run *r, value of, const arguments *given)
{
    const bool keep = given->how & KEEP, of_attribute = given->how & OF_ATTRIBUTE;
    const value list = true_elements(r, of), path = argument(r, given, 0, "attr", NONE);
    const size_t used = of_attribute;
    const value test = argument(r, given, used, "test", NONE);
    const size_t skipped = used + 1 < given->count ? used + 1 : given->count;
    const arguments rest = {given->items + skipped, given->count - skipped, given->named, 0};
    value made = list_make(&r->w, list.list->count);
    if ((of_attribute && !argument_is_text(r, path, "the attribute")) ||
        (test.type != VALUE_NONE && !argument_is_text(r, test, "the test")))
        return made;
    for (size_t i = 0; i < list.list->count && r->w.status == WW_OK; i++) {
        const value item = list.list->items[i], tested = of_attribute ? attribute(r, item, path.text) : item;
        if ((test.type == VALUE_TEXT ? test_apply(r, test.text, tested, &rest) : value_truth(tested)) == keep)
            list_add(&r->w, &made, item);
    }
    return made;
}

/* What an element is sorted by: itself, an attribute or the key of a pair; letters as small ones. */
static value sort_key(run *r, value item, value path, bool pairs, bool exact)
{
    item = pairs ? item.list->items[0] : path.type == VALUE_TEXT ? attribute(r, item, path.text) : item;
    return item.type == VALUE_TEXT && !exact ? text_case(r, item, &(arguments){.how = LOWER}) : item;
}

/* Insertion keeps the order of equals. The steps of comparisons bound it. */
static value sorted(run *r, value list, const arguments *given, bool pairs)
{
    const value path = pairs ? NONE : argument(r, given, 2, "attribute", NONE);
    const bool exact = value_truth(argument(r, given, pairs ? 0 : 1, "case_sensitive", BOOLEAN(false)));
    const bool down = value_truth(argument(r, given, pairs ? 2 : 0, "reverse", BOOLEAN(false)));
    value made = list_make(&r->w, list.list->count), keys = list_make(&r->w, list.list->count);
    for (size_t i = 0; i < list.list->count && r->w.status == WW_OK; i++) {
        const value item = list.list->items[i], key = sort_key(r, item, path, pairs, exact);
        list_add(&r->w, &made, item);
        list_add(&r->w, &keys, key);
        for (size_t k = i; k > 0 && r->w.status == WW_OK && work_step(&r->w, 1); k--) {
            const int order = value_compare(&r->w, key, keys.list->items[k - 1]);
            if (down ? order <= 0 : order >= 0)
                break;
            made.list->items[k] = made.list->items[k - 1];
            keys.list->items[k] = keys.list->items[k - 1];
            made.list->items[k - 1] = item;
            keys.list->items[k - 1] = key;
        }
    }
    return made;
}

static value filter_sort(run *r, value of, const arguments *given)
{
    return sorted(r, value_elements(&r->w, of), given, false);
}

static value filter_dictsort(run *r, value of, const arguments *given)
{
    return sorted(r, dict_items(r, of, given), given, true);
}

static value filter_unique(run *r, value of, const arguments *given)
{
    const value list = value_elements(&r->w, of);
    const bool exact = value_truth(argument(r, given, 0, "case_sensitive", BOOLEAN(false)));
    value made = list_make(&r->w, list.list->count), keys = list_make(&r->w, list.list->count);
    for (size_t i = 0; i < list.list->count && r->w.status == WW_OK; i++) {
        const value key = sort_key(r, list.list->items[i], NONE, false, exact);
        bool seen = false;
        for (size_t k = 0; k < keys.list->count && !seen; k++)
            seen = value_equal(&r->w, keys.list->items[k], key);
        if (!seen) {
            list_add(&r->w, &keys, key);
            list_add(&r->w, &made, list.list->items[i]);
        }
    }
    return made;
}

/* The first element that none comes before, or behind. */
static value filter_extreme(run *r, value of, const arguments *given)
{
    const int sign = given->how;
    const value list = value_elements(&r->w, of);
    const bool exact = value_truth(argument(r, given, 0, "case_sensitive", BOOLEAN(false)));
    size_t best = 0;
    for (size_t i = 1; i < list.list->count && r->w.status == WW_OK; i++) {
        const value a = sort_key(r, list.list->items[i], NONE, false, exact);
        if (sign * value_compare(&r->w, a, sort_key(r, list.list->items[best], NONE, false, exact)) < 0)
            best = i;
    }
    return list.list->count > 0 ? list.list->items[best] : UNDEFINED("an element");
}

value filter_apply(run *r, marked name, value of, const arguments *given)
{
    static const builtin filters[] = {{"trim", text_strip, LEFT | RIGHT},
                                      {"length", filter_length, 0},
                                      {"count", filter_length, 0},
                                      {"tojson", filter_tojson, 0},
                                      {"string", filter_string, 0},
                                      {"safe", filter_string, 0},
                                      {"upper", text_case, UPPER},
                                      {"lower", text_case, LOWER},
                                      {"capitalize", text_case, CAPITALIZED},
                                      {"title", text_case, WORDS},
                                      {"replace", text_replace, 0},
                                      {"join", filter_join, 0},
                                      {"default", filter_default, 0},
                                      {"d", filter_default, 0},
                                      {"first", filter_end, LEFT},
                                      {"last", filter_end, RIGHT},
                                      {"list", value_list_of, 0},
                                      {"items", dict_items, 0},
                                      {"map", filter_map, 0},
                                      {"select", filter_select, KEEP},
                                      {"reject", filter_select, 0},
                                      {"selectattr", filter_select, KEEP | OF_ATTRIBUTE},
                                      {"rejectattr", filter_select, OF_ATTRIBUTE},
                                      {"reverse", filter_reverse, 0},
                                      {"sort", filter_sort, 0},
                                      {"dictsort", filter_dictsort, 0},
                                      {"unique", filter_unique, 0},
                                      {"int", filter_int, 0},
                                      {"float", filter_float, 0},
                                      {"abs", filter_abs, 0},
                                      {"min", filter_extreme, 1},
                                      {"max", filter_extreme, -1},
                                      {"indent", filter_indent, 0}};
    if (++r->w.depth > TEMPLATE_DEPTH_MAX)
        work_fail(&r->w, WW_OUT_OF_RANGE, "the template is more than %d levels deep", TEMPLATE_DEPTH_MAX);
    for (size_t i = 0; i < sizeof filters / sizeof *filters && r->w.status == WW_OK; i++)
        if (marked_is(name, filters[i].name)) {
            const value made = builtin_call(r, &filters[i], of, given);
            r->w.depth--;
            return made;
        }
    return fail_unknown(r, "filter", name);
}

/* ---- tests -----------------------------------------------------------------------------------------------------------------
 */

/* Tests of what a value is. -1: there is no such test. */
static int test_type(marked name, value v)
{
    const struct {
        const char *name;
        bool yes;
    } tests[] = {
        {"defined", v.type != VALUE_UNDEFINED},
        {"undefined", v.type == VALUE_UNDEFINED},
        {"none", v.type == VALUE_NONE},
        {"string", v.type == VALUE_TEXT},
        {"mapping", v.type == VALUE_DICT},
        {"sequence", v.type == VALUE_TEXT || v.type == VALUE_LIST || v.type == VALUE_DICT || v.type == VALUE_UNDEFINED},
        {"iterable", v.type == VALUE_TEXT || v.type == VALUE_LIST || v.type == VALUE_DICT || v.type == VALUE_UNDEFINED},
        {"number", value_is_number(v)},
        {"integer", v.type == VALUE_INTEGER},
        {"float", v.type == VALUE_REAL},
        {"boolean", v.type == VALUE_BOOL},
        {"true", v.type == VALUE_BOOL && v.truth},
        {"false", v.type == VALUE_BOOL && !v.truth},
        {"callable", v.type == VALUE_MACRO || v.type == VALUE_FUNCTION || v.type == VALUE_METHOD}};
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (marked_is(name, tests[i].name))
            return tests[i].yes;
    return -1;
}

bool test_apply(run *r, marked name, value of, const arguments *given)
{
    const value other = argument(r, given, 0, "other", NONE);
    const int type = test_type(name, of);
    if (type >= 0)
        return type;
    if (marked_is(name, "==") || marked_is(name, "eq") || marked_is(name, "equalto") || marked_is(name, "sameas"))
        return value_equal(&r->w, of, other);
    if (marked_is(name, "ne") || marked_is(name, "!="))
        return !value_equal(&r->w, of, other);
    if (marked_is(name, "in"))
        return value_contains(r, other, of);
    if (marked_is(name, "gt") || marked_is(name, "greaterthan"))
        return value_compare(&r->w, of, other) > 0;
    if (marked_is(name, "lt") || marked_is(name, "lessthan"))
        return value_compare(&r->w, of, other) < 0;
    const bool whole = of.type == VALUE_INTEGER || of.type == VALUE_BOOL;
    if (whole && (marked_is(name, "odd") || marked_is(name, "even")))
        return (value_integer(of) % 2 != 0) == marked_is(name, "odd");
    if (whole && marked_is(name, "divisibleby") && other.type == VALUE_INTEGER && other.integer > 0)
        return value_integer(of) % other.integer == 0;
    fail_unknown(r, "test", name);
    return false;
}

/* ---- functions -------------------------------------------------------------------------------------------------------------
 */

static value function_range(run *r, const arguments *given)
{
    const value a = argument(r, given, 0, "start", NONE), b = argument(r, given, 1, "stop", NONE);
    const value c = argument(r, given, 2, "step", INTEGER(1));
    const int64_t from = given->count > 1 ? a.integer : 0, to = given->count > 1 ? b.integer : a.integer, step = c.integer;
    if (a.type != VALUE_INTEGER || (given->count > 1 && b.type != VALUE_INTEGER) || c.type != VALUE_INTEGER || step == 0)
        work_fail(&r->w, WW_INVALID_ARGUMENT, "range takes one to three integers, and no step of 0");
    if (from < INT32_MIN || from > INT32_MAX || to < INT32_MIN || to > INT32_MAX || step < INT32_MIN || step > INT32_MAX)
        work_fail(&r->w, WW_OUT_OF_RANGE, "range is for integers of 32 bits");
    if (r->w.status != WW_OK || step == 0)
        return NONE;
    const int64_t count = step > 0 ? (to - from + step - 1) / step : (from - to - step - 1) / -step;
    value made = list_make(&r->w, count > 0 ? (size_t)count : 0);
    for (int64_t i = 0; i < count && r->w.status == WW_OK; i++)
        list_add(&r->w, &made, INTEGER(from + i * step));
    return made;
}

static value function_strftime(run *r, const arguments *given)
{
    const value format = argument(r, given, 0, "format", NONE);
    char text[256], pattern[128] = {0};
    builder made = {0};
    struct tm parts = {0};
    const time_t now = (time_t)r->now;
    if (!argument_is_text(r, format, "format") || format.text.bytes >= sizeof pattern) {
        work_fail(&r->w, WW_INVALID_ARGUMENT, "the format of a date is too long");
        return NONE;
    }
    memcpy(pattern, format.text.text, format.text.bytes);
    const locale_t english = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* names of months do not depend on the machine */
    localtime_r(&now, &parts);
    const size_t bytes = english && pattern[0] ? strftime_l(text, sizeof text, pattern, &parts, english) : 0;
    if (english)
        freelocale(english);
    build(&r->w, &made, (marked){text, NULL, bytes});
    return built_value(&made);
}

value function_call(run *r, marked name, const arguments *given)
{
    if (marked_is(name, "raise_exception")) {
        const marked text = value_text(&r->w, argument(r, given, 0, "message", LITERAL("refused")));
        work_fail(&r->w, WW_INVALID_ARGUMENT, "%.*s", (int)(text.bytes < 400 ? text.bytes : 400), text.text);
        return NONE;
    }
    if (marked_is(name, "strftime_now"))
        return function_strftime(r, given);
    if (marked_is(name, "range"))
        return function_range(r, given);
    value made = dict_make(&r->w, marked_is(name, "dict") ? VALUE_DICT : VALUE_NAMESPACE);
    const value from = argument(r, given, 0, "", NONE);
    for (size_t i = 0; from.type == VALUE_DICT && i < from.dict->count; i++)
        dict_put_key(&r->w, &made, from.dict->keys[i], from.dict->items[i]);
    for (size_t i = 0; i < given->named->count; i++)
        dict_put_key(&r->w, &made, given->named->keys[i], given->named->items[i]);
    return made;
}
