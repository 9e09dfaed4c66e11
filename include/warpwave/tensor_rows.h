/* Tensors, continued: operations that read many elements for each result: reductions, softmax, norms, rotary embedding,
 * sorting.
 *
 * Floats are summed in one order on every device: chunks of 4096 elements, each in 64 sums (element i goes to sum i mod 64),
 * folded by halves; then the results of the chunks in the same way. bf16, f16 and f8e4m3 are computed in f32 and rounded once.
 * Checks, results and waiting are as in tensor.h.
 */
#ifndef WARPWAVE_TENSOR_ROWS_H
#define WARPWAVE_TENSOR_ROWS_H

#include <stdbool.h>

#include <warpwave/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ww_reduce {
    WW_REDUCE_SUM = 0, /* integers wrap in their type */
    WW_REDUCE_MIN = 1, /* NaN if an element is; -0 below +0 */
    WW_REDUCE_MAX = 2,
    WW_REDUCE_ARGMIN = 3, /* the position of the first smallest element, as u32; NaN comes before all */
    WW_REDUCE_ARGMAX = 4, /* the same for the largest; NaN comes before all, too */
    WW_REDUCE_MEAN = 5,   /* floats only: the sum divided by the count */
    WW_REDUCE_PROD = 6
} ww_reduce;

/* The name of a reduction ("sum"), "unknown" for other numbers; and the reduction of a name, or -1. */
WW_API const char *ww_reduce_name(ww_reduce op);
WW_API int32_t ww_reduce_of_name(const char *name);

/* Reduces the `count` dimensions at `dims`, in any order; NULL: all of them. argmin and argmax take one.
 * The result has the elements of the other dimensions, in their order. Refuses a dimension twice, and reductions of no
 * elements. */
WW_API ww_status ww_tensor_reduce(ww_reduce op, const ww_tensor *x, const int32_t *dims, int32_t count, ww_tensor *out);

/* Running sums along `dim`: element i is the sum of the elements up to and including i. Floats are summed in one order
 * everywhere: chunks of 64 elements, one after the other within a chunk, the sums of chunks summed the same way and added in
 * front (docs/design/arithmetic.md); integers wrap. Any type but i8. */
WW_API ww_status ww_tensor_cumsum(const ww_tensor *x, int32_t dim, ww_tensor *out);

/* e^(x - m) / sum of e^(x - m) along `dim`, m being the largest there. Floats. */
WW_API ww_status ww_tensor_softmax(const ww_tensor *x, int32_t dim, ww_tensor *out);

/* Along the last dimension: (x - mean) / sqrt(variance + eps) * weight + bias, and x / sqrt(mean of squares + eps) * weight.
 * Weight and bias have rank 1 and x's type; NULL leaves them out. Floats. */
WW_API ww_status ww_tensor_layer_norm(const ww_tensor *x, const ww_tensor *weight, const ww_tensor *bias, double eps,
                                      ww_tensor *out);
WW_API ww_status ww_tensor_rms_norm(const ww_tensor *x, const ww_tensor *weight, double eps, ww_tensor *out);

/* Rotary embedding (rope): rotates pairs (a, b) of the last dimension to (a cos - b sin, a sin + b cos). Pair i is elements 2i
 * and 2i + 1 if `interleaved`, and i and i + half if not. cos and sin have x's shape except for the last dimension, which is
 * half (broadcast with strides of 0), or only the last two of those dimensions. Floats. */
WW_API ww_status ww_tensor_rope(const ww_tensor *x, const ww_tensor *cosines, const ww_tensor *sines, bool interleaved,
                                ww_tensor *out);

/* Sorts along the last dimension, equal elements in their order; NaN is larger than all, -0 equal to +0. Gives the elements and
 * the positions they had (u32); one of the two may be NULL. */
WW_API ww_status ww_tensor_sort(const ww_tensor *x, bool descending, ww_tensor *values, ww_tensor *indices);

/* The first k of that order: the k largest, or the k smallest, best first. */
WW_API ww_status ww_tensor_top_k(const ww_tensor *x, int64_t k, bool largest, ww_tensor *values, ww_tensor *indices);

#ifdef __cplusplus
}
#endif

#endif
