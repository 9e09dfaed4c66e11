/* Cumulative sums, and convolutions of integers, on a GPU: one launch each. */
#include "arithmetic/cumsum.h"
#include "arithmetic/conv_integer.h"

#include "base/integers.h"
#include "gpu/launch.h"
#include "gpu/tensor/tensor.h"

enum { BLOCKS_MAX = 1 << 20 };

static gpu_grid grid_over(const gpu_stream *stream, int64_t count, int64_t threads)
{
    return grid_of(min_i64(divide_up_i64(count, threads), min_i64(gpu_blocks_max(stream->device), BLOCKS_MAX)));
}

ww_status gpu_cumsum(ww_device *base, const cumsum_args *args)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_context previous = NULL;
    ww_status status = gpu_tensors_enter(device, &stream, &previous);
    if (status != WW_OK)
        return status;
    status = launch_tensor_cumsum(stream, grid_over(stream, args->count, CUMSUM_THREADS), CUMSUM_THREADS, 0, args);
    return gpu_tensors_leave(device, previous, status);
}

ww_status gpu_conv_integer(ww_device *base, const conv_integer_args *args)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_context previous = NULL;
    ww_status status = gpu_tensors_enter(device, &stream, &previous);
    if (status != WW_OK)
        return status;
    status = launch_conv_integer(stream, grid_over(stream, args->count, CONV_INTEGER_THREADS), CONV_INTEGER_THREADS, 0, args);
    return gpu_tensors_leave(device, previous, status);
}
