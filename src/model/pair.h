/* A query and a text as one sequence of tokens, as models that rerank were taught to read them.
 *
 * An encoder reads `<s> query </s> text </s>` with its own tokens for these. A decoder is asked in words whether the text
 * answers the query, in a template with {query} and {document}; names of special tokens in either are text.
 */
#ifndef WW_MODEL_PAIR_H
#define WW_MODEL_PAIR_H

#include "model/model.h"

typedef struct pair_query {
    const ww_model *model;
    token_list query;   /* of an encoder: the query's own tokens */
    text_buffer before; /* of a decoder: the template up to the document, with the query in it */
    text_span quoted;   /* the query in there */
    token_list after;   /* of a decoder: the tokens of the template behind the document */
    int32_t between[2]; /* of an encoder: tokens between query and text */
    size_t between_count;
} pair_query;

/* Prepares a query for any number of texts; the model must stay open. On failure nothing is left. */
ww_status pair_query_make(const ww_model *model, const char *query, pair_query *out);
void pair_query_free(pair_query *pair);

/* Appends the tokens of the query with a text behind it, no more than the model's context: the longer of the two is cut, and of
 * a decoder the text. `first` gets how many tokens come before the text. */
ww_status pair_encode(const pair_query *pair, const char *text, size_t bytes, token_list *out, size_t *first);

/* Does the model tell the two texts apart by the types of their tokens? False for NULL. */
bool pair_has_types(const pair_query *pair);

#endif
