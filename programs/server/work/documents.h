/* Texts in place of vectors, {"text": "a fox", "model": "minilm"}: the request first waits for the model, which embeds the
 * texts of all requests together, and then for its collection. */
#ifndef WW_SERVER_WORK_DOCUMENTS_H
#define WW_SERVER_WORK_DOCUMENTS_H

#include "server/state.h"

/* Inputs of a model: texts, or tokens. */
typedef struct embedding_inputs {
    char **texts; /* NULL: there are tokens */
    size_t *bytes;
    int32_t *tokens; /* of all inputs, concatenated */
    size_t *counts;  /* number of tokens of each input */
    size_t count, token_count;
} embedding_inputs;

void embedding_inputs_free(embedding_inputs *inputs);

/* The texts of a request, and where their vectors go: `*base` is read once the vectors exist. */
typedef struct documents {
    embedding_inputs inputs;
    size_t capacity;
    served_model *model;
    char prefix[PREFIX_BYTES]; /* the texts begin with it */
    size_t cut;                /* texts with more tokens than the model's context, once they are embedded */
    struct document_place {
        float **base;
        int64_t offset;
    } *places;
} documents;

void documents_free(documents *d); /* accepts NULL */

/* Counts the texts that are longer than the model's context. */
void documents_count_cut(documents *d);

/* Is the value a document? */
bool is_document(const char *value);

/* Does a query's document stand for its words, {"text": "red fox", "model": "bm25"}? Then no model embeds it. */
bool is_words(const char *value);

/* Adds a text to the request's documents. Returns the dimension of its vector, which goes to `*base + offset`; -1: the request
 * failed. */
int64_t document_add(request *r, const char *value, float **base, int64_t offset);

/* The text that was added as number `number`, without its prefix. */
const char *document_text(const documents *d, int64_t number);

/* Replaces the prefix of each text by the one that the collection's model needs. False: the request failed. */
bool documents_prefix(request *r);

/* Did the collection's model embed the texts, with its prefix? If not with its prefix, the request waits for the model again. A
 * collection without a model gets this one when something is written. */
readiness documents_check(request *r);

#endif
