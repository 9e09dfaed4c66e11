/* Decimal text to f32, correctly rounded.
 *
 * Most numbers in files are short: when the digits make an integer up to 2^53 and the power of ten is at most 22, both are
 * exact doubles, and one multiplication or division gives the correctly rounded double. Rounding that once more to f32 is wrong
 * only if the double is exactly halfway between two floats (else the true value lies on the same side of every halfway point),
 * so those few, and all that is long or tiny or huge, go to strtof.
 */
#include "files/number.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { EXACT_POWER_MAX = 22, DIGITS_MAX = 19 };

typedef struct decimal {
    bool negative;
    bool exact;       /* no digit was left out of `digits` */
    uint64_t digits;  /* the significant ones, as an integer */
    int64_t exponent; /* value = digits x 10^exponent */
} decimal;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The grammar: [+-] (digits [. [digits]] | . digits) [(e|E) [+-] digits]. False for anything else. */
static bool scan(const char *text, size_t length, decimal *d)
{
    const char *end = text + length;
    int significant = 0, digits = 0;
    bool point = false;
    *d = (decimal){.exact = true};
    if (text < end && (*text == '+' || *text == '-'))
        d->negative = *text++ == '-';
    for (; text < end && (is_digit(*text) || (*text == '.' && !point)); text++) {
        if (*text == '.') {
            point = true;
            continue;
        }
        digits = 1;
        if (significant == 0 && *text == '0') {
            d->exponent -= point;
        } else if (significant < DIGITS_MAX) {
            d->digits = d->digits * 10 + (uint64_t)(*text - '0');
            d->exponent -= point;
            significant++;
        } else {
            d->exact = false;
        }
    }
    if (!digits)
        return false;
    if (text < end && (*text == 'e' || *text == 'E')) {
        int64_t exponent = 0;
        bool negative = false;
        text++;
        if (text < end && (*text == '+' || *text == '-'))
            negative = *text++ == '-';
        if (text == end)
            return false;
        for (; text < end && is_digit(*text); text++)
            if (exponent < 1000000) /* beyond, it makes no difference to an f32 unless a million digits make up for it */
                exponent = exponent * 10 + (*text - '0');
            else
                d->exact = false;
        d->exponent += negative ? -exponent : exponent;
    }
    return text == end;
}

/* True if the short way applies and its result is certain. */
static bool read_short(const decimal *d, float *value)
{
    static const double powers[EXACT_POWER_MAX + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                                       1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (!d->exact || d->digits > UINT64_C(1) << 53 || d->exponent < -EXACT_POWER_MAX || d->exponent > EXACT_POWER_MAX)
        return false;
    double x = (double)d->digits;
    x = d->exponent < 0 ? x / powers[-d->exponent] : x * powers[d->exponent];
    /* x is 0 or from 1e-22 to 2^53 x 1e22 < 2^127: always a normal f32, never near its overflow. */
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x1fffffff) == 0x10000000) /* the 29 bits that f32 has not: exactly half */
        return false;
    *value = (float)(d->negative ? -x : x);
    return true;
}

static bool read_word(const char *text, size_t length, float *value)
{
    static const struct {
        const char *word;
        float value;
    } words[] = {{"inf", INFINITY}, {"infinity", INFINITY}, {"nan", NAN}};
    const bool negative = length > 0 && *text == '-';
    if (length > 0 && (*text == '-' || *text == '+')) {
        text++;
        length--;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (length == strlen(words[i].word) && strncasecmp(text, words[i].word, length) == 0) {
            *value = negative ? -words[i].value : words[i].value;
            return true;
        }
    return false;
}

number_kind number_read(char *text, size_t length, locale_t c_locale, float *value)
{
    decimal d;
    if (!scan(text, length, &d))
        return read_word(text, length, value) ? NUMBER_OK : NUMBER_NOT;
    if (read_short(&d, value))
        return NUMBER_OK;
    const char kept = text[length];
    text[length] = '\0';
    *value = strtof_l(text, NULL, c_locale);
    text[length] = kept;
    return isinf(*value) ? NUMBER_TOO_LARGE : NUMBER_OK;
}
