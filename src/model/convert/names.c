/* Names of tensors. */
#include "model/convert/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static const name_pair BERT_ONCE[] = {
    {"embeddings.word_embeddings", "token_embd"},
    {"embeddings.position_embeddings", "position_embd"},
    {"embeddings.token_type_embeddings", "token_types"},
    {"embeddings.LayerNorm", "token_embd_norm"},
    {NULL, NULL},
};
static const name_pair BERT_LAYER[] = {
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
static const name_pair DECODER_ONCE[] = {
    {"embed_tokens", "token_embd"},
    {"norm", "output_norm"},
    {"lm_head", "output"},
    {NULL, NULL},
};
static const name_pair DECODER_LAYER[] = {
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

/* Gemma 3 norms what attention and the feed-forward network give, too: the names say otherwise what they are. */
static const name_pair GEMMA3_LAYER[] = {
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
    {"post_attention_layernorm", "post_attention_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
    {NULL, NULL},
};
static const name_pair OLMO2_LAYER[] = {
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"post_attention_layernorm", "post_attention_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
    {NULL, NULL},
};
static const name_pair PHI3_LAYER[] = {
    {"self_attn.qkv_proj", "attn_qkv"},
    {"self_attn.o_proj", "attn_output"},
    {"mlp.gate_up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {NULL, NULL},
};
static const name_pair NOMIC_ONCE[] = {
    {"embeddings.word_embeddings", "token_embd"},
    {"embeddings.token_type_embeddings", "token_types"},
    {"emb_ln", "token_embd_norm"},
    {NULL, NULL},
};
static const name_pair NOMIC_LAYER[] = {
    {"attn.Wqkv", "attn_qkv"}, {"attn.out_proj", "attn_output"}, {"norm1", "attn_output_norm"},  {"mlp.fc11", "ffn_up"},
    {"mlp.fc12", "ffn_gate"},  {"mlp.fc2", "ffn_down"},          {"norm2", "layer_output_norm"}, {NULL, NULL},
};

/* The head of a model that ranks, behind what the others have. */
static const name_pair BERT_RANK_ONCE[] = {
    {"embeddings.word_embeddings", "token_embd"},
    {"embeddings.position_embeddings", "position_embd"},
    {"embeddings.token_type_embeddings", "token_types"},
    {"embeddings.LayerNorm", "token_embd_norm"},
    {"pooler.dense", "cls"},
    {"classifier.dense", "cls"},
    {"classifier.out_proj", "cls.output"},
    {"classifier", "cls.output"},
    {NULL, NULL},
};
static const name_pair MODERN_ONCE[] = {
    {"embeddings.tok_embeddings", "token_embd"},
    {"embeddings.norm", "token_embd_norm"},
    {"final_norm", "output_norm"},
    {NULL, NULL},
};
static const name_pair MODERN_RANK_ONCE[] = {
    {"embeddings.tok_embeddings", "token_embd"},
    {"embeddings.norm", "token_embd_norm"},
    {"final_norm", "output_norm"},
    {"head.dense", "cls"},
    {"head.norm", "cls.norm"},
    {"classifier", "cls.output"},
    {NULL, NULL},
};
static const name_pair MODERN_LAYER[] = {
    {"attn_norm", "attn_norm"},
    {"attn.Wqkv", "attn_qkv"},
    {"attn.Wo", "attn_output"},
    {"mlp_norm", "ffn_norm"},
    {"mlp.Wi", "ffn_up"},
    {"mlp.Wo", "ffn_down"},
    {NULL, NULL},
};

static const char *const BERT_CLASSES[] = {"BertModel", "BertForMaskedLM", NULL};
static const char *const BERT_RANK_CLASSES[] = {"BertForSequenceClassification", NULL};
static const char *const ROBERTA_CLASSES[] = {"XLMRobertaModel", "RobertaModel", "XLMRobertaForMaskedLM", "RobertaForMaskedLM",
                                              NULL};
static const char *const ROBERTA_RANK_CLASSES[] = {"XLMRobertaForSequenceClassification", "RobertaForSequenceClassification",
                                                   NULL};
static const char *const MODERN_CLASSES[] = {"ModernBertModel", "ModernBertForMaskedLM", NULL};
static const char *const MODERN_RANK_CLASSES[] = {"ModernBertForSequenceClassification", NULL};
static const char *const GEMMA_EMBEDDING_CLASSES[] = {"Gemma3TextModel", NULL};
static const char *const NOMIC_CLASSES[] = {"NomicBertModel", NULL};
static const char *const LLAMA_CLASSES[] = {"LlamaForCausalLM", "MistralForCausalLM", NULL};
static const char *const QWEN2_CLASSES[] = {"Qwen2ForCausalLM", NULL};
static const char *const QWEN3_CLASSES[] = {"Qwen3ForCausalLM", NULL};
static const char *const GEMMA3_CLASSES[] = {"Gemma3ForCausalLM", NULL};
static const char *const GEMMA2_CLASSES[] = {"Gemma2ForCausalLM", NULL};
static const char *const PHI3_CLASSES[] = {"Phi3ForCausalLM", NULL};
static const char *const GRANITE_CLASSES[] = {"GraniteForCausalLM", NULL};
static const char *const OLMO2_CLASSES[] = {"Olmo2ForCausalLM", NULL};
static const char *const SMOLLM3_CLASSES[] = {"SmolLM3ForCausalLM", NULL};

#define DECODER_NAMES .prefix = "model.", .layers = "layers.", .once = DECODER_ONCE

const architecture_names ARCHITECTURES[] = {
    {.name = "bert",
     .classes = BERT_CLASSES,
     .prefix = "bert.",
     .layers = "encoder.layer.",
     .once = BERT_ONCE,
     .each = BERT_LAYER,
     .activation = "gelu",
     .encoder = true},
    {.name = "bert",
     .classes = BERT_RANK_CLASSES,
     .prefix = "bert.",
     .layers = "encoder.layer.",
     .once = BERT_RANK_ONCE,
     .each = BERT_LAYER,
     .activation = "gelu",
     .encoder = true,
     .ranks = true},
    {.name = "bert",
     .classes = ROBERTA_CLASSES,
     .prefix = "roberta.",
     .layers = "encoder.layer.",
     .once = BERT_ONCE,
     .each = BERT_LAYER,
     .activation = "gelu",
     .encoder = true,
     .places_behind_padding = true},
    {.name = "bert",
     .classes = ROBERTA_RANK_CLASSES,
     .prefix = "roberta.",
     .layers = "encoder.layer.",
     .once = BERT_RANK_ONCE,
     .each = BERT_LAYER,
     .activation = "gelu",
     .encoder = true,
     .ranks = true,
     .places_behind_padding = true},
    {.name = "modern-bert",
     .classes = MODERN_CLASSES,
     .prefix = "model.",
     .layers = "layers.",
     .once = MODERN_ONCE,
     .each = MODERN_LAYER,
     .activation = "gelu",
     .encoder = true},
    {.name = "modern-bert",
     .classes = MODERN_RANK_CLASSES,
     .prefix = "model.",
     .layers = "layers.",
     .once = MODERN_RANK_ONCE,
     .each = MODERN_LAYER,
     .activation = "gelu",
     .encoder = true,
     .ranks = true},
    {.name = "gemma-embedding",
     .classes = GEMMA_EMBEDDING_CLASSES,
     DECODER_NAMES,
     .each = GEMMA3_LAYER,
     .activation = "gelu_pytorch_tanh",
     .norms_one = true,
     .dense = true},
    {.name = "nomic-bert",
     .classes = NOMIC_CLASSES,
     .prefix = "bert.",
     .layers = "encoder.layers.",
     .once = NOMIC_ONCE,
     .each = NOMIC_LAYER,
     .activation = "swiglu",
     .encoder = true},
    {.name = "llama", .classes = LLAMA_CLASSES, DECODER_NAMES, .each = DECODER_LAYER, .activation = "silu", .permutes = true},
    {.name = "qwen2", .classes = QWEN2_CLASSES, DECODER_NAMES, .each = DECODER_LAYER, .activation = "silu"},
    {.name = "qwen3", .classes = QWEN3_CLASSES, DECODER_NAMES, .each = DECODER_LAYER, .activation = "silu"},
    {.name = "gemma3",
     .classes = GEMMA3_CLASSES,
     DECODER_NAMES,
     .each = GEMMA3_LAYER,
     .activation = "gelu_pytorch_tanh",
     .norms_one = true},
    {.name = "gemma2",
     .classes = GEMMA2_CLASSES,
     DECODER_NAMES,
     .each = GEMMA3_LAYER,
     .activation = "gelu_pytorch_tanh",
     .norms_one = true},
    {.name = "phi3", .classes = PHI3_CLASSES, DECODER_NAMES, .each = PHI3_LAYER, .activation = "silu"},
    {.name = "granite",
     .classes = GRANITE_CLASSES,
     DECODER_NAMES,
     .each = DECODER_LAYER,
     .activation = "silu",
     .permutes = true},
    {.name = "olmo2", .classes = OLMO2_CLASSES, DECODER_NAMES, .each = OLMO2_LAYER, .activation = "silu"},
    {.name = "smollm3",
     .classes = SMOLLM3_CLASSES,
     DECODER_NAMES,
     .each = DECODER_LAYER,
     .activation = "silu",
     .permutes = true},
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

/* Starts of names that are not written. */
static const char *const SKIPPED[] = {"embeddings.position_ids", "pooler.", "cls.", "lm_head.", "head.", "decoder.", NULL};

static const char *behind(const char *text, const char *start)
{
    const size_t length = strlen(start);
    return strncmp(text, start, length) == 0 ? text + length : NULL;
}

/* The entry whose name and a ".weight" or ".bias" behind it are all of `name`. Gives the ending. */
static const name_pair *find_pair(const name_pair *pairs, const char *name, const char **ending)
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
    const char *inside = behind(name, architecture->prefix);
    const char *rest = inside ? inside : name, *ending = NULL;
    const char *layers = behind(rest, architecture->layers);
    *out = (tensor_name){0};
    if (!layers) {
        const name_pair *found = find_pair(architecture->once, rest, &ending);
        if (found) {
            snprintf(out->name, sizeof out->name, "%s%s", found->to, ending);
            out->norm = strstr(found->to, "norm") != NULL;
            return WW_OK;
        }
    } else {
        char *dot = NULL;
        const long layer = strtol(layers, &dot, 10);
        const name_pair *found = dot > layers && *dot == '.' && layer >= 0 && layer < 100000
                                     ? find_pair(architecture->each, dot + 1, &ending)
                                     : NULL;
        if (found) {
            snprintf(out->name, sizeof out->name, "blk.%ld.%s%s", layer, found->to, ending);
            out->query = strcmp(found->to, "attn_q") == 0;
            out->key = strcmp(found->to, "attn_k") == 0;
            out->norm = strstr(found->to, "norm") != NULL;
            return WW_OK;
        }
    }
    out->skip = is_skipped(architecture, rest);
    if (out->skip)
        return WW_OK;
    return ww_fail(WW_UNSUPPORTED, "the tensor '%.200s' has no name in GGUF files of the architecture '%s'", name,
                   architecture->name);
}
