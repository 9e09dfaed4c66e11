/* Decimal text to f32, correctly rounded: by base/json/decimal.h, or by strtof where that is not certain. */
#include "files/number.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json/decimal.h"

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
        } else if (significant < DECIMAL_DIGITS_MAX) {
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
    if (decimal_to_f32(&d, value))
        return NUMBER_OK;
    const char kept = text[length];
    text[length] = '\0';
    *value = strtof_l(text, NULL, c_locale);
    text[length] = kept;
    return isinf(*value) ? NUMBER_TOO_LARGE : NUMBER_OK;
}
