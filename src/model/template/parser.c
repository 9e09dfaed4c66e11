/* Statements to trees. */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/template/parser.h"

static node *parse_body(parser *p, const char *const *ends);

static void expect_close(parser *p)
{
    if (p->l.now.type != TOKEN_CLOSE)
        fail_at(p, "the end of the tag");
    else
        lexer_next(&p->l);
}

/* Names with commas between them, or one of a namespace. */
static node *parse_targets(parser *p)
{
    node *first = NULL, **last = &first;
    const bool bracket = accept_token(p, TOKEN_OPERATOR, "(");
    do {
        *last = make_node(p, NODE_NAME, NULL, NULL);
        (*last)->name = expect_name(p);
        if (accept_token(p, TOKEN_OPERATOR, ".")) {
            *last = make_node(p, NODE_MEMBER, *last, NULL);
            (*last)->name = expect_name(p);
        }
        last = &(*last)->next;
    } while (accept_token(p, TOKEN_OPERATOR, ","));
    if (bracket)
        expect_token(p, TOKEN_OPERATOR, ")");
    return first;
}

/* A body up to {% end %}, which is consumed. */
static node *parse_until(parser *p, const char *end)
{
    expect_close(p);
    node *body = parse_body(p, (const char *const[]){end, NULL});
    expect_token(p, TOKEN_NAME, end);
    return body;
}

static node *parse_if(parser *p)
{
    node *n = make_node(p, NODE_IF, parse_tuple(p, NULL), NULL);
    expect_close(p);
    n->b = parse_body(p, (const char *const[]){"endif", "elif", "else", NULL});
    if (accept_token(p, TOKEN_NAME, "elif")) {
        n->c = nest(p) ? parse_if(p) : n;
        p->nesting--;
    } else if (accept_token(p, TOKEN_NAME, "else")) {
        n->c = parse_until(p, "endif");
    } else {
        expect_token(p, TOKEN_NAME, "endif");
    }
    return n;
}

static node *parse_for(parser *p)
{
    node *n = make_node(p, NODE_FOR, parse_targets(p), NULL);
    expect_token(p, TOKEN_NAME, "in");
    n->b = parse_logic(p, true);
    if (accept_token(p, TOKEN_NAME, "if"))
        n->c = parse_expression(p);
    expect_close(p);
    n->d = parse_body(p, (const char *const[]){"endfor", "else", NULL});
    if (accept_token(p, TOKEN_NAME, "else"))
        n->e = parse_until(p, "endfor");
    else
        expect_token(p, TOKEN_NAME, "endfor");
    return n;
}

static node *parse_set(parser *p)
{
    node *n = make_node(p, NODE_SET, parse_targets(p), NULL);
    if (accept_token(p, TOKEN_OPERATOR, "="))
        n->b = parse_tuple(p, NULL);
    else
        n->c = parse_until(p, "endset");
    return n;
}

static node *parse_macro(parser *p)
{
    node *n = make_node(p, NODE_MACRO, NULL, NULL);
    n->name = expect_name(p);
    expect_token(p, TOKEN_OPERATOR, "(");
    for (node **last = &n->a; p->l.now.type == TOKEN_NAME; last = &(*last)->next) {
        *last = make_node(p, NODE_NAME, NULL, NULL);
        (*last)->name = expect_name(p);
        if (accept_token(p, TOKEN_OPERATOR, "="))
            (*last)->a = parse_expression(p);
        if (!accept_token(p, TOKEN_OPERATOR, ","))
            break;
    }
    expect_token(p, TOKEN_OPERATOR, ")");
    n->b = parse_until(p, "endmacro");
    return n;
}

static node *parse_with(parser *p)
{
    node *n = make_node(p, NODE_SCOPE, NULL, NULL);
    for (node **last = &n->a; p->l.now.type == TOKEN_NAME; last = &(*last)->next) {
        *last = make_node(p, NODE_SET, NULL, NULL);
        (*last)->a = make_node(p, NODE_NAME, NULL, NULL);
        (*last)->a->name = expect_name(p);
        expect_token(p, TOKEN_OPERATOR, "=");
        (*last)->b = parse_expression(p);
        if (!accept_token(p, TOKEN_OPERATOR, ","))
            break;
    }
    n->b = parse_until(p, "endwith");
    return n;
}

/* Marks what training learns from; it is written as it stands. */
static node *parse_generation(parser *p)
{
    return make_node(p, NODE_SCOPE, NULL, parse_until(p, "endgeneration"));
}

static node *parse_break(parser *p)
{
    return make_node(p, NODE_BREAK, NULL, NULL);
}

static node *parse_statement(parser *p)
{
    static const struct {
        const char *name;
        node *(*parse)(parser *p);
    } statements[] = {
        {"if", parse_if},     {"for", parse_for},     {"set", parse_set},        {"macro", parse_macro},
        {"with", parse_with}, {"break", parse_break}, {"continue", parse_break}, {"generation", parse_generation}};
    node *n = NULL;
    const marked name = p->l.now.text;
    for (size_t i = 0; !n && i < sizeof statements / sizeof *statements; i++)
        if (accept_token(p, TOKEN_NAME, statements[i].name))
            n = statements[i].parse(p);
    if (!n && p->l.now.type == TOKEN_NAME)
        work_fail(p->l.w, WW_UNSUPPORTED, "the tag '%.*s' is not known", (int)name.bytes, name.text);
    else if (!n)
        fail_at(p, "the name of a tag");
    if (n && n->type == NODE_BREAK)
        n->op = marked_is(name, "continue");
    expect_close(p);
    return n ? n : &p->spare;
}

/* Statements up to {% and one of the names that may end them; that name is the token then. Without names up to the end. */
static node *parse_body(parser *p, const char *const *ends)
{
    node *first = NULL, **last = &first;
    for (bool more = nest(p); more && p->l.w->status == WW_OK; last = &(*last)->next) {
        const token t = p->l.now;
        if (t.type == TOKEN_END)
            break;
        lexer_next(&p->l);
        for (size_t i = 0; ends[i] && t.type == TOKEN_OPEN && !t.output; i++)
            more &= !is_name(p, ends[i]);
        if (!more)
            break;
        if (t.type == TOKEN_DATA) {
            *last = make_node(p, NODE_TEXT, NULL, NULL);
            (*last)->name = t.text;
        } else if (t.output) {
            *last = make_node(p, NODE_OUTPUT, parse_tuple(p, NULL), NULL);
            expect_close(p);
        } else {
            *last = parse_statement(p);
        }
        (*last)->at = t.at;
    }
    p->nesting--;
    return first;
}

/* Copies a template with \n for each end of a line, without the last of them. */
static size_t copy_source(const char *text, size_t bytes, char *to)
{
    size_t made = 0;
    for (size_t i = 0; i < bytes; i++) {
        to[made++] = text[i] == '\r' ? '\n' : text[i];
        i += text[i] == '\r' && i + 1 < bytes && text[i + 1] == '\n';
    }
    return made > 0 && to[made - 1] == '\n' ? made - 1 : made;
}

ww_status template_parse(const char *text, size_t bytes, template_program **out)
{
    if (bytes > TEMPLATE_BYTES_MAX || memchr(text, 0, bytes) || !utf8_check(text, bytes))
        return ww_fail(WW_INVALID_ARGUMENT, "the chat template %s",
                       bytes > TEMPLATE_BYTES_MAX ? "is longer than 1 MiB" : "is not a UTF-8 text");
    template_program *program = memory_alloc_zeroed(1, sizeof *program);
    if (!program)
        return memory_failed("chat template", sizeof *program);
    program->source = work_alloc(&program->w, bytes + 4);
    if (program->source) {
        bytes = copy_source(text, bytes, program->source);
        program->source[bytes] = 0;
        program->w.source = program->source;
        parser p = {.l = {.w = &program->w, .source = {program->source, NULL, bytes}}};
        lexer_next(&p.l);
        program->body = parse_body(&p, (const char *const[]){NULL});
    }
    const ww_status status = program->w.status;
    if (status == WW_OK)
        *out = program;
    else
        template_free(program);
    return status;
}

void template_free(template_program *program)
{
    if (program)
        work_free(&program->w);
    memory_free(program);
}
