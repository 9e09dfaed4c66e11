/* Walks a template's tree. A failure stays in the run's status; everything after it gives an undefined value and writes
 * nothing.
 */
#include "model/template/evaluate.h"

#include <string.h>
#include <time.h>

#include "base/json/json.h"
#include "base/json/json_value.h"
#include "base/memory.h"

static value evaluate(run *r, const node *n);
static void execute(run *r, const node *n);

/* ---- names ---------------------------------------------------------------------------------------------------------------
 */

static scope *scope_make(run *r, scope *parent)
{
    scope *made = work_alloc(&r->w, sizeof *made);
    if (!made)
        return parent;
    *made = (scope){parent, dict_make(&r->w, VALUE_NAMESPACE)};
    return made;
}

static value name_value(run *r, marked name)
{
    static const char *const functions[] = {"raise_exception", "strftime_now", "range", "namespace", "dict"};
    for (scope *s = r->scope; s; s = s->parent) {
        const value *found = dict_find(&r->w, s->names.dict, name);
        if (found)
            return *found;
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (marked_is(name, functions[i]))
            return (value){.type = VALUE_FUNCTION, .text = name};
    return (value){.type = VALUE_UNDEFINED, .text = name};
}

static void assign_one(run *r, const node *target, value v)
{
    if (target->type == NODE_NAME) {
        dict_put(&r->w, &r->scope->names, target->name, v);
        return;
    }
    value of = evaluate(r, target->a);
    if (of.type != VALUE_NAMESPACE)
        work_fail(&r->w, WW_INVALID_ARGUMENT, "only namespaces have names that can be set; this is a %s", value_kind_name(of));
    else
        dict_put(&r->w, &of, target->name, v);
}

static void assign(run *r, const node *targets, value v)
{
    size_t i = 0, count = 0;
    if (!targets->next) {
        assign_one(r, targets, v);
        return;
    }
    const value list = value_elements(&r->w, v);
    for (const node *t = targets; t; t = t->next)
        count++;
    if (list.list->count != count)
        work_fail(&r->w, WW_INVALID_ARGUMENT, "%zu values for %zu names", list.list->count, count);
    for (const node *t = targets; t && r->w.status == WW_OK; t = t->next)
        assign_one(r, t, list.list->items[i++]);
}

/* ---- parts and collections -----------------------------------------------------------------------------------------------
 */

/* An integer of a slice; `missing` where there is none. */
static int64_t slice_integer(run *r, const node *n, int64_t missing)
{
    const value v = n ? evaluate(r, n) : NONE;
    if (v.type == VALUE_INTEGER || v.type == VALUE_BOOL)
        return value_integer(v);
    if (v.type != VALUE_NONE)
        work_fail(&r->w, WW_INVALID_ARGUMENT, "a slice has a %s; it must have integers", value_kind_name(v));
    return missing;
}

/* Where a slice of `count` elements begins or ends, as Python counts. */
static int64_t slice_bound(run *r, const node *n, int64_t count, bool down, bool end)
{
    const int64_t least = down ? -1 : 0, most = down ? count - 1 : count, given = slice_integer(r, n, INT64_MIN);
    if (given == INT64_MIN)
        return down == end ? least : most;
    const int64_t i = given < 0 ? given + count : given;
    return i < least ? least : i > most ? most : i;
}

static value slice(run *r, const node *n)
{
    const value of = evaluate(r, n->a), text = TEXT_OF(literal(""));
    if (of.type != VALUE_LIST && of.type != VALUE_TEXT)
        return fail_operands(r, of, NONE);
    const int64_t wanted = slice_integer(r, n->d, 1), step = wanted > INT32_MAX   ? INT32_MAX
                                                             : wanted < INT32_MIN ? INT32_MIN
                                                                                  : wanted;
    const int64_t count = (int64_t)(of.type == VALUE_LIST ? of.list->count : char_count(of.text));
    const int64_t from = slice_bound(r, n->b, count, step < 0, false), to = slice_bound(r, n->c, count, step < 0, true);
    if (step == 0)
        work_fail(&r->w, WW_INVALID_ARGUMENT, "the step of a slice is 0");
    if (r->w.status != WW_OK)
        return text;
    if (of.type == VALUE_TEXT && step == 1)
        return from < to ? TEXT_OF(characters_between(r, of.text, (size_t)from, (size_t)to)) : text;
    const value all = value_elements(&r->w, of);
    value made = list_make(&r->w, all.list->count);
    for (int64_t i = from; r->w.status == WW_OK && (step > 0 ? i < to : i > to); i += step)
        list_add(&r->w, &made, all.list->items[i]);
    builder joined = {0};
    for (size_t i = 0; of.type == VALUE_TEXT && i < made.list->count; i++)
        build(&r->w, &joined, made.list->items[i].text);
    return of.type == VALUE_TEXT ? built_value(&joined) : made;
}

static value collect(run *r, const node *n)
{
    size_t count = 0;
    for (const node *e = n->a; e; e = e->next)
        count++;
    value made = n->type == NODE_DICT ? dict_make(&r->w, VALUE_DICT) : list_make(&r->w, count);
    const node *behind;
    for (const node *e = n->a; e && r->w.status == WW_OK; e = behind) {
        const value v = evaluate(r, e);
        behind = e->next;
        if (n->type == NODE_LIST) {
            list_add(&r->w, &made, v);
        } else if (behind && (v.type == VALUE_INTEGER || argument_is_text(r, v, "a key"))) {
            dict_put_key(&r->w, &made, v, evaluate(r, behind));
            behind = behind->next;
        }
    }
    if (n->type == NODE_LIST && r->w.status == WW_OK)
        made.list->tuple = n->op;
    return made;
}

/* ---- calls ---------------------------------------------------------------------------------------------------------------
 */

static arguments collect_arguments(run *r, const node *first)
{
    size_t count = 0;
    value named = dict_make(&r->w, VALUE_NAMESPACE);
    for (const node *n = first; n; n = n->next)
        count++;
    arguments made = {work_alloc(&r->w, count * sizeof(value)), 0, named.dict, 0};
    for (const node *n = first; n && r->w.status == WW_OK; n = n->next)
        if (n->type == NODE_KEYWORD)
            dict_put(&r->w, &named, n->name, evaluate(r, n->a));
        else
            made.items[made.count++] = evaluate(r, n);
    return made;
}

/* Runs statements in a scope of their own and gives what they write. */
static value capture(run *r, const node *body, scope *inside)
{
    builder text = {0}, *out = r->out;
    scope *before = r->scope;
    r->out = &text;
    r->scope = inside;
    execute(r, body);
    r->out = out;
    r->scope = before;
    return built_value(&text);
}

static value macro_call(run *r, const macro *m, const arguments *given)
{
    scope *inside = scope_make(r, m->scope), *before = r->scope;
    size_t at = 0;
    for (const node *p = m->declared->a; p && r->w.status == WW_OK; p = p->next, at++) {
        value missing = {.type = VALUE_UNDEFINED, .text = p->name};
        const value *named = dict_find(&r->w, given->named, p->name);
        r->scope = inside;
        if (p->a && at >= given->count && !named)
            missing = evaluate(r, p->a);
        r->scope = before;
        dict_put(&r->w, &inside->names, p->name, at < given->count ? given->items[at] : named ? *named : missing);
    }
    if (given->count > at)
        work_fail(&r->w, WW_INVALID_ARGUMENT, "the macro takes %zu arguments, not %zu", at, given->count);
    return capture(r, m->declared->b, inside);
}

static value call(run *r, const node *n)
{
    const value callee = evaluate(r, n->a);
    const arguments given = collect_arguments(r, n->b);
    r->w.at = n->at;
    if (r->w.status != WW_OK)
        return UNDEFINED("");
    if (callee.type == VALUE_MACRO)
        return macro_call(r, callee.macro, &given);
    if (callee.type == VALUE_METHOD)
        return builtin_call(r, method_find(callee.pair[0], callee.pair[1].text), callee.pair[0], &given);
    if (callee.type == VALUE_FUNCTION)
        return function_call(r, callee.text, &given);
    if (callee.type == VALUE_UNDEFINED)
        fail_undefined(r, callee);
    work_fail(&r->w, WW_INVALID_ARGUMENT, "a %s cannot be called", value_kind_name(callee));
    return UNDEFINED("");
}

static value negate(run *r, const node *n)
{
    const value v = evaluate(r, n->a);
    if (!value_is_number(v))
        return fail_operands(r, v, INTEGER(0));
    if (n->op == '+')
        return v;
    return v.type == VALUE_REAL ? REAL(-v.real) : compute_integers(r, '-', 0, value_integer(v));
}

static value evaluate_inside(run *r, const node *n)
{
    value a;
    arguments given;
    switch (n->type) {
    case NODE_CONSTANT:
        return n->constant;
    case NODE_NAME:
        return name_value(r, n->name);
    case NODE_LIST:
    case NODE_DICT:
        return collect(r, n);
    case NODE_LOGIC:
        a = evaluate(r, n->a);
        if (n->op == '!')
            return BOOLEAN(!value_truth(a));
        return value_truth(a) == (n->op == '|') ? a : evaluate(r, n->b);
    case NODE_CHOICE:
        if (value_truth(evaluate(r, n->a)))
            return evaluate(r, n->b);
        return n->c ? evaluate(r, n->c) : UNDEFINED("");
    case NODE_BINARY:
        a = evaluate(r, n->a);
        const value b = evaluate(r, n->b);
        r->w.at = n->at;
        return operator_apply(r, n->op, a, b);
    case NODE_NEGATE:
        return negate(r, n);
    case NODE_MEMBER:
        return value_member(r, evaluate(r, n->a), n->name, true);
    case NODE_INDEX:
        a = evaluate(r, n->a);
        return value_element(r, a, evaluate(r, n->b));
    case NODE_SLICE:
        return slice(r, n);
    case NODE_CALL:
        return call(r, n);
    default: /* filters and tests */
        a = evaluate(r, n->a);
        given = collect_arguments(r, n->b);
        r->w.at = n->at;
        if (n->type == NODE_FILTER)
            return filter_apply(r, n->name, a, &given);
        return BOOLEAN(test_apply(r, n->name, a, &given) != n->op);
    }
}

static bool enter(run *r, const node *n)
{
    r->w.at = n->at;
    if (++r->w.depth > TEMPLATE_DEPTH_MAX)
        work_fail(&r->w, WW_OUT_OF_RANGE, "the template is more than %d levels deep", TEMPLATE_DEPTH_MAX);
    return work_step(&r->w, 1);
}

static value evaluate(run *r, const node *n)
{
    const value made = enter(r, n) ? evaluate_inside(r, n) : UNDEFINED("");
    r->w.depth--;
    return r->w.status == WW_OK ? made : UNDEFINED("");
}

/* ---- statements ------------------------------------------------------------------------------------------------------------
 */

/* The variable `loop`, in element `i`. */
static void describe_loop(run *r, value *loop, const value_list *list, size_t i)
{
    const size_t count = list->count;
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
                 {"previtem", i > 0 ? list->items[i - 1] : UNDEFINED("previtem")},
                 {"nextitem", i + 1 < count ? list->items[i + 1] : UNDEFINED("nextitem")}};
    for (size_t k = 0; k < sizeof facts / sizeof *facts; k++)
        dict_put(&r->w, loop, literal(facts[k].name), facts[k].v);
}

static void execute_for(run *r, const node *n)
{
    scope *before = r->scope;
    const value all = value_elements(&r->w, evaluate(r, n->b));
    value list = all, loop = dict_make(&r->w, VALUE_NAMESPACE);
    if (n->c && r->w.status == WW_OK) {
        list = list_make(&r->w, all.list->count);
        for (size_t i = 0; i < all.list->count && r->w.status == WW_OK; i++) {
            r->scope = scope_make(r, before);
            assign(r, n->a, all.list->items[i]);
            if (value_truth(evaluate(r, n->c)))
                list_add(&r->w, &list, all.list->items[i]);
        }
    }
    for (size_t i = 0; i < list.list->count && r->w.status == WW_OK && r->leaves != 1; i++) {
        r->leaves = 0;
        r->scope = scope_make(r, before);
        describe_loop(r, &loop, list.list, i);
        dict_put(&r->w, &r->scope->names, literal("loop"), loop);
        assign(r, n->a, list.list->items[i]);
        execute(r, n->d);
    }
    r->leaves = 0;
    r->scope = before;
    if (list.list->count == 0)
        execute(r, n->e);
}

static void execute_macro(run *r, const node *n)
{
    macro *made = work_alloc(&r->w, sizeof *made);
    if (!made)
        return;
    *made = (macro){n, r->scope};
    dict_put(&r->w, &r->scope->names, n->name, (value){.type = VALUE_MACRO, .macro = made});
}

static void execute_one(run *r, const node *n)
{
    scope *before = r->scope;
    switch (n->type) {
    case NODE_TEXT:
        build(&r->w, r->out, n->name);
        break;
    case NODE_OUTPUT:
        value_write(&r->w, r->out, evaluate(r, n->a), false);
        break;
    case NODE_SET:
        assign(r, n->a, n->b ? evaluate(r, n->b) : capture(r, n->c, scope_make(r, r->scope)));
        break;
    case NODE_FOR:
        execute_for(r, n);
        break;
    case NODE_IF:
        execute(r, value_truth(evaluate(r, n->a)) ? n->b : n->c);
        break;
    case NODE_MACRO:
        execute_macro(r, n);
        break;
    case NODE_SCOPE:
        r->scope = scope_make(r, before);
        execute(r, n->a);
        execute(r, n->b);
        r->scope = before;
        break;
    default: /* break and continue */
        r->leaves = n->op ? 2 : 1;
    }
}

static void execute(run *r, const node *n)
{
    for (; n && r->w.status == WW_OK && r->leaves == 0; n = n->next) {
        if (enter(r, n))
            execute_one(r, n);
        r->w.depth--;
    }
}

/* ---- a run ---------------------------------------------------------------------------------------------------------------
 */

void template_quotes_free(template_quotes *quotes)
{
    memory_free(quotes->spans);
    *quotes = (template_quotes){0};
}

static ww_status add_quote(template_quotes *q, size_t from, size_t to)
{
    if (q->count == q->capacity) {
        const size_t capacity = 2 * q->capacity + 4;
        text_span *larger = memory_resize(q->spans, capacity * sizeof *larger);
        if (!larger)
            return memory_failed("conversation", capacity * sizeof *larger);
        q->spans = larger;
        q->capacity = capacity;
    }
    q->spans[q->count++] = (text_span){from, to};
    return WW_OK;
}

static ww_status give(marked text, text_buffer *out, template_quotes *quotes)
{
    const size_t before = out->bytes;
    ww_status status = WW_OK;
    for (size_t i = 0, end; quotes && text.marks && i < text.bytes && status == WW_OK; i = end) {
        for (end = i; end < text.bytes && text.marks[end] == text.marks[i];)
            end++;
        if (text.marks[i])
            status = add_quote(quotes, before + i, before + end);
    }
    if (status == WW_OK)
        status = text_buffer_add(out, text.text, text.bytes);
    if (status != WW_OK && quotes)
        quotes->count = 0;
    return status;
}

static void set_variables(run *r, const template_input *input)
{
    json_fault fault;
    const size_t bytes = strlen(input->json);
    if (!json_check(input->json, bytes, &fault)) {
        r->w.status =
            ww_fail(WW_INVALID_ARGUMENT, "the conversation, line %zu, column %zu: %s", fault.line, fault.column, fault.what);
        return;
    }
    const value variables = value_from_json(&r->w, json_root(input->json));
    if (variables.type != VALUE_DICT)
        r->w.status =
            ww_fail(WW_INVALID_ARGUMENT, "the conversation is a JSON %s; it must be an object", value_kind_name(variables));
    for (size_t i = 0; r->w.status == WW_OK && i < variables.dict->count; i++)
        dict_put_key(&r->w, &r->scope->names, variables.dict->keys[i], variables.dict->items[i]);
    dict_put(&r->w, &r->scope->names, literal("bos_token"), LITERAL(input->bos));
    dict_put(&r->w, &r->scope->names, literal("eos_token"), LITERAL(input->eos));
    dict_put(&r->w, &r->scope->names, literal("add_generation_prompt"), BOOLEAN(input->add_generation));
}

ww_status template_render(const template_program *program, const template_input *input, text_buffer *out,
                          template_quotes *quotes)
{
    builder text = {0};
    scope outermost = {0};
    run r = {.w = {.source = program->source}, .scope = &outermost, .out = &text, .now = input->now ? input->now : time(NULL)};
    outermost.names = dict_make(&r.w, VALUE_NAMESPACE);
    if (r.w.status == WW_OK)
        set_variables(&r, input);
    execute(&r, program->body);
    ww_status status = r.w.status;
    if (status == WW_OK)
        status = give(built(&text), out, quotes);
    work_free(&r.w);
    return status;
}
