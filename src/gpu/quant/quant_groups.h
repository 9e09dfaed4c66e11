/* Columns of a product with experts, in groups of at most eight that take the same rows of the weights: sorted by their first
 * row, so that a group reads its rows once.
 */
#ifndef WW_GPU_QUANT_QUANT_GROUPS_H
#define WW_GPU_QUANT_QUANT_GROUPS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* `first_rows` of the groups and, right behind them, eight columns for each, UINT32_MAX where a group has fewer. */
typedef struct quant_groups {
    uint64_t *first_rows;
    uint32_t *source;
    size_t bytes; /* of both */
    int64_t count;
    int64_t largest; /* columns of the largest group */
} quant_groups;

/* Takes the first row of each of `columns`, fewer than 2^31. Refuses nothing but want of memory. */
ww_status quant_groups_make(const int64_t *first_rows, int64_t columns, quant_groups *out);
void quant_groups_release(quant_groups *groups);

#endif
