/* What the results of a screened search prove about it (docs/design/exactness.md).
 *
 * A threshold is a key such that k rows were known to be at or before it, and only strictly worse rows were discarded by it. So
 * the k-th result must be at or before it, too. If it is, no discarded row belongs to the results, regardless of how the
 * threshold was computed. If it is not, or is missing, there is a defect somewhere between the sample and the results, and the
 * query is repeated without a screen. In a range search the threshold is the bound, and the same holds.
 */
#ifndef WW_DEVICE_CERTIFICATE_H
#define WW_DEVICE_CERTIFICATE_H

#include <math.h>
#include <stdbool.h>

#include "arithmetic/canon.h"

/* `last` is the key of the k-th result, or of the worst score within the range. CANON_KEY_WORST means no result, or no
 * threshold. */
bool certificate_fails(canon_key threshold, canon_key last);

/* Returns how much better the last result is than the threshold; -inf if there is no such result. */
static inline float certificate_margin(int32_t metric, canon_key threshold, canon_key last)
{
    if (threshold == CANON_KEY_WORST)
        return INFINITY;
    if (last == CANON_KEY_WORST)
        return -INFINITY;
    const float from = canon_key_score(metric, threshold), to = canon_key_score(metric, last);
    if (from == to) /* also if both are infinite */
        return 0.0f;
    return metric == CANON_L2 ? from - to : to - from;
}

#endif
