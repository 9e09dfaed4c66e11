/* softmax and norms of rows that fit in registers, by pairs, in f32: memory is seen once each way.
 *
 * 32 lanes have a run of 4096 (reduce.h): lane l the elements 2l and 2l + 1 of every 64, which are those of accumulators 2l and
 * 2l + 1, so that its sums are loops over its own registers, the fold never leaves the group, and a load or a store of two of
 * 16 bits is a whole word. A row of several runs has 32 lanes for each, and a block of its own; of short ones a block has some.
 * Rows are of whole pieces of the 64. What is not there, in a last run that is not whole, is held as a value that changes no
 * sum, or left out where there is none.
 */
#include "kernels/elements.h"

#include "kernels/row_arguments.h"
#include "kernels/rows_arithmetic.h"

/* A lane's place: the element of the tensor and of its row that it has first, and how many pairs it has. */
typedef struct pair_place {
    int64_t begin;
    int32_t first, count;
} pair_place;

DEVICE pair_place pair_place_of(const row_args *args)
{
    const int32_t n = (int32_t)args->n, runs = (int32_t)args->runs, group = (int32_t)thread_index() / ROW_PAIR_LANES;
    const int64_t row = runs > 1 ? (int64_t)block_index() : (int64_t)block_index() * (block_size() / ROW_PAIR_LANES) + group;
    const int32_t run_first = runs > 1 ? group * REDUCE_RUN : 0;
    const int32_t left = row < args->rows ? n - run_first : 0;
    pair_place place;
    place.first = run_first + 2 * ((int32_t)thread_index() % ROW_PAIR_LANES);
    place.begin = row * n + place.first;
    place.count = (left < REDUCE_RUN ? left : REDUCE_RUN) / REDUCE_LANES;
    return place;
}

/* ---- what all lanes of a row have of their parts ------------------------------------------------------------------------- */

/* A group's value for each run of the row, if there are several, joined by `join` in the order of folding; those that are not
 * there are +0, which changes no sum, or the first's. */
DEVICE float pair_runs(float value, bool larger, int32_t runs, float *folds)
{
    if (runs == 1)
        return value;
    if (thread_index() % ROW_PAIR_LANES == 0)
        AT(folds, thread_index() / ROW_PAIR_LANES) = value;
    barrier();
    const float first = AT(folds, 0), second = AT(folds, 1), neutral = larger ? first : 0.0f;
    const float third = runs > 2 ? AT(folds, 2) : neutral, fourth = runs > 3 ? AT(folds, 3) : neutral;
    barrier();
    if (larger)
        return row_larger_f32(row_larger_f32(first, third), row_larger_f32(second, fourth));
    return (first + third) + (second + fourth);
}

DEVICE float pair_sum(const float *sums, int32_t runs, float *folds)
{
    float even = sums[0], odd = sums[1];
    UNROLL for (uint32_t mask = ROW_PAIR_LANES / 2; mask > 0; mask /= 2)
    {
        even = even + wave_shuffle_xor_f32(even, mask);
        odd = odd + wave_shuffle_xor_f32(odd, mask);
    }
    return pair_runs(even + odd, false, runs, folds);
}

DEVICE float pair_largest(float most, int32_t runs, float *folds)
{
    UNROLL for (uint32_t mask = ROW_PAIR_LANES / 2; mask > 0; mask /= 2) most =
        row_larger_f32(most, wave_shuffle_xor_f32(most, mask));
    return pair_runs(most, true, runs, folds);
}

/* ---- elements ------------------------------------------------------------------------------------------------------------ */

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
    both.v[0] = type == TYPE_F16 ? widen_f16((uint16_t)word) : canon_bits_float(word << 16);
    both.v[1] = type == TYPE_F16 ? widen_f16((uint16_t)(word >> 16)) : canon_bits_float(word & 0xffff0000u);
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

/* HELD pairs of a lane, a constant, with values v[2p] and v[2p + 1]; PIECE of them are there or not together. EACH_THERE goes
 * through those that are. */
#define EACH_VALUE    UNROLL for (int32_t j = 0; j < 2 * HELD; j++)
#define EACH_PIECE    UNROLL for (int32_t piece = 0; piece < HELD / PIECE; piece++) if (piece * PIECE < place.count)
#define EACH_OF_PIECE UNROLL for (int32_t p = piece * PIECE; p < (piece + 1) * PIECE; p++)
#define EACH_THERE(statement)                                                                                                  \
    EACH_PIECE                                                                                                                 \
    {                                                                                                                          \
        EACH_OF_PIECE                                                                                                          \
        {                                                                                                                      \
            statement;                                                                                                         \
        }                                                                                                                      \
    }

#define LOAD_PAIRS(type)                                                                                                       \
    EACH_THERE({                                                                                                               \
        const pair both = pair_load(type, args.x, place.begin + p * REDUCE_LANES);                                             \
        v[2 * p] = both.v[0];                                                                                                  \
        v[2 * p + 1] = both.v[1];                                                                                              \
    })

/* What a pair is in the end. Weights and biases, which are not without weights, come by pieces: all at once they would take
 * more registers than there are. */
#define STORE_PAIRS(type, bring, low, high)                                                                                    \
    EACH_PIECE                                                                                                                 \
    {                                                                                                                          \
        pair weight[PIECE], bias[PIECE];                                                                                       \
        EACH_OF_PIECE bring;                                                                                                   \
        EACH_OF_PIECE pair_store(type, args.out, place.begin + p * REDUCE_LANES, low, high);                                   \
        (void)weight, (void)bias;                                                                                              \
    }
#define BRING_PAIR(type, to, from) to[p % PIECE] = pair_load(type, from, place.first + p * REDUCE_LANES)
#define FINISH_PAIRS(type)                                                                                                     \
    if (!SOFTMAX && args.bias) {                                                                                               \
        STORE_PAIRS(                                                                                                           \
            type,                                                                                                              \
            {                                                                                                                  \
                BRING_PAIR(type, weight, args.weight);                                                                         \
                BRING_PAIR(type, bias, args.bias);                                                                             \
            },                                                                                                                 \
            row_affine_f32(v[2 * p] * scale, weight[p % PIECE].v[0], bias[p % PIECE].v[0]),                                    \
            row_affine_f32(v[2 * p + 1] * scale, weight[p % PIECE].v[1], bias[p % PIECE].v[1]))                                \
    } else if (!SOFTMAX && args.weight) {                                                                                      \
        STORE_PAIRS(type, BRING_PAIR(type, weight, args.weight), v[2 * p] * scale * weight[p % PIECE].v[0],                    \
                    v[2 * p + 1] * scale * weight[p % PIECE].v[1])                                                             \
    } else {                                                                                                                   \
        STORE_PAIRS(type, (void)0, v[2 * p] * scale, v[2 * p + 1] * scale)                                                     \
    }

#define BY_TYPE(words)                                                                                                         \
    if (args.type == TYPE_F32) {                                                                                               \
        words(TYPE_F32)                                                                                                        \
    } else if (args.type == TYPE_F16) {                                                                                        \
        words(TYPE_F16)                                                                                                        \
    } else {                                                                                                                   \
        words(TYPE_BF16)                                                                                                       \
    }

#define ROWS_PAIRS(name, softmax, held, piece_of, resident)                                                                    \
    KERNEL_RESIDENT(name, row_args, ROW_PAIR_THREADS, resident)                                                                \
    {                                                                                                                          \
        enum { HELD = held, PIECE = piece_of, SOFTMAX = softmax };                                                             \
        SHARED(float, folds, ROW_PAIR_THREADS / ROW_PAIR_LANES);                                                               \
        const int32_t runs = (int32_t)args.runs;                                                                               \
        const pair_place place = pair_place_of(&args);                                                                         \
        const float missing = SOFTMAX ? -MATH_INF_F32 : 0.0f;                                                                  \
        float v[2 * HELD], sums[2] = {0.0f, 0.0f}, scale;                                                                      \
        EACH_VALUE v[j] = missing;                                                                                             \
        BY_TYPE(LOAD_PAIRS)                                                                                                    \
        if (SOFTMAX) {                                                                                                         \
            float larger[2] = {v[0], v[1]};                                                                                    \
            EACH_VALUE larger[j % 2] = row_larger_f32(larger[j % 2], v[j]);                                                    \
            const float most = pair_largest(row_larger_f32(larger[0], larger[1]), runs, folds);                                \
            EACH_VALUE                                                                                                         \
            {                                                                                                                  \
                v[j] = row_exponential_f32(v[j], most);                                                                        \
                sums[j % 2] = sums[j % 2] + v[j];                                                                              \
            }                                                                                                                  \
            scale = 1.0f / pair_sum(sums, runs, folds);                                                                        \
        } else {                                                                                                               \
            float center = 0.0f;                                                                                               \
            if (args.op == ROW_LAYER_NORM) {                                                                                   \
                EACH_VALUE sums[j % 2] = sums[j % 2] + v[j];                                                                   \
                center = pair_sum(sums, runs, folds) / (float)args.n;                                                          \
                sums[0] = sums[1] = 0.0f;                                                                                      \
            }                                                                                                                  \
            EACH_VALUE v[j] = v[j] - center; /* of 0 it changes nothing */                                                     \
            EACH_THERE({                                                                                                       \
                sums[0] = fma_f32(v[2 * p], v[2 * p], sums[0]);                                                                \
                sums[1] = fma_f32(v[2 * p + 1], v[2 * p + 1], sums[1]);                                                        \
            })                                                                                                                 \
            scale = canon_rsqrt_f32(pair_sum(sums, runs, folds) / (float)args.n + (float)args.eps);                            \
        }                                                                                                                      \
        BY_TYPE(FINISH_PAIRS)                                                                                                  \
    }

/* Rows of up to 1024 elements, and of up to four runs. Softmax and norms apart: together they take more registers than either.
 * Long only when written out. NOLINTBEGIN(readability-function-size) */
ROWS_PAIRS(tensor_softmax_16, true, 16, 1, 6)
ROWS_PAIRS(tensor_softmax_64, true, 64, ROW_PIECE, 3)
ROWS_PAIRS(tensor_norm_16, false, 16, 1, 6)
ROWS_PAIRS(tensor_norm_64, false, 64, ROW_PIECE, 3)
/* NOLINTEND(readability-function-size) */
