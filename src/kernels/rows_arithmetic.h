/* What softmax, norms and rotary embedding do to one element, in f32 and in f64: the same words for CPU code and kernels. */
#ifndef WW_KERNELS_ROWS_ARITHMETIC_H
#define WW_KERNELS_ROWS_ARITHMETIC_H

#include "kernels/math_f32.h"
#include "kernels/math_f64.h"

#define ROWS_ARITHMETIC(T, kind)                                                                                               \
    MATH_FUNCTION T row_square_##kind(T sum, T x, T center)                                                                    \
    {                                                                                                                          \
        const T t = x - center;                                                                                                \
        return canon_fma_##kind(t, t, sum);                                                                                    \
    }                                                                                                                          \
    MATH_FUNCTION T row_exponential_##kind(T x, T less)                                                                        \
    {                                                                                                                          \
        return canon_exp_##kind(x - less);                                                                                     \
    }                                                                                                                          \
    MATH_FUNCTION T row_affine_##kind(T x, T weight, T bias)                                                                   \
    {                                                                                                                          \
        return canon_fma_##kind(x, weight, bias);                                                                              \
    }                                                                                                                          \
    MATH_FUNCTION T row_turn_first_##kind(T a, T b, T cosine, T sine)                                                          \
    {                                                                                                                          \
        return canon_fma_##kind(a, cosine, -(b * sine));                                                                       \
    }                                                                                                                          \
    MATH_FUNCTION T row_turn_second_##kind(T a, T b, T cosine, T sine)                                                         \
    {                                                                                                                          \
        return canon_fma_##kind(a, sine, b * cosine);                                                                          \
    }

ROWS_ARITHMETIC(float, f32)
ROWS_ARITHMETIC(double, f64)
#undef ROWS_ARITHMETIC

#endif
