/* Numbers from a formula in i: + - * / // % ** ( ), numbers, i, pi, and functions of one number: f32(x), sin, cos, exp, sqrt,
 * abs, floor and others.
 */
#ifndef TESTS_CASES_FORMULA_H
#define TESTS_CASES_FORMULA_H

#include <stdbool.h>
#include <stdint.h>

/* The value for one i; false if the text is not a formula. */
bool formula_value(const char *text, int64_t i, double *result);

#endif
