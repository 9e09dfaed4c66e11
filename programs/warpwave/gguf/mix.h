/* The type of each tensor when a model is quantized to a usual mix: Q4_K_M and its relatives. */
#ifndef CLI_GGUF_MIX_H
#define CLI_GGUF_MIX_H

#include <stdbool.h>
#include <warpwave/gguf.h>

typedef struct mix {
    const char *name;
    ww_quant_type type; /* for most matrices */
    uint32_t file_type; /* general.file_type; other readers show it but go by the tensors */
    int grade;          /* which tensors get more bits (mix.c) */
} mix;

/* What the rules need to know about a model. */
typedef struct mix_model {
    int64_t blocks, experts, heads_per_kv;
    bool output; /* the output has its own matrix; otherwise it uses the embeddings */
    bool falcon, llama_70b;
} mix_model;

/* Finds a mix or a plain type by its name, in small or capital letters. Refuses types for activations; refuses unknown names
 * with a list of the known ones. */
ww_status mix_find(const char *name, mix *found);

/* A mix that uses the plain type everywhere. */
mix mix_pure(const mix *m);

/* Reads what the rules need from a model's metadata and names. */
void mix_model_read(const ww_gguf *gguf, mix_model *model);

/* The type of a matrix by the rules, even if its rows do not fit. `pure`: the mix's own type for every matrix. */
ww_quant_type mix_type(const mix *m, const mix_model *model, const char *name, bool pure);

#endif
