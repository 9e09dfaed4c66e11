/* A unigram vocabulary of tokenizer.json: pieces with scores, and SentencePiece's map of characters in base64. */
#include <string.h>

#include "base/memory.h"
#include "base/strings/base64.h"
#include "model/convert/folder.h"
#include "model/convert/reading.h"
#include "model/tokenizer/vocabulary.h"

/* ---- the map of characters ---------------------------------------------------------------------------------------------- */

static ww_status write_charsmap(reading *r)
{
    const json_t *step = reading_find_step(json_object_get(r->tokenizer, "normalizer"), "Precompiled");
    const char *text = json_member_text(step, "precompiled_charsmap", "");
    size_t length = strlen(text);
    if (length == 0)
        return WW_OK;
    char *bytes = memory_alloc(length + 1);
    if (!bytes)
        return memory_failed("map of characters", length);
    while (length > 0 && text[length - 1] == '=')
        length--;
    const int64_t count = base64_decode(text, length, "+/", bytes);
    if (count > 0)
        key_array(r->w, "tokenizer.ggml.precompiled_charsmap", WW_GGUF_U8, bytes, count);
    memory_free(bytes);
    return count > 0 ? r->w->status : reading_refuse(r, "precompiled_charsmap is not base64");
}

/* ---- pieces -------------------------------------------------------------------------------------------------------------- */

/* Reads [text, score] for each id. */
static ww_status read_pieces(reading *r, float *scores)
{
    const json_t *model = json_object_get(r->tokenizer, "model"), *pieces = json_object_get(model, "vocab");
    const int64_t unknown = json_member_integer(model, "unk_id", -1);
    const bool bytes = json_member_bool(model, "byte_fallback", false);
    ww_status status = WW_OK;
    if (json_array_size(pieces) == 0)
        return reading_refuse(r, "a unigram vocabulary without pieces");
    for (size_t i = 0; status == WW_OK && i < json_array_size(pieces); i++) {
        const json_t *one = json_array_get(pieces, i);
        const char *text = json_string_value(json_array_get(one, 0));
        const bool byte = bytes && text && strlen(text) == 6 && strncmp(text, "<0x", 3) == 0;
        if (!text || !json_is_number(json_array_get(one, 1)))
            return reading_refuse(r, "a piece of the vocabulary is not a text with a score");
        status = reading_put(r, text, (int64_t)i, (int64_t)i == unknown ? TOKEN_UNKNOWN : byte ? TOKEN_BYTE : TOKEN_NORMAL);
        if (status == WW_OK)
            scores[i] = (float)json_number_value(json_array_get(one, 1));
    }
    if (status == WW_OK)
        status = reading_added(r);
    if (status == WW_OK && unknown >= 0 && unknown < r->count)
        r->tokens[unknown].kind = TOKEN_UNKNOWN;
    return status;
}

static void write_ids(const reading *r)
{
    const char *bos = reading_special_text(r, "bos_token"), *eos = reading_special_text(r, "eos_token");
    const json_t *pre = json_object_get(r->tokenizer, "pre_tokenizer");
    const json_t *space = reading_find_step(pre, "Metaspace"), *normalizer = json_object_get(r->tokenizer, "normalizer");
    const bool prefix = strcmp(json_member_text(space, "prepend_scheme", "always"), "never") != 0;
    reading_write_id(r, "tokenizer.ggml.bos_token_id", reading_special_id(r, "bos_token", "bos_token_id"));
    reading_write_id(r, "tokenizer.ggml.eos_token_id", reading_special_id(r, "eos_token", "eos_token_id"));
    reading_write_id(r, "tokenizer.ggml.unknown_token_id",
                     json_member_integer(json_object_get(r->tokenizer, "model"), "unk_id", -1));
    reading_write_id(r, "tokenizer.ggml.seperator_token_id", reading_special_id(r, "sep_token", NULL)); /* GGUF's spelling */
    reading_write_id(r, "tokenizer.ggml.padding_token_id", reading_special_id(r, "pad_token", "pad_token_id"));
    reading_write_id(r, "tokenizer.ggml.mask_token_id", reading_special_id(r, "mask_token", NULL));
    key_bool(r->w, "tokenizer.ggml.add_bos_token", reading_adds(r, bos, true));
    key_bool(r->w, "tokenizer.ggml.add_eos_token", reading_adds(r, eos, false));
    key_bool(r->w, "tokenizer.ggml.add_sep_token", reading_doubles(r));
    key_bool(r->w, "tokenizer.ggml.add_space_prefix", json_member_bool(space, "add_prefix_space", prefix));
    key_bool(r->w, "tokenizer.ggml.remove_extra_whitespaces",
             reading_find_step(pre, "WhitespaceSplit") || reading_find_step(normalizer, "Replace"));
}

ww_status write_unigram(reading *r)
{
    float *scores = memory_alloc_zeroed((size_t)r->count, sizeof *scores);
    r->tokens = memory_alloc_zeroed((size_t)r->count, sizeof *r->tokens);
    if (!scores || !r->tokens) {
        memory_free(scores);
        return memory_failed("vocabulary", (size_t)r->count * sizeof *r->tokens);
    }
    ww_status status = read_pieces(r, scores);
    if (status == WW_OK) {
        key_text(r->w, "tokenizer.ggml.model", "t5");
        key_text(r->w, "tokenizer.ggml.pre", "default");
        status = reading_write_tokens(r, false);
    }
    if (status == WW_OK) {
        key_array(r->w, "tokenizer.ggml.scores", WW_GGUF_F32, scores, r->count);
        write_ids(r);
        status = r->w->status;
    }
    memory_free(scores);
    return status == WW_OK ? write_charsmap(r) : status;
}
