/* softmax and norms of rows of 16-bit types, which are half the bytes and all of the work (row_pairs.h): blocks go from row to
 * row, and the next one is on its way, two elements a register, while one is worked on.
 */
#define PAIR_PART ROW_AHEAD_PART
#include "kernels/row_pairs.h"

/* The words of a row of 16-bit elements, as they are. */
DEVICE void words_load(const row_args *args, const pair_place *place, uint32_t missing, uint32_t *words)
{
    const uint16_t *x = (const uint16_t *)args->x + place->begin;
    if (place->count == HELD)
        EACH_PAIR words[p] = *(const bits_32 *)(x + p * REDUCE_LANES);
    else
        EACH_PAIR words[p] = p < place->count ? *(const bits_32 *)(x + p * REDUCE_LANES) : missing;
}

DEVICE void words_widen(int32_t type, const uint32_t *words, float *v)
{
    EACH_PAIR
    {
        v[2 * p] = type == TYPE_F16 ? widen_f16((uint16_t)words[p]) : canon_bits_float(words[p] << 16);
        v[2 * p + 1] = type == TYPE_F16 ? widen_f16((uint16_t)(words[p] >> 16)) : canon_bits_float(words[p] & 0xffff0000u);
    }
}

/* `missing` is a pair that changes nothing, `values` makes a scale of what is in v. */
#define ROWS_AHEAD(name, weighed, missing, values)                                                                             \
    KERNEL_RESIDENT(name, row_args, ROW_AHEAD_THREADS, ROW_AHEAD_RESIDENT / ROW_AHEAD_THREADS)                                 \
    {                                                                                                                          \
        PAIR_ROOM(ROW_AHEAD_THREADS);                                                                                          \
        const int64_t rows = pair_rows(&args), step = block_count() * rows;                                                    \
        pair_place next = pair_place_of(&args, block_index() * rows);                                                          \
        uint32_t words[HELD];                                                                                                  \
        words_load(&args, &next, missing, words);                                                                              \
        for (int64_t first = block_index() * rows; first < args.rows; first += step) {                                         \
            const pair_place place = next;                                                                                     \
            float v[2 * HELD];                                                                                                 \
            if (args.type == TYPE_F16)                                                                                         \
                words_widen(TYPE_F16, words, v);                                                                               \
            else                                                                                                               \
                words_widen(TYPE_BF16, words, v);                                                                              \
            next = pair_place_of(&args, first + step);                                                                         \
            words_load(&args, &next, missing, words);                                                                          \
            const float scale = values;                                                                                        \
            if (args.type == TYPE_F16)                                                                                         \
                pairs_store(TYPE_F16, &args, &place, weighed, scale, v);                                                       \
            else                                                                                                               \
                pairs_store(TYPE_BF16, &args, &place, weighed, scale, v);                                                      \
        }                                                                                                                      \
    }

#define MINUS_INFINITIES (args.type == TYPE_F16 ? 0xfc00fc00u : 0xff80ff80u)
ROWS_AHEAD(tensor_softmax_ahead, false, MINUS_INFINITIES, softmax_values(&place, &shared, v))
ROWS_AHEAD(tensor_norm_ahead, true, 0u, norm_values(&args, &place, &shared, v))
