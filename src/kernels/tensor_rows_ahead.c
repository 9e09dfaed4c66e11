/* softmax and norms of rows of 16-bit types by parts of 1024, for which many waves have registers (rows_ahead.h). */
#define PAIR_PART ROW_SHORT
#include "kernels/rows_ahead.h"

SOFTMAX_AHEAD(tensor_softmax_ahead, ROW_PAIR_THREADS, ROW_AHEAD_RESIDENT)

/* Two of 16 bits as floats. */
DEVICE pair pair_of(int32_t type, uint32_t word)
{
    pair both;
    both.v[0] = type == TYPE_F16 ? widen_f16((uint16_t)word) : canon_bits_float(word << 16);
    both.v[1] = type == TYPE_F16 ? widen_f16((uint16_t)(word >> 16)) : canon_bits_float(word & 0xffff0000u);
    return both;
}

/* A whole part of a norm, with weights if `given` is 1, and with biases, too, if it is 2. Those come by fours. */
DEVICE void norm_put(int32_t type, int32_t given, const row_args *args, const pair_place *place, float scale, const float *v)
{
    enum { FOUR = 4 };
    const uint16_t *weight = (const uint16_t *)args->weight + place->first, *bias = (const uint16_t *)args->bias + place->first;
    UNROLL for (int32_t first = 0; first < HELD; first += FOUR)
    {
        uint32_t weights[FOUR] = {0}, biases[FOUR] = {0};
        UNROLL for (int32_t p = 0; p < FOUR; p++)
        {
            if (given > 0)
                weights[p] = *(const bits_32 *)(weight + (first + p) * REDUCE_LANES);
            if (given > 1)
                biases[p] = *(const bits_32 *)(bias + (first + p) * REDUCE_LANES);
        }
        UNROLL for (int32_t p = 0; p < FOUR; p++)
        {
            const pair w = pair_of(type, weights[p]), b = pair_of(type, biases[p]);
            float low = v[2 * (first + p)] * scale, high = v[2 * (first + p) + 1] * scale;
            if (given == 1) {
                low = low * w.v[0];
                high = high * w.v[1];
            } else if (given == 2) {
                low = row_affine_f32(low, w.v[0], b.v[0]);
                high = row_affine_f32(high, w.v[1], b.v[1]);
            }
            pair_store(type, args->out, place->begin + (first + p) * REDUCE_LANES, low, high);
        }
    }
}

DEVICE void norm_store(int32_t type, const row_args *args, const pair_place *place, float scale, const float *v)
{
    if (place->count < HELD)
        pairs_put(type, false, args, place, true, scale, v);
    else if (args->bias)
        norm_put(type, 2, args, place, scale, v);
    else if (args->weight)
        norm_put(type, 1, args, place, scale, v);
    else
        norm_put(type, 0, args, place, scale, v);
}

#define NONE(type, words, v) 0.0f
ROWS_AHEAD(tensor_norm_ahead, ROW_PAIR_THREADS, ROW_AHEAD_RESIDENT, 0u, NONE,
           ((void)lane_most, norm_values(&args, &place, &shared, true, v)), norm_store)
