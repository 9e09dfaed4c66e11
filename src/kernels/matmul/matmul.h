/* Canonical matrix products: what every backend shares of them, and what the kernels take.
 *
 *   c[i][j] = ((+0 + s[0]) + s[1]) + ...      s[x] a chunk of 512 steps of k: acc = +0, then acc = fma(a[i][k], b[k][j], acc)
 *
 * with k increasing. f16 and bf16 are widened first and c is rounded once; i8 gives i32, exact but for wrapping. The total
 * starts at +0, so that a result is never -0, and it makes no difference whether a product of zeros (padding at the end of k)
 * is carried out or left out.
 */
#ifndef WW_KERNELS_MATMUL_MATMUL_H
#define WW_KERNELS_MATMUL_MATMUL_H

#include <stdint.h>

enum { MATMUL_CHUNK = 512 };

/* b as an image seen through a moving window: column n is an image, a row and a column of the output, row k is a channel and a
 * tap (y, x) of the window. Tap (ty, tx) of output (oy, ox) looks at (first + o * step + t * tap) in each direction; outside of
 * the image there is +0. Strides are in elements. */
typedef struct matmul_window {
    int64_t taps_y, taps_x;
    int64_t outs_y, outs_x;
    int64_t in_y, in_x;
    int64_t first_y, first_x; /* may be negative, as tap_ may */
    int64_t step_y, step_x;
    int64_t tap_y, tap_x;
    int64_t image_stride, channel_stride, y_stride, x_stride;
    int64_t out_image_stride, out_y_stride, out_x_stride;
} matmul_window;

/* ---- what the kernels take ----------------------------------------------------------------------------------------------- */

enum {
    MATMUL_THREADS = 256,
    MATMUL_STEPS = 16, /* of k that pass through shared memory at a time; divides a chunk */
    MATMUL_ARGS_BATCH_RANK = 8,
    MATMUL_MARKED_TAPS = 15, /* rows and columns of a window for the kernels that tell its taps apart by marks */
};

/* How a matrix is read: four elements at once along one of its directions, or one by one. */
enum { MATMUL_LIES_ALONG_K, MATMUL_LIES_ACROSS_K, MATMUL_LIES_APART };

/* A window for the kernels: nothing but strides needs more than 32 bits, and registers are scarce. */
typedef struct matmul_seen {
    int32_t taps_y, taps_x;
    int32_t outs_y, outs_x;
    int32_t in_y, in_x;
    int32_t first_y, first_x;
    int32_t step_y, step_x;
    int32_t tap_y, tap_x;
    int64_t image_stride, channel_stride, y_stride, x_stride;
    int64_t out_image_stride, out_y_stride, out_x_stride;
} matmul_seen;

typedef struct matmul_args {
    const void *a, *b;
    void *c;
    float *totals; /* of f16 and bf16, placed as c is; anything where k is one chunk */
    int32_t type;
    int32_t a_lies, b_lies;
    int32_t c_fours; /* four results may be written at once */
    int32_t m, n, k;
    int32_t blocks_down; /* of tiles */
    int64_t a_row, a_column, b_row, b_column, c_row;
    int64_t batches;
    int32_t batch_rank, unused;
    int64_t batch[MATMUL_ARGS_BATCH_RANK], a_batch[MATMUL_ARGS_BATCH_RANK], b_batch[MATMUL_ARGS_BATCH_RANK],
        c_batch[MATMUL_ARGS_BATCH_RANK];
    matmul_seen window; /* of kernels that have one */
} matmul_args;

/* conv_shared.c: a convolution of which every output has an input at its place. */
enum {
    CONV_SLAB_BYTES = 64,    /* of channels of a pixel in shared memory */
    CONV_TAPS_HELD = 9,      /* whose weights are there at a time */
    CONV_PIXELS_MOST = 1000, /* there: 100 KB with the weights, so that two blocks have room */
};

typedef struct conv_args {
    matmul_args product;
    uint32_t *weights; /* arranged */
    int64_t pieces;    /* of them, 16 bytes each */
    int32_t channels, slabs, taps;
    int32_t pixels;      /* that the taps of a block's outputs look at */
    int32_t least_shift; /* of a tap, from where the first looks */
    int32_t pairs;       /* two results may be written at once */
} conv_args;

#endif
