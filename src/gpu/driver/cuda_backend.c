/* The backend "cuda": the GPU backend over CUDA's driver table. */
#include "gpu/backend.h"

static ww_status cuda_count(int32_t *count)
{
    return gpu_count(&cuda_driver, count);
}

static ww_status cuda_describe(int32_t index, ww_device_info *info)
{
    return gpu_describe(&cuda_driver, index, info);
}

static ww_status cuda_open(int32_t index, ww_device **device)
{
    return gpu_open(&backend_cuda, &cuda_driver, index, device);
}

const backend backend_cuda = {
    .name = "cuda", .count = cuda_count, .describe = cuda_describe, .open = cuda_open, GPU_BACKEND_COMMON};
