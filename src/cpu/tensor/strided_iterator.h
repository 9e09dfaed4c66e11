/* Iterates over the elements of a job in order, span by span along its last dimension, and copies such spans. */
#ifndef WW_CPU_TENSOR_STRIDED_ITERATOR_H
#define WW_CPU_TENSOR_STRIDED_ITERATOR_H

#include <string.h>

#include "base/integers.h"
#include "device/tensor_jobs.h"

/* A position in the shape of a job. */
typedef struct iterator {
    int64_t at[TENSOR_RANK_MAX];
} iterator;

static inline iterator iterator_at(const elementwise_job *job, int64_t element)
{
    iterator it = {{0}};
    for (int32_t d = job->rank - 1; d >= 0; d--) {
        it.at[d] = element % job->shape[d];
        element /= job->shape[d];
    }
    return it;
}

static inline int64_t iterator_offset(const elementwise_job *job, const tensor_operand *operand, const iterator *it)
{
    int64_t place = 0;
    for (int32_t d = 0; d < job->rank; d++)
        place += it->at[d] * operand->strides[d];
    return place;
}

/* Moves forward by `step` elements, which stay within the last dimension. */
static inline void iterator_advance(const elementwise_job *job, iterator *it, int64_t step)
{
    int32_t d = job->rank - 1;
    it->at[d] += step;
    for (; d > 0 && it->at[d] == job->shape[d]; d--) {
        it->at[d] = 0;
        it->at[d - 1]++;
    }
}

/* Returns how many of `left` elements follow in this line of the last dimension. */
static inline int64_t iterator_span(const elementwise_job *job, const iterator *it, int64_t left)
{
    const int64_t span = job->shape[job->rank - 1] - it->at[job->rank - 1];
    return min_i64(span, left);
}

/* Elements that are `stride` elements apart, to be written or read. */
typedef struct strided_to {
    void *data;
    int64_t stride;
} strided_to;

typedef struct strided_from {
    const void *data;
    int64_t stride;
} strided_from;

#define STRIDED_COPY(bits)                                                                                                     \
    {                                                                                                                          \
        uint##bits##_t *y = to.data;                                                                                           \
        const uint##bits##_t *x = from.data;                                                                                   \
        for (int64_t i = 0; i < count; i++)                                                                                    \
            y[i * to.stride] = x[i * from.stride];                                                                             \
        break;                                                                                                                 \
    }

static inline void copy_strided(int32_t bytes, strided_to to, strided_from from, int64_t count)
{
    if (to.stride == 1 && from.stride == 1) {
        memcpy(to.data, from.data, (size_t)(count * bytes));
        return;
    }
    switch (bytes) {
    case 1:
        STRIDED_COPY(8)
    case 2:
        STRIDED_COPY(16)
    case 4:
        STRIDED_COPY(32)
    default:
        STRIDED_COPY(64)
    }
}

#endif
