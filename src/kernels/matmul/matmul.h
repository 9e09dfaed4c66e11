/* Arguments of the kernels for matrix products and convolutions; arithmetic/matmul.h defines what they compute.
 *
 * Which kernel when (src/gpu/tensor/matmul.c, conv.c), fastest first:
 *   vendor's BLAS        fast mode, a plain product of types that it has
 *   matmul_fast_TYPE     fast mode without it, on AMD's matrix units: 128 x 128 results per block
 *   conv_shared_TYPE     fast mode, a convolution with as many outputs as inputs, steps of one: the image in shared memory
 *   conv_fast_TYPE       fast mode, every other convolution, on NVIDIA's matrix units
 *   conv_im2col_BITS     fast mode, every other convolution on AMD's: what outputs see is written out, and matmul_fast_TYPE
 *   matmul_f32_128       128 x 128 results per block, if there is a block for every compute unit
 *   conv_f32_64_256      64 x 256: convolutions to few channels
 *   ..._64               64 x 64: small products, f64, and i8, whose products are exact
 * Those of canonical mode (the last three) have identical bits everywhere; those of fast mode are within a stated tolerance.
 */
#ifndef WW_KERNELS_MATMUL_MATMUL_H
#define WW_KERNELS_MATMUL_MATMUL_H

#include "arithmetic/matmul.h"

enum {
    MATMUL_THREADS = 256,
    MATMUL_STEPS = 16, /* steps of k in shared memory at a time; divides a chunk */
    MATMUL_ARGS_BATCH_RANK = 8,
    MATMUL_MARKED_TAPS = 15, /* max rows and columns of a window for kernels that use marks */
    MATMUL_FAST_SIDE = 128,  /* rows and columns of a tile of matmul_fast_* */
};

/* How a matrix is read: four elements at once along one of its directions, or one by one. */
enum { MATMUL_ALONG_K, MATMUL_ACROSS_K, MATMUL_STRIDED };

/* A window for the kernels: only strides need more than 32 bits, and registers are scarce. */
typedef struct matmul_window_32 {
    int32_t taps_y, taps_x;
    int32_t outs_y, outs_x;
    int32_t in_y, in_x;
    int32_t first_y, first_x;
    int32_t step_y, step_x;
    int32_t tap_y, tap_x;
    int64_t image_stride, channel_stride, y_stride, x_stride;
    int64_t out_image_stride, out_y_stride, out_x_stride;
} matmul_window_32;

typedef struct matmul_args {
    const void *a, *b;
    void *c;
    float *totals; /* for f16 and bf16, laid out like c; unused if k is one chunk */
    int32_t type;
    int32_t a_layout, b_layout;
    int32_t c_quads; /* four results may be written at once */
    int32_t m, n, k;
    int32_t blocks_down; /* of tiles */
    int64_t a_row, a_column, b_row, b_column, c_row;
    int64_t batches;
    int32_t batch_rank, unused;
    int64_t batch[MATMUL_ARGS_BATCH_RANK], a_batch[MATMUL_ARGS_BATCH_RANK], b_batch[MATMUL_ARGS_BATCH_RANK],
        c_batch[MATMUL_ARGS_BATCH_RANK];
    matmul_window_32 window; /* for kernels with a window */
} matmul_args;

/* conv_shared.c: a convolution with as many outputs as inputs. */
enum {
    CONV_SLAB_BYTES = 64,   /* bytes of channels of a pixel in shared memory */
    CONV_TAPS_SHARED = 9,   /* max taps whose weights are there at a time */
    CONV_PIXELS_MAX = 1000, /* max pixels there: 100 KB with the weights, so two blocks fit */
};

typedef struct conv_args {
    matmul_args product;
    uint32_t *weights; /* arranged */
    int64_t pieces;    /* pieces of weights, 16 bytes each */
    int32_t channels, slabs, taps;
    int32_t pixels;    /* that the taps of a block's outputs read */
    int32_t shift_min; /* of a tap, from where the first looks */
    int32_t pairs;     /* two results may be written at once */
    int32_t together;  /* taps whose weights are in shared memory at a time; on NVIDIA's chips CONV_TAPS_SHARED */
    int32_t columns;   /* outputs of a block; on NVIDIA's chips 256 */
} conv_args;

#endif
