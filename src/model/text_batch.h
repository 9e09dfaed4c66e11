/* Texts of a call, tokenized together: by several threads if there are many, and while the device computes earlier ones.
 */
#ifndef WW_MODEL_TEXT_BATCH_H
#define WW_MODEL_TEXT_BATCH_H

#include "model/pair.h"

typedef struct text_batch {
    const ww_model *model;
    const char *const *texts; /* of the whole call */
    const size_t *bytes;      /* of each, or NULL */
    const pair_query *pair;   /* a query that precedes each text, or NULL */
    const char *prompt;       /* before each text; NULL with a query */
    const char *call;         /* the public call, for messages */
    size_t first, count;      /* of this batch */
    size_t *counts;           /* tokens of each text; the caller's */
    size_t *firsts;           /* of these, tokens of the query; the caller's, or NULL */
    token_list tokens;        /* of all texts, concatenated */
    int64_t cut;              /* texts that were longer than the context */
    ww_status status;
    char message[512]; /* of a failure */
} text_batch;

/* Fills in counts, tokens, cut, status and message. Truncates texts to the model's context. */
void text_batch_encode(text_batch *b);

/* The same in a thread, until text_batch_wait(), which returns the status and sets its message. If no thread can be started,
 * the call does it itself. */
typedef struct text_batch_thread {
    text_batch *batch;
    pthread_t thread;
    bool started;
} text_batch_thread;
void text_batch_start(text_batch_thread *t, text_batch *b);
void text_batch_join(text_batch_thread *t);

/* Returns the status and sets its message. */
ww_status text_batch_status(const text_batch *b);

#endif
