/* The usual mixes. A mix has a type for most matrices, and gives more bits to those where an error costs most:
 *
 *   the output           (or the embeddings that serve for it) q6_K, unless everything is q8_0 or plain anyway
 *   attention's values   small, since keys and values have few heads, and each error is in every token's result
 *   ffn_down             its results are added to the stream that all later blocks see; most in the first and last blocks
 *   attention's output   the same, in the mixes of 2 and 3 bits
 *
 * S, M and L say how many of them. "Chosen blocks" are the first eighth, the last eighth, and every third between. The rules
 * are those that other programs follow under the same names, so that a file is what its name promises
 * (docs/guide/quantized.md).
 */
#include "warpwave/gguf/mix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/status.h"
#include "base/text.h"

typedef enum grade { PLAIN, Q2, Q3_S, Q3_M, Q3_L, Q4_S, Q4_M, Q5_S, Q5_M } grade;

static const mix mixes[] = {
    {"Q2_K", WW_QUANT_Q2_K, 10, Q2},     {"Q3_K_S", WW_QUANT_Q3_K, 11, Q3_S}, {"Q3_K_M", WW_QUANT_Q3_K, 12, Q3_M},
    {"Q3_K_L", WW_QUANT_Q3_K, 13, Q3_L}, {"Q4_K_S", WW_QUANT_Q4_K, 14, Q4_S}, {"Q4_K_M", WW_QUANT_Q4_K, 15, Q4_M},
    {"Q5_K_S", WW_QUANT_Q5_K, 16, Q5_S}, {"Q5_K_M", WW_QUANT_Q5_K, 17, Q5_M}, {"Q3_K", WW_QUANT_Q3_K, 12, Q3_M},
    {"Q4_K", WW_QUANT_Q4_K, 15, Q4_M},   {"Q5_K", WW_QUANT_Q5_K, 17, Q5_M},
};

/* general.file_type of models that are mostly of one type. */
static const struct {
    ww_quant_type type;
    uint32_t number;
} file_types[] = {{WW_QUANT_F32, 0},   {WW_QUANT_F16, 1},     {WW_QUANT_Q4_0, 2},    {WW_QUANT_Q4_1, 3},
                  {WW_QUANT_Q8_0, 7},  {WW_QUANT_Q5_0, 8},    {WW_QUANT_Q5_1, 9},    {WW_QUANT_Q6_K, 18},
                  {WW_QUANT_BF16, 32}, {WW_QUANT_IQ4_NL, 25}, {WW_QUANT_IQ4_XS, 30}, {WW_QUANT_MXFP4, 38}};

static bool is_for_activations(int type)
{
    return type == WW_QUANT_Q8_1 || type == WW_QUANT_Q8_K;
}

static ww_status unknown_type(const char *name)
{
    char list[512] = "";
    for (int type = 0; type < 64; type++) {
        const char *plain = ww_quant_name((ww_quant_type)type);
        if (!plain || is_for_activations(type))
            continue;
        text_append(list, sizeof list, *list ? ", " : "");
        text_append(list, sizeof list, plain);
    }
    return ww_fail(
        WW_INVALID_ARGUMENT,
        "unknown type '%.60s'; the mixes are Q2_K, Q3_K_S, Q3_K_M, Q3_K_L, Q4_K_S, Q4_K_M, Q5_K_S, Q5_K_M; the types: %s", name,
        list);
}

ww_status mix_find(const char *name, mix *found)
{
    ww_quant_type type;
    for (size_t i = 0; i < sizeof mixes / sizeof *mixes; i++)
        if (strcasecmp(name, mixes[i].name) == 0) {
            *found = mixes[i];
            for (size_t j = i; j-- > 0;) /* Q4_K is another name of Q4_K_M */
                if (mixes[j].file_type == found->file_type)
                    *found = mixes[j];
            return WW_OK;
        }
    if (ww_quant_find(name, &type) != WW_OK)
        return unknown_type(name);
    if (is_for_activations((int)type))
        return ww_fail(WW_INVALID_ARGUMENT, "%s is for activations, not for weights", ww_quant_name(type));
    *found = (mix){.name = ww_quant_name(type), .type = type, .file_type = UINT32_MAX, .grade = PLAIN};
    for (size_t i = 0; i < sizeof file_types / sizeof *file_types; i++)
        if (file_types[i].type == type)
            found->file_type = file_types[i].number;
    return WW_OK;
}

mix mix_pure(const mix *m)
{
    mix pure = {.name = ww_quant_name(m->type), .type = m->type, .file_type = m->file_type, .grade = PLAIN};
    for (size_t i = sizeof mixes / sizeof *mixes; i-- > 0;) /* the smallest of the type's mixes is nearest to it */
        if (mixes[i].type == m->type)
            pure.file_type = mixes[i].file_type;
    return pure;
}

/* ---- the model ----------------------------------------------------------------------------------------------------------- */

/* Reads a number under the architecture's name, "llama.block_count"; returns `missing` if it is absent or of another kind. */
static int64_t model_number(const ww_gguf *gguf, const char *architecture, const char *key, int64_t missing)
{
    char whole[160];
    int64_t value = 0;
    snprintf(whole, sizeof whole, "%.80s.%s", architecture, key);
    return ww_gguf_i64(gguf, whole, &value) == WW_OK ? value : missing;
}

/* The index of the block that a tensor belongs to, "blk.7.attn_v.weight"; -1 if it is not in a block. */
static int64_t block_of(const char *name)
{
    char *end;
    if (strncmp(name, "blk.", 4) != 0)
        return -1;
    const long number = strtol(name + 4, &end, 10);
    return end != name + 4 && *end == '.' && number >= 0 ? number : -1;
}

void mix_model_read(const ww_gguf *gguf, mix_model *model)
{
    ww_gguf_info info = ww_gguf_info_default();
    const char *architecture = "";
    int64_t index, blocks = 0;
    (void)ww_gguf_text(gguf, "general.architecture", &architecture, NULL);
    *model = (mix_model){.output = ww_gguf_find_tensor(gguf, "output.weight", &index) == WW_OK};
    (void)ww_gguf_describe(gguf, &info);
    for (int64_t i = 0; i < info.tensors; i++) {
        ww_gguf_tensor t = ww_gguf_tensor_default();
        if (ww_gguf_tensor_at(gguf, i, &t) == WW_OK && block_of(t.name) >= blocks)
            blocks = block_of(t.name) + 1;
    }
    const int64_t heads = model_number(gguf, architecture, "attention.head_count", 0);
    const int64_t kv = model_number(gguf, architecture, "attention.head_count_kv", heads);
    model->blocks = model_number(gguf, architecture, "block_count", blocks);
    model->experts = model_number(gguf, architecture, "expert_count", 0);
    model->heads_per_kv = kv > 0 ? heads / kv : 1;
    model->falcon = strcmp(architecture, "falcon") == 0;
    model->llama_70b = strcmp(architecture, "llama") == 0 && model->blocks == 80 && heads != kv;
}

/* ---- the rules ----------------------------------------------------------------------------------------------------------- */

static bool is_chosen(int64_t block, int64_t blocks)
{
    return block < blocks / 8 || block >= 7 * blocks / 8 || (block - blocks / 8) % 3 == 2;
}

static ww_quant_type values_type(const mix *m, const mix_model *model, int64_t block)
{
    ww_quant_type type = m->type;
    if (m->grade == Q2)
        type = model->heads_per_kv >= 4 ? WW_QUANT_Q4_K : WW_QUANT_Q3_K;
    else if (m->grade == Q3_M)
        type = block < 2 ? WW_QUANT_Q5_K : WW_QUANT_Q4_K;
    else if (m->grade == Q3_L || (m->grade == Q4_S && block < 4))
        type = WW_QUANT_Q5_K;
    else if ((m->grade == Q4_M || m->grade == Q5_M) && is_chosen(block, model->blocks))
        type = WW_QUANT_Q6_K;
    if (model->llama_70b && (type == WW_QUANT_Q3_K || type == WW_QUANT_Q4_K)) /* eight heads share them: they are small */
        type = WW_QUANT_Q5_K;
    return model->experts == 8 ? WW_QUANT_Q8_0 : type; /* small beside eight experts */
}

static ww_quant_type down_type(const mix *m, const mix_model *model, int64_t block)
{
    const bool chosen = is_chosen(block, model->blocks);
    switch (m->grade) {
    case Q2:
        return WW_QUANT_Q3_K;
    case Q3_M:
        if (block < model->blocks / 16)
            return WW_QUANT_Q5_K;
        return !model->falcon || chosen ? WW_QUANT_Q4_K : WW_QUANT_Q3_K;
    case Q3_L:
        return model->falcon ? WW_QUANT_Q4_K : WW_QUANT_Q5_K;
    case Q4_S:
        return !model->falcon && block < model->blocks / 8 ? WW_QUANT_Q5_K : WW_QUANT_Q4_K;
    case Q4_M:
        if (model->falcon)
            return block < model->blocks / 16 ? WW_QUANT_Q6_K : chosen ? WW_QUANT_Q5_K : WW_QUANT_Q4_K;
        return chosen ? WW_QUANT_Q6_K : WW_QUANT_Q4_K;
    case Q5_M:
        return chosen ? WW_QUANT_Q6_K : WW_QUANT_Q5_K;
    default:
        return m->type;
    }
}

static ww_quant_type attention_output_type(const mix *m, const mix_model *model)
{
    if (model->falcon)
        return m->grade == Q3_L ? WW_QUANT_Q4_K : m->type;
    if (model->experts == 8)
        return m->grade >= Q2 && m->grade <= Q4_M && m->grade != Q3_L ? WW_QUANT_Q5_K : m->type;
    return m->grade == Q2 ? WW_QUANT_Q3_K : m->grade == Q3_M ? WW_QUANT_Q4_K : m->grade == Q3_L ? WW_QUANT_Q5_K : m->type;
}

ww_quant_type mix_type(const mix *m, const mix_model *model, const char *name, bool pure)
{
    const int64_t block = block_of(name);
    if (pure || ww_quant_block_elements(m->type) == 1)
        return m->type;
    if (strcmp(name, model->output ? "output.weight" : "token_embd.weight") == 0)
        return m->type == WW_QUANT_Q8_0 ? WW_QUANT_Q8_0 : model->falcon ? WW_QUANT_Q8_0 : WW_QUANT_Q6_K;
    if (m->grade == PLAIN || block < 0)
        return m->type;
    if (strstr(name, "attn_v.weight"))
        return values_type(m, model, block);
    if (strstr(name, "attn_k.weight"))
        return model->experts == 8 ? WW_QUANT_Q8_0 : m->type;
    if (strstr(name, "attn_qkv.weight"))
        return m->grade == Q3_M || m->grade == Q3_L ? WW_QUANT_Q4_K
               : m->grade == Q4_M                   ? WW_QUANT_Q5_K
               : m->grade == Q5_M                   ? WW_QUANT_Q6_K
                                                    : m->type;
    if (strstr(name, "ffn_down"))
        return down_type(m, model, block);
    return strstr(name, "attn_output.weight") ? attention_output_type(m, model) : m->type;
}
