/* Writes numbers, dates and times of Arrow's columns, as Python's json and isoformat() do. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic/half.h"
#include "base/status.h"
#include "files/arrow/arrow.h"

enum { DIGITS_MAX = 64 };

/* Writes digits from the end of `buffer`, which has DIGITS_MAX bytes; returns the first one. */
static char *digits_of(unsigned __int128 value, char *buffer)
{
    char *at = buffer + DIGITS_MAX;
    for (; value > UINT64_MAX; value /= 10)
        *--at = (char)('0' + (int)(value % 10));
    uint64_t rest = (uint64_t)value;
    do
        *--at = (char)('0' + (int)(rest % 10));
    while ((rest /= 10) > 0);
    return at;
}

ww_status column_write_integer(const column *c, int64_t index, text_builder *to)
{
    char buffer[DIGITS_MAX];
    const int64_t value = column_integer(c, index);
    const bool negative = c->is_signed && value < 0;
    char *at = digits_of(negative ? -(uint64_t)value : (uint64_t)value, buffer);
    if (negative)
        *--at = '-';
    return text_build(to, at, buffer + DIGITS_MAX - at);
}

/* ---- reals --------------------------------------------------------------------------------------------------------------- */

static double real_of(const column *c, int64_t index)
{
    const void *values = c->array->buffers[1];
    if (c->bytes == 8)
        return ((const double *)values)[index];
    return c->bytes == 4 ? (double)((const float *)values)[index] : (double)f32_from_f16(((const uint16_t *)values)[index]);
}

/* Prints a number with at most six decimals, without printf(). The quotient of an integer below 2^53 and an exact power of ten
 * is rounded like the decimal itself, so if it is x, the decimal reads back as x. Returns the length, 0 for other numbers. */
static int print_short(double x, char *text)
{
    enum { DECIMALS_MAX = 6 };
    const double magnitude = fabs(x);
    double power = 1;
    int decimals = 0;
    if (!(magnitude >= 1e-4 && magnitude < 1e9))
        return 0;
    while (decimals < DECIMALS_MAX && (double)(int64_t)(magnitude * power + 0.5) / power != magnitude) {
        power *= 10;
        decimals++;
    }
    const int64_t scaled = (int64_t)(magnitude * power + 0.5);
    if ((double)scaled / power != magnitude)
        return 0;
    const int64_t whole = scaled / (int64_t)power, part = scaled % (int64_t)power;
    return snprintf(text, DIGITS_MAX, "%s%lld.%0*lld", x < 0 ? "-" : "", (long long)whole, decimals > 0 ? decimals : 1,
                    (long long)part);
}

/* Removes zeros at the end of the digits, before the exponent if there is one, except for one behind the decimal point. */
static void strip_zeros(char *text)
{
    char *exponent = strchr(text, 'e');
    char *end = exponent ? exponent : text + strlen(text), *last = end;
    while (last[-1] == '0')
        last--;
    if (last[-1] < '0' || last[-1] > '9') /* the decimal point */
        last += exponent ? -1 : 1;
    memmove(last, end, strlen(end) + 1);
}

/* Prints the fewest digits that read back as x. Any 15 digits read back, and zeros at their end are removed; only numbers below
 * the normal ones have fewer. */
static int print_digits(double x, char *text)
{
    enum { DIGITS_SURE = 15, DIGITS_EXACT = 17 };
    int digits = isnormal(x) || x == 0 ? DIGITS_SURE : 1;
    snprintf(text, DIGITS_MAX, "%.*e", digits - 1, x);
    while (digits < DIGITS_EXACT && strtod(text, NULL) != x)
        snprintf(text, DIGITS_MAX, "%.*e", digits++, x);
    const int exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    if (exponent >= -4 && exponent < 16)
        snprintf(text, DIGITS_MAX, "%.*f", digits - 1 > exponent ? digits - 1 - exponent : 1, x);
    strip_zeros(text);
    return (int)strlen(text);
}

ww_status column_write_real(const column *c, int64_t index, text_builder *to)
{
    char text[DIGITS_MAX];
    const double x = real_of(c, index);
    if (!isfinite(x))
        return column_refuse_row(c, to->row, WW_INVALID_ARGUMENT,
                                 isnan(x) ? "is NaN; JSON holds finite numbers" : "is infinite; JSON holds finite numbers");
    int length = print_short(x, text);
    if (length == 0)
        length = print_digits(x, text);
    for (int i = 0; i < length; i++) /* the locale may have another decimal point */
        if (!strchr("0123456789+-e", text[i]))
            text[i] = '.';
    return text_build(to, text, length);
}

/* ---- decimals ------------------------------------------------------------------------------------------------------------ */

static ww_status build_zeros(text_builder *to, int64_t count)
{
    ww_status status = WW_OK;
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        status = text_build(to, "0", 1);
    return status;
}

ww_status column_write_decimal(const column *c, int64_t index, text_builder *to)
{
    char buffer[DIGITS_MAX];
    __int128 value = 0;
    if (c->bytes == (int32_t)sizeof value)
        memcpy(&value, (const char *)c->array->buffers[1] + index * c->bytes, sizeof value);
    else
        value = column_integer(c, index);
    const char *digits = digits_of(value < 0 ? -(unsigned __int128)value : (unsigned __int128)value, buffer);
    const int64_t count = buffer + DIGITS_MAX - digits, whole = count - c->scale;
    ww_status status = value < 0 ? text_build(to, "-", 1) : WW_OK;
    if (status == WW_OK)
        status = whole > 0 ? text_build(to, digits, whole < count ? whole : count) : text_build(to, "0", 1);
    if (status == WW_OK && whole > count && value != 0)
        status = build_zeros(to, whole - count);
    if (status != WW_OK || c->scale <= 0)
        return status;
    status = text_build(to, ".", 1);
    if (status == WW_OK && whole < 0)
        status = build_zeros(to, -whole);
    const int64_t first = whole > 0 ? whole : 0;
    return status == WW_OK ? text_build(to, digits + first, count - first) : status;
}

/* ---- dates and times ----------------------------------------------------------------------------------------------------- */

enum { SECONDS_A_DAY = 86400, TEXT_BYTES = 64 };

static int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* The date of a day, counted from 1970-01-01, by the method of counting in eras of 400 years that begin in March. Returns false
 * outside the years 1 to 9999. */
static bool print_date(int64_t day, char *text)
{
    enum { DAYS_TO_1970 = 719468, ERA_DAYS = 146097, DAY_MIN = -719162, DAY_MAX = 2932896 };
    if (day < DAY_MIN || day > DAY_MAX)
        return false;
    const int64_t shifted = day + DAYS_TO_1970, era = floor_divide(shifted, ERA_DAYS), in_era = shifted - era * ERA_DAYS;
    const int64_t year_of_era = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    const int64_t in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    const int64_t from_march = (5 * in_year + 2) / 153;
    const int64_t month = from_march < 10 ? from_march + 3 : from_march - 9;
    const int64_t year = year_of_era + 400 * era + (month <= 2);
    snprintf(text, TEXT_BYTES, "%04d-%02d-%02d", (int)year, (int)month, (int)(in_year - (153 * from_march + 2) / 5 + 1));
    return true;
}

/* A time of the day, with as many decimals as it needs: none, six or nine. */
static void print_time(int64_t seconds, int64_t nanoseconds, char *text)
{
    const int length =
        snprintf(text, TEXT_BYTES, "%02d:%02d:%02d", (int)(seconds / 3600), (int)(seconds / 60 % 60), (int)(seconds % 60));
    if (nanoseconds % 1000 != 0)
        snprintf(text + length, (size_t)(TEXT_BYTES - length), ".%09d", (int)nanoseconds);
    else if (nanoseconds > 0)
        snprintf(text + length, (size_t)(TEXT_BYTES - length), ".%06d", (int)(nanoseconds / 1000));
}

ww_status column_write_instant(const column *c, int64_t index, text_builder *to)
{
    char date[TEXT_BYTES] = "", time[TEXT_BYTES] = "", zone[TEXT_BYTES] = "";
    const int64_t value = column_integer(c, index);
    const int64_t units = c->per_second > 0 ? c->per_second : 1;
    int64_t seconds = floor_divide(value, units);
    const int64_t nanoseconds = (value - seconds * units) * (1000000000 / units);
    seconds += c->per_second > 0 ? 60 * (int64_t)c->zone_minutes : 0;
    const int64_t day = c->per_second > 0 ? floor_divide(seconds, SECONDS_A_DAY) : value;
    if (c->kind == COLUMN_TIME ? day != 0 : !print_date(day, date))
        return column_refuse_row(c, to->row, WW_OUT_OF_RANGE,
                                 c->kind == COLUMN_TIME ? "is not a time of day" : "is outside the years 1 to 9999");
    if (c->kind != COLUMN_DATE)
        print_time(seconds - day * SECONDS_A_DAY, nanoseconds, time);
    const int32_t minutes = abs(c->zone_minutes);
    if (c->has_zone)
        snprintf(zone, sizeof zone, "%c%02d:%02d", c->zone_minutes < 0 ? '-' : '+', (int)(minutes / 60), (int)(minutes % 60));
    const char *const parts[] = {date, c->kind == COLUMN_TIMESTAMP ? "T" : "", time, zone};
    ww_status status = WW_OK;
    for (size_t i = 0; status == WW_OK && i < sizeof parts / sizeof *parts; i++)
        status = text_build(to, parts[i], (int64_t)strlen(parts[i]));
    return status;
}
