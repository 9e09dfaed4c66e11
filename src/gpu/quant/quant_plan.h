/* How columns of activations are laid out for a product: what there is room for, and groups of columns that share rows of
 * weights.
 */
#ifndef WW_GPU_QUANT_QUANT_PLAN_H
#define WW_GPU_QUANT_QUANT_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Coded columns, on the device; kernels/quant/quant.h says what is where. */
typedef struct quant_coded {
    uint32_t *codes;
    float *factors;
    uint32_t *sums;
    const uint32_t *source;     /* NULL: columns are where they were */
    const uint64_t *first_rows; /* of each group; NULL: 0 */
    uint32_t places, width;
    uint32_t blocks, blocks_kept;
    int32_t tiles;   /* QUANT_FOR_ */
    uint32_t parts;  /* of few columns: blocks of threads that share rows, */
    uint32_t shared; /* how often some do that, or 0, and */
    float *partial;  /* room for their sums */
} quant_coded;

/* The counts for weights of `type`, for few columns or for tiles; nothing is on the device yet. */
quant_coded quant_coded_few(int32_t type, int64_t cols, int64_t columns);
/* Room for at least `most` columns in each group: 1, 2, 4 or 8. */
uint32_t quant_width(int64_t most);
quant_coded quant_coded_tiles(int32_t type, int64_t cols, int64_t columns, int32_t tiles);

/* Over how many blocks of threads the accumulators of few columns are spread where there are `tiles` of rows and groups of
 * columns, and so many compute units. */
uint32_t quant_gemv_parts(int64_t tiles, int64_t units);

/* The bytes that coded columns take: codes, then sums or records, then factors; then what blocks share. */
typedef struct quant_coded_bytes {
    size_t codes, sums, factors;
    size_t partial;
} quant_coded_bytes;
/* Of codes that a block of weights is unpacked to: large ones have an upper and a lower byte for each element. */
int64_t quant_code_bytes(int32_t type);
quant_coded_bytes quant_coded_size(int32_t type, const quant_coded *coded);

/* Columns by groups of eight that have the same first row: `first_rows` of the groups, and right behind them the columns of all
 * places, UINT32_MAX where a group has fewer. */
typedef struct quant_groups {
    uint64_t *first_rows;
    uint32_t *source;
    size_t bytes; /* of both */
    int64_t count;
    int64_t most; /* columns of a group */
} quant_groups;

/* Takes the first row of each of `columns`, fewer than 2^31. Refuses nothing but want of memory. */
ww_status quant_groups_make(const int64_t *first_rows, int64_t columns, quant_groups *out);
void quant_groups_release(quant_groups *groups);

#endif
