/* Parses statements to trees. */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/template/parse.h"

static node *parse_body(parser *p);

static void expect_close(parser *p)
{
    if (p->now.type != TOKEN_CLOSE)
        fail_at(p, "the end of the tag");
    next_token(p);
}

static node *parse_name(parser *p)
{
    node *n = make_node(p, NODE_NAME, NULL, NULL);
    n->name = expect_name(p);
    return n;
}

/* Parses names with commas between them, or one member of a namespace. */
static node *parse_targets(parser *p)
{
    node *first = NULL, **last = &first;
    const bool bracket = token_accept(p, "(");
    do {
        *last = parse_name(p);
        if (token_accept(p, ".")) {
            *last = make_node(p, NODE_MEMBER, *last, NULL);
            (*last)->name = expect_name(p);
        }
        last = &(*last)->next;
    } while (token_accept(p, ","));
    if (bracket)
        token_expect(p, ")");
    return first;
}

/* Parses a body up to {% end, which is consumed. */
static node *parse_until(parser *p, const char *end)
{
    expect_close(p);
    node *body = parse_body(p);
    token_expect(p, end);
    return body;
}

static node *parse_if(parser *p)
{
    node *n = make_node(p, NODE_IF, parse_tuple(p, NULL), NULL);
    expect_close(p);
    n->b = parse_body(p);
    if (token_accept(p, "elif")) {
        nest(p);
        n->c = parse_if(p);
        p->nesting--;
    } else if (token_accept(p, "else")) {
        n->c = parse_until(p, "endif");
    } else {
        token_expect(p, "endif");
    }
    return n;
}

static node *parse_for(parser *p)
{
    node *n = make_node(p, NODE_FOR, parse_targets(p), NULL);
    token_expect(p, "in");
    n->b = parse_operators(p, 0);
    if (token_accept(p, "if"))
        n->c = parse_expression(p);
    expect_close(p);
    n->d = parse_body(p);
    if (token_accept(p, "else"))
        n->e = parse_until(p, "endfor");
    else
        token_expect(p, "endfor");
    return n;
}

static node *parse_set(parser *p)
{
    node *n = make_node(p, NODE_SET, parse_targets(p), NULL);
    if (token_accept(p, "="))
        n->b = parse_tuple(p, NULL);
    else
        n->c = parse_until(p, "endset");
    return n;
}

/* Parses names with commas between them, each with its value or default `a` if there is one. */
static node *parse_named_values(parser *p)
{
    node *first = NULL;
    for (node **last = &first; p->now.type == TOKEN_NAME; last = &(*last)->next) {
        *last = parse_name(p);
        if (token_accept(p, "="))
            (*last)->a = parse_expression(p);
        if (!token_accept(p, ","))
            break;
    }
    return first;
}

static node *parse_macro(parser *p)
{
    node *n = make_node(p, NODE_MACRO, NULL, NULL);
    n->name = expect_name(p);
    token_expect(p, "(");
    n->a = parse_named_values(p);
    token_expect(p, ")");
    n->b = parse_until(p, "endmacro");
    return n;
}

static node *parse_with(parser *p)
{
    node *n = make_node(p, NODE_WITH, parse_named_values(p), NULL);
    n->b = parse_until(p, "endwith");
    return n;
}

/* {% generation %} marks what training learns from; its body is written unchanged. */
static node *parse_generation(parser *p)
{
    return make_node(p, NODE_WITH, NULL, parse_until(p, "endgeneration"));
}

static node *parse_statement(parser *p)
{
    static const struct {
        const char *name;
        node *(*parse)(parser *p);
    } statements[] = {{"if", parse_if},       {"for", parse_for},   {"set", parse_set},
                      {"macro", parse_macro}, {"with", parse_with}, {"generation", parse_generation}};
    node *n = NULL;
    for (size_t i = 0; !n && i < sizeof statements / sizeof *statements; i++)
        if (token_accept(p, statements[i].name))
            n = statements[i].parse(p);
    if (!n && (token_is(p, "break") || token_is(p, "continue"))) {
        n = make_node(p, token_is(p, "break") ? NODE_BREAK : NODE_CONTINUE, NULL, NULL);
        next_token(p);
    }
    if (!n && p->now.type != TOKEN_NAME)
        fail_at(p, "the name of a tag");
    if (!n)
        work_fail(p->w, WW_UNSUPPORTED, "the tag '%s' is not known", text_to_utf8(p->w, p->now.text, NULL));
    expect_close(p);
    return n;
}

/* Does the tag's name end a body? */
static bool ends_body(const parser *p)
{
    const text name = p->now.text;
    return token_is(p, "elif") || token_is(p, "else") ||
           (p->now.type == TOKEN_NAME && name.count > 3 && text_is(text_part(name, 0, 3), "end"));
}

/* Parses statements up to the end of the template, or up to {% and a name that ends a body; that name is then the current
 * token. */
static node *parse_body(parser *p)
{
    node *first = NULL;
    nest(p);
    for (node **last = &first; p->now.type != TOKEN_END; last = &(*last)->next) {
        const token t = p->now;
        next_token(p);
        if (t.type == TOKEN_DATA) {
            *last = make_node(p, NODE_TEXT, NULL, NULL);
            (*last)->constant = TEXT(t.text);
        } else if (p->output) {
            *last = make_node(p, NODE_OUTPUT, parse_tuple(p, NULL), NULL);
            expect_close(p);
        } else if (ends_body(p)) {
            break;
        } else {
            *last = parse_statement(p);
        }
        (*last)->at = t.at;
    }
    p->nesting--;
    return first;
}

typedef struct template_bytes {
    const char *bytes;
    size_t count;
    node **body;
} template_bytes;

/* Reads the characters, with \n for each line end, without the last one, and with zeros at the end, so that looking ahead needs
 * no check. */
static text read_source(work *w, const template_bytes *from)
{
    const text all = text_from_utf8(w, from->bytes, from->count, 0);
    uint32_t *chars = work_alloc(w, all.count + 4, sizeof *chars);
    size_t made = 0;
    for (size_t i = 0; i < all.count; i++) {
        const bool return_ = all.chars[i] == '\r';
        chars[made++] = return_ ? '\n' : all.chars[i];
        i += return_ && i + 1 < all.count && all.chars[i + 1] == '\n';
    }
    if (made > 0 && chars[made - 1] == '\n')
        chars[--made] = 0;
    return (text){chars, made};
}

static void parse_template(work *w, void *context)
{
    const template_bytes *from = context;
    w->source = read_source(w, from);
    parser p = {.w = w, .source = w->source};
    next_token(&p);
    *from->body = parse_body(&p);
    if (p.now.type != TOKEN_END)
        fail_at(&p, "the end");
}

ww_status template_parse(const char *bytes, size_t count, template_program **out)
{
    if (count > TEMPLATE_BYTES_MAX || memchr(bytes, 0, count) || !utf8_check(bytes, count))
        return ww_fail(WW_INVALID_ARGUMENT, "the chat template %s",
                       count > TEMPLATE_BYTES_MAX ? "is longer than 1 MiB" : "is not a UTF-8 text");
    template_program *program = memory_alloc_zeroed(1, sizeof *program);
    if (!program)
        return memory_failed("chat template", sizeof *program);
    const ww_status status = work_do(&program->w, parse_template, &(template_bytes){bytes, count, &program->body});
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
