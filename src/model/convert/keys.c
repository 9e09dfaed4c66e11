/* Writing the keys of a GGUF file, and those that come from config.json. */
#include "model/convert/keys.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "model/convert/folder.h"

static void write_value(key_writer *w, const char *key, ww_gguf_value v)
{
    char whole[128];
    snprintf(whole, sizeof whole, "%s%s", key[0] == '.' ? w->architecture->name : "", key);
    v.struct_size = sizeof v;
    v.key = whole;
    if (w->status == WW_OK)
        w->status = ww_gguf_writer_value(w->out, &v);
}

static void write_one(key_writer *w, const char *key, ww_gguf_kind kind, const void *value, size_t bytes)
{
    write_value(w, key, (ww_gguf_value){.kind = kind, .element = kind, .count = 1, .data = value, .data_bytes = bytes});
}

void key_u32(key_writer *w, const char *key, int64_t value)
{
    const uint32_t number = (uint32_t)value;
    if (w->status == WW_OK && (value < 0 || value > UINT32_MAX))
        w->status = ww_fail(WW_CORRUPT_FILE, "config.json: the number for '%s' is missing or out of range", key);
    write_one(w, key, WW_GGUF_U32, &number, sizeof number);
}

void key_f32(key_writer *w, const char *key, double value)
{
    const float number = (float)value;
    write_one(w, key, WW_GGUF_F32, &number, sizeof number);
}

void key_bool(key_writer *w, const char *key, bool value)
{
    const unsigned char byte = value;
    write_one(w, key, WW_GGUF_BOOL, &byte, 1);
}

void key_text(key_writer *w, const char *key, const char *text)
{
    const size_t bytes = strlen(text);
    write_value(
        w, key,
        (ww_gguf_value){
            .kind = WW_GGUF_STRING, .element = WW_GGUF_STRING, .count = (int64_t)bytes, .data = text, .data_bytes = bytes});
}

ww_status text_list_add(text_list *list, const char *text, size_t bytes)
{
    const uint64_t length = bytes;
    const size_t more = sizeof length + bytes;
    if (more > list->capacity - list->size) {
        const size_t capacity = 2 * list->capacity + more + 256;
        char *larger = memory_resize(list->bytes, capacity);
        if (!larger)
            return memory_failed("vocabulary", capacity);
        list->bytes = larger;
        list->capacity = capacity;
    }
    memcpy(list->bytes + list->size, &length, sizeof length);
    if (bytes > 0)
        memcpy(list->bytes + list->size + sizeof length, text, bytes);
    list->size += more;
    list->count++;
    return WW_OK;
}

void text_list_free(text_list *list)
{
    memory_free(list->bytes);
    *list = (text_list){0};
}

void key_texts(key_writer *w, const char *key, const text_list *list)
{
    write_value(w, key,
                (ww_gguf_value){.kind = WW_GGUF_ARRAY,
                                .element = WW_GGUF_STRING,
                                .count = list->count,
                                .data = list->bytes,
                                .data_bytes = list->size});
}

void key_array(key_writer *w, const char *key, ww_gguf_kind element, const void *values, int64_t count)
{
    const size_t each = element == WW_GGUF_U8 ? 1 : 4; /* otherwise i32 or f32 */
    write_value(
        w, key,
        (ww_gguf_value){
            .kind = WW_GGUF_ARRAY, .element = element, .count = count, .data = values, .data_bytes = (size_t)count * each});
}

/* ---- config.json --------------------------------------------------------------------------------------------------------- */

const json_t *config_scaling(const json_t *config)
{
    const json_t *older = json_object_get(config, "rope_scaling");
    return json_is_object(older) ? older : json_object_get(config, "rope_parameters");
}

const char *scaling_type(const json_t *scaling)
{
    return json_member_text(scaling, "rope_type", json_member_text(scaling, "type", ""));
}

/* One of yarn's numbers, if config.json has it. */
static void key_yarn(key_writer *w, const char *key, const json_t *scaling, const char *from)
{
    if (json_is_number(json_object_get(scaling, from)))
        key_f32(w, key, json_member_real(scaling, from, 1));
}

/* Cosines are multiplied with 1 + 0.1 log(factor), unless the configuration has another factor. */
static void keys_of_yarn(key_writer *w, const json_t *scaling)
{
    const double factor = json_member_real(scaling, "factor", 1), usual = factor > 1 ? 1 + 0.1 * log(factor) : 1;
    const double attention = json_member_real(scaling, "attention_factor", usual);
    key_yarn(w, ".rope.scaling.yarn_beta_fast", scaling, "beta_fast");
    key_yarn(w, ".rope.scaling.yarn_beta_slow", scaling, "beta_slow");
    key_yarn(w, ".rope.scaling.yarn_log_multiplier", scaling, "mscale_all_dim");
    key_yarn(w, ".attention.temperature_scale", scaling, "llama_4_scaling_beta");
    if (fabs(attention - usual) > 1e-6 * usual)
        key_f32(w, ".rope.scaling.attn_factor", attention / usual);
}

/* Longrope: cosines grow with the logarithm of the ratio of the context to the original one. */
static void keys_of_longrope(key_writer *w, const json_t *config, const json_t *scaling)
{
    const int64_t original = json_member_integer(config, "original_max_position_embeddings",
                                                 json_member_integer(scaling, "original_max_position_embeddings", -1));
    const double scale = (double)json_member_integer(config, "max_position_embeddings", 0) / (double)original;
    const double usual = scale > 1 && original > 1 ? sqrt(1 + log(scale) / log((double)original)) : 1;
    key_u32(w, ".rope.scaling.original_context_length", original);
    key_f32(w, ".rope.scaling.attn_factor", json_member_real(scaling, "attention_factor", usual));
}

static void keys_of_scaling(key_writer *w, const json_t *config)
{
    const json_t *scaling = config_scaling(config);
    const char *type = scaling_type(scaling);
    if (!json_is_object(scaling) || type[0] == '\0' || strcmp(type, "default") == 0 || strcmp(type, "llama3") == 0)
        return; /* llama3's is a tensor: rope_freqs.weight */
    if (strcmp(type, "longrope") == 0 || strcmp(type, "su") == 0) {
        keys_of_longrope(w, config, scaling);
        return;
    }
    if (strcmp(type, "linear") != 0 && strcmp(type, "yarn") != 0) {
        if (w->status == WW_OK)
            w->status =
                ww_fail(WW_UNSUPPORTED,
                        "config.json: the rope scaling '%.40s' is not known; known are linear, yarn, llama3, longrope", type);
        return;
    }
    key_text(w, ".rope.scaling.type", type);
    key_f32(w, ".rope.scaling.factor", json_member_real(scaling, "factor", 1));
    if (json_object_get(scaling, "original_max_position_embeddings"))
        key_u32(w, ".rope.scaling.original_context_length",
                json_member_integer(scaling, "original_max_position_embeddings", -1));
    if (strcmp(type, "yarn") == 0)
        keys_of_yarn(w, scaling);
}

/* Reads a number that has two possible names in config.json. */
static int64_t either(const json_t *config, const char *usual, const char *other)
{
    return json_member_integer(config, usual, json_member_integer(config, other, -1));
}

/* Gemma 3, and EmbeddingGemma, which is one. */
static bool is_gemma3(const architecture_names *a)
{
    return strcmp(a->name, "gemma3") == 0 || strcmp(a->name, "gemma-embedding") == 0;
}

static bool is(const architecture_names *a, const char *name)
{
    return strcmp(a->name, name) == 0;
}

static bool is_modern(const architecture_names *a)
{
    return strcmp(a->name, "modern-bert") == 0;
}

int64_t positions_skipped(const architecture_names *a, const json_t *config)
{
    return a->skips_padding ? json_member_integer(config, "pad_token_id", 1) + 1 : 0;
}

static bool is_nomic(const architecture_names *a)
{
    return strcmp(a->name, "nomic-bert") == 0;
}

/* Multipliers and caps, for architectures that have them. */
static void keys_of_scales(key_writer *w, const json_t *config)
{
    static const struct {
        const char *architecture, *from, *to;
        double otherwise;
    } scales[] = {{"granite", "embedding_multiplier", ".embedding_scale", 1},
                  {"granite", "residual_multiplier", ".residual_scale", 1},
                  {"granite", "attention_multiplier", ".attention.scale", 1},
                  {"granite", "logits_scaling", ".logit_scale", 1},
                  {"gemma2", "attn_logit_softcapping", ".attn_logit_softcapping", 50},
                  {"gemma2", "final_logit_softcapping", ".final_logit_softcapping", 30}};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
        if (is(w->architecture, scales[i].architecture) && !json_is_null(json_object_get(config, scales[i].from)))
            key_f32(w, scales[i].to, json_member_real(config, scales[i].from, scales[i].otherwise));
}

/* Elements of a head. */
static int64_t head_size(const architecture_names *a, const json_t *config)
{
    const int64_t heads = json_member_integer(config, "num_attention_heads", -1);
    const int64_t usual = heads > 0 ? json_member_integer(config, "hidden_size", -1) / heads : -1;
    return json_member_integer(config, "head_dim", is_gemma3(a) || is(a, "gemma2") ? 256 : usual);
}

int64_t config_turned(const architecture_names *a, const json_t *config)
{
    const json_t *rope = json_object_get(config, "rope_parameters"); /* newer files have it there */
    const double share = json_member_real(config, "partial_rotary_factor", json_member_real(rope, "partial_rotary_factor", 1));
    return (int64_t)((double)head_size(a, config) * share);
}

int64_t config_experts(const json_t *config)
{
    return either(config, "num_experts", "num_local_experts");
}

/* Keys of a mixture of experts; gpt-oss has the same number for the size of a network and of an expert. */
static void keys_of_experts(key_writer *w, const json_t *config)
{
    key_u32(w, ".expert_count", config_experts(config));
    key_u32(w, ".expert_used_count", either(config, "num_experts_per_tok", "experts_per_token"));
    key_u32(w, ".expert_feed_forward_length", either(config, "moe_intermediate_size", "intermediate_size"));
}

static void keys_of_decoder(key_writer *w, const json_t *config)
{
    const int64_t heads = json_member_integer(config, "num_attention_heads", -1);
    const int64_t width = json_member_integer(config, "hidden_size", -1);
    const int64_t head = head_size(w->architecture, config);
    const double base = is_gemma3(w->architecture) ? 1e6 : 10000;
    const json_t *rope = json_object_get(config, "rope_parameters"); /* newer files have it there */
    key_u32(w, ".attention.head_count_kv", json_member_integer(config, "num_key_value_heads", heads));
    key_f32(w, ".rope.freq_base", json_member_real(config, "rope_theta", json_member_real(rope, "rope_theta", base)));
    key_f32(w, ".attention.layer_norm_rms_epsilon", json_member_real(config, "rms_norm_eps", 1e-6));
    if (heads > 0 && head * heads != width) {
        key_u32(w, ".attention.key_length", head);
        key_u32(w, ".attention.value_length", head);
    }
    key_u32(w, ".vocab_size", json_member_integer(config, "vocab_size", -1));
    const bool windows = json_member_bool(config, "use_sliding_window", !is(w->architecture, "smollm3"));
    key_u32(w, ".rope.dimension_count", config_turned(w->architecture, config));
    keys_of_scales(w, config);
    if (config_experts(config) > 0)
        keys_of_experts(w, config);
    if (json_is_integer(json_object_get(config, "sliding_window")) && windows)
        key_u32(w, ".attention.sliding_window", json_member_integer(config, "sliding_window", -1));
    keys_of_scaling(w, config);
}

/* Reads a base of rope: in older files under its own name, in newer ones under the kind of layer. */
static double rope_base(const json_t *config, const char *key, const char *layers, double otherwise)
{
    const json_t *newer = json_object_get(json_object_get(config, "rope_parameters"), layers);
    return json_member_real(config, key, json_member_real(newer, "rope_theta", otherwise));
}

static void keys_of_modern(key_writer *w, const json_t *config)
{
    key_u32(w, ".vocab_size", json_member_integer(config, "vocab_size", -1));
    key_f32(w, ".rope.freq_base", rope_base(config, "global_rope_theta", "full_attention", 160000));
    key_f32(w, ".rope.freq_base_swa", rope_base(config, "local_rope_theta", "sliding_attention", 10000));
    key_u32(w, ".attention.sliding_window", json_member_integer(config, "local_attention", 128));
    if (w->architecture->ranks)
        key_bool(w, "warpwave.rank_mean", strcmp(json_member_text(config, "classifier_pooling", "cls"), "mean") == 0);
}

/* Decoders that were trained on to embed say that a token sees those after it, too. */
bool config_is_causal(const architecture_names *a, const json_t *config)
{
    return !a->encoder && !a->dense && json_member_bool(config, "is_causal", true);
}

void keys_of_config(key_writer *w, const json_t *config)
{
    key_u32(w, ".block_count", either(config, "num_hidden_layers", "n_layer"));
    key_u32(w, ".context_length",
            either(config, "max_position_embeddings", "n_positions") - positions_skipped(w->architecture, config));
    key_u32(w, ".embedding_length", either(config, "hidden_size", "n_embd"));
    key_u32(w, ".feed_forward_length", either(config, "intermediate_size", "n_inner"));
    key_u32(w, ".attention.head_count", either(config, "num_attention_heads", "n_head"));
    if (w->architecture->encoder) {
        const double eps = json_member_real(config, "norm_eps", is_modern(w->architecture) ? 1e-5 : 1e-12);
        key_f32(w, ".attention.layer_norm_epsilon",
                json_member_real(config, "layer_norm_eps", json_member_real(config, "layer_norm_epsilon", eps)));
        key_bool(w, ".attention.causal", false);
        if (is_nomic(w->architecture))
            key_f32(w, ".rope.freq_base", json_member_real(config, "rotary_emb_base", 10000));
        if (is_modern(w->architecture))
            keys_of_modern(w, config);
    } else {
        keys_of_decoder(w, config);
        if (!config_is_causal(w->architecture, config))
            key_bool(w, ".attention.causal", false);
    }
}
