/* A template's tokens and the tree that they become. */
#ifndef WW_MODEL_TEMPLATE_PARSE_H
#define WW_MODEL_TEMPLATE_PARSE_H

#include "model/template/value.h"

typedef enum token_type {
    TOKEN_END,
    TOKEN_DATA, /* text between tags, without the white space that the tags remove */
    TOKEN_OPEN, /* {{ or {% */
    TOKEN_CLOSE,
    TOKEN_NAME,
    TOKEN_OPERATOR,
    TOKEN_CONSTANT
} token_type;

typedef struct token {
    token_type type;
    size_t at;
    text text;      /* of data, names and operators */
    value constant; /* a text or a number */
} token;

typedef struct parser {
    work *w;
    text source;         /* with zeros after it */
    size_t at;           /* position after the token */
    bool inside, output; /* inside a tag; it is {{ }} */
    int brackets;        /* open in the tag */
    int nesting;         /* open brackets and blocks */
    token now;
} parser;

void next_token(parser *p);

/* Is the token this name or operator? */
bool token_is(const parser *p, const char *word);
/* If it is, advances to the next. */
bool token_accept(parser *p, const char *word);
/* Advances to the next, or fails. */
void token_expect(parser *p, const char *word);
text expect_name(parser *p);
_Noreturn void fail_at(parser *p, const char *wanted);
/* Begins a bracket or a block; fails if there are too many. The caller decrements p->nesting. */
void nest(parser *p);

/* The comments say what the children are. Statements, elements and arguments are linked by `next`. */
typedef enum node_type {
    NODE_TEXT,   /* constant */
    NODE_OUTPUT, /* a */
    NODE_SET,    /* targets a, value b; without b the value is what the body c writes */
    NODE_FOR,    /* targets a, in b, if c; body d; e if there is no element */
    NODE_IF,     /* a, then b, else c */
    NODE_MACRO,  /* name, parameters a with defaults a; body b */
    NODE_WITH,   /* names a, with values a, for the body b */
    NODE_BREAK,
    NODE_CONTINUE,
    NODE_CONSTANT, /* constant */
    NODE_NAME,     /* name */
    NODE_LIST,     /* a; op: true for a tuple */
    NODE_DICT,     /* a: keys and values alternate */
    NODE_CHOICE,   /* b if a else c */
    NODE_NOT,      /* a */
    NODE_LOGIC,    /* a op b: '&', '|' */
    NODE_BINARY,   /* a op b, including comparisons */
    NODE_SIGN,     /* a; op: '-' or '+' */
    NODE_MEMBER,   /* a.name */
    NODE_INDEX,    /* a[b] */
    NODE_SLICE,    /* a[b:c:d] */
    NODE_CALL,     /* a(b) */
    NODE_KEYWORD,  /* name=a, in arguments */
    NODE_FILTER,   /* a|name(b) */
    NODE_TEST      /* a is name(b); op: true for is not */
} node_type;

typedef struct node {
    node_type type;
    size_t at;
    int op; /* of two characters: '=' ==, '!' !=, 'l' <=, 'g' >=, 'f' //, 'p' **, 'i' in, 'n' not in */
    text name;
    value constant;
    struct node *a, *b, *c, *d, *e, *next;
} node;

struct template_program {
    work w; /* its memory */
    node *body;
};

node *make_node(parser *p, node_type type, node *a, node *b);
node *parse_expression(parser *p);
/* Parses operators of this level and those that bind tighter; 0: all, that is an expression without if. */
node *parse_operators(parser *p, int level);
/* Parses expressions with commas between them as a tuple. `close`: the bracket that ends it, or NULL. */
node *parse_tuple(parser *p, const char *close);

#endif
