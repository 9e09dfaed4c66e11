/* Texts that remember which bytes of them are the conversation's. */
#include <string.h>

#include "base/text.h"
#include "model/template/value.h"

enum { COMPARED_BYTES = 64 }; /* in a step */

marked literal(const char *text)
{
    return (marked){.text = text, .bytes = strlen(text)};
}

marked marked_part(marked text, size_t from, size_t to)
{
    return (marked){text.text + from, text.marks ? text.marks + from : NULL, to - from};
}

bool marked_equal(marked a, marked b)
{
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.text, b.text, a.bytes) == 0);
}

bool marked_is(marked text, const char *words)
{
    return marked_equal(text, literal(words));
}

bool marked_starts(marked text, marked with)
{
    return text.bytes >= with.bytes && marked_equal(marked_part(text, 0, with.bytes), with);
}

bool marked_ends(marked text, marked with)
{
    return text.bytes >= with.bytes && marked_equal(marked_part(text, text.bytes - with.bytes, text.bytes), with);
}

size_t marked_find(work *w, marked text, marked what, size_t from)
{
    if (!work_step(w, 1 + (text.bytes - from) / COMPARED_BYTES) || what.bytes > text.bytes - from)
        return text.bytes + 1;
    if (what.bytes == 0)
        return from;
    const char *found = memmem(text.text + from, text.bytes - from, what.text, what.bytes);
    return found ? (size_t)(found - text.text) : text.bytes + 1;
}

size_t char_bytes(marked text, size_t at)
{
    size_t end = at + 1;
    while (end < text.bytes && ((unsigned char)text.text[end] & 0xC0) == 0x80)
        end++;
    return end - at;
}

size_t char_bytes_before(marked text, size_t at)
{
    size_t begin = at - 1;
    while (begin > 0 && ((unsigned char)text.text[begin] & 0xC0) == 0x80)
        begin--;
    return at - begin;
}

bool char_is_space(marked text, size_t at)
{
    uint32_t c = 0;
    utf8_read(text.text + at, text.bytes - at, &c);
    return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

size_t char_count(marked text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.bytes; i++)
        count += ((unsigned char)text.text[i] & 0xC0) != 0x80;
    return count;
}

static bool is_stripped(marked text, size_t at, const marked *set)
{
    if (!set)
        return char_is_space(text, at);
    const size_t bytes = char_bytes(text, at);
    return set->bytes >= bytes && memmem(set->text, set->bytes, text.text + at, bytes) != NULL;
}

marked marked_strip(marked text, const marked *set, bool left, bool right)
{
    size_t from = 0, to = text.bytes;
    while (left && from < to && is_stripped(text, from, set))
        from += char_bytes(text, from);
    while (right && to > from && is_stripped(text, to - char_bytes_before(text, to), set))
        to -= char_bytes_before(text, to);
    return marked_part(text, from, to);
}

/* ---- building -------------------------------------------------------------------------------------------------------------
 */

void build(work *w, builder *b, marked text)
{
    if (text.bytes > b->capacity - b->bytes) {
        const size_t capacity = 2 * b->capacity + text.bytes + 32;
        char *larger = work_alloc(w, 2 * capacity);
        if (!larger)
            return;
        if (b->bytes > 0) {
            memcpy(larger, b->text, b->bytes);
            memcpy(larger + capacity, b->marks, b->bytes);
        }
        *b = (builder){larger, larger + capacity, b->bytes, capacity, b->has_marks};
    }
    if (text.bytes == 0 || w->status != WW_OK)
        return;
    memcpy(b->text + b->bytes, text.text, text.bytes);
    if (text.marks)
        memcpy(b->marks + b->bytes, text.marks, text.bytes);
    b->has_marks |= text.marks != NULL;
    b->bytes += text.bytes;
    work_step(w, 1 + text.bytes / COMPARED_BYTES);
}

void build_text(work *w, builder *b, const char *text)
{
    build(w, b, literal(text));
}

marked built(const builder *b)
{
    return (marked){b->text ? b->text : "", b->has_marks ? b->marks : NULL, b->bytes};
}

value built_value(const builder *b)
{
    return TEXT_OF(built(b));
}
