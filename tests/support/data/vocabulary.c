/* Small model files that contain only a tokenizer's keys. */
#include "support/data/vocabulary.h"

#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/scratch.h"

test_vocabulary vocabulary_empty(const char *model)
{
    return (test_vocabulary){.model = model,
                             .scores_written = -1,
                             .merge_count = -1,
                             .bos = -1,
                             .eos = -1,
                             .unknown = -1,
                             .add_bos = -1,
                             .add_eos = -1,
                             .add_space_prefix = -1,
                             .lowercase = -1,
                             .removes_spaces = -1};
}

int32_t vocabulary_add(test_vocabulary *v, const char *token, int32_t kind, float score)
{
    assert_true(v->count < TEST_TOKENS_MAX);
    v->tokens[v->count] = token;
    v->kinds[v->count] = kind;
    v->scores[v->count] = score;
    v->kinds_written = v->count + 1;
    if (v->scores_written >= 0 || strcmp(v->model, "llama") == 0 || strcmp(v->model, "t5") == 0)
        v->scores_written = v->count + 1;
    return v->count++;
}

void vocabulary_add_alphabet(test_vocabulary *v)
{
    static char names[256][4];
    unsigned others = 0;
    for (unsigned byte = 0; byte < 256; byte++) {
        const int printed = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
        const unsigned c = printed ? byte : 256 + others++;
        if (c < 128)
            snprintf(names[byte], sizeof names[byte], "%c", (int)c);
        else
            snprintf(names[byte], sizeof names[byte], "%c%c", (int)(0xC0 | c >> 6), (int)(0x80 | (c & 63)));
        vocabulary_add(v, names[byte], 1, 0);
    }
}

void vocabulary_add_bytes(test_vocabulary *v)
{
    static char names[256][8];
    for (unsigned byte = 0; byte < 256; byte++) {
        snprintf(names[byte], sizeof names[byte], "<0x%02X>", byte);
        vocabulary_add(v, names[byte], 6, 0);
    }
}

void vocabulary_add_merge(test_vocabulary *v, const char *merge)
{
    if (v->merge_count < 0)
        v->merge_count = 0;
    v->merges[v->merge_count++] = merge;
}

static void put_value(ww_gguf_writer *w, const char *key, ww_gguf_kind kind, ww_gguf_kind element, int64_t count,
                      const void *data, size_t bytes)
{
    const ww_gguf_value v = {.struct_size = sizeof v,
                             .key = key,
                             .kind = kind,
                             .element = element,
                             .count = count,
                             .data = data,
                             .data_bytes = bytes};
    CHECK_OK(ww_gguf_writer_value(w, &v));
}

static void put_texts(ww_gguf_writer *w, const char *key, const char *const *texts, int32_t count)
{
    size_t size = 0;
    for (int32_t i = 0; i < count; i++)
        size += 8 + strlen(texts[i]);
    char *bytes = malloc(size + 1), *next = bytes;
    assert_non_null(bytes);
    for (int32_t i = 0; i < count; i++) {
        const uint64_t length = strlen(texts[i]);
        memcpy(next, &length, 8);
        memcpy(next + 8, texts[i], length);
        next += 8 + length;
    }
    put_value(w, key, WW_GGUF_ARRAY, WW_GGUF_STRING, count, bytes, size);
    free(bytes);
}

static void put_flag(ww_gguf_writer *w, const char *key, int32_t value)
{
    const unsigned char byte = value == 1;
    if (value >= 0)
        put_value(w, key, WW_GGUF_BOOL, WW_GGUF_BOOL, 1, &byte, 1);
}

static void put_id(ww_gguf_writer *w, const char *key, int32_t id)
{
    if (id >= 0)
        CHECK_OK(ww_gguf_writer_u32(w, key, (uint32_t)id));
}

void vocabulary_put(const test_vocabulary *v, ww_gguf_writer *w)
{
    if (v->model)
        CHECK_OK(ww_gguf_writer_string(w, "tokenizer.ggml.model", v->model));
    if (v->pre)
        CHECK_OK(ww_gguf_writer_string(w, "tokenizer.ggml.pre", v->pre));
    put_texts(w, "tokenizer.ggml.tokens", v->tokens, v->count);
    if (v->kinds_written >= 0)
        put_value(w, "tokenizer.ggml.token_type", WW_GGUF_ARRAY, WW_GGUF_I32, v->kinds_written, v->kinds,
                  (size_t)v->kinds_written * 4);
    if (v->scores_written >= 0)
        put_value(w, "tokenizer.ggml.scores", WW_GGUF_ARRAY, WW_GGUF_F32, v->scores_written, v->scores,
                  (size_t)v->scores_written * 4);
    if (v->merge_count >= 0)
        put_texts(w, "tokenizer.ggml.merges", v->merges, v->merge_count);
    put_id(w, "tokenizer.ggml.bos_token_id", v->bos);
    put_id(w, "tokenizer.ggml.eos_token_id", v->eos);
    put_id(w, "tokenizer.ggml.unknown_token_id", v->unknown);
    put_flag(w, "tokenizer.ggml.add_bos_token", v->add_bos);
    put_flag(w, "tokenizer.ggml.add_eos_token", v->add_eos);
    put_flag(w, "tokenizer.ggml.add_space_prefix", v->add_space_prefix);
    put_flag(w, "tokenizer.ggml.normalizer.lowercase", v->lowercase);
    put_flag(w, "tokenizer.ggml.remove_extra_whitespaces", v->removes_spaces);
    if (v->charsmap)
        put_value(w, "tokenizer.ggml.precompiled_charsmap", WW_GGUF_ARRAY, WW_GGUF_U8, (int64_t)v->charsmap_bytes, v->charsmap,
                  v->charsmap_bytes);
}

const char *vocabulary_write(const test_vocabulary *v)
{
    ww_gguf_writer *w = NULL;
    const char *path = scratch_path("vocabulary.gguf");
    CHECK_OK(ww_gguf_writer_create(&w));
    vocabulary_put(v, w);
    CHECK_OK(ww_gguf_writer_open(w, path));
    CHECK_OK(ww_gguf_writer_finish(w));
    ww_gguf_writer_destroy(w);
    return path;
}
