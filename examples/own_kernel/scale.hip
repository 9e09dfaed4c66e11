/* The kernel of scale.c in the words that HIP and CUDA share, as ww_module_compile() takes it: own_kernel DEVICE scale.hip. */
#include <stdint.h>

extern "C" __global__ __launch_bounds__(128) void scale(const float *x, float *y, float *sums, float factor, int64_t count)
{
    __shared__ float parts[128];
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    parts[threadIdx.x] = i < count ? factor * x[i] : 0.0f;
    if (i < count)
        y[i] = parts[threadIdx.x];
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    float sum = 0.0f; /* of each block's part of y */
    for (unsigned t = 0; t < blockDim.x; t++)
        sum += parts[t];
    sums[blockIdx.x] = sum;
}
