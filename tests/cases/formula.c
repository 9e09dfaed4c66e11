/* Evaluates formulas by recursive descent: a sum of products of factors.
 *
 * Numbers are f64 until f32() makes one an f32; a computation with an f32 gives an f32, rounded at each step.
 */
#include "cases/formula.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 100 };

typedef struct reader {
    const char *begin, *at;
    double i;
    int depth;
    bool bad;
} reader;

typedef struct value {
    double number;
    bool is_f32;
} value;

static value read_sum(reader *r);

static value value_of(double number, bool is_f32)
{
    return (value){.number = is_f32 ? (double)(float)number : number, .is_f32 = is_f32};
}

static char peek(reader *r)
{
    while (isspace((unsigned char)*r->at))
        r->at++;
    return *r->at;
}

static const struct {
    const char *name;
    double (*function)(double);
} functions[] = {{"sin", sin},  {"cos", cos},   {"tan", tan},     {"exp", exp},   {"log", log},     {"sqrt", sqrt},
                 {"abs", fabs}, {"tanh", tanh}, {"floor", floor}, {"ceil", ceil}, {"round", round}, {"trunc", trunc}};

static const struct {
    const char *name;
    double (*function)(double, double);
} pairs[] = {{"pow", pow}, {"min", fmin}, {"max", fmax}, {"fmod", fmod}, {"atan2", atan2}};

static bool is_called(const char *name, const char *begin, size_t length)
{
    return strlen(name) == length && strncmp(name, begin, length) == 0;
}

static value read_brackets(reader *r)
{
    r->at++;
    const value inside = read_sum(r);
    r->bad |= peek(r) != ')';
    r->at += r->bad ? 0 : 1;
    return inside;
}

/* (x, y) of a function of two. */
static value read_pair(reader *r, double (*function)(double, double))
{
    r->at++;
    const value x = read_sum(r);
    r->bad |= peek(r) != ',';
    r->at += r->bad ? 0 : 1;
    const value y = read_sum(r);
    r->bad |= peek(r) != ')';
    r->at += r->bad ? 0 : 1;
    return value_of(function(x.number, y.number), x.is_f32 || y.is_f32);
}

static value read_name(reader *r)
{
    const char *begin = r->at;
    while (isalnum((unsigned char)*r->at) || *r->at == '_')
        r->at++;
    const size_t length = (size_t)(r->at - begin);
    if (is_called("i", begin, length))
        return value_of(r->i, false);
    if (is_called("pi", begin, length))
        return value_of(3.14159265358979323846, false);
    if (peek(r) != '(') {
        r->bad = true;
        return value_of(0.0, false);
    }
    for (size_t f = 0; f < sizeof pairs / sizeof *pairs; f++)
        if (is_called(pairs[f].name, begin, length))
            return read_pair(r, pairs[f].function);
    const value x = read_brackets(r);
    if (is_called("f32", begin, length) || is_called("float", begin, length) || is_called("float32", begin, length))
        return value_of(x.number, true);
    if (is_called("f64", begin, length) || is_called("float64", begin, length) || is_called("int", begin, length))
        return value_of(*begin == 'i' ? trunc(x.number) : x.number, false);
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++)
        if (is_called(functions[f].name, begin, length))
            return value_of(functions[f].function(x.number), x.is_f32);
    r->bad = true;
    return x;
}

static value read_factor(reader *r);

/* Reads a number, a name or brackets, and an exponent, which binds more tightly than a sign before it. */
static value read_power(reader *r)
{
    const char next = peek(r);
    value base = {0};
    if (next == '(') {
        base = read_brackets(r);
    } else if (isdigit((unsigned char)next) || next == '.') {
        char *end;
        base = value_of(strtod(r->at, &end), false);
        r->at = end;
    } else {
        base = read_name(r);
    }
    const bool caret = peek(r) == '^';
    if (r->bad || (!caret && (*r->at != '*' || r->at[1] != '*')))
        return base;
    r->at += caret ? 1 : 2;
    const value exponent = read_factor(r);
    return value_of(pow(base.number, exponent.number), base.is_f32 || exponent.is_f32);
}

static value read_factor(reader *r)
{
    const char next = peek(r);
    value x = {0};
    if (r->bad || ++r->depth > DEPTH_MAX) {
        r->bad = true;
        return x;
    }
    if (next == '-' || next == '+') {
        r->at++;
        x = read_factor(r);
        x.number = next == '-' ? -x.number : x.number;
    } else {
        x = read_power(r);
    }
    r->depth--;
    return x;
}

/* The remainder has the sign of the divisor, as in the language of these formulas; // divides and rounds down. */
static double floored_rest(double x, double y)
{
    const double rest = fmod(x, y);
    return rest != 0.0 && (rest < 0.0) != (y < 0.0) ? rest + y : rest;
}

/* Returns true at an operator of a product, or at a factor that follows without one: 2cos(i). */
static bool follows_in_product(const reader *r, char next)
{
    const bool after_number = r->at > r->begin && isdigit((unsigned char)r->at[-1]);
    return next == '*' || next == '/' || next == '%' || (after_number && isalpha((unsigned char)next));
}

static value read_product(reader *r)
{
    value x = read_factor(r);
    for (char next = peek(r); !r->bad && follows_in_product(r, next); next = peek(r)) {
        const bool beside = next != '*' && next != '/' && next != '%';
        next = beside ? '*' : next;
        r->at += beside ? 0 : 1;
        const bool whole = next == '/' && *r->at == '/';
        r->at += whole ? 1 : 0;
        const value y = read_factor(r);
        const double result = next == '*'   ? x.number * y.number
                              : next == '%' ? floored_rest(x.number, y.number)
                              : whole       ? floor(x.number / y.number)
                                            : x.number / y.number;
        x = value_of(result, x.is_f32 || y.is_f32);
    }
    return x;
}

static value read_sum(reader *r)
{
    value x = read_product(r);
    for (char next = peek(r); !r->bad && (next == '+' || next == '-'); next = peek(r)) {
        r->at++;
        const value y = read_product(r);
        x = value_of(next == '+' ? x.number + y.number : x.number - y.number, x.is_f32 || y.is_f32);
    }
    return x;
}

bool formula_value(const char *text, int64_t i, double *result)
{
    reader r = {.begin = text, .at = text, .i = (double)i};
    *result = read_sum(&r).number;
    return !r.bad && peek(&r) == '\0';
}
