/* SentencePiece's unigram model: of all ways to split a text into pieces, the one with the largest sum of scores.
 *
 * First the file's map of characters changes the text (charsmap.h); spaces become U+2581, one is put in front, and repeated
 * ones and those at the ends are removed if the file says so. A character that no piece begins with costs more than any piece.
 * Sums are rounded to f32 after each piece, and on ties the piece that begins first wins, as in SentencePiece: models were
 * trained with its tokens. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/tokenizer/charsmap.h"
#include "model/tokenizer/family.h"
#include "model/tokenizer/piece_tree.h"

#define UNKNOWN_PENALTY 10.0F
enum { PIECE_BYTES_MAX = 1024 }; /* bounds the work per byte of a text */

typedef struct unigram {
    charsmap map;
    piece_tree tree;
    int32_t bytes[256]; /* -1: the vocabulary has none */
    bool has_bytes, removes_spaces;
    float unknown_score, largest_score;
} unigram;

/* The best split of the text up to this position. */
typedef struct best_end {
    float score;
    int32_t id;     /* of the last piece */
    uint32_t begin; /* of that piece; UINT32_MAX: no piece ends here */
} best_end;
#define NO_PIECE UINT32_MAX

/* ---- making it ----------------------------------------------------------------------------------------------------------- */

static bool is_text(const vocabulary *v, int32_t id)
{
    return v->kinds[id] == TOKEN_NORMAL || v->kinds[id] == TOKEN_USER_DEFINED;
}

static ww_status check_pieces(const vocabulary *v, const char *name)
{
    for (int32_t id = 0; id < v->count; id++) {
        if (is_text(v, id) && v->pieces[id].bytes > PIECE_BYTES_MAX)
            return ww_fail(WW_UNSUPPORTED, "%s: token %d has %zu bytes; the maximum is %d", name, (int)id, v->pieces[id].bytes,
                           (int)PIECE_BYTES_MAX);
        if (!isfinite(v->scores[id]))
            return ww_fail(WW_CORRUPT_FILE, "%s: the score of token %d is not finite", name, (int)id);
    }
    return WW_OK;
}

static void find_scores(const vocabulary *v, unigram *u)
{
    float smallest = INFINITY, largest = -INFINITY;
    for (int32_t id = 0; id < v->count; id++)
        if (v->kinds[id] == TOKEN_NORMAL) {
            smallest = fminf(smallest, v->scores[id]);
            largest = fmaxf(largest, v->scores[id]);
        }
    u->unknown_score = (isfinite(smallest) ? smallest : 0.0F) - UNKNOWN_PENALTY;
    u->largest_score = isfinite(largest) ? largest : 0.0F;
}

static ww_status prepare(tokenizer *t, const tokenizer_source *source)
{
    const vocabulary *v = &t->vocabulary;
    if (!v->scores)
        return ww_fail(WW_CORRUPT_FILE, "%s: tokenizer.ggml.scores is missing; the tokenizer 't5' needs it", source->name);
    unigram *u = memory_alloc_zeroed(1, sizeof *u);
    t->data = u;
    if (!u)
        return memory_failed("tokenizer", sizeof *u);
    u->removes_spaces = source->removes_spaces;
    ww_status status = check_pieces(v, source->name);
    if (status == WW_OK)
        status = sentencepiece_bytes(v, source->name, u->bytes, &u->has_bytes);
    if (status == WW_OK && !u->has_bytes && t->unknown < 0)
        status = ww_fail(WW_CORRUPT_FILE, "%s: the vocabulary has neither byte tokens nor an unknown token", source->name);
    if (status == WW_OK)
        status = charsmap_make(&u->map, source->charsmap, source->charsmap_bytes, source->name);
    if (status == WW_OK)
        status = piece_tree_make(&u->tree, v, is_text);
    find_scores(v, u);
    return status;
}

static void release(void *data)
{
    unigram *u = data;
    if (u) {
        charsmap_free(&u->map);
        piece_tree_free(&u->tree);
    }
    memory_free(u);
}

/* ---- the text as pieces have it ------------------------------------------------------------------------------------------ */

/* The next sequence of a text and its replacement of `*bytes` bytes. Returns the bytes of the sequence. */
static size_t next_sequence(const unigram *u, const char *text, size_t rest, const char **becomes, size_t *bytes)
{
    uint32_t c;
    size_t taken = charsmap_find(&u->map, text, rest, becomes);
    if (taken > 0) {
        *bytes = strlen(*becomes);
        return taken;
    }
    taken = utf8_read(text, rest, &c);
    taken += taken == 0;
    *becomes = text;
    *bytes = taken;
    return taken;
}

static ww_status add_escaped(const char *text, size_t bytes, text_buffer *out)
{
    ww_status status = WW_OK;
    for (size_t i = 0; i < bytes && status == WW_OK; i++)
        status = text[i] == ' ' ? text_buffer_add(out, WORD_START, WORD_START_BYTES) : text_buffer_add(out, text + i, 1);
    return status;
}

static void remove_last_spaces(text_buffer *text)
{
    while (text->bytes >= WORD_START_BYTES &&
           memcmp(text->text + text->bytes - WORD_START_BYTES, WORD_START, WORD_START_BYTES) == 0)
        text->bytes -= WORD_START_BYTES;
}

static ww_status normalize(const tokenizer *t, const fragment *f, text_buffer *out)
{
    const unigram *u = t->data;
    bool after_space = u->removes_spaces && f->begins, prefix = t->add_space_prefix && f->begins;
    ww_status status = WW_OK;
    if (prefix && !u->removes_spaces)
        status = text_buffer_add(out, WORD_START, WORD_START_BYTES);
    prefix = prefix && u->removes_spaces;
    for (size_t at = 0; at < f->bytes && status == WW_OK;) {
        const char *becomes;
        size_t bytes;
        at += next_sequence(u, f->text + at, f->bytes - at, &becomes, &bytes);
        while (after_space && bytes > 0 && becomes[0] == ' ') {
            becomes++;
            bytes--;
        }
        if (prefix && bytes > 0) /* a text of only such spaces has no tokens */
            status = text_buffer_add(out, WORD_START, WORD_START_BYTES);
        prefix = prefix && bytes == 0;
        if (status == WW_OK)
            status = add_escaped(becomes, bytes, out);
        if (bytes > 0)
            after_space = u->removes_spaces && becomes[bytes - 1] == ' ';
    }
    if (u->removes_spaces && f->ends)
        remove_last_spaces(out);
    return status;
}

/* ---- encoding ------------------------------------------------------------------------------------------------------------ */

static void offer(best_end *end, float score, int32_t id, size_t begin)
{
    if (end->begin != NO_PIECE && !(score > end->score))
        return;
    *end = (best_end){.score = score, .id = id, .begin = (uint32_t)begin};
}

static size_t character_bytes(const text_buffer *text, size_t at)
{
    static const unsigned char BYTES[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
    const size_t bytes = BYTES[(unsigned char)text->text[at] >> 4], rest = text->bytes - at;
    return bytes < rest ? bytes : rest;
}

/* Updates the best ends with every piece that begins at `begin`, and with the character as unknown if it is not itself a
 * piece. */
static void offer_pieces(const tokenizer *t, const text_buffer *text, size_t begin, best_end *ends)
{
    const unigram *u = t->data;
    const vocabulary *v = &t->vocabulary;
    const float before = ends[begin].score;
    const size_t character = character_bytes(text, begin);
    bool whole = false; /* a piece is this character alone */
    int32_t node = 0;
    for (size_t at = begin; at < text->bytes;) {
        node = piece_tree_next(&u->tree, node, (unsigned char)text->text[at++]);
        if (node < 0)
            break;
        const int32_t id = u->tree.nodes[node].id;
        if (id < 0)
            continue;
        /* User-defined pieces are always taken. */
        const float score = v->kinds[id] == TOKEN_USER_DEFINED ? (float)((double)((float)(at - begin) * u->largest_score) - 0.1)
                                                               : v->scores[id];
        offer(&ends[at], score + before, id, begin);
        whole = whole || at - begin == character;
    }
    if (!whole)
        offer(&ends[begin + character], u->unknown_score + before, t->unknown < 0 ? -1 : t->unknown, begin);
}

static ww_status add_bytes(const unigram *u, const text_buffer *text, const best_end *end, size_t to, token_list *out)
{
    ww_status status = WW_OK;
    for (size_t at = to; status == WW_OK && at > end->begin; at--) /* the list is reversed later */
        status = token_list_add(out, u->bytes[(unsigned char)text->text[at - 1]]);
    return status;
}

/* Appends the pieces of the best split, which is followed from its end. */
static ww_status add_best(const tokenizer *t, const text_buffer *text, const best_end *ends, token_list *out)
{
    const unigram *u = t->data;
    const int64_t first = out->count;
    ww_status status = WW_OK;
    bool after_unknown = false;
    for (size_t at = text->bytes; status == WW_OK && at > 0; at = ends[at].begin) {
        const bool unknown = ends[at].id == t->unknown || ends[at].id < 0;
        if (unknown && u->has_bytes)
            status = add_bytes(u, text, &ends[at], at, out);
        else if (!unknown || !after_unknown) /* one token for a run of unknown characters */
            status = token_list_add(out, ends[at].id);
        after_unknown = unknown;
    }
    for (int64_t i = first, j = out->count - 1; i < j; i++, j--) {
        const int32_t held = out->ids[i];
        out->ids[i] = out->ids[j];
        out->ids[j] = held;
    }
    return status;
}

static ww_status encode(const tokenizer *t, const fragment *f, encode_work *work)
{
    text_buffer *text = &work->text;
    text->bytes = 0;
    ww_status status = normalize(t, f, text);
    if (status != WW_OK || text->bytes == 0)
        return status;
    if (text->bytes >= NO_PIECE)
        return ww_fail(WW_OUT_OF_RANGE, "a text of %zu bytes after the map of characters is too long", text->bytes);
    const size_t room = (text->bytes + 1) * sizeof(best_end);
    best_end *ends = memory_alloc(room);
    if (!ends)
        return memory_failed("pieces of a text", room);
    for (size_t i = 0; i <= text->bytes; i++)
        ends[i] = (best_end){.begin = NO_PIECE};
    for (size_t at = 0; at < text->bytes; at += character_bytes(text, at))
        offer_pieces(t, text, at, ends);
    status = add_best(t, text, ends, work->out);
    memory_free(ends);
    return status;
}

const tokenizer_family FAMILY_UNIGRAM = {
    .model = "t5", .prepare = prepare, .release = release, .encode = encode, .show = sentencepiece_show, .strips_space = true};
