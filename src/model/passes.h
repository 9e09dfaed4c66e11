/* Runs many texts through the layers: tokens of texts in, a row of numbers per text out. Embedding and reranking differ only in
 * the end (pooling.c).
 */
#ifndef WW_MODEL_PASSES_H
#define WW_MODEL_PASSES_H

#include "model/text_batch.h"

/* Texts of one call as tokens, and where their results go. */
typedef struct text_job {
    ww_model *model;
    const int32_t *ids;   /* of all texts, one after the other */
    const size_t *counts; /* tokens of each text */
    const size_t *firsts; /* of these, tokens of the first of two texts; NULL: texts are single */
    size_t count;
    float *results; /* pooled_size() of each text */
    ww_progress progress;
    void *progress_user;
    const char *doing;  /* "embedding", for messages */
    size_t done, total; /* texts, for progress */
    int64_t cut;        /* texts that were longer than the context */
} text_job;

/* A pass over the texts of a job starting at `first`, and its host memory. */
typedef struct text_pass {
    const text_job *job;
    size_t first, texts, tokens, longest;
    size_t first_token;
    size_t padding; /* tokens of an extra text whose result is ignored; it is the last */
    int32_t *ids, *positions, *numbers, *lengths;
    int64_t *addresses;
    uint32_t *rows, *types;
    struct page **pages;
    size_t page_count, pages_stride;
} text_pass;

/* Runs passes over all texts of a job. Takes the model's lock for each. */
ww_status passes_run(const text_job *job);

/* The same for texts that are not tokenized yet: the next texts are tokenized while others are computed. Uses the model, texts,
 * bytes and pair of `batch`. */
ww_status passes_run_texts(text_job *job, const text_batch *batch);

/* ---- the end of a pass (pooling.c) --------------------------------------------------------------------------------------- */

/* Number of results per text: the width, or 1 for a model that reranks. */
int64_t pooled_size(const ww_model *model);

/* Pools the token vectors of a pass, which are in the workspace, into one result per text. */
ww_status pool_pass(text_pass *p, float *results);

#endif
