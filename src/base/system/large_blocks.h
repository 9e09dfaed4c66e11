/* Large blocks of host memory, and how much of them is promised but not yet used.
 *
 * The system hands out memory that it may not have and takes it page by page, when a page is first written: six blocks of
 * 15 GiB can be allocated on a machine of 24 GiB, and the process is killed while it fills them. So blocks of a megabyte and
 * more are listed, and a new one is refused unless it fits beside what the others have still to take. Pages that were written
 * count once: the system's own figure of free memory has fallen by them already.
 */
#ifndef WW_BASE_SYSTEM_LARGE_BLOCKS_H
#define WW_BASE_SYSTEM_LARGE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LARGE_BLOCK_BYTES = 1 << 20 };

/* Says whether a block of `bytes` fits into what is free, and if so counts it as promised until it is listed or given up. */
bool large_block_reserve(size_t bytes);

/* The reserved block was had, at `block`; or, with NULL, it was not. */
void large_block_list(void *block, size_t bytes);

/* The same for a block that was listed before, and could not be resized. */
void large_block_relist(void *block, size_t bytes);

/* The block is about to be given back. A block that is not listed is ignored. */
void large_block_forget(void *block);

/* Free memory by the machine and by the container's limits, less what is promised and not used. */
int64_t large_blocks_available(void);

/* A test hook: the limits are read below `root` (base/system/limits.h) and nothing else counts; NULL: back to this machine. */
void large_blocks_limits_root(const char *root);

#endif
