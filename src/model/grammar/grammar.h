/* A grammar at a place of a text, and the tokens of a model that may come next. */
#ifndef WW_MODEL_GRAMMAR_GRAMMAR_H
#define WW_MODEL_GRAMMAR_GRAMMAR_H

#include "model/grammar/matcher.h"
#include "model/tokenizer/tokenizer.h"

/* The tokens of text, in the order of their bytes, so that tokens that begin alike are beside each other. */
typedef struct token_order {
    int32_t *ids, *shared; /* bytes that each has in common with the one before */
    int32_t count, longest;
} token_order;

ww_status token_order_make(const tokenizer *t, token_order **out);
void token_order_free(token_order *order); /* accepts NULL */

struct ww_grammar {
    struct ww_model *model; /* retained */
    const tokenizer *tokenizer;
    const token_order *order; /* the model's */
    grammar_program program;
    matcher matcher;
    int32_t state, next; /* `next`: behind the token that grammar_prepare() was told */
    int32_t *path;       /* the states behind each byte of a token */
    bool ended, next_ended;
};

/* Gives the bits of the tokens that may come next, which stay until the next call with this grammar; `over`: no text may
 * follow, only an end. Fails where no token may come. */
ww_status grammar_mask(struct ww_grammar *grammar, const uint64_t **bits, bool *over);

/* Goes on by a token, in two parts: what can fail, and what cannot. Refuses a token that may not come. */
ww_status grammar_prepare(struct ww_grammar *grammar, int32_t token);
void grammar_commit(struct ww_grammar *grammar);

#endif
