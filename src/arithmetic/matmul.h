/* Canonical matrix products, and convolutions expressed as products. Every backend computes exactly this.
 *
 *   c[i][j] = ((+0 + s[0]) + s[1]) + ...      s[x] a chunk of 512 steps of k: acc = +0, then acc = fma(a[i][k], b[k][j], acc)
 *
 * with k increasing. f16 and bf16 are widened first and c is rounded once; i8 gives i32, exact except for wrapping. The total
 * starts at +0, so a result is never -0, and products of zeros (padding at the end of k) can be included or omitted.
 */
#ifndef WW_ARITHMETIC_MATMUL_H
#define WW_ARITHMETIC_MATMUL_H

#include <stdint.h>

enum { MATMUL_CHUNK = 512 };

/* b as an image seen through a moving window: column n is an image, a row and a column of the output, row k is a channel and a
 * tap (y, x) of the window. Tap (ty, tx) of output (oy, ox) reads (first + o * step + t * tap) in each direction, and +0
 * outside the image. Strides are in elements. */
typedef struct matmul_window {
    int64_t taps_y, taps_x;
    int64_t outs_y, outs_x;
    int64_t in_y, in_x;
    int64_t first_y, first_x; /* may be negative, like tap_ */
    int64_t step_y, step_x;
    int64_t tap_y, tap_x;
    int64_t image_stride, channel_stride, y_stride, x_stride;
    int64_t out_image_stride, out_y_stride, out_x_stride;
} matmul_window;

#endif
