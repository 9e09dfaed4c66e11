/* The two bodies, and what they share: a pass of a batch of tokens over all layers. */
#ifndef WW_MODEL_BODY_H
#define WW_MODEL_BODY_H

#include "model/model.h"

/* A batch of tokens that is on the device (the workspace's uploads), in the order of its sequences. */
typedef struct pass {
    ww_model *model; /* its lock is held */
    int64_t tokens;
    int64_t sequences;
    int64_t pages_stride;
    int32_t keys_max; /* of a sequence, those of this pass among them */
    bool has_types;   /* tokens have types, in the workspace; else all are of the first */
    bool (*cancelled)(const void *who);
    const void *who;
} pass;

/* Runs all layers; the workspace's x has the result, a row for each token. Queued, except for a device that does not queue. */
ww_status decoder_run(const pass *p);
ww_status encoder_run(const pass *p);

/* A pass in which every sequence has one token, at most LOGIT_ROWS of them, and the logits of each, to host memory. On a device
 * that can, the second such pass is recorded, and those that follow are replays. */
ww_status decoder_step(const pass *p, float *logits);
bool decoder_is_step(const pass *p);

/* decoder_run() for any other pass, likewise recorded. */
ww_status decoder_pass(const pass *p);

/* The logits of rows of x, at most LOGIT_ROWS, into the workspace's. Queued. */
ww_status decoder_project(const pass *p, const ww_tensor *rows);

/* The logits of `count` rows of x, at most LOGIT_ROWS, by their numbers, to host memory. */
ww_status decoder_logits(const pass *p, const uint32_t *rows, int64_t count, float *logits);

/* ---- pieces -------------------------------------------------------------------------------------------------------------- */

/* out = x times the matrix, plus the bias, and what stands beside it: x goes through a norm first, or is activated and
 * multiplied with `up`; the result is added to what is in `out`. An encoder has no norm here. */
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

/* The rows of a matrix that ids name. */
ww_status body_rows(const ww_quant *matrix, const ww_tensor *ids, ww_tensor *out);

/* Keys and values of q, k, v into the cache, and queries against it into `attended`; q is turned in place. */
typedef struct attention_of_layer {
    int32_t layer;
    bool causal, window, rope;
    const ww_tensor *sinks; /* of each head; NULL: none */
    ww_tensor q, k, v, attended;
} attention_of_layer;
ww_status body_attention(const pass *p, const attention_of_layer *a);

/* act(gate(x)) * up(x), or act(up(x)), into `up`, and that through `down` into y; x behind a norm, if there is one, and with a
 * `residual` that gets the sum with it, and y anything. */
typedef struct feed_forward {
    const layer_weights *layer;
    ww_tensor *x;
    const norm *norm;    /* or NULL */
    ww_tensor *residual; /* or NULL; may be x */
    ww_tensor *y;
} feed_forward;
ww_status body_feed_forward(const pass *p, const feed_forward *f);

/* The same by a mixture of experts: of the `experts_used` that the router gives the largest logits, weighted by a softmax over
 * these. Into y; the residual is not looked at. */
ww_status body_experts(const pass *p, const feed_forward *f);

/* WW_CANCELLED if somebody asked to stop. */
ww_status body_check_cancelled(const pass *p);

#endif
