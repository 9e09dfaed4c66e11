/* Arguments of the kernels that pack, copy and unpack rows. */
#ifndef WW_KERNELS_SEARCH_ROWS_ARGS_H
#define WW_KERNELS_SEARCH_ROWS_ARGS_H

#include <stdint.h>

enum { ROWS_THREADS = 256, ROWS_PER_BLOCK = ROWS_THREADS / 16 };

/* rows_pack: writes rows of any type (arithmetic/row_types.h) with their norms to rows first.. of a segment, as packed_layout.h
 * and typed_rows.h describe. Blocks of ROWS_THREADS, ROWS_PER_BLOCK rows each. */
typedef struct rows_pack_args {
    const void *from; /* count x dim */
    void *to;         /* of the segment, like the next three */
    float *norms;
    float *scales, *residuals; /* of byte rows, which are their own codes: set to 1 and 0; NULL if not wanted */
    float *wide;               /* count x 64*chunks: rows of another type than f32 as f32, packed; or NULL */
    uint64_t *refused;         /* set to the smallest number of a row whose squared norm is not finite */
    uint64_t number;           /* number of the first row in `from` */
    uint32_t first, count;
    int32_t dim;
    int32_t type;
} rows_pack_args;

/* rows_gather: to[first + i] = from[sources[i]] for rows and norms, and for byte rows also scales and residuals. Blocks as for
 * rows_pack. */
typedef struct rows_gather_args {
    const void *from_rows;
    const float *from_norms, *from_scales, *from_residuals;
    void *to_rows;
    float *to_norms;
    float *to_scales, *to_residuals; /* NULL if not wanted */
    const int64_t *sources;
    uint32_t first, count;
    int32_t chunks;
    int32_t type;
} rows_gather_args;

/* rows_unpack: writes row sources[i] of a segment, of any type, to to[i] as floats in their usual order. Blocks as for
 * rows_pack. */
typedef struct rows_unpack_args {
    const void *from; /* of the segment */
    const int64_t *sources;
    float *to; /* count x dim */
    uint32_t count;
    int32_t dim;
    int32_t type;
} rows_unpack_args;

#endif
