/* Reads values from checked JSON text. To find where a value ends, brackets are only counted. */
#include "base/json/json_value.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static const char *skip_space(const char *at)
{
    while (is_space(*at))
        at++;
    return at;
}

const char *json_root(const char *text)
{
    return skip_space(text);
}

json_type json_type_of(const char *value)
{
    switch (*value) {
    case 'n':
        return JSON_NULL;
    case 'f':
        return JSON_FALSE;
    case 't':
        return JSON_TRUE;
    case '"':
        return JSON_TEXT;
    case '[':
        return JSON_LIST;
    case '{':
        return JSON_OBJECT;
    default:
        return JSON_NUMBER;
    }
}

static const char *text_end(const char *value)
{
    const char *at = value + 1;
    while (*at != '"')
        at += *at == '\\' ? 2 : 1;
    return at + 1;
}

/* Returns the first byte after a number or a word. */
static const char *word_end(const char *value)
{
    const char *at = value;
    while (*at != ',' && *at != ']' && *at != '}' && *at != '\0' && !is_space(*at))
        at++;
    return at;
}

/* Returns the first byte after a list that starts with a number and contains no texts, lists or objects; NULL for other lists.
 * Lists of numbers are long, and the C library checks many bytes at a time. */
const char *json_numbers_end(const char *list)
{
    const char *first = skip_space(list + 1);
    const char *close = *first == '-' || (*first >= '0' && *first <= '9') ? strchr(first, ']') : NULL;
    const size_t length = close ? (size_t)(close - first) : 0;
    return close && !memchr(first, '"', length) && !memchr(first, '[', length) && !memchr(first, '{', length) ? close + 1
                                                                                                              : NULL;
}

const char *json_end(const char *value)
{
    /* Bytes with a meaning inside a list or an object. */
    static const bool MATTERS[256] = {['"'] = true, ['['] = true, [']'] = true, ['{'] = true, ['}'] = true};
    if (*value == '"')
        return text_end(value);
    if (*value != '[' && *value != '{')
        return word_end(value);
    const char *numbers = *value == '[' ? json_numbers_end(value) : NULL;
    if (numbers)
        return numbers;
    int64_t depth = 1;
    const char *at = value + 1;
    while (depth > 0) {
        while (!MATTERS[(unsigned char)*at])
            at++;
        if (*at == '"') {
            at = text_end(at);
            continue;
        }
        depth += *at == '[' || *at == '{' ? 1 : -1;
        at++;
    }
    return at;
}

const char *json_first(const char *list_or_object)
{
    const char *at = skip_space(list_or_object + 1);
    return *at == ']' || *at == '}' ? NULL : at;
}

const char *json_member(const char *key)
{
    return skip_space(skip_space(text_end(key)) + 1); /* after the colon */
}

const char *json_next(const char *at)
{
    const char *behind = skip_space(json_end(at));
    if (*behind == ':')
        behind = skip_space(json_end(skip_space(behind + 1)));
    return *behind == ',' ? skip_space(behind + 1) : NULL;
}

const char *json_find(const char *object, const char *key, size_t length)
{
    for (const char *at = json_first(object); at != NULL; at = json_next(at))
        if (json_text_is(at, key, length))
            return json_member(at);
    return NULL;
}

/* ---- numbers ------------------------------------------------------------------------------------------------------------- */

/* Numbers of this many digits are exact as 64-bit integers and as doubles, and these powers of ten as doubles. */
enum { INTEGER_DIGITS = 18, REAL_DIGITS = 15, POWER_MAX = 22 };
static const double POWERS[POWER_MAX + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                             1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* A copy of the C locale, made once and never changed. */
static pthread_once_t locale_once = PTHREAD_ONCE_INIT;
static locale_t c_locale;

static void make_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* The process's locale may have a decimal comma. If there is no memory for another locale, this one is used. */
static double read_real(const char *value)
{
    pthread_once(&locale_once, make_locale);
    return c_locale != (locale_t)0 ? strtod_l(value, NULL, c_locale) : strtod(value, NULL);
}

float json_real_f32(const char *value)
{
    pthread_once(&locale_once, make_locale);
    return c_locale != (locale_t)0 ? strtof_l(value, NULL, c_locale) : strtof(value, NULL);
}

/* A short number: `digits` times ten to the power of -`decimals`. */
typedef struct short_number {
    uint64_t digits;
    int32_t count; /* digits without leading zeros */
    int32_t decimals;
    bool has_point, has_exponent;
} short_number;

static short_number read_digits(const char *value)
{
    short_number n = {0};
    const char *at = value + (*value == '-' ? 1 : 0);
    for (; n.count <= INTEGER_DIGITS && ((*at >= '0' && *at <= '9') || *at == '.'); at++) {
        if (*at == '.') {
            n.has_point = true;
            continue;
        }
        n.digits = 10 * n.digits + (uint64_t)(*at - '0'); /* 19 digits are below 2^64 */
        n.count += n.digits > 0 ? 1 : 0;
        n.decimals += n.has_point ? 1 : 0;
    }
    n.has_exponent = *at == 'e' || *at == 'E';
    return n;
}

const char *json_find_field(const char *text, const char *field)
{
    const char *value = text ? json_root(text) : NULL;
    while (value && *field) {
        const size_t length = strcspn(field, ".");
        value = json_type_of(value) == JSON_OBJECT ? json_find(value, field, length) : NULL;
        field += length + (field[length] == '.');
    }
    return value;
}

json_number json_number_of(const char *value)
{
    const short_number n = read_digits(value);
    const int64_t sign = *value == '-' ? -1 : 1;
    if (n.count <= INTEGER_DIGITS && !n.has_point && !n.has_exponent)
        return (json_number){.is_integer = true, .integer = sign * (int64_t)n.digits};
    /* Both are exact, so the single division rounds like strtod(). */
    if (n.count <= REAL_DIGITS && n.has_point && !n.has_exponent && n.decimals <= POWER_MAX && n.digits != 0)
        return (json_number){.real = (double)(sign * (int64_t)n.digits) / POWERS[n.decimals]};
    json_number number = {.is_integer = true};
    for (const char *at = value, *end = word_end(value); at < end && number.is_integer; at++)
        number.is_integer = *at != '.' && *at != 'e' && *at != 'E';
    if (number.is_integer) {
        errno = 0;
        number.integer = strtoll(value, NULL, 10);
        number.is_integer = errno == 0;
    }
    if (!number.is_integer)
        number.real = read_real(value);
    return number;
}

/* Compares an integer with a double exactly: after a check of its magnitude, the double's integral part fits in 64 bits. */
static int compare_mixed(int64_t integer, double real)
{
    if (real >= 0x1p63)
        return -1;
    if (real < -0x1p63)
        return 1;
    const double whole = floor(real);
    const int64_t other = (int64_t)whole;
    if (integer != other)
        return integer < other ? -1 : 1;
    return real > whole ? -1 : 0;
}

int json_number_compare(const json_number *a, const json_number *b)
{
    if (a->is_integer && b->is_integer)
        return (a->integer > b->integer) - (a->integer < b->integer);
    if (a->is_integer)
        return compare_mixed(a->integer, b->real);
    if (b->is_integer)
        return -compare_mixed(b->integer, a->real);
    return (a->real > b->real) - (a->real < b->real);
}

/* ---- texts --------------------------------------------------------------------------------------------------------------- */

static uint32_t read_hex4(const char *at)
{
    const char digits[5] = {at[0], at[1], at[2], at[3], '\0'};
    return (uint32_t)strtoul(digits, NULL, 16);
}

static size_t write_utf8(uint32_t character, char *out)
{
    if (character < 0x80) {
        out[0] = (char)character;
        return 1;
    }
    const int rest = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    static const uint32_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    out[0] = (char)(lead[rest] | character >> (6 * rest));
    for (int i = 1; i <= rest; i++)
        out[i] = (char)(0x80 | (character >> (6 * (rest - i)) & 0x3f));
    return (size_t)rest + 1;
}

/* Writes the character of an escape, and advances past it. */
static size_t read_escape(const char **at, char *out)
{
    static const char kinds[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    const char kind = (*at)[1];
    if (kind != 'u') {
        *at += 2;
        *out = means[strchr(kinds, kind) - kinds];
        return 1;
    }
    uint32_t character = read_hex4(*at + 2);
    *at += 6;
    if (character >= 0xd800 && character < 0xdc00) { /* the other half of the pair follows */
        character = 0x10000 + ((character - 0xd800) << 10) + (read_hex4(*at + 2) - 0xdc00);
        *at += 6;
    }
    return write_utf8(character, out);
}

size_t json_text_read(const char *value, char *out)
{
    size_t length = 0;
    for (const char *at = value + 1; *at != '"';)
        if (*at == '\\')
            length += read_escape(&at, out + length);
        else
            out[length++] = *at++;
    return length;
}

bool json_text_is(const char *value, const char *bytes, size_t length)
{
    size_t same = 0;
    for (const char *at = value + 1; *at != '"';) {
        char piece[4];
        size_t piece_length = 1;
        if (*at == '\\')
            piece_length = read_escape(&at, piece);
        else
            piece[0] = *at++;
        if (length - same < piece_length || memcmp(bytes + same, piece, piece_length) != 0)
            return false;
        same += piece_length;
    }
    return same == length;
}
