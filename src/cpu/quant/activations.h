/* Encodes floats as q8_0, q8_1 and q8_k, as arithmetic/blocks/encode.h does, 16 elements at a time. These have a fast way
 * because each product encodes its activations; other formats are encoded once.
 */
#ifndef WW_CPU_QUANT_ACTIVATIONS_H
#define WW_CPU_QUANT_ACTIVATIONS_H

#include <stddef.h>

#include "arithmetic/blocks/encode.h"
#include "cpu/quant/lanes16.h"

typedef uint32_t lanes_counts
    __attribute__((vector_size(4 * REGISTER_LANES))); /* may overflow in blocks that will be refused */

/* Sixteen elements. */
LANES_FUNCTION void lanes_take(const float *from, lanes x[LANES_REGISTERS])
{
    memcpy(x, from, LANES * sizeof *from);
}

LANES_FUNCTION lanes_mask mask_select(lanes_mask where, lanes_mask a, lanes_mask b)
{
    return (a & where) | (b & ~where);
}

LANES_FUNCTION lanes_mask lanes_magnitude(lanes x)
{
    return (lanes_mask)x & 0x7fffffff;
}

/* The maximum, the minimum and the sum of the integers of a register. */
#define MASK_REDUCE(name, operation)                                                                                           \
    LANES_FUNCTION int32_t name(lanes_mask a)                                                                                  \
    {                                                                                                                          \
        if (REGISTER_LANES > 8)                                                                                                \
            a = operation(a, (lanes_mask)lanes_xor((lanes)a, 8));                                                              \
        if (REGISTER_LANES > 4)                                                                                                \
            a = operation(a, (lanes_mask)lanes_xor((lanes)a, 4));                                                              \
        a = operation(a, (lanes_mask)lanes_xor((lanes)a, 2));                                                                  \
        return operation(a, (lanes_mask)lanes_xor((lanes)a, 1))[0];                                                            \
    }
#define MASK_LARGER(a, b)  mask_select((a) > (b), a, b)
#define MASK_SMALLER(a, b) mask_select((a) < (b), a, b)
#define MASK_ADDED(a, b)   ((lanes_mask)((lanes_counts)(a) + (lanes_counts)(b)))
MASK_REDUCE(mask_largest, MASK_LARGER)
MASK_REDUCE(mask_smallest, MASK_SMALLER)
MASK_REDUCE(mask_sum, MASK_ADDED)

LANES_FUNCTION void lanes_put_codes(int8_t *to, const lanes_mask codes[LANES_REGISTERS])
{
    const lanes_bytes bytes = mask_to_bytes(codes);
    memcpy(to, &bytes, sizeof bytes);
}

/* Same as block_round_away(). */
LANES_FUNCTION lanes_mask lanes_round_away(lanes x)
{
    const lanes clamped = lanes_min(lanes_max(x, lanes_all(-127.0f)), lanes_all(127.0f));
    const lanes within = (lanes)((lanes_mask)clamped & (lanes_magnitude(x) <= BLOCK_INFINITE)); /* NaN becomes 0 */
    const lanes_mask cut = lanes_cut(within);
    const lanes rest = within - __builtin_convertvector(cut, lanes);
    return cut - (rest >= lanes_all(0.5f)) + (rest <= lanes_all(-0.5f)); /* a true comparison is -1 */
}

#ifndef SMALL_ENCODE_BY_SET /* otherwise the set has its own small_half and small_encode */
LANES_FUNCTION uint32_t small_half(float value)
{
    return block_f16_from_f32(value);
}

/* Encodes 32 elements: their scale in `d`, the scale before rounding in `exact`, the sum of the codes in `sum`. Returns whether
 * the block cannot hold them. */
LANES_FUNCTION int small_encode(const float *x, int8_t *codes, block_f16 *d, float *exact, int32_t *sum)
{
    lanes all[2 * LANES_REGISTERS];
    lanes_mask magnitudes = {0}, sums = {0}, made[2 * LANES_REGISTERS];
    lanes_take(x, all);
    lanes_take(x + LANES, all + LANES_REGISTERS);
    for (int32_t p = 0; p < 2 * LANES_REGISTERS; p++)
        magnitudes = MASK_LARGER(lanes_magnitude(all[p]), magnitudes);
    const int32_t largest = mask_largest(magnitudes);
    const float scale = canon_bits_float((uint32_t)largest) / 127.0f, inverse = block_inverse(scale);
    for (int32_t p = 0; p < 2 * LANES_REGISTERS; p++) {
        made[p] = lanes_round_away(all[p] * inverse);
        sums += made[p];
    }
    lanes_put_codes(codes, made);
    lanes_put_codes(codes + LANES, made + LANES_REGISTERS);
    *d = (block_f16)small_half(scale);
    *exact = scale;
    *sum = mask_sum(sums);
    return (largest >= BLOCK_INFINITE) | block_f16_bad(*d);
}
#endif

/* Encodes blocks of 32, with codes `codes_at` bytes after the scale; q8_1 has the scaled sum of the codes in between. */
LANES_FUNCTION int64_t small_encode_many(int32_t type, const float *from, char *to, int64_t count)
{
    const size_t codes_at = type == BLOCK_Q8_1 ? offsetof(block_q8_1, codes) : offsetof(block_q8_0, codes);
    int64_t refused = count;
    for (int64_t i = 0; i < count; i++, to += block_bytes(type)) {
        float scale;
        int32_t sum;
        block_f16 d[2];
        if (small_encode(from + i * BLOCK32_ELEMENTS, (int8_t *)to + codes_at, d, &scale, &sum) && i < refused)
            refused = i;
        d[1] = (block_f16)small_half((float)sum * scale);
        memcpy(to, d, codes_at);
    }
    return refused;
}

static int64_t encode_many_q8_0(const float *from, void *to, int64_t count)
{
    return small_encode_many(BLOCK_Q8_0, from, to, count);
}

static int64_t encode_many_q8_1(const float *from, void *to, int64_t count)
{
    return small_encode_many(BLOCK_Q8_1, from, to, count);
}

/* Same as encode_q8_k(). */
LANES_FUNCTION int large_encode(const float *x, block_q8_k *b)
{
    static const int32_t from_0[LANES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    lanes_mask magnitudes = {0}, first = (lanes_mask){0} + KBLOCK_ELEMENTS, places;
    lanes all[LANES_REGISTERS];
    memcpy(&places, from_0, sizeof places);
    for (int32_t at = 0; at < KBLOCK_ELEMENTS; at += REGISTER_LANES) {
        lanes here;
        memcpy(&here, x + at, sizeof here);
        magnitudes = MASK_LARGER(lanes_magnitude(here), magnitudes);
    }
    const int32_t largest = mask_largest(magnitudes);
    for (int32_t at = KBLOCK_ELEMENTS - REGISTER_LANES; at >= 0; at -= REGISTER_LANES) {
        lanes here;
        memcpy(&here, x + at, sizeof here);
        first = mask_select(lanes_magnitude(here) == largest, places + at, first);
    }
    const float inverse = largest > 0x03800000 ? -127.0f / x[mask_smallest(first)] : 0.0f;
    b->d = block_inverse(inverse);
    for (int32_t r = 0; r < 16; r++) {
        lanes_mask codes[LANES_REGISTERS], sums = {0};
        lanes_take(x + LANES * r, all);
        for (int32_t p = 0; p < LANES_REGISTERS; p++) {
            codes[p] = (lanes_mask)(all[p] * inverse + lanes_all(0x1.8p23f)) - (lanes_mask)lanes_all(0x1.8p23f);
            sums = MASK_ADDED(sums, codes[p]);
        }
        lanes_put_codes(b->codes + LANES * r, codes);
        b->sums[r] = (int16_t)mask_sum(sums);
    }
    return largest >= BLOCK_INFINITE;
}

static int64_t encode_many_q8_k(const float *from, void *to, int64_t count)
{
    int64_t refused = count;
    for (int64_t i = 0; i < count; i++)
        if (large_encode(from + i * KBLOCK_ELEMENTS, (block_q8_k *)to + i) && i < refused)
            refused = i;
    return refused;
}

#endif
