/* Numbers between two bounds as a grammar over decimal digits.
 *
 * Bounds and numbers are multiples of 10^-places, where integers have no places; numbers have no exponent. Digits are compared
 * one by one: after a common prefix, the next digit is that of the lower bound, one in between followed by any digits, or that
 * of the upper bound.
 */
#include "model/grammar/schema.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DIGITS_MAX = 18, EXACT_DIGITS = 15 };      /* different decimals of 15 digits are different doubles */
#define INTEGER_MAX (INT64_C(999999999999999999)) /* DIGITS_MAX nines, as in the rule `integer` */

static bool is_all(const char *digits, char digit)
{
    return digits[strspn(digits, (const char[]){digit, '\0'})] == '\0';
}

static void write_digits(schema_writer *w, const char *low, const char *high, bool fraction);

/* Writes the digits after the first one. */
static void write_rest(schema_writer *w, const char *low, const char *high, bool fraction)
{
    if (!*low)
        return;
    gbnf_write(w, "(");
    write_digits(w, low, high, fraction);
    gbnf_write(w, fraction && is_all(low, '0') ? ")? " : ") ");
}

/* Writes the digits from `low` to `high`, which have one length. Zeros at the end of a fraction may be left out, but not its
 * first digit. */
static void write_digits(schema_writer *w, const char *low, const char *high, bool fraction)
{
    const size_t behind = strlen(low) - 1;
    char nines[DIGITS_MAX + 1] = {0}, zeros[DIGITS_MAX + 1] = {0};
    memset(nines, '9', behind);
    memset(zeros, '0', behind);
    if (is_all(low, '0') && is_all(high, '9')) {
        gbnf_write(w, fraction ? "[0-9]{1,%zu} " : "[0-9]{%zu} ", behind + 1);
        return;
    }
    if (*low == *high) {
        gbnf_write(w, "\"%c\" ", *low);
        write_rest(w, low + 1, high + 1, fraction);
        return;
    }
    const bool from = !is_all(low + 1, '0'), to = !is_all(high + 1, '9');
    const char first = (char)(*low + from), last = (char)(*high - to);
    if (from) {
        gbnf_write(w, "\"%c\" ", *low);
        write_rest(w, low + 1, nines, fraction);
    }
    if (first <= last) {
        gbnf_write(w, "%s[%c-%c] ", from ? "| " : "", first, last);
        write_rest(w, zeros, nines, fraction);
    }
    if (to) {
        gbnf_write(w, "%s\"%c\" ", from || first <= last ? "| " : "", *high);
        write_rest(w, zeros, high + 1, fraction);
    }
}

/* Writes the integers from `low` to `high`, not negative, by their lengths. */
static void write_integers(schema_writer *w, int64_t low, int64_t high)
{
    char low_digits[24], high_digits[24], from[DIGITS_MAX + 2] = {0}, to[DIGITS_MAX + 2] = {0};
    const size_t first = (size_t)snprintf(low_digits, sizeof low_digits, "%" PRId64, low);
    const size_t last = (size_t)snprintf(high_digits, sizeof high_digits, "%" PRId64, high);
    gbnf_write(w, "(");
    for (size_t length = first; length <= last && length <= DIGITS_MAX; length++) {
        memset(from, '0', length);
        memset(to, '9', length);
        from[0] = '1';
        from[length] = to[length] = '\0';
        gbnf_write(w, length > first ? "| " : "");
        write_digits(w, length == first ? low_digits : from, length == last ? high_digits : to, false);
    }
    gbnf_write(w, ") ");
}

/* Writes the numbers with the integer parts `low` to `high` and the fractions `from` to `to`. */
static void write_parts(schema_writer *w, int64_t low, int64_t high, const char *from, const char *to)
{
    write_integers(w, low, high);
    if (!*from)
        return;
    gbnf_write(w, "(\".\" (");
    write_digits(w, from, to, true);
    gbnf_write(w, is_all(from, '0') ? "))? " : ")) ");
}

/* Writes the numbers from `low` to `high`, not negative. */
static void write_range(schema_writer *w, __int128 low, __int128 high, int places)
{
    char from[DIGITS_MAX + 1] = {0}, to[DIGITS_MAX + 1] = {0}, nines[DIGITS_MAX + 1] = {0}, zeros[DIGITS_MAX + 1] = {0};
    memset(nines, '9', (size_t)places);
    memset(zeros, '0', (size_t)places);
    for (int i = places - 1; i >= 0; i--, low /= 10, high /= 10) {
        from[i] = (char)('0' + (int)(low % 10));
        to[i] = (char)('0' + (int)(high % 10));
    }
    const int64_t first = (int64_t)low, last = (int64_t)high;
    if (places == 0 || first == last) {
        write_parts(w, first, last, from, to);
        return;
    }
    write_parts(w, first, first, from, nines);
    if (last - first > 1) {
        gbnf_write(w, "| ");
        write_parts(w, first + 1, last - 1, zeros, nines);
    }
    gbnf_write(w, "| ");
    write_parts(w, last, last, zeros, to);
}

/* ---- bounds -------------------------------------------------------------------------------------------------------------- */

static const char *const LOWER[2] = {"minimum", "exclusiveMinimum"}, *const UPPER[2] = {"maximum", "exclusiveMaximum"};

bool schema_has_range(const json_t *schema)
{
    for (int i = 0; i < 2; i++)
        if (json_object_get(schema, LOWER[i]) || json_object_get(schema, UPPER[i]))
            return true;
    return false;
}

/* How many places numbers have, so that they have at most EXACT_DIGITS digits near the bounds. */
static int places_of(const json_t *schema)
{
    int places = EXACT_DIGITS;
    for (int i = 0; i < 4; i++) {
        double number = fabs(json_number_value(json_object_get(schema, i < 2 ? LOWER[i] : UPPER[i - 2])));
        int left = EXACT_DIGITS;
        for (; number >= 1.0 && left > 0; number /= 10.0)
            left--;
        places = left < places ? left : places;
    }
    return places;
}

typedef struct bound_kind {
    const char *const *names;
    int step; /* 1: a lower bound; -1: an upper one */
    int places;
    bool integer;
} bound_kind;

/* Reads a bound as a multiple of 10^-places: moved by one if it is exclusive. For integers it is rounded inwards. */
static __int128 read_bound(schema_writer *w, const json_t *schema, const bound_kind *kind)
{
    const int step = kind->step;
    int64_t unit = 1;
    for (int i = 0; i < kind->places; i++)
        unit *= 10;
    __int128 bound = -step * (((__int128)INTEGER_MAX + 1) * unit - 1);
    for (int i = 0; i < 2; i++) {
        const json_t *value = json_object_get(schema, kind->names[i]);
        const double number = json_number_value(value), scaled = number * (double)unit;
        if (!value)
            continue;
        const double max = kind->integer ? 1e17 : 1e15;
        bool fits = json_is_real(value) && fabs(scaled) < max;
        __int128 at = 0;
        if (json_is_integer(value)) {
            at = (__int128)json_integer_value(value) * unit;
            fits = kind->integer ? at >= -INTEGER_MAX && at <= INTEGER_MAX : fabs(scaled) < max;
        } else if (fits) {
            at = (int64_t)(!kind->integer ? round(scaled) : step > 0 ? ceil(scaled) : floor(scaled));
            fits = kind->integer || (double)at / (double)unit == number;
        }
        if (!fits) {
            schema_refuse(w, "%s must be a number of at most %d digits", kind->names[i],
                          kind->integer ? (int)DIGITS_MAX : (int)EXACT_DIGITS);
            return bound;
        }
        if (i == 1 && (!kind->integer || json_is_integer(value) || (double)at == number))
            at += step;
        bound = (step > 0) == (at > bound) ? at : bound;
    }
    return bound;
}

void range_write(schema_writer *w, const json_t *schema, bool integer)
{
    const int places = integer ? 0 : places_of(schema);
    const __int128 low = read_bound(w, schema, &(bound_kind){LOWER, 1, places, integer});
    const __int128 high = read_bound(w, schema, &(bound_kind){UPPER, -1, places, integer});
    if (low > high)
        schema_refuse(w, "no %s is between minimum and maximum", integer ? "integer" : "number");
    if (w->status != WW_OK)
        return;
    if (low < 0) {
        gbnf_write(w, "\"-\" (");
        write_range(w, high < 0 ? -high : 1, -low, places);
        gbnf_write(w, ") %s", high < 0 ? "" : "| ");
    }
    if (high >= 0)
        write_range(w, low > 0 ? low : 0, high, places);
    gbnf_write(w, "\n");
}
