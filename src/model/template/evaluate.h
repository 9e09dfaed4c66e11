/* A run of a template, as filters and methods see it. */
#ifndef WW_MODEL_TEMPLATE_EVALUATE_H
#define WW_MODEL_TEMPLATE_EVALUATE_H

#include "model/template/parse.h"

typedef struct scope {
    struct scope *parent;
    value names; /* a namespace */
} scope;

typedef struct run {
    work w;
    scope *scope;
    builder *out;
    int leaves; /* what a loop was left by: 0, 1 break, 2 continue */
    int64_t now;
} run;

typedef struct macro {
    const node *declared;
    scope *scope;
} macro;

/* What a filter, method or function is called with. */
typedef struct arguments {
    value *items;
    size_t count;
    value_dict *named;
    int how; /* which of the things that one function does: a letter_case, sides, ... */
} arguments;

typedef enum letter_case { LOWER, UPPER, CAPITALIZED, TITLE, WORDS } letter_case; /* words: behind white space and brackets */
enum { LEFT = 1, RIGHT = 2 };

/* The argument at a place, or with a name; otherwise `missing`. */
value argument(run *r, const arguments *given, size_t at, const char *name, value missing);
bool argument_is_text(run *r, value v, const char *what); /* fails if not */

/* `of.name` (dot) or `of[name]`. Methods come first with a dot. */
value value_member(run *r, value of, marked name, bool dot);

/* `of[at]`: an element, a character or a member. */
value value_element(run *r, value of, value at);
/* Characters from..to) of a text. */
marked characters_between(run *r, marked text, size_t from, size_t to);
bool value_contains(run *r, value in, value what);

/* Both operands of an operator (parse.h) are there. */
value operator_apply(run *r, int op, value a, value b);
value compute_integers(run *r, int op, int64_t a, int64_t b);
value fail_operands(run *r, value a, value b);
void fail_undefined(run *r, value v);

typedef value builtin_function(run *r, value of, const arguments *given);
typedef struct builtin {
    const char *name;
    builtin_function *function;
    int how;
} builtin;
const builtin *method_find(value of, marked name);
value builtin_call(run *r, const builtin *called, value of, const arguments *given);
value filter_apply(run *r, marked name, value of, const arguments *given);
bool test_apply(run *r, marked name, value of, const arguments *given);
value function_call(run *r, marked name, const arguments *given);

/* Shared by filters and methods. */
builtin_function text_strip, text_case, text_replace, dict_items, value_list_of;
/* Parts of a text between separators; at most `most` cuts. */
value text_split(run *r, marked text, const marked *separator, int64_t most);

#endif
