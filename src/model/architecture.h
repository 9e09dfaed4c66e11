/* What a model's metadata says: which body computes it, with which attributes and sizes. */
#ifndef WW_MODEL_ARCHITECTURE_H
#define WW_MODEL_ARCHITECTURE_H

#include <stdbool.h>
#include <stdint.h>

#include <warpwave/gguf.h>
#include <warpwave/model.h>
#include <warpwave/tensor.h>

/* An architecture as attributes of one of the two bodies. */
typedef struct architecture {
    const char *name; /* as files spell it */
    ww_model_kind kind;
    bool interleaved;       /* rope rotates elements 2i and 2i + 1; otherwise i and i + half */
    bool rope;              /* positions by rope; otherwise learned ones or alibi */
    bool alibi;             /* scores decrease with the distance of keys, by a slope per head */
    bool biases;            /* q, k and v must have biases; otherwise they may */
    bool head_norms;        /* q and k are normed before rope, each head separately */
    bool whole_norms;       /* q and k are normed before rope, all heads together */
    bool post_norms;        /* the outputs of attention and the feed-forward network are normed too */
    bool no_pre_norms;      /* only the outputs are normed */
    bool fused;             /* q, k and v may be one tensor; gate and up are one unless the file has a gate */
    bool multipliers;       /* of embeddings, residuals, attention and logits, as the metadata says */
    bool scaled_embedding;  /* embeddings times sqrt(width) */
    bool bidirectional;     /* an encoder with the decoder's body: every token sees the whole text */
    bool norms_before;      /* an encoder that norms before attention and the network, and after all layers; no biases */
    bool answers;           /* a decoder such as Qwen3-Reranker: the logits of "yes" and "no" are the score */
    bool gated;             /* the feed-forward network has a gate */
    bool window_scaled;     /* rope is also scaled in layers with a window */
    bool yarn_exact;        /* the pairs where yarn's transition begins and ends are not rounded */
    int32_t window_pattern; /* one in this many layers sees everything, the others a window; 0: all layers are alike */
    bool window_first;      /* it is the first of them; otherwise the last */
    int32_t plain_pattern;  /* the last of this many layers has no rope; 0: all have */
    int32_t width_layers;   /* a model with this many layers scales queries by width / heads, not by the head size */
    double window_base;     /* rope's base in layers with a window; 0: as in the others */
    ww_unary activation;
    ww_unary head_activation; /* between the two products of a head that ranks */
    const char *network_norm; /* the norm before the feed-forward network, as files call it; NULL: ffn_norm */
    bool experts;             /* the network is a mixture of experts */
    bool clamped;             /* gates are (min(gate, 7) sigmoid(1.702 gate)) (up + 1), with up clamped to -7..7 */
    bool sinks;               /* each head has an extra score without a value */
    bool distances;           /* scores get a learned number for the distance of query and key */
    bool lookup;              /* no layers: the rows of the embedding are pooled */
} architecture;

typedef enum rope_scaling { ROPE_SCALING_NONE, ROPE_SCALING_LINEAR, ROPE_SCALING_YARN } rope_scaling;

/* The sizes, at least 1 unless stated otherwise. */
typedef struct model_sizes {
    int32_t layers, width, hidden;                /* with `lookup` only the width is not 0 */
    int32_t experts, experts_used, expert_hidden; /* 0: there are none */
    int32_t heads, key_heads, head_size;          /* key_heads divides heads */
    int32_t rope_size;                            /* elements of a head that rope rotates; even; 0 without rope */
    int32_t window;                               /* 0: none */
    int32_t vector;                               /* numbers of an embedding: the width, or what the last dense layer makes */
    int64_t vocabulary;                           /* rows of the embedding */
    int64_t context;
    double eps;
    double attention_scale;
    double attention_cap, logit_cap;                      /* x becomes cap * tanh(x / cap); 0: no cap */
    double embedding_scale, residual_scale, logits_scale; /* 1: none */
    double temperature;                                   /* how much queries grow with each original context; 0: not at all */
    double window_base;                                   /* rope's base in layers with a window; 0: as in the others */
    double rope_base, rope_factor;                        /* positions are divided by the factor */
    rope_scaling scaling;
    int64_t rope_original_context; /* for yarn, and for factors for short and long contexts */
    double rope_attention;         /* multiplies cosines and sines */
    double yarn_fast, yarn_slow;   /* turns in the original context: pairs with more than yarn_fast are not scaled, those with
                                      fewer than yarn_slow are */
    ww_pooling pooling;
    bool pooling_given; /* the caller chose it, not the file */
    bool ranks_mean;    /* a ranking head takes the mean; otherwise an encoder's first token, a decoder's last */
} model_sizes;

/* Finds the architecture that a file names, and of a decoder whose attention is not causal the one that embeds. Refuses an
 * unknown one; the message lists the known ones. */
ww_status architecture_find(const ww_gguf *gguf, const architecture **found);

/* Reads and checks the sizes. Loading the tensors checks their shapes against them. */
ww_status sizes_read(const ww_gguf *gguf, const architecture *a, ww_pooling pooling, model_sizes *sizes);

/* Does layer number `layer` have a window? */
static inline bool layer_has_window(const architecture *a, const model_sizes *sizes, int32_t layer)
{
    if (sizes->window == 0)
        return false;
    const int32_t place = a->window_pattern > 0 ? layer % a->window_pattern : 0;
    return a->window_pattern == 0 || place != (a->window_first ? 0 : a->window_pattern - 1);
}

/* Does the decoder's body compute it? Its norms are RMS norms. */
static inline bool has_decoder_body(const architecture *a)
{
    return a->kind == WW_MODEL_DECODER || a->bidirectional;
}

/* Are keys and values kept in pages? */
static inline bool has_pages(const architecture *a)
{
    return !a->distances && !a->lookup;
}

/* Does layer number `layer` have positions by rope? */
static inline bool layer_has_rope(const architecture *a, int32_t layer)
{
    return a->rope && (a->plain_pattern == 0 || layer % a->plain_pattern < a->plain_pattern - 1);
}

/* The slope of head number `head`: 2^(-8 (head + 1) / n), with n the largest power of two up to the number of heads; further
 * heads have every other slope of 2n heads. */
double alibi_slope(const model_sizes *sizes, int32_t head);

/* Rope's angles: radians per position for each pair of a head, rope_size / 2 of them, in the caller's memory; and the factor of
 * cosines and sines. */
typedef struct rope_terms {
    double *frequencies;
    double magnitude;
} rope_terms;

/* Computes them for layers with or without a window; `factors`, one per pair, may be NULL. */
void rope_find(const architecture *a, const model_sizes *sizes, bool window, const float *factors, rope_terms *out);

#endif
