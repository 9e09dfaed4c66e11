/* Cases of matrix products and convolutions. */
#include "cli/cases/cases.h"

static ww_status run_matmul(case_run *run)
{
    ww_tensor a;
    ww_tensor b;
    ww_storage *out = NULL;
    ww_status status = case_input(run, "a", &a);
    if (status == WW_OK)
        status = case_input(run, "b", &b);
    if (status == WW_OK)
        status = ww_tensor_matmul(&a, &b, WW_MATH_CANONICAL, &out);
    if (status != WW_OK)
        return status;
    const int32_t ra = a.layout.rank, rb = b.layout.rank, rank = ra > rb ? ra : rb;
    int64_t shape[WW_RANK_MAX];
    for (int32_t d = 0; d < rank; d++) {
        const int64_t x = d < rank - ra ? 1 : a.layout.shape[d - (rank - ra)];
        const int64_t y = d < rank - rb ? 1 : b.layout.shape[d - (rank - rb)];
        shape[d] = d == rank - 1 ? y : d == rank - 2 || y == 1 ? x : y;
    }
    return case_give(run, out, rank, shape);
}

typedef ww_status (*convolution)(const ww_tensor *x, const ww_tensor *w, const ww_conv *how, ww_storage **out);

/* A list of one or two whole numbers, one of which stands for both. */
static void read_pair(const case_run *run, const char *name, int64_t pair[2])
{
    int64_t numbers[2];
    const int32_t count = case_integers(run, name, numbers, 2);
    if (count < 1)
        return;
    pair[0] = numbers[0];
    pair[1] = numbers[count == 2 ? 1 : 0];
}

static ww_status run_convolution(case_run *run, convolution convolve, bool transposed)
{
    ww_tensor x;
    ww_tensor w;
    ww_storage *out = NULL;
    ww_conv how = ww_conv_default();
    ww_status status = case_input(run, "x", &x);
    if (status == WW_OK)
        status = case_input(run, "w", &w);
    if (status != WW_OK)
        return status;
    read_pair(run, "padding", how.padding);
    read_pair(run, "stride", how.stride);
    read_pair(run, "dilation", how.dilation);
    read_pair(run, "output_padding", how.output_padding);
    how.groups = case_integer(run, "groups", 1);
    status = convolve(&x, &w, &how, &out);
    if (status != WW_OK)
        return status;
    int64_t shape[WW_RANK_MAX] = {x.layout.shape[0], transposed ? w.layout.shape[1] * how.groups : w.layout.shape[0]};
    for (int32_t d = 2; d < x.layout.rank; d++) {
        const int64_t in = x.layout.shape[d], kernel = w.layout.shape[d];
        shape[d] = transposed ? ww_conv_transpose_size(in, kernel, how.padding[d - 2], how.stride[d - 2], how.dilation[d - 2],
                                                       how.output_padding[d - 2])
                              : ww_conv_size(in, kernel, how.padding[d - 2], how.stride[d - 2], how.dilation[d - 2]);
    }
    return case_give(run, out, x.layout.rank, shape);
}

static ww_status run_conv1d(case_run *run)
{
    return run_convolution(run, ww_tensor_conv1d, false);
}

static ww_status run_conv2d(case_run *run)
{
    return run_convolution(run, ww_tensor_conv2d, false);
}

static ww_status run_conv_transpose1d(case_run *run)
{
    return run_convolution(run, ww_tensor_conv_transpose1d, true);
}

static ww_status run_conv_transpose2d(case_run *run)
{
    return run_convolution(run, ww_tensor_conv_transpose2d, true);
}

const case_entry cases_products[] = {
    {"matmul", run_matmul},
    {"conv1d", run_conv1d},
    {"conv2d", run_conv2d},
    {"conv_transpose1d", run_conv_transpose1d},
    {"conv_transpose2d", run_conv_transpose2d},
    {NULL, NULL},
};
