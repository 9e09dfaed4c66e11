/* Keys put in order by a block, in shared memory. */
#ifndef WW_KERNELS_ORDER_H
#define WW_KERNELS_ORDER_H

#include "kernels/simt.h"

/* Sorts the keys of a wave, one a lane. By a whole wave. */
DEVICE uint64_t order_wave(uint64_t key)
{
    UNROLL
    for (uint32_t size = 2; size <= wave_size(); size *= 2) {
        UNROLL
        for (uint32_t stride = size / 2; stride > 0; stride /= 2) {
            const uint64_t other = wave_shuffle_xor_u64(key, stride);
            const bool lesser = ((lane() & stride) == 0) == ((lane() & size) == 0);
            key = (other < key) == lesser ? other : key;
        }
    }
    return key;
}

/* How many of `count` keys in order, a power of two of them in shared memory, are less than `key`, or with `equal` not more. */
DEVICE uint32_t order_before(const uint64_t *keys, uint32_t count, uint64_t key, bool equal)
{
    uint32_t before = 0;
    for (uint32_t step = count; step > 0; step /= 2) {
        const uint32_t at = before + step;
        if (at > count)
            continue;
        const uint64_t other = AT(keys, at - 1);
        before = other < key || (equal && other == key) ? at : before;
    }
    return before;
}

/* Sorts the first `count` keys, a power of two, in shared memory. By all threads; ends with a barrier. */
DEVICE void order_power(uint64_t *keys, uint32_t count)
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

/* Sorts `count` keys, of any number, with room up to the next power of two. */
DEVICE void order_keys(uint64_t *keys, uint32_t count)
{
    uint32_t whole = 2;
    while (whole < count)
        whole *= 2;
    for (uint32_t i = count + thread_index(); i < whole; i += block_size())
        AT(keys, i) = CANON_KEY_WORST;
    order_power(keys, whole);
}

#endif
