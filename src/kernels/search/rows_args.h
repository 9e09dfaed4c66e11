/* What the kernels that bring rows into their place take. */
#ifndef WW_KERNELS_SEARCH_ROWS_ARGS_H
#define WW_KERNELS_SEARCH_ROWS_ARGS_H

#include <stdint.h>

enum { ROWS_THREADS = 256, ROWS_PER_BLOCK = ROWS_THREADS / 16 };

/* rows_pack: plain rows to packed ones (packed_layout.h) with their norms. Blocks of ROWS_THREADS, ROWS_PER_BLOCK rows each. */
typedef struct rows_pack_args {
    const float *from; /* count x dim */
    float *to;         /* count x 64*chunks */
    float *norms;      /* count */
    uint64_t *refused; /* lowered to the first row whose squared norm is not finite, counted from `number` */
    uint64_t number;   /* of from's first row */
    uint32_t count;
    int32_t dim;
} rows_pack_args;

/* rows_gather: to[i] = from[sources[i]], packed rows and norms. Blocks as above. */
typedef struct rows_gather_args {
    const float *from_rows, *from_norms;
    float *to_rows, *to_norms;
    const int64_t *sources;
    uint32_t count;
    int32_t chunks;
} rows_gather_args;

#endif
