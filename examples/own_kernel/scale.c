/* A kernel of the caller: y = factor x, and the sum of each block's part of y, through shared memory.
 *
 * One source for AMD's GPUs, NVIDIA's and the emulator, in the words of simt.h (docs/design/kernels.md). A kernel in HIP or in
 * CUDA does as well: what is loaded is a code object or PTX, however it was made. CMake: warpwave_add_kernels().
 */
#include "kernels/simt/simt.h"

enum { THREADS = 128 };

typedef struct scale_args {
    const float *x;
    float *y;
    float *sums; /* one a block */
    float factor;
    int64_t count;
} scale_args;

KERNEL(scale, scale_args, THREADS)
{
    SHARED(float, parts, THREADS);
    const int64_t i = (int64_t)block_index() * block_size() + thread_index();
    const float y = i < args.count ? args.factor * args.x[i] : 0.0f;
    if (i < args.count)
        args.y[i] = y;
    AT(parts, thread_index()) = y;
    barrier();
    if (thread_index() != 0)
        return;
    float sum = 0.0f;
    for (uint32_t t = 0; t < block_size(); t++)
        sum += AT(parts, t);
    args.sums[block_index()] = sum;
}
