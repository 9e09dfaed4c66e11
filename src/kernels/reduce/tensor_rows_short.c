/* softmax and norms of rows of up to 512 elements, a multiple of 64, in f32. Memory is read once and written once, and 32 lanes
 * hold as many rows at a time as fit in their registers.
 *
 * A lane has eight pairs (row_pairs.h), of one row or of several consecutive ones. So all loads are in flight before the first
 * pair is used, and a pair's index gives its row. tensor_rows_registers.c is made for longer rows and would spend most of its
 * time on missing elements.
 */
#define PAIR_PART ROW_SHORT
#include "kernels/reduce/row_pairs.h"

/* The lane's work: its first element, how many of its pairs exist, and how many pairs each row has. */
typedef struct short_place {
    int64_t begin;
    int32_t count, each, first; /* `first`: the lane's first element in the row */
} short_place;

DEVICE short_place short_place_of(const row_args *args)
{
    const int32_t n = (int32_t)args->n, each = n / REDUCE_LANES, rows = LANE_PAIRS / each;
    const int32_t group = (int32_t)(thread_index() / ROW_PAIR_LANES), groups = (int32_t)(block_size() / ROW_PAIR_LANES);
    const int64_t row = ((int64_t)block_index() * groups + group) * rows, left = args->rows - row;
    short_place place;
    place.first = 2 * (int32_t)(thread_index() % ROW_PAIR_LANES);
    place.begin = row * n + place.first;
    place.each = each;
    place.count = (left < rows ? left < 0 ? 0 : (int32_t)left : rows) * each;
    return place;
}

/* Loads the weight or the bias of every pair. */
DEVICE void short_load_affine(int32_t type, const void *data, const short_place *place, float *v)
{
    int32_t of_row = 0;
    EACH_PAIR
    {
        const pair both = pair_load(type, data, place->first + of_row * REDUCE_LANES);
        of_row = of_row + 1 < place->each ? of_row + 1 : 0;
        v[2 * p] = both.v[0];
        v[2 * p + 1] = both.v[1];
    }
}

DEVICE void short_store(int32_t type, const row_args *args, const short_place *place, const float *v)
{
    EACH_PAIR if (p < place->count) pair_store(type, args->out, place->begin + p * REDUCE_LANES, v[2 * p], v[2 * p + 1]);
}

DEVICE float short_fold(float even, float odd)
{
    UNROLL for (uint32_t mask = ROW_PAIR_LANES / 2; mask > 0; mask /= 2)
    {
        even = even + wave_shuffle_xor_f32(even, mask);
        odd = odd + wave_shuffle_xor_f32(odd, mask);
    }
    return even + odd;
}

/* softmax of rows of `each` pairs, a constant. Missing elements of a single row are -infinity. */
#define EACH_ROW UNROLL for (int32_t r = 0; r < LANE_PAIRS / each; r++)
#define EACH_HAD UNROLL for (int32_t j = 2 * each * r; j < 2 * each * (r + 1); j++)

DEVICE void short_softmax(int32_t each, float *v)
{
    float highest[LANE_PAIRS], scale[LANE_PAIRS];
    EACH_ROW
    {
        float larger[2] = {v[2 * each * r], v[2 * each * r + 1]};
        EACH_HAD larger[j % 2] = row_larger_f32(larger[j % 2], v[j]);
        highest[r] = row_larger_f32(larger[0], larger[1]);
    }
    UNROLL for (uint32_t mask = ROW_PAIR_LANES / 2; mask > 0; mask /= 2) EACH_ROW highest[r] =
        row_larger_f32(highest[r], wave_shuffle_xor_f32(highest[r], mask));
    EACH_ROW
    {
        float sums[2] = {0.0f, 0.0f};
        EACH_HAD
        {
            v[j] = row_exponential_f32(v[j], highest[r]);
            sums[j % 2] = sums[j % 2] + v[j];
        }
        scale[r] = 1.0f / short_fold(sums[0], sums[1]);
        EACH_HAD v[j] = v[j] * scale[r];
    }
}

/* The same for a norm, where missing elements are 0. */
DEVICE void short_norm(int32_t each, const row_args *args, const short_place *place, float *v)
{
    EACH_ROW
    {
        float sums[2] = {0.0f, 0.0f}, center = 0.0f;
        if (args->op == ROW_LAYER_NORM) {
            EACH_HAD sums[j % 2] = sums[j % 2] + v[j];
            center = short_fold(sums[0], sums[1]) / (float)args->n;
            sums[0] = sums[1] = 0.0f;
        }
        EACH_HAD v[j] = each < LANE_PAIRS || j / 2 < place->each ? v[j] - center : 0.0f;
        EACH_HAD sums[j % 2] = fma_f32(v[j], v[j], sums[j % 2]);
        const float scale = canon_rsqrt_f32(short_fold(sums[0], sums[1]) / (float)args->n + (float)args->eps);
        EACH_HAD v[j] = v[j] * scale;
    }
}

#define BY_LENGTH(words, ...)                                                                                                  \
    if (place.each == 1)                                                                                                       \
        words(1, __VA_ARGS__);                                                                                                 \
    else if (place.each == 2)                                                                                                  \
        words(2, __VA_ARGS__);                                                                                                 \
    else if (place.each == 3)                                                                                                  \
        words(3, __VA_ARGS__);                                                                                                 \
    else if (place.each == 4)                                                                                                  \
        words(4, __VA_ARGS__);                                                                                                 \
    else                                                                                                                       \
        words(LANE_PAIRS, __VA_ARGS__);

DEVICE void softmax_short(const row_args *args)
{
    const short_place place = short_place_of(args);
    float v[2 * LANE_PAIRS];
    bool met = args->apart;
    launches_meet(&met);
    BY_TYPE(pairs_load, args, place.begin, place.count, -MATH_INF_F32, v)
    BY_LENGTH(short_softmax, v)
    met = !args->apart;
    launches_meet(&met);
    BY_TYPE(short_store, args, &place, v)
}

DEVICE void norm_short(const row_args *args)
{
    const short_place place = short_place_of(args);
    float v[2 * LANE_PAIRS], weights[2 * LANE_PAIRS], biases[2 * LANE_PAIRS];
    bool met = args->apart;
    launches_meet(&met);
    BY_TYPE(pairs_load, args, place.begin, place.count, 0.0f, v)
    if (args->weight) {
        BY_TYPE(short_load_affine, args->weight, &place, weights)
    }
    if (args->bias) {
        BY_TYPE(short_load_affine, args->bias, &place, biases)
    }
    BY_LENGTH(short_norm, args, &place, v)
    if (args->bias) /* never without weights */
        /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): as above */
        EACH_VALUE v[j] = row_affine_f32(v[j], weights[j], biases[j]);
    else if (args->weight)
        EACH_VALUE v[j] = v[j] * weights[j];
    met = !args->apart;
    launches_meet(&met);
    BY_TYPE(short_store, args, &place, v)
}

/* Two kernels, since the weights and biases of norms take twice the registers of a softmax. */
KERNEL(tensor_softmax_short, row_args, ROW_SHORT_THREADS)
{
    softmax_short(&args);
}

KERNEL(tensor_norm_short, row_args, ROW_SHORT_THREADS)
{
    norm_short(&args);
}
