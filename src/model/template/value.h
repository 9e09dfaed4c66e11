/* Values of templates, and the memory and limits of parsing and running one.
 *
 * A text is an array of characters, and a character is a Unicode code point with one more bit: QUOTED says that it comes from
 * the conversation. Operations that copy characters copy that bit too, so nothing else has to keep track of it.
 *
 * Lists and dictionaries do not change once an expression has made them, so they are shared and have no cycles. Namespaces
 * change, but are only accessed by name.
 */
#ifndef WW_MODEL_TEMPLATE_VALUE_H
#define WW_MODEL_TEMPLATE_VALUE_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "model/template/template.h"

#define QUOTED  (UINT32_C(1) << 31)
#define CODE(c) ((c) & ~QUOTED)

typedef struct text {
    const uint32_t *chars;
    size_t count;
} text;

/* A text that grows. */
typedef struct builder {
    uint32_t *chars;
    size_t count, capacity;
} builder;

/* ---- work ---------------------------------------------------------------------------------------------------------------- */

/* State of the parser or of a run of a template. */
typedef struct work {
    ww_status status;
    jmp_buf failed; /* where a failure jumps to */
    text source;    /* of the template, for lines and columns */
    size_t at;      /* the current position in it */
    struct block *blocks;
    size_t bytes_held;
    int64_t steps;
    int depth;
    /* Only during a run: */
    struct scope *scope;
    builder *out;
    enum { LOOP_GOES_ON, LOOP_BREAKS, LOOP_CONTINUES } loop;
    int64_t now;
} work;

/* Calls `step`, and returns WW_OK or its failure. A failure leaves `step` by longjmp() from any depth: memory of work_alloc()
 * is freed with the work, and `step` must not hold anything else. */
ww_status work_do(work *w, void (*step)(work *w, void *context), void *context);
/* Fails with "chat template, line L, column C: " before the message. */
__attribute__((format(printf, 3, 4))) _Noreturn void work_fail(work *w, ww_status status, const char *format, ...);
/* Zeroed memory until work_free(); fails if there is none or the limit is reached. */
void *work_alloc(work *w, size_t count, size_t bytes);
void work_free(work *w);
/* Counts steps; fails if there are too many. */
void work_step(work *w, size_t steps);
/* Goes one level deeper; fails if there are too many. The caller decrements w->depth. */
void work_enter(work *w);

/* ---- texts --------------------------------------------------------------------------------------------------------------- */

enum { NOT_FOUND = -1 };

text text_from_utf8(work *w, const char *bytes, size_t count, uint32_t quoted); /* QUOTED or 0 */
text literal(work *w, const char *bytes);                                       /* the template's, with a NUL */
char *text_to_utf8(work *w, text t, size_t *bytes);                             /* with a NUL; `bytes` may be NULL */
text text_part(text t, size_t from, size_t to);
bool text_equal(text a, text b);
bool text_is(text t, const char *ascii);
bool text_starts(text t, text with);
bool text_ends(text t, text with);
/* The position of `what` in `t`, starting at character `from`, or NOT_FOUND. */
int64_t text_find(work *w, text t, text what, size_t from);
bool is_space(uint32_t character); /* by Python's definition */
/* Removes the characters of `set`, or white space if that is NULL, from the ends. */
text text_strip(work *w, text t, const text *set, bool left, bool right);

void build(work *w, builder *b, text t);
void build_character(work *w, builder *b, uint32_t character);
void build_words(work *w, builder *b, const char *ascii);
text built(const builder *b);

/* ---- values -------------------------------------------------------------------------------------------------------------- */

typedef enum value_type {
    VALUE_UNDEFINED, /* text: its name */
    VALUE_NONE,
    VALUE_BOOL,
    VALUE_INTEGER,
    VALUE_REAL,
    VALUE_TEXT,
    VALUE_LIST,
    VALUE_DICT,
    VALUE_NAMESPACE,
    VALUE_LOOP,
    VALUE_MACRO,
    VALUE_FUNCTION
} value_type;

typedef struct value {
    value_type type;
    union {
        bool truth;
        int64_t integer;
        double real;
        text text;
        struct collection *all; /* of lists, dictionaries and namespaces */
        const struct loop *loop;
        const struct macro *macro;
        const struct function *function;
    };
} value;

typedef struct collection {
    value *keys; /* texts or integers; NULL in lists */
    value *items;
    size_t count, capacity;
    int depth;
    bool tuple;
} collection;

/* The variable `loop`: element i of a list. */
typedef struct loop {
    const collection *list;
    size_t i;
} loop;

#define UNDEFINED  ((value){.type = VALUE_UNDEFINED})
#define NONE       ((value){.type = VALUE_NONE})
#define BOOLEAN(x) ((value){.type = VALUE_BOOL, .truth = (x)})
#define INTEGER(x) ((value){.type = VALUE_INTEGER, .integer = (int64_t)(x)})
#define REAL(x)    ((value){.type = VALUE_REAL, .real = (x)})
#define TEXT(x)    ((value){.type = VALUE_TEXT, .text = (x)})

value make_collection(work *w, value_type type);
void list_add(work *w, value list, value item);
value *dict_find(work *w, value dict, value key); /* NULL: not found */
void dict_put(work *w, value dict, value key, value item);

bool value_truth(value v);
bool value_is_integer(value v); /* includes true and false, as in Python */
bool value_is_number(value v);
double value_real(value v);
int64_t value_integer(value v);
bool value_equal(work *w, value a, value b);
int value_compare(work *w, value a, value b); /* below, equal to or above 0; fails where Python does */
/* Returns a list: elements of a list, keys of a dictionary, characters of a text, empty for an undefined value. Fails for
 * others. */
value value_elements(work *w, value v);
const char *value_python_name(value v); /* as Python calls it */
/* Converts a JSON text that json_check() accepted. All of its texts belong to the conversation. */
value value_from_json(work *w, const char *json);

/* How a value is written. */
typedef struct style {
    bool json;      /* as json.dumps() does; otherwise as Python's repr() */
    bool ascii;     /* other characters as \u escapes */
    int64_t indent; /* per level, one element per line; below 0: everything on one line */
    text comma, colon;
} style;
void value_write(work *w, builder *b, value v, const style *how, int64_t level); /* `level`: 0 at the top */
text value_text(work *w, value v);                                               /* as Python's str() */

#endif
