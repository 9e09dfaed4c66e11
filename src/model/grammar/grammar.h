/* A grammar at a position of a text, and the tokens of a model that may come next. */
#ifndef WW_MODEL_GRAMMAR_GRAMMAR_H
#define WW_MODEL_GRAMMAR_GRAMMAR_H

#include "model/grammar/matcher.h"
#include "model/tokenizer/tokenizer.h"

/* The text tokens, in the order of their bytes, so that tokens with a common prefix are adjacent. */
typedef struct token_order {
    int32_t *ids, *shared; /* shared: length of the common prefix with the previous token */
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
    int32_t state, next; /* `next`: after the token given to grammar_prepare() */
    int32_t *path;       /* the state after each byte of a token */
    bool ended, next_ended;
};

/* Gives the bits of the tokens that may come next, valid until the next call with this grammar; `over`: only an end may follow.
 * Fails if no token may come. */
ww_status grammar_mask(struct ww_grammar *grammar, const uint64_t **bits, bool *over);

/* Advances by a token, in two parts: the first can fail, the second cannot. Refuses a token that may not come. */
ww_status grammar_prepare(struct ww_grammar *grammar, int32_t token);
void grammar_commit(struct ww_grammar *grammar);

#endif
