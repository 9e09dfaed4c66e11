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

/* rows_pack_typed: rows of another type than f32 (arithmetic/row_types.h), as callers have them, to rows first.. of a segment,
 * as typed_rows.h says, with their norms. Blocks as above. */
typedef struct rows_pack_typed_args {
    const void *from; /* count x dim */
    uint32_t *to;     /* the segment's, as are the next four */
    float *norms;
    float *scales, *residuals; /* of bytes, which are their own codes: 1 and 0; NULL: not wanted */
    float *wide;               /* count x 64*chunks: the rows as f32, packed; or NULL */
    uint64_t *refused;         /* as in rows_pack_args */
    uint64_t number;
    uint32_t first, count;
    int32_t dim;
    int32_t type;
} rows_pack_typed_args;

/* rows_gather_typed: to[first + i] = from[sources[i]], rows and norms; and of bytes scales and residuals. Blocks as above. */
typedef struct rows_gather_typed_args {
    const uint32_t *from_rows;
    const float *from_norms, *from_scales, *from_residuals;
    uint32_t *to_rows;
    float *to_norms;
    float *to_scales, *to_residuals; /* NULL: not wanted */
    const int64_t *sources;
    uint32_t first, count;
    int32_t chunks;
    int32_t type;
} rows_gather_typed_args;

#endif
