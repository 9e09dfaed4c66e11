/* The first test of a group's products, with the vectors that an instruction set's vec.h defines.
 *
 * The products of a row with the sixteen queries of a group are adjacent. Most rows are far from any threshold, so the largest
 * product of sixteen rows is tested first, with bounds that hold for all of them: sixteen maxima and one test exclude 256
 * pairs. In that test each term is at least the same term of every row, except for roundings, which are relative to the row's
 * own term if the two are close; the slack in the limits covers these. So the test never excludes a row that must be kept.
 */
#ifndef WW_CPU_ISA_SCREEN_FILTER_H
#define WW_CPU_ISA_SCREEN_FILTER_H

#include "cpu/isa/isa.h"

#define FILTER_INLINE static inline __attribute__((always_inline))
#define FILTER_UNROLL _Pragma("GCC unroll 16")

enum {
    GROUP_VECS = GROUP / VEC_LANES,
    LANES_MASK = (1 << VEC_LANES) - 1,
};

/* Bit i is set if lane i is kept. `rest` is the sum of the other terms. */
FILTER_INLINE uint32_t kept(vec products, vec scale, vec rest, vec h)
{
    return ~vec_greater(h, vec_fma(products, scale, rest)) & LANES_MASK;
}

/* An upper bound for a strip's products times their scales, for the queries of one register. Negative products count as 0,
 * because multiplied by the largest scale they would be too low. */
FILTER_INLINE vec largest_of_strip(const int32_t *products, const float scale_max[SCREEN_STRIP / SCREEN_FOUR])
{
    vec largest = vec_zero();
    FILTER_UNROLL for (int four = 0; four < SCREEN_STRIP / SCREEN_FOUR; four++)
    {
        const int32_t *from = products + four * SCREEN_FOUR * GROUP;
        const ivec low = ivec_max(ivec_load(from), ivec_load(from + GROUP));
        const ivec high = ivec_max(ivec_load(from + 2 * GROUP), ivec_load(from + 3 * GROUP));
        largest = vec_max(largest, vec_mul(vec_of(ivec_max(low, high)), vec_set(scale_max[four])));
    }
    return largest;
}

/* Returns the queries of one register that may keep a row of this strip. g is not positive, so it is multiplied by the smallest
 * norm. `more` is what the other codes can add. */
FILTER_INLINE uint32_t keep_strip(vec largest, vec more, const strip_bounds *bounds, int32_t strip, const screen_limits *limits,
                                  int at)
{
    vec rest = vec_fma(vec_load(limits->a + at), vec_set(bounds->residual_max[strip]), more);
    rest = vec_fma(vec_load(limits->b_above + at), vec_set(bounds->norm_max[strip]), rest);
    rest = vec_fma(vec_load(limits->b_below + at), vec_set(bounds->norm_min[strip]), rest);
    rest = vec_fma(vec_load(limits->g + at), vec_set(bounds->square_min[strip]), rest);
    return (~vec_greater(vec_load(limits->h + at), vec_add(largest, rest)) & LANES_MASK) << at;
}

FILTER_INLINE uint16_t filter_strip(const int32_t *products, const strip_bounds *bounds, int32_t strip,
                                    const screen_limits *limits)
{
    uint32_t queries = 0;
    FILTER_UNROLL for (int at = 0; at < GROUP; at += VEC_LANES)
    {
        queries |= keep_strip(largest_of_strip(products + at, bounds->scale_max[strip]), vec_zero(), bounds, strip, limits, at);
    }
    return (uint16_t)queries;
}

#endif
