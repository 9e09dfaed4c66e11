/* A matrix product as a backend gets it, checked: c = a b for each of a batch, in canonical order (arithmetic/matmul.h).
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
    int32_t type; /* of a and b: TYPE_F32, F64, F16, BF16 or I8; c is of the same, except for i8, whose products are i32 */
    bool fast;    /* the order of sums is free, and so is how much of f32 enters a product */
    int64_t m, n, k;
    const void *a, *b; /* on the device, as c: the first element of each */
    void *c;
    int64_t a_row, a_column;
    int64_t b_row, b_column; /* not with a window */
    int64_t c_row;           /* neighbours in a row are neighbours in memory, except for a window */
    int64_t c_elements;      /* from c on to the end of its memory */
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

/* Where the matrices of one of the batch begin, in elements. */
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
