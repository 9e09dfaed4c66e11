/* Reductions: their numbers, the canonical order of sums, and the order of sorting. Shared by CPU code and kernels.
 *
 * The n elements of a result are taken in row-major order of the reduced dimensions. Each chunk of 4096 elements is reduced
 * with 64 accumulators that start at the operation's neutral element. Element i joins accumulator i mod 64, in increasing i.
 * Then, for s = 32,16,8,4,2,1, accumulator j takes in accumulator j + s for j < s. With one chunk, that is the result;
 * otherwise the results of the chunks are the elements of the next round.
 */
#ifndef WW_ARITHMETIC_REDUCE_H
#define WW_ARITHMETIC_REDUCE_H

#include <stdint.h>

#include "arithmetic/math/f32.h"
#include "arithmetic/math/f64.h"
#include "arithmetic/types.h"

/* Same values as ww_reduce (static assertions in tensor/reduce.c). */
enum reduce_op { REDUCE_SUM, REDUCE_MIN, REDUCE_MAX, REDUCE_ARGMIN, REDUCE_ARGMAX, REDUCE_MEAN, REDUCE_PROD, REDUCE_COUNT };

enum row_op { ROW_SOFTMAX, ROW_LAYER_NORM, ROW_RMS_NORM };

enum { REDUCE_RANK = 8, REDUCE_CHUNK = 4096, REDUCE_LANES = CANON_LANES };

/* Dimensions and their strides. */
typedef struct reduce_dims {
    int32_t rank;
    int32_t unused;
    int64_t shape[REDUCE_RANK];
    int64_t strides[REDUCE_RANK];
} reduce_dims;

/* The offset of element i. If there are several dimensions, i must be below 2^32, because 64-bit division is slow on GPUs.
 * reduce_place_64 accepts any i. */
CANON_FUNCTION int64_t reduce_place(const reduce_dims *dims, int64_t i)
{
    int64_t place = 0;
    uint32_t rest = (uint32_t)i;
    if (dims->rank == 1)
        return i * dims->strides[0];
    for (int32_t d = dims->rank - 1; d >= 0; d--) {
        const uint32_t next = rest / (uint32_t)dims->shape[d];
        place += (int64_t)(rest - next * (uint32_t)dims->shape[d]) * dims->strides[d];
        rest = next;
    }
    return place;
}

CANON_FUNCTION int64_t reduce_place_64(const reduce_dims *dims, int64_t i)
{
    int64_t place = 0;
    if (dims->rank == 1)
        return i * dims->strides[0];
    for (int32_t d = dims->rank - 1; d >= 0; d--) {
        const int64_t next = i / dims->shape[d];
        place += (i - next * dims->shape[d]) * dims->strides[d];
        i = next;
    }
    return place;
}

/* ---- joining two elements: the operation is a constant wherever this is inlined ------------------------------------------ */

MATH_FUNCTION float reduce_neutral_f32(int32_t op)
{
    return op == REDUCE_PROD ? 1.0f : op == REDUCE_MIN ? MATH_INF_F32 : op == REDUCE_MAX ? -MATH_INF_F32 : 0.0f;
}

MATH_FUNCTION double reduce_neutral_f64(int32_t op)
{
    return op == REDUCE_PROD ? 1.0 : op == REDUCE_MIN ? MATH_INF_F64 : op == REDUCE_MAX ? -MATH_INF_F64 : 0.0;
}

MATH_FUNCTION int64_t reduce_neutral_i64(int32_t op)
{
    return op == REDUCE_PROD ? 1 : op == REDUCE_MIN ? INT64_MAX : op == REDUCE_MAX ? INT64_MIN : 0;
}

MATH_FUNCTION float reduce_join_f32(int32_t op, float a, float b)
{
    return op == REDUCE_PROD ? a * b : op == REDUCE_MIN ? canon_min_f32(a, b) : op == REDUCE_MAX ? canon_max_f32(a, b) : a + b;
}

MATH_FUNCTION double reduce_join_f64(int32_t op, double a, double b)
{
    return op == REDUCE_PROD ? a * b : op == REDUCE_MIN ? canon_min_f64(a, b) : op == REDUCE_MAX ? canon_max_f64(a, b) : a + b;
}

MATH_FUNCTION int64_t reduce_join_i64(int32_t op, int64_t a, int64_t b)
{
    return op == REDUCE_PROD  ? (int64_t)((uint64_t)a * (uint64_t)b)
           : op == REDUCE_MIN ? (a < b ? a : b)
           : op == REDUCE_MAX ? (a > b ? a : b)
                              : (int64_t)((uint64_t)a + (uint64_t)b);
}

/* Whether b replaces a, which came before it. A NaN replaces anything except another NaN. */
#define REDUCE_BETTER(T, kind)                                                                                                 \
    MATH_FUNCTION int reduce_better_##kind(int32_t op, T a, T b)                                                               \
    {                                                                                                                          \
        return op == REDUCE_ARGMAX ? (b > a) | ((b != b) & (a == a)) : (b < a) | ((b != b) & (a == a));                        \
    }
REDUCE_BETTER(float, f32)
REDUCE_BETTER(double, f64)
REDUCE_BETTER(int64_t, i64)
#undef REDUCE_BETTER

/* ---- the order of sorting ------------------------------------------------------------------------------------------------ */

/* Smaller keys come first. NaN sorts after all floats; zeros are equal. */
CANON_FUNCTION uint64_t sort_key_f64(double x)
{
    const uint64_t bits = canon_double_bits(x + 0.0);
    const uint64_t ordered = bits >> 63 ? ~bits : bits | 0x8000000000000000u;
    return x == x ? ordered : 0xfffffffffffffffeu;
}

CANON_FUNCTION uint64_t sort_key_i64(int64_t x)
{
    return (uint64_t)x ^ 0x8000000000000000u;
}

#endif
