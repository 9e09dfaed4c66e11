/* Loops over rows of tensors that each instruction set compiles for itself (src/cpu/tensor/row_loops_template.h): sums in
 * canonical order (arithmetic/reduce.h), and the operations of softmax, norms and rotary embedding on each
 * element. A call handles a block of a row.
 */
#ifndef WW_CPU_TENSOR_ROW_LOOPS_H
#define WW_CPU_TENSOR_ROW_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct row_loops {
    /* Join elements to 64 accumulators; op is REDUCE_SUM, _PROD, _MIN or _MAX. A block starts at a multiple of 64 in its row.
     */
    void (*join_f32)(int32_t op, float *sums, const float *x, int64_t count);
    void (*join_f64)(int32_t op, double *sums, const double *x, int64_t count);
    void (*join_i64)(int32_t op, int64_t *sums, const int64_t *x, int64_t count);
    /* Fold the 64 accumulators by halves, in place; the result is sums[0]. */
    void (*fold_f32)(int32_t op, float *sums);
    void (*fold_f64)(int32_t op, double *sums);
    void (*fold_i64)(int32_t op, int64_t *sums);
    /* Joins elements of f32, f16 or bf16; returns false if the set has no such loop. NULL: the set has none at all. If a
     * minimum or maximum becomes NaN, that may be in any of the accumulators. */
    bool (*join_direct)(int32_t op, int32_t type, float *sums, const void *x, int64_t count);
    /* Sums `rows` rows of `count` elements, which are `stride` elements apart; returns false like join_direct. */
    bool (*sum_rows)(int32_t type, float *out, const void *x, int64_t stride, int64_t rows, int64_t count);
    /* Joins x[i] to sums[i]. */
    void (*each_f32)(int32_t op, float *sums, const float *x, int64_t count);
    void (*each_f64)(int32_t op, double *sums, const double *x, int64_t count);
    void (*each_i64)(int32_t op, int64_t *sums, const int64_t *x, int64_t count);
    /* The same for rows that are `stride` apart: row i joins the sums of lane i mod 64, which are `columns` apart. */
    void (*each_row_f32)(int32_t op, float *sums, const float *x, int64_t stride, int64_t rows, int64_t columns);
    void (*each_row_f64)(int32_t op, double *sums, const double *x, int64_t stride, int64_t rows, int64_t columns);
    void (*each_row_i64)(int32_t op, int64_t *sums, const int64_t *x, int64_t stride, int64_t rows, int64_t columns);
    bool (*each_row_direct)(int32_t op, int32_t type, float *sums, const void *x, int64_t stride, int64_t rows,
                            int64_t columns); /* returns false like join_direct */
    /* Adds (x - center)^2, by fma. */
    void (*squares_f32)(float *sums, const float *x, int64_t count, float center);
    void (*squares_f64)(double *sums, const double *x, int64_t count, double center);
    /* to = e^(x - less), which is also added to the sums; to = x * by. `to` may be x. */
    void (*exponentials_f32)(float *to, float *sums, const float *x, int64_t count, float less);
    void (*exponentials_f64)(double *to, double *sums, const double *x, int64_t count, double less);
    void (*scale_f32)(float *to, const float *x, int64_t count, float by);
    void (*scale_f64)(double *to, const double *x, int64_t count, double by);
    /* The same with its own less[i], by[i] and sums[i] for each element i. */
    void (*exponentials_each_f32)(float *to, float *sums, const float *x, int64_t count, const float *less);
    void (*exponentials_each_f64)(double *to, double *sums, const double *x, int64_t count, const double *less);
    void (*scale_each_f32)(float *to, const float *x, int64_t count, const float *by);
    void (*scale_each_f64)(double *to, const double *x, int64_t count, const double *by);
    /* to = (x - center) * by * weight + bias; weight and bias may be NULL. */
    void (*normalize_f32)(float *to, const float *x, int64_t count, float center, float by, const float *weight,
                          const float *bias);
    void (*normalize_f64)(double *to, const double *x, int64_t count, double center, double by, const double *weight,
                          const double *bias);
    /* Rotate pairs (a, b) by their angles; the results may overwrite a and b. */
    void (*rope_f32)(float *to_a, float *to_b, const float *a, const float *b, const float *cosine, const float *sine,
                     int64_t count);
    void (*rope_f64)(double *to_a, double *to_b, const double *a, const double *b, const double *cosine, const double *sine,
                     int64_t count);
} row_loops;

/* Prefetches the row that is read next: rows are far apart, and hardware prefetchers only find neighbours. */
static inline void prefetch_row(const char *row, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += 64)
        __builtin_prefetch(row + at);
}

#endif
