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
    bool interleaved;       /* rope turns elements 2i and 2i + 1; else i and i + half */
    bool rope;              /* has positions by rope; else learned ones, or: */
    bool alibi;             /* scores fall with the distance of keys, by a slope for each head */
    bool biases;            /* q, k and v must have biases; where they need not they may */
    bool head_norms;        /* q and k of each head are normed before rope */
    bool whole_norms;       /* q and k are normed before rope, all heads together */
    bool post_norms;        /* attention and the feed-forward network are normed behind, too */
    bool no_pre_norms;      /* and only there */
    bool fused;             /* the file may have q, k and v as one tensor, and has gate and up as one unless it has a gate */
    bool multipliers;       /* of embeddings, residuals, attention and logits, as the metadata says */
    bool scaled_embedding;  /* embeddings times sqrt(width) */
    bool bidirectional;     /* an encoder with the decoder's body, in which every token sees all of its text */
    bool norms_before;      /* an encoder's norms stand before attention and the network, one is behind all layers; no biases */
    bool answers;           /* Qwen3-Reranker is one: asked in words, the logits of "yes" and "no" are scores */
    bool gated;             /* the feed-forward network has a gate */
    bool window_scaled;     /* rope is scaled in layers with a window, too */
    bool yarn_exact;        /* the pairs between which yarn passes over are not rounded to whole ones */
    int32_t window_pattern; /* one of this many layers sees everything, the others a window; 0: all are alike */
    bool window_first;      /* that is the first of them; else the last */
    int32_t plain_pattern;  /* the last of this many layers has no rope; 0: all have */
    int32_t width_layers;   /* a model of this many layers scales queries by the width for each head, not by its size */
    double window_base;     /* of rope in layers with a window; 0: as in the others */
    ww_unary activation;
    ww_unary head_activation; /* between the two products of a head that ranks */
    const char *network_norm; /* the norm before the feed-forward network, as files call it; NULL: ffn_norm */
    bool experts;             /* the network is a mixture of experts */
    bool clamped;             /* whose gates are (min(gate, 7) sigmoid(1.702 gate)) (up + 1), up within 7 of 0 */
    bool sinks;               /* each head has a score without a value */
} architecture;

typedef enum rope_scaling { ROPE_SCALING_NONE, ROPE_SCALING_LINEAR, ROPE_SCALING_YARN } rope_scaling;

/* The sizes, all of them at least 1 but where it says so. */
typedef struct model_sizes {
    int32_t layers, width, hidden;
    int32_t experts, experts_used, expert_hidden; /* 0: there are none */
    int32_t heads, key_heads, head_size;          /* key_heads divides heads */
    int32_t rope_size;                            /* elements of a head that are turned; even; 0 without rope */
    int32_t window;                               /* 0: none */
    int64_t vocabulary;                           /* rows of the embedding */
    int64_t context;
    double eps;
    double attention_scale;
    double attention_cap, logit_cap;                      /* x becomes cap * tanh(x / cap); 0: it does not */
    double embedding_scale, residual_scale, logits_scale; /* 1: none */
    double temperature;                                   /* by which queries grow with each original context; 0: not */
    double window_base;                                   /* of rope in layers with a window; 0: as in the others */
    double rope_base, rope_factor;                        /* positions are divided by the factor; 1: they are not */
    rope_scaling scaling;
    int64_t rope_original_context; /* of yarn, and of factors for short and long contexts */
    double rope_attention;         /* cosines and sines are multiplied with it */
    double yarn_fast, yarn_slow;   /* turns in the original context: pairs with more stay, those with fewer are scaled */
    ww_pooling pooling;
    bool pooling_given; /* it is not the one that the file says */
    bool ranks_mean;    /* a head that ranks takes the mean; else an encoder's first token, a decoder's last */
} model_sizes;

/* Finds the architecture that a file names. Refuses another with the list of those that are known. */
ww_status architecture_find(const ww_gguf *gguf, const architecture **found);

/* Reads and checks the sizes; what they mean for tensors is checked where these are loaded. */
ww_status sizes_read(const ww_gguf *gguf, const architecture *a, ww_pooling pooling, model_sizes *sizes);

/* Has layer number `layer` a window? */
static inline bool layer_has_window(const architecture *a, const model_sizes *sizes, int32_t layer)
{
    if (sizes->window == 0)
        return false;
    const int32_t place = a->window_pattern > 0 ? layer % a->window_pattern : 0;
    return a->window_pattern == 0 || place != (a->window_first ? 0 : a->window_pattern - 1);
}

/* Is it computed by the decoder's body? Norms are by mean squares there. */
static inline bool has_decoder_body(const architecture *a)
{
    return a->kind == WW_MODEL_DECODER || a->bidirectional;
}

/* Has layer number `layer` positions by rope? */
static inline bool layer_has_rope(const architecture *a, int32_t layer)
{
    return a->rope && (a->plain_pattern == 0 || layer % a->plain_pattern < a->plain_pattern - 1);
}

/* The slope of head number `head`: with n the largest power of two up to the heads, 2^(-8 (head + 1) / n); heads behind those
 * have every other slope of 2n heads. */
double alibi_slope(const model_sizes *sizes, int32_t head);

/* How rope turns: radians per position of each pair of a head, rope_size / 2 of them, in memory of the caller; and what cosines
 * and sines are multiplied with. */
typedef struct rope_terms {
    double *frequencies;
    double magnitude;
} rope_terms;

/* Fills it in, for layers with a window or without; `factors`, one a pair, may be NULL. */
void rope_find(const architecture *a, const model_sizes *sizes, bool window, const float *factors, rope_terms *out);

#endif
