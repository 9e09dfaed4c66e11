/* The remainder of f32, with the sign of the dividend. Like sin and cos it has a near form (trig_f32.h). */
#ifndef WW_ARITHMETIC_MATH_REM_F32_H
#define WW_ARITHMETIC_MATH_REM_F32_H

#include "arithmetic/math/exp_log_f32.h"

/* The remainder of x / y truncated to an integer, as in C's fmod: it is exact and has the sign of x, even if it is 0. NaN for y
 * = 0 and for infinite x. */
#define MATH_REM_FAR_F32(x, y) (!(canon_abs_f32(x) < 0x1p22f * canon_abs_f32(y)))

/* |x| below 2^22 |y|. The truncated quotient is the integer or one more; x minus that multiple of y fits a float. */
MATH_FUNCTION float canon_rem_near_f32(float x, float y)
{
    const float x_size = canon_abs_f32(x);
    const float y_size = canon_abs_f32(y);
    const float whole = __builtin_truncf(x_size / y_size);
    const float rest = y_size == MATH_INF_F32 ? x_size : canon_fma_f32(-whole, y_size, x_size);
    return math_with_sign_f32(rest < 0.0f ? rest + y_size : rest, x);
}

/* Branches and loops, 40 bits of the quotient at a time. */
MATH_FUNCTION float canon_rem_f32(float x, float y)
{
    if (!MATH_REM_FAR_F32(x, y))
        return canon_rem_near_f32(x, y);
    if (!(canon_abs_f32(x) < MATH_INF_F32) || !(canon_abs_f32(y) > 0.0f))
        return MATH_NAN_F32;
    const uint32_t x_bits = canon_float_bits(x) & 0x7fffffffu;
    const uint32_t y_bits = canon_float_bits(y) & 0x7fffffffu;
    const uint32_t x_exponent = x_bits >> 23 ? x_bits >> 23 : 1;
    const uint32_t y_exponent = y_bits >> 23 ? y_bits >> 23 : 1;
    const uint32_t x_mantissa = (x_bits & 0x7fffffu) | (x_bits >> 23 ? 0x800000u : 0);
    const uint32_t y_mantissa = (y_bits & 0x7fffffu) | (y_bits >> 23 ? 0x800000u : 0);
    uint64_t rest = x_mantissa % y_mantissa;
    for (uint32_t left = x_exponent - y_exponent; left > 0;) {
        const uint32_t step = left < 40 ? left : 40;
        rest = (rest << step) % y_mantissa;
        left -= step;
    }
    return math_with_sign_f32(math_scale_f32((float)rest, (int32_t)y_exponent - 150), x);
}

#endif
