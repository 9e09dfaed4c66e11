/* Operators of templates, and the parts of values that have names or places. */
#include <math.h>
#include <string.h>

#include "model/template/evaluate.h"

void fail_undefined(run *r, value v)
{
    work_fail(&r->w, WW_INVALID_ARGUMENT, "'%.*s' is undefined", (int)(v.text.bytes < 100 ? v.text.bytes : 100), v.text.text);
}

/* ---- operators -----------------------------------------------------------------------------------------------------------
 */

value fail_operands(run *r, value a, value b)
{
    if (a.type == VALUE_UNDEFINED || b.type == VALUE_UNDEFINED)
        fail_undefined(r, a.type == VALUE_UNDEFINED ? a : b);
    work_fail(&r->w, WW_INVALID_ARGUMENT, "this operator is not for a %s and a %s", value_kind_name(a), value_kind_name(b));
    return UNDEFINED("");
}

value compute_integers(run *r, int op, int64_t a, int64_t b)
{
    int64_t made = 1;
    bool over = false;
    if (op == '+')
        over = __builtin_add_overflow(a, b, &made);
    else if (op == '-')
        over = __builtin_sub_overflow(a, b, &made);
    else if (op == '*')
        over = __builtin_mul_overflow(a, b, &made);
    else if (op == 'p')
        for (int64_t i = 0; i < b && !over && work_step(&r->w, 1); i++)
            over = __builtin_mul_overflow(made, a, &made);
    else if (b == 0)
        work_fail(&r->w, WW_INVALID_ARGUMENT, "division by zero");
    else if (b == -1) /* the least number has no opposite */
        over = op == 'f' && __builtin_sub_overflow(0, a, &made), made = op == '%' ? 0 : made;
    else
        made = op == 'f' ? a / b - (a % b != 0 && (a < 0) != (b < 0)) : a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
    if (over)
        work_fail(&r->w, WW_OUT_OF_RANGE, "an integer is past 64 bits");
    return INTEGER(made);
}

static value compute(run *r, int op, value a, value b)
{
    if (a.type != VALUE_REAL && b.type != VALUE_REAL && op != '/' && !(op == 'p' && value_integer(b) < 0))
        return compute_integers(r, op, value_integer(a), value_integer(b));
    const double x = value_real(a), y = value_real(b);
    if (y == 0 && op != '+' && op != '-' && op != '*' && op != 'p')
        work_fail(&r->w, WW_INVALID_ARGUMENT, "division by zero");
    switch (op) {
    case '+':
        return REAL(x + y);
    case '-':
        return REAL(x - y);
    case '*':
        return REAL(x * y);
    case '/':
        return REAL(x / y);
    case 'p':
        return REAL(pow(x, y));
    case 'f':
        return REAL(floor(x / y));
    default:
        return REAL(x - y * floor(x / y));
    }
}

static value concatenate(run *r, value a, value b)
{
    builder both = {0};
    build(&r->w, &both, value_text(&r->w, a));
    build(&r->w, &both, value_text(&r->w, b));
    return built_value(&both);
}

static value repeat(run *r, value of, int64_t times)
{
    builder text = {0};
    times = times < 0 ? 0 : times;
    if (of.type == VALUE_TEXT) {
        for (; times > 0 && of.text.bytes > 0 && r->w.status == WW_OK; times--)
            build(&r->w, &text, of.text);
        return built_value(&text);
    }
    const size_t count = of.list->count;
    if (count > 0 && (size_t)times > TEMPLATE_MEMORY_MAX / count)
        work_fail(&r->w, WW_OUT_OF_RANGE, "a list is too long");
    value made = list_make(&r->w, r->w.status == WW_OK ? count * (size_t)times : 0);
    for (; times > 0 && count > 0 && r->w.status == WW_OK; times--)
        for (size_t i = 0; i < count; i++)
            list_add(&r->w, &made, of.list->items[i]);
    return made;
}

bool value_contains(run *r, value in, value what)
{
    if (in.type == VALUE_TEXT && what.type == VALUE_TEXT)
        return marked_find(&r->w, in.text, what.text, 0) <= in.text.bytes;
    if (in.type == VALUE_DICT)
        return dict_find_key(&r->w, in.dict, what);
    if (in.type == VALUE_TEXT)
        fail_operands(r, what, in);
    const value list = value_elements(&r->w, in);
    for (size_t i = 0; i < list.list->count; i++)
        if (value_equal(&r->w, list.list->items[i], what))
            return true;
    return false;
}

value operator_apply(run *r, int op, value a, value b)
{
    if (op == '=' || op == '!')
        return BOOLEAN(value_equal(&r->w, a, b) == (op == '='));
    if (op == 'i' || op == 'n')
        return BOOLEAN(value_contains(r, b, a) == (op == 'i'));
    if (op == '~')
        return concatenate(r, a, b);
    if (strchr("<>lg", op)) {
        if (a.type == VALUE_UNDEFINED || b.type == VALUE_UNDEFINED)
            return fail_operands(r, a, b);
        const int order = value_compare(&r->w, a, b);
        return BOOLEAN(op == '<' ? order < 0 : op == '>' ? order > 0 : op == 'l' ? order <= 0 : order >= 0);
    }
    if (value_is_number(a) && value_is_number(b))
        return compute(r, op, a, b);
    if (op == '+' && a.type == VALUE_TEXT && b.type == VALUE_TEXT)
        return concatenate(r, a, b);
    if (op == '+' && a.type == VALUE_LIST && b.type == VALUE_LIST) {
        value made = list_make(&r->w, a.list->count + b.list->count);
        for (size_t i = 0; i < a.list->count + b.list->count; i++)
            list_add(&r->w, &made, i < a.list->count ? a.list->items[i] : b.list->items[i - a.list->count]);
        return made;
    }
    if (op == '*' && (a.type == VALUE_INTEGER || b.type == VALUE_INTEGER)) {
        const value of = a.type == VALUE_INTEGER ? b : a;
        if (of.type == VALUE_TEXT || of.type == VALUE_LIST)
            return repeat(r, of, a.type == VALUE_INTEGER ? a.integer : b.integer);
    }
    return fail_operands(r, a, b);
}

/* ---- parts of values -------------------------------------------------------------------------------------------------------
 */

value value_member(run *r, value of, marked name, bool dot)
{
    value *pair, *found = NULL;
    if (of.type == VALUE_UNDEFINED)
        fail_undefined(r, of);
    if (of.type == VALUE_DICT || of.type == VALUE_NAMESPACE)
        found = dict_find(&r->w, of.dict, name);
    const bool method = method_find(of, name) != NULL;
    if (found && !(dot && method && of.type == VALUE_DICT))
        return *found;
    if (!method || !(pair = work_alloc(&r->w, 2 * sizeof *pair)))
        return (value){.type = VALUE_UNDEFINED, .text = name};
    pair[0] = of;
    pair[1] = TEXT_OF(name);
    return (value){.type = VALUE_METHOD, .pair = pair};
}

marked characters_between(run *r, marked text, size_t from, size_t to)
{
    size_t begin = 0, end, i = 0;
    work_step(&r->w, text.bytes / 64);
    for (; i < from; i++)
        begin += char_bytes(text, begin);
    for (end = begin; i < to; i++)
        end += char_bytes(text, end);
    return marked_part(text, begin, end);
}

value value_element(run *r, value of, value at)
{
    if (at.type == VALUE_TEXT)
        return value_member(r, of, at.text, false);
    if (of.type == VALUE_UNDEFINED)
        fail_undefined(r, of);
    const value *found = of.type == VALUE_DICT ? dict_find_key(&r->w, of.dict, at) : NULL;
    if (found)
        return *found;
    if ((of.type != VALUE_LIST && of.type != VALUE_TEXT) || (at.type != VALUE_INTEGER && at.type != VALUE_BOOL))
        return UNDEFINED("an element");
    const int64_t count = (int64_t)(of.type == VALUE_LIST ? of.list->count : char_count(of.text));
    const int64_t i = value_integer(at) < 0 ? value_integer(at) + count : value_integer(at);
    if (i < 0 || i >= count)
        return UNDEFINED("an element");
    return of.type == VALUE_LIST ? of.list->items[i] : TEXT_OF(characters_between(r, of.text, (size_t)i, (size_t)i + 1));
}
