/* Keys of a GGUF file, and those that come from config.json. */
#include "model/convert/keys.h"

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
    const size_t each = element == WW_GGUF_U8 ? 1 : 4; /* else i32 and f32 */
    write_value(
        w, key,
        (ww_gguf_value){
            .kind = WW_GGUF_ARRAY, .element = element, .count = count, .data = values, .data_bytes = (size_t)count * each});
}

/* ---- config.json ----------------------------------------------------------------------------------------------------------
 */

static void keys_of_scaling(key_writer *w, const json_t *config)
{
    const json_t *older = json_object_get(config, "rope_scaling");
    const json_t *scaling = json_is_object(older) ? older : json_object_get(config, "rope_parameters");
    const char *type = json_member_text(scaling, "rope_type", json_member_text(scaling, "type", ""));
    if (!json_is_object(scaling) || type[0] == '\0' || strcmp(type, "default") == 0 || strcmp(type, "llama3") == 0)
        return; /* llama3's is a tensor: rope_freqs.weight */
    if (strcmp(type, "linear") != 0 && strcmp(type, "yarn") != 0) {
        if (w->status == WW_OK)
            w->status = ww_fail(WW_UNSUPPORTED,
                                "config.json: the rope scaling '%.40s' is not known; known are linear, yarn, llama3", type);
        return;
    }
    key_text(w, ".rope.scaling.type", type);
    key_f32(w, ".rope.scaling.factor", json_member_real(scaling, "factor", 1));
    if (json_object_get(scaling, "original_max_position_embeddings"))
        key_u32(w, ".rope.scaling.original_context_length",
                json_member_integer(scaling, "original_max_position_embeddings", -1));
}

/* Of the two names that config.json may have for a number. */
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
    return a->places_behind_padding ? json_member_integer(config, "pad_token_id", 1) + 1 : 0;
}

static bool is_nomic(const architecture_names *a)
{
    return strcmp(a->name, "nomic-bert") == 0;
}

/* Gemma 3: every sixth layer sees everything; this, the base of rope in the others and the scale of queries have no keys. */
static ww_status check_gemma3(const char *folder, const json_t *config)
{
    const int64_t heads = json_member_integer(config, "num_attention_heads", 1),
                  head = json_member_integer(config, "head_dim", 256);
    const int64_t width = json_member_integer(config, "hidden_size", -1),
                  layers = json_member_integer(config, "num_hidden_layers", -1);
    const int64_t scale = layers == 62 && heads > 0 ? width / heads : head;
    const json_t *types = json_object_get(config, "layer_types");
    if (json_member_integer(config, "sliding_window_pattern", 6) != 6)
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: sliding_window_pattern is %lld; 6 is known", folder,
                       (long long)json_member_integer(config, "sliding_window_pattern", 6));
    for (size_t i = 0; i < json_array_size(types); i++) {
        const char *type = json_string_value(json_array_get(types, i));
        if (!type || strcmp(type, i % 6 == 5 ? "full_attention" : "sliding_attention") != 0)
            return ww_fail(WW_UNSUPPORTED,
                           "%s/config.json: layer_types says '%.40s' of layer %zu; every sixth is full_attention", folder,
                           type ? type : "", i);
    }
    if (json_member_real(config, "rope_local_base_freq", 10000) != 10000)
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: rope_local_base_freq is %g; 10000 is known", folder,
                       json_member_real(config, "rope_local_base_freq", 10000));
    if (json_member_real(config, "query_pre_attn_scalar", (double)scale) != (double)scale)
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: query_pre_attn_scalar is %g; %lld is known for this size", folder,
                       json_member_real(config, "query_pre_attn_scalar", 0), (long long)scale);
    static const char *const caps[] = {"attn_logit_softcapping", "final_logit_softcapping"};
    for (size_t i = 0; i < 2; i++)
        if (json_is_number(json_object_get(config, caps[i])))
            return ww_fail(WW_UNSUPPORTED, "%s/config.json: %s is not supported", folder, caps[i]);
    return WW_OK;
}

/* ModernBERT: what else its folders could say. */
static ww_status check_modern(const char *folder, const json_t *config)
{
    static const char *const flags[] = {"attention_bias", "mlp_bias", "norm_bias", "classifier_bias"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (json_member_bool(config, flags[i], false))
            return ww_fail(WW_UNSUPPORTED, "%s/config.json: %s is true; that is not supported", folder, flags[i]);
    if (json_member_integer(config, "global_attn_every_n_layers", 3) != 3)
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: global_attn_every_n_layers is %lld; 3 is known", folder,
                       (long long)json_member_integer(config, "global_attn_every_n_layers", 3));
    const char *activation = json_member_text(config, "classifier_activation", "gelu");
    if (strcmp(activation, "gelu") != 0)
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: classifier_activation is '%.40s'; gelu is known", folder, activation);
    return WW_OK;
}

/* Nomic's encoder: what else its folders could say. */
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
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: rotary_emb_fraction is %g; 1 is known", folder,
                       json_member_real(config, "rotary_emb_fraction", 1));
    if (json_member_real(config, "rotary_scaling_factor", 1) != 1)
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: rotary_scaling_factor is %g; no scaling is known", folder,
                       json_member_real(config, "rotary_scaling_factor", 1));
    return WW_OK;
}

/* Counts and sizes are from 0 to 2^31 - 1 before anything is computed with them. */
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

/* Gemma 2 alternates, and has no key for the scale of queries. */
static ww_status check_gemma2(const char *folder, const json_t *config)
{
    const int64_t heads = json_member_integer(config, "num_attention_heads", 1);
    const int64_t layers = json_member_integer(config, "num_hidden_layers", -1);
    const int64_t scale = layers == 46 && heads > 0 ? json_member_integer(config, "hidden_size", -1) / heads
                                                    : json_member_integer(config, "head_dim", 256);
    const json_t *types = json_object_get(config, "layer_types");
    for (size_t i = 0; i < json_array_size(types); i++) {
        const char *type = json_string_value(json_array_get(types, i));
        if (!type || strcmp(type, i % 2 ? "full_attention" : "sliding_attention") != 0)
            return ww_fail(WW_UNSUPPORTED,
                           "%s/config.json: layer_types says '%.40s' of layer %zu; every second is full_attention", folder,
                           type ? type : "", i);
    }
    if (json_member_real(config, "query_pre_attn_scalar", (double)scale) != (double)scale)
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: query_pre_attn_scalar is %g; %lld is known for this size", folder,
                       json_member_real(config, "query_pre_attn_scalar", 0), (long long)scale);
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
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: no_rope_layer_interval is %lld; 4 is known", folder,
                       (long long)json_member_integer(config, "no_rope_layer_interval", 4));
    return WW_OK;
}

ww_status config_check(const architecture_names *a, const char *folder, const json_t *config)
{
    const ww_status numbers = check_numbers(folder, config);
    if (numbers != WW_OK)
        return numbers;
    const char *key = is_gemma3(a) || is(a, "gemma2") || is_modern(a) ? "hidden_activation"
                      : is_nomic(a)                                   ? "activation_function"
                                                                      : "hidden_act";
    const char *activation = json_member_text(config, key, a->activation);
    const char *positions = json_member_text(config, "position_embedding_type", "absolute");
    if (strcmp(activation, a->activation) != 0)
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: %s is '%.40s'; models of the architecture '%s' have %s", folder, key,
                       activation, a->name, a->activation);
    if (strcmp(a->name, "bert") == 0 && strcmp(positions, "absolute") != 0)
        return ww_fail(WW_UNSUPPORTED, "%s/config.json: position_embedding_type is '%.40s'; absolute is known", folder,
                       positions);
    const int64_t skipped = positions_skipped(a, config);
    if (skipped < 0 || skipped >= json_member_integer(config, "max_position_embeddings", INT32_MAX))
        return ww_fail(WW_CORRUPT_FILE, "%s/config.json: pad_token_id is %lld; positions begin behind it", folder,
                       (long long)skipped - 1);
    if (a->dense && !json_member_bool(config, "use_bidirectional_attention", false))
        return ww_fail(WW_UNSUPPORTED,
                       "%s/config.json: use_bidirectional_attention is not true; the class is for models that embed", folder);
    if (is_modern(a))
        return check_modern(folder, config);
    if (is_gemma3(a))
        return check_gemma3(folder, config);
    if (is(a, "gemma2"))
        return check_gemma2(folder, config);
    if (is(a, "smollm3"))
        return check_smollm3(folder, config);
    return is_nomic(a) ? check_nomic(folder, config) : WW_OK;
}

/* Multipliers and caps, of the architectures that have them. */
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

static void keys_of_decoder(key_writer *w, const json_t *config)
{
    const int64_t heads = json_member_integer(config, "num_attention_heads", -1);
    const int64_t width = json_member_integer(config, "hidden_size", -1);
    const bool gemma = is_gemma3(w->architecture);
    const int64_t head = json_member_integer(config, "head_dim",
                                             gemma || is(w->architecture, "gemma2") ? 256
                                             : heads > 0                            ? width / heads
                                                                                    : -1);
    const double base = gemma ? 1e6 : 10000;
    const json_t *rope = json_object_get(config, "rope_parameters"); /* where newer files have it */
    key_u32(w, ".attention.head_count_kv", json_member_integer(config, "num_key_value_heads", heads));
    key_f32(w, ".rope.freq_base", json_member_real(config, "rope_theta", json_member_real(rope, "rope_theta", base)));
    key_f32(w, ".attention.layer_norm_rms_epsilon", json_member_real(config, "rms_norm_eps", 1e-6));
    if (heads > 0 && head * heads != width) {
        key_u32(w, ".attention.key_length", head);
        key_u32(w, ".attention.value_length", head);
    }
    key_u32(w, ".vocab_size", json_member_integer(config, "vocab_size", -1));
    const double turned = json_member_real(config, "partial_rotary_factor", json_member_real(rope, "partial_rotary_factor", 1));
    const bool windows = json_member_bool(config, "use_sliding_window", !is(w->architecture, "smollm3"));
    key_u32(w, ".rope.dimension_count", (int64_t)((double)head * turned));
    keys_of_scales(w, config);
    if (json_is_integer(json_object_get(config, "sliding_window")) && windows)
        key_u32(w, ".attention.sliding_window", json_member_integer(config, "sliding_window", -1));
    keys_of_scaling(w, config);
}

/* A base of rope, under the name that older files have, or that of its layers in newer ones. */
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
        if (w->architecture->dense)
            key_bool(w, ".attention.causal", false);
    }
}
