/* The loops of row_loops.h, written once. One file of each instruction set includes this and defines ROW_LOOPS as the name of
 * its table. The compiler vectorizes them with that file's flags.
 *
 * Everything exists for f32, f64 and i64, so each group of functions is a macro that is expanded for the three types: `kind` is
 * f32, f64 or i64 and ends the functions' names, T is the C type. From inside to outside:
 *
 *   JOIN_LOOP       64 accumulators take `count` elements, element i by accumulator i mod 64: the order of arithmetic/reduce.h
 *   NAME_by_kind    a loop with the operation as a parameter, inlined
 *   BY_OPERATION    a switch over the operation that calls such a loop with a constant in each case, so that the loop has no
 *                   branch
 *   NAME_kind       what the table has
 *
 * join: elements of one row into 64 sums. each: one element into each sum (columns). fold: 64 sums into one. each_row: rows
 * into the sums of columns, 64 rows in turn. The groups after REDUCTIONS are ROWS, for softmax and norms, in the same manner.
 */
#ifndef WW_CPU_TENSOR_ROW_LOOPS_TEMPLATE_H
#define WW_CPU_TENSOR_ROW_LOOPS_TEMPLATE_H

#include <string.h>

#include "arithmetic/convert.h"
#include "arithmetic/reduce.h"
#include "arithmetic/rows.h"
#include "cpu/tensor/row_loops.h"

#define INLINE static inline __attribute__((always_inline))

/* NOLINTBEGIN(bugprone-macro-parentheses): a type cannot be in parentheses */

/* Joins `count` elements of x. JOINED is the new value of accumulator j, from its old value (`sum`) and element i. */
#define JOIN_LOOP(T, JOINED)                                                                                                   \
    T own[REDUCE_LANES];                                                                                                       \
    int64_t i = 0;                                                                                                             \
    memcpy(own, sums, sizeof own);                                                                                             \
    for (; i + REDUCE_LANES <= count; i += REDUCE_LANES)                                                                       \
        for (int64_t j = 0; j < REDUCE_LANES; j++) {                                                                           \
            const T sum = own[j];                                                                                              \
            const T element = x[i + j];                                                                                        \
            own[j] = JOINED;                                                                                                   \
        }                                                                                                                      \
    for (int64_t j = 0; i + j < count; j++) {                                                                                  \
        const T sum = own[j];                                                                                                  \
        const T element = x[i + j];                                                                                            \
        own[j] = JOINED;                                                                                                       \
    }                                                                                                                          \
    memcpy(sums, own, sizeof own);

/* The operation is a constant inside each case. */
#define BY_OPERATION(DO, kind)                                                                                                 \
    switch (op) {                                                                                                              \
    case REDUCE_PROD:                                                                                                          \
        DO(REDUCE_PROD, kind);                                                                                                 \
        break;                                                                                                                 \
    case REDUCE_MIN:                                                                                                           \
        DO(REDUCE_MIN, kind);                                                                                                  \
        break;                                                                                                                 \
    case REDUCE_MAX:                                                                                                           \
        DO(REDUCE_MAX, kind);                                                                                                  \
        break;                                                                                                                 \
    default:                                                                                                                   \
        DO(REDUCE_SUM, kind);                                                                                                  \
        break;                                                                                                                 \
    }

#define REDUCTIONS(T, kind)                                                                                                    \
    INLINE void join_by_##kind(int32_t op, T *restrict sums, const T *restrict x, int64_t count)                               \
    {                                                                                                                          \
        JOIN_LOOP(T, reduce_join_##kind(op, sum, element))                                                                     \
    }                                                                                                                          \
    static void join_##kind(int32_t op, T *restrict sums, const T *restrict x, int64_t count)                                  \
    {                                                                                                                          \
        BY_OPERATION(JOIN, kind);                                                                                              \
    }                                                                                                                          \
    INLINE void each_by_##kind(int32_t op, T *restrict sums, const T *restrict x, int64_t count)                               \
    {                                                                                                                          \
        for (int64_t i = 0; i < count; i++)                                                                                    \
            sums[i] = reduce_join_##kind(op, sums[i], x[i]);                                                                   \
    }                                                                                                                          \
    static void each_##kind(int32_t op, T *restrict sums, const T *restrict x, int64_t count)                                  \
    {                                                                                                                          \
        BY_OPERATION(EACH, kind);                                                                                              \
    }                                                                                                                          \
    INLINE void fold_by_##kind(int32_t op, T *sums)                                                                            \
    {                                                                                                                          \
        for (int32_t s = REDUCE_LANES / 2; s > 0; s /= 2)                                                                      \
            for (int32_t j = 0; j < s; j++)                                                                                    \
                sums[j] = reduce_join_##kind(op, sums[j], sums[j + s]);                                                        \
    }                                                                                                                          \
    static void fold_##kind(int32_t op, T *sums)                                                                               \
    {                                                                                                                          \
        BY_OPERATION(FOLD, kind);                                                                                              \
    }                                                                                                                          \
    static void each_row_##kind(int32_t op, T *restrict sums, const T *restrict x, int64_t stride, int64_t rows,               \
                                int64_t columns)                                                                               \
    {                                                                                                                          \
        BY_OPERATION(EACH_ROW, kind);                                                                                          \
    }

#define JOIN(op, kind) join_by_##kind(op, sums, x, count)
#define FOLD(op, kind) fold_by_##kind(op, sums)
#define EACH(op, kind) each_by_##kind(op, sums, x, count)

#define EACH_ROW(op, kind)                                                                                                     \
    for (int64_t row = 0; row < rows; row++) {                                                                                 \
        prefetch_row((const char *)(x + (row + 1) * stride), columns *(int64_t)sizeof *x);                                     \
        each_by_##kind(op, sums + row % REDUCE_LANES * columns, x + row * stride, columns);                                    \
    }

REDUCTIONS(float, f32)
REDUCTIONS(double, f64)
REDUCTIONS(int64_t, i64)

#define ROWS(T, kind)                                                                                                          \
    static void squares_##kind(T *restrict sums, const T *restrict x, int64_t count, T center)                                 \
    {                                                                                                                          \
        JOIN_LOOP(T, row_square_##kind(sum, element, center))                                                                  \
    }                                                                                                                          \
    static void exponentials_##kind(T *to, T *restrict sums, const T *x, int64_t count, T less)                                \
    {                                                                                                                          \
        for (int64_t i = 0; i < count; i++)                                                                                    \
            to[i] = row_exponential_##kind(x[i], less);                                                                        \
        join_by_##kind(REDUCE_SUM, sums, to, count);                                                                           \
    }                                                                                                                          \
    static void scale_##kind(T *to, const T *x, int64_t count, T by)                                                           \
    {                                                                                                                          \
        for (int64_t i = 0; i < count; i++)                                                                                    \
            to[i] = one_nan_##kind(x[i] * by);                                                                                 \
    }                                                                                                                          \
    static void exponentials_each_##kind(T *to, T *restrict sums, const T *x, int64_t count, const T *restrict less)           \
    {                                                                                                                          \
        for (int64_t i = 0; i < count; i++)                                                                                    \
            to[i] = row_exponential_##kind(x[i], less[i]);                                                                     \
        each_by_##kind(REDUCE_SUM, sums, to, count);                                                                           \
    }                                                                                                                          \
    static void scale_each_##kind(T *to, const T *x, int64_t count, const T *restrict by)                                      \
    {                                                                                                                          \
        for (int64_t i = 0; i < count; i++)                                                                                    \
            to[i] = one_nan_##kind(x[i] * by[i]);                                                                              \
    }                                                                                                                          \
    static void normalize_##kind(T *to, const T *x, int64_t count, T center, T by, const T *weight, const T *bias)             \
    {                                                                                                                          \
        if (!weight && !bias)                                                                                                  \
            for (int64_t i = 0; i < count; i++)                                                                                \
                to[i] = one_nan_##kind((x[i] - center) * by);                                                                  \
        else if (!bias)                                                                                                        \
            for (int64_t i = 0; i < count; i++)                                                                                \
                to[i] = one_nan_##kind((x[i] - center) * by * weight[i]);                                                      \
        else                                                                                                                   \
            for (int64_t i = 0; i < count; i++)                                                                                \
                to[i] = one_nan_##kind(row_affine_##kind((x[i] - center) * by, weight ? weight[i] : (T)1, bias[i]));           \
    }                                                                                                                          \
    static void rope_##kind(T *to_a, T *to_b, const T *a, const T *b, const T *cosine, const T *sine, int64_t count)           \
    {                                                                                                                          \
        for (int64_t i = 0; i < count; i++) {                                                                                  \
            const T one = a[i];                                                                                                \
            const T other = b[i];                                                                                              \
            to_a[i] = one_nan_##kind(row_turn_first_##kind(one, other, cosine[i], sine[i]));                                   \
            to_b[i] = one_nan_##kind(row_turn_second_##kind(one, other, cosine[i], sine[i]));                                  \
        }                                                                                                                      \
    }

ROWS(float, f32)
ROWS(double, f64)

/* NOLINTEND(bugprone-macro-parentheses) */

#ifdef JOIN_DIRECT
/* Uses the set's own loop if it has one for the operation. */
static void join_f32_direct(int32_t op, float *restrict sums, const float *restrict x, int64_t count)
{
    if (!JOIN_DIRECT(op, TYPE_F32, sums, x, count))
        join_f32(op, sums, x, count);
}
#endif

const row_loops ROW_LOOPS = {
#ifdef JOIN_DIRECT
    .join_f32 = join_f32_direct,
    .join_direct = JOIN_DIRECT,
    .each_row_direct = EACH_ROW_DIRECT,
    .sum_rows = SUM_ROWS,
#else
    .join_f32 = join_f32,
#endif
    .join_f64 = join_f64,
    .join_i64 = join_i64,
    .fold_f32 = fold_f32,
    .each_f32 = each_f32,
    .each_row_f32 = each_row_f32,
    .fold_f64 = fold_f64,
    .each_f64 = each_f64,
    .each_row_f64 = each_row_f64,
    .fold_i64 = fold_i64,
    .each_i64 = each_i64,
    .each_row_i64 = each_row_i64,
    .squares_f32 = squares_f32,
    .squares_f64 = squares_f64,
    .exponentials_f32 = exponentials_f32,
    .exponentials_f64 = exponentials_f64,
    .scale_f32 = scale_f32,
    .scale_f64 = scale_f64,
    .exponentials_each_f32 = exponentials_each_f32,
    .exponentials_each_f64 = exponentials_each_f64,
    .scale_each_f32 = scale_each_f32,
    .scale_each_f64 = scale_each_f64,
    .normalize_f32 = normalize_f32,
    .normalize_f64 = normalize_f64,
    .rope_f32 = rope_f32,
    .rope_f64 = rope_f64,
};

#endif
