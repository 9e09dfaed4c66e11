/* Names of tensors. */
#include "model/convert/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static const char *const BERT_CLASSES[] = {"BertModel", "BertForMaskedLM", NULL};
static const char *const LLAMA_CLASSES[] = {"LlamaForCausalLM", "MistralForCausalLM", NULL};
static const char *const QWEN2_CLASSES[] = {"Qwen2ForCausalLM", NULL};
static const char *const QWEN3_CLASSES[] = {"Qwen3ForCausalLM", NULL};

const architecture_names ARCHITECTURES[] = {
    {.name = "bert", .classes = BERT_CLASSES, .encoder = true},
    {.name = "llama", .classes = LLAMA_CLASSES, .permutes = true},
    {.name = "qwen2", .classes = QWEN2_CLASSES},
    {.name = "qwen3", .classes = QWEN3_CLASSES},
    {.name = NULL},
};

const architecture_names *names_find(const char *class)
{
    for (const architecture_names *a = ARCHITECTURES; a->name; a++)
        for (const char *const *one = a->classes; *one; one++)
            if (strcmp(*one, class) == 0)
                return a;
    return NULL;
}

/* Tensors that a model has once, and those of a layer, whose number stands before. NULL: left out. */
typedef struct pair {
    const char *from, *to;
} pair;

static const pair BERT_ONCE[] = {
    {"embeddings.word_embeddings", "token_embd"},
    {"embeddings.position_embeddings", "position_embd"},
    {"embeddings.token_type_embeddings", "token_types"},
    {"embeddings.LayerNorm", "token_embd_norm"},
    {NULL, NULL},
};
static const pair BERT_LAYER[] = {
    {"attention.self.query", "attn_q"},
    {"attention.self.key", "attn_k"},
    {"attention.self.value", "attn_v"},
    {"attention.output.dense", "attn_output"},
    {"attention.output.LayerNorm", "attn_output_norm"},
    {"intermediate.dense", "ffn_up"},
    {"output.dense", "ffn_down"},
    {"output.LayerNorm", "layer_output_norm"},
    {NULL, NULL},
};
static const pair DECODER_ONCE[] = {
    {"embed_tokens", "token_embd"},
    {"norm", "output_norm"},
    {"lm_head", "output"},
    {NULL, NULL},
};
static const pair DECODER_LAYER[] = {
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {NULL, NULL},
};

/* Starts of names that are not written. */
static const char *const SKIPPED[] = {"embeddings.position_ids", "pooler.", "cls.", NULL};

static const char *behind(const char *text, const char *start)
{
    const size_t length = strlen(start);
    return strncmp(text, start, length) == 0 ? text + length : NULL;
}

/* The entry whose name and a ".weight" or ".bias" behind it are all of `name`. Gives the ending. */
static const pair *find_pair(const pair *pairs, const char *name, const char **ending)
{
    for (; pairs->from; pairs++) {
        const char *end = behind(name, pairs->from);
        if (end && (strcmp(end, ".weight") == 0 || strcmp(end, ".bias") == 0)) {
            *ending = end;
            return pairs;
        }
    }
    return NULL;
}

static bool is_skipped(const architecture_names *architecture, const char *name)
{
    for (const char *const *start = SKIPPED; architecture->encoder && *start; start++)
        if (behind(name, *start))
            return true;
    return strstr(name, "rotary_emb.inv_freq") != NULL;
}

ww_status names_map(const architecture_names *architecture, const char *name, tensor_name *out)
{
    const bool encoder = architecture->encoder;
    const char *inside = behind(name, encoder ? "bert." : "model.");
    const char *rest = inside ? inside : name, *ending = NULL;
    const char *layers = behind(rest, encoder ? "encoder.layer." : "layers.");
    *out = (tensor_name){.skip = is_skipped(architecture, rest)};
    if (out->skip)
        return WW_OK;
    if (!layers) {
        const pair *found = find_pair(encoder ? BERT_ONCE : DECODER_ONCE, rest, &ending);
        if (found) {
            snprintf(out->name, sizeof out->name, "%s%s", found->to, ending);
            return WW_OK;
        }
    } else {
        char *dot = NULL;
        const long layer = strtol(layers, &dot, 10);
        const pair *found = dot > layers && *dot == '.' && layer >= 0 && layer < 100000
                                ? find_pair(encoder ? BERT_LAYER : DECODER_LAYER, dot + 1, &ending)
                                : NULL;
        if (found) {
            snprintf(out->name, sizeof out->name, "blk.%ld.%s%s", layer, found->to, ending);
            out->query = strcmp(found->to, "attn_q") == 0;
            out->key = strcmp(found->to, "attn_k") == 0;
            return WW_OK;
        }
    }
    return ww_fail(WW_UNSUPPORTED, "the tensor '%.200s' has no name in GGUF files of the architecture '%s'", name,
                   architecture->name);
}
