/* Convolutions of u8 and u32. They wrap, so sums are the same in any order and each output is computed directly from the
 * definition. A plain convolution reads input o * stride - padding + tap * dilation; a transposed one reads input (o + padding
 * - tap * dilation) / stride if that is an integer.
 */
#ifndef WW_ARITHMETIC_CONV_INTEGER_H
#define WW_ARITHMETIC_CONV_INTEGER_H

#include <stdbool.h>
#include <stdint.h>

#include "arithmetic/canon.h"
#include "arithmetic/types.h"

enum { CONV_INTEGER_THREADS = 256 };

/* One of the two directions; sizes are at most CONV_INTEGER_SIZE_MAX. */
typedef struct conv_integer_axis {
    int32_t in, kernel, out;
    int32_t padding, stride, dilation;
    int64_t x_stride, w_stride; /* strides of the input and the kernel, in elements */
} conv_integer_axis;

enum { CONV_INTEGER_SIZE_MAX = INT32_MAX };

typedef struct conv_integer_args {
    const void *x, *w;
    void *out;                     /* dense: [images, out_channels, y, x] */
    int64_t count;                 /* outputs */
    int64_t x_image, x_channel;    /* strides */
    int64_t w_in, w_out, w_group;  /* from one channel to the next, and from one group to the next */
    conv_integer_axis y, along;    /* rows, and along a row */
    int32_t group_ins, group_outs; /* channels per group */
    int32_t out_channels;          /* of all groups */
    int32_t type, transposed, unused;
} conv_integer_args;

/* The index of the input that a tap reads, or -1. */
CANON_FUNCTION int64_t conv_integer_input(const conv_integer_axis *a, int32_t transposed, int32_t out, int32_t tap)
{
    const int64_t reach = transposed ? (int64_t)out + a->padding - (int64_t)tap * a->dilation
                                     : (int64_t)out * a->stride - a->padding + (int64_t)tap * a->dilation;
    const int64_t at = transposed && reach >= 0 ? reach / a->stride : reach;
    const bool whole = !transposed || at * a->stride == reach;
    return reach >= 0 && whole && at < a->in ? at : -1;
}

CANON_FUNCTION uint32_t conv_integer_load(const void *from, int32_t type, int64_t at)
{
    return type == TYPE_U8 ? ((const uint8_t *)from)[at] : ((const uint32_t *)from)[at];
}

CANON_FUNCTION void conv_integer_output(const conv_integer_args *args, int64_t output)
{
    const int64_t row = output / args->along.out, plane = row / args->y.out, image = plane / args->out_channels;
    const int32_t out_x = (int32_t)(output - row * args->along.out), out_y = (int32_t)(row - plane * args->y.out);
    const int32_t channel = (int32_t)(plane - image * args->out_channels), group = channel / args->group_outs;
    const int64_t x_begin = image * args->x_image + (int64_t)group * args->group_ins * args->x_channel;
    const int64_t w_begin = group * args->w_group + (channel - group * args->group_outs) * args->w_out;
    uint32_t sum = 0;
    for (int32_t ky = 0; ky < args->y.kernel; ky++) {
        const int64_t in_y = conv_integer_input(&args->y, args->transposed, out_y, ky);
        for (int32_t kx = 0; kx < args->along.kernel && in_y >= 0; kx++) {
            const int64_t in_x = conv_integer_input(&args->along, args->transposed, out_x, kx);
            const int64_t x_at = x_begin + in_y * args->y.x_stride + in_x * args->along.x_stride;
            const int64_t w_at = w_begin + ky * args->y.w_stride + kx * args->along.w_stride;
            for (int32_t in = 0; in < args->group_ins && in_x >= 0; in++)
                sum += conv_integer_load(args->x, args->type, x_at + in * args->x_channel) *
                       conv_integer_load(args->w, args->type, w_at + in * args->w_in);
        }
    }
    if (args->type == TYPE_U8)
        ((uint8_t *)args->out)[output] = (uint8_t)sum;
    else
        ((uint32_t *)args->out)[output] = sum;
}

#endif
