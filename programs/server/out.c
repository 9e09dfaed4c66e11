/* Text that grows. */
#include "server/out.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

enum { FIRST_BYTES = 512, NUMBER_BYTES = 40 };

/* Makes room for `count` bytes and a NUL. */
static bool reserve(out *o, size_t count)
{
    if (o->failed)
        return false;
    if (o->length + count < o->capacity)
        return true;
    size_t larger = o->capacity > 0 ? o->capacity : FIRST_BYTES;
    while (larger <= o->length + count)
        larger *= 2;
    char *moved = memory_resize(o->bytes, larger);
    o->failed = !moved;
    if (moved) {
        o->bytes = moved;
        o->capacity = larger;
    }
    return moved != NULL;
}

void out_bytes(out *o, const char *bytes, size_t count)
{
    if (!reserve(o, count))
        return;
    if (count > 0)
        memcpy(o->bytes + o->length, bytes, count);
    o->length += count;
    o->bytes[o->length] = '\0';
}

void out_text(out *o, const char *text)
{
    out_bytes(o, text, strlen(text));
}

void out_format(out *o, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    va_list again;
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length >= 0 && reserve(o, (size_t)length)) {
        vsnprintf(o->bytes + o->length, (size_t)length + 1, format, again);
        o->length += (size_t)length;
    }
    va_end(again);
}

static void put_escape(out *o, unsigned char c)
{
    static const char letters[] = "btn\vfr"; /* from 8 on */
    if (c == '"' || c == '\\')
        out_format(o, "\\%c", c);
    else if (c >= 8 && c <= 13 && c != 11)
        out_format(o, "\\%c", letters[c - 8]);
    else
        out_format(o, "\\u%04x", (unsigned)c);
}

void out_quoted(out *o, const char *text, size_t length)
{
    size_t plain = 0; /* bytes before `i` that are not written yet */
    out_bytes(o, "\"", 1);
    for (size_t i = 0; i < length;) {
        uint32_t character = 0;
        const size_t bytes = utf8_read(text + i, length - i, &character);
        const bool escaped = bytes == 0 || character < 0x20 || character == '"' || character == '\\';
        if (!escaped) {
            plain += bytes;
            i += bytes;
            continue;
        }
        out_bytes(o, text + i - plain, plain);
        plain = 0;
        if (bytes == 0)
            out_text(o, "\xef\xbf\xbd");
        else
            put_escape(o, (unsigned char)character);
        i += bytes == 0 ? 1 : bytes;
    }
    out_bytes(o, text + length - plain, plain);
    out_bytes(o, "\"", 1);
}

static void put_number(out *o, double value, int digits)
{
    if (!isfinite(value)) {
        out_text(o, "null");
        return;
    }
    char text[NUMBER_BYTES];
    const int length = snprintf(text, sizeof text, "%.*g", digits, value);
    out_bytes(o, text, (size_t)length);
    if (strspn(text, "-0123456789") == (size_t)length) /* clients distinguish reals from integers by the point */
        out_bytes(o, ".0", 2);
}

void out_float(out *o, float value)
{
    put_number(o, (double)value, 9);
}

void out_double(out *o, double value)
{
    put_number(o, value, 17);
}

void out_floats(out *o, const float *values, int64_t count)
{
    out_bytes(o, "[", 1);
    for (int64_t i = 0; i < count; i++) {
        if (i > 0)
            out_bytes(o, ",", 1);
        out_float(o, values[i]);
    }
    out_bytes(o, "]", 1);
}

void out_free(out *o)
{
    memory_free(o->bytes);
    *o = (out){0};
}
