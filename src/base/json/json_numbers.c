/* Lists of numbers in JSON text to f32, in one pass: vectors are most of what a server reads. */
#include <string.h>

#include "base/json/decimal.h"
#include "base/json/json_value.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Are all eight bytes digits? Bytes from '0' to '9' have the high half 3, with and without 6 added. */
static bool are_digits(uint64_t bytes)
{
    return ((bytes & UINT64_C(0xf0f0f0f0f0f0f0f0)) |
            ((bytes + UINT64_C(0x0606060606060606)) & UINT64_C(0xf0f0f0f0f0f0f0f0)) >> 4) == UINT64_C(0x3333333333333333);
}

/* The number that eight digits are, the first one in the lowest byte: pairs of digits, pairs of pairs, and both halves are
 * added by one multiplication each. */
static uint64_t eight_digits(uint64_t bytes)
{
    bytes = (bytes & UINT64_C(0x0f0f0f0f0f0f0f0f)) * (10 * 256 + 1) >> 8;
    bytes = (bytes & UINT64_C(0x00ff00ff00ff00ff)) * (UINT64_C(100) * 65536 + 1) >> 16;
    return (bytes & UINT64_C(0x0000ffff0000ffff)) * (UINT64_C(10000) * (UINT64_C(1) << 32) + 1) >> 32;
}

typedef struct digit_run {
    uint64_t digits;
    int64_t significant, dropped;
} digit_run;

/* Reads digits, which are significant after the first that is not 0. Those after the nineteenth are dropped. `end` is behind
 * the list. */
static const char *read_run(const char *at, const char *end, digit_run *run)
{
    uint64_t bytes;
    while (run->significant == 0 && *at == '0')
        at++;
    while (run->significant + 8 <= DECIMAL_DIGITS_MAX && end - at >= 8 && (memcpy(&bytes, at, 8), are_digits(bytes))) {
        run->digits = run->digits * 100000000 + eight_digits(bytes);
        run->significant += 8;
        at += 8;
    }
    for (; is_digit(*at); at++) {
        if (run->significant == DECIMAL_DIGITS_MAX) {
            run->dropped++;
            continue;
        }
        run->digits = run->digits * 10 + (uint64_t)(*at - '0');
        run->significant++;
    }
    return at;
}

/* Reads the number at `at`, and returns the first byte after it. */
static const char *read_number(const char *at, const char *end, float *value)
{
    enum { EXPONENT_MAX = 1000000 };
    const char *first = at;
    decimal d = {.negative = *at == '-', .exponent_known = true};
    digit_run run = {0};
    at = read_run(at + d.negative, end, &run);
    d.exponent = run.dropped;
    if (*at == '.') {
        const char *point = at++;
        run.dropped = 0;
        at = read_run(at, end, &run);
        d.exponent -= at - point - 1 - run.dropped;
    }
    if (*at == 'e' || *at == 'E') {
        int64_t exponent = 0;
        const bool negative = *++at == '-';
        at += *at == '-' || *at == '+';
        for (; is_digit(*at); at++) {
            exponent = exponent * 10 + (*at - '0');
            if (exponent > EXPONENT_MAX)
                d.exponent_known = false, exponent = 0;
        }
        d.exponent += negative ? -exponent : exponent;
    }
    d.digits = run.digits;
    if (!decimal_to_f32(&d, value))
        *value = json_real_f32(first);
    return at;
}

int64_t json_numbers_count(const char *list)
{
    const char *end = *list == '[' ? json_numbers_end(list) : NULL;
    int64_t count = end ? 1 : -1;
    for (const char *at = list; end && at < end; at++)
        count += *at == ',';
    return count;
}

bool json_numbers_read(const char *list, float *values)
{
    const char *end = json_numbers_end(list), *at = list;
    do {
        at++;
        while (is_space(*at))
            at++;
        if (*at != '-' && !is_digit(*at))
            return false;
        at = read_number(at, end, values++);
        while (is_space(*at))
            at++;
    } while (*at == ',');
    return true;
}
