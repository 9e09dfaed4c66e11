/* Device memory: the pool that allocates it, and the counts.
 *
 * Blocks come from the driver in size classes and go back to the pool, not to the driver, so a size that was used before is
 * allocated again without a driver call. All functions need the device entered.
 */
#ifndef WW_GPU_MEMORY_H
#define WW_GPU_MEMORY_H

#include "gpu/device.h"

ww_status gpu_pool_create(gpu_device *device);
/* Returns all pooled memory to the driver and destroys the pool. The caller must have freed all buffers. */
void gpu_pool_destroy(gpu_device *device);

/* Allocates at least `bytes`, aligned to 256. 0 bytes give an empty buffer. If memory is short, it first returns pooled memory
 * and what idle streams hold to the driver; then it fails with the numbers in the message. */
ww_status gpu_memory_alloc(gpu_device *device, size_t bytes, buffer *out);

/* Returns the buffer to the pool and clears the struct. The work that used it must be done. */
void gpu_memory_free(gpu_device *device, buffer *memory);

/* Returns the buffer to the driver, which waits for all work on the device, and clears the struct. */
void gpu_memory_discard(gpu_device *device, buffer *memory);

/* Returns the pooled blocks to the driver. Returns the first error number, or 0. */
int gpu_pool_trim(gpu_device *device);

/* Fills in the bytes in use, pooled, and the peak; the driver's own numbers are queried elsewhere. */
void gpu_pool_count(gpu_device *device, ww_memory_info *memory);

/* Counts `more` bytes (fewer if negative) that are allocated but only set aside by their owner as pooled. */
void gpu_pool_count_aside(gpu_device *device, int64_t more);

/* Returns the size of the block for `bytes`: 64 classes from one power of two to the next, so rounding loses at most 1/64 above
 * 16 KiB; below, multiples of 256. 0 if that overflows. */
size_t gpu_block_bytes(size_t bytes);

#endif
