/* Which instruction set runs: the best one the machine has, unless WARPWAVE_ISA names another. */
#include "cpu/isa/isa.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "base/status.h"
#include "base/text.h"

extern const instruction_set instruction_set_amx, instruction_set_avx512, instruction_set_avx2, instruction_set_neon,
    instruction_set_scalar;

const instruction_set *const instruction_sets[] = {
#if defined(__x86_64__)
    &instruction_set_amx,    &instruction_set_avx512,
    &instruction_set_avx2,
#elif defined(__aarch64__)
    &instruction_set_neon,
#endif
    &instruction_set_scalar, NULL,
};

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

ww_status instruction_set_choose(const instruction_set **out)
{
    const char *asked = getenv("WARPWAVE_ISA");
    const bool any = !asked || !*asked;
    for (const instruction_set *const *set = instruction_sets; *set; set++) {
        if ((any || strcmp((*set)->name, asked) == 0) && (*set)->present()) {
            *out = *set;
            return WW_OK;
        }
    }
    char list[128];
    instruction_sets_list(list, sizeof list);
    return ww_fail(WW_UNSUPPORTED, "WARPWAVE_ISA asks for the instruction set '%s', which is not here; this machine has: %s",
                   any ? "" : asked, list);
}

const screen_products *screen_products_choose(const instruction_set *set)
{
    const screen_products *const *products = set->products;
    while (products[1] && !(*products)->present())
        products++;
    return *products;
}

/* dot: the score itself. l2: the largest sum whose root is below `score`; a root is within one ulp of its square's, so a few
 * steps from score^2 find it. cosine: `score`, lowered by more than the roundings of a division and two products. */
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
