/* Floats to K blocks: finds scales and minima that make the squared error small. It finds the best line for each sub-block in
 * closed form and derives the block's two factors from the largest. Then each sub-block chooses among the few lines that the
 * factors allow.
 *
 * Given codes q for the elements x of a sub-block, least squares gives the best line. With the sums of q, q^2, x q and x, the
 * line and its error take two divisions. So a search costs one pass over the elements per candidate line, and there are few.
 *
 * The code uses the type `lanes`: one sub-block per lane of a CPU register, or one sub-block per thread on a GPU.
 * LANES_REGISTERS of them together hold all sub-blocks of a block. The including file defines the type, as cpu/quant/lanes16.h
 * and quant_encode_lanes.h do, with lanes_all, lanes_select, lanes_min, lanes_max, lanes_fma, lanes_f16, and lanes_block_max
 * and lanes_block_sum over the sub-blocks of a block. Sums run over increasing positions in the sub-block, then over the
 * sub-blocks as a tree.
 */
#ifndef WW_ARITHMETIC_BLOCKS_ENCODE_K_H
#define WW_ARITHMETIC_BLOCKS_ENCODE_K_H

#include "arithmetic/blocks/blocks.h"

#ifndef SEARCH_FUNCTION
#define SEARCH_FUNCTION CANON_FUNCTION
#define SEARCH_LOOP     CANON_FUNCTION /* functions that are long enough to call where calls are cheap */
#endif

/* Sub-blocks with a smaller span count as constant, because later steps divide by the span. */
#define SEARCH_SPAN_MIN 0x1p-100f

/* The bits of 2^40. No f16 factors reach that far, and no sum overflows below it. Blocks with larger elements are refused. */
#define SEARCH_TOO_LARGE 0x53800000

/* The limits and search parameters of a block format. */
typedef struct search_limits {
    int32_t length, sub_blocks; /* elements per sub-block; sub-blocks per block */
    float lowest, highest;      /* codes: 0..highest with minima, -highest-1..highest without */
    float levels;               /* the largest scale, and the largest min */
    int32_t candidates;         /* lines tried per sub-block */
    float first, step;          /* their distance from the line that spans the sub-block, in codes */
    int32_t rounds;             /* rounds of fitting again to the codes of the last fit */
    int32_t attempts;           /* factors tried per block */
    float scale_room;           /* each attempt leaves this many more levels free above the largest scale */
    int32_t refits;             /* times the factors are fitted to the codes */
} search_limits;

/* The result for a sub-block: its integer scale and min, and the block's factors. The error is that of the block, minus the
 * error of all zeros. It is +infinity if nothing was found, because elements are too large or not finite. */
typedef struct search_found {
    lanes scale[LANES_REGISTERS], min[LANES_REGISTERS], d[LANES_REGISTERS], dmin[LANES_REGISTERS], error[LANES_REGISTERS];
} search_found;

#define EACH_REGISTER for (int32_t p = 0; p < LANES_REGISTERS; p++)

typedef struct search_sums {
    lanes q, qq, xq;
} search_sums;

SEARCH_FUNCTION lanes search_clamp(lanes x, float lowest, float highest)
{
    return lanes_max(lanes_min(x, lanes_all(highest)), lanes_all(lowest));
}

/* To the nearest integer, ties to even, for numbers below 2^22. */
SEARCH_FUNCTION lanes search_round(lanes x)
{
    return (x + lanes_all(0x1.8p23f)) - lanes_all(0x1.8p23f);
}

/* The code of one element, and the sums over a sub-block for a fit. Most of the time is spent here. */
SEARCH_FUNCTION lanes search_code(lanes x, lanes min, lanes inverse, float lowest, float highest)
{
    return search_round(search_clamp((x + min) * inverse, lowest, highest));
}

SEARCH_LOOP search_sums search_sum(const lanes *x, const search_limits *limits, lanes low, lanes min, lanes inverse)
{
    search_sums sums;
    sums.q = sums.qq = sums.xq = lanes_all(0.0f);
    for (int32_t l = 0; l < limits->length; l++) {
        const lanes q = search_code(x[l], min, inverse, limits->lowest, limits->highest);
        sums.q = sums.q + q;
        sums.qq = lanes_fma(q, q, sums.qq); /* exact, as q * q is */
        sums.xq = sums.xq + (x[l] - low) * q;
    }
    return sums;
}

/* The same for lines through zero, which have no min and need no sum of the codes. */
SEARCH_LOOP search_sums search_sum_zero(const lanes *x, const search_limits *limits, lanes inverse)
{
    search_sums sums;
    sums.q = sums.qq = sums.xq = lanes_all(0.0f);
    for (int32_t l = 0; l < limits->length; l++) {
        const lanes q = search_round(search_clamp(x[l] * inverse, limits->lowest, limits->highest));
        sums.qq = lanes_fma(q, q, sums.qq); /* exact, as q * q is */
        sums.xq = sums.xq + x[l] * q;
    }
    return sums;
}

/* 1 / x, or 0 if x is 0. */
SEARCH_FUNCTION lanes search_inverse(lanes x)
{
    const lanes zero = lanes_all(0.0f);
    return lanes_select(x == zero, zero, lanes_all(1.0f) / lanes_select(x == zero, lanes_all(1.0f), x));
}

/* The squared error of a line, minus the error of all zeros, from the sums of the codes. n is 0 for a line through zero. */
SEARCH_FUNCTION lanes search_error(const search_sums *sums, lanes total, float n, lanes scale, lanes min)
{
    const lanes two = lanes_all(2.0f);
    return scale * (scale * sums->qq - two * sums->xq) + min * (two * (total - scale * sums->q) + lanes_all(n) * min);
}

/* ---- lines with a minimum: x = scale q - min, min >= 0 ----------------------------------------------------------------------
 * Sums use x - low, so a sub-block far from zero loses no bits: the line is then scale q - (min + low). */

typedef struct search_line {
    lanes scale, min, gain; /* gain: how much smaller the squared error is than that of all zeros */
} search_line;

typedef struct search_sub_block {
    lanes low, total; /* the smaller of 0 and the smallest element; the sum of all x - low */
} search_sub_block;

/* Fits a line to the codes that (min, inverse) give, and stores it in `best` if it is better. If all codes are equal, the fit
 * is 0 / 0, and a NaN is never better. */
SEARCH_FUNCTION void search_fit(const lanes *x, const search_limits *limits, const search_sub_block *sub, lanes min,
                                lanes inverse, search_line *best)
{
    const search_sums sums = search_sum(x, limits, sub->low, min, inverse);
    const lanes zero = lanes_all(0.0f), n = lanes_all((float)limits->length);
    const lanes scale = (n * sums.xq - sub->total * sums.q) / (n * sums.qq - sums.q * sums.q);
    const lanes fitted = lanes_max((scale * sums.q - sub->total) / n - sub->low, zero);
    /* If the min is limited to 0, the scale is fitted again for that min. */
    const lanes offset = fitted + sub->low;
    const lanes refitted = (sums.xq + offset * sums.q) / sums.qq;
    const lanes gain = zero - search_error(&sums, sub->total, (float)limits->length, refitted, offset);
    best->scale = lanes_select(gain > best->gain, refitted, best->scale);
    best->min = lanes_select(gain > best->gain, fitted, best->min);
    best->gain = lanes_select(gain > best->gain, gain, best->gain);
}

SEARCH_FUNCTION search_line search_best_line(const lanes *x, const search_limits *limits, search_sub_block *sub)
{
    const lanes zero = lanes_all(0.0f), one = lanes_all(1.0f), small = lanes_all(SEARCH_SPAN_MIN);
    lanes low = zero, high = x[0];
    for (int32_t l = 0; l < limits->length; l++) {
        low = lanes_min(low, x[l]);
        high = lanes_max(high, x[l]);
    }
    sub->low = low;
    sub->total = zero;
    for (int32_t l = 0; l < limits->length; l++)
        sub->total = sub->total + (x[l] - low);
    const lanes span = high - low;
    const lanes inverse = lanes_select(span < small, zero, one / lanes_select(span < small, one, span));
    search_line best;
    best.scale = zero;
    best.min = zero - low;
    best.gain = lanes_all(-__builtin_inff());
    for (int32_t c = 0; c < limits->candidates; c++) {
        const float codes = limits->highest + (limits->first + limits->step * (float)c);
        search_fit(x, limits, sub, zero - low, inverse * lanes_all(codes), &best);
    }
    for (int32_t round = 0; round < limits->rounds; round++)
        search_fit(x, limits, sub, best.min, search_inverse(best.scale), &best);
    return best;
}

/* Chooses, for the sub-blocks of part p, the scale among its neighbours and the min that leave the smallest error. Returns that
 * error. */
SEARCH_FUNCTION lanes search_settle(const lanes *x, const search_limits *limits, const search_sub_block *sub,
                                    search_found *found, int32_t p)
{
    const lanes start = found->scale[p], d = found->d[p], dmin = found->dmin[p], start_min = found->min[p] * dmin;
    const lanes n = lanes_all((float)limits->length), inverse_min = search_inverse(n * dmin);
    lanes smallest = lanes_all(__builtin_inff());
    for (int32_t step = 0; step < 3; step++) {
        const lanes level = search_clamp(start + lanes_all(step == 2 ? -1.0f : (float)step), 0.0f, limits->levels);
        const lanes scale = level * d;
        const search_sums sums = search_sum(x, limits, sub->low, start_min, search_inverse(scale));
        const lanes wanted = (scale * sums.q - sub->total) - n * sub->low;
        const lanes min = search_round(search_clamp(wanted * inverse_min, 0.0f, limits->levels));
        const lanes error = search_error(&sums, sub->total, (float)limits->length, scale, min * dmin + sub->low);
        found->scale[p] = lanes_select(error < smallest, level, found->scale[p]);
        found->min[p] = lanes_select(error < smallest, min, found->min[p]);
        smallest = lanes_select(error < smallest, error, smallest);
    }
    return smallest;
}

/* Fits the factors to the scales, mins and codes of all sub-blocks together. Keeps the old factors if nothing can be fitted: a
 * NaN fails every comparison. */
SEARCH_FUNCTION void search_refactor(const lanes *x, const search_limits *limits, const search_sub_block *sub,
                                     const search_found *found, search_found *fitted)
{
    const lanes n = lanes_all((float)limits->length), zero = lanes_all(0.0f), small = lanes_all(SEARCH_SPAN_MIN);
    lanes a[LANES_REGISTERS], b[LANES_REGISTERS], c[LANES_REGISTERS], xs[LANES_REGISTERS], xm[LANES_REGISTERS];
    EACH_REGISTER
    {
        const lanes scale = found->scale[p], min = found->min[p];
        const search_sums sums =
            search_sum(x + p * limits->length, limits, zero, min * found->dmin[p], search_inverse(scale * found->d[p]));
        a[p] = scale * scale * sums.qq;
        b[p] = scale * min * sums.q;
        c[p] = min * min * n;
        xs[p] = scale * sums.xq;
        xm[p] = min * (sub[p].total + n * sub[p].low);
    }
    lanes_block_sum(a, limits->sub_blocks);
    lanes_block_sum(b, limits->sub_blocks);
    lanes_block_sum(c, limits->sub_blocks);
    lanes_block_sum(xs, limits->sub_blocks);
    lanes_block_sum(xm, limits->sub_blocks);
    *fitted = *found;
    EACH_REGISTER
    {
        const lanes d = lanes_select(c[p] > zero, (xs[p] * c[p] - b[p] * xm[p]) / (a[p] * c[p] - b[p] * b[p]), xs[p] / a[p]);
        const lanes dmin = lanes_select(c[p] > zero, (d * b[p] - xm[p]) / c[p], zero);
        fitted->d[p] = lanes_select(d > small, lanes_f16(d), found->d[p]);
        fitted->dmin[p] = lanes_select(d > small, lanes_f16(lanes_max(dmin, zero)), found->dmin[p]);
    }
}

SEARCH_FUNCTION void search_nothing(search_found *found)
{
    EACH_REGISTER
    {
        found->scale[p] = found->min[p] = found->d[p] = found->dmin[p] = lanes_all(0.0f);
        found->error[p] = lanes_all(__builtin_inff());
    }
}

/* Keeps the better of two results for each block, judged by the errors of its sub-blocks. Overwrites those errors. */
SEARCH_FUNCTION void search_keep(search_found *best, const search_found *other, lanes error[LANES_REGISTERS],
                                 int32_t sub_blocks)
{
    lanes_block_sum(error, sub_blocks);
    EACH_REGISTER
    {
        const lanes sum = error[p];
        best->scale[p] = lanes_select(sum < best->error[p], other->scale[p], best->scale[p]);
        best->min[p] = lanes_select(sum < best->error[p], other->min[p], best->min[p]);
        best->d[p] = lanes_select(sum < best->error[p], other->d[p], best->d[p]);
        best->dmin[p] = lanes_select(sum < best->error[p], other->dmin[p], best->dmin[p]);
        best->error[p] = lanes_select(sum < best->error[p], sum, best->error[p]);
    }
}

SEARCH_FUNCTION void search_settle_all(const lanes *x, const search_limits *limits, const search_sub_block *sub,
                                       search_found *other, search_found *best)
{
    lanes error[LANES_REGISTERS];
    EACH_REGISTER error[p] = search_settle(x + p * limits->length, limits, &sub[p], other, p);
    search_keep(best, other, error, limits->sub_blocks);
}

/* Factors, scales and mins of a block with minima: q2_k, q4_k, q5_k. Register p of the elements starts at x + p *
 * limits->length. */
SEARCH_FUNCTION void search_with_min(const lanes *x, const search_limits *limits, search_found *best)
{
    search_sub_block sub[LANES_REGISTERS];
    search_line line[LANES_REGISTERS];
    lanes scale[LANES_REGISTERS], min[LANES_REGISTERS]; /* the largest of the block */
    search_found other;
    EACH_REGISTER
    {
        line[p] = search_best_line(x + p * limits->length, limits, &sub[p]);
        scale[p] = line[p].scale;
        min[p] = line[p].min;
    }
    lanes_block_max(scale, limits->sub_blocks);
    lanes_block_max(min, limits->sub_blocks);
    search_nothing(best);
    for (int32_t attempt = 0; attempt < limits->attempts; attempt++) {
        const float scale_max = limits->levels - limits->scale_room * (float)attempt;
        EACH_REGISTER
        {
            other.d[p] = lanes_f16(scale[p] / lanes_all(scale_max));
            other.dmin[p] = lanes_f16(min[p] / lanes_all(limits->levels));
            other.scale[p] = search_round(search_clamp(line[p].scale * search_inverse(other.d[p]), 0.0f, limits->levels));
            other.min[p] = search_round(search_clamp(line[p].min * search_inverse(other.dmin[p]), 0.0f, limits->levels));
        }
        search_settle_all(x, limits, sub, &other, best);
    }
    for (int32_t again = 0; again < limits->refits; again++) {
        search_refactor(x, limits, sub, best, &other);
        search_settle_all(x, limits, sub, &other, best);
    }
}

/* ---- lines through zero: x = scale q ------------------------------------------------------------------------------------- */

/* The element of the largest magnitude; the first of equals. */
SEARCH_FUNCTION lanes search_extreme(const lanes *x, int32_t length)
{
    const lanes zero = lanes_all(0.0f);
    lanes extreme = x[0], largest = lanes_max(x[0], zero - x[0]);
    for (int32_t l = 1; l < length; l++) {
        const lanes magnitude = lanes_max(x[l], zero - x[l]);
        extreme = lanes_select(magnitude > largest, x[l], extreme);
        largest = lanes_max(largest, magnitude);
    }
    return extreme;
}

SEARCH_FUNCTION void search_fit_zero(const lanes *x, const search_limits *limits, lanes inverse, search_line *best)
{
    const search_sums sums = search_sum_zero(x, limits, inverse);
    const lanes scale = sums.xq / sums.qq, gain = scale * sums.xq;
    best->scale = lanes_select(gain > best->gain, scale, best->scale);
    best->gain = lanes_select(gain > best->gain, gain, best->gain);
}

SEARCH_FUNCTION search_line search_best_zero(const lanes *x, const search_limits *limits)
{
    const lanes zero = lanes_all(0.0f), one = lanes_all(1.0f), small = lanes_all(SEARCH_SPAN_MIN);
    const lanes extreme = search_extreme(x, limits->length);
    const lanes magnitude = lanes_max(extreme, zero - extreme);
    const lanes inverse = lanes_select(magnitude < small, zero, one / lanes_select(magnitude < small, one, extreme));
    search_line best;
    best.scale = best.min = best.gain = zero;
    for (int32_t c = 0; c < limits->candidates; c++) {
        const float codes = limits->lowest - (limits->first + limits->step * (float)c);
        search_fit_zero(x, limits, inverse * lanes_all(codes), &best);
    }
    for (int32_t round = 0; round < limits->rounds; round++)
        search_fit_zero(x, limits, search_inverse(best.scale), &best);
    return best;
}

SEARCH_FUNCTION lanes search_settle_zero(const lanes *x, const search_limits *limits, search_found *found, int32_t p)
{
    const lanes start = found->scale[p], zero = lanes_all(0.0f);
    lanes smallest = lanes_all(__builtin_inff());
    for (int32_t step = 0; step < 3; step++) {
        const lanes to = start + lanes_all(step == 2 ? -1.0f : (float)step);
        const lanes level = search_clamp(to, -limits->levels - 1.0f, limits->levels), scale = level * found->d[p];
        const search_sums sums = search_sum_zero(x, limits, search_inverse(scale));
        const lanes error = search_error(&sums, zero, 0.0f, scale, zero);
        found->scale[p] = lanes_select(error < smallest, level, found->scale[p]);
        smallest = lanes_select(error < smallest, error, smallest);
    }
    return smallest;
}

SEARCH_FUNCTION void search_refactor_zero(const lanes *x, const search_limits *limits, const search_found *found,
                                          search_found *fitted)
{
    lanes a[LANES_REGISTERS], xs[LANES_REGISTERS];
    EACH_REGISTER
    {
        const lanes scale = found->scale[p];
        const search_sums sums = search_sum_zero(x + p * limits->length, limits, search_inverse(scale * found->d[p]));
        a[p] = scale * scale * sums.qq;
        xs[p] = scale * sums.xq;
    }
    lanes_block_sum(a, limits->sub_blocks);
    lanes_block_sum(xs, limits->sub_blocks);
    *fitted = *found;
    EACH_REGISTER fitted->d[p] = lanes_select(a[p] > lanes_all(0.0f), lanes_f16(xs[p] / a[p]), found->d[p]);
}

SEARCH_FUNCTION void search_settle_zero_all(const lanes *x, const search_limits *limits, search_found *other,
                                            search_found *best)
{
    lanes error[LANES_REGISTERS];
    EACH_REGISTER error[p] = search_settle_zero(x + p * limits->length, limits, other, p);
    search_keep(best, other, error, limits->sub_blocks);
}

/* Factor and scales of a block without minima: q3_k, q6_k. The scale of the largest magnitude gets the lowest level. */
SEARCH_FUNCTION void search_without_min(const lanes *x, const search_limits *limits, search_found *best)
{
    const lanes zero = lanes_all(0.0f);
    const float lowest = -limits->levels - 1.0f;
    lanes line[LANES_REGISTERS], largest[LANES_REGISTERS], highest[LANES_REGISTERS];
    search_found other;
    EACH_REGISTER
    {
        line[p] = highest[p] = search_best_zero(x + p * limits->length, limits).scale;
        largest[p] = lanes_max(line[p], zero - line[p]);
    }
    lanes_block_max(largest, limits->sub_blocks);
    lanes_block_max(highest, limits->sub_blocks);
    search_nothing(best);
    for (int32_t attempt = 0; attempt < limits->attempts; attempt++) {
        EACH_REGISTER
        {
            const lanes extreme = lanes_select(highest[p] == largest[p], largest[p], zero - largest[p]);
            other.min[p] = other.dmin[p] = zero;
            other.d[p] = lanes_f16(extreme / lanes_all(lowest + limits->scale_room * (float)attempt));
            other.scale[p] = search_round(search_clamp(line[p] * search_inverse(other.d[p]), lowest, limits->levels));
        }
        search_settle_zero_all(x, limits, &other, best);
    }
    for (int32_t again = 0; again < limits->refits; again++) {
        search_refactor_zero(x, limits, best, &other);
        search_settle_zero_all(x, limits, &other, best);
    }
}

/* ---- the kinds --------------------------------------------------------------------------------------------------------------
 * More candidate lines cost time and reduce the error. With these numbers the error is below that of the reference. */

SEARCH_FUNCTION search_limits search_limits_of(int32_t type)
{
    search_limits limits;
    limits.length = type == BLOCK_Q4_K || type == BLOCK_Q5_K ? 32 : 16;
    limits.sub_blocks = KBLOCK_ELEMENTS / limits.length;
    limits.lowest = type == BLOCK_Q3_K ? -4.0f : type == BLOCK_Q6_K ? -32.0f : 0.0f;
    limits.highest = type == BLOCK_Q2_K || type == BLOCK_Q3_K ? 3.0f : type == BLOCK_Q4_K ? 15.0f : 31.0f;
    limits.levels = type == BLOCK_Q2_K ? 15.0f : type == BLOCK_Q3_K ? 31.0f : type == BLOCK_Q6_K ? 127.0f : 63.0f;
    limits.candidates = type == BLOCK_Q6_K ? 6 : 7;
    limits.first = type == BLOCK_Q6_K ? -0.7f : -1.0f;
    limits.step = type == BLOCK_Q6_K ? 0.3f : 0.33f;
    limits.rounds = type == BLOCK_Q6_K ? 0 : type == BLOCK_Q3_K ? 1 : 2;
    limits.attempts = type == BLOCK_Q6_K || type == BLOCK_Q3_K ? 1 : 2;
    limits.scale_room = 5.0f;
    limits.refits = type == BLOCK_Q6_K ? 0 : 1;
    return limits;
}

#endif
