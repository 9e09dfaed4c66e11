/* The backend "rocm": the GPU backend over HIP's driver table. */
#include "gpu/backend.h"

static ww_status rocm_count(int32_t *count)
{
    return gpu_count(&hip_driver, count);
}

static ww_status rocm_describe(int32_t index, ww_device_info *info)
{
    return gpu_describe(&hip_driver, index, info);
}

static ww_status rocm_open(int32_t index, ww_device **device)
{
    return gpu_open(&backend_rocm, &hip_driver, index, device);
}

const backend backend_rocm = {
    .name = "rocm", .count = rocm_count, .describe = rocm_describe, .open = rocm_open, GPU_BACKEND_COMMON};
