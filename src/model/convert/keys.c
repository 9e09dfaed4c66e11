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
    const size_t each = element == WW_GGUF_BOOL ? 1 : 4; /* i32 and f32 are all that is written */
    write_value(
        w, key,
        (ww_gguf_value){
            .kind = WW_GGUF_ARRAY, .element = element, .count = count, .data = values, .data_bytes = (size_t)count * each});
}

/* ---- config.json ----------------------------------------------------------------------------------------------------------
 */

static void keys_of_scaling(key_writer *w, const json_t *config)
{
    const json_t *scaling = json_object_get(config, "rope_scaling");
    const char *type = json_member_text(scaling, "rope_type", json_member_text(scaling, "type", ""));
    if (!json_is_object(scaling) || strcmp(type, "default") == 0 || strcmp(type, "llama3") == 0)
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

static void keys_of_decoder(key_writer *w, const json_t *config)
{
    const int64_t heads = json_member_integer(config, "num_attention_heads", -1);
    const int64_t width = json_member_integer(config, "hidden_size", -1);
    const int64_t head = json_member_integer(config, "head_dim", heads > 0 ? width / heads : -1);
    const json_t *rope = json_object_get(config, "rope_parameters"); /* where newer files have it */
    key_u32(w, ".attention.head_count_kv", json_member_integer(config, "num_key_value_heads", heads));
    key_f32(w, ".rope.freq_base", json_member_real(config, "rope_theta", json_member_real(rope, "rope_theta", 10000)));
    key_f32(w, ".attention.layer_norm_rms_epsilon", json_member_real(config, "rms_norm_eps", 1e-6));
    if (heads > 0 && head * heads != width) {
        key_u32(w, ".attention.key_length", head);
        key_u32(w, ".attention.value_length", head);
    }
    key_u32(w, ".vocab_size", json_member_integer(config, "vocab_size", -1));
    key_u32(w, ".rope.dimension_count", head);
    if (json_is_integer(json_object_get(config, "sliding_window")) && json_member_bool(config, "use_sliding_window", true))
        key_u32(w, ".attention.sliding_window", json_member_integer(config, "sliding_window", -1));
    keys_of_scaling(w, config);
}

void keys_of_config(key_writer *w, const json_t *config)
{
    key_u32(w, ".block_count", json_member_integer(config, "num_hidden_layers", -1));
    key_u32(w, ".context_length", json_member_integer(config, "max_position_embeddings", -1));
    key_u32(w, ".embedding_length", json_member_integer(config, "hidden_size", -1));
    key_u32(w, ".feed_forward_length", json_member_integer(config, "intermediate_size", -1));
    key_u32(w, ".attention.head_count", json_member_integer(config, "num_attention_heads", -1));
    if (w->architecture->encoder) {
        key_f32(w, ".attention.layer_norm_epsilon", json_member_real(config, "layer_norm_eps", 1e-12));
        key_bool(w, ".attention.causal", false);
    } else {
        keys_of_decoder(w, config);
    }
}
