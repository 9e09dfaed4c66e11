/* Image pooling and upsampling: checks. */
#include "arithmetic/resample.h"

#include <math.h>

#include "base/float_guard.h"
#include "base/structs.h"
#include "tensor/products.h"

/* Sizes of images are counted in 32 bits, but not the number of images. */
enum { SIZE_MAX_32 = INT32_MAX / 4 };

static ww_status check_images(const char *name, const ww_tensor *x, int32_t rank)
{
    const ww_status status = check_tensor(name, "x", x);
    if (status != WW_OK)
        return status;
    if (x->layout.rank != rank)
        return ww_fail(WW_DIMENSION_MISMATCH, "%s: x has shape %s; it must be [images, channels, %sx]", name,
                       SHAPE_TEXT(&x->layout), rank == 4 ? "y, " : "");
    if (x->storage->dtype == WW_I8)
        return refuse_type(name, WW_I8);
    for (int32_t d = 1; d < rank; d++)
        if (x->layout.shape[d] > SIZE_MAX_32)
            return ww_fail(WW_UNSUPPORTED, "%s: x has shape %s; the maximum of channels, y and x is %d each", name,
                           SHAPE_TEXT(&x->layout), (int)SIZE_MAX_32);
    return WW_OK;
}

/* Makes the result and computes it. `args` has the operation and the sizes of the output. */
static ww_status run(const char *name, const ww_tensor *images, resample_args *args, ww_tensor *out)
{
    const ww_tensor x = tensor_with_height(images);
    const int64_t *in = x.layout.shape, *strides = x.layout.strides;
    const int64_t tall[4] = {in[0], in[1], args->outs_y, args->outs_x}, flat[3] = {in[0], in[1], args->outs_x};
    const int32_t rank = images->layout.rank;
    const ww_layout made = ww_layout_contiguous(rank, rank == 4 ? tall : flat);
    args->count = ww_layout_elements(&made);
    if (args->count < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: x has shape %s, the result would have %s, which is too large", name,
                       SHAPE_TEXT(&images->layout), SHAPE_TEXT(&made));
    if (args->count > 0 && (in[2] == 0 || in[3] == 0))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: x has shape %s, without elements to compute an output of shape %s from", name,
                       SHAPE_TEXT(&images->layout), SHAPE_TEXT(&made));
    ww_device *device = x.storage->device;
    result r = {.operation = name, .out = out, .inputs = {images}};
    ww_status status = result_begin(&r, device, x.storage->dtype, made.rank, made.shape);
    if (status != WW_OK)
        return status;
    args->in = operand_of(&x).data;
    args->out = operand_of(&r.at).data;
    args->type = (int32_t)x.storage->dtype;
    args->image_stride = strides[0];
    args->channel_stride = strides[1];
    args->y_stride = strides[2];
    args->x_stride = strides[3];
    args->channels = (int32_t)in[1];
    args->in_y = (int32_t)in[2];
    args->in_x = (int32_t)in[3];
    if (args->count > 0)
        status = tensors_of(device)->resample(device, args);
    return result_end(&r, status);
}

/* ---- pooling ------------------------------------------------------------------------------------------------------------- */

STRUCT_INIT(ww_pool, {.kernel = {1, 1}, .stride = {1, 1}, .padding_counts = 1})

static ww_status check_pool(const char *name, const ww_tensor *x, const ww_pool *how, int32_t d, int32_t *out)
{
    const int64_t in = x->layout.shape[2 + d], kernel = how->kernel[d], padding = how->padding[d];
    const int64_t size = ww_conv_size(in, kernel, padding, how->stride[d], 1);
    if (size < 0 || padding > kernel / 2 || kernel > SIZE_MAX_32 || how->stride[d] > SIZE_MAX_32)
        return ww_fail(WW_INVALID_ARGUMENT,
                       "%s: a window of %lld with stride %lld and padding %lld (at most half the window) does not fit shape %s",
                       name, (long long)kernel, (long long)how->stride[d], (long long)padding, SHAPE_TEXT(&x->layout));
    *out = (int32_t)size;
    return WW_OK;
}

static ww_status run_pool(const char *name, int32_t what, const ww_tensor *x, const ww_pool *callers, ww_tensor *out)
{
    ww_pool how;
    resample_args args = {.what = what};
    ww_status status = check_out(name, out);
    if (status == WW_OK)
        status = check_images(name, x, 4);
    if (status == WW_OK)
        status = struct_read(&how, sizeof how, callers, name, "ww_pool");
    if (status == WW_OK)
        status = check_pool(name, x, &how, 0, &args.outs_y);
    if (status == WW_OK)
        status = check_pool(name, x, &how, 1, &args.outs_x);
    if (status != WW_OK)
        return status;
    args.kernel_y = (int32_t)how.kernel[0];
    args.kernel_x = (int32_t)how.kernel[1];
    args.step_y = (int32_t)how.stride[0];
    args.step_x = (int32_t)how.stride[1];
    args.padding_y = (int32_t)how.padding[0];
    args.padding_x = (int32_t)how.padding[1];
    args.padding_counts = how.padding_counts;
    return run(name, x, &args, out);
}

ww_status ww_tensor_avg_pool2d(const ww_tensor *x, const ww_pool *how, ww_tensor *out)
{
    FLOAT_GUARD();
    return run_pool("avg_pool2d", RESAMPLE_AVERAGE, x, how, out);
}

ww_status ww_tensor_max_pool2d(const ww_tensor *x, const ww_pool *how, ww_tensor *out)
{
    FLOAT_GUARD();
    return run_pool("max_pool2d", RESAMPLE_MAXIMUM, x, how, out);
}

/* ---- upsampling ---------------------------------------------------------------------------------------------------------- */

static ww_status check_size(const char *name, const ww_tensor *x, int64_t size)
{
    if (size >= 0 && size <= SIZE_MAX_32)
        return WW_OK;
    return ww_fail(WW_INVALID_ARGUMENT, "%s: x has shape %s, the new size is %lld; it must be 0 to %d", name,
                   SHAPE_TEXT(&x->layout), (long long)size, (int)SIZE_MAX_32);
}

/* `size` is the new height and width. */
static ww_status run_nearest(const char *name, int32_t rank, const ww_tensor *x, const int64_t size[2], ww_tensor *out)
{
    ww_status status = check_out(name, out);
    if (status == WW_OK)
        status = check_images(name, x, rank);
    if (status == WW_OK)
        status = check_size(name, x, size[0]);
    if (status == WW_OK)
        status = check_size(name, x, size[1]);
    if (status != WW_OK)
        return status;
    resample_args args = {.what = RESAMPLE_NEAREST, .outs_y = (int32_t)size[0], .outs_x = (int32_t)size[1]};
    return run(name, x, &args, out);
}

ww_status ww_tensor_upsample_nearest1d(const ww_tensor *x, int64_t size, ww_tensor *out)
{
    FLOAT_GUARD();
    return run_nearest("upsample_nearest1d", 3, x, (int64_t[]){1, size}, out);
}

ww_status ww_tensor_upsample_nearest2d(const ww_tensor *x, int64_t size_y, int64_t size_x, ww_tensor *out)
{
    FLOAT_GUARD();
    return run_nearest("upsample_nearest2d", 4, x, (int64_t[]){size_y, size_x}, out);
}

/* Returns how many inputs there are per output: the distance between neighbours. */
static double scale_of(int64_t in, int64_t outs, bool corners, double factor)
{
    if (corners)
        return outs > 1 ? (double)(in - 1) / (double)(outs - 1) : 0.0;
    if (factor > 0.0)
        return 1.0 / factor;
    return outs > 0 ? (double)in / (double)outs : 0.0;
}

ww_status ww_tensor_upsample_bilinear2d(const ww_tensor *x, int64_t size_y, int64_t size_x, int32_t align_corners,
                                        const double *factors, ww_tensor *out)
{
    FLOAT_GUARD();
    static const char name[] = "upsample_bilinear2d";
    ww_status status = check_out(name, out);
    if (status == WW_OK)
        status = check_images(name, x, 4);
    if (status == WW_OK && type_kind((int32_t)x->storage->dtype) == KIND_I64)
        status = refuse_type(name, x->storage->dtype);
    if (status == WW_OK)
        status = check_size(name, x, size_y);
    if (status == WW_OK)
        status = check_size(name, x, size_x);
    if (status != WW_OK)
        return status;
    for (int d = 0; d < 2 && factors; d++)
        if (!(factors[d] >= 1e-9 && factors[d] <= 1e9))
            return ww_fail(WW_INVALID_ARGUMENT, "%s: the scale factors are %g and %g; they must be 1e-9 to 1e9", name,
                           factors[0], factors[1]);
    resample_args args = {.what = RESAMPLE_BILINEAR,
                          .outs_y = (int32_t)size_y,
                          .outs_x = (int32_t)size_x,
                          .corners = align_corners != 0,
                          .scale_y = scale_of(x->layout.shape[2], size_y, align_corners != 0, factors ? factors[0] : 0.0),
                          .scale_x = scale_of(x->layout.shape[3], size_x, align_corners != 0, factors ? factors[1] : 0.0)};
    return run(name, x, &args, out);
}
