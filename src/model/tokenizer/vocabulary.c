/* Pieces by id and ids by pieces. A hash table serves the words of texts; special tokens, which may begin at any byte, are kept
 * sorted, so that a text is compared with all of them at once, byte by byte. */
#include "model/tokenizer/vocabulary.h"

#include <math.h>
#include <string.h>

#include "base/integers.h"
#include "base/memory.h"

/* ---- by bytes -------------------------------------------------------------------------------------------------------------
 */

/* FNV's low bits are weak where pieces differ in their last byte alone. */
static uint32_t slot_of(uint32_t hash)
{
    return hash ^ (hash >> 15);
}

int32_t vocabulary_find_hashed(const vocabulary *v, const char *text, size_t bytes, uint32_t hash)
{
    for (uint32_t slot = slot_of(hash) & v->slot_mask;; slot = (slot + 1) & v->slot_mask) {
        const int32_t id = v->slots[slot];
        if (id < 0)
            return -1;
        if (v->pieces[id].bytes == bytes && memcmp(v->pieces[id].text, text, bytes) == 0)
            return id;
    }
}

static uint32_t hash_of(const char *text, size_t bytes)
{
    uint32_t hash = hash_begin();
    for (size_t i = 0; i < bytes; i++)
        hash = hash_add(hash, text[i]);
    return hash;
}

int32_t vocabulary_find(const vocabulary *v, const char *text, size_t bytes)
{
    return bytes > v->longest ? -1 : vocabulary_find_hashed(v, text, bytes, hash_of(text, bytes));
}

static ww_status make_slots(vocabulary *v)
{
    size_t slots = 16;
    while (slots < 2 * (size_t)v->count)
        slots *= 2;
    v->slots = memory_alloc(slots * sizeof *v->slots);
    if (!v->slots)
        return memory_failed("vocabulary", slots * sizeof *v->slots);
    memset(v->slots, -1, slots * sizeof *v->slots);
    v->slot_mask = (uint32_t)(slots - 1);
    for (int32_t id = 0; id < v->count; id++) {
        uint32_t slot = slot_of(hash_of(v->pieces[id].text, v->pieces[id].bytes)) & v->slot_mask;
        bool there = false;
        for (; v->slots[slot] >= 0 && !there; slot = (slot + 1) & v->slot_mask) {
            const ww_gguf_span other = v->pieces[v->slots[slot]];
            there = other.bytes == v->pieces[id].bytes && memcmp(other.text, v->pieces[id].text, other.bytes) == 0;
        }
        if (!there)
            v->slots[slot] = id;
    }
    return WW_OK;
}

/* ---- special tokens -------------------------------------------------------------------------------------------------------
 */

static bool is_special(const vocabulary *v, int32_t id)
{
    const unsigned char kind = v->kinds[id];
    return v->pieces[id].bytes > 0 && (kind == TOKEN_CONTROL || kind == TOKEN_UNKNOWN || kind == TOKEN_USER_DEFINED);
}

static int compare_pieces(const vocabulary *v, int32_t a, int32_t b)
{
    const ww_gguf_span *x = &v->pieces[a], *y = &v->pieces[b];
    const int order = memcmp(x->text, y->text, min_size(x->bytes, y->bytes));
    if (order != 0)
        return order;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return (a > b) - (a < b);
}

/* Heap sort: there may be thousands of them, in any order. */
static void sift_down(const vocabulary *v, int32_t *ids, int32_t at, int32_t count)
{
    for (;;) {
        int32_t child = 2 * at + 1;
        if (child >= count)
            return;
        if (child + 1 < count && compare_pieces(v, ids[child], ids[child + 1]) < 0)
            child++;
        if (compare_pieces(v, ids[at], ids[child]) >= 0)
            return;
        const int32_t held = ids[at];
        ids[at] = ids[child];
        ids[child] = held;
        at = child;
    }
}

static void sort_pieces(const vocabulary *v, int32_t *ids, int32_t count)
{
    for (int32_t i = count / 2 - 1; i >= 0; i--)
        sift_down(v, ids, i, count);
    for (int32_t last = count - 1; last > 0; last--) {
        const int32_t held = ids[0];
        ids[0] = ids[last];
        ids[last] = held;
        sift_down(v, ids, 0, last);
    }
}

static ww_status make_special(vocabulary *v)
{
    int32_t count = 0;
    for (int32_t id = 0; id < v->count; id++)
        count += is_special(v, id);
    v->special = memory_alloc((size_t)count * sizeof *v->special);
    if (!v->special)
        return memory_failed("special tokens", (size_t)count * sizeof *v->special);
    for (int32_t id = 0; id < v->count; id++)
        if (is_special(v, id)) {
            v->special[v->special_count++] = id;
            v->special_first[(unsigned char)v->pieces[id].text[0]] = true;
        }
    sort_pieces(v, v->special, v->special_count);
    return WW_OK;
}

/* The first of special[from..to) whose byte `at` is `byte` or more; all agree in the bytes before. */
static int32_t lower_bound(const vocabulary *v, int32_t from, int32_t to, size_t at, int byte)
{
    while (from < to) {
        const int32_t middle = from + (to - from) / 2;
        const ww_gguf_span piece = v->pieces[v->special[middle]];
        if (at >= piece.bytes || (unsigned char)piece.text[at] < byte)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

int32_t vocabulary_special_at(const vocabulary *v, const char *text, size_t bytes, bool plain)
{
    int32_t found = -1, from = 0, to = v->special_count;
    if (bytes == 0 || !v->special_first[(unsigned char)text[0]])
        return -1;
    for (size_t at = 0; at < bytes && from < to; at++) {
        const int byte = (unsigned char)text[at];
        from = lower_bound(v, from, to, at, byte);
        to = lower_bound(v, from, to, at, byte + 1);
        /* Those that end here come first. */
        for (int32_t i = from; i < to && v->pieces[v->special[i]].bytes == at + 1; i++)
            if (!plain || v->kinds[v->special[i]] == TOKEN_USER_DEFINED) {
                found = v->special[i];
                break;
            }
    }
    return found;
}

/* ---- making it ------------------------------------------------------------------------------------------------------------
 */

/* Copies a piece with a space for each U+2581; returns how many bytes it has then. */
static size_t copy_spaces(char *to, ww_gguf_span piece)
{
    size_t bytes = 0;
    for (size_t at = 0; at < piece.bytes; bytes++) {
        const bool space = piece.bytes - at >= 3 && memcmp(piece.text + at, "\xE2\x96\x81", 3) == 0;
        to[bytes] = space ? ' ' : piece.text[at];
        at += space ? 3 : 1;
    }
    return bytes;
}

static ww_status take_pieces(vocabulary *v, const vocabulary_source *source)
{
    size_t total = 0;
    for (int64_t i = 0; i < source->count; i++)
        total += source->pieces[i].bytes;
    v->memory = memory_alloc(total);
    v->pieces = memory_alloc((size_t)v->count * sizeof *v->pieces);
    v->kinds = memory_alloc((size_t)v->count);
    if (!v->memory || !v->pieces || !v->kinds)
        return memory_failed("vocabulary", total + (size_t)v->count * (sizeof *v->pieces + 1));
    char *next = v->memory;
    for (int32_t id = 0; id < v->count; id++) {
        const ww_gguf_span piece = source->pieces[id];
        size_t bytes = piece.bytes;
        if (source->spaces && source->kinds && source->kinds[id] == TOKEN_USER_DEFINED)
            bytes = copy_spaces(next, piece);
        else if (bytes > 0)
            memcpy(next, piece.text, bytes);
        v->pieces[id] = (ww_gguf_span){.text = next, .bytes = bytes};
        next += bytes;
        v->longest = bytes > v->longest ? bytes : v->longest;
    }
    return WW_OK;
}

static ww_status take_kinds(vocabulary *v, const vocabulary_source *source, const char *name)
{
    for (int32_t id = 0; id < v->count; id++) {
        const int64_t kind = source->kinds ? source->kinds[id] : TOKEN_NORMAL;
        if (kind < TOKEN_NORMAL || kind > TOKEN_BYTE)
            return ww_fail(WW_CORRUPT_FILE, "%s: token %d has the type %lld; types are 1 to 6", name, (int)id, (long long)kind);
        v->kinds[id] = (unsigned char)kind;
    }
    if (!source->scores)
        return WW_OK;
    v->scores = memory_alloc((size_t)v->count * sizeof *v->scores);
    if (!v->scores)
        return memory_failed("scores of a vocabulary", (size_t)v->count * sizeof *v->scores);
    for (int32_t id = 0; id < v->count; id++) {
        if (isnan(source->scores[id]))
            return ww_fail(WW_CORRUPT_FILE, "%s: the score of token %d is not a number", name, (int)id);
        v->scores[id] = (float)source->scores[id];
    }
    return WW_OK;
}

ww_status vocabulary_make(vocabulary *v, const vocabulary_source *source, const char *name)
{
    *v = (vocabulary){0};
    if (source->count < 1 || source->count > INT32_MAX / 4)
        return ww_fail(WW_CORRUPT_FILE, "%s: a vocabulary of %lld tokens; 1 to %d are possible", name, (long long)source->count,
                       INT32_MAX / 4);
    v->count = (int32_t)source->count;
    ww_status status = take_pieces(v, source);
    if (status == WW_OK)
        status = take_kinds(v, source, name);
    if (status == WW_OK)
        status = make_slots(v);
    return status == WW_OK ? make_special(v) : status;
}

void vocabulary_free(vocabulary *v)
{
    memory_free(v->memory);
    memory_free(v->pieces);
    memory_free(v->kinds);
    memory_free(v->scores);
    memory_free(v->slots);
    memory_free(v->special);
    *v = (vocabulary){0};
}
