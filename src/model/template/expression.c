/* Parses expressions by recursive descent with jinja2's precedence of operators. */
#include "model/template/parse.h"

node *make_node(parser *p, node_type type, node *a, node *b)
{
    node *n = work_alloc(p->w, 1, sizeof *n);
    *n = (node){.type = type, .at = p->now.at, .a = a, .b = b};
    return n;
}

bool token_is(const parser *p, const char *word)
{
    return (p->now.type == TOKEN_NAME || p->now.type == TOKEN_OPERATOR) && text_is(p->now.text, word);
}

bool token_accept(parser *p, const char *word)
{
    const bool yes = token_is(p, word);
    if (yes)
        next_token(p);
    return yes;
}

void fail_at(parser *p, const char *wanted)
{
    static const char *const names[] = {"the end", "text", "a tag", "the end of the tag", NULL, NULL, "a constant"};
    const char *name = names[p->now.type];
    p->w->at = p->now.at;
    if (name)
        work_fail(p->w, WW_INVALID_ARGUMENT, "%s was expected, not %s", wanted, name);
    work_fail(p->w, WW_INVALID_ARGUMENT, "%s was expected, not '%s'", wanted, text_to_utf8(p->w, p->now.text, NULL));
}

void token_expect(parser *p, const char *word)
{
    if (!token_accept(p, word))
        fail_at(p, word);
}

text expect_name(parser *p)
{
    const text name = p->now.text;
    if (p->now.type != TOKEN_NAME)
        fail_at(p, "a name");
    next_token(p);
    return name;
}

void nest(parser *p)
{
    if (++p->nesting > TEMPLATE_NESTING_MAX)
        work_fail(p->w, WW_OUT_OF_RANGE, "brackets or blocks are nested more than %d deep", TEMPLATE_NESTING_MAX);
}

/* Parses elements with commas between them up to a closing bracket, which is consumed. In a dictionary keys and values
 * alternate. */
static node *parse_elements(parser *p, const char *close)
{
    node *first = NULL, **last = &first;
    while (!token_is(p, close)) {
        *last = parse_expression(p);
        last = &(*last)->next;
        if (close[0] == '}') {
            token_expect(p, ":");
            *last = parse_expression(p);
            last = &(*last)->next;
        }
        if (!token_accept(p, ","))
            break;
    }
    token_expect(p, close);
    return first;
}

/* Parses arguments up to a closing bracket, which is consumed. */
static node *parse_arguments(parser *p)
{
    node *first = NULL, **last = &first;
    while (!token_is(p, ")")) {
        *last = parse_expression(p);
        if ((*last)->type == NODE_NAME && token_accept(p, "=")) {
            (*last)->type = NODE_KEYWORD;
            (*last)->a = parse_expression(p);
        }
        last = &(*last)->next;
        if (!token_accept(p, ","))
            break;
    }
    token_expect(p, ")");
    return first;
}

node *parse_tuple(parser *p, const char *close)
{
    node *first = close && token_is(p, close) ? NULL : parse_expression(p);
    if (first && !token_is(p, ","))
        return first;
    node *n = make_node(p, NODE_LIST, first, NULL);
    n->op = true;
    for (node *last = first; last && token_accept(p, ",") && p->now.type != TOKEN_CLOSE && !(close && token_is(p, close));
         last = last->next)
        last->next = parse_expression(p);
    return n;
}

static node *parse_word(parser *p)
{
    node *n = make_node(p, NODE_NAME, NULL, NULL);
    n->name = p->now.text;
    const bool yes = token_accept(p, "true") || token_accept(p, "True");
    if (yes || token_accept(p, "false") || token_accept(p, "False")) {
        n->type = NODE_CONSTANT;
        n->constant = BOOLEAN(yes);
    } else if (token_accept(p, "none") || token_accept(p, "None")) {
        n->type = NODE_CONSTANT;
        n->constant = NONE;
    } else {
        next_token(p);
    }
    return n;
}

/* Parses a number, or adjacent texts, which are joined. */
static node *parse_constant(parser *p)
{
    node *n = make_node(p, NODE_CONSTANT, NULL, NULL);
    builder texts = {0};
    n->constant = p->now.constant;
    for (; p->now.type == TOKEN_CONSTANT && p->now.constant.type == VALUE_TEXT; next_token(p)) {
        build(p->w, &texts, p->now.constant.text);
        n->constant = TEXT(built(&texts));
    }
    if (n->constant.type != VALUE_TEXT)
        next_token(p);
    return n;
}

static node *parse_primary(parser *p)
{
    node *n;
    if (p->now.type == TOKEN_NAME)
        return parse_word(p);
    if (p->now.type == TOKEN_CONSTANT)
        return parse_constant(p);
    if (token_accept(p, "(")) {
        n = parse_tuple(p, ")");
        token_expect(p, ")");
        return n;
    }
    if (!token_is(p, "[") && !token_is(p, "{"))
        fail_at(p, "a value");
    n = make_node(p, token_is(p, "[") ? NODE_LIST : NODE_DICT, NULL, NULL);
    next_token(p);
    n->a = parse_elements(p, n->type == NODE_LIST ? "]" : "}");
    return n;
}

static node *parse_subscript(parser *p, node *of)
{
    node *n = make_node(p, NODE_INDEX, of, token_is(p, ":") ? NULL : parse_expression(p));
    if (token_accept(p, ":")) {
        n->type = NODE_SLICE;
        n->c = token_is(p, ":") || token_is(p, "]") ? NULL : parse_expression(p);
        if (token_accept(p, ":") && !token_is(p, "]"))
            n->d = parse_expression(p);
    }
    token_expect(p, "]");
    return n;
}

/* Parses what follows an operand: a[b], a(b), a.b and a.0. */
static node *parse_postfix(parser *p, node *n)
{
    for (;;) {
        if (token_accept(p, "[")) {
            n = parse_subscript(p, n);
        } else if (token_is(p, "(")) {
            n = make_node(p, NODE_CALL, n, NULL);
            next_token(p);
            n->b = parse_arguments(p);
        } else if (token_accept(p, ".")) {
            n = make_node(p, NODE_MEMBER, n, NULL);
            if (p->now.type == TOKEN_CONSTANT) {
                n->type = NODE_INDEX;
                n->b = parse_constant(p);
            } else {
                n->name = expect_name(p);
            }
        } else {
            return n;
        }
    }
}

/* Does an argument without brackets follow a test's name? */
static bool argument_follows(const parser *p)
{
    static const char *const others[] = {"else", "or", "and", "if", "is", "in", "not"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (token_is(p, others[i]))
            return false;
    return p->now.type == TOKEN_CONSTANT || p->now.type == TOKEN_NAME || token_is(p, "[") || token_is(p, "{");
}

static node *parse_filters(parser *p, node *n)
{
    while (token_is(p, "|") || token_is(p, "is")) {
        const bool filter = token_is(p, "|");
        n = make_node(p, filter ? NODE_FILTER : NODE_TEST, n, NULL);
        next_token(p);
        n->op = !filter && token_accept(p, "not");
        n->name = p->now.text;
        if (filter || !token_accept(p, "==")) /* == is also the name of a test */
            n->name = expect_name(p);
        if (token_accept(p, "("))
            n->b = parse_arguments(p);
        else if (!filter && argument_follows(p))
            n->b = parse_postfix(p, parse_primary(p));
    }
    return n;
}

static node *parse_unary(parser *p, bool filters)
{
    node *n;
    if (token_is(p, "-") || token_is(p, "+")) {
        n = make_node(p, NODE_SIGN, NULL, NULL);
        n->op = token_is(p, "-") ? '-' : '+';
        next_token(p);
        nest(p);
        n->a = parse_unary(p, false);
        p->nesting--;
    } else {
        n = parse_primary(p);
    }
    n = parse_postfix(p, n);
    return filters ? parse_filters(p, n) : n;
}

enum { LEVEL_OR, LEVEL_AND, LEVEL_NOT, LEVEL_COMPARE, LEVEL_ADD, LEVEL_JOIN, LEVEL_MULTIPLY, LEVEL_POWER, LEVEL_UNARY };

/* Binary operators, and their `op` in a node. */
static const struct {
    const char *word;
    int level, op;
} OPERATORS[] = {{"or", LEVEL_OR, '|'},       {"and", LEVEL_AND, '&'},    {"==", LEVEL_COMPARE, '='},
                 {"!=", LEVEL_COMPARE, '!'},  {"<", LEVEL_COMPARE, '<'},  {">", LEVEL_COMPARE, '>'},
                 {"<=", LEVEL_COMPARE, 'l'},  {">=", LEVEL_COMPARE, 'g'}, {"in", LEVEL_COMPARE, 'i'},
                 {"not", LEVEL_COMPARE, 'n'}, {"+", LEVEL_ADD, '+'},      {"-", LEVEL_ADD, '-'},
                 {"~", LEVEL_JOIN, '~'},      {"*", LEVEL_MULTIPLY, '*'}, {"/", LEVEL_MULTIPLY, '/'},
                 {"//", LEVEL_MULTIPLY, 'f'}, {"%", LEVEL_MULTIPLY, '%'}, {"**", LEVEL_POWER, 'p'}};

/* Reads an operator of this level; 0 if there is none. */
static int accept_operator(parser *p, int level)
{
    for (size_t i = 0; i < sizeof OPERATORS / sizeof *OPERATORS; i++)
        if (OPERATORS[i].level == level && token_accept(p, OPERATORS[i].word)) {
            if (OPERATORS[i].op == 'n')
                token_expect(p, "in");
            return OPERATORS[i].op;
        }
    return 0;
}

static node *parse_not(parser *p)
{
    node *n = make_node(p, NODE_NOT, NULL, NULL);
    token_expect(p, "not");
    nest(p);
    n->a = parse_operators(p, LEVEL_NOT);
    p->nesting--;
    return n;
}

node *parse_operators(parser *p, int level)
{
    if (level == LEVEL_NOT && token_is(p, "not"))
        return parse_not(p);
    if (level == LEVEL_UNARY)
        return parse_unary(p, true);
    node *left = parse_operators(p, level + 1), *before = NULL;
    size_t at = p->now.at;
    for (int op; (op = accept_operator(p, level)) != 0; at = p->now.at) {
        node *n = make_node(p, level <= LEVEL_AND ? NODE_LOGIC : NODE_BINARY, before ? before->b : left, NULL);
        n->op = op;
        n->at = at;
        n->b = parse_operators(p, level + 1);
        left = before ? make_node(p, NODE_LOGIC, left, n) : n; /* a < b < c is a < b and b < c */
        if (before)
            left->op = '&';
        before = level == LEVEL_COMPARE ? n : NULL;
    }
    return left;
}

node *parse_expression(parser *p)
{
    nest(p);
    node *n = parse_operators(p, LEVEL_OR);
    while (token_accept(p, "if")) {
        n = make_node(p, NODE_CHOICE, NULL, n);
        n->a = parse_operators(p, LEVEL_OR);
        if (token_accept(p, "else"))
            n->c = parse_expression(p);
    }
    p->nesting--;
    return n;
}
