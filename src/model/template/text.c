/* Texts of templates. */
#include <string.h>
#include <utf8proc.h>

#include "base/text.h"
#include "model/template/value.h"

enum { STEP_CHARACTERS = 64, REPLACEMENT = 0xFFFD };

text text_from_utf8(work *w, const char *bytes, size_t count, uint32_t quoted)
{
    uint32_t *chars = work_alloc(w, count + 1, sizeof *chars);
    size_t made = 0;
    for (size_t at = 0, length; at < count; at += length) {
        uint32_t c = REPLACEMENT;
        length = utf8_read(bytes + at, count - at, &c);
        length = length > 0 ? length : 1;
        chars[made++] = c | quoted;
    }
    return (text){chars, made};
}

text literal(work *w, const char *bytes)
{
    return text_from_utf8(w, bytes, strlen(bytes), 0);
}

char *text_to_utf8(work *w, text t, size_t *bytes)
{
    char *made = work_alloc(w, t.count + 1, 4);
    size_t used = 0;
    for (size_t i = 0; i < t.count; i++)
        used += (size_t)utf8proc_encode_char((utf8proc_int32_t)CODE(t.chars[i]), (utf8proc_uint8_t *)made + used);
    if (bytes)
        *bytes = used;
    return made;
}

text text_part(text t, size_t from, size_t to)
{
    return (text){t.chars + from, to - from};
}

bool text_starts(text t, text with)
{
    size_t i = 0;
    while (i < with.count && i < t.count && CODE(t.chars[i]) == CODE(with.chars[i]))
        i++;
    return i == with.count;
}

bool text_ends(text t, text with)
{
    return t.count >= with.count && text_starts(text_part(t, t.count - with.count, t.count), with);
}

bool text_equal(text a, text b)
{
    return a.count == b.count && text_starts(a, b);
}

bool text_is(text t, const char *ascii)
{
    size_t i = 0;
    while (i < t.count && ascii[i] && CODE(t.chars[i]) == (unsigned char)ascii[i])
        i++;
    return i == t.count && !ascii[i];
}

int64_t text_find(work *w, text t, text what, size_t from)
{
    size_t compared = STEP_CHARACTERS;
    for (size_t at = from; at + what.count <= t.count; at++) {
        size_t same = 0;
        while (same < what.count && CODE(t.chars[at + same]) == CODE(what.chars[same]))
            same++;
        compared += same + 1;
        work_step(w, compared / STEP_CHARACTERS);
        compared %= STEP_CHARACTERS;
        if (same == what.count)
            return (int64_t)at;
    }
    return NOT_FOUND;
}

bool is_space(uint32_t character)
{
    const uint32_t c = CODE(character);
    return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

static bool is_stripped(work *w, uint32_t character, const text *set)
{
    if (!set)
        return is_space(character);
    work_step(w, 1 + set->count / STEP_CHARACTERS);
    for (size_t i = 0; i < set->count; i++)
        if (CODE(set->chars[i]) == CODE(character))
            return true;
    return false;
}

text text_strip(work *w, text t, const text *set, bool left, bool right)
{
    size_t from = 0, to = t.count;
    while (left && from < to && is_stripped(w, t.chars[from], set))
        from++;
    while (right && to > from && is_stripped(w, t.chars[to - 1], set))
        to--;
    return text_part(t, from, to);
}

void build(work *w, builder *b, text t)
{
    if (t.count == 0)
        return;
    if (t.count > b->capacity - b->count) {
        const size_t capacity = 2 * b->capacity + t.count + 32;
        uint32_t *larger = work_alloc(w, capacity, sizeof *larger);
        if (b->count > 0)
            memcpy(larger, b->chars, b->count * sizeof *larger);
        *b = (builder){larger, b->count, capacity};
    }
    memcpy(b->chars + b->count, t.chars, t.count * sizeof *t.chars);
    b->count += t.count;
    work_step(w, 1 + t.count / STEP_CHARACTERS);
}

void build_character(work *w, builder *b, uint32_t character)
{
    build(w, b, (text){&character, 1});
}

void build_words(work *w, builder *b, const char *ascii)
{
    for (; *ascii; ascii++)
        build_character(w, b, (unsigned char)*ascii);
}

text built(const builder *b)
{
    static const uint32_t none[1];
    return (text){b->chars ? b->chars : none, b->count};
}
