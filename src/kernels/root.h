/* The correctly rounded square root from one that may be off by a unit in the last place: for compilers that give the chip's
 * own.
 *
 * `near` is the root of x or one of its two neighbours among floats; x is 0, +infinity, NaN, or at least 2^-96, so that no
 * product below loses bits. The root lies above the midpoint of near and its lower neighbour when near * below < x: the product
 * is the midpoint squared less a quarter of a unit squared, and no float x lies in between. fma gives the sign of the
 * difference without rounding it away.
 */
#ifndef WW_KERNELS_ROOT_H
#define WW_KERNELS_ROOT_H

#include <stdint.h>

#ifndef ROOT_FUNCTION
#define ROOT_FUNCTION static inline
#endif

ROOT_FUNCTION float root_corrected(float x, float near)
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

#endif
