/* Loops over rows of tensors that each instruction set compiles for itself (src/cpu/tensor/row_loops_template.h): sums in
 * canonical order (arithmetic/reduce.h), and what softmax, norms and rotary embedding do to each element.
 *
 * Counts are blocks. A block that is joined to accumulators begins at a multiple of 64 of the row.
 */
#ifndef WW_CPU_TENSOR_ROW_LOOPS_H
#define WW_CPU_TENSOR_ROW_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct row_loops {
    /* Joins elements to 64 accumulators: op is REDUCE_SUM, _PROD, _MIN or _MAX. */
    void (*join_f32)(int32_t op, float *sums, const float *x, int64_t count);
    void (*join_f64)(int32_t op, double *sums, const double *x, int64_t count);
    void (*join_i64)(int32_t op, int64_t *sums, const int64_t *x, int64_t count);
    /* The 64 accumulators folded by halves, in place; the result is sums[0]. */
    void (*fold_f32)(int32_t op, float *sums);
    void (*fold_f64)(int32_t op, double *sums);
    void (*fold_i64)(int32_t op, int64_t *sums);
    /* Joins elements of f32, f16 or bf16; false where the set has no such loop. NULL: it has none at all. That an extreme is
     * NaN may show in another of the accumulators. */
    bool (*join_direct)(int32_t op, int32_t type, float *sums, const void *x, int64_t count);
    /* The sums of `rows` rows of `count` elements, `stride` elements from one to the next; as join_direct. */
    bool (*sum_rows)(int32_t type, float *out, const void *x, int64_t stride, int64_t rows, int64_t count);
    /* Side by side: sums[i] takes in x[i]. */
    void (*each_f32)(int32_t op, float *sums, const float *x, int64_t count);
    void (*each_f64)(int32_t op, double *sums, const double *x, int64_t count);
    void (*each_i64)(int32_t op, int64_t *sums, const int64_t *x, int64_t count);
    /* The same for rows `stride` apart, of which row i joins the sums of lane i mod 64, which are `columns` apart. */
    void (*each_row_f32)(int32_t op, float *sums, const float *x, int64_t stride, int64_t rows, int64_t columns);
    void (*each_row_f64)(int32_t op, double *sums, const double *x, int64_t stride, int64_t rows, int64_t columns);
    void (*each_row_i64)(int32_t op, int64_t *sums, const int64_t *x, int64_t stride, int64_t rows, int64_t columns);
    bool (*each_row_direct)(int32_t op, int32_t type, float *sums, const void *x, int64_t stride, int64_t rows,
                            int64_t columns); /* as join_direct */
    /* Joins (x - center)^2, by fma. */
    void (*squares_f32)(float *sums, const float *x, int64_t count, float center);
    void (*squares_f64)(double *sums, const double *x, int64_t count, double center);
    /* to = e^(x - less), which joins the sums; to = x * by. `to` may be x. */
    void (*exponentials_f32)(float *to, float *sums, const float *x, int64_t count, float less);
    void (*exponentials_f64)(double *to, double *sums, const double *x, int64_t count, double less);
    void (*scale_f32)(float *to, const float *x, int64_t count, float by);
    void (*scale_f64)(double *to, const double *x, int64_t count, double by);
    /* The same side by side: element i has its own less[i], by[i] and sums[i]. */
    void (*exponentials_each_f32)(float *to, float *sums, const float *x, int64_t count, const float *less);
    void (*exponentials_each_f64)(double *to, double *sums, const double *x, int64_t count, const double *less);
    void (*scale_each_f32)(float *to, const float *x, int64_t count, const float *by);
    void (*scale_each_f64)(double *to, const double *x, int64_t count, const double *by);
    /* to = (x - center) * by * weight + bias; weight and bias may be NULL. */
    void (*normalize_f32)(float *to, const float *x, int64_t count, float center, float by, const float *weight,
                          const float *bias);
    void (*normalize_f64)(double *to, const double *x, int64_t count, double center, double by, const double *weight,
                          const double *bias);
    /* Pairs (a, b) rotated by their angles; the results may be a and b. */
    void (*rope_f32)(float *to_a, float *to_b, const float *a, const float *b, const float *cosine, const float *sine,
                     int64_t count);
    void (*rope_f64)(double *to_a, double *to_b, const double *a, const double *b, const double *cosine, const double *sine,
                     int64_t count);
} row_loops;

/* Prefetches the row that is read next: rows are far apart, and processors guess neighbours only. */
static inline void prefetch_row(const char *row, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += 64)
        __builtin_prefetch(row + at);
}

#endif
