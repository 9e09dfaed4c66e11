/* The canonical score of two vectors, and the check whether a vector is accepted. */
#include <math.h>
#include <stdio.h>

#include "arithmetic/canon.h"
#include "base/float_guard.h"
#include "cpu/isa/isa.h"
#include "vectors/collection.h"

/* Returns the reference for all other sets. Every build has it, last in the list because all others are faster. */
static const instruction_set *reference(void)
{
    int last = 0;
    while (instruction_sets[last + 1])
        last++;
    return instruction_sets[last];
}

/* If every element is below 2^55, 65536 squares sum to less than 2^126 with any rounding. So only a vector with a larger
 * element, a NaN or an infinity (whose bits are larger still) needs its squared norm computed. Adding to a magnitude that is
 * too large carries into the sign bit: one addition and one OR, which every instruction set has for vectors. */
bool vector_is_finite(const float *vector, int32_t dim)
{
    const uint32_t carries = 0x80000000u - ((127u + 55u) << 23);
    uint32_t large = 0;
    for (int32_t i = 0; i < dim; i++)
        large |= (canon_float_bits(vector[i]) & 0x7fffffffu) + carries;
    return large >> 31 == 0 || isfinite(reference()->dot(vector, vector, dim));
}

float vector_squared_norm(const float *vector, int32_t dim)
{
    return reference()->dot(vector, vector, dim);
}

const char *vector_fault(const float *vector, int32_t dim, char text[VECTOR_FAULT_BYTES])
{
    for (int32_t i = 0; i < dim; i++)
        if (!isfinite(vector[i])) {
            snprintf(text, VECTOR_FAULT_BYTES, "column %d is %s; every value must be finite", i,
                     isnan(vector[i]) ? "NaN" : "infinite");
            return text;
        }
    snprintf(text, VECTOR_FAULT_BYTES, "its values are so large that its squared norm is not finite");
    return text;
}

ww_status ww_score(ww_metric metric, const float *a, const float *b, int32_t dim, float *score)
{
    FLOAT_GUARD();
    if (!a || !b || !score)
        return fail_null("ww_score", !a ? "a" : !b ? "b" : "score");
    if (!ww_metric_name(metric))
        return ww_fail(WW_INVALID_ARGUMENT, "ww_score: metric is %d; it must be WW_COSINE, WW_L2 or WW_DOT", (int)metric);
    if (dim < 1 || dim > WW_DIM_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "ww_score: dim is %d; it must be 1 to %d", dim, WW_DIM_MAX);
    const float *bad = !vector_is_finite(a, dim) ? a : !vector_is_finite(b, dim) ? b : NULL;
    char fault[VECTOR_FAULT_BYTES];
    if (bad)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_score: vector %s: %s", bad == a ? "a" : "b", vector_fault(bad, dim, fault));
    const instruction_set *set = reference();
    const float sum = metric == WW_L2 ? set->squares(a, b, dim) : set->dot(a, b, dim);
    const bool cosine = metric == WW_COSINE;
    *score = canon_score((int32_t)metric, sum, cosine ? sqrtf(set->dot(a, a, dim)) : 0.0f,
                         cosine ? sqrtf(set->dot(b, b, dim)) : 0.0f);
    return WW_OK;
}
