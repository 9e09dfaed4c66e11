/* Launching kernels: one function a kernel, launch_NAME, generated from kernels/kernels.def, so that the compiler checks the
 * arguments. Their size is checked a second time against the loaded code where the driver can say what that takes.
 *
 *     const score_args args = {.rows = ..., .count = n};
 *     status = launch_score(stream, grid_of(blocks), 256, 0, &args);
 *
 * kernels/arguments.h brings the args structs. Launches are queued on the stream and do not wait.
 */
#ifndef WW_GPU_LAUNCH_H
#define WW_GPU_LAUNCH_H

#include "gpu/device.h"
#include "gpu/stream.h"
#include "kernels/arguments.h"

/* How many blocks of `threads` threads one launch may have along x on this device. */
static inline int64_t gpu_blocks_of(const gpu_device *device, int64_t threads)
{
    const int64_t by_threads = device->limits.threads[0] / threads;
    return by_threads < device->limits.grid[0] ? by_threads : device->limits.grid[0];
}

/* The same for blocks of any size, and how many along y. A job that may need more is cut
 * before it is launched: along x by gpu/tensor/pieces.c, along y by a loop around the launch. */
static inline int64_t gpu_blocks_max(const gpu_device *device)
{
    return gpu_blocks_of(device, device->base.info.max_threads_per_block);
}

static inline int64_t gpu_blocks_y_max(const gpu_device *device)
{
    return device->limits.grid[1];
}

/* Blocks in two directions, as many as gpu_blocks_max() and gpu_blocks_y_max() allow. An early grid may begin while kernels in
 * front of it in the stream still run, where the chip can: its kernel calls launches_wait() before it touches what they may
 * write, or writes anything. */
typedef struct gpu_grid {
    int64_t x, y;
    bool early;
} gpu_grid;

static inline gpu_grid grid_of(int64_t x)
{
    return (gpu_grid){.x = x, .y = 1};
}

static inline gpu_grid grid_of_2(int64_t x, int64_t y)
{
    return (gpu_grid){.x = x, .y = y};
}

static inline gpu_grid grid_early(gpu_grid grid)
{
    grid.early = true;
    return grid;
}

/* What a kernel is launched with: the grid, the threads of a block, and the bytes of dynamic shared memory that each block has.
 */
typedef struct gpu_shape {
    gpu_grid grid;
    int32_t block;
    size_t shared_bytes;
} gpu_shape;

enum gpu_kernel {
#define KERNEL_ENTRY(module, name, args_type) GPU_KERNEL_##name,
#include "kernels/kernels.def"
#undef KERNEL_ENTRY
    GPU_KERNEL_COUNT
};

/* Queues kernel number `kernel`. Loads its module if this is the first of it. Refuses what the function or the device does
 * not allow, an empty grid among it, with WW_INTERNAL: shapes are the operation's affair. */
ww_status gpu_launch(gpu_stream *stream, int32_t kernel, gpu_shape shape, const void *arguments, size_t arguments_bytes);

/* What the loaded function needs and allows, for an operation that chooses its shape by it. */
ww_status gpu_kernel_limits(gpu_device *device, int32_t kernel, driver_function_limits *out);

#define KERNEL_ENTRY(module, name, args_type)                                                                                  \
    static inline ww_status launch_##name(gpu_stream *stream, gpu_grid grid, int32_t block, size_t shared_bytes,               \
                                          const args_type *args)                                                               \
    {                                                                                                                          \
        return gpu_launch(stream, GPU_KERNEL_##name, (gpu_shape){grid, block, shared_bytes}, args, sizeof *args);              \
    }
#include "kernels/kernels.def"
#undef KERNEL_ENTRY

#endif
