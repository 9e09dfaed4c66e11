/* Chat templates: the programs in model files that write a conversation, in the language Jinja, run as by jinja2 with the
 * settings of published models (trim_blocks, lstrip_blocks, break and continue, tojson without escapes).
 *
 * A run is sandboxed: it sees only its variables and the clock, changes nothing, and is limited in steps, memory and depth.
 * Every operation keeps track of where each character comes from, the template or the conversation. So the caller knows which
 * parts of the result must not be read as special tokens.
 *
 * lexer.c, expression.c and parser.c make a tree of nodes (parse.h). evaluate.c walks it and calls operators.c, and builtins.c,
 * which has the table of filters, tests, methods and functions. value.h says what a value is.
 */
#ifndef WW_MODEL_TEMPLATE_TEMPLATE_H
#define WW_MODEL_TEMPLATE_TEMPLATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strings/text_buffer.h"

enum {
    TEMPLATE_BYTES_MAX = 1 << 20,
    TEMPLATE_STEPS_MAX = 20000000,   /* a node or 64 bytes are one step; about a second */
    TEMPLATE_MEMORY_MAX = 256 << 20, /* bytes of values during a run */
    TEMPLATE_DEPTH_MAX = 400,        /* nested nodes at run time; recursive macros need many */
    TEMPLATE_NESTING_MAX = 100       /* nested brackets and blocks in the text, and nested lists */
};

typedef struct template_program template_program;

/* The input of a run. The caller owns all of it. */
typedef struct template_input {
    const char *json; /* a JSON object with variables: "messages", "tools", ...; all of its texts belong to the conversation */
    const char *bos, *eos; /* the variables bos_token and eos_token */
    bool add_generation;   /* the variable add_generation_prompt */
    int64_t now;           /* the time for strftime_now(), in seconds since 1970; 0: the clock */
} template_input;

/* Positions of the conversation's own texts in a result, ascending. Starts zeroed; free with template_quotes_free(). */
typedef struct template_quotes {
    text_span *spans;
    size_t count, capacity;
} template_quotes;

void template_quotes_free(template_quotes *quotes);

/* Parses a template. Refuses text that is not UTF-8 or not a template; messages have line and column. Any number of threads may
 * run a program at once. */
ww_status template_parse(const char *bytes, size_t count, template_program **out);
void template_free(template_program *program); /* accepts NULL */

/* Appends what the template writes. `quotes` may be NULL. Refuses what the template refuses (raise_exception), operations that
 * its values do not support, and exceeding a limit. On failure the buffer is unchanged and there are no quotes. */
ww_status template_render(const template_program *program, const template_input *input, text_buffer *out,
                          template_quotes *quotes);

#endif
