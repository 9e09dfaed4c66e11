/* Which tensor becomes which type, when a model is quantized by the usual name of a mix: Q4_K_M and its relatives. */
#ifndef CLI_GGUF_MIX_H
#define CLI_GGUF_MIX_H

#include <stdbool.h>
#include <warpwave/gguf.h>

typedef struct mix {
    const char *name;
    ww_quant_type type; /* of most matrices */
    uint32_t file_type; /* general.file_type, as other readers know it; they show it and look at the tensors */
    int grade;          /* which tensors get more bits; mix.c knows */
} mix;

/* What the rules ask of a model. */
typedef struct mix_model {
    int64_t blocks, experts, heads_per_kv;
    bool output; /* there is a matrix of its own for the output; else the embeddings serve */
    bool falcon, llama_70b;
} mix_model;

/* Finds a mix or a plain type by its name, in small or capital letters. Refuses what is neither with the list of those that
 * are, and types that are for activations. */
ww_status mix_find(const char *name, mix *found);

/* The same without exceptions: the type itself. */
mix mix_pure(const mix *m);

/* Reads what the rules need from a model's metadata and names. */
void mix_model_read(const ww_gguf *gguf, mix_model *model);

/* The type of a matrix by the rules, whether its rows fit or not. `pure`: the mix's own, everywhere. */
ww_quant_type mix_type(const mix *m, const mix_model *model, const char *name, bool pure);

#endif
