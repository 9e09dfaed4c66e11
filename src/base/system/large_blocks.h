/* Large blocks of host memory, and how much of them is promised but not yet used.
 *
 * The system promises memory that it may not have; a page takes memory only when it is first written. So six blocks of 15 GiB
 * can be allocated on a machine with 24 GiB, and the process is killed while it fills them. To prevent that, blocks of a
 * megabyte and more are listed, and a new one is refused unless it fits besides the unwritten parts of the others. Written
 * pages are not counted again, because the system's free memory no longer includes them.
 */
#ifndef WW_BASE_SYSTEM_LARGE_BLOCKS_H
#define WW_BASE_SYSTEM_LARGE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LARGE_BLOCK_BYTES = 1 << 20 };

/* Returns true if a block of `bytes` fits in the free memory. It then counts as promised until it is listed or given up. */
bool large_block_reserve(size_t bytes);

/* Lists the reserved block at `block`; NULL gives the reservation up. */
void large_block_list(void *block, size_t bytes);

/* Lists a block again that could not be resized. */
void large_block_relist(void *block, size_t bytes);

/* Called before a block is freed. Ignores blocks that are not listed. */
void large_block_forget(void *block);

/* Returns the free memory of the machine and of the container's limits, minus what is promised and not used. */
int64_t large_blocks_available(void);

/* Test hook: reads the limits below `root` (base/system/limits.h) and ignores the machine; NULL: back to this machine. */
void large_blocks_limits_root(const char *root);

#endif
