/* Names of tensors. */
#include "model/convert/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

#define NAME(folder, gguf) {.from = (folder), .to = (gguf)}

static const name_pair BERT_ONCE[] = {
    NAME("embeddings.word_embeddings", "token_embd"),
    NAME("embeddings.position_embeddings", "position_embd"),
    NAME("embeddings.token_type_embeddings", "token_types"),
    NAME("embeddings.LayerNorm", "token_embd_norm"),
    {.from = NULL},
};
static const name_pair BERT_LAYER[] = {
    NAME("attention.self.query", "attn_q"),
    NAME("attention.self.key", "attn_k"),
    NAME("attention.self.value", "attn_v"),
    NAME("attention.output.dense", "attn_output"),
    NAME("attention.output.LayerNorm", "attn_output_norm"),
    NAME("intermediate.dense", "ffn_up"),
    NAME("output.dense", "ffn_down"),
    NAME("output.LayerNorm", "layer_output_norm"),
    {.from = NULL},
};
static const name_pair BERT_RANK[] = {
    NAME("pooler.dense", "cls"),
    NAME("classifier.dense", "cls"),
    NAME("classifier.out_proj", "cls.output"),
    NAME("classifier", "cls.output"),
    {.from = NULL},
};
static const name_pair JINA[] = {
    NAME("mlp.gated_layers", "ffn_up"),
    NAME("mlp.wo", "ffn_down"),
    NAME("mlp.layernorm", "layer_output_norm"),
    {.from = NULL},
};
static const name_pair MPNET[] = {
    NAME("encoder.relative_attention_bias", "attn_rel_b"),
    NAME("attention.attn.q", "attn_q"),
    NAME("attention.attn.k", "attn_k"),
    NAME("attention.attn.v", "attn_v"),
    NAME("attention.attn.o", "attn_output"),
    NAME("attention.LayerNorm", "attn_output_norm"),
    {.from = NULL},
};
static const name_pair MODEL2VEC[] = {
    {.from = "embeddings", .to = "token_embd.weight", .whole = true},
    {.from = NULL},
};
static const name_pair NOMIC_ONCE[] = {
    NAME("embeddings.word_embeddings", "token_embd"),
    NAME("embeddings.token_type_embeddings", "token_types"),
    NAME("emb_ln", "token_embd_norm"),
    {.from = NULL},
};
static const name_pair NOMIC_LAYER[] = {
    NAME("attn.Wqkv", "attn_qkv"),      NAME("attn.out_proj", "attn_output"),
    NAME("norm1", "attn_output_norm"),  NAME("mlp.fc11", "ffn_up"),
    NAME("mlp.fc12", "ffn_gate"),       NAME("mlp.fc2", "ffn_down"),
    NAME("norm2", "layer_output_norm"), {.from = NULL},
};
static const name_pair MODERN_ONCE[] = {
    NAME("embeddings.tok_embeddings", "token_embd"),
    NAME("embeddings.norm", "token_embd_norm"),
    NAME("final_norm", "output_norm"),
    {.from = NULL},
};
static const name_pair MODERN_LAYER[] = {
    NAME("attn_norm", "attn_norm"),
    NAME("attn.Wqkv", "attn_qkv"),
    NAME("attn.Wo", "attn_output"),
    NAME("mlp_norm", "ffn_norm"),
    NAME("mlp.Wi", "ffn_up"),
    NAME("mlp.Wo", "ffn_down"),
    {.from = NULL},
};
static const name_pair MODERN_RANK[] = {
    NAME("head.dense", "cls"),
    NAME("head.norm", "cls.norm"),
    NAME("classifier", "cls.output"),
    {.from = NULL},
};
static const name_pair DECODER_ONCE[] = {
    NAME("embed_tokens", "token_embd"),
    NAME("norm", "output_norm"),
    NAME("lm_head", "output"),
    {.from = NULL},
};
static const name_pair DECODER_LAYER[] = {
    NAME("self_attn.q_proj", "attn_q"),
    NAME("self_attn.k_proj", "attn_k"),
    NAME("self_attn.v_proj", "attn_v"),
    NAME("self_attn.o_proj", "attn_output"),
    NAME("self_attn.q_norm", "attn_q_norm"),
    NAME("self_attn.k_norm", "attn_k_norm"),
    NAME("mlp.gate_proj", "ffn_gate"),
    NAME("mlp.up_proj", "ffn_up"),
    NAME("mlp.down_proj", "ffn_down"),
    NAME("input_layernorm", "attn_norm"),
    NAME("post_attention_layernorm", "ffn_norm"),
    {.from = NULL},
};

/* Gemma and OLMo norm the outputs of attention and the feed-forward network, under names that mean other norms elsewhere. */
static const name_pair POST_NORMS[] = {
    NAME("post_attention_layernorm", "post_attention_norm"),
    NAME("pre_feedforward_layernorm", "ffn_norm"),
    NAME("post_feedforward_layernorm", "post_ffw_norm"),
    {.from = NULL},
};
static const name_pair PHI3[] = {
    NAME("self_attn.qkv_proj", "attn_qkv"),
    NAME("mlp.gate_up_proj", "ffn_up"),
    {.from = NULL},
};
static const name_pair EXPERTS[] = {
    NAME("mlp.gate", "ffn_gate_inp"),
    NAME("mlp.experts.*.gate_proj", "ffn_gate_exps"),
    NAME("mlp.experts.*.up_proj", "ffn_up_exps"),
    NAME("mlp.experts.*.down_proj", "ffn_down_exps"),
    {.from = NULL},
};
static const name_pair GPT_OSS[] = {
    NAME("post_attention_layernorm", "post_attention_norm"),
    {.from = "self_attn.sinks", .to = "attn_sinks.weight", .whole = true},
    NAME("mlp.router", "ffn_gate_inp"),
    {.from = "mlp.experts.gate_up_proj_blocks",
     .to = "ffn_gate_exps.weight",
     .second = "ffn_up_exps.weight",
     .whole = true,
     .coded = true},
    {.from = "mlp.experts.gate_up_proj_bias", .to = "ffn_gate_exps.bias", .second = "ffn_up_exps.bias", .whole = true},
    {.from = "mlp.experts.down_proj_blocks", .to = "ffn_down_exps.weight", .whole = true, .coded = true},
    {.from = "mlp.experts.down_proj_bias", .to = "ffn_down_exps.bias", .whole = true},
    {.from = NULL},
};

#define BERT_NAMES .layers = "encoder.layer.", .once = BERT_ONCE, .each = BERT_LAYER, .activation = "gelu", .encoder = true
#define MODERN_NAMES                                                                                                           \
    .prefix = "model.", .layers = "layers.", .once = MODERN_ONCE, .each = MODERN_LAYER, .activation = "gelu", .encoder = true
#define DECODER_NAMES .prefix = "model.", .layers = "layers.", .once = DECODER_ONCE, .each = DECODER_LAYER
#define GEMMA_NAMES   DECODER_NAMES, .more = POST_NORMS, .activation = "gelu_pytorch_tanh", .norms_one = true

const architecture_names ARCHITECTURES[] = {
    {.name = "bert", .classes = {"BertModel", "BertForMaskedLM"}, .prefix = "bert.", BERT_NAMES},
    {.name = "bert",
     .classes = {"BertForSequenceClassification"},
     .prefix = "bert.",
     BERT_NAMES,
     .more = BERT_RANK,
     .ranks = true},
    {.name = "bert",
     .classes = {"XLMRobertaModel", "RobertaModel", "XLMRobertaForMaskedLM", "RobertaForMaskedLM"},
     .prefix = "roberta.",
     BERT_NAMES,
     .skips_padding = true},
    {.name = "bert",
     .classes = {"XLMRobertaForSequenceClassification", "RobertaForSequenceClassification"},
     .prefix = "roberta.",
     BERT_NAMES,
     .more = BERT_RANK,
     .ranks = true,
     .skips_padding = true},
    {.name = "jina-bert-v2", .classes = {"JinaBertModel", "JinaBertForMaskedLM"}, .prefix = "bert.", BERT_NAMES, .more = JINA},
    {.name = "mpnet",
     .classes = {"MPNetModel", "MPNetForMaskedLM"},
     .prefix = "mpnet.",
     BERT_NAMES,
     .more = MPNET,
     .skips_padding = true},
    {.name = "model2vec",
     .classes = {"StaticModel"},
     .prefix = "",
     .layers = "layers.",
     .once = MODEL2VEC,
     .encoder = true,
     .lookup = true},
    {.name = "modern-bert", .classes = {"ModernBertModel", "ModernBertForMaskedLM"}, MODERN_NAMES},
    {.name = "modern-bert",
     .classes = {"ModernBertForSequenceClassification"},
     MODERN_NAMES,
     .more = MODERN_RANK,
     .ranks = true},
    {.name = "gemma-embedding", .classes = {"Gemma3TextModel"}, GEMMA_NAMES, .dense = true},
    {.name = "nomic-bert",
     .classes = {"NomicBertModel"},
     .prefix = "bert.",
     .layers = "encoder.layers.",
     .once = NOMIC_ONCE,
     .each = NOMIC_LAYER,
     .activation = "swiglu",
     .encoder = true},
    {.name = "llama",
     .classes = {"LlamaForCausalLM", "MistralForCausalLM"},
     DECODER_NAMES,
     .activation = "silu",
     .permutes = true},
    {.name = "mistral3",
     .classes = {"Ministral3ForCausalLM", "Mistral3ForConditionalGeneration"},
     DECODER_NAMES,
     .activation = "silu",
     .permutes = true,
     .nested = true},
    {.name = "qwen2", .classes = {"Qwen2ForCausalLM", "Qwen2Model"}, DECODER_NAMES, .activation = "silu"},
    {.name = "qwen3", .classes = {"Qwen3ForCausalLM", "Qwen3Model"}, DECODER_NAMES, .activation = "silu"},
    {.name = "qwen3moe", .classes = {"Qwen3MoeForCausalLM"}, DECODER_NAMES, .more = EXPERTS, .activation = "silu"},
    {.name = "gpt-oss", .classes = {"GptOssForCausalLM"}, DECODER_NAMES, .more = GPT_OSS, .activation = "silu"},
    {.name = "gemma3", .classes = {"Gemma3ForCausalLM"}, GEMMA_NAMES},
    {.name = "gemma2", .classes = {"Gemma2ForCausalLM"}, GEMMA_NAMES},
    {.name = "phi3", .classes = {"Phi3ForCausalLM"}, DECODER_NAMES, .more = PHI3, .activation = "silu"},
    {.name = "granite", .classes = {"GraniteForCausalLM"}, DECODER_NAMES, .activation = "silu", .permutes = true},
    {.name = "olmo2",
     .classes = {"Olmo2ForCausalLM", "Olmo3ForCausalLM"},
     DECODER_NAMES,
     .more = POST_NORMS,
     .activation = "silu"},
    {.name = "smollm3", .classes = {"SmolLM3ForCausalLM"}, DECODER_NAMES, .activation = "silu", .permutes = true},
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

/* Prefixes of tensors that are not written: of encoders, and of vision models. */
static const char *const SKIPPED[] = {"embeddings.position_ids", "pooler.", "cls.", "lm_head.", "head.", "decoder.", NULL};
static const char *const SKIPPED_NESTED[] = {"vision_tower.", "multi_modal_projector.", NULL};

static const char *behind(const char *text, const char *start)
{
    const size_t length = strlen(start);
    return strncmp(text, start, length) == 0 ? text + length : NULL;
}

/* The rest of a name after a pattern that may contain a star; NULL if it does not match. */
static const char *after_pattern(const char *name, const char *pattern, int64_t *expert)
{
    const char *star = strchr(pattern, '*');
    if (!star)
        return behind(name, pattern);
    if (strncmp(name, pattern, (size_t)(star - pattern)) != 0)
        return NULL;
    char *end = NULL;
    const char *digits = name + (star - pattern);
    *expert = strtol(digits, &end, 10);
    return end > digits && *digits >= '0' && *digits <= '9' ? behind(end, star + 1) : NULL;
}

/* Finds the entry whose name plus ".weight" or ".bias" is `name`, and the ending. */
static const name_pair *find_pair(const name_pair *pairs, const char *name, int64_t *expert, const char **ending)
{
    for (; pairs && pairs->from; pairs++) {
        const char *end = after_pattern(name, pairs->from, expert);
        const bool ends = end && (pairs->whole ? end[0] == '\0' : strcmp(end, ".weight") == 0 || strcmp(end, ".bias") == 0);
        if (ends) {
            *ending = end;
            return pairs;
        }
        *expert = -1;
    }
    return NULL;
}

static bool starts_with_one_of(const char *name, const char *const *starts)
{
    for (; *starts; starts++)
        if (behind(name, *starts))
            return true;
    return false;
}

/* Is the tensor the scales of another tensor's codes? It is read together with the codes. */
static bool is_scales(const architecture_names *architecture, const char *name)
{
    const char *end = strstr(name, "_scales");
    for (const name_pair *pair = architecture->more; pair && pair->from && end; pair++) {
        const size_t length = strlen(pair->from) - strlen("_blocks");
        if (pair->coded && end[strlen("_scales")] == '\0' && (size_t)(end - name) >= length &&
            strncmp(end - length, pair->from, length) == 0)
            return true;
    }
    return false;
}

static bool is_skipped(const architecture_names *architecture, const char *name)
{
    return (architecture->encoder && starts_with_one_of(name, SKIPPED)) ||
           (architecture->nested && starts_with_one_of(name, SKIPPED_NESTED)) || strstr(name, "rotary_emb.inv_freq") ||
           is_scales(architecture, name);
}

/* The name without its prefix. A text model inside another one has its own name as prefix, possibly after "model.". */
static const char *without_prefix(const architecture_names *a, const char *name)
{
    const char *inside = a->nested ? behind(name, "model.language_model.") : NULL;
    if (!inside && a->nested)
        name = behind(name, "language_model.") ? behind(name, "language_model.") : name;
    inside = inside ? inside : behind(name, a->prefix);
    return inside ? inside : name;
}

ww_status names_map(const architecture_names *architecture, const char *name, tensor_name *out)
{
    const char *rest = without_prefix(architecture, name), *ending = "", *inside = rest;
    const char *layers = behind(rest, architecture->layers);
    char front[32] = "";
    *out = (tensor_name){.expert = -1};
    if (layers) {
        char *dot = NULL;
        const long layer = strtol(layers, &dot, 10);
        const bool numbered = dot > layers && *dot == '.' && layer >= 0 && layer < 100000;
        inside = numbered ? dot + 1 : "";
        snprintf(front, sizeof front, "blk.%ld.", layer);
    }
    const name_pair *found = find_pair(architecture->more, inside, &out->expert, &ending);
    if (!found)
        found = find_pair(layers ? architecture->each : architecture->once, inside, &out->expert, &ending);
    if (found) {
        snprintf(out->name, sizeof out->name, "%s%s%s", front, found->to, ending);
        if (found->second)
            snprintf(out->second, sizeof out->second, "%s%s%s", front, found->second, ending);
        out->query = strcmp(found->to, "attn_q") == 0;
        out->key = strcmp(found->to, "attn_k") == 0;
        out->norm = strstr(found->to, "norm") != NULL;
        out->coded = found->coded;
        return WW_OK;
    }
    out->skip = is_skipped(architecture, rest);
    if (out->skip)
        return WW_OK;
    return ww_fail(WW_UNSUPPORTED, "the tensor '%.200s' has no name in GGUF files of the architecture '%s'", name,
                   architecture->name);
}
