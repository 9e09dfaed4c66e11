/* Shared by the screen's kernels: the limits of queries, and estimates without a bound for choosing a sample. */
#ifndef WW_KERNELS_SCREEN_SCREEN_LIMITS_H
#define WW_KERNELS_SCREEN_SCREEN_LIMITS_H

#include "kernels/simt/simt.h"

#include "arithmetic/row_types.h"
#include "arithmetic/screen.h"
#include "kernels/screen/screen_args.h"
#include "kernels/search/segment_walk.h"

/* The limit of query `query` from its threshold; for an empty slot, a limit that discards everything. */
DEVICE screen_limit screen_limit_of(const kernel_rows *rows, const screen_queries *queries, uint32_t query)
{
    screen_limit none;
    none.scale = none.a = none.b = none.g = 0.0f;
    none.h = canon_bits_float(0x7f800000u);
    if (query >= queries->count)
        return none;
    const screen_query numbers = IN_GLOBAL(const screen_query, queries->numbers)[query];
    screen_vector vector;
    vector.scale = numbers.scale;
    vector.residual = numbers.residual;
    vector.norm = numbers.norm;
    const canon_key key = IN_GLOBAL(const uint64_t, queries->thresholds)[query];
    const float worst = canon_bits_float(rows->metric == CANON_L2 ? 0x7f800000u : 0xff800000u);
    const float threshold = key == CANON_KEY_WORST ? worst : canon_key_score(rows->metric, key);
    return screen_limit_for(rows->metric, rows->chunks * CANON_LANES, vector, threshold);
}

/* The same for all rows, including those whose codes are smaller than their numbers (arithmetic/row_types.h). */
DEVICE screen_limit screen_limit_of_codes(const kernel_rows *rows, const screen_queries *queries, uint32_t query)
{
    const screen_limit limit = screen_limit_of(rows, queries, query);
    if (query >= queries->count)
        return limit;
    const screen_query numbers = IN_GLOBAL(const screen_query, queries->numbers)[query];
    if (numbers.offset == 0.0f)
        return limit;
    screen_vector vector;
    vector.scale = numbers.scale;
    vector.residual = numbers.residual;
    vector.norm = numbers.norm;
    return screen_limit_offset(limit, rows->chunks * CANON_LANES, vector, ROW_U8_OFFSET, numbers.offset);
}

/* What estimates need from a query: its scale, and in h the offset of the products times the scale. */
DEVICE screen_limit screen_estimate_of(const screen_queries *queries, uint32_t query)
{
    screen_limit given;
    const bool real = query < queries->count;
    given.scale = real ? IN_GLOBAL(const screen_query, queries->numbers)[query].scale : 0.0f;
    given.h = real ? IN_GLOBAL(const screen_query, queries->numbers)[query].offset : 0.0f;
    given.a = given.b = given.g = 0.0f;
    return given;
}

/* screen_discards() with fewer roundings, for a product that is already a float. */
DEVICE float screen_value(screen_limit limit, screen_vector row, float product)
{
    const float value = fma_f32(limit.b, row.norm, fma_f32(limit.a, row.residual, product * row.scale * limit.scale));
    return fma_f32(limit.g * row.norm, row.norm, value);
}

/* The score without any bound, larger is better: (product * query's scale + its offset) * factor + more. It only serves to
 * choose rows, so rounding does not matter. */
typedef struct screen_guess {
    float factor, more;
} screen_guess;

DEVICE screen_guess screen_guess_of(int32_t metric, screen_vector row)
{
    screen_guess guess;
    guess.factor = metric != CANON_COSINE ? row.scale : row.norm > 0.0f ? row.scale / row.norm : 0.0f;
    guess.more = metric == CANON_L2 ? -0.5f * row.norm * row.norm : 0.0f;
    return guess;
}

/* An estimate with its last five bits replaced by a number below 32; a choice does not need these bits. Infinities become NaN,
 * which a maximum ignores. */
DEVICE float screen_labelled(float estimate, uint32_t number)
{
    return canon_bits_float((canon_float_bits(estimate) & ~31u) | number);
}

DEVICE uint32_t screen_label(float labelled)
{
    return canon_float_bits(labelled) & 31u;
}

#endif
