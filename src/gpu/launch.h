/* Launching kernels: one function per kernel, launch_NAME, generated from kernels/kernels.def, so that the compiler checks the
 * arguments. If the driver reports the size of a kernel's arguments, it is checked against the loaded code too.
 *
 *     const score_args args = {.rows = ..., .count = n};
 *     status = launch_score(stream, grid_of(blocks), 256, 0, &args);
 *
 * kernels/arguments.h has the args structs. Launches are queued on the stream and do not wait.
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

/* The number of blocks of any size that one launch may have along x, and along y. A job that may need more is divided before it
 * is launched: along x by gpu/tensor/pieces.c, along y by a loop around the launch. */
static inline int64_t gpu_blocks_max(const gpu_device *device)
{
    return gpu_blocks_of(device, device->base.info.max_threads_per_block);
}

static inline int64_t gpu_blocks_y_max(const gpu_device *device)
{
    return device->limits.grid[1];
}

/* Blocks in two directions, at most gpu_blocks_max() and gpu_blocks_y_max(). If the chip can, an early grid starts while
 * earlier kernels of the stream still run: its kernel calls launches_wait() before it reads what they may write, or writes
 * anything. */
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

/* The shape of a launch: the grid, the threads of a block, and the bytes of dynamic shared memory per block.
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

/* Queues kernel number `kernel`. Loads its module at its first use. Refuses a shape that the function or the device does not
 * allow, or an empty grid, with WW_INTERNAL, because the operation chooses the shape. */
ww_status gpu_launch(gpu_stream *stream, int32_t kernel, gpu_shape shape, const void *arguments, size_t arguments_bytes);

/* Returns what the loaded function needs and allows, for an operation that chooses its shape by it. */
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
