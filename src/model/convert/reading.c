/* What the algorithms of tokenizer.json share: its tokens, special tokens, and what is added around a text. */
#include "model/convert/reading.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "model/convert/folder.h"
#include "model/tokenizer/vocabulary.h"

#define WORD_START "\xE2\x96\x81" /* U+2581 */

ww_status reading_refuse(const reading *r, const char *what)
{
    return ww_fail(WW_UNSUPPORTED, "%s/tokenizer.json: %s", r->folder, what);
}

ww_status reading_put(reading *r, const char *text, int64_t id, int32_t kind)
{
    if (id < 0 || id >= r->count)
        return ww_fail(WW_CORRUPT_FILE, "%s/tokenizer.json: the token '%.60s' has the id %lld; the model has %lld tokens",
                       r->folder, text, (long long)id, (long long)r->count);
    r->tokens[id] = (vocabulary_text){.text = text, .kind = kind};
    return WW_OK;
}

/* Tokens that were added to a vocabulary. */
ww_status reading_added(reading *r)
{
    json_t *one;
    size_t i;
    ww_status status = WW_OK;
    json_array_foreach(json_object_get(r->tokenizer, "added_tokens"), i, one)
    {
        if (status == WW_OK)
            status = reading_put(r, json_member_text(one, "content", ""), json_member_integer(one, "id", -1),
                                 json_member_bool(one, "special", false) ? TOKEN_CONTROL : TOKEN_USER_DEFINED);
    }
    return status;
}

/* WordPiece writes "##ing" and "word"; GGUF has "ing" and U+2581 "word". */
static ww_status add_wordpiece(text_list *list, const vocabulary_text *token)
{
    char marked[512];
    if (token->kind == TOKEN_NORMAL && strncmp(token->text, "##", 2) == 0 && token->text[2] != '\0')
        return text_list_add(list, token->text + 2, strlen(token->text + 2));
    if (token->kind != TOKEN_NORMAL)
        return text_list_add(list, token->text, strlen(token->text));
    const int length = snprintf(marked, sizeof marked, WORD_START "%s", token->text);
    if (length < 0 || (size_t)length >= sizeof marked)
        return ww_fail(WW_CORRUPT_FILE, "tokenizer.json: the token '%.60s...' is longer than %zu bytes", token->text,
                       sizeof marked - 4);
    return text_list_add(list, marked, (size_t)length);
}

ww_status reading_write_tokens(const reading *r, bool wordpiece)
{
    text_list list = {0};
    int32_t *kinds = memory_alloc((size_t)r->count * sizeof *kinds);
    ww_status status = kinds ? WW_OK : memory_failed("vocabulary", (size_t)r->count * sizeof *kinds);
    for (int64_t id = 0; status == WW_OK && id < r->count; id++) {
        const vocabulary_text *token = &r->tokens[id];
        char padding[32];
        kinds[id] = token->kind ? token->kind : TOKEN_UNUSED; /* embeddings may have more rows than there are tokens */
        snprintf(padding, sizeof padding, "[PAD%lld]", (long long)id);
        if (token->kind && wordpiece)
            status = add_wordpiece(&list, token);
        else
            status = text_list_add(&list, token->kind ? token->text : padding, strlen(token->kind ? token->text : padding));
    }
    if (status == WW_OK) {
        key_texts(r->w, "tokenizer.ggml.tokens", &list);
        key_array(r->w, "tokenizer.ggml.token_type", WW_GGUF_I32, kinds, r->count);
        status = r->w->status;
    }
    memory_free(kinds);
    text_list_free(&list);
    return status;
}

/* Finds the text of a special token by its use. Either of two files may have it, as a text or as an object with a text. */
const char *reading_special_text(const reading *r, const char *use)
{
    const json_t *files[] = {r->map, r->settings};
    for (size_t i = 0; i < 2; i++) {
        const json_t *value = json_object_get(files[i], use);
        const char *text = json_is_object(value) ? json_member_text(value, "content", NULL) : json_string_value(value);
        if (text)
            return text;
    }
    return NULL;
}

int64_t reading_token_id(const reading *r, const char *text)
{
    for (int64_t id = 0; text && id < r->count; id++)
        if (r->tokens[id].kind && strcmp(r->tokens[id].text, text) == 0)
            return id;
    return -1;
}

/* Finds the id of a token by its use; otherwise config.json's, the first if there are several. */
int64_t reading_special_id(const reading *r, const char *use, const char *config_key)
{
    const int64_t id = reading_token_id(r, reading_special_text(r, use));
    const json_t *value = config_key ? json_object_get(r->config, config_key) : NULL;
    const json_t *one = json_is_array(value) ? json_array_get(value, 0) : value;
    return id >= 0 ? id : json_is_integer(one) ? (int64_t)json_integer_value(one) : -1;
}

void reading_write_id(const reading *r, const char *key, int64_t id)
{
    if (id >= 0)
        key_u32(r->w, key, id);
}

/* Does the file's own post-processing put this token first, or last? */
bool reading_adds(const reading *r, const char *text, bool first)
{
    const json_t *processor = json_object_get(r->tokenizer, "post_processor"), *inner, *single;
    const json_t *several = json_object_get(processor, "processors");
    if (r->w->architecture->lookup)
        return false; /* words alone */
    for (size_t i = 0; text && i <= json_array_size(several); i++) {
        inner = i == json_array_size(several) ? processor : json_array_get(several, i);
        const json_t *pair = json_object_get(inner, first ? "cls" : "sep"); /* in RoBERTa's and BERT's files: [text, id] */
        if (json_string_value(json_array_get(pair, 0)) && strcmp(json_string_value(json_array_get(pair, 0)), text) == 0)
            return true;
        single = json_object_get(inner, "single");
        const json_t *end = json_array_get(single, first ? 0 : json_array_size(single) - 1);
        const char *id = json_member_text(json_object_get(end, "SpecialToken"), "id", NULL);
        if (json_array_size(single) > 0 && id && strcmp(id, text) == 0)
            return true;
    }
    return false;
}

/* The token that the file's own post-processing appends to a text; NULL: none. */
const char *reading_last_added(const reading *r)
{
    const json_t *processor = json_object_get(r->tokenizer, "post_processor");
    const json_t *several = json_object_get(processor, "processors");
    for (size_t i = 0; i <= json_array_size(several); i++) {
        const json_t *inner = i == json_array_size(several) ? processor : json_array_get(several, i);
        const json_t *single = json_object_get(inner, "single"), *sep = json_array_get(json_object_get(inner, "sep"), 0);
        const json_t *last = json_array_size(single) > 1 ? json_array_get(single, json_array_size(single) - 1) : NULL;
        const char *id = json_member_text(json_object_get(last, "SpecialToken"), "id", json_string_value(sep));
        if (id)
            return id;
    }
    return NULL;
}

bool reading_doubles(const reading *r)
{
    const json_t *processor = json_object_get(r->tokenizer, "post_processor"), *pair = json_object_get(processor, "pair");
    size_t between = 0;
    if (strcmp(json_member_text(processor, "type", ""), "RobertaProcessing") == 0)
        return true;
    for (size_t i = 0, texts = 0; i < json_array_size(pair); i++) {
        texts += json_object_get(json_array_get(pair, i), "Sequence") != NULL;
        between += texts == 1 && json_object_get(json_array_get(pair, i), "SpecialToken") != NULL;
    }
    return between > 1;
}

/* Finds a step of this type, alone or in a sequence. */
const json_t *reading_find_step(const json_t *step, const char *type)
{
    if (strcmp(json_member_text(step, "type", ""), type) == 0)
        return step;
    const json_t *list = json_object_get(step, "pretokenizers");
    const json_t *normalizers = json_object_get(step, "normalizers");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_member_text(json_array_get(list, i), "type", ""), type) == 0)
            return json_array_get(list, i);
    for (size_t i = 0; i < json_array_size(normalizers); i++)
        if (strcmp(json_member_text(json_array_get(normalizers, i), "type", ""), type) == 0)
            return json_array_get(normalizers, i);
    return NULL;
}
