/* Writes tokenizer.json and the files beside it as the tokenizer's keys of a GGUF file.
 *
 * Pre-tokenizers have no names there, only expressions; known models are recognised by the expressions. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "model/convert/folder.h"
#include "model/convert/keys.h"
#include "model/convert/pieces.h"
#include "model/convert/reading.h"
#include "model/tokenizer/vocabulary.h"

static int64_t or_else(int64_t id, int64_t otherwise)
{
    return id >= 0 ? id : otherwise;
}

/* ---- tokens -------------------------------------------------------------------------------------------------------------- */

static ww_status read_tokens(reading *r)
{
    json_t *id;
    const char *text;
    ww_status status = WW_OK;
    r->tokens = memory_alloc_zeroed((size_t)r->count, sizeof *r->tokens);
    if (!r->tokens)
        return memory_failed("vocabulary", (size_t)r->count * sizeof *r->tokens);
    json_t *vocab = json_object_get(json_object_get(r->tokenizer, "model"), "vocab");
    json_object_foreach(vocab, text, id)
    {
        if (status == WW_OK)
            status = reading_put(r, text, json_is_integer(id) ? (int64_t)json_integer_value(id) : -1, TOKEN_NORMAL);
    }
    return status == WW_OK ? reading_added(r) : status;
}

/* ---- special tokens ------------------------------------------------------------------------------------------------------ */

/* The template is in its own file, or one of the settings, or the "default" of several there. */
static void write_chat(const reading *r)
{
    const json_t *several = json_object_get(r->settings, "chat_template");
    const char *chat = r->chat ? r->chat : json_string_value(several);
    for (size_t i = 0; !chat && i < json_array_size(several); i++)
        if (strcmp(json_member_text(json_array_get(several, i), "name", ""), "default") == 0)
            chat = json_member_text(json_array_get(several, i), "template", NULL);
    if (chat)
        key_text(r->w, "tokenizer.chat_template", chat);
}

static void write_decoder_ids(const reading *r)
{
    const char *bos = reading_special_text(r, "bos_token"), *eos = reading_special_text(r, "eos_token");
    const char *cls = reading_special_text(r, "cls_token"), *end = reading_last_added(r);
    const int64_t last = reading_token_id(r, end);
    const bool encoder = cls && reading_adds(r, cls, true); /* [CLS] text [SEP] */
    bos = encoder ? cls : bos;
    eos = last >= 0 ? end : eos; /* Qwen3-Embedding ends texts with another token than turns */
    reading_write_id(r, "tokenizer.ggml.bos_token_id",
                     encoder ? reading_token_id(r, cls) : reading_special_id(r, "bos_token", "bos_token_id"));
    reading_write_id(r, "tokenizer.ggml.eos_token_id", last >= 0 ? last : reading_special_id(r, "eos_token", "eos_token_id"));
    reading_write_id(r, "tokenizer.ggml.seperator_token_id", reading_special_id(r, "sep_token", NULL)); /* GGUF's spelling */
    key_bool(r->w, "tokenizer.ggml.add_sep_token", reading_doubles(r));
    reading_write_id(r, "tokenizer.ggml.unknown_token_id", reading_special_id(r, "unk_token", NULL));
    reading_write_id(r, "tokenizer.ggml.padding_token_id", reading_special_id(r, "pad_token", "pad_token_id"));
    key_bool(r->w, "tokenizer.ggml.add_bos_token", json_member_bool(r->settings, "add_bos_token", reading_adds(r, bos, true)));
    key_bool(r->w, "tokenizer.ggml.add_eos_token", json_member_bool(r->settings, "add_eos_token", reading_adds(r, eos, false)));
    write_chat(r);
}

/* ---- WordPiece ----------------------------------------------------------------------------------------------------------- */

static ww_status write_wordpiece(reading *r)
{
    const json_t *normalizer = json_object_get(r->tokenizer, "normalizer");
    const bool lowercase = json_member_bool(normalizer, "lowercase", true);
    if (strcmp(json_member_text(normalizer, "type", ""), "BertNormalizer") != 0)
        return reading_refuse(r, "WordPiece with another normalizer than BertNormalizer");
    if (json_member_bool(normalizer, "strip_accents", lowercase) != lowercase ||
        !json_member_bool(normalizer, "clean_text", true) || !json_member_bool(normalizer, "handle_chinese_chars", true))
        return reading_refuse(
            r, "a BertNormalizer that keeps accents in lower case, controls, or CJK characters together has no keys in GGUF");
    ww_status status = read_tokens(r);
    if (status != WW_OK)
        return status;
    key_u32(r->w, "tokenizer.ggml.token_type_count", json_member_integer(r->config, "type_vocab_size", 2));
    key_text(r->w, "tokenizer.ggml.model", "bert");
    key_text(r->w, "tokenizer.ggml.pre", "jina-v2-en"); /* what other programs write for this tokenizer */
    status = reading_write_tokens(r, true);
    const char *unknown = json_member_text(json_object_get(r->tokenizer, "model"), "unk_token", NULL);
    reading_write_id(r, "tokenizer.ggml.bos_token_id", reading_special_id(r, "cls_token", NULL));
    reading_write_id(r, "tokenizer.ggml.eos_token_id", reading_special_id(r, "sep_token", NULL));
    reading_write_id(r, "tokenizer.ggml.unknown_token_id",
                     or_else(reading_special_id(r, "unk_token", NULL), reading_token_id(r, unknown)));
    reading_write_id(r, "tokenizer.ggml.seperator_token_id", reading_special_id(r, "sep_token", NULL)); /* GGUF's spelling */
    reading_write_id(r, "tokenizer.ggml.padding_token_id", reading_special_id(r, "pad_token", NULL));
    reading_write_id(r, "tokenizer.ggml.mask_token_id", reading_special_id(r, "mask_token", NULL));
    key_bool(r->w, "tokenizer.ggml.add_bos_token", !r->w->architecture->lookup);
    key_bool(r->w, "tokenizer.ggml.add_eos_token", !r->w->architecture->lookup);
    key_bool(r->w, "tokenizer.ggml.add_sep_token", false);
    key_bool(r->w, "tokenizer.ggml.normalizer.lowercase", lowercase);
    return status;
}

/* ---- BPE ----------------------------------------------------------------------------------------------------------------- */

#define ELISION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define UPPER   "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER   "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"

/* The name of the pre-tokenizer, or NULL. */
static const char *pre_name(const reading *r)
{
    static const struct {
        const char *expression, *name;
    } known[] = {
        {ELISION "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
                 "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
         "llama-bpe"},
        {ELISION "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
                 "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
         "qwen2"},
        {"[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*|\\p{N}| "
         "?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
         "tekken"},
        {"[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" ELISION "?|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" ELISION
         "?|\\p{N}{1,3}| "
         "?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
         "gpt-4o"},
    };
    const json_t *pre = json_object_get(r->tokenizer, "pre_tokenizer");
    const json_t *split = reading_find_step(pre, "Split"), *bytes = reading_find_step(pre, "ByteLevel"),
                 *digits = reading_find_step(pre, "Digits");
    const char *expression = json_member_text(json_object_get(split, "pattern"), "Regex", NULL);
    const bool whole = json_member_bool(json_object_get(r->tokenizer, "model"), "ignore_merges", false);
    if (!bytes || json_member_bool(bytes, "add_prefix_space", false))
        return NULL;
    for (size_t i = 0; expression && i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].expression, expression) == 0)
            return i == 0 && !whole ? "dbrx" : known[i].name;
    if (split || !json_member_bool(bytes, "use_regex", true))
        return NULL;
    if (reading_find_step(json_object_get(r->tokenizer, "normalizer"), "NFC"))
        return digits ? NULL : "modern-bert";
    if (digits)
        return json_member_bool(digits, "individual_digits", false) ? "smollm" : NULL;
    return "gpt-2";
}

/* A merge is "a b", or in newer files ["a", "b"]. */
static ww_status merge_text(const reading *r, const json_t *merge, char text[1024])
{
    const char *left = json_string_value(json_array_get(merge, 0)), *right = json_string_value(json_array_get(merge, 1));
    const char *joined = json_string_value(merge);
    const int length = joined          ? snprintf(text, 1024, "%s", joined)
                       : left && right ? snprintf(text, 1024, "%s %s", left, right)
                                       : -1;
    if (length < 0 || length >= 1024)
        return ww_fail(WW_CORRUPT_FILE, "%s/tokenizer.json: a merge that is not two tokens, or longer than 1023 bytes",
                       r->folder);
    return WW_OK;
}

static ww_status write_merges(const reading *r)
{
    text_list list = {0};
    const json_t *merges = json_object_get(json_object_get(r->tokenizer, "model"), "merges");
    ww_status status = WW_OK;
    for (size_t i = 0; status == WW_OK && i < json_array_size(merges); i++) {
        char text[1024];
        status = merge_text(r, json_array_get(merges, i), text);
        if (status == WW_OK)
            status = text_list_add(&list, text, strlen(text));
    }
    if (status == WW_OK) {
        key_texts(r->w, "tokenizer.ggml.merges", &list);
        status = r->w->status;
    }
    text_list_free(&list);
    return status;
}

static ww_status write_byte_bpe(reading *r)
{
    const char *pre = pre_name(r);
    if (!pre)
        return reading_refuse(
            r, "its pre-tokenizer is not one of gpt-2, modern-bert, smollm, llama-bpe, dbrx, qwen2, tekken, gpt-4o");
    ww_status status = read_tokens(r);
    if (status != WW_OK)
        return status;
    key_text(r->w, "tokenizer.ggml.model", "gpt2");
    key_text(r->w, "tokenizer.ggml.pre", pre);
    status = reading_write_tokens(r, false);
    if (status == WW_OK)
        status = write_merges(r);
    write_decoder_ids(r);
    return status;
}

/* ---- SentencePiece ------------------------------------------------------------------------------------------------------- */

enum { PADDING_SCORE = -1000 }; /* of ids without a piece: would be merged last */

/* Takes the pieces as tokens of the vocabulary, NUL-terminated in `texts`, and their scores. */
static ww_status take_pieces(reading *r, const piece_list *list, char **texts, float *scores)
{
    size_t bytes = 1;
    ww_status status = WW_OK;
    for (int64_t i = 0; i < list->count; i++)
        bytes += list->pieces[i].bytes + 1;
    *texts = memory_alloc(bytes);
    r->tokens = memory_alloc_zeroed((size_t)r->count, sizeof *r->tokens);
    if (!*texts || !r->tokens)
        return memory_failed("vocabulary", bytes + (size_t)r->count * sizeof *r->tokens);
    char *at = *texts;
    for (int64_t i = 0; i < r->count; i++)
        scores[i] = PADDING_SCORE;
    for (int64_t i = 0; i < list->count && status == WW_OK; i++) {
        const piece_text *piece = &list->pieces[i];
        memcpy(at, piece->text, piece->bytes);
        at[piece->bytes] = '\0';
        status = reading_put(r, at, i, piece->kind);
        if (status == WW_OK)
            scores[i] = piece->score;
        at += piece->bytes + 1;
    }
    return status == WW_OK ? reading_added(r) : status;
}

static void write_piece_ids(const reading *r, const piece_list *list)
{
    const char *bos = reading_special_text(r, "bos_token"), *eos = reading_special_text(r, "eos_token");
    reading_write_id(r, "tokenizer.ggml.bos_token_id", or_else(reading_special_id(r, "bos_token", "bos_token_id"), list->bos));
    reading_write_id(r, "tokenizer.ggml.eos_token_id", or_else(reading_special_id(r, "eos_token", "eos_token_id"), list->eos));
    reading_write_id(r, "tokenizer.ggml.unknown_token_id", or_else(reading_special_id(r, "unk_token", NULL), list->unknown));
    reading_write_id(r, "tokenizer.ggml.padding_token_id",
                     or_else(reading_special_id(r, "pad_token", "pad_token_id"), list->padding));
    key_bool(r->w, "tokenizer.ggml.add_bos_token",
             json_member_bool(r->settings, "add_bos_token", !r->tokenizer || reading_adds(r, bos, true)));
    key_bool(r->w, "tokenizer.ggml.add_eos_token",
             json_member_bool(r->settings, "add_eos_token", r->tokenizer && reading_adds(r, eos, false)));
    key_bool(r->w, "tokenizer.ggml.add_space_prefix", list->space_prefix);
    write_chat(r);
}

static ww_status write_sentencepiece(reading *r)
{
    piece_list list = {0};
    char *texts = NULL;
    ww_status status = pieces_read(r->folder, &list);
    if (status == WW_NOT_FOUND)
        return ww_fail(
            WW_UNSUPPORTED,
            "%s: a tokenizer of SentencePiece's kind whose tokenizer.model is missing; its scores are in no other file",
            r->folder);
    if (status != WW_OK)
        return status;
    float *scores = memory_alloc((size_t)r->count * sizeof *scores);
    if (!list.bpe)
        status = ww_fail(WW_UNSUPPORTED, "%s/tokenizer.model: an algorithm other than BPE", r->folder);
    else if (!scores)
        status = memory_failed("vocabulary", (size_t)r->count * sizeof *scores);
    if (status == WW_OK)
        status = take_pieces(r, &list, &texts, scores);
    if (status == WW_OK) {
        key_text(r->w, "tokenizer.ggml.model", "llama");
        key_text(r->w, "tokenizer.ggml.pre", "default");
        status = reading_write_tokens(r, false);
    }
    if (status == WW_OK) {
        key_array(r->w, "tokenizer.ggml.scores", WW_GGUF_F32, scores, r->count);
        write_piece_ids(r, &list);
        status = r->w->status;
    }
    memory_free(scores);
    memory_free(texts);
    pieces_free(&list);
    return status;
}

/* ---- which of them ------------------------------------------------------------------------------------------------------- */

static ww_status read_files(reading *r)
{
    ww_status status = folder_json(r->folder, "tokenizer.json", &r->tokenizer);
    if (status != WW_OK && status != WW_NOT_FOUND)
        return status;
    status = folder_json(r->folder, "tokenizer_config.json", &r->settings);
    if (status == WW_OK || status == WW_NOT_FOUND)
        status = folder_json(r->folder, "special_tokens_map.json", &r->map);
    if (status == WW_OK || status == WW_NOT_FOUND)
        status = folder_text(r->folder, "chat_template.jinja", &r->chat);
    return status == WW_NOT_FOUND ? WW_OK : status;
}

static ww_status write_tokenizer(reading *r)
{
    const json_t *model = json_object_get(r->tokenizer, "model");
    const char *type = json_member_text(model, "type", "BPE");
    if (!r->tokenizer) {
        const ww_status status = write_sentencepiece(r);
        return status == WW_UNSUPPORTED && !r->tokens
                   ? ww_fail(WW_NOT_FOUND, "%s has neither tokenizer.json nor SentencePiece's tokenizer.model", r->folder)
                   : status;
    }
    if (strcmp(type, "WordPiece") == 0)
        return write_wordpiece(r);
    if (strcmp(type, "Unigram") == 0)
        return write_unigram(r);
    if (strcmp(type, "BPE") != 0)
        return reading_refuse(r, "an algorithm other than WordPiece, BPE and Unigram");
    return json_member_bool(model, "byte_fallback", false) ? write_sentencepiece(r) : write_byte_bpe(r);
}

void keys_of_tokenizer(key_writer *w, const char *folder, const json_t *config, int64_t token_count)
{
    reading r = {.w = w, .folder = folder, .config = config, .count = token_count};
    if (w->status != WW_OK)
        return;
    ww_status status = token_count > 0 && token_count < INT32_MAX / 4
                           ? read_files(&r)
                           : ww_fail(WW_CORRUPT_FILE, "%s/config.json: vocab_size is %lld", folder, (long long)token_count);
    if (status == WW_OK)
        status = write_tokenizer(&r);
    if (w->status == WW_OK)
        w->status = status;
    memory_free(r.tokens);
    memory_free(r.chat);
    json_decref(r.tokenizer);
    json_decref(r.settings);
    json_decref(r.map);
}
