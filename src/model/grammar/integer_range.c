/* Integers between two bounds as a grammar over decimal digits.
 *
 * Numbers of one length are compared digit by digit: after a common prefix, the next digit is that of the lower bound, one in
 * between followed by any digits, or that of the upper bound.
 */
#include "model/grammar/schema.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DIGITS_MAX = 18 };
#define INTEGER_MAX (INT64_C(999999999999999999)) /* DIGITS_MAX nines, as in the rule `integer` */

static void write_any(schema_writer *w, size_t count)
{
    if (count > 0)
        gbnf_write(w, "[0-9]{%zu} ", count);
}

/* Writes the numbers from `low` to `high`, of one length. A rest of only zeros, or nines, has no bound. */
static void write_digits(schema_writer *w, const char *low, const char *high)
{
    for (; *low && *low == *high; low++, high++)
        gbnf_write(w, "\"%c\" ", *low);
    if (!*low)
        return;
    const size_t behind = strlen(low) - 1;
    char nines[DIGITS_MAX + 1] = {0}, zeros[DIGITS_MAX + 1] = {0};
    memset(nines, '9', behind);
    memset(zeros, '0', behind);
    const bool from = strcmp(low + 1, zeros) != 0, to = strcmp(high + 1, nines) != 0;
    const char first = (char)(*low + from), last = (char)(*high - to);
    const char *bar = "";
    gbnf_write(w, "(");
    if (from) {
        gbnf_write(w, "\"%c\" ", *low);
        write_digits(w, low + 1, nines);
        bar = "| ";
    }
    if (first <= last) {
        gbnf_write(w, "%s[%c-%c] ", bar, first, last);
        write_any(w, behind);
        bar = "| ";
    }
    if (to) {
        gbnf_write(w, "%s\"%c\" ", bar, *high);
        write_digits(w, zeros, high + 1);
    }
    gbnf_write(w, ") ");
}

/* Writes the numbers from `low` to `high`, not negative, by their lengths. */
static void write_range(schema_writer *w, int64_t low, int64_t high)
{
    char low_digits[24], high_digits[24], from[DIGITS_MAX + 2] = {0}, to[DIGITS_MAX + 2] = {0};
    const size_t first = (size_t)snprintf(low_digits, sizeof low_digits, "%" PRId64, low);
    const size_t last = (size_t)snprintf(high_digits, sizeof high_digits, "%" PRId64, high);
    for (size_t length = first; length <= last && length <= DIGITS_MAX; length++) {
        memset(from, '0', length);
        memset(to, '9', length);
        from[0] = '1';
        from[length] = to[length] = '\0';
        gbnf_write(w, length > first ? "| " : "");
        write_digits(w, length == first ? low_digits : from, length == last ? high_digits : to);
    }
}

/* Reads a bound as an integer: rounded inwards if it is not one, and moved by one if it is exclusive; `step` is 1 for a lower
 * bound, else -1. */
static int64_t read_bound(schema_writer *w, const json_t *schema, const char *const names[2], int step)
{
    int64_t bound = -step * INTEGER_MAX;
    for (int i = 0; i < 2; i++) {
        const json_t *value = json_object_get(schema, names[i]);
        const double number = json_number_value(value);
        if (!value)
            continue;
        const bool fits = json_is_integer(value)
                              ? json_integer_value(value) >= -INTEGER_MAX && json_integer_value(value) <= INTEGER_MAX
                              : json_is_real(value) && fabs(number) < 1e17;
        if (!fits) {
            schema_refuse(w, "%s must be a number of at most %d digits", names[i], (int)DIGITS_MAX);
            return bound;
        }
        int64_t at = json_is_integer(value) ? json_integer_value(value) : (int64_t)(step > 0 ? ceil(number) : floor(number));
        if (i == 1 && (json_is_integer(value) || (double)at == number))
            at += step;
        bound = (step > 0) == (at > bound) ? at : bound;
    }
    return bound;
}

bool integer_has_range(const json_t *schema)
{
    static const char *const names[] = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (json_object_get(schema, names[i]))
            return true;
    return false;
}

void integer_write(schema_writer *w, const json_t *schema)
{
    static const char *const lower[2] = {"minimum", "exclusiveMinimum"}, *const upper[2] = {"maximum", "exclusiveMaximum"};
    const int64_t low = read_bound(w, schema, lower, 1), high = read_bound(w, schema, upper, -1);
    if (low > high)
        schema_refuse(w, "no integer is from %" PRId64 " to %" PRId64, low, high);
    if (w->status != WW_OK)
        return;
    if (low < 0) {
        gbnf_write(w, "\"-\" (");
        write_range(w, high < 0 ? -high : 1, -low);
        gbnf_write(w, ") %s", high < 0 ? "" : "| ");
    }
    if (high >= 0)
        write_range(w, low > 0 ? low : 0, high);
    gbnf_write(w, "\n");
}
