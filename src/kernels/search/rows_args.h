/* What the kernels that bring rows into their place take. */
#ifndef WW_KERNELS_SEARCH_ROWS_ARGS_H
#define WW_KERNELS_SEARCH_ROWS_ARGS_H

#include <stdint.h>

enum { ROWS_THREADS = 256, ROWS_PER_BLOCK = ROWS_THREADS / 16 };

/* rows_pack: rows of any type (arithmetic/row_types.h), as callers have them, to rows first.. of a segment, as packed_layout.h
 * and typed_rows.h say, with their norms. Blocks of ROWS_THREADS, ROWS_PER_BLOCK rows each. */
typedef struct rows_pack_args {
    const void *from; /* count x dim */
    void *to;         /* the segment's, as are the next three */
    float *norms;
    float *scales, *residuals; /* of bytes, which are their own codes: 1 and 0; NULL: not wanted */
    float *wide;               /* count x 64*chunks: rows of another type than f32 as f32, packed; or NULL */
    uint64_t *refused;         /* lowered to the first row whose squared norm is not finite, counted from `number` */
    uint64_t number;           /* of from's first row */
    uint32_t first, count;
    int32_t dim;
    int32_t type;
} rows_pack_args;

/* rows_gather: to[first + i] = from[sources[i]], rows and norms; and of bytes scales and residuals. Blocks as above. */
typedef struct rows_gather_args {
    const void *from_rows;
    const float *from_norms, *from_scales, *from_residuals;
    void *to_rows;
    float *to_norms;
    float *to_scales, *to_residuals; /* NULL: not wanted */
    const int64_t *sources;
    uint32_t first, count;
    int32_t chunks;
    int32_t type;
} rows_gather_args;

/* rows_unpack: row sources[i] of a segment, of any type, as floats in the order that callers know: to[i]. Blocks as above. */
typedef struct rows_unpack_args {
    const void *from; /* the segment's */
    const int64_t *sources;
    float *to; /* count x dim */
    uint32_t count;
    int32_t dim;
    int32_t type;
} rows_unpack_args;

#endif
