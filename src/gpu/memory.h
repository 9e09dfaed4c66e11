/* Device memory: the pool that hands it out, and the watch that counts it.
 *
 * Blocks come from the driver in size classes and go back to the pool, not to the driver, so that a size that was used once is
 * allocated again without a driver call. All functions need the device entered.
 */
#ifndef WW_GPU_MEMORY_H
#define WW_GPU_MEMORY_H

#include "gpu/device.h"

ww_status gpu_pool_create(gpu_device *device);
/* Returns everything pooled to the driver and destroys the pool. Buffers that are still in use are a defect of the caller. */
void gpu_pool_destroy(gpu_device *device);

/* A buffer of at least `bytes`, aligned to 256. 0 bytes give an empty buffer. Refuses what does not fit in what is free, after
 * giving back what was pooled and what idle streams hold, with the numbers. */
ww_status gpu_memory_alloc(gpu_device *device, size_t bytes, buffer *out);

/* Gives it back to the pool and empties the struct. The work that used it is done. */
void gpu_memory_free(gpu_device *device, buffer *memory);

/* Gives it back to the driver, which waits for all work on the device, and empties the struct. */
void gpu_memory_discard(gpu_device *device, buffer *memory);

/* Gives the pooled blocks to the driver; returns the first number that was not 0. */
int gpu_pool_trim(gpu_device *device);

/* Ours, pooled, peak; what the driver knows is asked there. */
void gpu_pool_count(gpu_device *device, ww_memory_info *memory);

/* `more` bytes (fewer if negative) are handed out, but their owner has only set them aside: they count as pooled. */
void gpu_pool_count_aside(gpu_device *device, int64_t more);

/* The size of the block that holds `bytes`: 64 classes from one power of two to the next, so that at most 1/64 is lost to
 * rounding above 16 KiB, and multiples of 256 below. 0 where that overflows. */
size_t gpu_block_bytes(size_t bytes);

#endif
