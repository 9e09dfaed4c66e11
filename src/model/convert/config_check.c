/* Refuses, by name, settings in config.json that GGUF has no key for or that models of an architecture do not have. */
#include <string.h>

#include "base/status.h"
#include "model/convert/folder.h"
#include "model/convert/keys.h"

static bool is(const architecture_names *a, const char *name)
{
    return strcmp(a->name, name) == 0;
}

/* Gemma 3, including EmbeddingGemma. */
static bool is_gemma3(const architecture_names *a)
{
    return is(a, "gemma3") || is(a, "gemma-embedding");
}

/* No key says which layers have a window: the last layer of each group sees everything. */
static ww_status check_layer_types(const architecture_names *a, const char *folder, const json_t *config)
{
    const size_t each = is_gemma3(a) ? 6 : is(a, "gemma2") || is(a, "gpt-oss") ? 2 : is(a, "olmo2") ? 4 : 0;
    const json_t *types = json_object_get(config, "layer_types");
    for (size_t i = 0; each > 0 && i < json_array_size(types); i++) {
        const char *type = json_string_value(json_array_get(types, i));
        if (!type || strcmp(type, i % each == each - 1 ? "full_attention" : "sliding_attention") != 0)
            return ww_fail(WW_UNSUPPORTED, "%s/config.json: layer_types says '%.40s' of layer %zu; every %s is full_attention",
                           folder, type ? type : "", i,
                           each == 6   ? "sixth"
                           : each == 4 ? "fourth"
                                       : "second");
    }
    return WW_OK;
}

/* Gemma 3: the base of rope in layers with a window and the scale of queries have no keys. */
static ww_status check_gemma3(const char *folder, const json_t *config)
{
    const int64_t heads = json_member_integer(config, "num_attention_heads", 1),
                  head = json_member_integer(config, "head_dim", 256);
    const int64_t width = json_member_integer(config, "hidden_size", -1),
                  layers = json_member_integer(config, "num_hidden_layers", -1);
    const int64_t scale = layers == 62 && heads > 0 ? width / heads : head;
    if (json_member_integer(config, "sliding_window_pattern", 6) != 6)
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: sliding_window_pattern is %lld; only 6 is supported", folder,
                       (long long)json_member_integer(config, "sliding_window_pattern", 6));
    if (json_member_real(config, "rope_local_base_freq", 10000) != 10000)
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: rope_local_base_freq is %g; only 10000 is supported", folder,
                       json_member_real(config, "rope_local_base_freq", 10000));
    if (json_member_real(config, "query_pre_attn_scalar", (double)scale) != (double)scale)
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: query_pre_attn_scalar is %g; only %lld is supported for this size",
                       folder, json_member_real(config, "query_pre_attn_scalar", 0), (long long)scale);
    static const char *const caps[] = {"attn_logit_softcapping", "final_logit_softcapping"};
    for (size_t i = 0; i < 2; i++)
        if (json_is_number(json_object_get(config, caps[i])))
            return ww_fail(WW_UNSUPPORTED, "%s/config.json: %s is not supported", folder, caps[i]);
    return WW_OK;
}

/* ModernBERT: other settings that its folders could have. */
static ww_status check_modern(const char *folder, const json_t *config)
{
    static const char *const flags[] = {"attention_bias", "mlp_bias", "norm_bias", "classifier_bias"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (json_member_bool(config, flags[i], false))
            return ww_fail(WW_UNSUPPORTED, "%s/config.json: %s is true; that is not supported", folder, flags[i]);
    if (json_member_integer(config, "global_attn_every_n_layers", 3) != 3)
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: global_attn_every_n_layers is %lld; only 3 is supported", folder,
                       (long long)json_member_integer(config, "global_attn_every_n_layers", 3));
    const char *activation = json_member_text(config, "classifier_activation", "gelu");
    if (strcmp(activation, "gelu") != 0)
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: classifier_activation is '%.40s'; only gelu is supported", folder,
                       activation);
    return WW_OK;
}

/* Nomic's encoder: other settings that its folders could have. */
static ww_status check_nomic(const char *folder, const json_t *config)
{
    static const struct {
        const char *key;
        bool value;
    } flags[] = {{"prenorm", false},      {"qkv_proj_bias", false}, {"mlp_fc1_bias", false},
                 {"mlp_fc2_bias", false}, {"use_rms_norm", false},  {"rotary_emb_interleaved", false}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (json_member_bool(config, flags[i].key, flags[i].value) != flags[i].value)
            return ww_fail(WW_UNSUPPORTED, "%s/config.json: %s is true; that is not supported", folder, flags[i].key);
    if (json_member_real(config, "rotary_emb_fraction", 1) != 1)
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: rotary_emb_fraction is %g; only 1 is supported", folder,
                       json_member_real(config, "rotary_emb_fraction", 1));
    if (json_member_real(config, "rotary_scaling_factor", 1) != 1)
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: rotary_scaling_factor is %g; scaling is not supported", folder,
                       json_member_real(config, "rotary_scaling_factor", 1));
    return WW_OK;
}

/* Checks that counts and sizes are 0 to 2^31 - 1, before anything is computed with them. */
static ww_status check_numbers(const char *folder, const json_t *config)
{
    static const char *const keys[] = {"hidden_size",
                                       "n_embd",
                                       "num_hidden_layers",
                                       "n_layer",
                                       "max_position_embeddings",
                                       "n_positions",
                                       "intermediate_size",
                                       "n_inner",
                                       "num_attention_heads",
                                       "n_head",
                                       "num_key_value_heads",
                                       "head_dim",
                                       "vocab_size",
                                       "type_vocab_size",
                                       "num_experts",
                                       "num_local_experts",
                                       "num_experts_per_tok",
                                       "moe_intermediate_size",
                                       "sliding_window",
                                       "sliding_window_pattern",
                                       "original_max_position_embeddings"};
    const json_t *const objects[] = {config, json_object_get(config, "rope_scaling")};
    for (size_t o = 0; o < sizeof objects / sizeof *objects; o++)
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            const int64_t value = json_member_integer(objects[o], keys[i], 0);
            if (value < 0 || value > INT32_MAX)
                return ww_fail(WW_CORRUPT_FILE, "%s/config.json: %s is %lld; it must be from 0 to %d", folder, keys[i],
                               (long long)value, INT32_MAX);
        }
    return WW_OK;
}

/* Gemma 2 has no key for the scale of queries. */
static ww_status check_gemma2(const char *folder, const json_t *config)
{
    const int64_t heads = json_member_integer(config, "num_attention_heads", 1);
    const int64_t layers = json_member_integer(config, "num_hidden_layers", -1);
    const int64_t scale = layers == 46 && heads > 0 ? json_member_integer(config, "hidden_size", -1) / heads
                                                    : json_member_integer(config, "head_dim", 256);
    if (json_member_real(config, "query_pre_attn_scalar", (double)scale) != (double)scale)
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: query_pre_attn_scalar is %g; only %lld is supported for this size",
                       folder, json_member_real(config, "query_pre_attn_scalar", 0), (long long)scale);
    return WW_OK;
}

/* SmolLM3: every fourth layer has no rope, and none a window. */
static ww_status check_smollm3(const char *folder, const json_t *config)
{
    const json_t *ropes = json_object_get(config, "no_rope_layers");
    for (size_t i = 0; i < json_array_size(ropes); i++)
        if (json_integer_value(json_array_get(ropes, i)) != (i % 4 != 3))
            return ww_fail(WW_UNSUPPORTED, "%s/config.json: no_rope_layers says %lld of layer %zu; every fourth has no rope",
                           folder, (long long)json_integer_value(json_array_get(ropes, i)), i);
    if (json_member_integer(config, "no_rope_layer_interval", 4) != 4)
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: no_rope_layer_interval is %lld; only 4 is supported", folder,
                       (long long)json_member_integer(config, "no_rope_layer_interval", 4));
    return WW_OK;
}

/* Qwen3's mixtures: every layer is one, and the shares of the chosen experts add up to 1. */
static ww_status check_qwen3moe(const char *folder, const json_t *config)
{
    if (json_array_size(json_object_get(config, "mlp_only_layers")) > 0 ||
        json_member_integer(config, "decoder_sparse_step", 1) != 1)
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: layers without experts are not supported", folder);
    if (!json_member_bool(config, "norm_topk_prob", false))
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: norm_topk_prob is not true; that is not supported", folder);
    return WW_OK;
}

static ww_status check_gpt_oss(const char *folder, const json_t *config)
{
    if (json_member_real(config, "swiglu_limit", 7) != 7)
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: swiglu_limit is %g; only 7 is supported", folder,
                       json_member_real(config, "swiglu_limit", 7));
    return WW_OK;
}

static ww_status check_mpnet(const char *folder, const json_t *config)
{
    if (json_member_integer(config, "relative_attention_num_buckets", 32) != 32)
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: relative_attention_num_buckets is %lld; only 32 is supported", folder,
                       (long long)json_member_integer(config, "relative_attention_num_buckets", 32));
    return WW_OK;
}

/* Jina's encoders with a gate; those without one have other tensors. */
static ww_status check_jina(const char *folder, const json_t *config)
{
    const char *type = json_member_text(config, "feed_forward_type", "geglu");
    if (strcmp(type, "geglu") != 0)
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: feed_forward_type is '%.40s'; only geglu is supported", folder, type);
    return WW_OK;
}

/* Yarn's cosines are multiplied with what GGUF implies, unless a multiplier is 1. */
static ww_status check_yarn(const char *folder, const json_t *config)
{
    const json_t *scaling = config_scaling(config);
    if (strcmp(scaling_type(scaling), "yarn") == 0 && json_member_real(scaling, "mscale", 1) != 1)
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: mscale is %g; only 1 is supported", folder,
                       json_member_real(scaling, "mscale", 1));
    return WW_OK;
}

static ww_status check_architecture(const architecture_names *a, const char *folder, const json_t *config)
{
    static const struct {
        const char *architecture;
        ww_status (*check)(const char *folder, const json_t *config);
    } checks[] = {{"modern-bert", check_modern}, {"gemma3", check_gemma3},     {"gemma-embedding", check_gemma3},
                  {"gemma2", check_gemma2},      {"smollm3", check_smollm3},   {"nomic-bert", check_nomic},
                  {"jina-bert-v2", check_jina},  {"qwen3moe", check_qwen3moe}, {"gpt-oss", check_gpt_oss},
                  {"mpnet", check_mpnet}};
    ww_status status = check_layer_types(a, folder, config);
    if (status == WW_OK)
        status = check_yarn(folder, config);
    for (size_t i = 0; i < sizeof checks / sizeof *checks && status == WW_OK; i++)
        if (is(a, checks[i].architecture))
            status = checks[i].check(folder, config);
    return status;
}

ww_status config_check(const architecture_names *a, const char *folder, const json_t *config)
{
    const ww_status numbers = check_numbers(folder, config);
    if (numbers != WW_OK || a->lookup)
        return numbers;
    const char *key = is_gemma3(a) || is(a, "gemma2") || is(a, "modern-bert") ? "hidden_activation"
                      : is(a, "nomic-bert")                                   ? "activation_function"
                                                                              : "hidden_act";
    const char *activation = json_member_text(config, key, a->activation);
    const char *known = is(a, "jina-bert-v2") ? "alibi" : "absolute";
    const char *positions = json_member_text(config, "position_embedding_type", known);
    if (strcmp(activation, a->activation) != 0)
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: %s is '%.40s'; models of the architecture '%s' have %s", folder, key,
                       activation, a->name, a->activation);
    if ((is(a, "bert") || is(a, "jina-bert-v2")) && strcmp(positions, known) != 0)
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: position_embedding_type is '%.40s'; only %s is supported", folder,
                       positions, known);
    const int64_t skipped = positions_skipped(a, config);
    if (skipped < 0 || skipped >= json_member_integer(config, "max_position_embeddings", INT32_MAX))
        return ww_fail(WW_CORRUPT_FILE, "%s/config.json: pad_token_id is %lld; positions begin after it", folder,
                       (long long)skipped - 1);
    if (a->dense && !json_member_bool(config, "use_bidirectional_attention", false))
        return ww_fail(WW_UNSUPPORTED,
                       "%s/config.json: use_bidirectional_attention is not true; the class is for models that embed", folder);
    return check_architecture(a, folder, config);
}
