/* Normal forms are computed here from utf8proc's tables, because its own ordering of marks takes n^2 steps for a text of only
 * marks. */
#include "model/tokenizer/unicode.h"

#include <string.h>
#include <utf8proc.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/tokenizer/unicode_tables.h"

/* Options of utf8proc, which declares bits as an enum. */
static const utf8proc_option_t DECOMPOSE = (utf8proc_option_t)((unsigned)UTF8PROC_DECOMPOSE | (unsigned)UTF8PROC_STABLE);
static const utf8proc_option_t COMPOSE = (utf8proc_option_t)((unsigned)UTF8PROC_COMPOSE | (unsigned)UTF8PROC_STABLE);

/* ---- UTF-8 --------------------------------------------------------------------------------------------------------------- */

/* The number of bytes at the start of `text`, which is not a character, that could begin one: at least 1. */
static size_t broken_part(const unsigned char *text, size_t bytes)
{
    const unsigned char lead = text[0];
    size_t wanted = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    unsigned char min = 0x80, max = 0xBF; /* of the second byte */
    if (lead < 0xC2 || lead > 0xF4)
        return 1;
    if (lead == 0xE0)
        min = 0xA0;
    else if (lead == 0xED)
        max = 0x9F;
    else if (lead == 0xF0)
        min = 0x90;
    else if (lead == 0xF4)
        max = 0x8F;
    size_t part = 1;
    for (; part < bytes && part < wanted && text[part] >= min && text[part] <= max; part++) {
        min = 0x80;
        max = 0xBF;
    }
    return part;
}

ww_status unicode_repair(const char *text, size_t bytes, text_buffer *out)
{
    ww_status status = WW_OK;
    size_t good = 0; /* start of the bytes that are not copied yet */
    for (size_t at = 0; status == WW_OK && at < bytes;) {
        uint32_t c;
        const size_t size = utf8_read(text + at, bytes - at, &c);
        if (size > 0) {
            at += size;
            continue;
        }
        status = text_buffer_add(out, text + good, at - good);
        if (status == WW_OK)
            status = text_buffer_add_text(out, "\xEF\xBF\xBD");
        at += broken_part((const unsigned char *)text + at, bytes - at);
        good = at;
    }
    return status == WW_OK ? text_buffer_add(out, text + good, bytes - good) : status;
}

ww_status unicode_decode(const char *text, size_t bytes, characters *out)
{
    const ww_status status = characters_reserve(out, out->count + bytes);
    for (size_t at = 0, size; status == WW_OK && at < bytes; at += size) {
        uint32_t c = 0xFFFD;
        size = utf8_read(text + at, bytes - at, &c);
        size += size == 0; /* does not happen, because the text was repaired */
        out->values[out->count++] = c;
    }
    return status;
}

ww_status unicode_encode(const uint32_t *values, size_t count, text_buffer *out)
{
    ww_status status = WW_OK;
    for (size_t i = 0; values && status == WW_OK && i < count; i++) {
        utf8proc_uint8_t bytes[4];
        const utf8proc_ssize_t size = utf8proc_encode_char((utf8proc_int32_t)values[i], bytes);
        status = text_buffer_add(out, (const char *)bytes, (size_t)size);
    }
    return status;
}

/* ---- normal forms -------------------------------------------------------------------------------------------------------- */

#define IN(table, c) in_ranges(table, sizeof(table) / sizeof(table)[0], c)

/* Is the character in one of the ranges, which are sorted? */
static bool in_ranges(const character_range *ranges, size_t count, uint32_t c)
{
    size_t first = 0;
    while (count > 0) {
        const size_t half = count / 2;
        if (c > ranges[first + half].last) {
            first += half + 1;
            count -= half + 1;
        } else {
            if (c >= ranges[first + half].first)
                return true;
            count = half;
        }
    }
    return false;
}

static int combining_class(uint32_t c)
{
    enum { IOTA = 0x345 }; /* not in the table */
    return c >= 0x300 && (c == IOTA || IN(COMBINING, c)) ? (int)utf8proc_get_property((utf8proc_int32_t)c)->combining_class : 0;
}

/* Was the character added to Unicode with its decomposition after version 8? */
static bool decomposes_since_8(uint32_t c)
{
    return c == 0x11938 || (c >= 0x11383 && c <= 0x113C8) || (c >= 0x105C9 && c <= 0x105E4) || (c >= 0x16121 && c <= 0x16128) ||
           (c >= 0x16D68 && c <= 0x16D6A);
}

/* Stable counting sort of marks by their class, in two passes. `spare` has room for as many marks. */
static void sort_marks(uint32_t *marks, size_t count, uint32_t *spare)
{
    size_t begins[257] = {0};
    bool sorted = true;
    for (size_t i = 0; i < count; i++) {
        const int class = combining_class(marks[i]);
        begins[class + 1]++;
        sorted = sorted && (i == 0 || combining_class(marks[i - 1]) <= class);
    }
    if (sorted)
        return;
    for (int class = 0; class < 256; class ++)
        begins[class + 1] += begins[class];
    for (size_t i = 0; i < count; i++)
        spare[begins[combining_class(marks[i])]++] = marks[i];
    memcpy(marks, spare, count * sizeof *marks);
}

static ww_status order_marks(uint32_t *values, size_t count)
{
    uint32_t *spare = NULL;
    ww_status status = WW_OK;
    for (size_t first = 0; status == WW_OK && first < count;) {
        size_t end = first;
        while (end < count && combining_class(values[end]) != 0)
            end++;
        if (end - first > 1) {
            if (!spare)
                spare = memory_alloc(count * sizeof *spare);
            if (spare)
                sort_marks(values + first, end - first, spare);
            else
                status = memory_failed("normal form of a text", count * sizeof *spare);
        }
        first = end + (end == first);
    }
    memory_free(spare);
    return status;
}

ww_status unicode_decompose(const uint32_t *values, size_t count, characters *out)
{
    const size_t before = out->count;
    ww_status status = WW_OK;
    bool marks = false;
    for (size_t i = 0; status == WW_OK && i < count; i++) {
        utf8proc_int32_t parts[8]; /* no character has more than four */
        int boundary = 0;
        if (values[i] < 0xC0 || decomposes_since_8(values[i])) {
            status = characters_add(out, values[i]);
            continue;
        }
        const utf8proc_ssize_t size = utf8proc_decompose_char((utf8proc_int32_t)values[i], parts, 8, DECOMPOSE, &boundary);
        for (utf8proc_ssize_t k = 0; status == WW_OK && k < size && k < 8; k++) {
            marks = marks || combining_class((uint32_t)parts[k]) != 0;
            status = characters_add(out, (uint32_t)parts[k]);
        }
    }
    return status == WW_OK && marks ? order_marks(out->values + before, out->count - before) : status;
}

ww_status unicode_compose(const char *text, size_t bytes, text_buffer *out)
{
    bool composed =
        true; /* a text without characters from U+0300 on, all of whose bytes are below 0xCC, is already in this form */
    for (size_t i = 0; i < bytes && composed; i++)
        composed = (unsigned char)text[i] < 0xCC;
    if (composed)
        return text_buffer_add(out, text, bytes);
    characters all = {0}, parts = {0};
    ww_status status = unicode_decode(text, bytes, &all);
    if (status == WW_OK)
        status = unicode_decompose(all.values, all.count, &parts);
    if (status == WW_OK) {
        const utf8proc_ssize_t count =
            utf8proc_normalize_utf32((utf8proc_int32_t *)parts.values, (utf8proc_ssize_t)parts.count, COMPOSE);
        status = unicode_encode(parts.values, count < 0 ? parts.count : (size_t)count, out);
    }
    characters_free(&all);
    characters_free(&parts);
    return status;
}

/* ---- classes ------------------------------------------------------------------------------------------------------------- */

static utf8proc_category_t category(uint32_t c)
{
    return utf8proc_category((utf8proc_int32_t)c);
}

bool unicode_is_space(uint32_t c)
{
    if (c < 0x80)
        return c == ' ' || (c >= 9 && c <= 13);
    const utf8proc_category_t kind = category(c);
    return c == 0x85 || kind == UTF8PROC_CATEGORY_ZS || kind == UTF8PROC_CATEGORY_ZL || kind == UTF8PROC_CATEGORY_ZP;
}

bool unicode_is_control(uint32_t c)
{
    if (c < 0x80)
        return (c < 32 && c != '\t' && c != '\n' && c != '\r') || c == 127;
    return IN(CONTROLS, c);
}

bool unicode_is_punctuation(uint32_t c)
{
    if (c < 0x80)
        return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
    return IN(PUNCTUATION, c);
}

bool unicode_is_mark(uint32_t c)
{
    return c >= 0x300 && IN(MARKS, c);
}

uint32_t unicode_lower(uint32_t c)
{
    if (c < 0x80)
        return c >= 'A' && c <= 'Z' ? c + 32 : c;
    return (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
}
