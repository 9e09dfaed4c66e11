/* Convolutions as matrix products: the weights times the image seen through a window (kernels/matmul/matmul.h).
 *
 * A convolution in one dimension is one of height 1. A transposed convolution with stride s is s convolutions in each
 * dimension, one for each position of outputs within a stride. The outputs at one position use the same taps of the kernel, and
 * their inputs move by one from output to output. So nothing is scattered, and no tap without an input is computed.
 */
#include <string.h>

#include "arithmetic/conv_integer.h"
#include "base/float_guard.h"
#include "base/integers.h"
#include "base/structs.h"
#include "tensor/products.h"

/* One of the two directions. */
typedef struct axis {
    int64_t in, kernel, out;
    int64_t padding, stride, dilation, output_padding;
} axis;

typedef struct conv {
    const char *name;
    bool transposed;
    int32_t rank; /* of the tensors: 3 or 4 */
    ww_math math;
    ww_tensor x, w; /* rank 4: images, channels, y, x; with a height of 1 if there was none */
    int64_t images, groups, in_channels, out_channels; /* of all groups */
    axis y, x_axis;
} conv;

/* The taps for the outputs at one place within the stride: first_tap, first_tap + every, ... */
typedef struct part {
    int64_t outs, taps, first_tap, every;
    int64_t first, step, tap; /* as in matmul_window */
} part;

/* ---- checks -------------------------------------------------------------------------------------------------------------- */

int64_t ww_conv_size(int64_t in, int64_t kernel, int64_t padding, int64_t stride, int64_t dilation)
{
    int64_t padded, reach;
    if (in < 0 || kernel < 1 || padding < 0 || stride < 1 || dilation < 1 || __builtin_mul_overflow(padding, 2, &padded) ||
        __builtin_add_overflow(padded, in, &padded) || __builtin_mul_overflow(kernel - 1, dilation, &reach))
        return -1;
    return padded <= reach ? -1 : (padded - reach - 1) / stride + 1;
}

int64_t ww_conv_transpose_size(int64_t in, int64_t kernel, int64_t padding, int64_t stride, int64_t dilation,
                               int64_t output_padding)
{
    int64_t size, reach;
    if (in < 1 || kernel < 1 || padding < 0 || stride < 1 || dilation < 1 || output_padding < 0 || padding > INT64_MAX / 4 ||
        output_padding >= max_i64(stride, dilation) || __builtin_mul_overflow(in - 1, stride, &size) ||
        __builtin_mul_overflow(kernel - 1, dilation, &reach) || __builtin_add_overflow(size, reach, &size) ||
        __builtin_add_overflow(size, output_padding + 1, &size))
        return -1;
    return size - 2 * padding < 0 ? -1 : size - 2 * padding;
}

static ww_status check_axis(const conv *c, axis *a)
{
    a->out = c->transposed ? ww_conv_transpose_size(a->in, a->kernel, a->padding, a->stride, a->dilation, a->output_padding)
                           : ww_conv_size(a->in, a->kernel, a->padding, a->stride, a->dilation);
    if (a->out >= 0)
        return WW_OK;
    return ww_fail(WW_INVALID_ARGUMENT,
                   "%s: a kernel of size %lld on %lld elements with padding %lld, stride %lld, dilation %lld and output "
                   "padding %lld gives no output, or one that is too large",
                   c->name, (long long)a->kernel, (long long)a->in, (long long)a->padding, (long long)a->stride,
                   (long long)a->dilation, (long long)a->output_padding);
}

ww_tensor tensor_with_height(const ww_tensor *x)
{
    ww_tensor tall = *x;
    if (x->layout.rank == 3) {
        tall.layout.rank = 4;
        tall.layout.shape[3] = x->layout.shape[2];
        tall.layout.strides[3] = x->layout.strides[2];
        tall.layout.shape[2] = 1;
        tall.layout.strides[2] = 0;
    }
    return tall;
}

static ww_status check_shapes(conv *c, const ww_tensor *x, const ww_tensor *w)
{
    if (x->layout.rank != c->rank || w->layout.rank != c->rank)
        return ww_fail(WW_DIMENSION_MISMATCH, "%s: the shapes are %s and %s; both must have %d dimensions", c->name,
                       SHAPE_TEXT(&x->layout), SHAPE_TEXT(&w->layout), (int)c->rank);
    c->x = tensor_with_height(x);
    c->w = tensor_with_height(w);
    const int64_t *in = c->x.layout.shape, *kernel = c->w.layout.shape;
    c->images = in[0];
    c->in_channels = in[1];
    if (c->groups < 1 || in[1] % c->groups != 0 || kernel[0] % c->groups != 0 ||
        (c->transposed ? kernel[0] != in[1] : kernel[1] != in[1] / c->groups))
        return ww_fail(WW_DIMENSION_MISMATCH,
                       "%s: the input has shape %s, the kernel %s, in %lld groups; the kernel must be %s", c->name,
                       SHAPE_TEXT(&x->layout), SHAPE_TEXT(&w->layout), (long long)c->groups,
                       c->transposed ? "[in, out / groups, ...]" : "[out, in / groups, ...]");
    if (c->transposed && __builtin_mul_overflow(kernel[1], c->groups, &c->out_channels))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %lld channels in %lld groups are too many", c->name, (long long)kernel[1],
                       (long long)c->groups);
    if (!c->transposed)
        c->out_channels = kernel[0];
    c->y.in = in[2];
    c->x_axis.in = in[3];
    c->y.kernel = kernel[2];
    c->x_axis.kernel = kernel[3];
    const ww_status status = check_axis(c, &c->y);
    return status == WW_OK ? check_axis(c, &c->x_axis) : status;
}

STRUCT_INIT(ww_conv, {.stride = {1, 1}, .dilation = {1, 1}, .groups = 1})

static ww_status conv_check(conv *c, const ww_tensor *x, const ww_tensor *w, const ww_conv *how)
{
    ww_conv options;
    ww_status status =
        check_product_types(c->name, (named_tensor){"x", x}, (named_tensor){"the kernel", w}, 1u << WW_U8 | 1u << WW_U32);
    if (status == WW_OK)
        status = struct_read(&options, sizeof options, how, c->name, "ww_conv");
    if (status != WW_OK)
        return status;
    const int32_t of_x = c->rank - 3; /* the index of the options for the last dimension */
    c->groups = options.groups;
    c->math = options.math;
    c->x_axis = (axis){.padding = options.padding[of_x],
                       .stride = options.stride[of_x],
                       .dilation = options.dilation[of_x],
                       .output_padding = options.output_padding[of_x]};
    c->y = (axis){.padding = 0, .stride = 1, .dilation = 1};
    if (c->rank == 4)
        c->y = (axis){.padding = options.padding[0],
                      .stride = options.stride[0],
                      .dilation = options.dilation[0],
                      .output_padding = options.output_padding[0]};
    status = check_math(c->name, options.math);
    return status == WW_OK ? check_shapes(c, x, w) : status;
}

/* ---- the window ---------------------------------------------------------------------------------------------------------- */

static part part_of_plain(const axis *a)
{
    return (part){.outs = a->out, .taps = a->kernel, .every = 1, .first = -a->padding, .step = a->stride, .tap = a->dilation};
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Output o = place + u * stride uses tap t with input (o + padding - t * dilation) / stride, if that is an integer. */
static part part_of_place(const axis *a, int64_t place)
{
    part p = {.outs = place < a->out ? (a->out - place - 1) / a->stride + 1 : 0, .step = 1};
    p.every = a->stride / common_divisor(a->stride, a->dilation);
    while (p.first_tap < p.every && p.first_tap < a->kernel &&
           (place + a->padding - p.first_tap * a->dilation) % a->stride != 0)
        p.first_tap++;
    if (p.first_tap == p.every || p.first_tap >= a->kernel)
        return p; /* no taps */
    p.taps = (a->kernel - p.first_tap - 1) / p.every + 1;
    p.first = (place + a->padding - p.first_tap * a->dilation) / a->stride;
    p.tap = -(p.every * a->dilation / a->stride);
    return p;
}

/* Makes a dense matrix per group from the kernel's taps of a part: [groups, out / groups, in / groups, taps...]. */
static ww_status part_weights(const conv *c, const part *y, const part *x, ww_tensor *weights, ww_tensor *copy)
{
    const ww_layout *w = &c->w.layout;
    const int64_t in = c->in_channels / c->groups, out = c->out_channels / c->groups;
    const int64_t in_stride = w->strides[c->transposed ? 0 : 1], out_stride = w->strides[c->transposed ? 1 : 0];
    const ww_layout seen = {.rank = 5,
                            .shape = {c->groups, out, in, y->taps, x->taps},
                            .strides = {c->transposed ? in * in_stride : out * out_stride, out_stride, in_stride,
                                        y->every * w->strides[2], x->every * w->strides[3]},
                            .offset = w->offset + y->first_tap * w->strides[2] + x->first_tap * w->strides[3]};
    *weights = (ww_tensor){c->w.storage, seen};
    if (layout_is_dense(&seen))
        return WW_OK;
    const ww_status status = ww_tensor_contiguous(weights, copy);
    *weights = *copy;
    return status;
}

/* A 1 x 1 kernel with stride 1 uses each pixel once: then it is a plain product for each image. */
static bool sees_all(const conv *c, const part *y, const part *x)
{
    return y->taps == 1 && x->taps == 1 && y->first == 0 && x->first == 0 && y->step == 1 && x->step == 1 &&
           y->outs == c->y.in && x->outs == c->x_axis.in && y->outs == c->y.out && x->outs == c->x_axis.out &&
           (y->outs == 1 || c->x.layout.strides[2] == x->outs * c->x.layout.strides[3]);
}

static void set_window(const conv *c, const part *y, const part *x, matmul_window *window)
{
    const int64_t *strides = c->x.layout.strides;
    *window = (matmul_window){.taps_y = y->taps,
                              .taps_x = x->taps,
                              .outs_y = y->outs,
                              .outs_x = x->outs,
                              .in_y = c->y.in,
                              .in_x = c->x_axis.in,
                              .first_y = y->first,
                              .first_x = x->first,
                              .step_y = y->step,
                              .step_x = x->step,
                              .tap_y = y->tap,
                              .tap_x = x->tap,
                              .image_stride = strides[0],
                              .channel_stride = strides[1],
                              .y_stride = strides[2],
                              .x_stride = strides[3],
                              .out_image_stride = c->out_channels * c->y.out * c->x_axis.out,
                              .out_y_stride = (c->transposed ? c->y.stride : 1) * c->x_axis.out,
                              .out_x_stride = c->transposed ? c->x_axis.stride : 1};
}

/* ---- the products -------------------------------------------------------------------------------------------------------- */

/* Computes the outputs of one part. The first one is element `at` of the result. */
static ww_status run_part(const conv *c, const part *y, const part *x, const ww_tensor *made, int64_t at)
{
    ww_tensor copy = {0};
    ww_tensor weights;
    matmul_window window;
    ww_status status = part_weights(c, y, x, &weights, &copy);
    if (status != WW_OK)
        return status;
    const int64_t in = c->in_channels / c->groups, out = c->out_channels / c->groups, place = c->y.out * c->x_axis.out;
    matmul_job job = {.type = (int32_t)c->x.storage->dtype,
                      .fast = c->math == WW_MATH_FAST,
                      .m = out,
                      .n = c->images * y->outs * x->outs,
                      .k = in * y->taps * x->taps,
                      .a = operand_of(&weights).data,
                      .b = operand_of(&c->x).data,
                      .c = (char *)operand_of(made).data + at * type_size((int32_t)made->storage->dtype),
                      .a_row = in * y->taps * x->taps,
                      .a_column = 1,
                      .c_row = place,
                      .c_elements = count_of(&made->layout) - at,
                      .batch_rank = 1,
                      .batch = {c->groups, c->images},
                      .a_batch = {out * in * y->taps * x->taps, 0},
                      .b_batch = {in * c->x.layout.strides[1], c->x.layout.strides[0]},
                      .c_batch = {out * place, c->out_channels * place}};
    if (sees_all(c, y, x)) {
        job.n = place;
        job.b_row = c->x.layout.strides[1];
        job.b_column = c->x.layout.strides[x->outs == 1 ? 2 : 3];
        job.batch_rank = 2;
    } else {
        set_window(c, y, x, &window);
        job.window = &window;
    }
    status = run_product(c->x.storage->device, &job);
    ww_tensor_release(&copy);
    return status;
}

static ww_status run_transposed(const conv *c, const ww_tensor *made)
{
    ww_status status = WW_OK;
    for (int64_t py = 0; py < c->y.stride && py < c->y.out && status == WW_OK; py++) {
        const part y = part_of_place(&c->y, py);
        for (int64_t px = 0; px < c->x_axis.stride && px < c->x_axis.out && status == WW_OK; px++) {
            const part x = part_of_place(&c->x_axis, px);
            if (y.taps > 0 && x.taps > 0)
                status = run_part(c, &y, &x, made, py * c->x_axis.out + px);
        }
    }
    return status;
}

/* Outputs without any tap are +0. */
static bool some_meet_nothing(const conv *c)
{
    bool some = c->in_channels == 0;
    for (int64_t p = 0; p < c->y.stride && p < c->y.out && c->transposed && !some; p++)
        some = part_of_place(&c->y, p).taps == 0;
    for (int64_t p = 0; p < c->x_axis.stride && p < c->x_axis.out && c->transposed && !some; p++)
        some = part_of_place(&c->x_axis, p).taps == 0;
    return some;
}

/* ---- integers ------------------------------------------------------------------------------------------------------------ */

static bool is_integer(const conv *c)
{
    return type_kind((int32_t)c->x.storage->dtype) == KIND_I64;
}

static conv_integer_axis integer_axis(const axis *a, int64_t x_stride, int64_t w_stride)
{
    return (conv_integer_axis){.in = (int32_t)a->in,
                               .kernel = (int32_t)a->kernel,
                               .out = (int32_t)a->out,
                               .padding = (int32_t)a->padding,
                               .stride = (int32_t)a->stride,
                               .dilation = (int32_t)a->dilation,
                               .x_stride = x_stride,
                               .w_stride = w_stride};
}

static bool is_small(const axis *a)
{
    return a->in <= CONV_INTEGER_SIZE_MAX && a->kernel <= CONV_INTEGER_SIZE_MAX && a->out <= CONV_INTEGER_SIZE_MAX &&
           a->padding <= CONV_INTEGER_SIZE_MAX && a->stride <= CONV_INTEGER_SIZE_MAX && a->dilation <= CONV_INTEGER_SIZE_MAX;
}

static ww_status check_integer(const conv *c)
{
    if (!is_integer(c) || (is_small(&c->y) && is_small(&c->x_axis) && c->in_channels <= CONV_INTEGER_SIZE_MAX &&
                           c->out_channels <= CONV_INTEGER_SIZE_MAX))
        return WW_OK;
    return ww_fail(WW_UNSUPPORTED, "%s: integers of shape %s with a kernel of shape %s; the maximum of a size is %d", c->name,
                   SHAPE_TEXT(&c->x.layout), SHAPE_TEXT(&c->w.layout), (int)CONV_INTEGER_SIZE_MAX);
}

static ww_status run_integer(const conv *c, const ww_tensor *made)
{
    const int64_t *x = c->x.layout.strides, *w = c->w.layout.strides;
    const int64_t ins = c->in_channels / c->groups, outs = c->out_channels / c->groups;
    ww_device *device = made->storage->device;
    const conv_integer_args args = {.x = operand_of(&c->x).data,
                                    .w = operand_of(&c->w).data,
                                    .out = operand_of(made).data,
                                    .count = count_of(&made->layout),
                                    .x_image = x[0],
                                    .x_channel = x[1],
                                    .w_in = w[c->transposed ? 0 : 1],
                                    .w_out = w[c->transposed ? 1 : 0],
                                    .w_group = c->transposed ? ins * w[0] : outs * w[0],
                                    .y = integer_axis(&c->y, x[2], w[2]),
                                    .along = integer_axis(&c->x_axis, x[3], w[3]),
                                    .group_ins = (int32_t)ins,
                                    .group_outs = (int32_t)outs,
                                    .out_channels = (int32_t)c->out_channels,
                                    .type = (int32_t)c->x.storage->dtype,
                                    .transposed = c->transposed};
    return tensors_of(device)->conv_integer(device, &args);
}

static ww_status conv_run(conv *c, const ww_tensor *x, const ww_tensor *w, const ww_conv *how, ww_tensor *out)
{
    ww_status status = check_out(c->name, out);
    if (status == WW_OK)
        status = conv_check(c, x, w, how);
    if (status == WW_OK)
        status = check_integer(c);
    if (status != WW_OK)
        return status;
    const int64_t tall[4] = {c->images, c->out_channels, c->y.out, c->x_axis.out};
    const int64_t flat[3] = {c->images, c->out_channels, c->x_axis.out};
    const ww_layout made = ww_layout_contiguous(c->rank, c->rank == 4 ? tall : flat);
    if (ww_layout_elements(&made) < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: an input of shape %s gives an output of shape %s, which is too large", c->name,
                       SHAPE_TEXT(&x->layout), SHAPE_TEXT(&made));
    result r = {.operation = c->name, .out = out, .inputs = {x, w}};
    status = result_begin(&r, x->storage->device, x->storage->dtype, made.rank, made.shape);
    if (status == WW_OK && some_meet_nothing(c))
        status = result_zero(&r);
    if (status == WW_OK && count_of(&made) > 0 && c->in_channels > 0 && is_integer(c)) {
        status = run_integer(c, &r.at);
    } else if (status == WW_OK && count_of(&made) > 0 && c->in_channels > 0) {
        const part py = part_of_plain(&c->y), px = part_of_plain(&c->x_axis);
        status = c->transposed ? run_transposed(c, &r.at) : run_part(c, &py, &px, &r.at, 0);
    }
    return result_end(&r, status);
}

ww_status ww_tensor_conv1d(const ww_tensor *x, const ww_tensor *w, const ww_conv *how, ww_tensor *out)
{
    FLOAT_GUARD();
    conv c = {.name = "conv1d", .rank = 3};
    return conv_run(&c, x, w, how, out);
}

ww_status ww_tensor_conv2d(const ww_tensor *x, const ww_tensor *w, const ww_conv *how, ww_tensor *out)
{
    FLOAT_GUARD();
    conv c = {.name = "conv2d", .rank = 4};
    return conv_run(&c, x, w, how, out);
}

ww_status ww_tensor_conv_transpose1d(const ww_tensor *x, const ww_tensor *w, const ww_conv *how, ww_tensor *out)
{
    FLOAT_GUARD();
    conv c = {.name = "conv_transpose1d", .rank = 3, .transposed = true};
    return conv_run(&c, x, w, how, out);
}

ww_status ww_tensor_conv_transpose2d(const ww_tensor *x, const ww_tensor *w, const ww_conv *how, ww_tensor *out)
{
    FLOAT_GUARD();
    conv c = {.name = "conv_transpose2d", .rank = 4, .transposed = true};
    return conv_run(&c, x, w, how, out);
}
