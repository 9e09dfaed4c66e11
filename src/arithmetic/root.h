/* CANON_SQRT: the correctly rounded square root of an f32. It is the compiler's own except on one target.
 *
 * Before version 18, clang (including the compiler of ROCm 5) compiles a square root for AMD to the chip's instruction, which
 * is sometimes off by one unit in the last place. There the roots of small numbers are scaled by 2^16, so the correction sees
 * all bits.
 */
#ifndef WW_ARITHMETIC_ROOT_H
#define WW_ARITHMETIC_ROOT_H

#include <stdint.h>

#include "arithmetic/function.h"

/* The correctly rounded root of x from `near`, which is that root or one of its two neighbours. x is 0, +infinity, NaN, or at
 * least 2^-96, so no product below loses bits. The root lies above the midpoint of near and its lower neighbour when near *
 * below < x: the product is the midpoint squared minus a quarter of a unit squared, and no float x lies between these. fma
 * gives the sign of the difference without rounding it away. */
CANON_FUNCTION float root_corrected(float x, float near)
{
    uint32_t bits;
    uint32_t bits_below;
    uint32_t bits_above;
    float below;
    float above;
    if (!(x > 0.0f) || x == __builtin_inff())
        return near; /* 0, infinity and NaN are their own roots */
    __builtin_memcpy(&bits, &near, sizeof bits);
    bits_below = bits - 1;
    bits_above = bits + 1;
    __builtin_memcpy(&below, &bits_below, sizeof below);
    __builtin_memcpy(&above, &bits_above, sizeof above);
    if (__builtin_fmaf(-below, near, x) <= 0.0f)
        return below;
    return __builtin_fmaf(-above, near, x) > 0.0f ? above : near;
}

#if defined(__AMDGCN__) && __clang_major__ < 18
CANON_FUNCTION float canon_sqrt_amd(float x)
{
    const int small = x < 0x1p-96f;
    const float scaled = small ? x * 0x1p32f : x;
    const float root = root_corrected(scaled, __builtin_amdgcn_sqrtf(scaled));
    return small ? root * 0x1p-16f : root;
}
#define CANON_SQRT canon_sqrt_amd
#else
#define CANON_SQRT __builtin_sqrtf
#endif

#endif
