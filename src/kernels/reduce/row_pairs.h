/* Rows that fit in registers, in pairs of f32: shared by tensor_rows_registers.c, tensor_rows_prefetch.c,
 * tensor_rows_prefetch_4096.c and tensor_rows_wave.c.
 *
 * Lane l of 32 has accumulators 2l and 2l + 1 of a chunk of 4096 (reduce.h). So a load or store of two 16-bit elements is a
 * whole word, sums are loops over registers, and the fold never leaves the group. 32 lanes hold a part of PAIR_PART elements,
 * 1024 or 4096, which the including file defines. The parts of a chunk add up one after the other, each continuing the sums of
 * the one before. With more elements per lane that would not be needed, but fewer waves would fit. A row of several parts has a
 * block to itself; a block takes several shorter rows. Row lengths are multiples of 64.
 */
#ifndef WW_KERNELS_REDUCE_ROW_PAIRS_H
#define WW_KERNELS_REDUCE_ROW_PAIRS_H

#include "kernels/elementwise/elements.h"

#include "arithmetic/rows.h"
#include "kernels/reduce/row_arguments.h"

enum { LANE_PAIRS = PAIR_PART / REDUCE_LANES, PARTS = REDUCE_CHUNK / PAIR_PART };

/* A lane's work: its first element in the tensor and in the row, its number of pairs, its part of the row, and the number of
 * parts. */
typedef struct pair_place {
    int64_t begin;
    int32_t first, count, part, parts;
} pair_place;

/* Rows that a block processes at a time. */
DEVICE int64_t pair_rows(const row_args *args)
{
    return args->n > PAIR_PART ? 1 : (int64_t)(block_size() / ROW_PAIR_LANES);
}

/* For a block whose rows start at row `first`. */
DEVICE pair_place pair_place_of(const row_args *args, int64_t first)
{
    const int32_t n = (int32_t)args->n, group = (int32_t)thread_index() / ROW_PAIR_LANES;
    const bool several = n > PAIR_PART;
    const int64_t row = several ? first : first + group;
    pair_place place;
    place.part = several ? group : 0;
    place.parts = (n + PAIR_PART - 1) / PAIR_PART;
    const int32_t left = row < args->rows ? n - place.part * PAIR_PART : 0;
    place.first = place.part * PAIR_PART + 2 * ((int32_t)thread_index() % ROW_PAIR_LANES);
    place.begin = row * n + place.first;
    place.count = (left < PAIR_PART ? left : PAIR_PART) / REDUCE_LANES;
    return place;
}

/* ---- combining the parts of a row ---------------------------------------------------------------------------------------- */

/* Shared memory: the accumulators of each chunk between two parts, the sum of each chunk, and the largest element of each part.
 * Between two writes to the same array there is always the barrier of another. */
typedef struct pair_shared {
    float *sums, *folds, *maxima;
} pair_shared;

/* The sum of a row, from the accumulators of the last part of each chunk. The sums of up to four chunks are the accumulators of
 * the next round; all others are 0. */
DEVICE float pair_fold(const pair_place *place, const float *sums, const pair_shared *shared)
{
    const bool last = place->part % PARTS == PARTS - 1 || place->part == place->parts - 1;
    float even = sums[0], odd = sums[1];
    if (wave_any(last)) {
        UNROLL for (uint32_t mask = ROW_PAIR_LANES / 2; mask > 0; mask /= 2)
        {
            even = even + wave_shuffle_xor_f32(even, mask);
            odd = odd + wave_shuffle_xor_f32(odd, mask);
        }
    }
    if (place->parts == 1)
        return even + odd;
    if (last && thread_index() % ROW_PAIR_LANES == 0)
        AT(shared->folds, place->part / PARTS) = even + odd;
    barrier();
    const int32_t chunks = (place->parts + PARTS - 1) / PARTS;
    const float third = chunks > 2 ? AT(shared->folds, 2) : 0.0f, fourth = chunks > 3 ? AT(shared->folds, 3) : 0.0f;
    const float first = AT(shared->folds, 0), second = chunks > 1 ? AT(shared->folds, 1) : 0.0f;
    return chunks == 1 ? first : (first + third) + (second + fourth);
}

/* Runs `statement`, which adds to `sums`, for the parts of a chunk one after the other. */
#define IN_TURN(place, shared, sums, statement)                                                                                \
    UNROLL_BY(1) for (int32_t round = 0; round < PARTS && round < (place)->parts; round++)                                     \
    {                                                                                                                          \
        const uint32_t mine = (uint32_t)((place)->part / PARTS) * REDUCE_LANES + thread_index() % ROW_PAIR_LANES;              \
        if ((place)->part % PARTS == round) {                                                                                  \
            (sums)[0] = round > 0 ? AT((shared)->sums, mine) : 0.0f;                                                           \
            (sums)[1] = round > 0 ? AT((shared)->sums, mine + ROW_PAIR_LANES) : 0.0f;                                          \
            statement;                                                                                                         \
            if ((place)->parts > 1) {                                                                                          \
                AT((shared)->sums, mine) = (sums)[0];                                                                          \
                AT((shared)->sums, mine + ROW_PAIR_LANES) = (sums)[1];                                                         \
            }                                                                                                                  \
        }                                                                                                                      \
        if (round + 1 < PARTS && round + 1 < (place)->parts)                                                                   \
            barrier();                                                                                                         \
    }

DEVICE float pair_largest(const pair_place *place, float largest, const pair_shared *shared)
{
    UNROLL for (uint32_t mask = ROW_PAIR_LANES / 2; mask > 0; mask /= 2) largest =
        row_larger_f32(largest, wave_shuffle_xor_f32(largest, mask));
    if (place->parts == 1)
        return largest;
    if (thread_index() % ROW_PAIR_LANES == 0)
        AT(shared->maxima, place->part) = largest;
    barrier();
    UNROLL_BY(1)
    for (int32_t part = 0; part < place->parts; part++)
        largest = row_larger_f32(largest, AT(shared->maxima, part));
    return largest;
}

/* ---- elements ------------------------------------------------------------------------------------------------------------ */

/* The first and the second of two 16-bit elements in a word. */
DEVICE float word_low(int32_t type, uint32_t word)
{
    return type == TYPE_F16 ? widen_f16((uint16_t)word) : canon_bits_float(word << 16);
}

DEVICE float word_high(int32_t type, uint32_t word)
{
    return type == TYPE_F16 ? widen_f16((uint16_t)(word >> 16)) : canon_bits_float(word & 0xffff0000u);
}

typedef struct pair {
    float v[2];
} pair;

DEVICE pair pair_load(int32_t type, const void *data, int64_t at)
{
    pair both;
    if (type == TYPE_F32) {
        const f32x2 words = load_f32x2((const float *)data + at);
        both.v[0] = words.x;
        both.v[1] = words.y;
        return both;
    }
    const uint32_t word = *(const bits_32 *)((const uint16_t *)data + at);
    both.v[0] = word_low(type, word);
    both.v[1] = word_high(type, word);
    return both;
}

DEVICE void pair_store(int32_t type, void *data, int64_t at, float low, float high)
{
    if (type == TYPE_F32) {
        const uint64_t upper = canon_float_bits(one_nan_f32(high));
        *(bits_64 *)((float *)data + at) = upper << 32 | canon_float_bits(one_nan_f32(low));
        return;
    }
    *(bits_32 *)((uint16_t *)data + at) = type == TYPE_F16 ? narrow_pair_f16(low, high) : narrow_pair_bf16(low, high);
}

/* LANE_PAIRS pairs of a lane, with values v[2p] and v[2p + 1]. */
#define EACH_VALUE UNROLL for (int32_t j = 0; j < 2 * LANE_PAIRS; j++)
#define EACH_PAIR  UNROLL for (int32_t p = 0; p < LANE_PAIRS; p++)

/* Runs the code for the element type; for kernels with row_args. */
#define BY_TYPE(words, ...)                                                                                                    \
    if (args->type == TYPE_F32)                                                                                                \
        words(TYPE_F32, __VA_ARGS__);                                                                                          \
    else if (args->type == TYPE_F16)                                                                                           \
        words(TYPE_F16, __VA_ARGS__);                                                                                          \
    else                                                                                                                       \
        words(TYPE_BF16, __VA_ARGS__);

/* Loads `count` pairs starting at element `begin` of the tensor. The others become `missing`, a value that changes nothing. */
DEVICE void pairs_load(int32_t type, const row_args *args, int64_t begin, int32_t count, float missing, float *v)
{
    EACH_PAIR
    {
        pair both = {{missing, missing}};
        if (p < count)
            both = pair_load(type, args->x, begin + p * REDUCE_LANES);
        v[2 * p] = both.v[0];
        v[2 * p + 1] = both.v[1];
    }
}

/* Stores the pairs times `scale`, with weights and biases if `weighed`. There are no biases without weights. Both are loaded
 * for two pairs at a time, because there are no registers for more. */
DEVICE void pairs_put(int32_t type, bool whole, const row_args *args, const pair_place *place, bool weighed, float scale,
                      const float *v)
{
    enum { TWO = 2 };
    UNROLL for (int32_t first = 0; first < LANE_PAIRS; first += TWO)
    {
        pair weight[TWO] = {{{0.0f, 0.0f}}}, bias[TWO] = {{{0.0f, 0.0f}}};
        if (weighed && args->weight)
            UNROLL for (int32_t p = first; p < first + TWO; p++) if (whole || p < place->count) weight[p % TWO] =
                pair_load(type, args->weight, place->first + p * REDUCE_LANES);
        if (weighed && args->bias)
            UNROLL for (int32_t p = first; p < first + TWO; p++) if (whole || p < place->count) bias[p % TWO] =
                pair_load(type, args->bias, place->first + p * REDUCE_LANES);
        UNROLL for (int32_t p = first; p < first + TWO; p++) if (whole || p < place->count)
        {
            float low = v[2 * p] * scale, high = v[2 * p + 1] * scale;
            if (weighed && args->bias) {
                low = row_affine_f32(low, weight[p % TWO].v[0], bias[p % TWO].v[0]);
                high = row_affine_f32(high, weight[p % TWO].v[1], bias[p % TWO].v[1]);
            } else if (weighed && args->weight) {
                low = low * weight[p % TWO].v[0];
                high = high * weight[p % TWO].v[1];
            }
            pair_store(type, args->out, place->begin + p * REDUCE_LANES, low, high);
        }
    }
}

DEVICE void pairs_store(int32_t type, const row_args *args, const pair_place *place, bool weighed, float scale, const float *v)
{
    if (place->count == LANE_PAIRS)
        pairs_put(type, true, args, place, weighed, scale, v);
    else
        pairs_put(type, false, args, place, weighed, scale, v);
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

/* The largest of a lane's values. */
DEVICE float values_largest(const float *v)
{
    float larger[2] = {v[0], v[1]};
    EACH_VALUE larger[j % 2] = row_larger_f32(larger[j % 2], v[j]);
    return row_larger_f32(larger[0], larger[1]);
}

/* Replaces `v` by its exponentials; `lane_max` is the lane's largest element. Returns the factor for them. */
DEVICE float softmax_values(const pair_place *place, const pair_shared *shared, float lane_max, float *v)
{
    float sums[2] = {0.0f, 0.0f};
    const float largest = pair_largest(place, lane_max, shared);
    EACH_VALUE v[j] = row_exponential_f32(v[j], largest);
    IN_TURN(place, shared, sums, EACH_VALUE sums[j % 2] = sums[j % 2] + v[j])
    return 1.0f / pair_fold(place, sums, shared);
}

/* Sets missing values to 0. `branch` tests first whether any is missing, if there are registers for it. */
DEVICE void pairs_clear(const pair_place *place, bool branch, float *v)
{
    if (!branch || place->count < LANE_PAIRS)
        EACH_VALUE v[j] = j / 2 < place->count ? v[j] : 0.0f;
}

/* Replaces `v` by its distances from the mean, or from 0. Returns the factor for them. */
DEVICE float norm_values(const row_args *args, const pair_place *place, const pair_shared *shared, bool branch, float *v)
{
    float sums[2] = {0.0f, 0.0f}, center = 0.0f;
    if (args->op == ROW_LAYER_NORM) {
        IN_TURN(place, shared, sums, EACH_VALUE sums[j % 2] = sums[j % 2] + v[j])
        center = pair_fold(place, sums, shared) / (float)args->n;
    }
    EACH_VALUE v[j] = v[j] - center; /* a center of 0 changes nothing */
    pairs_clear(place, branch, v);
    IN_TURN(place, shared, sums, EACH_VALUE sums[j % 2] = fma_f32(v[j], v[j], sums[j % 2]))
    return canon_rsqrt_f32(pair_fold(place, sums, shared) / (float)args->n + (float)args->eps);
}

#define PAIR_ROOM(threads)                                                                                                     \
    SHARED(float, waiting_sums, (threads) / ROW_PAIR_LANES / PARTS * REDUCE_LANES);                                            \
    SHARED(float, folds, (threads) / ROW_PAIR_LANES);                                                                          \
    SHARED(float, maxima, (threads) / ROW_PAIR_LANES);                                                                         \
    const pair_shared shared = {waiting_sums, folds, maxima}

#endif
