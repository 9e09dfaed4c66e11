/* A template's tokens and the tree that they become. */
#ifndef WW_MODEL_TEMPLATE_PARSE_H
#define WW_MODEL_TEMPLATE_PARSE_H

#include "model/template/value.h"

typedef enum token_type {
    TOKEN_END,
    TOKEN_DATA, /* text between tags, white space removed as the tags want it */
    TOKEN_OPEN, /* {{ or {% */
    TOKEN_CLOSE,
    TOKEN_NAME,
    TOKEN_CONSTANT,
    TOKEN_OPERATOR
} token_type;

typedef struct token {
    token_type type;
    size_t at;
    bool output;    /* OPEN and CLOSE: {{ and }} */
    marked text;    /* of data, names and operators */
    value constant; /* a text or number */
} token;

/* The source has a NUL behind it. */
typedef struct lexer {
    work *w;
    marked source;
    size_t at;
    bool inside, output; /* a tag; one of output */
    int brackets;        /* open in it */
    token now;
} lexer;

void lexer_next(lexer *l);

/* What children are for; statements and elements of lists are chained by `next`. */
typedef enum node_type {
    NODE_TEXT,     /* name */
    NODE_OUTPUT,   /* a */
    NODE_SET,      /* targets a, to b; without b to what the body c writes */
    NODE_FOR,      /* targets a, in b, if c; body d; e where there is no element */
    NODE_IF,       /* a, then b, else c; as an expression, too */
    NODE_MACRO,    /* name, parameters a with defaults a; body b */
    NODE_SCOPE,    /* settings a for the body b */
    NODE_BREAK,    /* op: true for continue */
    NODE_CONSTANT, /* constant */
    NODE_NAME,     /* name */
    NODE_LIST,     /* a; op: true for a tuple */
    NODE_DICT,     /* a: keys and values in turn */
    NODE_LOGIC,    /* a op b: '&', '|'; '!' of a */
    NODE_CHOICE,   /* b if a else c */
    NODE_BINARY,   /* a op b, comparisons, too */
    NODE_NEGATE,   /* a; op: '-' or '+' */
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
    marked name;
    value constant;
    struct node *a, *b, *c, *d, *e, *next;
} node;

struct template_program {
    work w; /* its memory */
    char *source;
    node *body;
};

#endif
