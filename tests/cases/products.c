/* Cases of matrix products, convolutions, and pools and enlargements of images. */
#include <math.h>

#include "cases/cases.h"

static ww_status run_matmul(case_run *run)
{
    ww_tensor a;
    ww_tensor b;
    ww_tensor out = {0};
    ww_status status = case_input(run, "a|x|lhs", &a);
    if (status == WW_OK)
        status = case_input(run, "b|y|w|rhs", &b);
    if (status == WW_OK)
        status = ww_tensor_matmul(&a, &b, WW_MATH_CANONICAL, &out);
    return case_give(run, status, &out);
}

typedef ww_status (*convolution)(const ww_tensor *x, const ww_tensor *w, const ww_conv *how, ww_tensor *out);

static ww_status run_convolution(case_run *run, convolution convolve)
{
    ww_tensor x;
    ww_tensor w;
    ww_tensor out = {0};
    ww_conv how = ww_conv_default();
    ww_status status = case_input(run, CASE_X, &x);
    if (status == WW_OK)
        status = case_input(run, "w|kernel|weight|k", &w);
    if (status != WW_OK)
        return status;
    case_pair(run, "padding", how.padding);
    case_pair(run, "stride", how.stride);
    case_pair(run, "dilation", how.dilation);
    case_pair(run, "output_padding", how.output_padding);
    how.groups = case_integer(run, "groups", 1);
    status = convolve(&x, &w, &how, &out);
    return case_give(run, status, &out);
}

static ww_status run_conv1d(case_run *run)
{
    return run_convolution(run, ww_tensor_conv1d);
}

static ww_status run_conv2d(case_run *run)
{
    return run_convolution(run, ww_tensor_conv2d);
}

static ww_status run_conv_transpose1d(case_run *run)
{
    return run_convolution(run, ww_tensor_conv_transpose1d);
}

static ww_status run_conv_transpose2d(case_run *run)
{
    return run_convolution(run, ww_tensor_conv_transpose2d);
}

/* ---- images -------------------------------------------------------------------------------------------------------------- */

static ww_status run_pool(case_run *run, ww_status (*pooled)(const ww_tensor *, const ww_pool *, ww_tensor *))
{
    ww_tensor x;
    ww_tensor out = {0};
    ww_pool how = ww_pool_default(1, 1);
    ww_status status = case_input(run, CASE_X, &x);
    if (status != WW_OK)
        return status;
    case_pair(run, "kernel|kernel_size|k", how.kernel);
    how.stride[0] = how.kernel[0];
    how.stride[1] = how.kernel[1];
    case_pair(run, "stride", how.stride);
    case_pair(run, "padding", how.padding);
    how.padding_counts = case_truth(run, "count_include_pad|padding_counts", true);
    status = pooled(&x, &how, &out);
    return case_give(run, status, &out);
}

static ww_status run_avg_pool2d(case_run *run)
{
    return run_pool(run, ww_tensor_avg_pool2d);
}

static ww_status run_max_pool2d(case_run *run)
{
    return run_pool(run, ww_tensor_max_pool2d);
}

/* Reads one or two numbers from "scale_factor", or one each for y and x. Returns false if there are none. They are used if
 * there is no size. */
static bool read_factors(case_run *run, double factors[2])
{
    const json_t *given = case_attribute(run, "scale_factor|scale|scales");
    const bool pair = json_is_array(given) && json_array_size(given) == 2;
    if (!given && case_attribute(run, "scale_h") && case_attribute(run, "scale_w")) {
        factors[0] = case_number(run, "scale_h", 1.0);
        factors[1] = case_number(run, "scale_w", 1.0);
        return true;
    }
    if (!pair && !json_is_number(given))
        return false;
    for (size_t d = 0; d < 2; d++)
        factors[d] = json_number_value(pair ? json_array_get(given, d) : given);
    return true;
}

/* The size asked for, or the whole part of the input's times the factor. */
static ww_status read_size(case_run *run, const ww_tensor *x, int64_t size[2])
{
    double factors[2];
    const int32_t rank = x->layout.rank, first = rank > 3 ? 2 : rank - 1;
    size[0] = size[1] = 0;
    if (case_pair(run, "out|size|target|out_size|target_size", size))
        return WW_OK;
    size[0] = case_integer(run, "out_h|target_h|height", 0);
    size[1] = case_integer(run, "out_w|target_w|width", size[0]);
    if (rank == 3 && size[0] == 0)
        size[0] = size[1];
    if (size[0] > 0)
        return WW_OK;
    if (!read_factors(run, factors) || rank < 3)
        return ww_fail(WW_CORRUPT_FILE, "no size to enlarge to");
    for (int32_t d = 0; d < 2 && first + d < rank; d++)
        size[d] = (int64_t)fmin(fmax((double)x->layout.shape[first + d] * factors[d], -1.0), 0x1p62);
    return WW_OK;
}

static ww_status run_nearest1d(case_run *run)
{
    ww_tensor x;
    ww_tensor out = {0};
    int64_t size[2];
    ww_status status = case_input(run, CASE_X, &x);
    if (status == WW_OK)
        status = read_size(run, &x, size);
    if (status != WW_OK)
        return status;
    status = ww_tensor_upsample_nearest1d(&x, size[0], &out);
    return case_give(run, status, &out);
}

static ww_status run_nearest2d(case_run *run)
{
    ww_tensor x;
    ww_tensor out = {0};
    int64_t size[2];
    ww_status status = case_input(run, CASE_X, &x);
    if (status == WW_OK)
        status = read_size(run, &x, size);
    if (status != WW_OK)
        return status;
    status = ww_tensor_upsample_nearest2d(&x, size[0], size[1], &out);
    return case_give(run, status, &out);
}

static ww_status run_bilinear2d(case_run *run)
{
    ww_tensor x;
    ww_tensor out = {0};
    int64_t size[2];
    double factors[2];
    const bool has_factors = read_factors(run, factors);
    ww_status status = case_input(run, CASE_X, &x);
    if (status == WW_OK)
        status = read_size(run, &x, size);
    if (status != WW_OK)
        return status;
    status = ww_tensor_upsample_bilinear2d(&x, size[0], size[1], case_truth(run, "align_corners", false),
                                           has_factors ? factors : NULL, &out);
    return case_give(run, status, &out);
}

const case_entry cases_products[] = {
    {"matmul", run_matmul},
    {"broadcast_matmul", run_matmul},
    {"conv1d", run_conv1d},
    {"conv2d", run_conv2d},
    {"conv_transpose1d", run_conv_transpose1d},
    {"conv_transpose2d", run_conv_transpose2d},
    {"avg_pool2d", run_avg_pool2d},
    {"max_pool2d", run_max_pool2d},
    {"upsample_nearest1d", run_nearest1d},
    {"upsample_nearest2d", run_nearest2d},
    {"upsample_bilinear2d", run_bilinear2d},
    {NULL, NULL},
};
