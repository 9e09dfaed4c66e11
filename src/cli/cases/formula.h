/* Numbers from a formula in i: + - * / % ( ), numbers, i, and functions: f32(x) rounds to f32, cos, sin, exp, sqrt, abs, floor,
 * and others of one number.
 */
#ifndef CLI_CASES_FORMULA_H
#define CLI_CASES_FORMULA_H

#include <stdbool.h>
#include <stdint.h>

/* The value for one i; false if the text is no formula. */
bool formula_value(const char *text, int64_t i, double *value);

#endif
