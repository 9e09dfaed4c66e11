/* Reads dates and times. Days are counted in years that start in March, so that the leap day is the last day of its year. */
#include "base/instant.h"

typedef struct reader {
    const char *at, *end;
} reader;

/* Reads exactly `digits` digits as a number from `min` to `max`. */
static bool number(reader *r, int digits, int64_t min, int64_t max, int64_t *out)
{
    *out = 0;
    for (int i = 0; i < digits; i++, r->at++) {
        if (r->at == r->end || *r->at < '0' || *r->at > '9')
            return false;
        *out = *out * 10 + (*r->at - '0');
    }
    return *out >= min && *out <= max;
}

static bool next_is(reader *r, char c)
{
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static int64_t days_in(int64_t year, int64_t month)
{
    static const int8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap ? 1 : 0);
}

static int64_t days_since_1970(int64_t year, int64_t month, int64_t day)
{
    const int64_t y = month > 2 ? year : year - 1; /* the year that started in March */
    const int64_t day_of_year =
        (153 * ((month + 9) % 12) + 2) / 5 + day - 1; /* the lengths of months, starting in March: 31, 30, 31, 30, 31, ... */
    return 365 * y + y / 4 - y / 100 + y / 400 + day_of_year - 719468; /* minus the days before 1970-01-01 */
}

/* Reads the fraction of a second. Up to six digits count; more are read and ignored. */
static bool fraction(reader *r, int64_t *microseconds)
{
    int64_t unit = 100000;
    const char *first = r->at;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++, unit /= 10)
        *microseconds += unit * (*r->at - '0');
    return r->at > first;
}

/* Reads "Z", "+02:00", " +0200" or nothing. */
static bool zone(reader *r, int64_t *minutes)
{
    int64_t hours = 0, rest = 0;
    *minutes = 0;
    if (r->at == r->end || next_is(r, 'Z') || next_is(r, 'z'))
        return true;
    next_is(r, ' ');
    const bool east = next_is(r, '+');
    if ((!east && !next_is(r, '-')) || !number(r, 2, 0, 23, &hours))
        return false;
    next_is(r, ':');
    if (!number(r, 2, 0, 59, &rest))
        return false;
    *minutes = east ? hours * 60 + rest : -(hours * 60 + rest);
    return true;
}

bool instant_read(const char *text, size_t length, int64_t *microseconds)
{
    reader r = {text, text + length};
    int64_t year, month, day, hour = 0, minute = 0, second = 0, fractions = 0, offset = 0;
    if (!number(&r, 4, 1, 9999, &year) || !next_is(&r, '-') || !number(&r, 2, 1, 12, &month) || !next_is(&r, '-') ||
        !number(&r, 2, 1, days_in(year, month), &day))
        return false;
    if (r.at < r.end) {
        if (!next_is(&r, 'T') && !next_is(&r, 't') && !next_is(&r, ' '))
            return false;
        if (!number(&r, 2, 0, 23, &hour) || !next_is(&r, ':') || !number(&r, 2, 0, 59, &minute))
            return false;
        if (next_is(&r, ':') && !number(&r, 2, 0, 60, &second)) /* a leap second becomes the first second of the next minute */
            return false;
        if (next_is(&r, '.') && !fraction(&r, &fractions))
            return false;
        if (!zone(&r, &offset))
            return false;
    }
    const int64_t minutes = (days_since_1970(year, month, day) * 24 + hour) * 60 + minute - offset;
    *microseconds = (minutes * 60 + second) * 1000000 + fractions;
    return r.at == r.end;
}
