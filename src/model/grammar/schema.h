/* A JSON schema as a grammar. */
#ifndef WW_MODEL_GRAMMAR_SCHEMA_H
#define WW_MODEL_GRAMMAR_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>

#include "base/status.h"
#include "base/strings/text_buffer.h"

/* Writes the GBNF of a schema to `out`, which must be zeroed. Every text of the grammar is JSON that the schema accepts, but
 * not every such JSON is a text of the grammar (docs/guide/models.md). Refuses an unknown keyword by name. */
ww_status schema_to_gbnf(const char *text, size_t bytes, text_buffer *out);

enum { SCHEMAS_MAX = 1024, JSON_KIND_COUNT = 7 };

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

/* State of converting a schema. The first failure stays in `status`; nothing is written after it. */
typedef struct schema_writer {
    text_buffer *out;
    ww_status status;
    const json_t *root, *schemas[SCHEMAS_MAX];
    int count, at; /* `at`: the schema being written */
} schema_writer;

/* Appends GBNF to the grammar, or refuses the schema: WW_UNSUPPORTED with "JSON schema: " before the message. */
#define gbnf_write(w, ...)    schema_put(w, false, __VA_ARGS__)
#define schema_refuse(w, ...) schema_put(w, true, __VA_ARGS__)
void schema_put(schema_writer *w, bool refuse, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- parts of a rule (pattern.c, number_range.c) ------------------------------------------------------------------------- */

/* Writes the characters of a JSON string that the regular expression `pattern` matches. */
void pattern_write(schema_writer *w, const char *pattern);

/* Writes the characters of a date, time, date-time or uuid. Returns false for another format, and writes nothing. */
bool format_write(schema_writer *w, const json_t *format);

/* Does the schema have a lower or upper bound? The second writes the rest of a rule for the numbers, or only the integers,
 * between the bounds. */
bool schema_has_range(const json_t *schema);
void range_write(schema_writer *w, const json_t *schema, bool integer);

/* ---- what can be read from a schema (schema_facts.c) --------------------------------------------------------------------- */

/* The schema that a reference such as "#/$defs/node" names; NULL, and a refusal, if there is none. */
const json_t *schema_follow(schema_writer *w, const json_t *ref);

/* The kinds that "type" names, 0 if it is missing; and the kinds of a value. */
int schema_kinds(schema_writer *w, const json_t *schema);
int json_kind_of(const json_t *value);

/* Value number i of an enum or a const; NULL after the last. */
const json_t *schema_value(const json_t *schema, size_t i);

/* Is it certain that no value fits both? Call it with `depth` 0. */
bool schemas_disjoint(schema_writer *w, const json_t *a, const json_t *b, int depth);

#endif
