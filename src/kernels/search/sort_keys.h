/* Sorts keys in shared memory with a block. */
#ifndef WW_KERNELS_SEARCH_SORT_KEYS_H
#define WW_KERNELS_SEARCH_SORT_KEYS_H

#include "kernels/simt/simt.h"

/* Sorts `count` keys, a power of two, in shared memory. Called by all threads; ends with a barrier. */
DEVICE void sort_power_of_two(uint64_t *keys, uint32_t count)
{
    for (uint32_t size = 2; size <= count; size *= 2)
        for (uint32_t stride = size / 2; stride > 0; stride /= 2) {
            barrier();
            for (uint32_t i = thread_index(); i < count / 2; i += block_size()) {
                const uint32_t low = 2 * i - (i & (stride - 1)), high = low + stride;
                const uint64_t a = AT(keys, low), b = AT(keys, high);
                const bool ascending = (low & size) == 0;
                if ((a > b) == ascending) {
                    AT(keys, low) = b;
                    AT(keys, high) = a;
                }
            }
        }
    barrier();
}

/* Sorts any number of keys. The buffer has room up to the next power of two. */
DEVICE void sort_keys(uint64_t *keys, uint32_t count)
{
    uint32_t whole = 2;
    while (whole < count)
        whole *= 2;
    for (uint32_t i = count + thread_index(); i < whole; i += block_size())
        AT(keys, i) = CANON_KEY_WORST;
    sort_power_of_two(keys, whole);
}

#endif
