/* Whole tiles of two dense operands of the same type, for tensor_pow_atan2.c and tensor_pow_atan2_half.c: which units a thread
 * has, and a loop over them for each operation.
 */
#ifndef WW_KERNELS_ELEMENTWISE_BINARY_TILES_H
#define WW_KERNELS_ELEMENTWISE_BINARY_TILES_H

#include "kernels/elementwise/elements.h"

#include "kernels/elementwise/math_shared.h"

/* Finds a thread's units and starts to load the first ones, after earlier launches that may still write them. */
#define BINARY_TILE_BEGIN                                                                                                      \
    launches_wait();                                                                                                           \
    launches_next();                                                                                                           \
    const int64_t begin = 16 * ((int64_t)block_index() * ELEMENTWISE_THREADS * SLOTS + thread_index());                        \
    const char *x_from = (const char *)IN_GLOBAL(char, args.in[0].data) + begin;                                               \
    const char *y_from = (const char *)IN_GLOBAL(char, args.in[1].data) + begin;                                               \
    char *to = (char *)IN_GLOBAL(char, args.out.data) + begin;                                                                 \
    quad_bits x_now = quad_load(x_from, 0, 4);                                                                                 \
    quad_bits y_now = quad_load(y_from, 0, 4);                                                                                 \
    POW_TABLE;

/* Runs `slot`, which computes `result` from x_unit and y_unit, for all slots of a thread. The next units are in flight
 * meanwhile. */
#define BINARY_TILE_SLOTS(slot)                                                                                                \
    UNROLL_BY(1) for (int32_t left = SLOTS; left > 0; left--)                                                                  \
    {                                                                                                                          \
        const quad_bits x_unit = x_now;                                                                                        \
        const quad_bits y_unit = y_now;                                                                                        \
        quad_bits result = {{0, 0, 0, 0}};                                                                                     \
        x_from += 16 * ELEMENTWISE_THREADS;                                                                                    \
        y_from += 16 * ELEMENTWISE_THREADS;                                                                                    \
        if (left > 1) {                                                                                                        \
            x_now = quad_load(x_from, 0, 4);                                                                                   \
            y_now = quad_load(y_from, 0, 4);                                                                                   \
        }                                                                                                                      \
        slot quad_store(to, 0, 4, result);                                                                                     \
        to += 16 * ELEMENTWISE_THREADS;                                                                                        \
    }

/* ---- elements of a unit of 16-bit types, one by one ------------------------------------------------------------------- */

DEVICE float element_of_unit(quad_bits unit, uint32_t j, int32_t type)
{
    const uint32_t first = j & 2 ? unit.word[1] : unit.word[0];
    const uint32_t second = j & 2 ? unit.word[3] : unit.word[2];
    const uint16_t bits = (uint16_t)((j & 4 ? second : first) >> (16 * (j & 1)));
    return type == TYPE_F16 ? widen_f16(bits) : widen_bf16(bits);
}

DEVICE void element_to_unit(quad_bits *unit, uint32_t j, float value, int32_t type)
{
    const uint32_t shift = 16 * (j & 1);
    const uint32_t bits = (uint32_t)(type == TYPE_F16 ? narrow_f16(value) : narrow_bf16(value)) << shift;
    UNROLL for (uint32_t w = 0; w < 4; w++) unit->word[w] =
        j >> 1 == w ? (unit->word[w] & ~(0xffffu << shift)) | bits : unit->word[w];
}

#endif
