/* The element functions that need no approximation, in the kinds that operations compute in: _f32, _f64, _i64.
 *
 * Integers wrap; they are computed in 64 bits and cut to their type when stored, which gives the same low bits. A division of
 * theirs by zero gives 0, its remainder the dividend, so that x == x / y * y + rem(x, y) always holds.
 * The approximated functions are in math_f32.h and math_f64.h.
 */
#ifndef WW_KERNELS_ARITHMETIC_H
#define WW_KERNELS_ARITHMETIC_H

#include "kernels/canon.h"

CANON_FUNCTION uint64_t canon_double_bits(double value)
{
    uint64_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

CANON_FUNCTION double canon_bits_double(uint64_t bits)
{
    double value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

CANON_FUNCTION float sqrt_of_f32(float x)
{
    return CANON_SQRT(x);
}

CANON_FUNCTION double sqrt_of_f64(double x)
{
    return __builtin_sqrt(x);
}

/* Both kinds of floats at once: T is the type, SUFFIX its name, B the compiler's builtins' last letter. */
#define FLOAT_FUNCTIONS(T, SUFFIX, B)                                                                                          \
    CANON_FUNCTION T abs_##SUFFIX(T x)                                                                                         \
    {                                                                                                                          \
        return __builtin_fabs##B(x);                                                                                           \
    }                                                                                                                          \
    CANON_FUNCTION T floor_##SUFFIX(T x)                                                                                       \
    {                                                                                                                          \
        return __builtin_floor##B(x);                                                                                          \
    }                                                                                                                          \
    CANON_FUNCTION T ceil_##SUFFIX(T x)                                                                                        \
    {                                                                                                                          \
        return __builtin_ceil##B(x);                                                                                           \
    }                                                                                                                          \
    /* Halves go away from zero; what has no fraction, as infinity, is what it was. */                                         \
    CANON_FUNCTION T round_##SUFFIX(T x)                                                                                       \
    {                                                                                                                          \
        const T whole = __builtin_trunc##B(x);                                                                                 \
        return __builtin_fabs##B(x - whole) >= (T)0.5 ? whole + __builtin_copysign##B((T)1, x) : whole;                        \
    }                                                                                                                          \
    CANON_FUNCTION T sign_##SUFFIX(T x)                                                                                        \
    {                                                                                                                          \
        return x > 0 ? (T)1 : x < 0 ? -(T)1 : x + (T)0; /* keeps NaN; -0 becomes +0 */                                         \
    }                                                                                                                          \
    CANON_FUNCTION T relu_##SUFFIX(T x)                                                                                        \
    {                                                                                                                          \
        return x <= 0 ? (T)0 : x; /* keeps NaN; -0 becomes +0 */                                                               \
    }                                                                                                                          \
    /* NaN if either is; +0 is larger than -0. */                                                                              \
    CANON_FUNCTION T maximum_##SUFFIX(T x, T y)                                                                                \
    {                                                                                                                          \
        const T most = x > y ? x : y > x ? y : x + y; /* of equals only zeros differ */                                        \
        return x == y && x != 0 ? x : most;                                                                                    \
    }                                                                                                                          \
    CANON_FUNCTION T minimum_##SUFFIX(T x, T y)                                                                                \
    {                                                                                                                          \
        const T least = x < y ? x : y < x ? y : -(-x - y);                                                                     \
        return x == y && x != 0 ? x : least;                                                                                   \
    }                                                                                                                          \
    CANON_FUNCTION T affine_##SUFFIX(T x, T a, T b)                                                                            \
    {                                                                                                                          \
        return __builtin_fma##B(x, a, b);                                                                                      \
    }

FLOAT_FUNCTIONS(float, f32, f)
FLOAT_FUNCTIONS(double, f64, )
#undef FLOAT_FUNCTIONS

/* x less the largest multiple of y towards zero: exact, by long division of the fractions, a bit at a time. T is an unsigned
 * integer of the float's size; F bits of fraction. */
#define FLOAT_REMAINDER(SUFFIX, FLOAT, T, F, TO_BITS, FROM_BITS)                                                               \
    CANON_FUNCTION FLOAT rem_##SUFFIX(FLOAT x, FLOAT y)                                                                        \
    {                                                                                                                          \
        const T sign_bit = (T)1 << (sizeof(T) * 8 - 1);                                                                        \
        const T one = (T)1 << F;                                                                                               \
        const T sign = TO_BITS(x) & sign_bit;                                                                                  \
        const T above = TO_BITS(x) & ~sign_bit;                                                                                \
        const T below = TO_BITS(y) & ~sign_bit;                                                                                \
        const T infinity = sign_bit - one;                                                                                     \
        if (below == 0 || above >= infinity || below > infinity)                                                               \
            return x * y / (x * y); /* NaN */                                                                                  \
        if (above < below)                                                                                                     \
            return x;                                                                                                          \
        int32_t exponent = (int32_t)(above >> F);                                                                              \
        int32_t bottom = (int32_t)(below >> F);                                                                                \
        T rest = exponent == 0 ? above : (above & (one - 1)) | one;                                                            \
        T part = bottom == 0 ? below : (below & (one - 1)) | one;                                                              \
        for (exponent = exponent == 0 ? 1 : exponent; rest < one; exponent--) /* denormals, brought to the form 1.f */         \
            rest <<= 1;                                                                                                        \
        for (bottom = bottom == 0 ? 1 : bottom; part < one; bottom--)                                                          \
            part <<= 1;                                                                                                        \
        for (; exponent > bottom; exponent--) {                                                                                \
            rest = rest >= part ? rest - part : rest;                                                                          \
            rest <<= 1;                                                                                                        \
        }                                                                                                                      \
        rest = rest >= part ? rest - part : rest;                                                                              \
        for (; rest != 0 && rest < one; exponent--)                                                                            \
            rest <<= 1;                                                                                                        \
        if (exponent < 1) /* a denormal again: a multiple of the smallest one, so that no bit is lost */                       \
            rest >>= 1 - exponent;                                                                                             \
        const T exponent_bits = exponent >= 1 && rest != 0 ? (T)exponent << F : 0;                                             \
        return FROM_BITS(sign | exponent_bits | (rest & (one - 1)));                                                           \
    }

FLOAT_REMAINDER(f32, float, uint32_t, 23, canon_float_bits, canon_bits_float)
FLOAT_REMAINDER(f64, double, uint64_t, 52, canon_double_bits, canon_bits_double)
#undef FLOAT_REMAINDER

/* ---- integers ------------------------------------------------------------------------------------------------------------ */

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

/* A negative exponent gives the reciprocal cut to an integer: 1 and -1 have one, all else is 0. */
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
