/* Texts of a call, tokenized together: by several threads where they are many, and beside what the device does with those
 * before.
 */
#ifndef WW_MODEL_TEXT_BATCH_H
#define WW_MODEL_TEXT_BATCH_H

#include "model/pair.h"

typedef struct text_batch {
    const ww_model *model;
    const char *const *texts; /* of the whole call */
    const size_t *bytes;      /* of each, or NULL */
    const pair_query *pair;   /* a query that each text stands behind, or NULL */
    const char *call;         /* the public call, for messages */
    size_t first, count;      /* of this batch */
    size_t *counts;           /* of tokens: as many as texts; the caller's */
    size_t *firsts;           /* of these, tokens of the query; the caller's, or NULL */
    token_list tokens;        /* of all texts, one behind the other */
    ww_status status;
    char message[512]; /* of a failure */
} text_batch;

/* Fills in counts, tokens, status and message; no text may have more tokens than the model's context: it is cut. */
void text_batch_encode(text_batch *b);

/* The same by a thread, until text_batch_wait(), which gives the status with its message set. Where no thread can be started it
 * is done at once. */
typedef struct text_batch_thread {
    text_batch *batch;
    pthread_t thread;
    bool started;
} text_batch_thread;
void text_batch_start(text_batch_thread *t, text_batch *b);
void text_batch_join(text_batch_thread *t);

/* The status, with its message set. */
ww_status text_batch_status(const text_batch *b);

#endif
