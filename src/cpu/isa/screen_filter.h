/* The first test of a group's products, over the register that an instruction set's vec.h defines.
 *
 * Products of a group come with sixteen queries side by side. Most rows are far from any threshold, so the largest product of
 * sixteen rows is tested first, with bounds that hold for all of them: sixteen maxima and one test exclude 256 pairs. In that
 * test each term is at least the same term of every row, but for roundings relative to the row's own term where the two are
 * close, which the slack in the limits covers: so what it excludes, the test of the row itself may exclude.
 */
#ifndef WW_CPU_ISA_SCREEN_FILTER_H
#define WW_CPU_ISA_SCREEN_FILTER_H

#include "cpu/isa/isa.h"

#define SIEVE_INLINE static inline __attribute__((always_inline))
#define SIEVE_UNROLL _Pragma("GCC unroll 16")

enum {
    GROUP_VECS = GROUP / VEC_LANES,
    LANES_MASK = (1 << VEC_LANES) - 1,
};

/* Bit i: lane i is kept. Products times scale, and what the other terms say. */
SIEVE_INLINE uint32_t kept(vec products, vec scale, vec rest, vec h)
{
    return ~vec_greater(h, vec_fma(products, scale, rest)) & LANES_MASK;
}

/* The largest of a run's products times their scales, or more, for the queries of one register. Less than 0 counts as 0: times
 * the largest scale it would be too low. */
SIEVE_INLINE vec largest_of_run(const int32_t *products, const float scale_most[SCREEN_RUN / SCREEN_FOUR])
{
    vec largest = vec_zero();
    SIEVE_UNROLL for (int four = 0; four < SCREEN_RUN / SCREEN_FOUR; four++)
    {
        const int32_t *from = products + four * SCREEN_FOUR * GROUP;
        const ivec low = ivec_max(ivec_load(from), ivec_load(from + GROUP));
        const ivec high = ivec_max(ivec_load(from + 2 * GROUP), ivec_load(from + 3 * GROUP));
        largest = vec_max(largest, vec_mul(vec_of(ivec_max(low, high)), vec_set(scale_most[four])));
    }
    return largest;
}

/* Which of the queries of one register may keep a row of this run. g is not positive, so it goes with the least norm. `more` is
 * what else a row may have. */
SIEVE_INLINE uint32_t keep_run(vec largest, vec more, const screen_runs *runs, int32_t run, const screen_limits *limits, int at)
{
    vec rest = vec_fma(vec_load(limits->a + at), vec_set(runs->residual_most[run]), more);
    rest = vec_fma(vec_load(limits->b_above + at), vec_set(runs->norm_most[run]), rest);
    rest = vec_fma(vec_load(limits->b_below + at), vec_set(runs->norm_least[run]), rest);
    rest = vec_fma(vec_load(limits->g + at), vec_set(runs->square_least[run]), rest);
    return (~vec_greater(vec_load(limits->h + at), vec_add(largest, rest)) & LANES_MASK) << at;
}

SIEVE_INLINE uint16_t sieve_run(const int32_t *products, const screen_runs *runs, int32_t run, const screen_limits *limits)
{
    uint32_t queries = 0;
    SIEVE_UNROLL for (int at = 0; at < GROUP; at += VEC_LANES)
    {
        queries |= keep_run(largest_of_run(products + at, runs->scale_most[run]), vec_zero(), runs, run, limits, at);
    }
    return (uint16_t)queries;
}

#endif
