/* Cutting a document into chunks.
 *
 * The document is first cut into pieces: sentences, or parts of sentences that are too long for a chunk. A piece includes the
 * white space that follows it, so that pieces and chunks cover every byte. Then pieces are packed into chunks. The tokens of a
 * chunk are counted as a whole, because two pieces together can have other tokens than each of them.
 */
#include <string.h>

#include "base/array.h"
#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/structs.h"
#include "base/text.h"
#include "text/text_state.h"

enum {
    TOKENS_DEFAULT = 256,
    OVERLAP_DEFAULT = 32,
    BYTES_PER_TOKEN = 16 /* pieces of at most this many bytes for each token of a chunk are short enough to be counted often */
};

STRUCT_INIT(ww_chunking, {.tokens = TOKENS_DEFAULT, .overlap = OVERLAP_DEFAULT})

typedef struct piece {
    int64_t start, end, tokens;
} piece;

typedef struct cutting {
    const ww_model *model;
    const char *text;
    int64_t bytes;
    ww_chunking how;
    piece *pieces;
    int64_t count, room;
} cutting;

/* ---- where sentences end ------------------------------------------------------------------------------------------------- */

static bool is_white(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int64_t skip_white(const cutting *c, int64_t at, int64_t end)
{
    while (at < end && is_white(c->text[at]))
        at++;
    return at;
}

/* Returns true for the full stops of Chinese and Japanese, which end a sentence even without white space. */
static bool is_wide_stop(uint32_t character)
{
    return character == 0x3002 || character == 0xff01 || character == 0xff1f;
}

static bool is_stop(uint32_t character)
{
    return character == '.' || character == '!' || character == '?' || character == 0x2026;
}

/* Returns true for quotes and brackets that close after a full stop. */
static bool is_closing(uint32_t character)
{
    return character == '"' || character == '\'' || character == ')' || character == ']' || character == 0x201d ||
           character == 0x2019 || character == 0xbb || character == 0x300d;
}

/* Returns true if a paragraph ends with this white space: it has an empty line. */
static bool has_empty_line(const cutting *c, int64_t from, int64_t to)
{
    int lines = 0;
    for (int64_t i = from; i < to; i++)
        lines += c->text[i] == '\n';
    return lines > 1;
}

static int64_t character_at(const cutting *c, int64_t at, uint32_t *character)
{
    const size_t length = utf8_read(c->text + at, (size_t)(c->bytes - at), character);
    if (length > 0)
        return (int64_t)length;
    *character = 0; /* not UTF-8: counts as a byte without a meaning */
    return 1;
}

/* Returns the end of the sentence that starts at `at`, including the white space after it. */
static int64_t sentence_end(const cutting *c, int64_t at)
{
    bool stopped = false;
    while (at < c->bytes) {
        uint32_t character = 0;
        const int64_t length = character_at(c, at, &character);
        const int64_t white = skip_white(c, at, c->bytes);
        if (white > at) {
            if (stopped || has_empty_line(c, at, white))
                return white;
            at = white;
            stopped = false;
            continue;
        }
        at += length;
        if (is_wide_stop(character))
            return skip_white(c, at, c->bytes);
        stopped = is_stop(character) || (stopped && is_closing(character));
    }
    return c->bytes;
}

/* ---- pieces -------------------------------------------------------------------------------------------------------------- */

static ww_status count_tokens(const cutting *c, int64_t start, int64_t end, int64_t *tokens)
{
    size_t count = 0;
    const ww_status status = ww_model_tokenize(c->model, c->text + start, (size_t)(end - start),
                                               WW_TOKENS_PLAIN | WW_TOKENS_NO_ADD, NULL, 0, &count);
    *tokens = (int64_t)count;
    return status;
}

static ww_status add_piece(cutting *c, int64_t start, int64_t end, int64_t tokens)
{
    const ww_status grown = array_reserve(&c->pieces, &c->room, c->count + 1, sizeof *c->pieces, "the sentences of a document");
    if (grown != WW_OK)
        return grown;
    c->pieces[c->count++] = (piece){start, end, tokens};
    return WW_OK;
}

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Returns the last place up to `at` where a text may be cut: after white space, otherwise between characters. At least one
 * character of the text, which starts at `start`, comes before it. */
static int64_t cut_before(const cutting *c, int64_t start, int64_t at)
{
    uint32_t character = 0;
    int64_t cut = at;
    while (cut > start && !is_white(c->text[cut - 1]))
        cut--;
    if (cut > start)
        return cut;
    for (cut = at; cut > start && cut < c->bytes && is_continuation(c->text[cut]);)
        cut--;
    return cut > start ? cut : start + character_at(c, start, &character);
}

/* Finds the longest start of a text that fits in a chunk, by bisection; at least one character. */
static ww_status longest_fit(const cutting *c, int64_t start, int64_t end, int64_t *cut, int64_t *tokens)
{
    int64_t fits = start, beyond = min_i64(end, start + c->how.tokens * BYTES_PER_TOKEN);
    *cut = beyond == end ? end : cut_before(c, start, beyond);
    ww_status status = count_tokens(c, start, *cut, tokens);
    if (status != WW_OK || *tokens <= c->how.tokens)
        return status;
    while (status == WW_OK && beyond - fits > 1) {
        const int64_t middle = fits + (beyond - fits) / 2;
        status = count_tokens(c, start, cut_before(c, start, middle), tokens);
        if (*tokens <= c->how.tokens)
            fits = middle;
        else
            beyond = middle;
    }
    *cut = cut_before(c, start, fits);
    return status == WW_OK ? count_tokens(c, start, *cut, tokens) : status;
}

/* Cuts a sentence that is too long. */
static ww_status cut_sentence(cutting *c, int64_t start, int64_t end)
{
    ww_status status = WW_OK;
    while (status == WW_OK && start < end) {
        int64_t cut = end, tokens = 0;
        status = longest_fit(c, start, end, &cut, &tokens);
        cut = min_i64(cut, end);
        if (status == WW_OK)
            status = add_piece(c, start, cut, tokens);
        start = cut;
    }
    return status;
}

static ww_status cut_pieces(cutting *c)
{
    ww_status status = WW_OK;
    for (int64_t start = 0; status == WW_OK && start < c->bytes;) {
        int64_t tokens = 0;
        const int64_t end = sentence_end(c, start);
        status = count_tokens(c, start, end, &tokens);
        if (status == WW_OK)
            status = tokens <= c->how.tokens ? add_piece(c, start, end, tokens) : cut_sentence(c, start, end);
        start = end;
    }
    return status;
}

/* ---- chunks -------------------------------------------------------------------------------------------------------------- */

/* Finds the end, in pieces, of the chunk that starts with piece `first`: as many pieces as fit, at least one. */
static ww_status chunk_end(const cutting *c, int64_t first, int64_t *end)
{
    int64_t tokens = c->pieces[first].tokens, whole = 0;
    ww_status status = WW_OK;
    *end = first + 1;
    while (*end < c->count && tokens + c->pieces[*end].tokens <= c->how.tokens)
        tokens += c->pieces[(*end)++].tokens;
    while (status == WW_OK && *end > first + 1) {
        status = count_tokens(c, c->pieces[first].start, c->pieces[*end - 1].end, &whole);
        if (whole <= c->how.tokens)
            break;
        (*end)--;
    }
    return status;
}

/* Returns where the next chunk starts: with the last pieces of this one that fit in the overlap, if a new piece fits, too. */
static int64_t next_first(const cutting *c, int64_t first, int64_t end)
{
    int64_t next = end, tokens = 0;
    while (next > first + 1 && tokens + c->pieces[next - 1].tokens <= c->how.overlap &&
           tokens + c->pieces[next - 1].tokens + c->pieces[end].tokens <= c->how.tokens)
        tokens += c->pieces[--next].tokens;
    return next;
}

/* If the chunk with the overlap has too many tokens for a new piece, because it is counted as a whole, it gets no overlap. */
static ww_status pack(const cutting *c, ww_chunk *chunks, size_t capacity, size_t *count)
{
    int64_t first = 0, done = 0;
    ww_status status = WW_OK;
    *count = 0;
    while (status == WW_OK && done < c->count) {
        int64_t end = 0;
        status = chunk_end(c, first, &end);
        if (status == WW_OK && end <= done) {
            first = done;
            continue;
        }
        if (chunks && *count < capacity)
            chunks[*count] = (ww_chunk){c->pieces[first].start, c->pieces[end - 1].end};
        (*count)++;
        done = end;
        first = end < c->count ? next_first(c, first, end) : end;
    }
    return status;
}

ww_status ww_text_chunks(const ww_model *model, const char *document, size_t bytes, const ww_chunking *how, ww_chunk *chunks,
                         size_t capacity, size_t *count)
{
    FLOAT_GUARD();
    static const char function[] = "ww_text_chunks";
    cutting c = {.model = model, .text = document, .bytes = (int64_t)bytes, .how = ww_chunking_default()};
    if (!model || !document || !count)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", function, !model ? "model" : !document ? "document" : "count");
    ww_status status = how ? struct_read(&c.how, sizeof c.how, how, function, "ww_chunking") : WW_OK;
    if (status != WW_OK)
        return status;
    if (c.how.tokens < 1 || c.how.overlap < 0 || c.how.overlap >= c.how.tokens || c.how.tokens > INT32_MAX)
        return ww_fail(WW_OUT_OF_RANGE,
                       "%s: a chunk of %lld tokens with an overlap of %lld; it must have 1 or more, and more than the overlap",
                       function, (long long)c.how.tokens, (long long)c.how.overlap);
    status = cut_pieces(&c);
    if (status == WW_OK)
        status = pack(&c, chunks, capacity, count);
    memory_free(c.pieces);
    if (status == WW_OK && chunks && *count > capacity)
        status = ww_fail(WW_OUT_OF_RANGE, "%s: there are %zu chunks, and room for %zu", function, *count, capacity);
    return status;
}
