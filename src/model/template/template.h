/* Chat templates: the programs that model files have for writing a conversation, in the language Jinja, run as jinja2 runs them
 * with the settings of published models (trim_blocks, lstrip_blocks, break and continue, tojson without escapes).
 *
 * A run is in a box: it sees only its variables and the clock, changes nothing, and ends at limits of steps, memory and depth.
 * Text remembers where it comes from: each byte of it is the template's or the conversation's, through every operation. So the
 * caller knows which parts of the result must not be read as special tokens.
 *
 * lexer.c, expression.c and parser.c make a tree of nodes (parse.h). evaluate.c walks it and calls operators.c, and builtins.c,
 * which has the table of filters, tests, methods and functions. value.h says what a value is.
 */
#ifndef WW_MODEL_TEMPLATE_TEMPLATE_H
#define WW_MODEL_TEMPLATE_TEMPLATE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/text_buffer.h"

enum {
    TEMPLATE_BYTES_MAX = 1 << 20,
    TEMPLATE_STEPS_MAX = 20000000,   /* nodes run, and 64 bytes handled; about a second */
    TEMPLATE_MEMORY_MAX = 256 << 20, /* bytes of values during a run */
    TEMPLATE_DEPTH_MAX = 400,        /* nodes within nodes at run time, of which macros that call themselves are many */
    TEMPLATE_NESTING_MAX = 100       /* brackets and blocks within each other in the text, and lists within lists */
};

typedef struct template_program template_program;

/* What a template is run over. All of it is the caller's. */
typedef struct template_input {
    const char *json;      /* a JSON object with variables: "messages", "tools", ...; all of its texts are the conversation's */
    const char *bos, *eos; /* the variables bos_token and eos_token */
    bool add_generation;   /* the variable add_generation_prompt */
    int64_t now;           /* what strftime_now() shows, in seconds since 1970; 0: the clock */
} template_input;

/* Where the conversation's own texts are in a result, ascending. Begins as zeros; free with template_quotes_free(). */
typedef struct template_quotes {
    text_span *spans;
    size_t count, capacity;
} template_quotes;

void template_quotes_free(template_quotes *quotes);

/* Reads a template. Refuses text that is no UTF-8 or no template; messages have line and column. A program may be run by any
 * number of threads at once. */
ww_status template_parse(const char *bytes, size_t count, template_program **out);
void template_free(template_program *program); /* accepts NULL */

/* Appends what the template writes. `quotes` may be NULL. Refuses what the template refuses (raise_exception), operations that
 * its values do not have, and what is past a limit. On failure the buffer is as before and there are no quotes. */
ww_status template_render(const template_program *program, const template_input *input, text_buffer *out,
                          template_quotes *quotes);

#endif
