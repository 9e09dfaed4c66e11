/* softmax and norms, in f32, of short rows of any length that tensor_rows_registers.c does not handle. One block per row;
 * memory is read once and written once.
 *
 * Thread t of 64 has the elements t, t + 64, ..., which are those of accumulator t (reduce.h). So its sum is a loop over its
 * own registers, and neighbouring threads read adjacent elements. A missing element has a value that changes no sum; if there
 * is no such value, it is skipped.
 */
#include "kernels/elementwise/elements.h"

#include "arithmetic/rows.h"
#include "kernels/reduce/row_arguments.h"

/* A thread's part of its row. */
typedef struct thread_place {
    int64_t row_first; /* the row's first element */
    int32_t first;     /* the thread's first element in the row */
    int32_t count;     /* elements of the thread */
} thread_place;

DEVICE thread_place thread_place_of(const row_args *args)
{
    const int32_t n = (int32_t)args->n, thread = (int32_t)thread_index();
    thread_place place;
    place.row_first = (int64_t)block_index() * n;
    place.first = thread;
    place.count = (n - place.first + REDUCE_LANES - 1) / REDUCE_LANES;
    return place;
}

/* ---- combining the parts of a row ---------------------------------------------------------------------------------------- */

/* The sum of the row from the threads' accumulators. */
DEVICE float block_sum(float accumulator, float *folds)
{
    const int32_t thread = (int32_t)thread_index();
    AT(folds, thread) = accumulator;
    barrier();
    float sum = accumulator + AT(folds, thread ^ 32);
    UNROLL for (uint32_t mask = 16; mask > 0; mask /= 2) sum = sum + wave_shuffle_xor_f32(sum, mask);
    barrier();
    return sum;
}

/* The largest; undefined if one is NaN. */
DEVICE float block_largest(float highest, float *folds)
{
    for (uint32_t mask = wave_size() / 2; mask > 0; mask /= 2) {
        const float other = wave_shuffle_xor_f32(highest, mask);
        highest = row_larger_f32(highest, other);
    }
    if (lane() == 0)
        AT(folds, wave_index()) = highest;
    barrier();
    for (uint32_t w = 0; w < waves_per_block(); w++)
        highest = row_larger_f32(highest, AT(folds, w));
    barrier();
    return highest;
}

/* ---- elements ------------------------------------------------------------------------------------------------------------ */

/* EACH_ELEMENT loops over all values of a thread, EACH_PRESENT only over those inside the row. */
enum { LANE_ELEMENTS = ROW_PART / REDUCE_LANES };
#define EACH_ELEMENT UNROLL for (int32_t j = 0; j < LANE_ELEMENTS; j++)
#define EACH_PRESENT(statement)                                                                                                \
    EACH_ELEMENT if (j < place.count)                                                                                          \
    {                                                                                                                          \
        statement;                                                                                                             \
    }

#define ROW_ELEMENT(T, data, first) ((T *)(data) + (first))[j * REDUCE_LANES]

#define LOAD_ROW(T, widen) EACH_PRESENT(v[j] = widen(ROW_ELEMENT(const T, args.x, begin)))

/* Applies weights, and biases if present. There are no biases without weights. */
#define WEIGH_ROW(T, widen)                                                                                                    \
    if (args.bias) {                                                                                                           \
        EACH_PRESENT(v[j] = row_affine_f32(v[j], widen(ROW_ELEMENT(const T, args.weight, place.first)),                        \
                                           widen(ROW_ELEMENT(const T, args.bias, place.first))))                               \
    } else {                                                                                                                   \
        EACH_PRESENT(v[j] = v[j] * widen(ROW_ELEMENT(const T, args.weight, place.first)))                                      \
    }

#define STORE_ROW(T, narrow) EACH_PRESENT(ROW_ELEMENT(T, args.out, begin) = narrow(v[j]))

#define BY_TYPE(words_f32, words_f16, words_bf16)                                                                              \
    if (args.type == TYPE_F32) {                                                                                               \
        words_f32                                                                                                              \
    } else if (args.type == TYPE_F16) {                                                                                        \
        words_f16                                                                                                              \
    } else {                                                                                                                   \
        words_bf16                                                                                                             \
    }

KERNEL(tensor_rows_registers_any, row_args, REDUCE_LANES)
{
    SHARED(float, folds, REDUCE_LANES);
    const thread_place place = thread_place_of(&args);
    const int64_t begin = place.row_first + place.first;
    const bool softmax = args.op == ROW_SOFTMAX;
    const float missing = softmax ? -MATH_INF_F32 : 0.0f;
    float v[LANE_ELEMENTS];
    EACH_ELEMENT v[j] = missing;
    BY_TYPE(LOAD_ROW(float, ), LOAD_ROW(uint16_t, widen_f16), LOAD_ROW(uint16_t, widen_bf16))
    float sum = 0.0f;
    if (softmax) {
        float highest = -MATH_INF_F32;
        EACH_ELEMENT highest = row_larger_f32(highest, v[j]);
        highest = block_largest(highest, folds);
        EACH_ELEMENT v[j] = row_exponential_f32(v[j], highest);
        EACH_ELEMENT sum = sum + v[j];
        const float scale = 1.0f / block_sum(sum, folds);
        EACH_ELEMENT v[j] = v[j] * scale;
    } else {
        if (args.op == ROW_LAYER_NORM) {
            EACH_ELEMENT sum = sum + v[j];
            const float center = block_sum(sum, folds) / (float)args.n;
            EACH_ELEMENT v[j] = v[j] - center;
        }
        sum = 0.0f;
        EACH_PRESENT(sum = fma_f32(v[j], v[j], sum))
        const float mean = block_sum(sum, folds) / (float)args.n;
        const float scale = canon_rsqrt_f32(mean + (float)args.eps);
        EACH_ELEMENT v[j] = v[j] * scale;
    }
    if (!softmax && args.weight) {
        BY_TYPE(WEIGH_ROW(float, ), WEIGH_ROW(uint16_t, widen_f16), WEIGH_ROW(uint16_t, widen_bf16))
    }
    BY_TYPE(STORE_ROW(float, one_nan_f32), STORE_ROW(uint16_t, narrow_f16), STORE_ROW(uint16_t, narrow_bf16))
}
