/* Assembles whole characters from pieces of tokens. */
#include "base/strings/text_stream.h"

#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/text.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */
enum { REPLACEMENT_BYTES = 3 };

/* Could `count` bytes, which are not a character, become one if more follow? */
static bool may_begin(const char *text, size_t count)
{
    char longer[4];
    uint32_t character;
    memcpy(longer, text, count);
    /* Some first bytes restrict the second byte to a lower or an upper range: one of these two bytes continues every valid
     * beginning. */
    for (size_t total = count + 1; total <= sizeof longer; total++) {
        memset(longer + count, 0x80, total - count);
        if (utf8_read(longer, total, &character) == total)
            return true;
        memset(longer + count, 0xbf, total - count);
        if (utf8_read(longer, total, &character) == total)
            return true;
    }
    return false;
}

static void append(text_stream *s, const char *bytes, size_t count)
{
    memcpy(s->text + s->bytes, bytes, count);
    s->bytes += count;
}

/* Adds one byte. The caller has made room for two characters. */
static void add_byte(text_stream *s, char byte)
{
    uint32_t character;
    s->begun[s->begun_bytes++] = byte;
    if (utf8_read(s->begun, s->begun_bytes, &character) == s->begun_bytes) {
        append(s, s->begun, s->begun_bytes);
        s->begun_bytes = 0;
        return;
    }
    if (may_begin(s->begun, s->begun_bytes))
        return;
    append(s, REPLACEMENT, REPLACEMENT_BYTES); /* for the incomplete character, or for the byte alone */
    const bool alone = s->begun_bytes == 1;
    s->begun_bytes = 0;
    if (!alone)
        add_byte(s, byte);
}

ww_status text_stream_add(text_stream *s, const char *bytes, size_t count)
{
    const size_t bytes_max = s->bytes + (count + 2) * 2 * REPLACEMENT_BYTES;
    const ww_status status = array_reserve(&s->text, &s->capacity, (int64_t)bytes_max, 1, "text of tokens");
    for (size_t i = 0; status == WW_OK && i < count; i++)
        add_byte(s, bytes[i]);
    return status;
}

void text_stream_finish(text_stream *s)
{
    if (s->begun_bytes > 0)
        append(s, REPLACEMENT, REPLACEMENT_BYTES);
    s->begun_bytes = 0;
}

void text_stream_free(text_stream *s)
{
    memory_free(s->text);
    *s = (text_stream){0};
}
