/* softmax and norms of rows that fit in registers, in f32: a block for a row, memory is seen once each way.
 *
 * 64 threads have a run of 4096 (reduce.h): thread t the elements t, t + 64, ..., which are those of accumulator t, so that its
 * sum is a loop over its own registers, and neighbours read neighbours. A row of several runs has 64 threads for each. What is
 * not there, in a last run that is not whole, is held as a value that changes no sum, or left out where there is none.
 */
#include "kernels/elements.h"

#include "kernels/row_arguments.h"
#include "kernels/rows_arithmetic.h"

/* A thread's place in its row. */
typedef struct held_place {
    int64_t row_first; /* the row's first element */
    int32_t first;     /* of the row: the thread's first */
    int32_t count;     /* of the thread */
} held_place;

DEVICE held_place held_place_of(const row_args *args)
{
    const int32_t n = (int32_t)args->n, thread = (int32_t)thread_index();
    held_place place;
    place.row_first = (int64_t)block_index() * n;
    place.first = thread / REDUCE_LANES * REDUCE_RUN + thread % REDUCE_LANES;
    place.count = (n - place.first + REDUCE_LANES - 1) / REDUCE_LANES;
    return place;
}

/* ---- what all threads have of their parts -------------------------------------------------------------------------------- */

/* The sum of the row from the threads' accumulators: each run's are folded, and the results of the runs, up to four, are the
 * accumulators of the next round, in which all others are 0. */
DEVICE float held_sum(float accumulator, float *folds)
{
    const int32_t thread = (int32_t)thread_index();
    AT(folds, thread) = accumulator;
    barrier();
    float sum = accumulator + AT(folds, thread ^ 32);
    UNROLL for (uint32_t mask = 16; mask > 0; mask /= 2) sum = sum + wave_shuffle_xor_f32(sum, mask);
    barrier();
    if (block_size() == REDUCE_LANES)
        return sum;
    if (thread % REDUCE_LANES == 0)
        AT(folds, thread / REDUCE_LANES) = sum;
    barrier();
    const int32_t runs = (int32_t)block_size() / REDUCE_LANES;
    const float even = AT(folds, 0) + (runs > 2 ? AT(folds, 2) : 0.0f);
    const float odd = AT(folds, 1) + (runs > 3 ? AT(folds, 3) : 0.0f);
    barrier();
    return even + odd;
}

/* The largest; a NaN does not count, it makes the sum of exponentials NaN by itself. */
DEVICE float held_largest(float most, float *folds)
{
    for (uint32_t mask = wave_size() / 2; mask > 0; mask /= 2) {
        const float other = wave_shuffle_xor_f32(most, mask);
        most = other > most ? other : most;
    }
    if (lane() == 0)
        AT(folds, wave_index()) = most;
    barrier();
    for (uint32_t w = 0; w < waves_per_block(); w++)
        most = AT(folds, w) > most ? AT(folds, w) : most;
    barrier();
    return most;
}

/* ---- elements ------------------------------------------------------------------------------------------------------------ */

/* HELD values of a thread, a constant; EACH_HELD goes through them, EACH_THERE through those that are there, PIECE of which are
 * there or not together. */
#define EACH_HELD UNROLL for (int32_t j = 0; j < HELD; j++)
#define EACH_THERE(statement)                                                                                                  \
    UNROLL for (int32_t piece = 0; piece < HELD / PIECE; piece++)                                                              \
    {                                                                                                                          \
        if (piece * PIECE < place.count)                                                                                       \
            UNROLL for (int32_t j = piece * PIECE; j < (piece + 1) * PIECE; j++)                                               \
            {                                                                                                                  \
                statement;                                                                                                     \
            }                                                                                                                  \
    }

#define HELD_ELEMENT(T, data, first) ((T *)(data) + (first))[j * REDUCE_LANES]

#define LOAD_HELD(T, widen) EACH_THERE(v[j] = widen(HELD_ELEMENT(const T, args.x, begin)))

/* Weights, and biases if there are any, which are not without weights. */
#define WEIGH_HELD(T, widen)                                                                                                   \
    if (args.bias)                                                                                                             \
        EACH_THERE(v[j] = row_affine_f32(v[j], widen(HELD_ELEMENT(const T, args.weight, place.first)),                         \
                                         widen(HELD_ELEMENT(const T, args.bias, place.first))))                                \
    else                                                                                                                       \
        EACH_THERE(v[j] = v[j] * widen(HELD_ELEMENT(const T, args.weight, place.first)))

#define STORE_HELD(T, narrow) EACH_THERE(HELD_ELEMENT(T, args.out, begin) = narrow(v[j]))

#define BY_TYPE(words_f32, words_f16, words_bf16)                                                                              \
    if (args.type == TYPE_F32) {                                                                                               \
        words_f32                                                                                                              \
    } else if (args.type == TYPE_F16) {                                                                                        \
        words_f16                                                                                                              \
    } else {                                                                                                                   \
        words_bf16                                                                                                             \
    }

#define ROWS_HELD(name, held, piece_of)                                                                                        \
    KERNEL(name, row_args, ROW_THREADS)                                                                                        \
    {                                                                                                                          \
        enum { HELD = held, PIECE = piece_of };                                                                                \
        SHARED(float, folds, ROW_THREADS);                                                                                     \
        const held_place place = held_place_of(&args);                                                                         \
        const int64_t begin = place.row_first + place.first;                                                                   \
        const bool softmax = args.op == ROW_SOFTMAX;                                                                           \
        const float missing = softmax ? -MATH_INF_F32 : 0.0f;                                                                  \
        float v[HELD];                                                                                                         \
        EACH_HELD v[j] = missing;                                                                                              \
        BY_TYPE(LOAD_HELD(float, ), LOAD_HELD(uint16_t, widen_f16), LOAD_HELD(uint16_t, widen_bf16))                           \
        float sum = 0.0f;                                                                                                      \
        if (softmax) {                                                                                                         \
            float most = -MATH_INF_F32;                                                                                        \
            EACH_HELD most = v[j] > most ? v[j] : most;                                                                        \
            most = held_largest(most, folds);                                                                                  \
            EACH_HELD v[j] = row_exponential_f32(v[j], most);                                                                  \
            EACH_HELD sum = sum + v[j];                                                                                        \
            const float scale = 1.0f / held_sum(sum, folds);                                                                   \
            EACH_HELD v[j] = v[j] * scale;                                                                                     \
        } else {                                                                                                               \
            if (args.op == ROW_LAYER_NORM) {                                                                                   \
                EACH_HELD sum = sum + v[j];                                                                                    \
                const float center = held_sum(sum, folds) / (float)args.n;                                                     \
                EACH_HELD v[j] = v[j] - center;                                                                                \
            }                                                                                                                  \
            sum = 0.0f;                                                                                                        \
            EACH_THERE(sum = fma_f32(v[j], v[j], sum))                                                                         \
            const float mean = held_sum(sum, folds) / (float)args.n;                                                           \
            const float scale = canon_rsqrt_f32(mean + (float)args.eps);                                                       \
            EACH_HELD v[j] = v[j] * scale;                                                                                     \
            if (args.weight) {                                                                                                 \
                BY_TYPE(WEIGH_HELD(float, ), WEIGH_HELD(uint16_t, widen_f16), WEIGH_HELD(uint16_t, widen_bf16))                \
            }                                                                                                                  \
        }                                                                                                                      \
        BY_TYPE(STORE_HELD(float, one_nan_f32), STORE_HELD(uint16_t, narrow_f16), STORE_HELD(uint16_t, narrow_bf16))           \
    }

/* Rows of up to 1024 elements, and longer ones of whole pieces of all 64 threads. Long only when written out.
 * NOLINTBEGIN(readability-function-size) */
ROWS_HELD(tensor_rows_held_16, 16, 1)
ROWS_HELD(tensor_rows_held_64, 64, ROW_PIECE)
/* NOLINTEND(readability-function-size) */
