/* Ids of points: reading, and their order. */
#include "server/qdrant/point_id.h"

#include <string.h>

#include "base/json/json_value.h"

enum { UUID_DIGITS = 32, UUID_TEXT_BYTES_MAX = 64 };

bool point_id_is_number(const char *id, size_t length, uint64_t *number)
{
    uint64_t value = 0;
    if (length == 0 || length > 20 || (length > 1 && id[0] == '0'))
        return false;
    for (size_t i = 0; i < length; i++) {
        const unsigned digit = (unsigned)(unsigned char)id[i] - '0';
        if (digit > 9 || value > (UINT64_MAX - digit) / 10)
            return false;
        value = 10 * value + digit;
    }
    *number = value;
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    const char small = (char)(c | 0x20);
    return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

/* Writes 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12. The text has hyphens either between all groups or nowhere. */
static bool read_uuid(const char *text, size_t length, char *id)
{
    static const char digits[] = "0123456789abcdef";
    const bool hyphens = length == UUID_DIGITS + 4;
    size_t out = 0;
    if (length != UUID_DIGITS && !hyphens)
        return false;
    for (size_t i = 0, digit = 0; i < length; i++) {
        const bool gap = digit == 8 || digit == 12 || digit == 16 || digit == 20;
        if (hyphens && gap && id[out - 1] != '-') {
            if (text[i] != '-')
                return false;
            id[out++] = '-';
            continue;
        }
        if (!hyphens && gap)
            id[out++] = '-';
        const int value = hex_digit(text[i]);
        if (value < 0)
            return false;
        id[out++] = digits[value];
        digit++;
    }
    id[out] = '\0';
    return out == UUID_DIGITS + 4;
}

bool point_id_read(const char *json, char *id)
{
    const size_t bytes = (size_t)(json_end(json) - json);
    if (json_type_of(json) == JSON_NUMBER) {
        uint64_t number = 0;
        if (!point_id_is_number(json, bytes, &number))
            return false;
        memcpy(id, json, bytes);
        id[bytes] = '\0';
        return true;
    }
    if (json_type_of(json) != JSON_TEXT || bytes > UUID_TEXT_BYTES_MAX)
        return false;
    char text[UUID_TEXT_BYTES_MAX];
    size_t length = json_text_read(json, text);
    const char *at = text;
    if (length > 9 && memcmp(at, "urn:uuid:", 9) == 0) {
        at += 9;
        length -= 9;
    } else if (length > 2 && at[0] == '{' && at[length - 1] == '}') {
        at += 1;
        length -= 2;
    }
    return read_uuid(at, length, id);
}

int point_id_compare(const char *a, const char *b)
{
    uint64_t first = 0, second = 0;
    const bool a_number = point_id_is_number(a, strlen(a), &first), b_number = point_id_is_number(b, strlen(b), &second);
    if (a_number && b_number)
        return (first > second) - (first < second);
    return a_number != b_number ? (b_number ? 1 : -1) : strcmp(a, b);
}
