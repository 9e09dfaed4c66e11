/* The weights of a model on a device, checked: every tensor of the architecture, with the shape that the metadata gives,
 * finite, and no other.
 */
#ifndef WW_MODEL_WEIGHTS_H
#define WW_MODEL_WEIGHTS_H

#include <warpwave/gguf.h>
#include <warpwave/quant.h>
#include <warpwave/tensor.h>

#include "model/architecture.h"

/* A matrix that is multiplied with activations, and its bias. */
typedef struct linear {
    ww_quant *matrix; /* NULL: there is none */
    ww_tensor plain;  /* instead of `matrix`, if the weights are not quantized and there are many rows to multiply: f32, [rows,
                         cols] */
    ww_tensor bias;   /* f32; may be empty */
} linear;

/* Weight and bias of a norm; f32. */
typedef struct norm {
    ww_tensor weight; /* empty: there is no such norm */
    ww_tensor bias;   /* may be empty */
} norm;

/* The matrices of all experts, one after the other, and a bias for each. */
typedef struct expert_linear {
    ww_quant *matrices;
    ww_quant *biases; /* f32, a row for each expert; may be NULL */
} expert_linear;

typedef struct layer_weights {
    norm attention_norm; /* before attention; in an encoder after it; may be empty */
    linear joined;       /* queries, keys and values in one product; then those three are empty */
    linear query, key, value, output;
    ww_tensor sinks;           /* of each query head; may be empty */
    norm query_norm, key_norm; /* of a head, or of all */
    norm attention_post_norm;  /* in an encoder after attention_norm, with the layer's input added again; may be empty */
    norm feed_forward_norm;    /* before the network; in an encoder after it; may be empty */
    linear gate_up;            /* in one product; then those two are empty */
    linear gate, up, down;
    linear router; /* of a mixture of experts: a row per expert; replaces those above */
    expert_linear gates, ups, downs;
    norm feed_forward_post_norm;
} layer_weights;

/* The end of a model that ranks: output(norm(activation(dense(x)))), or output(x) if there is no dense. */
typedef struct rank_head {
    linear dense, output;
    norm norm;      /* between them; may be empty */
    int32_t labels; /* 1, or 2: yes and no */
} rank_head;

enum { DENSE_LAYERS = 2 };

typedef struct weights {
    ww_quant *embedding;
    ww_quant *positions;        /* of an encoder with learned ones */
    ww_tensor token_type;       /* of an encoder: the type of all tokens, [width]; may be empty */
    ww_quant *token_types;      /* of an encoder: all types, if there are two or more, for pairs of texts; else NULL */
    norm embedding_norm;        /* of an encoder */
    norm output_norm;           /* after all layers; BERT has none */
    ww_quant *output;           /* of a decoder; the embedding if the file has none */
    bool output_is_tied;        /* `output` is the embedding */
    rank_head head;             /* of a model that ranks */
    linear dense[DENSE_LAYERS]; /* after the pooling; may be empty */
    ww_tensor slopes;           /* alibi: of each head; otherwise empty */
    ww_tensor distances;        /* learned, for each head, query and key: [heads, context, context]; may be empty */
    ww_tensor limits[2];        /* of clamped gates: upper and lower, [1]; empty if there are none */
    float *rope_factors;        /* rope_size / 2 of them, or NULL */
    layer_weights *layers;
    int32_t layer_count;
    int64_t parameters, bytes;
    int64_t bytes_mapped; /* of `bytes`: in the file's own pages */
} weights;

/* Loads all weights. On failure nothing is left. May fill in sizes->vocabulary, which the metadata need not contain, and
 * sizes->vector. */
typedef struct weights_source {
    const ww_gguf *gguf;
    ww_device *device;
    const architecture *architecture;
    model_sizes *sizes;
    int64_t context; /* of sessions */
    ww_progress progress;
    void *progress_user;
} weights_source;
ww_status weights_load(const weights_source *source, weights *out);
void weights_free(weights *w);

/* Makes a head from two rows of a decoder's output: the logits of the tokens `ids`, yes and no. */
ww_status weights_load_answers(const weights *w, const int32_t ids[2], rank_head *out);

#endif
