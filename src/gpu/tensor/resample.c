/* Pools and enlargements of images on a GPU: one launch each. */
#include "arithmetic/resample.h"

#include "gpu/launch.h"
#include "gpu/tensor/tensor.h"

enum { BLOCKS_MAX = 1 << 20 };

/* Returns a type of this size. */
static int32_t of_size(int32_t bytes)
{
    return bytes == 1 ? TYPE_U8 : bytes == 2 ? TYPE_I16 : bytes == 4 ? TYPE_U32 : TYPE_I64;
}

static ww_status launch(gpu_stream *stream, resample_args *args)
{
    const int64_t blocks = (args->count + RESAMPLE_THREADS - 1) / RESAMPLE_THREADS;
    const int64_t allowed = gpu_blocks_max(stream->device), blocks_max = allowed < BLOCKS_MAX ? allowed : BLOCKS_MAX;
    const gpu_grid grid = grid_of(blocks < blocks_max ? blocks : blocks_max);
#define LAUNCH(name) launch_##name(stream, grid, RESAMPLE_THREADS, 0, args)
    if (args->what == RESAMPLE_NEAREST) {
        args->type = of_size(type_size(args->type));
        return LAUNCH(tensor_nearest);
    }
    return args->what == RESAMPLE_BILINEAR ? LAUNCH(tensor_bilinear) : LAUNCH(tensor_pool);
#undef LAUNCH
}

ww_status gpu_resample(ww_device *base, const resample_args *args)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_context previous = NULL;
    resample_args own = *args;
    ww_status status = gpu_tensors_enter(device, &stream, &previous);
    if (status != WW_OK)
        return status;
    status = launch(stream, &own);
    return gpu_tensors_leave(device, previous, status);
}
