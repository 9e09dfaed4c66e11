/* Byte-level BPE: the pre-tokenizer splits the text, each byte of a piece is a symbol, and neighbours are merged in the order
 * of the file's list of merges.
 *
 * Vocabularies write the 256 bytes as 256 printable characters: 33..126, 161..172 and 174..255 as themselves, the others in
 * order starting at U+0100. A byte that a vocabulary does not have is dropped, as in the models' own tokenizers. */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/tokenizer/family.h"
#include "model/tokenizer/pretokenizer.h"
#include "model/tokenizer/unicode.h"

typedef struct merge_pair {
    uint64_t key; /* left id, right id */
    uint32_t rank;
    int32_t id; /* of the result; -1: the slot is free */
} merge_pair;

typedef struct byte_bpe {
    pretokenizer *pre;
    int32_t bytes[256]; /* ids */
    merge_pair *pairs;  /* open addressing */
    uint32_t pair_mask; /* a power of two minus one */
    const hash_key *key;
} byte_bpe;

/* ---- the alphabet -------------------------------------------------------------------------------------------------------- */

static bool is_printed(int byte)
{
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

static uint32_t character_of(int byte)
{
    uint32_t others = 0;
    if (is_printed(byte))
        return (uint32_t)byte;
    for (int i = 0; i < byte; i++)
        others += !is_printed(i);
    return 256 + others;
}

/* ---- merges -------------------------------------------------------------------------------------------------------------- */

static const merge_pair *find_pair(const byte_bpe *b, uint64_t key)
{
    uint32_t slot = (uint32_t)hash_number(b->key, key) & b->pair_mask;
    while (b->pairs[slot].id >= 0 && b->pairs[slot].key != key)
        slot = (slot + 1) & b->pair_mask;
    return &b->pairs[slot];
}

static uint64_t pair_key(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

/* Adds a merge "left right": both and their result must be tokens, and neither may be empty, or merging would never end. */
static ww_status add_merge(const tokenizer *t, const tokenizer_source *source, int64_t rank)
{
    const byte_bpe *b = t->data;
    const vocabulary *v = &t->vocabulary;
    const ww_gguf_span merge = source->merges[rank];
    const char *space = merge.bytes > 0 ? memchr(merge.text + 1, ' ', merge.bytes - 1) : NULL;
    const size_t left_bytes = space ? (size_t)(space - merge.text) : 0;
    const size_t right_bytes = space ? merge.bytes - left_bytes - 1 : 0;
    char shown[80];
    text_copy(shown, sizeof shown, "");
    if (merge.bytes < sizeof shown) {
        memcpy(shown, merge.text, merge.bytes);
        shown[merge.bytes] = '\0';
    }
    if (!space || right_bytes == 0)
        return ww_fail(WW_CORRUPT_FILE, "%s: merge %lld ('%s') is not two pieces with a space between them", source->name,
                       (long long)rank, shown);
    char *joined = memory_alloc(left_bytes + right_bytes);
    if (!joined)
        return memory_failed("merges", left_bytes + right_bytes);
    memcpy(joined, merge.text, left_bytes);
    memcpy(joined + left_bytes, space + 1, right_bytes);
    const int32_t left = vocabulary_find(v, merge.text, left_bytes), right = vocabulary_find(v, space + 1, right_bytes);
    const int32_t id = vocabulary_find(v, joined, left_bytes + right_bytes);
    memory_free(joined);
    if (left < 0 || right < 0 || id < 0)
        return ww_fail(WW_CORRUPT_FILE, "%s: merge %lld ('%s'): %s is not in the vocabulary", source->name, (long long)rank,
                       shown,
                       left < 0    ? "the left piece"
                       : right < 0 ? "the right piece"
                                   : "its result");
    merge_pair *pair = (merge_pair *)find_pair(b, pair_key(left, right));
    if (pair->id < 0) /* if a merge occurs twice, the first counts */
        *pair = (merge_pair){.key = pair_key(left, right), .rank = (uint32_t)rank, .id = id};
    return WW_OK;
}

static ww_status add_merges(const tokenizer *t, const tokenizer_source *source)
{
    byte_bpe *b = t->data;
    size_t slots = 16;
    if (source->merge_count > INT32_MAX / 4)
        return ww_fail(WW_CORRUPT_FILE, "%s: %lld merges; the maximum is %d", source->name, (long long)source->merge_count,
                       INT32_MAX / 4);
    while (slots < 2 * (size_t)source->merge_count)
        slots *= 2;
    b->pairs = memory_alloc(slots * sizeof *b->pairs);
    if (!b->pairs)
        return memory_failed("merges", slots * sizeof *b->pairs);
    memset(b->pairs, -1, slots * sizeof *b->pairs);
    b->pair_mask = (uint32_t)(slots - 1);
    b->key = hash_process_key();
    ww_status status = WW_OK;
    for (int64_t rank = 0; status == WW_OK && rank < source->merge_count; rank++)
        status = add_merge(t, source, rank);
    return status;
}

static ww_status prepare(tokenizer *t, const tokenizer_source *source)
{
    if (!source->pre)
        return ww_fail(WW_UNSUPPORTED,
                       "%s: tokenizer.ggml.pre is missing, so it is not known how to split texts; convert the model again",
                       source->name);
    if (!source->merges)
        return ww_fail(WW_CORRUPT_FILE, "%s: tokenizer.ggml.merges is missing; the tokenizer 'gpt2' needs it", source->name);
    byte_bpe *b = memory_alloc_zeroed(1, sizeof *b);
    t->data = b;
    if (!b)
        return memory_failed("tokenizer", sizeof *b);
    ww_status status = pretokenizer_create(source->pre, source->name, &b->pre);
    if (status != WW_OK)
        return status;
    t->pre = pretokenizer_name(b->pre);
    if (source->add_bos < 0)
        t->add_bos = pretokenizer_adds_bos(b->pre);
    if (source->add_eos < 0)
        t->add_eos = pretokenizer_adds_ends(b->pre);
    if (source->add_separator < 0)
        t->add_separator = pretokenizer_adds_ends(b->pre);
    int known = 0;
    for (int byte = 0; byte < 256; byte++) {
        text_buffer name = {0};
        const uint32_t c = character_of(byte);
        status = unicode_encode(&c, 1, &name);
        b->bytes[byte] = status == WW_OK ? vocabulary_find(&t->vocabulary, name.text, name.bytes) : -1;
        known += b->bytes[byte] >= 0;
        text_buffer_free(&name);
        if (status != WW_OK)
            return status;
    }
    if (known == 0)
        return ww_fail(WW_CORRUPT_FILE, "%s: the vocabulary has none of the 256 byte tokens of the tokenizer 'gpt2'",
                       source->name);
    return add_merges(t, source);
}

static void release(void *data)
{
    byte_bpe *b = data;
    if (b) {
        pretokenizer_destroy(b->pre);
        memory_free(b->pairs);
    }
    memory_free(b);
}

/* ---- encoding ------------------------------------------------------------------------------------------------------------ */

static bool find_ids(const void *context, const merge_symbol *left, const merge_symbol *right, merge_found *found)
{
    const merge_pair *pair = find_pair(context, pair_key(left->id, right->id));
    if (pair->id < 0)
        return false;
    *found = (merge_found){.order = pair->rank, .id = pair->id};
    return true;
}

typedef struct piece_job {
    const tokenizer *t;
    encode_work *work;
} piece_job;

/* Finds the token that equals the whole piece, or -1. */
static ww_status whole_word(const tokenizer *t, const char *text, size_t bytes, text_buffer *name, int32_t *id)
{
    ww_status status = WW_OK;
    name->bytes = 0;
    *id = -1;
    if (bytes > t->vocabulary.longest)
        return WW_OK;
    for (size_t i = 0; status == WW_OK && i < bytes; i++) {
        const uint32_t c = character_of((unsigned char)text[i]);
        status = unicode_encode(&c, 1, name);
    }
    if (status == WW_OK)
        *id = vocabulary_find(&t->vocabulary, name->text, name->bytes);
    return status;
}

static ww_status encode_piece(void *context, const char *text, size_t bytes)
{
    const piece_job *job = context;
    const byte_bpe *b = job->t->data;
    merge_work *merge = &job->work->merge;
    ww_status status = WW_OK;
    if (pretokenizer_whole_words(b->pre)) {
        int32_t id;
        status = whole_word(job->t, text, bytes, &job->work->name, &id);
        if (status != WW_OK || id >= 0)
            return status == WW_OK ? token_list_add(job->work->out, id) : status;
    }
    merge_clear(merge);
    for (size_t i = 0; status == WW_OK && i < bytes; i++) {
        const int32_t id = b->bytes[(unsigned char)text[i]];
        if (id >= 0)
            status = merge_add(merge, id, (uint32_t)i, 1);
    }
    const merge_rule rule = {.find = find_ids, .context = b};
    if (status == WW_OK)
        status = merge_run(merge, &rule);
    for (int32_t i = merge->count > 0 ? 0 : -1; status == WW_OK && i >= 0; i = merge->symbols[i].next)
        status = token_list_add(job->work->out, merge->symbols[i].id);
    return status;
}

static ww_status encode(const tokenizer *t, const fragment *f, encode_work *work)
{
    const byte_bpe *b = t->data;
    fragment composed = *f;
    ww_status status = WW_OK;
    if (pretokenizer_composes(b->pre)) {
        work->text.bytes = 0;
        status = unicode_compose(f->text, f->bytes, &work->text);
        composed.text = work->text.text;
        composed.bytes = work->text.bytes;
    }
    piece_job job = {.t = t, .work = work};
    return status == WW_OK ? pretokenizer_cut(b->pre, &composed, &work->match, encode_piece, &job) : status;
}

static void end(encode_work *work)
{
    pretokenizer_free_match(work->match);
    work->match = NULL;
}

/* ---- back ---------------------------------------------------------------------------------------------------------------- */

/* The byte that a character of the alphabet stands for, or -1. */
static int byte_of(uint32_t c)
{
    if (c < 256)
        return is_printed((int)c) ? (int)c : -1;
    for (int byte = 0, others = 0; byte < 256; byte++) {
        if (is_printed(byte))
            continue;
        if (c == 256U + (uint32_t)others)
            return byte;
        others++;
    }
    return -1;
}

static ww_status show(const tokenizer *t, int32_t id, text_buffer *out)
{
    const ww_gguf_span piece = t->vocabulary.pieces[id];
    const size_t before = out->bytes;
    const unsigned char kind = t->vocabulary.kinds[id];
    bool coded = kind != TOKEN_CONTROL && kind != TOKEN_USER_DEFINED;
    for (size_t at = 0, size; coded && at < piece.bytes; at += size) {
        uint32_t c = 0;
        size = utf8_read(piece.text + at, piece.bytes - at, &c);
        const int byte = size > 0 ? byte_of(c) : -1;
        const char shown = (char)byte;
        coded = byte >= 0;
        const ww_status status = coded ? text_buffer_add(out, &shown, 1) : WW_OK;
        if (status != WW_OK)
            return status;
    }
    if (coded)
        return WW_OK;
    out->bytes = before; /* a piece with characters outside the alphabet is text unchanged */
    return text_buffer_add(out, piece.text, piece.bytes);
}

const tokenizer_family FAMILY_BYTE_BPE = {
    .model = "gpt2", .prepare = prepare, .release = release, .encode = encode, .end = end, .show = show};
