/* What the parsers of expressions and of statements share. A failure makes every further token the end, so that all loops end,
 * and the tree is not used. */
#ifndef WW_MODEL_TEMPLATE_PARSER_H
#define WW_MODEL_TEMPLATE_PARSER_H

#include "model/template/parse.h"

typedef struct parser {
    lexer l;
    int nesting;
    node spare; /* where there is no memory for a node */
} parser;

node *make_node(parser *p, node_type type, node *a, node *b);
bool is_operator(const parser *p, const char *text);
bool is_name(const parser *p, const char *text);
/* Goes on if the token is this one. */
bool accept_token(parser *p, token_type type, const char *text);
/* Fails if it is not. */
void expect_token(parser *p, token_type type, const char *text);
marked expect_name(parser *p);
void fail_at(parser *p, const char *wanted);
/* Begins a bracket or a block; false if there are too many. The caller counts it down. */
bool nest(parser *p);

node *parse_expression(parser *p);
node *parse_logic(parser *p, bool or); /* one without if */
/* Expressions with commas between them are a tuple. `close`: the bracket that ends it, or NULL. */
node *parse_tuple(parser *p, const char *close);

#endif
