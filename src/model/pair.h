/* A query and a text as one sequence of tokens, in the form that reranking models were trained on.
 *
 * An encoder reads `<s> query </s> text </s>` with its own tokens for these. A decoder is asked in words whether the text
 * answers the query, in a template with {query} and {document}; names of special tokens in either are text.
 */
#ifndef WW_MODEL_PAIR_H
#define WW_MODEL_PAIR_H

#include "model/model.h"

typedef struct pair_query {
    const ww_model *model;
    token_list query;   /* for an encoder: the query's own tokens; for a decoder those before `before`, if any */
    text_buffer before; /* for a decoder: the template up to the document, including the query */
    text_span quoted;   /* the position of the query in it */
    token_list after;   /* for a decoder: the tokens of the template after the document */
    int32_t between[2]; /* for an encoder: tokens between query and text */
    size_t between_count;
} pair_query;

/* Prepares a query for any number of texts; the model must stay open. On failure nothing is left. */
ww_status pair_query_make(const ww_model *model, const char *query, pair_query *out);
void pair_query_free(pair_query *pair);

/* Where the tokens of a pair go: `first` gets the number of those before the text, `cut` whether any were cut off. */
typedef struct pair_tokens {
    token_list *list;
    size_t *first;
    bool *cut;
} pair_tokens;

/* Appends the tokens of the query followed by a text, at most the model's context: an encoder truncates the longer of the two,
 * a decoder the text. */
ww_status pair_encode(const pair_query *pair, const char *text, size_t bytes, const pair_tokens *to);

/* Does the model distinguish the two texts by token types? False for NULL. */
bool pair_has_types(const pair_query *pair);

#endif
