/* Expressions to trees, by recursive descent with jinja2's order of operators. */
#include <string.h>

#include "model/template/parser.h"

node *make_node(parser *p, node_type type, node *a, node *b)
{
    node *n = work_alloc(p->l.w, sizeof *n);
    n = n ? n : &p->spare;
    *n = (node){.type = type, .at = p->l.now.at, .a = a, .b = b};
    return n;
}

static bool is(const parser *p, token_type type, const char *text)
{
    return p->l.now.type == type && marked_is(p->l.now.text, text);
}

bool is_operator(const parser *p, const char *text)
{
    return is(p, TOKEN_OPERATOR, text);
}

bool is_name(const parser *p, const char *text)
{
    return is(p, TOKEN_NAME, text);
}

bool accept_token(parser *p, token_type type, const char *text)
{
    const bool yes = is(p, type, text);
    if (yes)
        lexer_next(&p->l);
    return yes;
}

void fail_at(parser *p, const char *wanted)
{
    static const char *const names[] = {"the end", "text", "a tag", "the end of the tag", NULL, "a constant", NULL};
    const token *t = &p->l.now;
    p->l.w->at = t->at;
    if (names[t->type])
        work_fail(p->l.w, WW_INVALID_ARGUMENT, "%s was expected, not %s", wanted, names[t->type]);
    else
        work_fail(p->l.w, WW_INVALID_ARGUMENT, "%s was expected, not '%.*s'", wanted, (int)t->text.bytes, t->text.text);
    lexer_next(&p->l);
}

void expect_token(parser *p, token_type type, const char *text)
{
    if (!accept_token(p, type, text))
        fail_at(p, text);
}

marked expect_name(parser *p)
{
    const marked name = p->l.now.text;
    if (p->l.now.type != TOKEN_NAME)
        fail_at(p, "a name");
    else
        lexer_next(&p->l);
    return name;
}

bool nest(parser *p)
{
    if (++p->nesting > TEMPLATE_NESTING_MAX)
        work_fail(p->l.w, WW_OUT_OF_RANGE, "more than %d brackets or blocks within each other", TEMPLATE_NESTING_MAX);
    if (p->l.w->status != WW_OK)
        p->l.now.type = TOKEN_END;
    return p->l.w->status == WW_OK;
}

/* Elements up to a closing bracket, which is consumed. `keywords`: name=value, too; `pairs`: key: value. */
static node *parse_elements(parser *p, const char *close, bool keywords, bool pairs)
{
    node *first = NULL, **last = &first;
    while (!is_operator(p, close) && p->l.w->status == WW_OK) {
        const char *behind = p->l.source.text + p->l.at;
        behind += strspn(behind, " \t\n");
        if (keywords && p->l.now.type == TOKEN_NAME && behind[0] == '=' && behind[1] != '=') {
            *last = make_node(p, NODE_KEYWORD, NULL, NULL);
            (*last)->name = expect_name(p);
            expect_token(p, TOKEN_OPERATOR, "=");
            (*last)->a = parse_expression(p);
        } else {
            *last = parse_expression(p);
        }
        if (pairs) {
            expect_token(p, TOKEN_OPERATOR, ":");
            (*last)->next = parse_expression(p);
            last = &(*last)->next;
        }
        last = &(*last)->next;
        if (!accept_token(p, TOKEN_OPERATOR, ","))
            break;
    }
    expect_token(p, TOKEN_OPERATOR, close);
    return first;
}

node *parse_tuple(parser *p, const char *close)
{
    node *first = close && is_operator(p, close) ? NULL : parse_expression(p);
    if (first && !is_operator(p, ","))
        return first;
    node *n = make_node(p, NODE_LIST, first, NULL);
    n->op = true;
    for (node *last = first;
         last && accept_token(p, TOKEN_OPERATOR, ",") && p->l.now.type != TOKEN_CLOSE && !(close && is_operator(p, close));
         last = last->next)
        last->next = parse_expression(p);
    return n;
}

static node *parse_name(parser *p)
{
    static const struct {
        const char *name;
        value constant;
    } constants[] = {{"true", {VALUE_BOOL, {true}}}, {"True", {VALUE_BOOL, {true}}},   {"false", {VALUE_BOOL, {false}}},
                     {"none", {VALUE_NONE, {0}}},    {"False", {VALUE_BOOL, {false}}}, {"None", {VALUE_NONE, {0}}}};
    node *n = make_node(p, NODE_NAME, NULL, NULL);
    n->name = expect_name(p);
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (marked_is(n->name, constants[i].name)) {
            n->type = NODE_CONSTANT;
            n->constant = constants[i].constant;
        }
    return n;
}

static node *parse_primary(parser *p)
{
    if (p->l.now.type == TOKEN_NAME)
        return parse_name(p);
    node *n = make_node(p, NODE_CONSTANT, NULL, NULL);
    if (p->l.now.type == TOKEN_CONSTANT) {
        builder texts = {0};
        n->constant = p->l.now.constant;
        lexer_next(&p->l);
        while (n->constant.type == VALUE_TEXT && p->l.now.type == TOKEN_CONSTANT && p->l.now.constant.type == VALUE_TEXT) {
            build(p->l.w, &texts, texts.bytes ? literal("") : n->constant.text);
            build(p->l.w, &texts, p->l.now.constant.text);
            n->constant = built_value(&texts);
            lexer_next(&p->l);
        }
    } else if (accept_token(p, TOKEN_OPERATOR, "(")) {
        n = parse_tuple(p, ")");
        expect_token(p, TOKEN_OPERATOR, ")");
    } else if (accept_token(p, TOKEN_OPERATOR, "[")) {
        n->type = NODE_LIST;
        n->a = parse_elements(p, "]", false, false);
    } else if (accept_token(p, TOKEN_OPERATOR, "{")) {
        n->type = NODE_DICT;
        n->a = parse_elements(p, "}", false, true);
    } else {
        fail_at(p, "a value");
    }
    return n;
}

static node *parse_subscript(parser *p, node *of)
{
    node *n = make_node(p, NODE_INDEX, of, is_operator(p, ":") ? NULL : parse_expression(p));
    if (accept_token(p, TOKEN_OPERATOR, ":")) {
        n->type = NODE_SLICE;
        n->c = is_operator(p, ":") || is_operator(p, "]") ? NULL : parse_expression(p);
        if (accept_token(p, TOKEN_OPERATOR, ":") && !is_operator(p, "]"))
            n->d = parse_expression(p);
    }
    expect_token(p, TOKEN_OPERATOR, "]");
    return n;
}

static node *parse_postfix(parser *p, node *n)
{
    while (p->l.w->status == WW_OK) {
        if (accept_token(p, TOKEN_OPERATOR, "[")) {
            n = parse_subscript(p, n);
        } else if (is_operator(p, "(")) {
            n = make_node(p, NODE_CALL, n, NULL);
            lexer_next(&p->l);
            n->b = parse_elements(p, ")", true, false);
        } else if (accept_token(p, TOKEN_OPERATOR, ".")) {
            n = make_node(p, p->l.now.type == TOKEN_CONSTANT ? NODE_INDEX : NODE_MEMBER, n, NULL);
            if (n->type == NODE_INDEX)
                n->b = parse_primary(p);
            else
                n->name = expect_name(p);
        } else {
            break;
        }
    }
    return n;
}

/* Does a value without brackets follow a test's name? */
static bool argument_follows(const parser *p)
{
    return p->l.now.type == TOKEN_CONSTANT || is_operator(p, "[") || is_operator(p, "{") ||
           (p->l.now.type == TOKEN_NAME && !is_name(p, "else") && !is_name(p, "or") && !is_name(p, "and") &&
            !is_name(p, "if") && !is_name(p, "is") && !is_name(p, "in") && !is_name(p, "not"));
}

static node *parse_filters(parser *p, node *n)
{
    while (p->l.w->status == WW_OK) {
        const bool filter = is_operator(p, "|");
        if (!filter && !is_name(p, "is"))
            break;
        n = make_node(p, filter ? NODE_FILTER : NODE_TEST, n, NULL);
        lexer_next(&p->l);
        n->op = !filter && accept_token(p, TOKEN_NAME, "not");
        n->name = p->l.now.text;
        if (!filter && is_operator(p, "==")) /* not a name, but a test */
            lexer_next(&p->l);
        else
            expect_name(p);
        if (accept_token(p, TOKEN_OPERATOR, "("))
            n->b = parse_elements(p, ")", true, false);
        else if (!filter && argument_follows(p))
            n->b = parse_postfix(p, parse_primary(p));
    }
    return n;
}

static node *parse_unary(parser *p, bool filters)
{
    node *n;
    if (is_operator(p, "-") || is_operator(p, "+")) {
        n = make_node(p, NODE_NEGATE, NULL, NULL);
        n->op = p->l.now.text.text[0];
        lexer_next(&p->l);
        n->a = nest(p) ? parse_unary(p, false) : n;
        p->nesting--;
    } else {
        n = parse_primary(p);
    }
    n = parse_postfix(p, n);
    return filters ? parse_filters(p, n) : n;
}

/* Operators of two operands, from those that bind least; which is what of a node. */
static const struct {
    const char *text;
    int level, op;
} OPERATORS[] = {{"==", 0, '='}, {"!=", 0, '!'}, {"<", 0, '<'}, {">", 0, '>'}, {"<=", 0, 'l'}, {">=", 0, 'g'}, {"+", 1, '+'},
                 {"-", 1, '-'},  {"~", 2, '~'},  {"*", 3, '*'}, {"/", 3, '/'}, {"//", 3, 'f'}, {"%", 3, '%'},  {"**", 4, 'p'}};

static int find_operator(parser *p, int level)
{
    for (size_t i = 0; i < sizeof OPERATORS / sizeof *OPERATORS; i++)
        if (OPERATORS[i].level == level && is_operator(p, OPERATORS[i].text))
            return OPERATORS[i].op;
    if (level == 0 && is_name(p, "in"))
        return 'i';
    if (level == 0 && is_name(p, "not")) {
        lexer_next(&p->l);
        if (!is_name(p, "in"))
            fail_at(p, "in");
        return 'n';
    }
    return 0;
}

static node *parse_binary(parser *p, int level)
{
    node *left = level == 5 ? parse_unary(p, true) : parse_binary(p, level + 1), *before = NULL;
    for (int op; level < 5 && p->l.w->status == WW_OK && (op = find_operator(p, level)) != 0;) {
        node *n = make_node(p, NODE_BINARY, before ? before->b : left, NULL);
        n->op = op;
        lexer_next(&p->l);
        n->b = parse_binary(p, level + 1);
        left = before ? make_node(p, NODE_LOGIC, left, n) : n; /* a < b < c is a < b and b < c */
        if (before)
            left->op = '&';
        before = level == 0 ? n : NULL;
    }
    return left;
}

static node *parse_not(parser *p)
{
    if (!is_name(p, "not"))
        return parse_binary(p, 0);
    node *n = make_node(p, NODE_LOGIC, NULL, NULL);
    n->op = '!';
    lexer_next(&p->l);
    n->a = nest(p) ? parse_not(p) : n;
    p->nesting--;
    return n;
}

node *parse_logic(parser *p, bool or)
{
    node *n = or ? parse_logic(p, false) : parse_not(p);
    while (accept_token(p, TOKEN_NAME, or ? "or" : "and")) {
        n = make_node(p, NODE_LOGIC, n, NULL);
        n->op = or ? '|' : '&';
        n->b = or ? parse_logic(p, false) : parse_not(p);
    }
    return n;
}

node *parse_expression(parser *p)
{
    node *n = nest(p) ? parse_logic(p, true) : &p->spare;
    while (accept_token(p, TOKEN_NAME, "if")) {
        n = make_node(p, NODE_CHOICE, NULL, n);
        n->a = parse_logic(p, true);
        if (accept_token(p, TOKEN_NAME, "else"))
            n->c = parse_expression(p);
    }
    p->nesting--;
    return n;
}
