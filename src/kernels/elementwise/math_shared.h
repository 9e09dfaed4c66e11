/* The tables of gelu_erf and pow in a block's shared memory. All threads of the block call the functions that fill them, and
 * may read the tables after that. */
#ifndef WW_KERNELS_ELEMENTWISE_MATH_SHARED_H
#define WW_KERNELS_ELEMENTWISE_MATH_SHARED_H

#include "kernels/simt/simt.h"

#include "arithmetic/math/f32.h"

DEVICE void normal_fill(f32x4 *table)
{
    if (thread_index() < 2 * MATH_NORMAL_COLUMN) {
        const float *from = math_normal_table_f32() + thread_index() / 2;
        const int32_t first = thread_index() % 2 * 4;
        float c[4];
        UNROLL for (int32_t j = 0; j < 4; j++) c[j] =
            from[(first + j < MATH_NORMAL_TERMS ? first + j : 0) * MATH_NORMAL_COLUMN];
        table[thread_index()] = make_f32x4(c[0], c[1], c[2], c[3]);
    }
    barrier();
}

DEVICE math_normal_f32 normal_entry(const f32x4 *entry)
{
    const f32x4 low = entry[0];
    const f32x4 high = entry[1];
    const math_normal_f32 of = {low.x, low.y, low.z, low.w, high.x, high.y, high.z};
    return of;
}

/* An entry is 16 bytes and read at once: one instruction, which takes no more memory time than two of half the size. */
DEVICE void pow_fill(f32x4 *table)
{
    if (thread_index() < MATH_POW_COLUMN) {
        const float *from = math_pow_table_f32() + thread_index();
        table[thread_index()] = make_f32x4(from[0], from[MATH_POW_COLUMN], from[2 * MATH_POW_COLUMN], 0.0f);
    }
    barrier();
}

DEVICE math_pow_f32 pow_entry(const f32x4 *at)
{
    const f32x4 entry = *at;
    const math_pow_f32 of = {entry.x, entry.y, entry.z};
    return of;
}

#define POW_TABLE                                                                                                              \
    SHARED(f32x4, pow_table, MATH_POW_COLUMN);                                                                                 \
    pow_fill(AT_RANGE(pow_table, 0, MATH_POW_COLUMN))

#define POW_ENTRY(bits) pow_entry(AT_RANGE(pow_table, math_pow_interval_f32(bits), 1))

#define POW_BY_TABLE(x, y, plain) math_pow_of_f32(x, y, POW_ENTRY(math_pow_bits_of_f32(x, plain)), plain)

#endif
