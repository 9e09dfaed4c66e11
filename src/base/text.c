/* Small functions for text. */
#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

char *human_bytes(char *text, int64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double amount = (double)bytes;
    size_t unit = 0;
    while (amount >= 1024.0 && unit + 1 < sizeof units / sizeof *units) {
        amount /= 1024.0;
        unit++;
    }
    snprintf(text, 32, unit == 0 ? "%.0f %s" : "%.1f %s", amount, units[unit]);
    return text;
}

void text_copy(char *to, size_t capacity, const char *from)
{
    if (capacity == 0)
        return;
    const size_t length = strnlen(from, capacity - 1);
    memcpy(to, from, length);
    to[length] = '\0';
}

bool path_ends_in(const char *path, const char *ending)
{
    const size_t length = strlen(path), tail = strlen(ending);
    return length > tail && strcasecmp(path + length - tail, ending) == 0;
}

void text_append(char *to, size_t capacity, const char *from)
{
    const size_t used = strnlen(to, capacity);
    text_copy(to + used, capacity - used, from);
}

size_t utf8_read(const char *text, size_t length, uint32_t *character)
{
    static const uint32_t lowest[] = {0, 0x80, 0x800, 0x10000};
    const unsigned lead = length > 0 ? (unsigned char)text[0] : 0xff;
    const int more = lead < 0x80 ? 0 : lead < 0xc2 ? -1 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : lead < 0xf5 ? 3 : -1;
    if (more < 0 || length <= (size_t)more)
        return 0;
    uint32_t made = more == 0 ? lead : lead & (0x3fu >> more);
    for (int i = 1; i <= more; i++) {
        const unsigned next = (unsigned char)text[i];
        if ((next & 0xc0) != 0x80)
            return 0;
        made = made << 6 | (next & 0x3fu);
    }
    if (made < lowest[more] || (made >= 0xd800 && made < 0xe000) || made > 0x10ffff)
        return 0;
    *character = made;
    return (size_t)more + 1;
}

bool utf8_check(const char *text, size_t length)
{
    uint32_t character;
    for (size_t at = 0; at < length;) {
        const size_t bytes = utf8_read(text + at, length - at, &character);
        if (bytes == 0)
            return false;
        at += bytes;
    }
    return true;
}

static bool is_plain(uint32_t c)
{
    if (c < 0x7f)
        return c >= 0x20;
    return c > 0x9f && c != 0x61c &&                /* DEL and C1; the Arabic letter mark */
           (c < 0x200e || c > 0x200f) &&            /* directional marks */
           (c < 0x2028 || c > 0x202e) &&            /* line separators; directional embeddings and overrides */
           (c < 0x2066 || c > 0x206f) &&            /* directional isolates, and deprecated format characters */
           (c < 0xfff9 || c > 0xfffb) &&            /* annotations */
           (c & 0xfffe) != 0xfffe && c != 0xfeff && /* noncharacters; the byte order mark */
           (c < 0xe0000 || c > 0xe007f);            /* tags, which are invisible */
}

/* Returns true if the first character can be shown as it is. Sets its number of bytes, 1 for a byte that is not UTF-8. */
static bool first_is_plain(const char *text, size_t length, size_t *bytes)
{
    uint32_t character = 0;
    const size_t read = utf8_read(text, length, &character);
    *bytes = read > 0 ? read : 1;
    return read > 0 && is_plain(character);
}

size_t text_plain_span(const char *text, size_t length, size_t *bad)
{
    size_t at = 0;
    for (*bad = 0; at < length; at += *bad, *bad = 0)
        if (!first_is_plain(text + at, length - at, bad))
            break;
    return at;
}

void text_plain_copy(char *to, size_t capacity, const char *from)
{
    const char *const end = from + strlen(from);
    size_t used = 0, bytes;
    if (capacity == 0)
        return;
    for (; from < end; from += bytes) {
        const bool plain = first_is_plain(from, (size_t)(end - from), &bytes);
        if (used + (plain ? bytes : 4 * bytes) >= capacity)
            break;
        for (size_t i = 0; i < bytes; i++)
            used += (size_t)snprintf(to + used, capacity - used, plain ? "%c" : "\\x%02x", (unsigned char)from[i]);
    }
    to[used] = '\0';
}
