/* Floats to q8_0, q8_1 and q8_k: what kernels/blocks_encode.h computes, 16 elements at a time. Products code their activations
 * so, each time; the other formats are coded once.
 */
#ifndef WW_CPU_QUANT_ACTIVATIONS_H
#define WW_CPU_QUANT_ACTIVATIONS_H

#include "cpu/lanes.h"
#include "kernels/blocks_encode.h"

typedef int8_t lanes_codes __attribute__((vector_size(LANES)));
typedef uint32_t lanes_counts __attribute__((vector_size(LANES * 4))); /* which may overflow: of blocks that will be refused */

LANES_FUNCTION lanes lanes_take(const float *from)
{
    lanes x;
    memcpy(&x, from, sizeof x);
    return x;
}

LANES_FUNCTION lanes_mask mask_select(lanes_mask where, lanes_mask a, lanes_mask b)
{
    return (a & where) | (b & ~where);
}

LANES_FUNCTION lanes_mask lanes_magnitude(lanes x)
{
    return (lanes_mask)x & 0x7fffffff;
}

/* The largest, the least and the sum of 16 integers. */
#define MASK_REDUCE(name, operation)                                                                                           \
    LANES_FUNCTION int32_t name(lanes_mask a)                                                                                  \
    {                                                                                                                          \
        a = operation(a, LANES_XOR_8(a));                                                                                      \
        a = operation(a, LANES_XOR_4(a));                                                                                      \
        a = operation(a, LANES_XOR_2(a));                                                                                      \
        return operation(a, LANES_XOR_1(a))[0];                                                                                \
    }
#define MASK_LARGER(a, b)  mask_select((a) > (b), a, b)
#define MASK_SMALLER(a, b) mask_select((a) < (b), a, b)
#define MASK_ADDED(a, b)   ((lanes_mask)((lanes_counts)(a) + (lanes_counts)(b)))
MASK_REDUCE(mask_largest, MASK_LARGER)
MASK_REDUCE(mask_least, MASK_SMALLER)
MASK_REDUCE(mask_sum, MASK_ADDED)

LANES_FUNCTION void lanes_put_codes(int8_t *to, lanes_mask codes)
{
    const lanes_codes bytes = __builtin_convertvector(codes, lanes_codes);
    memcpy(to, &bytes, sizeof bytes);
}

/* As block_round_away(). */
LANES_FUNCTION lanes_mask lanes_round_away(lanes x)
{
    const lanes clamped = lanes_min(lanes_max(x, lanes_all(-127.0f)), lanes_all(127.0f));
    const lanes within = (lanes)((lanes_mask)clamped & (lanes_magnitude(x) <= BLOCK_INFINITE)); /* NaN as 0: it is refused */
    const lanes_mask cut = __builtin_convertvector(within, lanes_mask);
    const lanes rest = within - __builtin_convertvector(cut, lanes);
    return cut - (rest >= lanes_all(0.5f)) + (rest <= lanes_all(-0.5f)); /* a comparison that holds is -1 */
}

/* Codes of 32 elements, their scale in `d`, the scale before it was rounded in `exact`; the sum of the codes in `sum`. Returns
 * whether a block cannot hold them. */
LANES_FUNCTION int small_encode(const float *x, int8_t *codes, block_f16 *d, float *exact, int32_t *sum)
{
    const lanes low = lanes_take(x), high = lanes_take(x + LANES);
    const lanes_mask a = lanes_magnitude(low), b = lanes_magnitude(high);
    const int32_t largest = mask_largest(mask_select(a > b, a, b));
    const float scale = canon_bits_float((uint32_t)largest) / 127.0f, inverse = block_inverse(scale);
    const lanes_mask first = lanes_round_away(low * inverse), second = lanes_round_away(high * inverse);
    lanes_put_codes(codes, first);
    lanes_put_codes(codes + LANES, second);
    *d = (block_f16)block_f16_from_f32(scale);
    *exact = scale;
    *sum = mask_sum(first + second);
    return (largest >= BLOCK_INFINITE) | block_f16_bad(*d);
}

static int64_t encode_many_q8_0(const float *from, void *to, int64_t count)
{
    block_q8_0 *blocks = to;
    int64_t refused = count;
    for (int64_t i = 0; i < count; i++) {
        float scale;
        int32_t sum;
        if (small_encode(from + i * BLOCK_SMALL, blocks[i].codes, &blocks[i].d, &scale, &sum) && i < refused)
            refused = i;
    }
    return refused;
}

static int64_t encode_many_q8_1(const float *from, void *to, int64_t count)
{
    block_q8_1 *blocks = to;
    int64_t refused = count;
    for (int64_t i = 0; i < count; i++) {
        float scale;
        int32_t sum;
        if (small_encode(from + i * BLOCK_SMALL, blocks[i].codes, &blocks[i].d, &scale, &sum) && i < refused)
            refused = i;
        blocks[i].sum = (block_f16)block_f16_from_f32((float)sum * scale);
    }
    return refused;
}

/* As encode_q8_k(). */
LANES_FUNCTION int large_encode(const float *x, block_q8_k *b)
{
    static const lanes_mask places = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    lanes_mask most = {0}, first = (lanes_mask){0} + BLOCK_LARGE;
    for (int32_t r = 0; r < 16; r++) {
        const lanes_mask here = lanes_magnitude(lanes_take(x + LANES * r));
        most = mask_select(here > most, here, most);
    }
    const int32_t largest = mask_largest(most);
    for (int32_t r = 15; r >= 0; r--)
        first = mask_select(lanes_magnitude(lanes_take(x + LANES * r)) == largest, places + LANES * r, first);
    const float inverse = largest > 0x03800000 ? -127.0f / x[mask_least(first)] : 0.0f;
    b->d = block_inverse(inverse);
    for (int32_t r = 0; r < 16; r++) {
        const lanes scaled = lanes_take(x + LANES * r) * inverse;
        const lanes_mask codes = (lanes_mask)(scaled + lanes_all(0x1.8p23f)) - (lanes_mask)lanes_all(0x1.8p23f);
        lanes_put_codes(b->codes + LANES * r, codes);
        b->sums[r] = (int16_t)mask_sum(codes);
    }
    return largest >= BLOCK_INFINITE;
}

static int64_t encode_many_q8_k(const float *from, void *to, int64_t count)
{
    int64_t refused = count;
    for (int64_t i = 0; i < count; i++)
        if (large_encode(from + i * BLOCK_LARGE, (block_q8_k *)to + i) && i < refused)
            refused = i;
    return refused;
}

#endif
