/* SentencePiece's BPE: two neighbours that make the piece with the best score are merged first, the leftmost on ties. A
 * character that is not a piece becomes its bytes, or the unknown token if the vocabulary has no bytes. Spaces are U+2581.
 *
 * An unused piece may be made on the way to a longer one. If it is left in the end, it is split into its parts again. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/tokenizer/family.h"

typedef struct sentencepiece {
    int32_t bytes[256];
    bool has_bytes, has_unused;
    uint32_t *orders; /* of each piece, for merging: smaller for larger scores */
} sentencepiece;

/* Pieces that text can become. */
static bool is_text(const vocabulary *v, int32_t id)
{
    return id >= 0 && (v->kinds[id] == TOKEN_NORMAL || v->kinds[id] == TOKEN_USER_DEFINED || v->kinds[id] == TOKEN_UNUSED);
}

/* Maps floats to integers in opposite order. */
static uint32_t order_of(float score)
{
    uint32_t bits;
    score += 0.0F; /* -0 and +0 are equal */
    memcpy(&bits, &score, sizeof bits);
    return bits & UINT32_C(0x80000000) ? bits : ~bits & UINT32_C(0x7FFFFFFF);
}

ww_status sentencepiece_bytes(const vocabulary *v, const char *name, int32_t bytes[256], bool *has_bytes)
{
    int found = 0;
    for (int byte = 0; byte < 256; byte++) {
        char piece[8];
        snprintf(piece, sizeof piece, "<0x%02X>", (unsigned)byte);
        const int32_t id = vocabulary_find(v, piece, strlen(piece));
        bytes[byte] = id >= 0 && v->kinds[id] == TOKEN_BYTE ? id : -1;
        found += bytes[byte] >= 0;
    }
    *has_bytes = found == 256;
    if (found != 0 && found != 256)
        return ww_fail(WW_CORRUPT_FILE, "%s: the vocabulary has %d of the 256 byte tokens", name, found);
    return WW_OK;
}

static ww_status prepare(tokenizer *t, const tokenizer_source *source)
{
    const vocabulary *v = &t->vocabulary;
    if (!v->scores)
        return ww_fail(WW_CORRUPT_FILE, "%s: tokenizer.ggml.scores is missing; the tokenizer 'llama' needs it", source->name);
    sentencepiece *s = memory_alloc_zeroed(1, sizeof *s);
    t->data = s;
    if (!s)
        return memory_failed("tokenizer", sizeof *s);
    s->orders = memory_alloc((size_t)v->count * sizeof *s->orders);
    if (!s->orders)
        return memory_failed("tokenizer", (size_t)v->count * sizeof *s->orders);
    for (int32_t id = 0; id < v->count; id++) {
        s->orders[id] = order_of(v->scores[id]);
        s->has_unused = s->has_unused || v->kinds[id] == TOKEN_UNUSED;
    }
    const ww_status status = sentencepiece_bytes(v, source->name, s->bytes, &s->has_bytes);
    if (status == WW_OK && !s->has_bytes && t->unknown < 0)
        return ww_fail(WW_CORRUPT_FILE, "%s: the vocabulary has neither byte tokens nor an unknown token", source->name);
    return status;
}

static void release(void *data)
{
    sentencepiece *s = data;
    if (s)
        memory_free(s->orders);
    memory_free(s);
}

/* ---- encoding ------------------------------------------------------------------------------------------------------------ */

typedef struct text_rule {
    const vocabulary *vocabulary;
    const uint32_t *orders;
    const char *text;
    uint32_t *cuts; /* of encode_work */
} text_rule;

static bool find_text(const void *context, const merge_symbol *left, const merge_symbol *right, merge_found *found)
{
    const text_rule *rule = context;
    const int32_t id = vocabulary_find(rule->vocabulary, rule->text + left->start, (size_t)left->bytes + right->bytes);
    if (!is_text(rule->vocabulary, id))
        return false;
    *found = (merge_found){.order = rule->orders[id], .id = id};
    return true;
}

/* Remembers the parts of an unused piece. */
static void note_unused(const void *context, const merge_symbol *left, int32_t id)
{
    const text_rule *rule = context;
    if (rule->vocabulary->kinds[id] == TOKEN_UNUSED)
        rule->cuts[id] = left->bytes;
}

/* Copies the fragment with spaces as in the vocabulary. */
static ww_status escape(const tokenizer *t, const fragment *f, text_buffer *out)
{
    ww_status status = t->add_space_prefix && f->begins ? text_buffer_add(out, WORD_START, WORD_START_BYTES) : WW_OK;
    for (size_t at = 0; status == WW_OK && at < f->bytes;) {
        const char *space = memchr(f->text + at, ' ', f->bytes - at);
        const size_t bytes = space ? (size_t)(space - f->text) - at : f->bytes - at;
        status = text_buffer_add(out, f->text + at, bytes);
        if (status == WW_OK && space)
            status = text_buffer_add(out, WORD_START, WORD_START_BYTES);
        at += bytes + (space != NULL);
    }
    return status;
}

static ww_status add_symbols(const tokenizer *t, encode_work *work)
{
    ww_status status = WW_OK;
    const text_buffer *text = &work->text;
    merge_clear(&work->merge);
    for (size_t at = 0, size; status == WW_OK && at < text->bytes; at += size) {
        uint32_t c;
        size = utf8_read(text->text + at, text->bytes - at, &c);
        size += size == 0;
        const int32_t id = vocabulary_find(&t->vocabulary, text->text + at, size);
        status = merge_add(&work->merge, is_text(&t->vocabulary, id) ? id : -1, (uint32_t)at, (uint32_t)size);
    }
    return status;
}

/* Adds a symbol that is not a piece: its bytes, or one unknown token for a run of such symbols. */
static ww_status add_unknown(const tokenizer *t, const merge_symbol *symbol, encode_work *work)
{
    const sentencepiece *s = t->data;
    ww_status status = WW_OK;
    if (!s->has_bytes)
        status = work->after_unknown ? WW_OK : token_list_add(work->out, t->unknown);
    for (uint32_t i = 0; s->has_bytes && status == WW_OK && i < symbol->bytes; i++)
        status = token_list_add(work->out, s->bytes[(unsigned char)work->text.text[symbol->start + i]]);
    work->after_unknown = true;
    return status;
}

static int32_t find_part(const tokenizer *t, const merge_symbol *symbol, const encode_work *work)
{
    return vocabulary_find(&t->vocabulary, work->text.text + symbol->start, symbol->bytes);
}

/* Pushes a symbol on the stack of later ones, which has `count`. */
static ww_status wait_for_later(encode_work *work, size_t count, const merge_symbol *symbol)
{
    if (count == work->waiting_room) {
        const size_t room = 2 * count + 16;
        merge_symbol *larger = memory_resize(work->waiting, room * sizeof *larger);
        if (!larger)
            return memory_failed("unused pieces", room * sizeof *larger);
        work->waiting = larger;
        work->waiting_room = room;
    }
    work->waiting[count] = *symbol;
    return WW_OK;
}

/* The bytes of the left of the two parts of an unused piece; 0 if the symbol is not split. */
static uint32_t cut_of(const tokenizer *t, const merge_symbol *symbol, const encode_work *work)
{
    if (symbol->id < 0 || t->vocabulary.kinds[symbol->id] != TOKEN_UNUSED)
        return 0;
    const uint32_t cut = work->cuts[symbol->id];
    return cut < symbol->bytes ? cut : 0;
}

/* Appends a symbol of the result. An unused piece is split into the last two symbols that could have become it, and so on;
 * either may not be a piece. The right parts wait on a stack, because a file may have unused pieces of any length, each a byte
 * longer than the previous one. */
static ww_status add_symbol(const tokenizer *t, merge_symbol symbol, encode_work *work)
{
    size_t waiting = 0;
    for (;;) {
        ww_status status = WW_OK;
        for (uint32_t cut = cut_of(t, &symbol, work); status == WW_OK && cut > 0; cut = cut_of(t, &symbol, work)) {
            const merge_symbol right = {.start = symbol.start + cut, .bytes = symbol.bytes - cut};
            status = wait_for_later(work, waiting, &right);
            waiting += status == WW_OK;
            symbol.bytes = cut;
            symbol.id = find_part(t, &symbol, work);
        }
        if (status == WW_OK && symbol.id < 0)
            status = add_unknown(t, &symbol, work);
        else if (status == WW_OK)
            status = token_list_add(work->out, symbol.id);
        work->after_unknown = symbol.id < 0;
        if (status != WW_OK || waiting == 0)
            return status;
        symbol = work->waiting[--waiting];
        symbol.id = find_part(t, &symbol, work);
    }
}

static ww_status begin(const tokenizer *t, encode_work *work)
{
    const sentencepiece *s = t->data;
    if (!s->has_unused)
        return WW_OK;
    work->cuts = memory_alloc_zeroed((size_t)t->vocabulary.count, sizeof *work->cuts);
    return work->cuts ? WW_OK : memory_failed("unused pieces", (size_t)t->vocabulary.count * sizeof *work->cuts);
}

static void end(encode_work *work)
{
    memory_free(work->cuts);
    memory_free(work->waiting);
    work->cuts = NULL;
    work->waiting = NULL;
    work->waiting_room = 0;
}

static ww_status encode(const tokenizer *t, const fragment *f, encode_work *work)
{
    const sentencepiece *s = t->data;
    work->text.bytes = 0;
    ww_status status = escape(t, f, &work->text);
    if (status == WW_OK)
        status = add_symbols(t, work);
    const text_rule context = {.vocabulary = &t->vocabulary, .orders = s->orders, .text = work->text.text, .cuts = work->cuts};
    const merge_rule rule = {.find = find_text, .waits = s->has_unused ? note_unused : NULL, .context = &context};
    if (status == WW_OK)
        status = merge_run(&work->merge, &rule);
    work->after_unknown = false;
    for (int32_t i = work->merge.count > 0 ? 0 : -1; status == WW_OK && i >= 0; i = work->merge.symbols[i].next)
        status = add_symbol(t, work->merge.symbols[i], work);
    return status;
}

/* ---- back ---------------------------------------------------------------------------------------------------------------- */

ww_status sentencepiece_show(const tokenizer *t, int32_t id, text_buffer *out)
{
    const ww_gguf_span piece = t->vocabulary.pieces[id];
    unsigned byte;
    if (t->vocabulary.kinds[id] == TOKEN_BYTE) {
        char name[8] = "";
        if (piece.bytes == 6)
            memcpy(name, piece.text, 6);
        if (sscanf(name, "<0x%2X>", &byte) == 1) {
            const char c = (char)byte;
            return text_buffer_add(out, &c, 1);
        }
    }
    ww_status status = WW_OK;
    for (size_t at = 0; status == WW_OK && at < piece.bytes;) {
        const bool space = piece.bytes - at >= WORD_START_BYTES && memcmp(piece.text + at, WORD_START, WORD_START_BYTES) == 0;
        status = space ? text_buffer_add(out, " ", 1) : text_buffer_add(out, piece.text + at, 1);
        at += space ? WORD_START_BYTES : 1;
    }
    return status;
}

const tokenizer_family FAMILY_SENTENCEPIECE = {.model = "llama",
                                               .prepare = prepare,
                                               .release = release,
                                               .begin = begin,
                                               .encode = encode,
                                               .end = end,
                                               .show = sentencepiece_show,
                                               .writes_spaces = true,
                                               .strips_space = true};
