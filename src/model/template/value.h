/* Values of templates, and the memory and limits of a run. Lists and dictionaries never change once they are made, so they are
 * shared and have no cycles; namespaces change, and nothing looks into them but by name. */
#ifndef WW_MODEL_TEMPLATE_VALUE_H
#define WW_MODEL_TEMPLATE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "model/template/template.h"

/* Work on a template, of its parser or of a run. The first failure stays in `status`; from then on everything ends quickly. */
typedef struct work {
    ww_status status;
    const char *source; /* of the template, for lines and columns */
    size_t at;          /* where in it the work is */
    struct block *blocks;
    size_t bytes_held;
    int64_t steps;
    int depth;
} work;

/* Memory of zeros until work_free(). NULL, with the status set, if there is none or the limit is reached. */
void *work_alloc(work *w, size_t bytes);
void work_free(work *w);

/* Fails with "chat template, line L, column C: " before the text. Later failures change nothing. */
__attribute__((format(printf, 3, 4))) void work_fail(work *w, ww_status status, const char *format, ...);
/* Counts steps; false if the work has failed, or fails here for too many. */
bool work_step(work *w, size_t steps);

/* A text: one byte of marks for each byte, 1 where it is the conversation's. marks == NULL: nowhere. */
typedef struct marked {
    const char *text;
    const char *marks;
    size_t bytes;
} marked;

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
    VALUE_MACRO,
    VALUE_FUNCTION, /* text: its name */
    VALUE_METHOD    /* of pair[0], called as pair[1] */
} value_type;

typedef struct value value;
typedef struct value_list {
    value *items;
    size_t count;
    int depth;
    bool tuple;
} value_list;
/* Of dictionaries, namespaces and scopes. Keys are texts, and in dictionaries also integers. */
typedef struct value_dict {
    value *keys, *items;
    size_t count, capacity;
    int depth;
} value_dict;

struct value {
    value_type type;
    union {
        bool truth;
        int64_t integer;
        double real;
        marked text;
        value_list *list;
        value_dict *dict;
        value *pair;
        struct macro *macro;
    };
};

#define NONE         ((value){.type = VALUE_NONE})
#define BOOLEAN(x)   ((value){.type = VALUE_BOOL, .truth = (x)})
#define INTEGER(x)   ((value){.type = VALUE_INTEGER, .integer = (int64_t)(x)})
#define REAL(x)      ((value){.type = VALUE_REAL, .real = (x)})
#define TEXT_OF(x)   ((value){.type = VALUE_TEXT, .text = (x)})
#define LITERAL(x)   TEXT_OF(literal(x))
#define UNDEFINED(x) ((value){.type = VALUE_UNDEFINED, .text = literal(x)})

/* ---- texts ----------------------------------------------------------------------------------------------------------------
 */
marked literal(const char *text); /* of the template, with a NUL */
marked marked_part(marked text, size_t from, size_t to);
bool marked_equal(marked a, marked b);
bool marked_is(marked text, const char *literal);
bool marked_starts(marked text, marked with);
bool marked_ends(marked text, marked with);
/* Where `what` is in `text` from byte `from` on; text.bytes + 1: nowhere. */
size_t marked_find(work *w, marked text, marked what, size_t from);
/* Bytes of the character at a place, and of the one before it; is a character white space to Python? */
size_t char_bytes(marked text, size_t at);
size_t char_bytes_before(marked text, size_t at);
bool char_is_space(marked text, size_t at);
size_t char_count(marked text);
/* Without the characters of `set`, or white space if that is NULL, at its ends. */
marked marked_strip(marked text, const marked *set, bool left, bool right);

/* A text that grows. */
typedef struct builder {
    char *text, *marks;
    size_t bytes, capacity;
    bool has_marks;
} builder;
void build(work *w, builder *b, marked text);
void build_text(work *w, builder *b, const char *text);
marked built(const builder *b);
value built_value(const builder *b);

/* ---- values ---------------------------------------------------------------------------------------------------------------
 */
value list_make(work *w, size_t capacity); /* VALUE_LIST with count 0 */
void list_add(work *w, value *list, value item);
value dict_make(work *w, value_type type);
value *dict_find(work *w, const value_dict *dict, marked key);
value *dict_find_key(work *w, const value_dict *dict, value key);
void dict_put(work *w, value *dict, marked key, value item);
void dict_put_key(work *w, value *dict, value key, value item);
bool value_truth(value v);
bool value_is_number(value v); /* true and false are numbers, too */
double value_real(value v);
int64_t value_integer(value v);
bool value_equal(work *w, value a, value b);
int value_compare(work *w, value a, value b); /* below, equal or above 0; fails where Python does */
/* Elements of a list, keys of a dictionary, characters of a text. Fails for what has none. */
value value_elements(work *w, value v);
const char *value_kind_name(value v);                        /* as Python calls it */
void value_write(work *w, builder *b, value v, bool quoted); /* as Python's str(), or repr() */
marked value_text(work *w, value v);
/* How Python's json.dumps() writes. */
typedef struct json_style {
    int64_t indent; /* below 0: on one line */
    marked comma, colon;
    bool ascii; /* other characters as \u escapes */
} json_style;
void value_write_json(work *w, builder *b, value v, const json_style *style, int64_t level);
/* A value of JSON text that json_check() accepted. */
value value_from_json(work *w, const char *json);

#endif
