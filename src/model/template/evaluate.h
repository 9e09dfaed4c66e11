/* A run of a template, as its parts see it. */
#ifndef WW_MODEL_TEMPLATE_EVALUATE_H
#define WW_MODEL_TEMPLATE_EVALUATE_H

#include "model/template/parse.h"

typedef struct scope {
    struct scope *parent;
    value names; /* a namespace */
} scope;

typedef struct macro {
    const node *declared;
    scope *scope;
} macro;

/* a op b, by the op of a node (parse.h). */
value operator_apply(work *w, int op, value a, value b);
/* `of.name` (dot) or `of[name]`. With a dot, methods come first. */
value value_member(work *w, value of, text name, bool dot);
/* `of[at]`: an element, a character or a member. */
value value_element(work *w, value of, value at);
/* `of[from:to:step]`; NONE for a missing bound. */
value value_slice(work *w, value of, const value bounds[3]);
_Noreturn void fail_undefined(work *w, value v);
_Noreturn void fail_operands(work *w, value a, value b);

enum { PARAMETERS_MAX = 4 };

/* Arguments as written: a list and a namespace. */
typedef struct arguments {
    value items, named;
} arguments;

/* What a builtin is called with. */
typedef struct call {
    value of;                /* what stands before | or the dot */
    value a[PARAMETERS_MAX]; /* in the order of the builtin's parameters; undefined if missing */
    const arguments *given;  /* all of them */
    int how;                 /* selects a variant of the C function */
} call;

typedef value builtin_function(work *w, const call *c);

/* Kinds of builtins: filters, tests and functions; the kind of a method is the type of its values. */
enum { FILTER = 100, TEST, FUNCTION };
typedef struct builtin {
    int kind;
    const char *name;
    const char *parameters; /* names with spaces between them; "...": any arguments */
    builtin_function *run;
    int how;
} builtin;

/* A builtin, bound to the value of which it is a method. */
typedef struct function {
    const builtin *builtin;
    value of;
} function;

const builtin *builtin_find(int kind, text name); /* NULL: there is none */
/* Fails if the builtin has no such parameters. */
value builtin_call(work *w, const builtin *b, value of, const arguments *given);
/* The same for a filter or a test by name. Fails if there is none. */
value builtin_apply(work *w, int kind, text name, value of, const arguments *given);

/* An argument that must be a text; one that may be none, which gives NULL; and one that has a default. */
text text_argument(work *w, value v);
const text *optional_text(work *w, const value *v);
value value_or(value v, value otherwise);

/* `how` of functions on texts. */
enum { LEFT = 1, RIGHT = 2 };
typedef enum letter_case { LOWER, UPPER, CAPITALIZED, TITLE, WORDS } letter_case; /* WORDS: after white space and brackets */
/* `how` of those on lists. */
enum { KEEP = 1, OF_ATTRIBUTE = 2 };
enum { FIRST, LAST };

builtin_function text_strip_call, text_case, text_split_call, text_splitlines, text_has_end, text_remove_end, text_replace,
    text_find_call, text_count, text_isdigit, text_format, text_percent, text_indent, text_join;
builtin_function list_join, list_map, list_select, list_reverse, list_sort, list_unique, list_end, list_extreme, list_count,
    dict_items, dict_values, dict_sort, dict_get;
/* Splits a text at separators, or at white space if `separator` is NULL, at most `cuts_max` times unless that is negative. */
value text_split(work *w, text t, const text *separator, int64_t cuts_max);

#endif
