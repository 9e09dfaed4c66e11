/* softmax and norms of rows of 16-bit types by parts of 1024, for which many waves have registers (rows_ahead.h). */
#define PAIR_PART ROW_SHORT
#include "kernels/reduce/rows_ahead.h"

SOFTMAX_AHEAD(tensor_softmax_ahead, ROW_PAIR_THREADS, ROW_AHEAD_RESIDENT)

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
            float low = v[2 * (first + p)] * scale, high = v[2 * (first + p) + 1] * scale;
            if (given == 1) {
                low = low * word_low(type, weights[p]);
                high = high * word_high(type, weights[p]);
            } else if (given == 2) {
                low = row_affine_f32(low, word_low(type, weights[p]), word_low(type, biases[p]));
                high = row_affine_f32(high, word_high(type, weights[p]), word_high(type, biases[p]));
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
