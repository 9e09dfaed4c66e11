/* What the four families share: special tokens in the text and at its ends, ids, and decoding. */
#include "model/tokenizer/tokenizer.h"

#include <string.h>

#include "base/array.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/text.h"
#include "model/tokenizer/family.h"
#include "model/tokenizer/unicode.h"

#define TEXT_BYTES_MAX ((size_t)1 << 30)

/* ---- lists --------------------------------------------------------------------------------------------------------------- */

void token_list_free(token_list *list)
{
    memory_free(list->ids);
    *list = (token_list){0};
}

ww_status token_list_add(token_list *list, int32_t id)
{
    const ww_status grown = array_reserve(&list->ids, &list->capacity, list->count + 1, sizeof *list->ids, "tokens");
    if (grown != WW_OK)
        return grown;
    list->ids[list->count++] = id;
    return WW_OK;
}

/* ---- making it ----------------------------------------------------------------------------------------------------------- */

tokenizer_source tokenizer_source_default(void)
{
    return (tokenizer_source){.bos = TOKENIZER_NONE,
                              .eos = TOKENIZER_NONE,
                              .eot = TOKENIZER_NONE,
                              .eom = TOKENIZER_NONE,
                              .unknown = TOKENIZER_NONE,
                              .padding = TOKENIZER_NONE,
                              .mask = TOKENIZER_NONE,
                              .separator = TOKENIZER_NONE,
                              .add_bos = -1,
                              .add_eos = -1,
                              .add_separator = -1,
                              .add_space_prefix = true,
                              .lowercase = true,
                              .removes_spaces = true};
}

static const tokenizer_family *find_family(const char *model)
{
    static const tokenizer_family *const FAMILIES[] = {&FAMILY_WORDPIECE, &FAMILY_BYTE_BPE, &FAMILY_SENTENCEPIECE,
                                                       &FAMILY_UNIGRAM};
    for (size_t i = 0; i < sizeof FAMILIES / sizeof FAMILIES[0]; i++)
        if (strcmp(FAMILIES[i]->model, model) == 0)
            return FAMILIES[i];
    return NULL;
}

static ww_status check_id(const tokenizer_source *source, const char *what, int64_t id)
{
    if (id >= TOKENIZER_NONE && id < source->vocabulary.count)
        return WW_OK;
    return ww_fail(WW_CORRUPT_FILE, "%s: the %s token is %lld; the vocabulary has %lld tokens", source->name, what,
                   (long long)id, (long long)source->vocabulary.count);
}

static ww_status check_ids(const tokenizer_source *source)
{
    const struct {
        const char *what;
        int64_t id;
    } ids[] = {
        {"BOS", source->bos},         {"EOS", source->eos},         {"EOT", source->eot},   {"EOM", source->eom},
        {"unknown", source->unknown}, {"padding", source->padding}, {"mask", source->mask}, {"separator", source->separator}};
    ww_status status = WW_OK;
    for (size_t i = 0; status == WW_OK && i < sizeof ids / sizeof ids[0]; i++)
        status = check_id(source, ids[i].what, ids[i].id);
    return status;
}

static void add_end(tokenizer *t, int64_t id)
{
    if (id >= 0 && t->end_count < TOKENIZER_ENDS_MAX && !tokenizer_is_end(t, (int32_t)id))
        t->ends[t->end_count++] = (int32_t)id;
}

/* Finds the tokens that end a text or a turn: those that the file names, and special tokens with common names for that, because
 * many files name only one. In gpt-oss an answer has several messages: <|end|> ends each of them, <|return|> or <|call|> the
 * answer. */
static void find_ends(tokenizer *t, const tokenizer_source *source)
{
    static const char *const NAMES[] = {"<|eot_id|>",      "<|eom_id|>", "<|im_end|>", "<end_of_turn>", "<|endoftext|>",
                                        "<|end_of_text|>", "<|return|>", "<|call|>",   "<|end|>"};
    const bool has_messages = tokenizer_find(t, "<|return|>") >= 0 && tokenizer_find(t, "<|call|>") >= 0;
    add_end(t, source->eos);
    add_end(t, source->eot);
    add_end(t, source->eom);
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0] - (has_messages ? 1 : 0); i++) {
        const int32_t id = tokenizer_find(t, NAMES[i]);
        if (id >= 0 && (tokenizer_is_special(t, id) || t->vocabulary.kinds[id] == TOKEN_USER_DEFINED))
            add_end(t, id);
    }
}

static ww_status show_all(tokenizer *t)
{
    const size_t size = ((size_t)t->vocabulary.count + 1) * sizeof *t->shown_at;
    ww_status status = WW_OK;
    t->shown_at = memory_alloc(size);
    if (!t->shown_at)
        return memory_failed("tokenizer", size);
    for (int32_t id = 0; status == WW_OK && id < t->vocabulary.count; id++) {
        t->shown_at[id] = t->shown.bytes;
        status = t->family->show(t, id, &t->shown);
    }
    t->shown_at[t->vocabulary.count] = t->shown.bytes;
    return status == WW_OK ? text_buffer_end(&t->shown) : status; /* allocates, even if all tokens are empty */
}

static ww_status check_added(const tokenizer *t, const tokenizer_source *source)
{
    if (t->add_bos && t->bos < 0)
        return ww_fail(WW_CORRUPT_FILE, "%s: a BOS token must be added, but tokenizer.ggml.bos_token_id is missing",
                       source->name);
    if (t->add_eos && t->eos < 0)
        return ww_fail(WW_CORRUPT_FILE, "%s: an EOS token must be added, but tokenizer.ggml.eos_token_id is missing",
                       source->name);
    return WW_OK;
}

static ww_status fill(tokenizer *t, const tokenizer_source *source)
{
    const bool unigram = t->family == &FAMILY_UNIGRAM, ends_default = t->family == &FAMILY_WORDPIECE || unigram;
    vocabulary_source pieces = source->vocabulary;
    pieces.spaces = t->family->writes_spaces;
    ww_status status = vocabulary_make(&t->vocabulary, &pieces, source->name);
    if (status == WW_OK)
        status = check_ids(source);
    if (status != WW_OK)
        return status;
    t->pre = "";
    t->bos = (int32_t)source->bos;
    t->eos = (int32_t)source->eos;
    t->unknown = (int32_t)source->unknown;
    t->separator = (int32_t)(source->separator >= 0 ? source->separator : source->eos);
    t->add_bos = source->add_bos < 0 ? t->family != &FAMILY_BYTE_BPE && !unigram : source->add_bos == 1;
    t->add_eos = source->add_eos < 0 ? ends_default : source->add_eos == 1;
    t->add_separator = unigram ? source->add_separator != 0 : source->add_separator == 1 && t->family == &FAMILY_BYTE_BPE;
    t->add_space_prefix = source->add_space_prefix;
    t->lowercase = source->lowercase;
    status = t->family->prepare(t, source);
    if (status == WW_OK)
        status = check_added(t, source);
    if (status == WW_OK)
        status = show_all(t);
    if (status == WW_OK)
        find_ends(t, source);
    return status;
}

ww_status tokenizer_make(const tokenizer_source *source, tokenizer **out)
{
    const tokenizer_family *family = find_family(source->model);
    if (!family)
        return ww_fail(WW_UNSUPPORTED,
                       "%s: the tokenizer '%.60s' (tokenizer.ggml.model) is not known; known are bert, gpt2, llama, t5",
                       source->name, source->model);
    tokenizer *t = memory_alloc_zeroed(1, sizeof *t);
    if (!t)
        return memory_failed("tokenizer", sizeof *t);
    t->family = family;
    const ww_status status = fill(t, source);
    if (status == WW_OK)
        *out = t;
    else
        tokenizer_destroy(t);
    return status;
}

void tokenizer_destroy(tokenizer *t)
{
    if (!t)
        return;
    t->family->release(t->data);
    vocabulary_free(&t->vocabulary);
    text_buffer_free(&t->shown);
    memory_free(t->shown_at);
    memory_free(t);
}

/* ---- encoding ------------------------------------------------------------------------------------------------------------ */

/* Is it a token in a quote that ends a turn or that the chat template writes? Only user-defined tokens are found there; most of
 * those are runs of spaces and the like, which text may have. */
static bool is_reserved(const tokenizer *t, const encode_work *work, size_t at, int32_t id)
{
    const ww_gguf_span piece = t->vocabulary.pieces[id];
    bool quoted = false;
    if (!work->reserved || t->vocabulary.kinds[id] != TOKEN_USER_DEFINED || (piece.text[0] != '<' && piece.text[0] != '['))
        return false;
    for (size_t i = 0; i < work->plain_count && !quoted; i++)
        quoted = work->plain[i].from <= at && at < work->plain[i].to;
    return quoted &&
           (tokenizer_is_end(t, id) || memmem(work->reserved, strlen(work->reserved), piece.text, piece.bytes) != NULL);
}

/* Splits the text at special tokens, from the left, the longest at each position, and encodes the text between them. */
static ww_status encode_text(const tokenizer *t, const char *text, size_t bytes, encode_work *work)
{
    const searched_text whole = {text, bytes, work->plain, work->plain_count};
    ww_status status = special_find_all(&t->vocabulary.special, &whole, &work->found);
    bool begins = true;
    size_t from = 0;
    for (int64_t i = work->found.count - 1; status == WW_OK && i >= 0; i--) {
        const size_t at = work->found.places[i].at;
        const int32_t id = work->found.places[i].id;
        if (at < from || is_reserved(t, work, at, id))
            continue; /* inside the previous one, or text */
        const bool ends = t->vocabulary.kinds[id] != TOKEN_USER_DEFINED;
        const fragment f = {.text = text + from, .bytes = at - from, .begins = begins, .ends = ends};
        if (f.bytes > 0 || (begins && from == 0 && t->vocabulary.kinds[id] == TOKEN_USER_DEFINED))
            status = t->family->encode(t, &f, work);
        if (status == WW_OK)
            status = token_list_add(work->out, id);
        begins = ends;
        from = at + t->vocabulary.pieces[id].bytes;
    }
    const fragment rest = {.text = text + from, .bytes = bytes - from, .begins = begins, .ends = true};
    return status == WW_OK && rest.bytes > 0 ? t->family->encode(t, &rest, work) : status;
}

static ww_status encode_between(const tokenizer *t, const char *text, size_t bytes, unsigned flags, encode_work *work)
{
    const bool add = !(flags & TOKENIZE_NO_ADD);
    ww_status status = add && t->add_bos ? token_list_add(work->out, t->bos) : WW_OK;
    if (status == WW_OK && t->family->begin)
        status = t->family->begin(t, work);
    if (status == WW_OK)
        status = encode_text(t, text, bytes, work);
    if (t->family->end)
        t->family->end(work);
    return status == WW_OK && add && t->add_eos ? token_list_add(work->out, t->eos) : status;
}

/* Replaces each U+2581 by a space. The plain parts of the text move with it; none begins or ends inside a character. */
static void replace_word_starts(text_buffer *text, text_span *plain, size_t plain_count)
{
    size_t to = 0, from_next = 0, to_next = 0;
    for (size_t at = 0; at < text->bytes; to++) {
        const bool space = text->bytes - at >= WORD_START_BYTES && memcmp(text->text + at, WORD_START, WORD_START_BYTES) == 0;
        while (from_next < plain_count && plain[from_next].from <= at)
            plain[from_next++].from = to;
        while (to_next < plain_count && plain[to_next].to <= at)
            plain[to_next++].to = to;
        text->text[to] = space ? ' ' : text->text[at];
        at += space ? WORD_START_BYTES : 1;
    }
    for (; from_next < plain_count; from_next++)
        plain[from_next].from = to;
    for (; to_next < plain_count; to_next++)
        plain[to_next].to = to;
    text->bytes = to;
}

/* Puts the text to encode into `out`, or nothing if no change is needed: repaired UTF-8, and for SentencePiece a space for each
 * U+2581, which it treats alike. */
static ww_status prepare_text(const tokenizer *t, const char *text, size_t bytes, const encode_work *work, text_buffer *out)
{
    const bool good = utf8_check(text, bytes);
    ww_status status = good ? WW_OK : unicode_repair(text, bytes, out);
    if (status != WW_OK || !t->family->writes_spaces || !memmem(text, bytes, WORD_START, WORD_START_BYTES))
        return status;
    if (good)
        status = text_buffer_add(out, text, bytes);
    if (status == WW_OK)
        replace_word_starts(out, work->plain, work->plain_count);
    return status;
}

/* Encodes with the plain parts in `work`, and frees it. */
static ww_status encode_with(const tokenizer *t, const char *text, size_t bytes, unsigned flags, encode_work *work)
{
    text_buffer prepared = {0};
    const int64_t before = work->out->count;
    ww_status status = WW_OK;
    if (bytes >= TEXT_BYTES_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "a text of %zu bytes; the maximum is %zu", bytes, TEXT_BYTES_MAX - 1);
    status = prepare_text(t, text, bytes, work, &prepared);
    if (prepared.bytes > 0) {
        text = prepared.text;
        bytes = prepared.bytes;
    }
    if (status == WW_OK)
        status = encode_between(t, text, bytes, flags, work);
    if (status != WW_OK)
        work->out->count = before;
    merge_free(&work->merge);
    special_list_free(&work->found);
    text_buffer_free(&work->text);
    text_buffer_free(&work->name);
    characters_free(&work->first);
    characters_free(&work->second);
    text_buffer_free(&prepared);
    return status;
}

ww_status tokenizer_encode(const tokenizer *t, const char *text, size_t bytes, unsigned flags, token_list *out)
{
    text_span all = {0, SIZE_MAX}; /* repairing may make the text longer */
    encode_work work = {.out = out, .plain = &all, .plain_count = flags & TOKENIZE_PLAIN ? 1 : 0};
    return encode_with(t, text, bytes, flags, &work);
}

ww_status tokenizer_encode_quotes(const tokenizer *t, const quoted_text *text, token_list *out)
{
    encode_work work = {.out = out, .plain_count = text->quote_count, .reserved = text->reserved};
    const size_t size = (text->quote_count + 1) * sizeof *work.plain;
    if (!utf8_check(text->text, text->bytes))
        return ww_fail(WW_INVALID_ARGUMENT, "the text is not UTF-8");
    work.plain = memory_alloc_zeroed(1, size);
    if (!work.plain)
        return memory_failed("quotes of a text", size);
    if (text->quote_count > 0)
        memcpy(work.plain, text->quotes, text->quote_count * sizeof *work.plain);
    const ww_status status = encode_with(t, text->text, text->bytes, TOKENIZE_NO_ADD, &work);
    memory_free(work.plain);
    return status;
}

void tokenizer_truncate(const tokenizer *t, unsigned flags, int64_t tokens_max, token_list *list)
{
    if (list->count <= tokens_max)
        return;
    list->count = max_i64(tokens_max, 0);
    if (tokens_max > 0 && t->add_eos && !(flags & TOKENIZE_NO_ADD))
        list->ids[tokens_max - 1] = t->eos;
}

/* ---- back ---------------------------------------------------------------------------------------------------------------- */

ww_status tokenizer_piece(const tokenizer *t, int32_t id, const char **bytes, size_t *count)
{
    if (id < 0 || id >= t->vocabulary.count)
        return ww_fail(WW_OUT_OF_RANGE, "token %d: the vocabulary has %d tokens", (int)id, (int)t->vocabulary.count);
    *bytes = t->shown.text + t->shown_at[id];
    *count = t->shown_at[id + 1] - t->shown_at[id];
    return WW_OK;
}

ww_status tokenizer_decode(const tokenizer *t, const int32_t *ids, int64_t count, char **text, size_t *bytes)
{
    text_buffer all = {0};
    ww_status status = WW_OK;
    bool strip = t->family->strips_space && t->add_space_prefix;
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        const char *piece = NULL;
        size_t size = 0;
        status = tokenizer_piece(t, ids[i], &piece, &size);
        if (status != WW_OK || tokenizer_is_special(t, ids[i]) || size == 0)
            continue;
        const size_t skip = strip && piece[0] == ' ';
        strip = false;
        status = text_buffer_add(&all, piece + skip, size - skip);
    }
    if (status == WW_OK)
        status = text_buffer_end(&all);
    if (status != WW_OK) {
        text_buffer_free(&all);
        return status;
    }
    *text = all.text;
    *bytes = all.bytes;
    return WW_OK;
}

/* ---- which is which ------------------------------------------------------------------------------------------------------ */

int32_t tokenizer_size(const tokenizer *t)
{
    return t->vocabulary.count;
}

int32_t tokenizer_bos(const tokenizer *t)
{
    return t->bos;
}

int32_t tokenizer_eos(const tokenizer *t)
{
    return t->eos;
}

int32_t tokenizer_unknown(const tokenizer *t)
{
    return t->unknown;
}

/* The token that ends a text and, for models like RoBERTa, the separator after it. */
size_t tokenizer_between(const tokenizer *t, int32_t ids[2])
{
    size_t count = 0;
    if (t->add_eos)
        ids[count++] = t->eos;
    if (t->add_separator && t->separator >= 0)
        ids[count++] = t->separator;
    return count;
}

int32_t tokenizer_find(const tokenizer *t, const char *piece)
{
    return vocabulary_find(&t->vocabulary, piece, strlen(piece));
}

bool tokenizer_is_special(const tokenizer *t, int32_t id)
{
    if (id < 0 || id >= t->vocabulary.count)
        return false;
    return t->vocabulary.kinds[id] == TOKEN_CONTROL || t->vocabulary.kinds[id] == TOKEN_UNKNOWN;
}

bool tokenizer_is_end(const tokenizer *t, int32_t id)
{
    for (int32_t i = 0; i < t->end_count; i++)
        if (t->ends[i] == id)
            return true;
    return false;
}

bool tokenizer_has_end(const tokenizer *t)
{
    return t->end_count > 0;
}

const char *tokenizer_model(const tokenizer *t)
{
    return t->family->model;
}

const char *tokenizer_pre(const tokenizer *t)
{
    return t->pre;
}
