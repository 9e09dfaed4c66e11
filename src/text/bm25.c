/* Sparse vectors of texts with BM25's weights.
 *
 * The form is that of fastembed's model Qdrant/bm25, so that vectors of both can be in one collection: a word's index is the
 * absolute value of MurmurHash3 (x86, 32 bits, seed 0) of its UTF-8 in lower case, and a word has letters, digits and
 * underscores. Words are not stemmed here, and there is no list of words to leave out: the inverse document frequency, which
 * the search multiplies by, makes frequent words count little.
 */
#include <math.h>
#include <string.h>

#include <utf8proc.h>

#include <warpwave/text.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "base/structs.h"
#include "base/tables/key_list.h"
#include "base/text.h"

enum { WORD_CHARACTERS_MAX = 40, WORD_BYTES_MAX = 4 * WORD_CHARACTERS_MAX };

STRUCT_INIT(ww_bm25, {.k = 1.2, .b = 0.75, .average_words = 256.0})

static uint32_t rotated(uint32_t x, int bits)
{
    return x << bits | x >> (32 - bits);
}

/* MurmurHash3_x86_32 with the seed 0. */
static uint32_t murmur3(const unsigned char *bytes, size_t count)
{
    uint32_t hash = 0;
    for (size_t at = 0; at < count; at += 4) {
        uint32_t block = 0;
        for (size_t i = 0; i < 4 && at + i < count; i++)
            block |= (uint32_t)bytes[at + i] << 8 * i;
        hash ^= rotated(block * 0xcc9e2d51u, 15) * 0x1b873593u;
        if (at + 4 <= count)
            hash = rotated(hash, 13) * 5 + 0xe6546b64u;
    }
    hash ^= (uint32_t)count;
    hash = (hash ^ hash >> 16) * 0x85ebca6bu;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
    return hash ^ hash >> 16;
}

static uint32_t index_of(const unsigned char *word, size_t bytes)
{
    const uint32_t hash = murmur3(word, bytes);
    return hash > INT32_MAX ? 0u - hash : hash;
}

static bool is_of_word(utf8proc_int32_t c)
{
    const utf8proc_category_t category = utf8proc_category(c);
    return c == '_' || (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) ||
           (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

/* Writes the indices of the words, one after the other, to `indices`; returns how many there are. A longer word than
 * WORD_CHARACTERS_MAX is none. */
static int64_t read_words(const char *text, size_t length, uint64_t *indices)
{
    utf8proc_uint8_t word[WORD_BYTES_MAX];
    size_t bytes = 0, characters = 0;
    int64_t count = 0;
    for (size_t at = 0; at <= length;) {
        utf8proc_int32_t c = 0;
        const utf8proc_ssize_t used =
            at < length ? utf8proc_iterate((const utf8proc_uint8_t *)text + at, (utf8proc_ssize_t)(length - at), &c) : 1;
        at += used > 0 ? (size_t)used : 1;
        if (is_of_word(c)) {
            if (characters++ < WORD_CHARACTERS_MAX)
                bytes += (size_t)utf8proc_encode_char(utf8proc_tolower(c), word + bytes);
            continue;
        }
        if (characters > 0 && characters <= WORD_CHARACTERS_MAX)
            indices[count++] = index_of(word, bytes);
        bytes = characters = 0;
    }
    return count;
}

/* Makes one entry of equal indices, which ascend. */
static ww_status weigh(const ww_bm25 *how, const uint64_t *words, int64_t word_count, ww_sparse_room *to)
{
    const double norm = how->k * (1.0 - how->b + how->b * (double)word_count / how->average_words);
    to->count = 0;
    for (int64_t i = 0, next; i < word_count; i = next) {
        for (next = i + 1; next < word_count && words[next] == words[i]; next++)
            continue;
        if (to->count == to->capacity)
            return ww_fail(WW_OUT_OF_RANGE, "ww_sparse_from_text: the text has more than %lld different words",
                           (long long)to->capacity);
        const double times = (double)(next - i);
        to->indices[to->count] = (uint32_t)words[i];
        to->values[to->count++] = how->query ? 1.0f : (float)(times * (how->k + 1.0) / (times + norm));
    }
    return WW_OK;
}

static ww_status check(const char *function, const char *text, const ww_bm25 *how, const ww_sparse_room *to)
{
    if (!text || !to)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", function, text ? "vector" : "text");
    if (to->capacity < 0 || (to->capacity > 0 && (!to->indices || !to->values)))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the vector has no room: give indices, values and their capacity", function);
    if (!(how->k >= 0.0 && how->k <= 1e6) || !(how->b >= 0.0 && how->b <= 1.0) || !(how->average_words >= 1.0) ||
        !isfinite(how->average_words))
        return ww_fail(WW_OUT_OF_RANGE,
                       "%s: k is %g, b is %g, average_words is %g; k must be 0 to 1e6, b 0 to 1, average_words 1 or "
                       "more",
                       function, how->k, how->b, how->average_words);
    return utf8_check(text, strlen(text)) ? WW_OK : ww_fail(WW_INVALID_ARGUMENT, "%s: text is not UTF-8", function);
}

ww_status ww_sparse_from_text(const char *text, const ww_bm25 *options, ww_sparse_room *vector)
{
    FLOAT_GUARD();
    static const char function[] = "ww_sparse_from_text";
    ww_bm25 how = ww_bm25_default();
    ww_status status = options ? struct_read(&how, sizeof how, options, function, "ww_bm25") : WW_OK;
    if (status == WW_OK)
        status = check(function, text, &how, vector);
    if (status != WW_OK)
        return status;
    const size_t length = strlen(text);
    uint64_t *words = memory_alloc((length / 2 + 1) * sizeof *words); /* a word has a character, and one after it */
    if (!words)
        return memory_failed("the words of a text", length / 2 * sizeof *words);
    const int64_t count = read_words(text, length, words);
    keys_sort(words, count);
    status = weigh(&how, words, count, vector);
    memory_free(words);
    return status;
}
