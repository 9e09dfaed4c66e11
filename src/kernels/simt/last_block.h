/* Finds the last block of a launch to finish. That block sees the results of all blocks, and continues with them without
 * another launch. */
#ifndef WW_KERNELS_SIMT_LAST_BLOCK_H
#define WW_KERNELS_SIMT_LAST_BLOCK_H

#include "kernels/simt/simt.h"

/* Returns true in the last of `blocks` blocks to arrive. `ready`, in global memory, counts them from 0; `ticket` is a word of
 * shared memory. The last block sees everything that the others wrote before they arrived, and must set `ready` back to 0. All
 * threads call it. */
DEVICE bool block_is_last(uint32_t *ready, uint32_t blocks, uint32_t *ticket)
{
    memory_fence_device();
    barrier();
    if (thread_index() == 0)
        AT(ticket, 0) = atomic_add_u32(ready, 1);
    barrier();
    memory_fence_device();
    return AT(ticket, 0) == blocks - 1;
}

#endif
