/* WordPiece, as BERT and its relatives use it: a text is cleaned, lowercased without accents, and split at white space,
 * punctuation and CJK characters; each word is split into the longest pieces of the vocabulary, from the left. A word that
 * cannot be split this way, or has more than 100 characters, becomes the unknown token.
 *
 * Model files write the start of a word with U+2581 in front and a continuation without it. A continuation must not be confused
 * with a word that begins with the character U+2581: keys of words have U+2581, keys of continuations do not, and a
 * continuation is never looked up under a key that begins with it. */
#include <string.h>

#include "base/integers.h"
#include "base/memory.h"
#include "model/tokenizer/family.h"
#include "model/tokenizer/unicode.h"

enum { WORD_CHARACTERS_MAX = 100 };

static ww_status prepare(tokenizer *t, const tokenizer_source *source)
{
    if (t->unknown < 0)
        return ww_fail(WW_CORRUPT_FILE, "%s: tokenizer.ggml.unknown_token_id is missing; the tokenizer 'bert' needs it",
                       source->name);
    return WW_OK;
}

static void release(void *data)
{
    (void)data;
}

/* ---- normalising --------------------------------------------------------------------------------------------------------- */

/* Characters that are words by themselves. The blocks are those of the published models, which omit a part of extension E. */
static bool is_cjk(uint32_t c)
{
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
           (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

/* Copies the characters of the fragment without controls, with white space as spaces, and CJK characters between spaces. */
static ww_status clean(const fragment *f, characters *all, characters *out)
{
    all->count = 0;
    ww_status status = unicode_decode(f->text, f->bytes, all);
    for (size_t i = 0; status == WW_OK && i < all->count; i++) {
        const uint32_t c = all->values[i];
        if (c == 0 || c == 0xFFFD || unicode_is_control(c))
            continue;
        const bool apart = is_cjk(c);
        if (apart)
            status = characters_add(out, ' ');
        if (status == WW_OK)
            status = characters_add(out, unicode_is_space(c) ? ' ' : c);
        if (status == WW_OK && apart)
            status = characters_add(out, ' ');
    }
    return status;
}

/* Leaves the characters of the fragment, ready to be split, in work->first. */
static ww_status normalise(const tokenizer *t, const fragment *f, encode_work *work)
{
    characters *clean_text = &work->second, *result = &work->first;
    clean_text->count = 0;
    ww_status status = clean(f, result, clean_text);
    if (status != WW_OK)
        return status;
    if (!t->lowercase) {
        const characters held = *result;
        *result = *clean_text;
        *clean_text = held;
        return WW_OK;
    }
    result->count = 0;
    status = unicode_decompose(clean_text->values, clean_text->count, result);
    size_t kept = 0;
    for (size_t i = 0; status == WW_OK && i < result->count; i++)
        if (!unicode_is_mark(result->values[i]))
            result->values[kept++] = unicode_lower(result->values[i]);
    result->count = kept;
    return status;
}

/* ---- cutting words ------------------------------------------------------------------------------------------------------- */

/* The longest piece that text[0..bytes) begins with, or -1; the first `skip` bytes belong to the key and not to the word.
 * `taken` gets the bytes of the word that it covers. */
static int32_t longest_piece(const vocabulary *v, const char *text, size_t bytes, size_t skip, size_t *taken)
{
    uint64_t states[(4 * WORD_CHARACTERS_MAX + WORD_START_BYTES) / 8 + 1]; /* of the hash, after each eight bytes */
    const size_t bytes_max = min_size(bytes, v->longest);
    states[0] = v->key->seed;
    for (size_t at = 0; at + 8 < bytes_max; at += 8)
        states[at / 8 + 1] = hash_step(v->key, states[at / 8], text + at);
    for (size_t size = bytes_max; size > skip; size--) {
        if (size < bytes && ((unsigned char)text[size] & 0xC0) == 0x80)
            continue; /* inside a character */
        const int32_t id = vocabulary_find_hashed(v, text, size, hash_end(v->key, states[(size - 1) / 8], text, size));
        if (id >= 0 && v->kinds[id] != TOKEN_CONTROL) {
            *taken = size;
            return id;
        }
    }
    return -1;
}

/* `text` is the word with U+2581 in front. */
static ww_status encode_word(const tokenizer *t, const char *text, size_t bytes, token_list *out)
{
    const int64_t before = out->count;
    ww_status status = WW_OK;
    size_t skip = WORD_START_BYTES;
    for (size_t at = 0, taken = 0; status == WW_OK && at < bytes; at += taken, skip = 0) {
        const bool hidden = at > 0 && bytes - at > WORD_START_BYTES && memcmp(text + at, WORD_START, WORD_START_BYTES) == 0;
        const size_t sought = hidden ? WORD_START_BYTES : bytes - at; /* nothing longer can be a continuation */
        const int32_t id = longest_piece(&t->vocabulary, text + at, sought, skip, &taken);
        if (id < 0) {
            out->count = before;
            return token_list_add(out, t->unknown);
        }
        status = token_list_add(out, id);
    }
    return status;
}

/* The word of characters [from, to). */
static ww_status add_word(const tokenizer *t, encode_work *work, size_t from, size_t to)
{
    if (from == to)
        return WW_OK;
    if (to - from > WORD_CHARACTERS_MAX)
        return token_list_add(work->out, t->unknown);
    work->text.bytes = 0;
    ww_status status = text_buffer_add(&work->text, WORD_START, WORD_START_BYTES);
    if (status == WW_OK)
        status = unicode_encode(work->first.values + from, to - from, &work->text);
    return status == WW_OK ? encode_word(t, work->text.text, work->text.bytes, work->out) : status;
}

static ww_status encode(const tokenizer *t, const fragment *f, encode_work *work)
{
    ww_status status = normalise(t, f, work);
    const characters *all = &work->first;
    size_t from = 0;
    for (size_t i = 0; status == WW_OK && i < all->count; i++) {
        const bool space = unicode_is_space(all->values[i]), mark = unicode_is_punctuation(all->values[i]);
        if (!space && !mark)
            continue;
        status = add_word(t, work, from, i);
        if (status == WW_OK && mark)
            status = add_word(t, work, i, i + 1);
        from = i + 1;
    }
    return status == WW_OK ? add_word(t, work, from, all->count) : status;
}

static ww_status show(const tokenizer *t, int32_t id, text_buffer *out)
{
    const ww_gguf_span piece = t->vocabulary.pieces[id];
    if (piece.bytes < WORD_START_BYTES || memcmp(piece.text, WORD_START, WORD_START_BYTES) != 0)
        return text_buffer_add(out, piece.text, piece.bytes);
    const ww_status status = text_buffer_add(out, " ", 1);
    return status == WW_OK ? text_buffer_add(out, piece.text + WORD_START_BYTES, piece.bytes - WORD_START_BYTES) : status;
}

const tokenizer_family FAMILY_WORDPIECE = {
    .model = "bert", .prepare = prepare, .release = release, .encode = encode, .show = show, .strips_space = true};
