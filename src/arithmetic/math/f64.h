/* Element functions of f64, the same bits on every device (primitives.h says how).
 *
 * Their errors, measured on samples (docs/evidence/accuracy.md, made by bench/tensor/ulp.c), stay within two units in the last
 * place.
 */
#ifndef WW_ARITHMETIC_MATH_F64_H
#define WW_ARITHMETIC_MATH_F64_H

#include "arithmetic/math/erf_f64.h"
#include "arithmetic/math/exp_log_f64.h"
#include "arithmetic/math/pow_f64.h"
#include "arithmetic/math/rem_f64.h"
#include "arithmetic/math/trig_f64.h"

#endif
