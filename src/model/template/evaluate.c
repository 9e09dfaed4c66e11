/* Runs a template by walking its tree. */
#include "model/template/evaluate.h"

#include <string.h>
#include <time.h>
#include <utf8proc.h>

#include "base/json/json.h"
#include "base/json/json_value.h"
#include "base/memory.h"

static value evaluate(work *w, const node *n);
static void execute(work *w, const node *n);

static scope *scope_make(work *w, scope *parent)
{
    scope *made = work_alloc(w, 1, sizeof *made);
    *made = (scope){parent, make_collection(w, VALUE_NAMESPACE)};
    return made;
}

static value name_value(work *w, text name)
{
    for (const scope *s = w->scope; s; s = s->parent) {
        const value *found = dict_find(w, s->names, TEXT(name));
        if (found)
            return *found;
    }
    const builtin *found = builtin_find(FUNCTION, name);
    if (!found)
        return (value){.type = VALUE_UNDEFINED, .text = name};
    function *made = work_alloc(w, 1, sizeof *made);
    made->builtin = found;
    return (value){.type = VALUE_FUNCTION, .function = made};
}

static void assign_one(work *w, const node *target, value v)
{
    const value of = target->type == NODE_NAME ? w->scope->names : evaluate(w, target->a);
    if (of.type != VALUE_NAMESPACE)
        work_fail(w, WW_INVALID_ARGUMENT, "only namespaces have names that can be set; this is a %s", value_python_name(of));
    dict_put(w, of, TEXT(target->name), v);
}

static void assign(work *w, const node *targets, value v)
{
    size_t i = 0, count = 0;
    if (!targets->next) {
        assign_one(w, targets, v);
        return;
    }
    const value list = value_elements(w, v);
    for (const node *t = targets; t; t = t->next)
        count++;
    if (list.all->count != count)
        work_fail(w, WW_INVALID_ARGUMENT, "%zu values for %zu names", list.all->count, count);
    for (const node *t = targets; t; t = t->next)
        assign_one(w, t, list.all->items[i++]);
}

static arguments collect_arguments(work *w, const node *first)
{
    const arguments made = {make_collection(w, VALUE_LIST), make_collection(w, VALUE_NAMESPACE)};
    for (const node *n = first; n; n = n->next)
        if (n->type == NODE_KEYWORD)
            dict_put(w, made.named, TEXT(n->name), evaluate(w, n->a));
        else
            list_add(w, made.items, evaluate(w, n));
    return made;
}

/* Runs statements in a new scope and returns what they write. */
static value capture(work *w, const node *body, scope *inside)
{
    builder written = {0}, *out = w->out;
    scope *before = w->scope;
    w->out = &written;
    w->scope = inside;
    execute(w, body);
    w->out = out;
    w->scope = before;
    return TEXT(built(&written));
}

static value macro_call(work *w, const macro *m, const arguments *given)
{
    scope *inside = scope_make(w, m->scope), *before = w->scope;
    const collection *items = given->items.all;
    size_t at = 0;
    w->scope = inside;
    for (const node *p = m->declared->a; p; p = p->next, at++) {
        const value *named = dict_find(w, given->named, TEXT(p->name));
        value v = {.type = VALUE_UNDEFINED, .text = p->name};
        if (at < items->count)
            v = items->items[at];
        else if (named)
            v = *named;
        else if (p->a)
            v = evaluate(w, p->a);
        dict_put(w, inside->names, TEXT(p->name), v);
    }
    w->scope = before;
    if (items->count > at)
        work_fail(w, WW_INVALID_ARGUMENT, "the macro takes %zu arguments, not %zu", at, items->count);
    return capture(w, m->declared->b, inside);
}

static value call_value(work *w, const node *n)
{
    const value callee = evaluate(w, n->a);
    const arguments given = collect_arguments(w, n->b);
    w->at = n->at;
    if (callee.type == VALUE_MACRO)
        return macro_call(w, callee.macro, &given);
    if (callee.type == VALUE_FUNCTION)
        return builtin_call(w, callee.function->builtin, callee.function->of, &given);
    if (callee.type == VALUE_UNDEFINED)
        fail_undefined(w, callee);
    work_fail(w, WW_INVALID_ARGUMENT, "a %s cannot be called", value_python_name(callee));
}

static value make_list(work *w, const node *n)
{
    value made = make_collection(w, VALUE_LIST);
    for (const node *e = n->a; e; e = e->next)
        list_add(w, made, evaluate(w, e));
    made.all->tuple = n->op;
    return made;
}

static value make_dict(work *w, const node *n)
{
    value made = make_collection(w, VALUE_DICT);
    for (const node *e = n->a; e && e->next; e = e->next->next)
        dict_put(w, made, evaluate(w, e), evaluate(w, e->next));
    return made;
}

static value sign(work *w, const node *n)
{
    const value v = evaluate(w, n->a);
    if (!value_is_number(v))
        fail_operands(w, v, INTEGER(0));
    return v.type == VALUE_REAL ? REAL(n->op == '-' ? -v.real : v.real) : operator_apply(w, n->op, INTEGER(0), v);
}

static value slice(work *w, const node *n)
{
    const value of = evaluate(w, n->a);
    const value bounds[3] = {n->b ? evaluate(w, n->b) : NONE, n->c ? evaluate(w, n->c) : NONE, n->d ? evaluate(w, n->d) : NONE};
    return value_slice(w, of, bounds);
}

/* A filter or a test. */
static value apply(work *w, const node *n)
{
    const value of = evaluate(w, n->a);
    const arguments given = collect_arguments(w, n->b);
    w->at = n->at;
    if (n->type == NODE_FILTER)
        return builtin_apply(w, FILTER, n->name, of, &given);
    return BOOLEAN(value_truth(builtin_apply(w, TEST, n->name, of, &given)) != n->op);
}

static value evaluate_node(work *w, const node *n)
{
    value a;
    switch (n->type) {
    case NODE_CONSTANT:
        return n->constant;
    case NODE_NAME:
        return name_value(w, n->name);
    case NODE_LIST:
        return make_list(w, n);
    case NODE_DICT:
        return make_dict(w, n);
    case NODE_CHOICE:
        if (value_truth(evaluate(w, n->a)))
            return evaluate(w, n->b);
        return n->c ? evaluate(w, n->c) : UNDEFINED;
    case NODE_NOT:
        return BOOLEAN(!value_truth(evaluate(w, n->a)));
    case NODE_LOGIC:
        a = evaluate(w, n->a);
        return value_truth(a) == (n->op == '|') ? a : evaluate(w, n->b);
    case NODE_BINARY:
        a = evaluate(w, n->a);
        const value b = evaluate(w, n->b);
        w->at = n->at;
        return operator_apply(w, n->op, a, b);
    case NODE_SIGN:
        return sign(w, n);
    case NODE_MEMBER:
        return value_member(w, evaluate(w, n->a), n->name, true);
    case NODE_INDEX:
        a = evaluate(w, n->a);
        return value_element(w, a, evaluate(w, n->b));
    case NODE_SLICE:
        return slice(w, n);
    case NODE_CALL:
        return call_value(w, n);
    default:
        return apply(w, n);
    }
}

static value evaluate(work *w, const node *n)
{
    work_enter(w);
    w->at = n->at;
    const value made = evaluate_node(w, n);
    w->depth--;
    return made;
}

/* The elements of a loop for which its condition is true. */
static value filter_elements(work *w, const node *n, value all)
{
    scope *before = w->scope;
    if (!n->c)
        return all;
    value kept = make_collection(w, VALUE_LIST);
    for (size_t i = 0; i < all.all->count; i++) {
        w->scope = scope_make(w, before);
        assign(w, n->a, all.all->items[i]);
        if (value_truth(evaluate(w, n->c)))
            list_add(w, kept, all.all->items[i]);
    }
    w->scope = before;
    return kept;
}

static void execute_for(work *w, const node *n)
{
    scope *before = w->scope;
    const value list = filter_elements(w, n, value_elements(w, evaluate(w, n->b))), name = TEXT(literal(w, "loop"));
    for (size_t i = 0; i < list.all->count && w->loop != LOOP_BREAKS; i++) {
        loop *described = work_alloc(w, 1, sizeof *described);
        *described = (loop){list.all, i};
        w->loop = LOOP_GOES_ON;
        w->scope = scope_make(w, before);
        dict_put(w, w->scope->names, name, (value){.type = VALUE_LOOP, .loop = described});
        assign(w, n->a, list.all->items[i]);
        execute(w, n->d);
    }
    w->loop = LOOP_GOES_ON;
    w->scope = before;
    if (list.all->count == 0)
        execute(w, n->e);
}

static void execute_macro(work *w, const node *n)
{
    macro *made = work_alloc(w, 1, sizeof *made);
    *made = (macro){n, w->scope};
    dict_put(w, w->scope->names, TEXT(n->name), (value){.type = VALUE_MACRO, .macro = made});
}

static void execute_one(work *w, const node *n)
{
    scope *before = w->scope;
    switch (n->type) {
    case NODE_TEXT:
        build(w, w->out, n->constant.text);
        break;
    case NODE_OUTPUT:
        build(w, w->out, value_text(w, evaluate(w, n->a)));
        break;
    case NODE_SET:
        assign(w, n->a, n->b ? evaluate(w, n->b) : capture(w, n->c, scope_make(w, w->scope)));
        break;
    case NODE_FOR:
        execute_for(w, n);
        break;
    case NODE_IF:
        execute(w, value_truth(evaluate(w, n->a)) ? n->b : n->c);
        break;
    case NODE_MACRO:
        execute_macro(w, n);
        break;
    case NODE_WITH:
        w->scope = scope_make(w, before);
        for (const node *name = n->a; name; name = name->next)
            dict_put(w, w->scope->names, TEXT(name->name), name->a ? evaluate(w, name->a) : UNDEFINED);
        execute(w, n->b);
        w->scope = before;
        break;
    default:
        w->loop = n->type == NODE_BREAK ? LOOP_BREAKS : LOOP_CONTINUES;
    }
}

static void execute(work *w, const node *n)
{
    for (; n && w->loop == LOOP_GOES_ON; n = n->next) {
        work_enter(w);
        w->at = n->at;
        execute_one(w, n);
        w->depth--;
    }
}

typedef struct template_run {
    const node *body;
    const template_input *input;
    builder written;
} template_run;

static void run_template(work *w, void *context)
{
    template_run *run = context;
    const template_input *input = run->input;
    const value variables = value_from_json(w, json_root(input->json));
    w->out = &run->written;
    w->scope = scope_make(w, NULL);
    for (size_t i = 0; i < variables.all->count; i++)
        dict_put(w, w->scope->names, variables.all->keys[i], variables.all->items[i]);
    dict_put(w, w->scope->names, TEXT(literal(w, "bos_token")), TEXT(literal(w, input->bos)));
    dict_put(w, w->scope->names, TEXT(literal(w, "eos_token")), TEXT(literal(w, input->eos)));
    dict_put(w, w->scope->names, TEXT(literal(w, "add_generation_prompt")), BOOLEAN(input->add_generation));
    execute(w, run->body);
}

void template_quotes_free(template_quotes *quotes)
{
    memory_free(quotes->spans);
    *quotes = (template_quotes){0};
}

/* Adds quoted bytes, to the last span if they directly follow it. */
static ww_status add_quote(template_quotes *q, size_t from, size_t to)
{
    if (q->count > 0 && q->spans[q->count - 1].to == from) {
        q->spans[q->count - 1].to = to;
        return WW_OK;
    }
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

static ww_status give(text written, text_buffer *out, template_quotes *quotes)
{
    const size_t before = out->bytes;
    ww_status status = WW_OK;
    for (size_t i = 0; i < written.count && status == WW_OK; i++) {
        utf8proc_uint8_t bytes[4];
        const size_t count = (size_t)utf8proc_encode_char((utf8proc_int32_t)CODE(written.chars[i]), bytes);
        if (quotes && written.chars[i] & QUOTED)
            status = add_quote(quotes, out->bytes, out->bytes + count);
        if (status == WW_OK)
            status = text_buffer_add(out, (const char *)bytes, count);
    }
    if (status != WW_OK) {
        out->bytes = before;
        if (quotes)
            quotes->count = 0;
    }
    return status;
}

ww_status template_render(const template_program *program, const template_input *input, text_buffer *out,
                          template_quotes *quotes)
{
    json_fault fault;
    if (!json_check(input->json, strlen(input->json), &fault))
        return ww_fail(WW_INVALID_ARGUMENT, "the conversation, line %zu, column %zu: %s", fault.line, fault.column, fault.what);
    if (json_type_of(json_root(input->json)) != JSON_OBJECT)
        return ww_fail(WW_INVALID_ARGUMENT, "the conversation: it must be an object of JSON");
    template_run run = {.body = program->body, .input = input};
    work w = {.source = program->w.source, .now = input->now ? input->now : time(NULL)};
    ww_status status = work_do(&w, run_template, &run);
    if (status == WW_OK)
        status = give(built(&run.written), out, quotes);
    work_free(&w);
    return status;
}
