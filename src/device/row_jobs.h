/* Jobs that look at many elements for one (include/warpwave/tensor_rows.h), checked, as a backend sees them. Included by
 * tensor_jobs.h, which says what holds for all jobs.
 */
#ifndef WW_DEVICE_ROW_JOBS_H
#define WW_DEVICE_ROW_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "arithmetic/reduce.h"

/* x seen as outs times n elements: of each result, those that are reduced. Both lists of dimensions are simplified. */
typedef struct reduce_job {
    int32_t op;
    int32_t type, out_type;
    int64_t outs, n; /* both at least 1 */
    reduce_dims kept, reduced;
    const void *x; /* its first element */
    void *out;
} reduce_job;

/* softmax and the norms: dense rows of n elements. */
typedef struct rows_job {
    int32_t op; /* of row_op */
    int32_t type;
    int64_t rows, n;
    const void *x, *weight, *bias; /* the last two may be NULL */
    void *out;
    double eps;
} rows_job;

/* softmax along a dimension that is not the last: outer times n rows of `inner` elements, dense. */
typedef struct softmax_columns_job {
    int32_t type;
    int64_t outer, n, inner; /* n at most SOFTMAX_COLUMNS_LONGEST */
    const void *x;
    void *out;
} softmax_columns_job;

enum { SOFTMAX_COLUMNS_LONGEST = REDUCE_CHUNK * REDUCE_CHUNK }; /* sums in two rounds */

/* Dense rows of 2 * half elements; the place of a row's cosines and sines follows from its number by the dimensions. */
typedef struct rope_job {
    int32_t type;
    bool interleaved;
    int64_t rows, half;
    reduce_dims cosines, sines;     /* of the rows; shapes are alike */
    int64_t cosine_step, sine_step; /* from pair to pair */
    const void *x, *cosine, *sine;
    void *out;
} rope_job;

/* Dense rows of n elements, of which the first k of the order are wanted. */
typedef struct sort_job {
    int32_t type;
    bool descending;
    int64_t rows, n, k;
    const void *x;
    void *values;      /* or NULL */
    uint32_t *indices; /* or NULL */
} sort_job;

#endif
