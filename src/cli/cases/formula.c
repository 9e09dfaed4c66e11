/* Formulas by recursive descent: a sum of products of factors. */
#include "cli/cases/formula.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 100 };

typedef struct reader {
    const char *at;
    double i;
    int depth;
    bool bad;
} reader;

static double read_sum(reader *r);

static char peek(reader *r)
{
    while (isspace((unsigned char)*r->at))
        r->at++;
    return *r->at;
}

static double to_f32(double x)
{
    return (double)(float)x;
}

static const struct {
    const char *name;
    double (*function)(double);
} functions[] = {{"f32", to_f32},  {"float", to_f32}, {"sin", sin},    {"cos", cos},  {"tan", tan},
                 {"exp", exp},     {"log", log},      {"sqrt", sqrt},  {"abs", fabs}, {"tanh", tanh},
                 {"floor", floor}, {"ceil", ceil},    {"round", round}};

static double read_name(reader *r)
{
    const char *begin = r->at;
    while (isalnum((unsigned char)*r->at) || *r->at == '_')
        r->at++;
    const size_t length = (size_t)(r->at - begin);
    if (length == 1 && *begin == 'i')
        return r->i;
    if (length == 2 && strncmp(begin, "pi", 2) == 0)
        return 3.14159265358979323846;
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++)
        if (strlen(functions[f].name) == length && strncmp(functions[f].name, begin, length) == 0 && peek(r) == '(') {
            r->at++;
            const double x = read_sum(r);
            r->bad |= peek(r) != ')';
            r->at += r->bad ? 0 : 1;
            return functions[f].function(x);
        }
    r->bad = true;
    return 0.0;
}

static double read_factor(reader *r)
{
    const char next = peek(r);
    if (r->bad || ++r->depth > DEPTH_MAX) {
        r->bad = true;
        return 0.0;
    }
    double value = 0.0;
    if (next == '-' || next == '+') {
        r->at++;
        value = read_factor(r);
        value = next == '-' ? -value : value;
    } else if (next == '(') {
        r->at++;
        value = read_sum(r);
        r->bad |= peek(r) != ')';
        r->at += r->bad ? 0 : 1;
    } else if (isdigit((unsigned char)next) || next == '.') {
        char *end;
        value = strtod(r->at, &end);
        r->at = end;
    } else {
        value = read_name(r);
    }
    r->depth--;
    return value;
}

static double read_product(reader *r)
{
    double value = read_factor(r);
    for (char next = peek(r); !r->bad && (next == '*' || next == '/' || next == '%'); next = peek(r)) {
        r->at++;
        const bool power = next == '*' && *r->at == '*';
        r->at += power ? 1 : 0;
        const double right = read_factor(r);
        value = power ? pow(value, right) : next == '*' ? value * right : next == '/' ? value / right : fmod(value, right);
    }
    return value;
}

static double read_sum(reader *r)
{
    double value = read_product(r);
    for (char next = peek(r); !r->bad && (next == '+' || next == '-'); next = peek(r)) {
        r->at++;
        const double right = read_product(r);
        value = next == '+' ? value + right : value - right;
    }
    return value;
}

bool formula_value(const char *text, int64_t i, double *value)
{
    reader r = {.at = text, .i = (double)i};
    *value = read_sum(&r);
    return !r.bad && peek(&r) == '\0';
}
