/* Element functions of integers. All are computed in 64 bits and truncated to their type when stored, which gives the same low
 * bits: they wrap.
 *
 * Division by zero gives 0 and leaves the dividend as remainder, so x == x / y * y + rem(x, y) always holds. The functions for
 * floats are in f32.h and f64.h.
 */
#ifndef WW_ARITHMETIC_INTEGERS_H
#define WW_ARITHMETIC_INTEGERS_H

#include "arithmetic/canon.h"

CANON_FUNCTION int64_t add_i64(int64_t x, int64_t y)
{
    return (int64_t)((uint64_t)x + (uint64_t)y);
}

CANON_FUNCTION int64_t sub_i64(int64_t x, int64_t y)
{
    return (int64_t)((uint64_t)x - (uint64_t)y);
}

CANON_FUNCTION int64_t mul_i64(int64_t x, int64_t y)
{
    return (int64_t)((uint64_t)x * (uint64_t)y);
}

CANON_FUNCTION int64_t abs_i64(int64_t x)
{
    return x < 0 ? sub_i64(0, x) : x;
}

CANON_FUNCTION int64_t sign_i64(int64_t x)
{
    return (x > 0) - (x < 0);
}

CANON_FUNCTION int64_t div_i64(int64_t x, int64_t y)
{
    return y == 0 ? 0 : y == -1 ? sub_i64(0, x) : x / y;
}

CANON_FUNCTION int64_t rem_i64(int64_t x, int64_t y)
{
    return y == 0 ? x : y == -1 ? 0 : x % y;
}

/* A negative exponent gives the truncated reciprocal: nonzero only for 1 and -1. */
CANON_FUNCTION int64_t pow_i64(int64_t x, int64_t y)
{
    uint64_t power = 1;
    uint64_t base = (uint64_t)x;
    if (y < 0)
        return x == 1 || (x == -1 && (y & 1) == 0) ? 1 : x == -1 ? -1 : 0;
    for (uint64_t left = (uint64_t)y; left != 0; left >>= 1) {
        if (left & 1)
            power *= base;
        base *= base;
    }
    return (int64_t)power;
}

CANON_FUNCTION int64_t affine_i64(int64_t x, int64_t a, int64_t b)
{
    return add_i64(mul_i64(x, a), b);
}

#endif
