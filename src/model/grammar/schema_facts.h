/* A schema on its way to a grammar, and what can be read from it. */
#ifndef WW_MODEL_GRAMMAR_SCHEMA_FACTS_H
#define WW_MODEL_GRAMMAR_SCHEMA_FACTS_H

#include <stdbool.h>

#include "base/status.h"
#include "model/grammar/schema.h"

enum { SCHEMAS_MAX = 1024, NAME_BYTES_MAX = 64, JSON_KIND_COUNT = 7 };

typedef enum json_kind {
    NULLS = 1,
    BOOLEANS = 2,
    INTEGERS = 4,
    NUMBERS = 8,
    STRINGS = 16,
    ARRAYS = 32,
    OBJECTS = 64
} json_kind;
extern const char *const JSON_KINDS[JSON_KIND_COUNT]; /* their names, by bit */

typedef struct schema_writer {
    gbnf_writer gbnf;
    const json_t *root, *schemas[SCHEMAS_MAX];
    int count, at; /* `at`: the one that is being written */
} schema_writer;

#define REFUSE(w, ...)                                                                                                         \
    do {                                                                                                                       \
        if ((w)->gbnf.status == WW_OK)                                                                                         \
            (w)->gbnf.status = ww_fail(WW_UNSUPPORTED, "JSON schema: " __VA_ARGS__);                                           \
    } while (0)

/* The schema that a reference such as "#/$defs/node" names; NULL, and a refusal, where there is none. */
const json_t *schema_follow(schema_writer *w, const json_t *ref);

/* The kinds that "type" names; 0 where it is missing. And those of a value. */
int schema_kinds(schema_writer *w, const json_t *schema);
int json_kind_of(const json_t *value);

/* Value number i of an enum or a const; NULL behind the last. */
const json_t *schema_value(const json_t *schema, size_t i);

/* Does it say from where, or to where, numbers are? And the rest of a rule for the integers between these bounds. */
bool integer_has_range(const json_t *schema);
void integer_write(schema_writer *w, const json_t *schema);

/* Is it certain that no value fits both? `depth` is 0. */
bool schemas_disjoint(schema_writer *w, const json_t *a, const json_t *b, int depth);

#endif
