/* Random numbers on a GPU: one launch. */
#include "gpu/launch.h"
#include "gpu/tensor/tensor.h"

ww_status gpu_random(ww_device *base, const random_job *job)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_context previous = NULL;
    const bool doubles = job->type == TYPE_F64;
    const int64_t blocks = (job->count + (doubles ? 1 : 3)) / (doubles ? 2 : 4);
    const gpu_grid grid = grid_of((blocks + RANDOM_THREADS - 1) / RANDOM_THREADS);
    const random_args args = {.to = job->to,
                              .count = job->count,
                              .seed = job->seed,
                              .first_block = job->first_block,
                              .a = job->a,
                              .b = job->b,
                              .type = job->type,
                              .what = job->what};
    ww_status status = gpu_tensors_enter(device, &stream, &previous);
    if (status != WW_OK)
        return status;
    status = launch_tensor_random(stream, grid, RANDOM_THREADS, 0, &args);
    return gpu_tensors_leave(device, previous, status);
}
