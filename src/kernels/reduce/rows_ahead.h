/* softmax and norms of rows of 16-bit types, which are half the bytes and all of the work (row_pairs.h): blocks go from row to
 * row, and the next one is on its way to shared memory while one is worked on. What tensor_rows_ahead.c and tensor_rows_whole.c
 * have in common. A block has at least one row.
 */
#ifndef WW_KERNELS_REDUCE_ROWS_AHEAD_H
#define WW_KERNELS_REDUCE_ROWS_AHEAD_H

#include "kernels/reduce/row_pairs.h"

/* Begins to bring the block's rows from `first` on, which lie side by side, to `to`. */
DEVICE void rows_bring(const row_args *args, int64_t first, int64_t rows, uint32_t *to)
{
    const int64_t left = args->rows - first, here = left < rows ? left : rows;
    const int32_t units = here > 0 ? (int32_t)(here * args->n / 8) : 0;
    const uint32_t *from = (const uint32_t *)(const void *)((const uint16_t *)args->x + first * args->n);
    for (int32_t u = (int32_t)thread_index(); u < units; u += (int32_t)block_size())
        copy_16(AT_RANGE(to, 4 * u, 4), from + 4 * u);
    copies_commit();
}

/* The lane's words, of which the first is number `first`. */
DEVICE void words_load(const uint32_t *rows, int32_t first, const pair_place *place, uint32_t missing, uint32_t *words)
{
    if (place->count == HELD)
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

/* The largest of the lane's values, from words where the chip compares two at a time. */
DEVICE float words_largest(int32_t type, const uint32_t *words, const float *v)
{
#ifdef SIMT_PAIRS_OF_16
    uint32_t larger[4] = {words[0], words[1], words[2], words[3]};
    (void)v;
    EACH_PAIR larger[p % 4] =
        type == TYPE_F16 ? simt_larger_pair_f16(larger[p % 4], words[p]) : simt_larger_pair_bf16(larger[p % 4], words[p]);
    float most[8];
    UNROLL for (int32_t j = 0; j < 8; j++)
    {
        const uint16_t half = (uint16_t)(larger[j / 2] >> (16 * (j % 2)));
        most[j] = type == TYPE_F16 ? widen_f16(half) : widen_bf16(half);
    }
    UNROLL for (int32_t s = 4; s > 0; s /= 2) UNROLL for (int32_t j = 0; j < s; j++) most[j] =
        row_larger_f32(most[j], most[j + s]);
    return most[0];
#else
    (void)type;
    (void)words;
    return values_largest(v);
#endif
}

/* A row of softmax: either all of it is NaN, or nothing. */
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
    if (place->count == HELD)
        softmax_put(type, true, args, place, scale, v);
    else
        softmax_put(type, false, args, place, scale, v);
}

/* `missing` is a pair that changes nothing, `most` is what is looked for in the words, `values` makes a scale of what is in v.
 */
#define ROWS_AHEAD(name, threads, resident, missing, most, values, store)                                                      \
    KERNEL_RESIDENT(name, row_args, threads, (resident) / (threads))                                                           \
    {                                                                                                                          \
        PAIR_ROOM(threads);                                                                                                    \
        SHARED_DYNAMIC(uint32_t, held);                                                                                        \
        const int32_t half = (int32_t)block_size() * HELD; /* words of the block's rows */                                     \
        int32_t at = 0;                                                                                                        \
        const int32_t rows = (int32_t)pair_rows(&args), step = (int32_t)block_count() * rows, count = (int32_t)args.rows;      \
        bool met = args.apart;                                                                                                 \
        launches_meet(&met);                                                                                                   \
        rows_bring(&args, (int32_t)block_index() * rows, rows, held);                                                          \
        UNROLL_BY(1) for (int32_t first = (int32_t)block_index() * rows; first < count; first += step)                         \
        {                                                                                                                      \
            const pair_place place = pair_place_of(&args, first);                                                              \
            uint32_t words[HELD];                                                                                              \
            float v[2 * HELD], lane_most = 0.0f;                                                                               \
            copies_wait(0);                                                                                                    \
            barrier(); /* all are done with the other half, too */                                                             \
            rows_bring(&args, first + step, rows, held + (half - at));                                                         \
            words_load(held + at, (int32_t)(place.begin - (int64_t)first * args.n) / 2, &place, missing, words);               \
            at = half - at;                                                                                                    \
            if (args.type == TYPE_F16) {                                                                                       \
                words_widen(TYPE_F16, words, v);                                                                               \
                lane_most = most(TYPE_F16, words, v);                                                                          \
            } else {                                                                                                           \
                words_widen(TYPE_BF16, words, v);                                                                              \
                lane_most = most(TYPE_BF16, words, v);                                                                         \
            }                                                                                                                  \
            const float scale = values;                                                                                        \
            met = !args.apart || first >= step; /* in the first turn, if not before */                                         \
            launches_meet(&met);                                                                                               \
            if (args.type == TYPE_F16)                                                                                         \
                store(TYPE_F16, &args, &place, scale, v);                                                                      \
            else                                                                                                               \
                store(TYPE_BF16, &args, &place, scale, v);                                                                     \
        }                                                                                                                      \
    }

#define MINUS_INFINITIES (args.type == TYPE_F16 ? 0xfc00fc00u : 0xff80ff80u)
#define SOFTMAX_AHEAD(name, threads, resident)                                                                                 \
    ROWS_AHEAD(name, threads, resident, MINUS_INFINITIES, words_largest, softmax_values(&place, &shared, lane_most, v),        \
               softmax_store)

#endif
