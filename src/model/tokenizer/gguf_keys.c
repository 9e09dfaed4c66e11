/* A tokenizer from the keys of a GGUF file. */
#include "base/memory.h"
#include "gguf/gguf.h"
#include "model/tokenizer/family.h"

/* Arrays taken from the file, freed together. */
typedef struct key_arrays {
    ww_gguf_span *tokens, *merges;
    int64_t *kinds;
    double *scores;
} key_arrays;

/* Turns WW_NOT_FOUND into WW_OK: a missing key changes nothing. */
static ww_status absent_is_fine(ww_status status)
{
    return status == WW_NOT_FOUND ? WW_OK : status;
}

static ww_status read_texts(const ww_gguf *g, const char *key, ww_gguf_span **values, int64_t *count)
{
    ww_status status = ww_gguf_texts(g, key, NULL, 0, count);
    if (status != WW_OK && status != WW_OUT_OF_RANGE)
        return status;
    *values = memory_alloc_zeroed((size_t)*count, sizeof **values);
    if (!*values)
        return memory_failed(key, (size_t)*count * sizeof **values);
    return ww_gguf_texts(g, key, *values, *count, count);
}

static ww_status check_count(const tokenizer_source *s, const char *key, int64_t count)
{
    if (count == s->vocabulary.count)
        return WW_OK;
    return ww_fail(WW_CORRUPT_FILE, "%s: %s has %lld elements; the vocabulary has %lld tokens", s->name, key, (long long)count,
                   (long long)s->vocabulary.count);
}

/* One number per token, 8 bytes each: integers or reals. */
typedef struct token_numbers {
    const char *key;
    bool real;
    void *values; /* in key_arrays; NULL if the file has none */
} token_numbers;

static ww_status get_numbers(const ww_gguf *g, const token_numbers *n, int64_t room, int64_t *count)
{
    return n->real ? ww_gguf_f64s(g, n->key, n->values, room, count) : ww_gguf_i64s(g, n->key, n->values, room, count);
}

static ww_status read_numbers(const ww_gguf *g, const tokenizer_source *s, token_numbers *n)
{
    int64_t count = 0;
    ww_status status = get_numbers(g, n, 0, &count);
    if (status == WW_NOT_FOUND)
        return WW_OK;
    if (status == WW_OK || status == WW_OUT_OF_RANGE)
        status = check_count(s, n->key, count);
    if (status != WW_OK)
        return status;
    n->values = memory_alloc_zeroed((size_t)count, sizeof(int64_t));
    if (!n->values)
        return memory_failed(n->key, (size_t)count * sizeof(int64_t));
    return get_numbers(g, n, count, &count);
}

static ww_status read_arrays(const ww_gguf *g, tokenizer_source *s, key_arrays *arrays)
{
    ww_status status = read_texts(g, "tokenizer.ggml.tokens", &arrays->tokens, &s->vocabulary.count);
    s->vocabulary.pieces = arrays->tokens;
    token_numbers kinds = {.key = "tokenizer.ggml.token_type"};
    token_numbers scores = {.key = "tokenizer.ggml.scores", .real = true};
    if (status == WW_OK)
        status = read_numbers(g, s, &kinds);
    s->vocabulary.kinds = arrays->kinds = kinds.values;
    if (status == WW_OK)
        status = read_numbers(g, s, &scores);
    s->vocabulary.scores = arrays->scores = scores.values;
    if (status == WW_OK)
        status = absent_is_fine(read_texts(g, "tokenizer.ggml.merges", &arrays->merges, &s->merge_count));
    s->merges = arrays->merges;
    return status;
}

static ww_status read_ids(const ww_gguf *g, tokenizer_source *s)
{
    const struct {
        const char *key;
        int64_t *id;
    } ids[] = {{"tokenizer.ggml.bos_token_id", &s->bos},
               {"tokenizer.ggml.eos_token_id", &s->eos},
               {"tokenizer.ggml.eot_token_id", &s->eot},
               {"tokenizer.ggml.eom_token_id", &s->eom},
               {"tokenizer.ggml.unknown_token_id", &s->unknown},
               {"tokenizer.ggml.padding_token_id", &s->padding},
               {"tokenizer.ggml.mask_token_id", &s->mask},
               {"tokenizer.ggml.seperator_token_id", &s->separator}}; /* GGUF's spelling */
    ww_status status = WW_OK;
    for (size_t i = 0; status == WW_OK && i < sizeof ids / sizeof ids[0]; i++)
        status = absent_is_fine(ww_gguf_i64(g, ids[i].key, ids[i].id));
    return status;
}

/* Reads WordPiece's CLS and SEP under the names of older files. */
static ww_status read_bert_ids(const ww_gguf *g, tokenizer_source *s)
{
    ww_status status = WW_OK;
    if (s->bos == TOKENIZER_NONE)
        status = absent_is_fine(ww_gguf_i64(g, "tokenizer.ggml.cls_token_id", &s->bos));
    if (status == WW_OK && s->eos == TOKENIZER_NONE)
        s->eos = s->separator;
    return status;
}

static ww_status read_flags(const ww_gguf *g, tokenizer_source *s)
{
    int32_t prefix = 1, lowercase = 1;
    ww_status status = absent_is_fine(ww_gguf_bool(g, "tokenizer.ggml.add_bos_token", &s->add_bos));
    if (status == WW_OK)
        status = absent_is_fine(ww_gguf_bool(g, "tokenizer.ggml.add_eos_token", &s->add_eos));
    if (status == WW_OK)
        status = absent_is_fine(ww_gguf_bool(g, "tokenizer.ggml.add_sep_token", &s->add_separator));
    if (status == WW_OK)
        status = absent_is_fine(ww_gguf_bool(g, "tokenizer.ggml.add_space_prefix", &prefix));
    if (status == WW_OK)
        status = absent_is_fine(ww_gguf_bool(g, "tokenizer.ggml.normalizer.lowercase", &lowercase));
    s->add_space_prefix = prefix == 1;
    s->lowercase = lowercase == 1;
    return status;
}

/* Reads the map of characters, if the file has one. */
static ww_status read_charsmap(const ww_gguf *g, tokenizer_source *s)
{
    ww_gguf_value value = ww_gguf_value_default();
    int64_t index;
    int32_t removes = 1;
    ww_status status = absent_is_fine(ww_gguf_bool(g, "tokenizer.ggml.remove_extra_whitespaces", &removes));
    s->removes_spaces = removes == 1;
    if (status != WW_OK || ww_gguf_find_value(g, "tokenizer.ggml.precompiled_charsmap", &index) != WW_OK)
        return status;
    status = ww_gguf_value_at(g, index, &value);
    if (status == WW_OK && (value.kind != WW_GGUF_ARRAY || (value.element != WW_GGUF_U8 && value.element != WW_GGUF_I8)))
        status = ww_fail(WW_CORRUPT_FILE, "%s: tokenizer.ggml.precompiled_charsmap is not an array of bytes", s->name);
    if (status == WW_OK) {
        s->charsmap = value.data;
        s->charsmap_bytes = (size_t)value.count;
    }
    return status;
}

ww_status tokenizer_create(const ww_gguf *gguf, tokenizer **out)
{
    key_arrays arrays = {0};
    tokenizer_source s = tokenizer_source_default();
    s.name = gguf->parts[0].source.name;
    ww_status status = ww_gguf_text(gguf, "tokenizer.ggml.model", &s.model, NULL);
    if (status == WW_OK)
        status = absent_is_fine(ww_gguf_text(gguf, "tokenizer.ggml.pre", &s.pre, NULL));
    if (status == WW_OK)
        status = read_arrays(gguf, &s, &arrays);
    if (status == WW_OK)
        status = read_ids(gguf, &s);
    if (status == WW_OK)
        status = read_bert_ids(gguf, &s);
    if (status == WW_OK)
        status = read_flags(gguf, &s);
    if (status == WW_OK)
        status = read_charsmap(gguf, &s);
    if (status == WW_OK)
        status = tokenizer_make(&s, out);
    memory_free(arrays.tokens);
    memory_free(arrays.merges);
    memory_free(arrays.kinds);
    memory_free(arrays.scores);
    return status;
}
