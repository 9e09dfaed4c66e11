/* Pieces by id and ids by pieces: a hash table. Special tokens, which may begin at any byte of a text, are found by special.c.
 */
#include "model/tokenizer/vocabulary.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

/* ---- by bytes ------------------------------------------------------------------------------------------------------------ */

int32_t vocabulary_find_hashed(const vocabulary *v, const char *text, size_t bytes, uint64_t hash)
{
    for (uint32_t slot = (uint32_t)hash & v->slot_mask;; slot = (slot + 1) & v->slot_mask) {
        const int32_t id = v->slots[slot];
        if (id < 0)
            return -1;
        if (v->pieces[id].bytes == bytes && memcmp(v->pieces[id].text, text, bytes) == 0)
            return id;
    }
}

int32_t vocabulary_find(const vocabulary *v, const char *text, size_t bytes)
{
    return bytes > v->longest ? -1 : vocabulary_find_hashed(v, text, bytes, hash_bytes(v->key, text, bytes));
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
    v->key = hash_process_key();
    for (int32_t id = 0; id < v->count; id++) {
        uint32_t slot = (uint32_t)hash_bytes(v->key, v->pieces[id].text, v->pieces[id].bytes) & v->slot_mask;
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

/* ---- making it ----------------------------------------------------------------------------------------------------------- */

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
        return ww_fail(WW_CORRUPT_FILE, "%s: the vocabulary has %lld tokens; it must have 1 to %d", name,
                       (long long)source->count, INT32_MAX / 4);
    v->count = (int32_t)source->count;
    ww_status status = take_pieces(v, source);
    if (status == WW_OK)
        status = take_kinds(v, source, name);
    if (status == WW_OK)
        status = make_slots(v);
    if (status != WW_OK)
        return status;
    return special_make(&v->special, v->pieces, v->kinds, v->count);
}

void vocabulary_free(vocabulary *v)
{
    memory_free(v->memory);
    memory_free(v->pieces);
    memory_free(v->kinds);
    memory_free(v->scores);
    memory_free(v->slots);
    special_free(&v->special);
    *v = (vocabulary){0};
}
