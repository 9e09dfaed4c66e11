/* The table of filters, tests, methods and functions, and those that apply to any value. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json/json.h"
#include "base/json/json_value.h"
#include "model/template/evaluate.h"

text text_argument(work *w, value v)
{
    if (v.type != VALUE_TEXT)
        work_fail(w, WW_INVALID_ARGUMENT, "an argument is a %s; it must be a text", value_python_name(v));
    return v.text;
}

const text *optional_text(work *w, const value *v)
{
    if (v->type == VALUE_UNDEFINED || v->type == VALUE_NONE)
        return NULL;
    text_argument(w, *v);
    return &v->text;
}

value value_or(value v, value otherwise)
{
    return v.type == VALUE_UNDEFINED ? otherwise : v;
}

static value filter_length(work *w, const call *c)
{
    return INTEGER(c->of.type == VALUE_TEXT ? c->of.text.count : value_elements(w, c->of).all->count);
}

static value filter_string(work *w, const call *c)
{
    return TEXT(value_text(w, c->of));
}

static value filter_list(work *w, const call *c)
{
    return value_elements(w, c->of);
}

static value filter_default(work *w, const call *c)
{
    if (value_truth(c->a[1]) ? value_truth(c->of) : c->of.type != VALUE_UNDEFINED)
        return c->of;
    return value_or(c->a[0], TEXT(literal(w, "")));
}

static value filter_tojson(work *w, const call *c)
{
    const bool lines = c->a[1].type == VALUE_INTEGER, separators = c->a[2].type == VALUE_LIST && c->a[2].all->count == 2;
    style how = {.json = true, .ascii = value_truth(c->a[0]), .indent = lines ? c->a[1].integer : -1};
    how.comma = separators ? value_text(w, c->a[2].all->items[0]) : literal(w, lines ? "," : ", ");
    how.colon = separators ? value_text(w, c->a[2].all->items[1]) : literal(w, ": ");
    if (value_truth(c->a[3]))
        work_fail(w, WW_UNSUPPORTED, "tojson with sort_keys is not known");
    builder made = {0};
    value_write(w, &made, c->of, &how, 0);
    return TEXT(built(&made));
}

/* Converts a number or its text to a number; otherwise undefined. */
static value to_number(work *w, value of)
{
    json_fault fault;
    size_t bytes;
    if (value_is_number(of))
        return of;
    if (of.type == VALUE_UNDEFINED)
        fail_undefined(w, of);
    if (of.type != VALUE_TEXT)
        return UNDEFINED;
    const char *number = text_to_utf8(w, text_strip(w, of.text, NULL, true, true), &bytes);
    if (!json_check(number, bytes, &fault) || json_type_of(number) != JSON_NUMBER)
        return UNDEFINED;
    const json_number n = json_number_of(number);
    return n.is_integer ? INTEGER(n.integer) : REAL(n.real);
}

static value filter_int(work *w, const call *c)
{
    const value n = to_number(w, c->of);
    if (value_is_integer(n))
        return INTEGER(value_integer(n));
    if (n.type == VALUE_REAL && n.real > -9e18 && n.real < 9e18)
        return INTEGER(n.real);
    return value_or(c->a[0], INTEGER(0));
}

static value filter_float(work *w, const call *c)
{
    const value n = to_number(w, c->of);
    return value_is_number(n) ? REAL(value_real(n)) : value_or(c->a[0], REAL(0));
}

static value filter_abs(work *w, const call *c)
{
    if (!value_is_number(c->of))
        work_fail(w, WW_INVALID_ARGUMENT, "abs of a %s", value_python_name(c->of));
    return value_real(c->of) < 0 ? operator_apply(w, '-', INTEGER(0), c->of) : c->of;
}

#define TYPE(x) (1 << VALUE_##x)
enum {
    CALLABLE = TYPE(MACRO) | TYPE(FUNCTION),
    NUMBER = TYPE(BOOL) | TYPE(INTEGER) | TYPE(REAL),
    SEQUENCE = TYPE(TEXT) | TYPE(LIST) | TYPE(DICT) | TYPE(UNDEFINED)
};

/* `how`: the types that it is true for. */
static value test_type(work *w, const call *c)
{
    (void)w;
    return BOOLEAN((c->how >> c->of.type & 1) != 0);
}

static value test_truth(work *w, const call *c)
{
    (void)w;
    return BOOLEAN(c->of.type == VALUE_BOOL && c->of.truth == c->how);
}

/* `how`: an operator. */
static value test_operator(work *w, const call *c)
{
    return operator_apply(w, c->how, c->of, c->a[0]);
}

/* `how`: the remainder. */
static value test_remainder(work *w, const call *c)
{
    return operator_apply(w, '=', operator_apply(w, '%', c->of, value_or(c->a[0], INTEGER(2))), INTEGER(c->how));
}

static value call_raise(work *w, const call *c)
{
    work_fail(w, WW_INVALID_ARGUMENT, "%.400s", text_to_utf8(w, value_text(w, c->a[0]), NULL));
}

static value call_range(work *w, const call *c)
{
    const collection *given = c->given->items.all;
    int64_t bounds[3] = {0, 0, 1}; /* from, to, step */
    if (given->count == 0 || given->count > 3)
        work_fail(w, WW_INVALID_ARGUMENT, "range takes one to three integers");
    for (size_t i = 0; i < given->count; i++) {
        const value v = given->items[i];
        if (!value_is_integer(v) || value_integer(v) < INT32_MIN || value_integer(v) > INT32_MAX)
            work_fail(w, WW_OUT_OF_RANGE, "range takes integers of 32 bits");
        bounds[given->count == 1 ? 1 : i] = value_integer(v);
    }
    if (bounds[2] == 0)
        work_fail(w, WW_INVALID_ARGUMENT, "the step of range is 0");
    value made = make_collection(w, VALUE_LIST);
    for (int64_t i = bounds[0]; bounds[2] > 0 ? i < bounds[1] : i > bounds[1]; i += bounds[2])
        list_add(w, made, INTEGER(i));
    return made;
}

static value call_strftime(work *w, const call *c)
{
    const char *pattern = text_to_utf8(w, text_argument(w, c->a[0]), NULL);
    const time_t now = (time_t)w->now;
    char written[256];
    struct tm parts = {0};
    localtime_r(&now, &parts);
    const locale_t english = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* names of months do not depend on the machine */
    const size_t bytes = english ? strftime_l(written, sizeof written, pattern, &parts, english) : 0;
    if (english)
        freelocale(english);
    return TEXT(text_from_utf8(w, written, bytes, 0));
}

/* dict() and namespace(), from another dictionary and keywords. `how`: the type. */
static value call_dict(work *w, const call *c)
{
    value made = make_collection(w, (value_type)c->how);
    const collection *items = c->given->items.all, *named = c->given->named.all;
    const collection *from = items->count > 0 && items->items[0].type == VALUE_DICT ? items->items[0].all : NULL;
    for (size_t i = 0; from && i < from->count; i++)
        dict_put(w, made, from->keys[i], from->items[i]);
    for (size_t i = 0; i < named->count; i++)
        dict_put(w, made, named->keys[i], named->items[i]);
    return made;
}

static value loop_cycle(work *w, const call *c)
{
    const collection *given = c->given->items.all;
    if (given->count == 0)
        work_fail(w, WW_INVALID_ARGUMENT, "cycle() has no arguments");
    return given->items[c->of.loop->i % given->count];
}

static const builtin BUILTINS[] = {
    {FILTER, "trim", "chars", text_strip_call, LEFT | RIGHT},
    {FILTER, "length", "", filter_length, 0},
    {FILTER, "count", "", filter_length, 0},
    {FILTER, "tojson", "ensure_ascii indent separators sort_keys", filter_tojson, 0},
    {FILTER, "string", "", filter_string, 0},
    {FILTER, "safe", "", filter_string, 0},
    {FILTER, "upper", "", text_case, UPPER},
    {FILTER, "lower", "", text_case, LOWER},
    {FILTER, "capitalize", "", text_case, CAPITALIZED},
    {FILTER, "title", "", text_case, WORDS},
    {FILTER, "replace", "old new count", text_replace, 0},
    {FILTER, "format", "...", text_percent, 0},
    {FILTER, "indent", "width first blank", text_indent, 0},
    {FILTER, "default", "default_value boolean", filter_default, 0},
    {FILTER, "d", "default_value boolean", filter_default, 0},
    {FILTER, "int", "default", filter_int, 0},
    {FILTER, "float", "default", filter_float, 0},
    {FILTER, "abs", "", filter_abs, 0},
    {FILTER, "list", "", filter_list, 0},
    {FILTER, "first", "", list_end, FIRST},
    {FILTER, "last", "", list_end, LAST},
    {FILTER, "join", "d attribute", list_join, 0},
    {FILTER, "map", "...", list_map, 0},
    {FILTER, "select", "...", list_select, KEEP},
    {FILTER, "reject", "...", list_select, 0},
    {FILTER, "selectattr", "...", list_select, KEEP | OF_ATTRIBUTE},
    {FILTER, "rejectattr", "...", list_select, OF_ATTRIBUTE},
    {FILTER, "reverse", "", list_reverse, 0},
    {FILTER, "sort", "reverse case_sensitive attribute", list_sort, 0},
    {FILTER, "unique", "case_sensitive attribute", list_unique, 0},
    {FILTER, "min", "case_sensitive attribute", list_extreme, FIRST},
    {FILTER, "max", "case_sensitive attribute", list_extreme, LAST},
    {FILTER, "items", "", dict_items, 0},
    {FILTER, "dictsort", "case_sensitive by reverse", dict_sort, 0},

    {TEST, "defined", "", test_type, ~TYPE(UNDEFINED)},
    {TEST, "undefined", "", test_type, TYPE(UNDEFINED)},
    {TEST, "none", "", test_type, TYPE(NONE)},
    {TEST, "string", "", test_type, TYPE(TEXT)},
    {TEST, "mapping", "", test_type, TYPE(DICT)},
    {TEST, "sequence", "", test_type, SEQUENCE},
    {TEST, "iterable", "", test_type, SEQUENCE},
    {TEST, "number", "", test_type, NUMBER},
    {TEST, "integer", "", test_type, TYPE(INTEGER)},
    {TEST, "float", "", test_type, TYPE(REAL)},
    {TEST, "boolean", "", test_type, TYPE(BOOL)},
    {TEST, "callable", "", test_type, CALLABLE},
    {TEST, "true", "", test_truth, true},
    {TEST, "false", "", test_truth, false},
    {TEST, "==", "other", test_operator, '='},
    {TEST, "eq", "other", test_operator, '='},
    {TEST, "equalto", "other", test_operator, '='},
    {TEST, "sameas", "other", test_operator, '='},
    {TEST, "!=", "other", test_operator, '!'},
    {TEST, "ne", "other", test_operator, '!'},
    {TEST, "gt", "other", test_operator, '>'},
    {TEST, "greaterthan", "other", test_operator, '>'},
    {TEST, "ge", "other", test_operator, 'g'},
    {TEST, "lt", "other", test_operator, '<'},
    {TEST, "lessthan", "other", test_operator, '<'},
    {TEST, "le", "other", test_operator, 'l'},
    {TEST, "in", "seq", test_operator, 'i'},
    {TEST, "odd", "", test_remainder, 1},
    {TEST, "even", "", test_remainder, 0},
    {TEST, "divisibleby", "num", test_remainder, 0},

    {FUNCTION, "raise_exception", "message", call_raise, 0},
    {FUNCTION, "strftime_now", "format", call_strftime, 0},
    {FUNCTION, "range", "...", call_range, 0},
    {FUNCTION, "namespace", "...", call_dict, VALUE_NAMESPACE},
    {FUNCTION, "dict", "...", call_dict, VALUE_DICT},

    {VALUE_TEXT, "strip", "chars", text_strip_call, LEFT | RIGHT},
    {VALUE_TEXT, "lstrip", "chars", text_strip_call, LEFT},
    {VALUE_TEXT, "rstrip", "chars", text_strip_call, RIGHT},
    {VALUE_TEXT, "split", "sep maxsplit", text_split_call, 0},
    {VALUE_TEXT, "splitlines", "", text_splitlines, 0},
    {VALUE_TEXT, "startswith", "prefix", text_has_end, LEFT},
    {VALUE_TEXT, "endswith", "suffix", text_has_end, RIGHT},
    {VALUE_TEXT, "removeprefix", "prefix", text_remove_end, LEFT},
    {VALUE_TEXT, "removesuffix", "suffix", text_remove_end, RIGHT},
    {VALUE_TEXT, "replace", "old new count", text_replace, 0},
    {VALUE_TEXT, "upper", "", text_case, UPPER},
    {VALUE_TEXT, "lower", "", text_case, LOWER},
    {VALUE_TEXT, "title", "", text_case, TITLE},
    {VALUE_TEXT, "capitalize", "", text_case, CAPITALIZED},
    {VALUE_TEXT, "find", "sub", text_find_call, 0},
    {VALUE_TEXT, "count", "sub", text_count, 0},
    {VALUE_TEXT, "isdigit", "", text_isdigit, 0},
    {VALUE_TEXT, "join", "iterable", text_join, 0},
    {VALUE_TEXT, "format", "...", text_format, 0},
    {VALUE_LIST, "count", "value", list_count, 0},
    {VALUE_DICT, "items", "", dict_items, 0},
    {VALUE_DICT, "keys", "", filter_list, 0},
    {VALUE_DICT, "values", "", dict_values, 0},
    {VALUE_DICT, "get", "key default", dict_get, 0},
    {VALUE_LOOP, "cycle", "...", loop_cycle, 0},
};

const builtin *builtin_find(int kind, text name)
{
    for (size_t i = 0; i < sizeof BUILTINS / sizeof *BUILTINS; i++)
        if (BUILTINS[i].kind == kind && text_is(name, BUILTINS[i].name))
            return &BUILTINS[i];
    return NULL;
}

/* Assigns each argument to one of the builtin's parameters. */
static void bind_arguments(work *w, const builtin *b, const arguments *given, call *c)
{
    const collection *items = given->items.all;
    size_t used = 0, at = 0;
    for (const char *name = b->parameters; *name; at++) {
        const size_t bytes = strcspn(name, " ");
        const value *named = dict_find(w, given->named, TEXT(text_from_utf8(w, name, bytes, 0)));
        if (at < items->count)
            c->a[at] = items->items[at];
        else if (named)
            c->a[at] = *named;
        used += at < items->count || named;
        name += bytes + strspn(name + bytes, " ");
    }
    if (used < items->count + given->named.all->count)
        work_fail(w, WW_INVALID_ARGUMENT, "%s has no such arguments; it takes (%s)", b->name, b->parameters);
}

value builtin_call(work *w, const builtin *b, value of, const arguments *given)
{
    call c = {.of = of, .given = given, .how = b->how};
    work_enter(w);
    if (strcmp(b->parameters, "...") != 0)
        bind_arguments(w, b, given, &c);
    const value made = b->run(w, &c);
    w->depth--;
    return made;
}

value builtin_apply(work *w, int kind, text name, value of, const arguments *given)
{
    const builtin *found = builtin_find(kind, name);
    if (!found)
        work_fail(w, WW_UNSUPPORTED, "the %s '%.100s' is not known", kind == FILTER ? "filter" : "test",
                  text_to_utf8(w, name, NULL));
    return builtin_call(w, found, of, given);
}
