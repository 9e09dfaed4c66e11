/* Which keys a query sees, including encoder windows that reach to both sides. Shared by CPU code and kernels.
 */
#ifndef WW_ARITHMETIC_ATTENTION_WINDOW_H
#define WW_ARITHMETIC_ATTENTION_WINDOW_H

#include "arithmetic/attention.h"

/* Like attention_seen(), but without a causal mask the window covers keys at most `window` positions away on either side. */
CANON_FUNCTION attention_range attention_seen_around(const attention_mask *mask, int32_t position, int32_t length,
                                                     int32_t limit)
{
    attention_range seen = attention_seen(mask, position, length, limit);
    if (mask->causal || mask->window <= 0)
        return seen;
    seen.first = position >= mask->window ? position - mask->window : 0;
    if (position < seen.end && mask->window < seen.end - position)
        seen.end = position + mask->window + 1;
    seen.end = seen.end > seen.first ? seen.end : seen.first;
    return seen;
}

#endif
