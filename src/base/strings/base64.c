/* Base64: six bits for each letter, the first in the high bits. */
#include "base/strings/base64.h"

static int digit_of(char c, const char last[2])
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == last[0] ? 62 : c == last[1] ? 63 : -1;
}

int64_t base64_decode(const char *text, size_t length, const char last[2], char *to)
{
    uint32_t bits = 0;
    int64_t bytes = 0;
    int held = 0;
    for (size_t i = 0; i < length; i++) {
        const int digit = digit_of(text[i], last);
        if (digit < 0)
            return -1;
        bits = bits << 6 | (uint32_t)digit;
        held += 6;
        if (held >= 8) {
            held -= 8;
            to[bytes++] = (char)(bits >> held & 0xFF);
        }
    }
    to[bytes] = '\0';
    return length % 4 != 1 && (bits & ((1U << held) - 1)) == 0 ? bytes : -1;
}
