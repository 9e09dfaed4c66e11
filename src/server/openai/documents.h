/* Texts in place of vectors, {"text": "a fox", "model": "minilm"}: before a request waits for its collection it waits for the
 * model, which embeds the texts of all requests together. */
#ifndef WW_SERVER_OPENAI_DOCUMENTS_H
#define WW_SERVER_OPENAI_DOCUMENTS_H

#include "server/state.h"

/* Inputs of a model: texts, or tokens. */
typedef struct embedding_inputs {
    char **texts; /* NULL: there are tokens */
    size_t *bytes;
    int32_t *tokens; /* of all inputs, one behind the other */
    size_t *counts;  /* of the tokens of each */
    size_t count, token_count;
} embedding_inputs;

void embedding_inputs_free(embedding_inputs *inputs);

/* The texts of a request, and where their vectors go: `*base` is read when they are there. */
typedef struct documents {
    embedding_inputs inputs;
    size_t capacity;
    served_model *model;
    char prefix[PREFIX_BYTES]; /* that the texts begin with */
    struct document_place {
        float **base;
        int64_t offset;
    } *places;
} documents;

void documents_free(documents *d); /* accepts NULL */

/* Is the value a document? */
bool is_document(const char *value);

/* Adds a text to the request's documents. Returns the numbers of its vector, which goes to `*base` from `offset` on; -1: the
 * request failed. */
int64_t document_add(request *r, const char *value, float **base, int64_t offset);

/* Puts before each text what the collection's model wants there, in place of the prefix that it has. False: the request failed.
 */
bool documents_prefix(request *r);

typedef enum documents_state {
    DOCUMENTS_READY,    /* there are no texts, or their vectors are right */
    DOCUMENTS_REFUSED,  /* the request failed */
    DOCUMENTS_SENT_BACK /* the texts had another prefix than they need: the request waits for the model again */
} documents_state;

/* Is the model that embedded the texts the one of the collection, and were they embedded with its prefix? A collection that has
 * no model gets it when something is written. */
documents_state documents_check(request *r);

#endif
