/* A JSON schema as a grammar. */
#ifndef WW_MODEL_GRAMMAR_SCHEMA_H
#define WW_MODEL_GRAMMAR_SCHEMA_H

#include <jansson.h>

#include "model/text_buffer.h"

/* Writes the GBNF of a schema to `out`, which begins as zeros. Every text of the grammar is JSON that the schema accepts; not
 * every such JSON is a text of the grammar (docs/guide/models.md). Refuses a keyword that it does not know, by name. */
ww_status schema_to_gbnf(const char *text, size_t bytes, text_buffer *out);

/* A buffer that remembers the first failure, so that writing needs no checks in between. */
typedef struct gbnf_writer {
    text_buffer *out;
    ww_status status;
} gbnf_writer;

void gbnf_write(gbnf_writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes the characters that a string of JSON has so that the regular expression `pattern` matches it. */
void pattern_write(gbnf_writer *w, const char *pattern);

#endif
