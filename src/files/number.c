/* Decimal text to f32, correctly rounded.
 *
 * The fast way computes in double: the first 19 digits as an integer, multiplied or divided by a power of ten. A double has 29
 * more bits than an f32, and the error is small compared with those. So rounding to f32 is correct unless the double is next to
 * a halfway point between two floats. These few, one in fifty million random numbers, and all tiny and huge ones, go to strtof,
 * which is several times slower.
 */
#include "files/number.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { POWER_MAX = 38, DIGITS_MAX = 19 };

typedef struct decimal {
    bool negative;
    bool exponent_known; /* false: the exponent in the text is too large to count */
    uint64_t digits;     /* the first significant ones, as an integer */
    int64_t exponent;    /* value = digits x 10^exponent, ignoring the digits that were left out */
} decimal;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The grammar: [+-] (digits [. [digits]] | . digits) [(e|E) [+-] digits]. Returns false for anything else. */
static bool scan(const char *text, size_t length, decimal *d)
{
    const char *end = text + length;
    int significant = 0, digits = 0;
    bool point = false;
    *d = (decimal){.exponent_known = true};
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
            d->exponent += !point; /* digits that are left out: less than one part in 10^18 */
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
            if (exponent < 1000000) /* larger ones make no difference to an f32, unless a million digits compensate */
                exponent = exponent * 10 + (*text - '0');
            else
                d->exponent_known = false;
        d->exponent += negative ? -exponent : exponent;
    }
    return text == end;
}

/* Returns true if the fast way applies and its result is certain.
 *
 * Digits, power and result are each rounded once, by at most 2^-53 of their value, and the digits that were left out are less
 * than 2^-59. Together that is less than 3.1 x 2^-53, at most 3.1 units in the last place of a double. So a double that is more
 * than 4 units from every halfway point is on the same side of it as the true value. */
static bool read_short(const decimal *d, float *value)
{
    static const double powers[POWER_MAX + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11, 1e12,
                                                 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23, 1e24, 1e25,
                                                 1e26, 1e27, 1e28, 1e29, 1e30, 1e31, 1e32, 1e33, 1e34, 1e35, 1e36, 1e37, 1e38};
    if (!d->exponent_known || d->exponent < -POWER_MAX || d->exponent > POWER_MAX)
        return false;
    double x = (double)d->digits;
    x = d->exponent < 0 ? x / powers[-d->exponent] : x * powers[d->exponent];
    if (x != 0.0 && (x < 0x1.1p-126 || x >= 0x1p127)) /* denormals have other halfway points; above 2^128 there are none */
        return false;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int64_t beyond_half = (int64_t)(bits & 0x1fffffff) - 0x10000000; /* of the 29 bits that an f32 does not have */
    if (x != 0.0 && beyond_half >= -4 && beyond_half <= 4)
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
