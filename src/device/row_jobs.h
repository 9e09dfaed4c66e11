/* Jobs whose results each depend on many elements (include/warpwave/tensor_rows.h), checked, as a backend sees them.
 * tensor_jobs.h includes this and has the rules for all jobs.
 */
#ifndef WW_DEVICE_ROW_JOBS_H
#define WW_DEVICE_ROW_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "arithmetic/reduce.h"

/* Reduces n elements to each of `outs` results. Both lists of dimensions are simplified. */
typedef struct reduce_job {
    int32_t op;
    int32_t type, out_type;
    int64_t outs, n; /* both at least 1 */
    reduce_dims kept, reduced;
    const void *x; /* the first element */
    void *out;
} reduce_job;

/* softmax and the norms: dense rows of n elements. */
typedef struct rows_job {
    int32_t op; /* a row_op */
    int32_t type;
    int64_t rows, n;
    const void *x, *weight, *bias; /* the last two may be NULL */
    void *out;
    double eps;
} rows_job;

/* softmax along a dimension that is not the last: outer times n rows of `inner` elements, dense. */
typedef struct softmax_columns_job {
    int32_t type;
    int64_t outer, n, inner; /* n at most SOFTMAX_COLUMNS_MAX */
    const void *x;
    void *out;
} softmax_columns_job;

enum { SOFTMAX_COLUMNS_MAX = REDUCE_CHUNK * REDUCE_CHUNK }; /* sums in two rounds */

/* Dense rows of 2 * half elements. The dimensions give the place of a row's cosines and sines from its number. */
typedef struct rope_job {
    int32_t type;
    bool interleaved;
    int64_t rows, half;
    reduce_dims cosines, sines;     /* indexed by rows; both have the same shape */
    int64_t cosine_step, sine_step; /* from pair to pair */
    const void *x, *cosine, *sine;
    void *out;
} rope_job;

/* Sorts dense rows of n elements; only the first k of each are written. */
typedef struct sort_job {
    int32_t type;
    bool descending;
    int64_t rows, n, k;
    const void *x;
    void *values;      /* or NULL */
    uint32_t *indices; /* or NULL */
} sort_job;

#endif
