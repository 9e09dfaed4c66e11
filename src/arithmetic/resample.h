/* Image pooling and upsampling: each output comes from a few inputs around it. Shared by all backends: the arithmetic of one
 * output and the kernel arguments.
 *
 * An average is the sum of the window's elements, row by row and starting at +0, divided by their number. f16, bf16 and f8e4m3
 * are summed in f32 and rounded once; integers are summed in 64 bits and divided towards zero. A maximum is the element-wise
 * maximum: NaN if any element is. Bilinear positions and weights are computed in f64; the weights are then rounded to the kind:
 *   upper = fma(x01, wx, x00 * (1 - wx))    lower = fma(x11, wx, x10 * (1 - wx))    result = fma(lower, wy, upper * (1 - wy)).
 */
#ifndef WW_ARITHMETIC_RESAMPLE_H
#define WW_ARITHMETIC_RESAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "arithmetic/canon.h"
#include "arithmetic/convert.h"
#include "arithmetic/element.h"

enum { RESAMPLE_AVERAGE, RESAMPLE_MAXIMUM, RESAMPLE_NEAREST, RESAMPLE_BILINEAR };
enum { RESAMPLE_THREADS = 256 };

/* Images of [count / outs_y / outs_x / channels, channels, y, x]; the output is dense. */
typedef struct resample_args { /* also a job of device/tensor_jobs.h */
    const void *in;
    void *out;
    int64_t count; /* outputs */
    int64_t image_stride, channel_stride, y_stride, x_stride;
    int32_t type, what;
    int32_t channels, in_y, in_x, outs_y, outs_x;
    int32_t kernel_y, kernel_x, step_y, step_x, padding_y, padding_x; /* for pooling */
    int32_t padding_counts;                                           /* averages count padding as zeros */
    int32_t corners, unused;                                          /* bilinear: the corners of both images coincide */
    double scale_y, scale_x;                                          /* bilinear: inputs per output */
} resample_args;

/* The location of an output: where its channel starts in the input, and its row and column. */
typedef struct resample_place {
    int64_t begin;
    int32_t y, x;
} resample_place;

CANON_FUNCTION resample_place resample_place_of(const resample_args *args, int64_t output)
{
    resample_place place;
    int64_t channel, image;
    if (args->count <= INT32_MAX) {
        const uint32_t row = (uint32_t)output / (uint32_t)args->outs_x, plane = row / (uint32_t)args->outs_y;
        place.x = (int32_t)((uint32_t)output - row * (uint32_t)args->outs_x);
        place.y = (int32_t)(row - plane * (uint32_t)args->outs_y);
        channel = plane % (uint32_t)args->channels;
        image = plane / (uint32_t)args->channels;
    } else {
        const int64_t row = output / args->outs_x, plane = row / args->outs_y;
        place.x = (int32_t)(output - row * args->outs_x);
        place.y = (int32_t)(row - plane * args->outs_y);
        channel = plane % args->channels;
        image = plane / args->channels;
    }
    place.begin = image * args->image_stride + channel * args->channel_stride;
    return place;
}

/* ---- pools --------------------------------------------------------------------------------------------------------------- */

/* The part of a window inside the image: [begin, end). */
CANON_FUNCTION void resample_inside(int32_t out, int32_t step, int32_t padding, int32_t kernel, int32_t in, int32_t *begin,
                                    int32_t *end)
{
    const int32_t first = out * step - padding;
    *begin = first < 0 ? 0 : first;
    *end = in - first < kernel ? in : first + kernel;
}

CANON_FUNCTION int64_t resample_add_i64(int64_t x, int64_t y)
{
    return (int64_t)((uint64_t)x + (uint64_t)y);
}
CANON_FUNCTION float resample_add_f32(float x, float y)
{
    return x + y;
}
CANON_FUNCTION double resample_add_f64(double x, double y)
{
    return x + y;
}
CANON_FUNCTION int64_t resample_larger_i64(int64_t x, int64_t y)
{
    return x > y ? x : y;
}
/* Equal numbers differ only if they are zeros, and their sum is then the larger one; a sum with NaN is NaN. */
CANON_FUNCTION float resample_larger_f32(float x, float y)
{
    const float equal = x == y && x != 0.0f ? x : x + y;
    return x > y ? x : y > x ? y : equal;
}
CANON_FUNCTION double resample_larger_f64(double x, double y)
{
    const double equal = x == y && x != 0.0 ? x : x + y;
    return x > y ? x : y > x ? y : equal;
}

#define RESAMPLE_POOL(T, KIND)                                                                                                 \
    CANON_FUNCTION void resample_pool_##KIND(const resample_args *args, int64_t output)                                        \
    {                                                                                                                          \
        const resample_place place = resample_place_of(args, output);                                                          \
        int32_t y0, y1, x0, x1;                                                                                                \
        resample_inside(place.y, args->step_y, args->padding_y, args->kernel_y, args->in_y, &y0, &y1);                         \
        resample_inside(place.x, args->step_x, args->padding_x, args->kernel_x, args->in_x, &x0, &x1);                         \
        const bool average = args->what == RESAMPLE_AVERAGE;                                                                   \
        T sum = 0;                                                                                                             \
        if (!average)                                                                                                          \
            sum = element_load_##KIND(args->in, args->type, place.begin + y0 * args->y_stride + x0 * args->x_stride);          \
        for (int32_t y = y0; y < y1; y++) {                                                                                    \
            for (int32_t x = x0; x < x1; x++) {                                                                                \
                const T value =                                                                                                \
                    element_load_##KIND(args->in, args->type, place.begin + y * args->y_stride + x * args->x_stride);          \
                sum = average ? resample_add_##KIND(sum, value) : resample_larger_##KIND(sum, value);                          \
            }                                                                                                                  \
        }                                                                                                                      \
        const int64_t all = (int64_t)args->kernel_y * args->kernel_x, inside = (int64_t)(y1 - y0) * (x1 - x0);                 \
        const int64_t among = args->padding_counts ? all : inside;                                                             \
        element_store_##KIND(args->out, args->type, output, average ? sum / (T)among : sum);                                   \
    }

RESAMPLE_POOL(float, f32)
RESAMPLE_POOL(double, f64)
RESAMPLE_POOL(int64_t, i64)
#undef RESAMPLE_POOL

/* ---- upsampling ---------------------------------------------------------------------------------------------------------- */

/* The input index of output o, exactly: the integer part of o * in / outs. */
CANON_FUNCTION int64_t resample_nearest_place(int32_t out, int32_t in, int32_t outs)
{
    return (int64_t)((uint64_t)(uint32_t)out * (uint32_t)in / (uint32_t)outs);
}

CANON_FUNCTION int64_t resample_nearest_from(const resample_args *args, int64_t output)
{
    const resample_place place = resample_place_of(args, output);
    return place.begin + resample_nearest_place(place.y, args->in_y, args->outs_y) * args->y_stride +
           resample_nearest_place(place.x, args->in_x, args->outs_x) * args->x_stride;
}

/* Two neighbours in one direction and the weight of the second. */
typedef struct resample_pair {
    int32_t first, second;
    double weight;
} resample_pair;

CANON_FUNCTION resample_pair resample_pair_of(int32_t out, int32_t in, double scale, int32_t corners)
{
    resample_pair pair;
    double at = corners ? (double)out * scale : ((double)out + 0.5) * scale - 0.5;
    at = at > 0.0 ? at : 0.0;
    pair.first = at < (double)(in - 1) ? (int32_t)at : in - 1;
    pair.second = pair.first + 1 < in ? pair.first + 1 : in - 1;
    pair.weight = at - (double)pair.first;
    return pair;
}

#define RESAMPLE_BILINEAR_OF(T, KIND, FMA)                                                                                     \
    CANON_FUNCTION void resample_bilinear_##KIND(const resample_args *args, int64_t output)                                    \
    {                                                                                                                          \
        const resample_place place = resample_place_of(args, output);                                                          \
        const resample_pair y = resample_pair_of(place.y, args->in_y, args->scale_y, args->corners);                           \
        const resample_pair x = resample_pair_of(place.x, args->in_x, args->scale_x, args->corners);                           \
        const T wy = (T)y.weight, wx = (T)x.weight;                                                                            \
        const int64_t upper = place.begin + y.first * args->y_stride, lower = place.begin + y.second * args->y_stride;         \
        const T x00 = element_load_##KIND(args->in, args->type, upper + x.first * args->x_stride);                             \
        const T x01 = element_load_##KIND(args->in, args->type, upper + x.second * args->x_stride);                            \
        const T x10 = element_load_##KIND(args->in, args->type, lower + x.first * args->x_stride);                             \
        const T x11 = element_load_##KIND(args->in, args->type, lower + x.second * args->x_stride);                            \
        const T above = FMA(x01, wx, x00 * (1 - wx)), below = FMA(x11, wx, x10 * (1 - wx));                                    \
        element_store_##KIND(args->out, args->type, output, FMA(below, wy, above * (1 - wy)));                                 \
    }

RESAMPLE_BILINEAR_OF(float, f32, __builtin_fmaf)
RESAMPLE_BILINEAR_OF(double, f64, __builtin_fma)
#undef RESAMPLE_BILINEAR_OF

#endif
