/* softmax and norms of rows of 16-bit types (row_pairs.h): blocks go from row to row, and the next row is loaded into shared
 * memory while one is processed. Shared by tensor_rows_prefetch.c and tensor_rows_prefetch_4096.c. A block has at least one
 * row. */
#ifndef WW_KERNELS_REDUCE_ROWS_PREFETCH_H
#define WW_KERNELS_REDUCE_ROWS_PREFETCH_H

#include "kernels/reduce/row_pairs.h"

/* Starts to load the block's rows, which are adjacent and start at `first`, into `to`. */
DEVICE void rows_bring(const row_args *args, int64_t first, int64_t rows, uint32_t *to)
{
    const int64_t left = args->rows - first, here = left < rows ? left : rows;
    const int32_t units = here > 0 ? (int32_t)(here * args->n / 8) : 0;
    const uint32_t *from = (const uint32_t *)(const void *)((const uint16_t *)args->x + first * args->n);
    for (int32_t u = (int32_t)thread_index(); u < units; u += (int32_t)block_size())
        copy_16(AT_RANGE(to, 4 * u, 4), from + 4 * u);
    copies_commit();
}

/* Loads the lane's words, starting at word `first`. */
DEVICE void words_load(const uint32_t *rows, int32_t first, const pair_place *place, uint32_t missing, uint32_t *words)
{
    if (place->count == LANE_PAIRS)
        EACH_PAIR words[p] = AT(rows, first + p * ROW_PAIR_LANES);
    else
        EACH_PAIR words[p] = p < place->count ? AT(rows, first + p * ROW_PAIR_LANES) : missing;
}

DEVICE void words_widen(int32_t type, const uint32_t *words, float *v)
{
    EACH_PAIR
    {
        v[2 * p] = word_low(type, words[p]);
        v[2 * p + 1] = word_high(type, words[p]);
    }
}

/* The largest of the lane's values; computed from words if the chip compares two values at a time. */
DEVICE float words_largest(int32_t type, const uint32_t *words, const float *v)
{
#ifdef SIMT_PAIRS_OF_16
    uint32_t larger[4] = {words[0], words[1], words[2], words[3]};
    (void)v;
    EACH_PAIR larger[p % 4] =
        type == TYPE_F16 ? simt_larger_pair_f16(larger[p % 4], words[p]) : simt_larger_pair_bf16(larger[p % 4], words[p]);
    float highest[8];
    UNROLL for (int32_t j = 0; j < 8; j++)
    {
        const uint16_t half = (uint16_t)(larger[j / 2] >> (16 * (j % 2)));
        highest[j] = type == TYPE_F16 ? widen_f16(half) : widen_bf16(half);
    }
    UNROLL for (int32_t s = 4; s > 0; s /= 2) UNROLL for (int32_t j = 0; j < s; j++) highest[j] =
        row_larger_f32(highest[j], highest[j + s]);
    return highest[0];
#else
    (void)type;
    (void)words;
    return values_largest(v);
#endif
}

/* Stores a row of softmax. If one element is NaN, all are. */
DEVICE void softmax_put(int32_t type, bool whole, const row_args *args, const pair_place *place, float scale, const float *v)
{
    uint16_t *out = (uint16_t *)args->out + place->begin;
    if (scale != scale) {
        UNROLL_BY(1)
        for (int32_t p = 0; p < place->count; p++)
            *(bits_32 *)(out + p * REDUCE_LANES) = type == TYPE_F16 ? 0x7e007e00u : 0x7fc07fc0u;
        return;
    }
    EACH_PAIR if (whole || p < place->count)
    {
        const float low = v[2 * p] * scale, high = v[2 * p + 1] * scale;
#ifdef SIMT_PAIRS_OF_16
        *(bits_32 *)(out + p * REDUCE_LANES) =
            type == TYPE_F16 ? simt_narrow_numbers_f16(low, high) : simt_narrow_numbers_bf16(low, high);
#else
        *(bits_32 *)(out + p * REDUCE_LANES) = type == TYPE_F16 ? narrow_pair_f16(low, high) : narrow_pair_bf16(low, high);
#endif
    }
}

DEVICE void softmax_store(int32_t type, const row_args *args, const pair_place *place, float scale, const float *v)
{
    if (place->count == LANE_PAIRS)
        softmax_put(type, true, args, place, scale, v);
    else
        softmax_put(type, false, args, place, scale, v);
}

/* Stores a whole part of a norm, with weights if `given` is 1, and also with biases if it is 2, loaded four words at a time. */
DEVICE void norm_put(int32_t type, int32_t given, const row_args *args, const pair_place *place, float scale, const float *v)
{
    enum { FOUR = 4 };
    const uint16_t *weight = (const uint16_t *)args->weight + place->first, *bias = (const uint16_t *)args->bias + place->first;
    UNROLL for (int32_t first = 0; first < LANE_PAIRS; first += FOUR)
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
    if (place->count < LANE_PAIRS)
        pairs_put(type, false, args, place, true, scale, v);
    else if (args->bias)
        norm_put(type, 2, args, place, scale, v);
    else if (args->weight)
        norm_put(type, 1, args, place, scale, v);
    else
        norm_put(type, 0, args, place, scale, v);
}

enum { PREFETCH_SOFTMAX, PREFETCH_NORM };

/* Loads the lane's words, starting at word `first` of the block's rows, as values. For softmax, returns the largest. */
DEVICE float values_load(int32_t what, int32_t type, const uint32_t *rows, int32_t first, const pair_place *place, float *v)
{
    const uint32_t minus_infinities = type == TYPE_F16 ? 0xfc00fc00u : 0xff80ff80u;
    uint32_t words[LANE_PAIRS];
    words_load(rows, first, place, what == PREFETCH_SOFTMAX ? minus_infinities : 0u, words);
    words_widen(type, words, v);
    return what == PREFETCH_SOFTMAX ? words_largest(type, words, v) : 0.0f;
}

DEVICE void values_store(int32_t what, int32_t type, const row_args *args, const pair_place *place, float scale, const float *v)
{
    if (what == PREFETCH_SOFTMAX)
        softmax_store(type, args, place, scale, v);
    else
        norm_store(type, args, place, scale, v);
}

/* Processes all rows of a block. All threads call it. `staged` has room for two rows (or groups of rows): the current one and
 * the next. `what`, PREFETCH_..., is a constant. */
DEVICE void rows_prefetch(int32_t what, const row_args *args, const pair_shared *shared, uint32_t *staged)
{
    const int32_t half = (int32_t)block_size() * LANE_PAIRS; /* words of the block's rows */
    int32_t at = 0;
    const int32_t rows = (int32_t)pair_rows(args), step = (int32_t)block_count() * rows, count = (int32_t)args->rows;
    bool met = args->apart;
    launches_meet(&met);
    rows_bring(args, (int32_t)block_index() * rows, rows, staged);
    UNROLL_BY(1) for (int32_t first = (int32_t)block_index() * rows; first < count; first += step)
    {
        const pair_place place = pair_place_of(args, first);
        const int32_t begin = (int32_t)(place.begin - (int64_t)first * args->n) / 2;
        float v[2 * LANE_PAIRS], largest = 0.0f;
        copies_wait(0);
        barrier(); /* also: all threads are done with the other half */
        rows_bring(args, first + step, rows, staged + (half - at));
        if (args->type == TYPE_F16)
            largest = values_load(what, TYPE_F16, staged + at, begin, &place, v);
        else
            largest = values_load(what, TYPE_BF16, staged + at, begin, &place, v);
        at = half - at;
        const float scale =
            what == PREFETCH_SOFTMAX ? softmax_values(&place, shared, largest, v) : norm_values(args, &place, shared, true, v);
        met = !args->apart || first >= step; /* in the first iteration, if not before */
        launches_meet(&met);
        if (args->type == TYPE_F16)
            values_store(what, TYPE_F16, args, &place, scale, v);
        else
            values_store(what, TYPE_BF16, args, &place, scale, v);
    }
}

#endif
