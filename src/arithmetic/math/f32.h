/* Element functions of f32, the same bits on every device (primitives.h says how).
 *
 * Their errors are measured over all 2^32 inputs (docs/evidence/accuracy.md, made by bench/tensor/ulp.c): exp, log, sin,
 * cos, tanh, erf, sigmoid and sqrt stay within one unit in the last place.
 */
#ifndef WW_ARITHMETIC_MATH_F32_H
#define WW_ARITHMETIC_MATH_F32_H

#include "arithmetic/math/exp_log_f32.h"
#include "arithmetic/math/normal_f32.h"
#include "arithmetic/math/pow_f32.h"
#include "arithmetic/math/rem_f32.h"
#include "arithmetic/math/trig_f32.h"

#endif
