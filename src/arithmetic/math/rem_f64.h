/* The remainder of f64, with the sign of the dividend; rem_f32.h explains the near form. */
#ifndef WW_ARITHMETIC_MATH_REM_F64_H
#define WW_ARITHMETIC_MATH_REM_F64_H

#include "arithmetic/math/exp_log_f64.h"

#define MATH_REM_FAR_F64(x, y) (!(canon_abs_f64(x) < 0x1p51 * canon_abs_f64(y)))

/* |x| below 2^51 |y|. */
MATH_FUNCTION double canon_rem_near_f64(double x, double y)
{
    const double x_size = canon_abs_f64(x);
    const double y_size = canon_abs_f64(y);
    const double whole = __builtin_trunc(x_size / y_size);
    const double rest = y_size == MATH_INF_F64 ? x_size : canon_fma_f64(-whole, y_size, x_size);
    return math_with_sign_f64(rest < 0.0 ? rest + y_size : rest, x);
}

/* Branches and loops, 11 bits of the quotient at a time. */
MATH_FUNCTION double canon_rem_f64(double x, double y)
{
    if (!MATH_REM_FAR_F64(x, y))
        return canon_rem_near_f64(x, y);
    if (!(canon_abs_f64(x) < MATH_INF_F64) || !(canon_abs_f64(y) > 0.0))
        return MATH_NAN_F64;
    const uint64_t x_bits = canon_double_bits(x) & 0x7fffffffffffffffu;
    const uint64_t y_bits = canon_double_bits(y) & 0x7fffffffffffffffu;
    const uint32_t x_exponent = x_bits >> 52 ? (uint32_t)(x_bits >> 52) : 1;
    const uint32_t y_exponent = y_bits >> 52 ? (uint32_t)(y_bits >> 52) : 1;
    const uint64_t x_mantissa = (x_bits & 0xfffffffffffffu) | (x_bits >> 52 ? 0x10000000000000u : 0);
    const uint64_t y_mantissa = (y_bits & 0xfffffffffffffu) | (y_bits >> 52 ? 0x10000000000000u : 0);
    uint64_t rest = x_mantissa % y_mantissa;
    for (uint32_t left = x_exponent - y_exponent; left > 0;) {
        const uint32_t step = left < 11 ? left : 11;
        rest = (rest << step) % y_mantissa;
        left -= step;
    }
    return math_with_sign_f64(math_scale_f64((double)rest, (int32_t)y_exponent - 1075), x);
}

#endif
