/* The two bodies, and what they share: a pass of a batch of tokens over all layers. */
#ifndef WW_MODEL_BODY_H
#define WW_MODEL_BODY_H

#include "model/model.h"

/* A batch of tokens on the device (the workspace's uploads), in the order of its sequences. */
typedef struct pass {
    ww_model *model; /* its lock is held */
    int64_t tokens;
    int64_t sequences;
    int64_t pages_stride;
    int32_t keys_max; /* of a sequence, those of this pass among them */
    bool has_types;   /* tokens have types, in the workspace; otherwise all have the first type */
    bool (*cancelled)(const void *who);
    const void *who;
} pass;

/* Runs all layers; the result is the workspace's x, a row per token. Queued, if the device queues. */
ww_status decoder_run(const pass *p);
ww_status encoder_run(const pass *p);

/* Runs a pass in which every sequence has one token, at most LOGIT_ROWS of them, and copies the logits of each to host memory.
 * If the device can record, the second such pass is recorded and later ones are replayed. */
ww_status decoder_step(const pass *p, float *logits);
bool decoder_is_step(const pass *p);

/* decoder_run() for any other pass, also recorded and replayed. */
ww_status decoder_pass(const pass *p);

/* Computes the logits of rows of x, at most LOGIT_ROWS, into the workspace's logits. Queued. */
ww_status decoder_project(const pass *p, const ww_tensor *rows);

/* Copies the logits of `count` rows of x, at most LOGIT_ROWS, given by number, to host memory. */
ww_status decoder_logits(const pass *p, const uint32_t *rows, int64_t count, float *logits);

/* ---- pieces -------------------------------------------------------------------------------------------------------------- */

/* out = x times the matrix, plus the bias. Options: x is normed first, or activated and multiplied with `up`; the result is
 * added to `out`. An encoder has no norm here. */
typedef struct linear_step {
    const linear *linear;
    const ww_tensor *x;
    const norm *norm;    /* or NULL */
    const ww_tensor *up; /* or NULL; of x's shape */
    bool adds;
    ww_tensor *out;
} linear_step;
ww_status body_linear(const ww_model *model, const linear_step *s);

/* x += y. */
ww_status body_add(ww_tensor *x, const ww_tensor *y);

/* Looks up rows of a matrix by ids. */
ww_status body_rows(const ww_quant *matrix, const ww_tensor *ids, ww_tensor *out);

/* Stores k and v in the cache and computes attention of q over it into `attended`; rope rotates q in place. */
typedef struct attention_of_layer {
    int32_t layer;
    bool causal, window, rope;
    const ww_tensor *sinks; /* of each head; NULL: none */
    ww_tensor q, k, v, attended;
} attention_of_layer;
ww_status body_attention(const pass *p, const attention_of_layer *a);

/* The same without a cache, with a learned number for each distance added to scores. Every token sees all of its text. */
ww_status body_attention_by_distance(const pass *p, const attention_of_layer *a);

/* Computes act(gate(x)) * up(x), or act(up(x)), into `up`, and `down` of that into y; x is normed first, if there is a norm.
 * With a `residual` the result is added to it, and y is scratch memory. */
typedef struct feed_forward {
    const layer_weights *layer;
    ww_tensor *x;
    const norm *norm;    /* or NULL */
    ww_tensor *residual; /* or NULL; may be x */
    ww_tensor *y;
} feed_forward;
ww_status body_feed_forward(const pass *p, const feed_forward *f);

/* The same with a mixture of experts: the `experts_used` with the router's largest logits, weighted by a softmax over these
 * logits. The result is y; ignores the residual. */
ww_status body_experts(const pass *p, const feed_forward *f);

/* WW_CANCELLED if the caller asked to stop. */
ww_status body_check_cancelled(const pass *p);

#endif
