/* Operators of templates, and access to members and elements of values. */
#include <math.h>
#include <string.h>

#include "model/template/evaluate.h"

void fail_undefined(work *w, value v)
{
    work_fail(w, WW_INVALID_ARGUMENT, "'%.100s' is undefined", text_to_utf8(w, v.text, NULL));
}

void fail_operands(work *w, value a, value b)
{
    if (a.type == VALUE_UNDEFINED || b.type == VALUE_UNDEFINED)
        fail_undefined(w, a.type == VALUE_UNDEFINED ? a : b);
    work_fail(w, WW_INVALID_ARGUMENT, "this operator does not take a %s and a %s", value_python_name(a), value_python_name(b));
}

/* Quotients are rounded down, and a remainder has the sign of the divisor. */
static value compute_integers(work *w, int op, int64_t a, int64_t b)
{
    int64_t made = 1;
    bool over = false;
    if (op == '+') {
        over = __builtin_add_overflow(a, b, &made);
    } else if (op == '-') {
        over = __builtin_sub_overflow(a, b, &made);
    } else if (op == '*') {
        over = __builtin_mul_overflow(a, b, &made);
    } else if (op == 'p') {
        for (int64_t i = 0; i < b && !over; i++) {
            work_step(w, 1);
            over = __builtin_mul_overflow(made, a, &made);
        }
    } else {
        const __int128 quotient = (__int128)a / b, remainder = (__int128)a % b;
        const bool down = remainder != 0 && (a < 0) != (b < 0);
        over = op == 'f' && quotient > INT64_MAX;
        made = (int64_t)(op == 'f' ? quotient - down : remainder + (down ? b : 0));
    }
    if (over)
        work_fail(w, WW_OUT_OF_RANGE, "an integer is past 64 bits");
    return INTEGER(made);
}

static double compute_reals(int op, double x, double y)
{
    return op == '+'   ? x + y
           : op == '-' ? x - y
           : op == '*' ? x * y
           : op == '/' ? x / y
           : op == 'p' ? pow(x, y)
           : op == 'f' ? floor(x / y)
                       : x - y * floor(x / y);
}

static value compute(work *w, int op, value a, value b)
{
    if (strchr("/f%", op) && value_real(b) == 0)
        work_fail(w, WW_INVALID_ARGUMENT, "division by zero");
    if (value_is_integer(a) && value_is_integer(b) && op != '/' && !(op == 'p' && value_integer(b) < 0))
        return compute_integers(w, op, value_integer(a), value_integer(b));
    return REAL(compute_reals(op, value_real(a), value_real(b)));
}

static value join_texts(work *w, text a, text b)
{
    builder both = {0};
    build(w, &both, a);
    build(w, &both, b);
    return TEXT(built(&both));
}

static void list_add_all(work *w, value list, value from)
{
    for (size_t i = 0; i < from.all->count; i++)
        list_add(w, list, from.all->items[i]);
}

static value repeat(work *w, value of, int64_t times)
{
    builder made = {0};
    if (of.type == VALUE_TEXT) {
        for (; times > 0 && of.text.count > 0; times--)
            build(w, &made, of.text);
        return TEXT(built(&made));
    }
    value list = make_collection(w, VALUE_LIST);
    for (; times > 0 && of.all->count > 0; times--)
        list_add_all(w, list, of);
    return list;
}

static bool contains(work *w, value in, value what)
{
    if (in.type == VALUE_TEXT && what.type == VALUE_TEXT)
        return text_find(w, in.text, what.text, 0) != NOT_FOUND;
    if (in.type == VALUE_TEXT)
        fail_operands(w, what, in);
    if (in.type == VALUE_DICT)
        return dict_find(w, in, what);
    const value list = value_elements(w, in);
    for (size_t i = 0; i < list.all->count; i++)
        if (value_equal(w, list.all->items[i], what))
            return true;
    return false;
}

static bool is_ordered(work *w, int op, value a, value b)
{
    if (a.type == VALUE_UNDEFINED || b.type == VALUE_UNDEFINED)
        fail_operands(w, a, b);
    const int order = value_compare(w, a, b);
    return op == '<' ? order < 0 : op == '>' ? order > 0 : op == 'l' ? order <= 0 : order >= 0;
}

value operator_apply(work *w, int op, value a, value b)
{
    if (op == '=' || op == '!')
        return BOOLEAN(value_equal(w, a, b) == (op == '='));
    if (op == 'i' || op == 'n')
        return BOOLEAN(contains(w, b, a) == (op == 'i'));
    if (strchr("<>lg", op))
        return BOOLEAN(is_ordered(w, op, a, b));
    if (op == '~')
        return join_texts(w, value_text(w, a), value_text(w, b));
    if (value_is_number(a) && value_is_number(b))
        return compute(w, op, a, b);
    if (op == '+' && a.type == VALUE_TEXT && b.type == VALUE_TEXT)
        return join_texts(w, a.text, b.text);
    if (op == '+' && a.type == VALUE_LIST && b.type == VALUE_LIST) {
        value made = make_collection(w, VALUE_LIST);
        list_add_all(w, made, a);
        list_add_all(w, made, b);
        return made;
    }
    if (op == '*' && a.type == VALUE_INTEGER && (b.type == VALUE_TEXT || b.type == VALUE_LIST))
        return repeat(w, b, a.integer);
    if (op == '*' && b.type == VALUE_INTEGER && (a.type == VALUE_TEXT || a.type == VALUE_LIST))
        return repeat(w, a, b.integer);
    fail_operands(w, a, b);
}

static value undefined(text name)
{
    return (value){.type = VALUE_UNDEFINED, .text = name};
}

/* The members of the variable `loop`. */
static value loop_member(const loop *l, text name)
{
    const size_t i = l->i, count = l->list->count;
    const struct {
        const char *name;
        value v;
    } facts[] = {{"index0", INTEGER(i)},
                 {"index", INTEGER(i + 1)},
                 {"first", BOOLEAN(i == 0)},
                 {"last", BOOLEAN(i + 1 == count)},
                 {"length", INTEGER(count)},
                 {"revindex", INTEGER(count - i)},
                 {"revindex0", INTEGER(count - i - 1)},
                 {"previtem", i > 0 ? l->list->items[i - 1] : undefined(name)},
                 {"nextitem", i + 1 < count ? l->list->items[i + 1] : undefined(name)}};
    for (size_t k = 0; k < sizeof facts / sizeof *facts; k++)
        if (text_is(name, facts[k].name))
            return facts[k].v;
    return undefined(name);
}

value value_member(work *w, value of, text name, bool dot)
{
    const builtin *method = builtin_find((int)of.type, name);
    const value *found = NULL;
    if (of.type == VALUE_UNDEFINED)
        fail_undefined(w, of);
    if (of.type == VALUE_DICT || of.type == VALUE_NAMESPACE)
        found = dict_find(w, of, TEXT(name));
    if (found && !(dot && method))
        return *found;
    if (method) {
        function *bound = work_alloc(w, 1, sizeof *bound);
        *bound = (function){method, of};
        return (value){.type = VALUE_FUNCTION, .function = bound};
    }
    return of.type == VALUE_LOOP ? loop_member(of.loop, name) : undefined(name);
}

static int64_t length_of(value v)
{
    return (int64_t)(v.type == VALUE_LIST ? v.all->count : v.text.count);
}

value value_element(work *w, value of, value at)
{
    if (at.type == VALUE_TEXT)
        return value_member(w, of, at.text, false);
    if (of.type == VALUE_UNDEFINED)
        fail_undefined(w, of);
    const value *found = of.type == VALUE_DICT ? dict_find(w, of, at) : NULL;
    if (found)
        return *found;
    if ((of.type == VALUE_LIST || of.type == VALUE_TEXT) && value_is_integer(at)) {
        const int64_t i = value_integer(at) < 0 ? value_integer(at) + length_of(of) : value_integer(at);
        if (i >= 0 && i < length_of(of))
            return of.type == VALUE_LIST ? of.all->items[i] : TEXT(text_part(of.text, (size_t)i, (size_t)i + 1));
    }
    return undefined(literal(w, "an element"));
}

/* Where a slice of `count` elements begins or ends, by Python's rules. */
static int64_t slice_bound(value given, int64_t count, bool down, bool end)
{
    const int64_t min = down ? -1 : 0, max = down ? count - 1 : count;
    if (given.type == VALUE_NONE)
        return down == end ? min : max;
    const int64_t i = value_integer(given) < 0 ? value_integer(given) + count : value_integer(given);
    return i < min ? min : i > max ? max : i;
}

value value_slice(work *w, value of, const value bounds[3])
{
    if (of.type != VALUE_LIST && of.type != VALUE_TEXT)
        fail_operands(w, of, NONE);
    for (int i = 0; i < 3; i++)
        if (bounds[i].type != VALUE_NONE && !value_is_integer(bounds[i]))
            work_fail(w, WW_INVALID_ARGUMENT, "a slice has a %s; it must have integers", value_python_name(bounds[i]));
    const int64_t step = bounds[2].type == VALUE_NONE ? 1 : value_integer(bounds[2]), count = length_of(of);
    if (step == 0 || step > INT32_MAX || step < -INT32_MAX)
        work_fail(w, WW_INVALID_ARGUMENT, "the step of a slice is 0, or past 32 bits");
    const int64_t from = slice_bound(bounds[0], count, step < 0, false), to = slice_bound(bounds[1], count, step < 0, true);
    value list = make_collection(w, VALUE_LIST);
    builder made = {0};
    if (of.type == VALUE_TEXT && step == 1)
        return TEXT(from < to ? text_part(of.text, (size_t)from, (size_t)to) : built(&made));
    for (int64_t i = from; step > 0 ? i < to : i > to; i += step)
        if (of.type == VALUE_TEXT)
            build_character(w, &made, of.text.chars[i]);
        else
            list_add(w, list, of.all->items[i]);
    return of.type == VALUE_TEXT ? TEXT(built(&made)) : list;
}
