/* Norms of rows of up to 8192 elements of 16-bit types, and softmax of rows of 4096. 32 lanes share a row and wait for no other
 * lanes. They loop over rows, and load the next row into shared memory while they work. One block has all lanes of a compute
 * unit: smaller blocks were slower. */
#define PAIR_PART ROW_PART_4096
#include "kernels/reduce/rows_prefetch.h"

enum {
    STRETCH = ROW_WAVE_MULTIPLE,
    WORDS = STRETCH / REDUCE_LANES,
    STRETCHES = PAIR_PART / STRETCH, /* per chunk */
    CHUNKS = ROW_WAVE_CHUNKS,        /* max per row */
};

/* The lanes' first row, and the distance to their next one. Rows are dealt to the blocks in turn, so their counts differ by at
 * most one. */
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

/* Loops over the segments of n elements in up to `chunks` chunks. */
#define EACH_SEGMENT(chunks, n) UNROLL for (int32_t s = 0; s < (chunks) * STRETCHES; s++) if (s < (n) / STRETCH)
#define EACH_WORD               UNROLL for (int32_t p = s * WORDS; p < (s + 1) * WORDS; p++)

/* Starts to load a row of n elements into `to`, if the row exists. */
DEVICE void wave_bring(const row_args *args, int32_t chunks, int32_t n, int32_t row, uint32_t *to)
{
    const uint32_t lane_of = thread_index() % ROW_PAIR_LANES;
    const uint32_t *from = (const uint32_t *)args->x + (int64_t)row * (n / 2) + 4 * lane_of;
    uint32_t *mine = to + 4 * lane_of;
    if (row >= (int32_t)args->rows)
        return;
    EACH_SEGMENT(chunks, n)
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

DEVICE float wave_largest(float highest)
{
    UNROLL for (uint32_t mask = ROW_PAIR_LANES / 2; mask > 0; mask /= 2) highest =
        row_larger_f32(highest, wave_shuffle_xor_f32(highest, mask));
    return highest;
}

/* ---- norms --------------------------------------------------------------------------------------------------------------- */
/* A lane keeps its 16-bit elements as words and widens them again for each sum: kept as f32 they would need twice the registers
 * and allow fewer waves. Rows consist of whole segments, so there is one test per eight words. No widened value lives across
 * such a test. */

/* The weights and biases of each pair, two words. Missing weights are 1 and missing biases -0, which change nothing. For rows
 * of one chunk shared memory holds them as f32, four numbers; for longer rows there is only room for the words. */
DEVICE f32x4 affine_of(int32_t type, uint32_t weights, uint32_t biases)
{
    return make_f32x4(word_low(type, weights), word_high(type, weights), word_low(type, biases), word_high(type, biases));
}

DEVICE void affine_fill(int32_t type, int32_t chunks, const row_args *args, float *affine)
{
    for (int32_t i = (int32_t)thread_index(); i < (int32_t)args->n / 2; i += (int32_t)block_size()) {
        const uint32_t ones = type == TYPE_F16 ? 0x3c003c00u : 0x3f803f80u;
        const uint32_t weights = args->weight ? ((const bits_32 *)args->weight)[i] : ones;
        const uint32_t biases = args->bias ? ((const bits_32 *)args->bias)[i] : 0x80008000u;
        if (chunks == 1)
            store_f32x4(AT_RANGE(affine, 4 * i, 4), affine_of(type, weights, biases));
        else
            *(bits_64 *)AT_RANGE(affine, 2 * i, 2) = (uint64_t)biases << 32 | weights;
    }
}

/* The weights and biases of the lane's pair p. */
DEVICE f32x4 affine_at(int32_t type, int32_t chunks, const float *affine, int32_t p)
{
    const int32_t each = chunks == 1 ? 4 : 2;
    const float *mine = affine + (uint32_t)each * (thread_index() % ROW_PAIR_LANES);
    if (chunks == 1)
        return load_f32x4(AT_RANGE(mine, p * each * ROW_PAIR_LANES, 4));
    const uint64_t both = *(const bits_64 *)AT_RANGE(mine, p * each * ROW_PAIR_LANES, 2);
    return affine_of(type, (uint32_t)both, (uint32_t)(both >> 32));
}

DEVICE void norm_write(int32_t type, int32_t chunks, const row_args *args, int32_t row, const float *affine, float center,
                       float scale, const uint32_t *words)
{
    bits_32 *out = (bits_32 *)((uint16_t *)args->out + wave_place(args, row));
    EACH_SEGMENT(chunks, (int32_t)args->n)
    EACH_WORD
    {
        const f32x4 by = affine_at(type, chunks, affine, p);
        const float low = row_affine_f32((word_low(type, words[p]) - center) * scale, by.x, by.z);
        const float high = row_affine_f32((word_high(type, words[p]) - center) * scale, by.y, by.w);
        out[p * ROW_PAIR_LANES] = type == TYPE_F16 ? narrow_pair_f16(low, high) : narrow_pair_bf16(low, high);
    }
}

/* The sum of a row from the accumulators of its one or two chunks. A missing chunk has 0. */
DEVICE float norm_sum(int32_t chunks, const float *sums)
{
    const float first = wave_fold(sums);
    return chunks == 1 ? first : first + wave_fold(sums + 2);
}

/* Shared memory holds weights and biases first, then one row per 32 lanes. */
DEVICE void norm_rows(int32_t type, int32_t chunks, const row_args *args, float *affine)
{
    const int32_t first = wave_first(), n = (int32_t)args->n;
    uint32_t *mine = (uint32_t *)affine + (chunks == 1 ? 2 : 1) * n + (int32_t)(thread_index() / ROW_PAIR_LANES) * (n / 2);
    const uint32_t *staged = mine + thread_index() % ROW_PAIR_LANES;
    bool met = args->apart;
    launches_meet(&met);
    wave_bring(args, chunks, n, first, mine);
    affine_fill(type, chunks, args, affine);
    barrier();
    UNROLL_BY(1) for (int32_t row = first; wave_any(row < (int32_t)args->rows); row += wave_step())
    {
        uint32_t words[CHUNKS * LANE_PAIRS];
        float sums[2 * CHUNKS] = {0.0f}, center = 0.0f;
        copies_wait(0);
        wave_barrier();
        EACH_SEGMENT(chunks, n) EACH_WORD words[p] = AT(staged, p * ROW_PAIR_LANES);
        wave_barrier();
        wave_bring(args, chunks, n, row + wave_step(), mine);
        if (args->op == ROW_LAYER_NORM) {
            EACH_SEGMENT(chunks, n) EACH_WORD
            {
                float *chunk = sums + 2 * (s / STRETCHES);
                chunk[0] = chunk[0] + word_low(type, words[p]);
                chunk[1] = chunk[1] + word_high(type, words[p]);
            }
            center = norm_sum(chunks, sums) / (float)n;
            UNROLL for (int32_t j = 0; j < 2 * CHUNKS; j++) sums[j] = 0.0f;
        }
        EACH_SEGMENT(chunks, n) EACH_WORD
        {
            float *chunk = sums + 2 * (s / STRETCHES);
            chunk[0] = row_square_f32(chunk[0], word_low(type, words[p]), center);
            chunk[1] = row_square_f32(chunk[1], word_high(type, words[p]), center);
        }
        const float scale = canon_rsqrt_f32(norm_sum(chunks, sums) / (float)n + (float)args->eps);
        met = !args->apart || row >= wave_step(); /* in the first iteration, if not before */
        launches_meet(&met);
        if (row < (int32_t)args->rows)
            norm_write(type, chunks, args, row, affine, center, scale, words);
    }
}

#define NORM_WAVE(name, chunks, threads)                                                                                       \
    KERNEL_RESIDENT(name, row_args, threads, 1)                                                                                \
    {                                                                                                                          \
        SHARED_DYNAMIC(float, affine);                                                                                         \
        if (args.type == TYPE_F16)                                                                                             \
            norm_rows(TYPE_F16, chunks, &args, affine);                                                                        \
        else                                                                                                                   \
            norm_rows(TYPE_BF16, chunks, &args, affine);                                                                       \
    }

NORM_WAVE(tensor_norm_wave, 1, ROW_WAVE_THREADS)
NORM_WAVE(tensor_norm_wave_2, CHUNKS, ROW_WAVE_THREADS_2)

/* ---- softmax ------------------------------------------------------------------------------------------------------------- */

/* Shared memory holds one row per 32 lanes. */
DEVICE void softmax_rows(int32_t type, const row_args *args, uint32_t *staged)
{
    const int32_t first = wave_first();
    uint32_t *mine = staged + (int32_t)(thread_index() / ROW_PAIR_LANES) * (PAIR_PART / 2);
    bool met = args->apart;
    launches_meet(&met);
    wave_bring(args, 1, PAIR_PART, first, mine);
    UNROLL_BY(1) for (int32_t row = first; wave_any(row < (int32_t)args->rows); row += wave_step())
    {
        const pair_place place = {wave_place(args, row), 0, LANE_PAIRS, 0, 1};
        uint32_t words[LANE_PAIRS];
        float v[2 * LANE_PAIRS], sums[2] = {0.0f, 0.0f};
        copies_wait(0);
        wave_barrier();
        words_load(mine, (int32_t)(thread_index() % ROW_PAIR_LANES), &place, 0u, words);
        wave_barrier();
        wave_bring(args, 1, PAIR_PART, row + wave_step(), mine);
        words_widen(type, words, v);
        const float highest = wave_largest(words_largest(type, words, v));
        EACH_VALUE v[j] = row_exponential_f32(v[j], highest);
        EACH_VALUE sums[j % 2] = sums[j % 2] + v[j];
        const float scale = 1.0f / wave_fold(sums);
        met = !args->apart || row >= wave_step(); /* in the first iteration, if not before */
        launches_meet(&met);
        if (row < (int32_t)args->rows)
            softmax_put(type, true, args, &place, scale, v);
    }
}

KERNEL_RESIDENT(tensor_softmax_wave, row_args, ROW_PART_4096_RESIDENT, 1)
{
    SHARED_DYNAMIC(uint32_t, staged);
    if (args.type == TYPE_F16)
        softmax_rows(TYPE_F16, &args, staged);
    else
        softmax_rows(TYPE_BF16, &args, staged);
}
