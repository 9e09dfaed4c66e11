/* Norms of rows of 16-bit types up to 4096 elements, and softmax of those that have as many: half the bytes, and all of the
 * work. 32 lanes have a row to themselves, so that none waits for another, and go from row to row; the next one is on its way
 * to shared memory while they work on one. One block has all lanes of a compute unit: with smaller ones it took longer.
 */
#define PAIR_PART ROW_WHOLE
#include "kernels/rows_ahead.h"

enum { STRETCH = ROW_STRETCH, WORDS = STRETCH / REDUCE_LANES, STRETCHES = PAIR_PART / STRETCH };

/* The lanes' first row; and how far it is from each to the next. Rows go around the blocks, so that one has as many as
 * another, give or take one. */
DEVICE int32_t wave_first(void)
{
    return (int32_t)(thread_index() / ROW_PAIR_LANES * block_count() + block_index());
}

DEVICE int32_t wave_step(void)
{
    return (int32_t)(block_size() / ROW_PAIR_LANES * block_count());
}

/* The lane's first element of a row. */
DEVICE int64_t wave_place(const row_args *args, int32_t row)
{
    return (int64_t)row * (int32_t)args->n + 2 * (int32_t)(thread_index() % ROW_PAIR_LANES);
}

#define EACH_STRETCH(n) UNROLL for (int32_t s = 0; s < STRETCHES; s++) if (s < (n) / STRETCH)
#define EACH_WORD       UNROLL for (int32_t p = s * WORDS; p < (s + 1) * WORDS; p++)

/* Begins to bring a row of n elements to `to`, if it is there. */
DEVICE void wave_bring(const row_args *args, int32_t n, int32_t row, uint32_t *to)
{
    const uint32_t lane_of = thread_index() % ROW_PAIR_LANES;
    const uint32_t *from = (const uint32_t *)args->x + (int64_t)row * (n / 2) + 4 * lane_of;
    uint32_t *mine = to + 4 * lane_of;
    if (row >= (int32_t)args->rows)
        return;
    EACH_STRETCH(n)
    UNROLL for (int32_t u = s * WORDS; u < (s + 1) * WORDS; u += 4)
        copy_16(AT_RANGE(mine, u * ROW_PAIR_LANES, 4), from + u * ROW_PAIR_LANES);
    copies_commit();
}

DEVICE float wave_fold(const float *sums)
{
    float even = sums[0], odd = sums[1];
    UNROLL for (uint32_t mask = ROW_PAIR_LANES / 2; mask > 0; mask /= 2)
    {
        even = even + wave_shuffle_xor_f32(even, mask);
        odd = odd + wave_shuffle_xor_f32(odd, mask);
    }
    return even + odd;
}

DEVICE float wave_largest(float most)
{
    UNROLL for (uint32_t mask = ROW_PAIR_LANES / 2; mask > 0; mask /= 2) most =
        row_larger_f32(most, wave_shuffle_xor_f32(most, mask));
    return most;
}

/* ---- norms --------------------------------------------------------------------------------------------------------------- */
/* A lane keeps words as they come, half as many as there are values, and widens them for each sum anew: as values they would
 * leave fewer waves. Rows are of whole stretches, so that there is one test for eight words; from one side of such a test to
 * the other nothing is kept widened. */

/* Weights and biases as f32, of each pair one after the other: four numbers that come at once. Without weights they are 1,
 * without biases -0, with which the product and the sum change nothing. */
DEVICE void affine_fill(int32_t type, const row_args *args, float *affine)
{
    for (int32_t i = (int32_t)thread_index(); i < (int32_t)args->n / 2; i += (int32_t)block_size()) {
        f32x4 both = make_f32x4(1.0f, 1.0f, -0.0f, -0.0f);
        if (args->weight) {
            const uint32_t word = ((const bits_32 *)args->weight)[i];
            both.x = word_low(type, word);
            both.y = word_high(type, word);
        }
        if (args->bias) {
            const uint32_t word = ((const bits_32 *)args->bias)[i];
            both.z = word_low(type, word);
            both.w = word_high(type, word);
        }
        store_f32x4(AT_RANGE(affine, 4 * i, 4), both);
    }
}

DEVICE void norm_write(int32_t type, const row_args *args, int32_t row, const float *affine, float center, float scale,
                       const uint32_t *words)
{
    const float *mine = affine + 4 * (thread_index() % ROW_PAIR_LANES);
    bits_32 *out = (bits_32 *)((uint16_t *)args->out + wave_place(args, row));
    EACH_STRETCH((int32_t)args->n)
    EACH_WORD
    {
        const f32x4 by = load_f32x4(AT_RANGE(mine, p * 4 * ROW_PAIR_LANES, 4));
        const float low = row_affine_f32((word_low(type, words[p]) - center) * scale, by.x, by.z);
        const float high = row_affine_f32((word_high(type, words[p]) - center) * scale, by.y, by.w);
        out[p * ROW_PAIR_LANES] = type == TYPE_F16 ? narrow_pair_f16(low, high) : narrow_pair_bf16(low, high);
    }
}

/* Shared memory has weights and biases first, and then a row for each 32 lanes. */
DEVICE void norm_rows(int32_t type, const row_args *args, float *affine)
{
    const int32_t first = wave_first(), n = (int32_t)args->n;
    uint32_t *mine = (uint32_t *)affine + 2 * n + (int32_t)(thread_index() / ROW_PAIR_LANES) * (n / 2);
    bool met = args->apart;
    launches_meet(&met);
    wave_bring(args, n, first, mine);
    affine_fill(type, args, affine);
    barrier();
    UNROLL_BY(1) for (int32_t row = first; wave_any(row < (int32_t)args->rows); row += wave_step())
    {
        uint32_t words[HELD];
        float sums[2] = {0.0f, 0.0f}, center = 0.0f;
        copies_wait(0);
        wave_barrier();
        EACH_STRETCH(n) EACH_WORD words[p] = AT(mine, thread_index() % ROW_PAIR_LANES + p * ROW_PAIR_LANES);
        wave_barrier();
        wave_bring(args, n, row + wave_step(), mine);
        if (args->op == ROW_LAYER_NORM) {
            EACH_STRETCH(n) EACH_WORD
            {
                sums[0] = sums[0] + word_low(type, words[p]);
                sums[1] = sums[1] + word_high(type, words[p]);
            }
            center = wave_fold(sums) / (float)n;
            sums[0] = sums[1] = 0.0f;
        }
        EACH_STRETCH(n) EACH_WORD
        {
            sums[0] = row_square_f32(sums[0], word_low(type, words[p]), center);
            sums[1] = row_square_f32(sums[1], word_high(type, words[p]), center);
        }
        const float scale = canon_rsqrt_f32(wave_fold(sums) / (float)n + (float)args->eps);
        met = !args->apart || row != first; /* in the first turn, if not before */
        launches_meet(&met);
        if (row < (int32_t)args->rows)
            norm_write(type, args, row, affine, center, scale, words);
    }
}

KERNEL_RESIDENT(tensor_norm_wave, row_args, ROW_WAVE_THREADS, 1)
{
    SHARED_DYNAMIC(float, affine);
    if (args.type == TYPE_F16)
        norm_rows(TYPE_F16, &args, affine);
    else
        norm_rows(TYPE_BF16, &args, affine);
}

/* ---- softmax ------------------------------------------------------------------------------------------------------------- */

/* Shared memory has a row for each 32 lanes. */
DEVICE void softmax_rows(int32_t type, const row_args *args, uint32_t *held)
{
    const int32_t first = wave_first();
    uint32_t *mine = held + (int32_t)(thread_index() / ROW_PAIR_LANES) * (PAIR_PART / 2);
    bool met = args->apart;
    launches_meet(&met);
    wave_bring(args, PAIR_PART, first, mine);
    UNROLL_BY(1) for (int32_t row = first; wave_any(row < (int32_t)args->rows); row += wave_step())
    {
        const pair_place place = {wave_place(args, row), 0, HELD, 0, 1};
        uint32_t words[HELD];
        float v[2 * HELD], sums[2] = {0.0f, 0.0f};
        copies_wait(0);
        wave_barrier();
        words_load(mine, (int32_t)(thread_index() % ROW_PAIR_LANES), &place, 0u, words);
        wave_barrier();
        wave_bring(args, PAIR_PART, row + wave_step(), mine);
        words_widen(type, words, v);
        const float most = wave_largest(words_largest(type, words, v));
        EACH_VALUE v[j] = row_exponential_f32(v[j], most);
        EACH_VALUE sums[j % 2] = sums[j % 2] + v[j];
        const float scale = 1.0f / wave_fold(sums);
        met = !args->apart || row != first; /* in the first turn, if not before */
        launches_meet(&met);
        if (row < (int32_t)args->rows)
            softmax_put(type, true, args, &place, scale, v);
    }
}

KERNEL_RESIDENT(tensor_softmax_wave, row_args, ROW_WHOLE_RESIDENT, 1)
{
    SHARED_DYNAMIC(uint32_t, held);
    if (args.type == TYPE_F16)
        softmax_rows(TYPE_F16, &args, held);
    else
        softmax_rows(TYPE_BF16, &args, held);
}
