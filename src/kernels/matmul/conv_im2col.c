/* Writes what the outputs of a convolution see as a matrix for matmul_fast_*. Each of n outputs, starting at output
 * args.blocks_down, has a line of k elements, by taps and then by channels, padded to args.m with +0. It reads args.b through
 * the window and writes args.c; lines are args.c_row apart. Outputs are numbered within an image. The batch is that of the
 * product, with images as its last dimension.
 *
 * Bound by memory: a thread writes 16 bytes. Neighbouring threads have neighbouring outputs, which see neighbouring elements.
 */
#include "kernels/matmul/matmul_common.h"

/* A step of k: a tap of a channel. */
typedef struct im2col_step {
    int32_t k, tap_x, tap_y;
    int64_t channel; /* where it starts */
} im2col_step;

DEVICE im2col_step step_of(const matmul_window_32 *w, int64_t image, int32_t k)
{
    const uint32_t row = (uint32_t)k / (uint32_t)w->taps_x, channel = row / (uint32_t)w->taps_y;
    const im2col_step step = {k, (int32_t)((uint32_t)k - row * (uint32_t)w->taps_x),
                              (int32_t)(row - channel * (uint32_t)w->taps_y), image + channel * w->channel_stride};
    return step;
}

/* Returns the bits that the output at (y, x) sees there, +0 outside the image, and moves to the next step. */
DEVICE uint32_t seen(uint32_t bytes, const matmul_args *args, im2col_step *step, int32_t y, int32_t x)
{
    const matmul_window_32 *w = &args->window;
    const int32_t at_y = y + step->tap_y * w->tap_y, at_x = x + step->tap_x * w->tap_x;
    const bool there = step->k < args->k && (uint32_t)at_y < (uint32_t)w->in_y && (uint32_t)at_x < (uint32_t)w->in_x;
    const int64_t at = step->channel + at_y * w->y_stride + at_x * w->x_stride;
    const uint32_t bits = !there ? 0u : bytes == 4 ? ((const uint32_t *)args->b)[at] : ((const uint16_t *)args->b)[at];
    const bool row_ends = step->tap_x + 1 == w->taps_x, channel_ends = row_ends && step->tap_y + 1 == w->taps_y;
    step->k++;
    step->tap_x = row_ends ? 0 : step->tap_x + 1;
    step->tap_y = channel_ends ? 0 : step->tap_y + (row_ends ? 1 : 0);
    step->channel += channel_ends ? w->channel_stride : 0;
    return bits;
}

DEVICE void write_piece(uint32_t bytes, const matmul_args *args, int64_t image, int64_t to, int64_t number)
{
    const matmul_window_32 *w = &args->window;
    const int32_t line = (int32_t)(number % args->n), k = (int32_t)(number / args->n) * (int32_t)(16 / bytes);
    const int32_t output = args->blocks_down + line, out_y = (int32_t)((uint32_t)output / (uint32_t)w->outs_x);
    const int32_t y = w->first_y + out_y * w->step_y, x = w->first_x + (output - out_y * w->outs_x) * w->step_x;
    im2col_step step = step_of(w, image, k);
    uint32_t words[4];
    UNROLL for (int32_t i = 0; i < 4; i++)
    {
        words[i] = seen(bytes, args, &step, y, x);
        if (bytes == 2)
            words[i] |= seen(bytes, args, &step, y, x) << 16;
    }
    const u32x4 piece = {words[0], words[1], words[2], words[3]};
    *(u32x4 *)((char *)args->c + (to + line * args->c_row + k) * bytes) = piece;
}

KERNEL(conv_im2col, matmul_args, MATMUL_THREADS)
{
    const int64_t number = (int64_t)block_index() * MATMUL_THREADS + thread_index();
    const int32_t bytes = args.type == TYPE_F32 ? 4 : 2;
    int64_t a_begin, b_begin, c_begin;
    if (number >= (int64_t)args.n * (args.m / (16 / bytes)))
        return;
    for (int64_t batch = block_index_y(); batch < args.batches; batch += block_count_y()) {
        matmul_begin(&args, batch, &a_begin, &b_begin, &c_begin);
        if (bytes == 4)
            write_piece(4, &args, b_begin, c_begin, number);
        else
            write_piece(2, &args, b_begin, c_begin, number);
    }
}
