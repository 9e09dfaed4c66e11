/* Canonical arithmetic: the definition of every score, shared by all backends.
 *
 *   dot(a,b)  Both are padded with +0 to a multiple of 64. 64 accumulators start at +0; element i goes to accumulator i mod 64
 *             by one fused multiply-add, in increasing i. Then acc[j] += acc[j+s] for j < s, for s = 32,16,8,4,2,1. The
 *             result is acc[0].
 *   l2(a,b)   The same with t = a[i]-b[i] and acc = fma(t,t,acc), then the correctly rounded square root.
 *   cosine    dot(a,b) / (sqrt(dot(a,a)) * sqrt(dot(b,b))), each step rounded once; 0 if a norm is 0.
 *
 * The padding is part of the definition: fma(0,0,-0) is +0, so it turns an accumulator that underflowed to -0 into +0. No
 * product of two norms underflows to 0: the smallest non-zero sum of squares is 2^-149, whose root squared is 2^-149 again. No
 * such product overflows: roots of finite sums stay below 2^64. So a cosine is never 0/0.
 *
 * A score is the value above plus +0, so -0 never appears and equal scores have equal bits. This file is compiled for the host
 * and for devices, so it uses only what C and the device dialects share.
 */
#ifndef WW_ARITHMETIC_CANON_H
#define WW_ARITHMETIC_CANON_H

#include <stdint.h>

#include "arithmetic/function.h"
#include "arithmetic/root.h"

#define CANON_LANES 64

/* Metric numbers, the same as ww_metric (a static assertion in vectors/ checks this). */
#define CANON_COSINE 0
#define CANON_L2     1
#define CANON_DOT    2

/* The number of floats in a stored row: dim rounded up to a multiple of 64. */
CANON_FUNCTION int32_t canon_padded(int32_t dim)
{
    return (dim + CANON_LANES - 1) / CANON_LANES * CANON_LANES;
}

/* `sum` is dot(query,row), or for l2 the sum of squared differences; the norms are sqrt(dot(x,x)) and only cosine uses them. */
CANON_FUNCTION float canon_score(int32_t metric, float sum, float query_norm, float row_norm)
{
    if (metric == CANON_L2)
        return CANON_SQRT(sum);
    if (metric == CANON_DOT)
        return sum + 0.0f;
    const float norms = query_norm * row_norm;
    return norms == 0.0f ? 0.0f : sum / norms + 0.0f;
}

CANON_FUNCTION uint32_t canon_float_bits(float value)
{
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

CANON_FUNCTION float canon_bits_float(uint32_t bits)
{
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

/* The order of results in one integer: a smaller key is a better result; equal scores are ordered by row. No two rows share a
 * key, so the k smallest keys are the same set in any order of search. This makes top-k parallel. */
typedef uint64_t canon_key;

#define CANON_KEY_WORST UINT64_MAX /* worse than the key of every row: row numbers are below 2^32-1 */

CANON_FUNCTION canon_key canon_make_key(int32_t metric, float score, uint32_t row)
{
    const uint32_t bits = canon_float_bits(score);
    const uint32_t ascending = bits ^ ((bits >> 31) ? 0xffffffffu : 0x80000000u);
    return ((canon_key)(metric == CANON_L2 ? ascending : ~ascending) << 32) | row;
}

CANON_FUNCTION uint32_t canon_key_row(canon_key key)
{
    return (uint32_t)key;
}

CANON_FUNCTION float canon_key_score(int32_t metric, canon_key key)
{
    const uint32_t high = (uint32_t)(key >> 32);
    const uint32_t ascending = metric == CANON_L2 ? high : ~high;
    return canon_bits_float(ascending ^ ((ascending >> 31) ? 0x80000000u : 0xffffffffu));
}

#endif
