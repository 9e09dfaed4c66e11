/* Which block of a launch ends last: it alone sees what all have left, and goes on with that without another launch. */
#ifndef WW_KERNELS_SIMT_LAST_BLOCK_H
#define WW_KERNELS_SIMT_LAST_BLOCK_H

#include "kernels/simt/simt.h"

/* Is this the last of `blocks` blocks to come here? `ready`, in global memory, counts them from 0; `ticket` is a word of shared
 * memory. What any of them wrote before it came is seen by the last after it, which has to set `ready` back. By all threads. */
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
