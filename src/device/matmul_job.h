/* A matrix product as a backend gets it, checked: c = a b for each matrix of a batch, in canonical order (arithmetic/matmul.h).
 *
 * A convolution is the same with b seen through a window. All strides are in elements, and none is negative.
 */
#ifndef WW_DEVICE_MATMUL_JOB_H
#define WW_DEVICE_MATMUL_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "arithmetic/matmul.h"

enum { MATMUL_BATCH_RANK = 8 };

typedef struct matmul_job {
    int32_t type; /* of a and b: TYPE_F32, F64, F16, BF16 or I8; c has the same type, except that products of i8 are i32 */
    bool fast;    /* sums may be in any order, and products may use fewer bits of f32 */
    int64_t m, n, k;
    const void *a, *b; /* the first element of each, on the device, like c */
    void *c;
    int64_t a_row, a_column;
    int64_t b_row, b_column; /* unused with a window */
    int64_t c_row;           /* elements of a row are adjacent, except with a window */
    int64_t c_elements;      /* from c to the end of its memory */
    int32_t batch_rank;
    int64_t batch[MATMUL_BATCH_RANK], a_batch[MATMUL_BATCH_RANK], b_batch[MATMUL_BATCH_RANK], c_batch[MATMUL_BATCH_RANK];
    const matmul_window *window; /* NULL: b is a plain matrix */
} matmul_job;

static inline int64_t matmul_batch_count(const matmul_job *job)
{
    int64_t count = 1;
    for (int32_t i = 0; i < job->batch_rank; i++)
        count *= job->batch[i];
    return count;
}

/* Where the matrices of one element of the batch start, in elements. */
typedef struct matmul_place {
    int64_t a, b, c;
} matmul_place;

static inline matmul_place matmul_place_of(const matmul_job *job, int64_t number)
{
    matmul_place place = {0, 0, 0};
    for (int32_t i = job->batch_rank - 1; i >= 0; i--) {
        const int64_t at = number % job->batch[i];
        number /= job->batch[i];
        place.a += at * job->a_batch[i];
        place.b += at * job->b_batch[i];
        place.c += at * job->c_batch[i];
    }
    return place;
}

#endif
