/* Which instruction set runs: the best one the machine has, unless WARPWAVE_ISA names another. */
#include "cpu/isa/isa.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "base/status.h"
#include "base/text.h"

/* The sets of this build, best first. Adding one is a line here and a folder (CONTRIBUTING.md). */
#if defined(__x86_64__)
#define SETS(SET) SET(amx) SET(avx512) SET(avx2) SET(scalar)
#elif defined(__aarch64__)
#define SETS(SET) SET(neon) SET(scalar)
#else
#define SETS(SET) SET(scalar)
#endif

#define DECLARED(name) extern const instruction_set instruction_set_##name;
SETS(DECLARED)

#define LISTED(name) &instruction_set_##name,
const instruction_set *const instruction_sets[] = {SETS(LISTED) NULL};

void instruction_sets_list(char *text, uint64_t capacity)
{
    text_copy(text, capacity, "");
    for (const instruction_set *const *set = instruction_sets; *set; set++) {
        if (!(*set)->present())
            continue;
        if (*text)
            text_append(text, capacity, ", ");
        text_append(text, capacity, (*set)->name);
    }
}

#define FALL_BACK(field)                                                                                                       \
    if (!set->field)                                                                                                           \
    set->field = instruction_set_scalar.field

ww_status instruction_set_complete(instruction_set *set)
{
    if (!set->name)
        return ww_fail(WW_INTERNAL, "an instruction set has no name; fill .name where its table is defined, in src/cpu/isa");
    if (!set->present)
        return ww_fail(WW_INTERNAL, "instruction set '%s' has no .present; say how to see that a machine has it", set->name);
    FALL_BACK(dot);
    FALL_BACK(squares);
    FALL_BACK(store);
    FALL_BACK(sums);
    FALL_BACK(widen);
    FALL_BACK(sums_typed);
    FALL_BACK(pair_typed);
    FALL_BACK(filter_sums);
    FALL_BACK(filter_dots);
    FALL_BACK(encode);
    FALL_BACK(store_encoded);
    if (!set->bound_strips || !set->filter_strips || !set->filter_rows || !set->filter_one) {
        set->bound_strips = instruction_set_scalar.bound_strips;
        set->filter_strips = instruction_set_scalar.filter_strips;
        set->filter_leads = instruction_set_scalar.filter_leads;
        set->filter_rows = instruction_set_scalar.filter_rows;
        set->filter_one = instruction_set_scalar.filter_one;
    }
    FALL_BACK(element_loops);
    FALL_BACK(row_loops);
    FALL_BACK(matmul);
    FALL_BACK(attention);
    FALL_BACK(products);
    FALL_BACK(quants);
    return WW_OK;
}
#undef FALL_BACK

ww_status instruction_set_choose(instruction_set *out)
{
    const char *asked = getenv("WARPWAVE_ISA");
    const bool any = !asked || !*asked;
    for (const instruction_set *const *set = instruction_sets; *set; set++) {
        *out = **set;
        const ww_status status = instruction_set_complete(out);
        if (status != WW_OK)
            return status;
        if ((any || strcmp(out->name, asked) == 0) && out->present())
            return WW_OK;
    }
    char list[128];
    instruction_sets_list(list, sizeof list);
    return ww_fail(WW_UNSUPPORTED, "WARPWAVE_ISA is '%s', an instruction set that this machine does not have; it has: %s",
                   any ? "" : asked, list);
}

const screen_products *screen_products_choose(const instruction_set *set)
{
    const screen_products *const *products = set->products;
    while (products[1] && !(*products)->present())
        products++;
    return *products;
}

/* Limits for sums. dot: the score itself. l2: the largest sum whose root is below `score`. The root of a square is within one
 * ulp, so a few steps from score^2 find it. cosine: `score`, lowered by more than the roundings of a division and two products.
 */
float filter_limit(int32_t metric, float score)
{
    if (metric == CANON_DOT)
        return score;
    if (metric == CANON_COSINE)
        return score - fabsf(score) * 0x1p-20f;
    if (score == 0.0f)
        return -1.0f;
    float sum = score * score < FLT_MAX ? score * score : FLT_MAX;
    while (sum > 0.0f && sqrtf(sum) >= score)
        sum = nextafterf(sum, 0.0f);
    while (sum < FLT_MAX && sqrtf(nextafterf(sum, FLT_MAX)) < score)
        sum = nextafterf(sum, FLT_MAX);
    return sum;
}
