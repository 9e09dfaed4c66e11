/* Small models with random weights, written as GGUF files, and their results computed in plain C with doubles. */
#ifndef TESTS_MODELS_H
#define TESTS_MODELS_H

#include <stdbool.h>

#include <warpwave/model.h>

#include "support/check.h"

enum { TINY_TENSORS_MAX = 128, TINY_EXPERT_HIDDEN = 32 };

/* The model to write. Zeros mean the values of tiny_default(). */
typedef struct tiny_shape {
    const char *architecture;
    int32_t layers, width, hidden, heads, key_heads, head_size, vocabulary, context;
    int32_t window;
    int32_t experts, experts_used; /* of a mixture of experts; each has 32 hidden elements */
    int32_t pooling;
    bool norms_twice;     /* for jina-bert-v2: the norms of models for code, and the gate as a separate tensor */
    bool sees_all;        /* of a decoder: it embeds, and every token sees the whole text */
    const char *question; /* of a decoder that reranks: its template; the answers are yes and no */
    bool ranks_mean;      /* with pooling rank: of the mean of all tokens */
    ww_quant_type type;   /* of matrices */
    bool gate_f16;        /* gates are f16, so that they are not joined with the matrices that they gate */
    bool tied;            /* no output.weight */
    bool rope_factors;    /* with rope_freqs.weight; of phi3 with those for short and long contexts */
    const char *scaling;  /* of the rope; NULL: none */
    double scaling_factor;
    uint64_t seed;
    const struct test_vocabulary *tokens; /* NULL: no tokenizer */
    const char *chat_template;            /* may be NULL */
} tiny_shape;

typedef struct tiny_tensor {
    char name[64];
    int64_t rows, cols; /* rows 0: a vector */
    int64_t experts;    /* number of matrices like this, contiguous; 0: one, of rank 2 */
    float *values;
} tiny_tensor;

typedef struct tiny_model {
    tiny_shape shape;
    tiny_tensor tensors[TINY_TENSORS_MAX];
    int32_t count;
} tiny_model;

/* A shape of an architecture that every body, cache and device can compute. */
tiny_shape tiny_default(const char *architecture);

/* Makes the weights; give them back. */
void tiny_make(tiny_model *m, const tiny_shape *shape);
void tiny_free(tiny_model *m);

/* Writes the file. */
void tiny_write(const tiny_model *m, const char *path);

/* Writes a model of the default shape with a tokenizer that knows the words a, fox, dog and an s after a word. */
void tiny_write_words(const char *architecture, const char *path);

/* Writes an encoder with this many layers that reranks, with that tokenizer. */
void tiny_write_ranker(int32_t layers, const char *path);

/* A decoder whose tokenizer has every byte and the two tokens of ChatML, with a chat template. A context of 0 is the default's.
 */
#define TINY_CHATML                                                                                                            \
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"      \
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
void tiny_write_chat(const char *chat_template, int32_t context, const char *path);

/* The same of qwen3 with the tokens no and yes: it generates text, and it reranks by its answers. */
void tiny_write_answers(const char *path);

/* Opens a model with float activations and a cache of f32, as the reference below computes; close it. Here, because tests
 * without the library of models are linked with the functions above, too. */
static inline ww_model *tiny_open_precise(ww_device *device, const char *path)
{
    ww_model_options options = ww_model_options_default();
    ww_model *model;
    options.activations = WW_ACTIVATIONS_FLOAT;
    options.cache = WW_QUANT_F32;
    CHECK_OK(ww_model_open(path, device, &options, &model));
    return model;
}

/* The defect of a file that tiny_write_wrong() writes. */
typedef struct tiny_fault {
    const char *leave_out; /* a tensor or a key */
    const char *key;       /* gets another number */
    double number;
    const char *text_key; /* gets another text */
    const char *text;
    const char *reshaped; /* a tensor with a column less */
    const char *poisoned; /* a tensor whose number `poisoned_at` is not finite */
    int64_t poisoned_at;
    const char *extra; /* a tensor that no architecture has */
} tiny_fault;
void tiny_write_wrong(const tiny_model *m, const tiny_fault *fault, const char *path);

/* The logits after the last of `count` tokens, and their embedding, by the definition in doubles. */
void tiny_logits(const tiny_model *m, const int32_t *ids, int count, double *logits);
void tiny_embedding(const tiny_model *m, const int32_t *ids, int count, double *vector);

/* The score of `count` tokens with an encoder's head; those from number `first` on are of the second type. */
double tiny_score(const tiny_model *m, const int32_t *ids, int count, int first);

#endif
