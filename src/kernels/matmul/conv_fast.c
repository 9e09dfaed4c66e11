/* Convolutions of f16, bf16 and f32 in fast mode: the weights times the image seen through a window, on the matrix units.
 *
 * A block computes 64 channels of 256 outputs. Slabs of 64 bytes of k pass through shared memory (matrix_f16.h): a thread loads
 * the elements that its output sees, half a slab at a time, and a piece of the weights, while the previous slab is multiplied.
 */
#include "kernels/matmul/conv_tiles.h"

enum {
    SLAB_STEPS_MAX = 32, /* steps of k for 16-bit elements; half of it for f32 */
    ROWS_WORDS = FAST_ROWS * FAST_WORDS,
    COLUMNS_WORDS = CONV_COLUMNS * FAST_WORDS,
};

/* A thread's part of half a slab: unconverted elements, one per word. */
typedef struct slab_fetched {
    uint32_t words[SLAB_STEPS_MAX / 2];
} slab_fetched;

DEVICE int32_t slab_steps(int32_t type)
{
    return type == TYPE_F32 ? SLAB_STEPS_MAX / 2 : SLAB_STEPS_MAX;
}

/* 16 bytes of row `row` of the weights from step k on; +0 beyond the last. */
DEVICE void bring_weights(int32_t type, const matmul_args *args, const char *a, int32_t row, int32_t k, uint32_t *weights)
{
    const int32_t each = type == TYPE_F32 ? 4 : 8;
    const int64_t at = row * args->a_row + k;
    UNROLL for (int32_t i = 0; i < 4; i++) weights[i] = 0;
    if (row >= args->m)
        return;
    if (args->a_layout == MATMUL_ALONG_K && k + each <= args->k) {
        const u32x4 four = load_u32x4((const uint32_t *)(a + at * element_bytes(type)));
        weights[0] = four.x;
        weights[1] = four.y;
        weights[2] = four.z;
        weights[3] = four.w;
        return;
    }
    UNROLL for (int32_t i = 0; i < each; i++) if (k + i < args->k) weights[type == TYPE_F32 ? i % 4 : i / 2] |=
        conv_word(type, a, at + i) << (type == TYPE_F32 ? 0 : 16 * (i % 2));
}

DEVICE slab_fetched bring_half(int32_t type, const char *from, uint32_t bits, const matmul_mark *marks)
{
    slab_fetched fetched;
    UNROLL for (int32_t i = 0; i < slab_steps(type) / 2; i += 2)
    {
        const matmul_marks two = matmul_two_marks(marks, i);
        UNROLL for (int32_t j = 0; j < 2; j++)
        {
            const matmul_mark mark = two.mark[j];
            fetched.words[i + j] = (bits & mark.bits) == mark.bits ? conv_word(type, from, mark.at) : 0u;
        }
    }
    return fetched;
}

DEVICE void lay_half(int32_t type, const slab_fetched *fetched, uint32_t half, uint32_t *columns)
{
    UNROLL for (uint32_t piece = 0; piece < 2; piece++)
    {
        uint32_t *to = AT_RANGE(columns, fast_piece(thread_index(), half * 2 + piece), 4);
        *(u32x4 *)to = conv_piece(type, fetched->words + (type == TYPE_F32 ? 4 : 8) * piece);
    }
}

DEVICE void lay_weights(int32_t type, const uint32_t *w, uint32_t *rows)
{
    const uint32_t thread = thread_index();
    const u32x4 plain = {w[0], w[1], w[2], w[3]};
    const u32x4 rounded = {fast_round(w[0]), fast_round(w[1]), fast_round(w[2]), fast_round(w[3])};
    *(u32x4 *)AT_RANGE(rows, fast_piece(thread / 4, thread % 4), 4) = type == TYPE_F32 ? rounded : plain;
}

/* Adds all slabs of a tile to `sums`. `rows` and `columns` are two alternating slabs each; the `marks` alternate too. */
DEVICE void sum_slabs(int32_t type, const matmul_args *args, const char *a, const char *from, uint32_t bits, int32_t first_row,
                      uint32_t *rows, uint32_t *columns, matmul_mark *marks, float *sums)
{
    const int32_t steps = slab_steps(type), slabs = (args->k + steps - 1) / steps, thread = (int32_t)thread_index();
    uint32_t places[FAST_PLACES];
    UNROLL for (uint32_t i = 0; i < FAST_PLACES; i++) places[i] = wave_index() * wave_size() + fast_place_column(i);
    matmul_list_marks(args, 0, SLAB_STEPS_MAX, marks);
    barrier();
    UNROLL_BY(1)
    for (int32_t slab = 0; slab <= slabs; slab++) {
        const int32_t slot = slab % 2;
        uint32_t weights[4];
        if (slab < slabs)
            bring_weights(type, args, a, first_row + thread / 4, slab * steps + thread % 4 * (steps / 4), weights);
        UNROLL for (uint32_t half = 0; half < 2; half++)
        {
            slab_fetched fetched;
            if (slab < slabs)
                fetched = bring_half(type, from, bits, marks + slot * SLAB_STEPS_MAX + (int32_t)half * (steps / 2));
            if (slab > 0)
                fast_multiply(type, rows + (slot ^ 1) * ROWS_WORDS, columns + (slot ^ 1) * COLUMNS_WORDS, places, half, sums);
            if (slab < slabs)
                lay_half(type, &fetched, half, columns + slot * COLUMNS_WORDS);
        }
        if (slab < slabs) {
            lay_weights(type, weights, rows + slot * ROWS_WORDS);
            matmul_list_marks(args, (slab + 1) * steps, SLAB_STEPS_MAX, marks + (slot ^ 1) * SLAB_STEPS_MAX);
        }
        barrier();
    }
}

DEVICE void conv_tile(int32_t type, const matmul_args *args, int64_t batch, int32_t first_row, int32_t first_column,
                      uint32_t *rows, uint32_t *columns, matmul_mark *marks)
{
    int64_t a_begin, b_begin, c_begin, look;
    matmul_begin(args, batch, &a_begin, &b_begin, &c_begin);
    const uint32_t bits = matmul_marks_of(args, first_column + (int32_t)thread_index(), &look);
    const char *a = (const char *)args->a + a_begin * element_bytes(type);
    const char *from = (const char *)args->b + (b_begin + look) * element_bytes(type);
    float sums[FAST_SUMS];
    UNROLL for (int32_t i = 0; i < FAST_SUMS; i++) sums[i] = 0.0f;
    sum_slabs(type, args, a, from, bits, first_row, rows, columns, marks, sums);
    conv_put(type, args, c_begin, false, first_row, first_column, sums);
}

/* One kernel per type: a joint one would need too many registers for two resident blocks. */
#define CONV_FAST(name, type)                                                                                                  \
    KERNEL_RESIDENT(name, matmul_args, MATMUL_THREADS, 2)                                                                      \
    {                                                                                                                          \
        SHARED(uint32_t, rows, 2 * ROWS_WORDS);                                                                                \
        SHARED(uint32_t, columns, 2 * COLUMNS_WORDS);                                                                          \
        SHARED(matmul_tap, taps, SLAB_STEPS_MAX); /* two lists of marks, aligned */                                            \
        const int32_t down = args.blocks_down, row = (int32_t)block_index() % down, column = (int32_t)block_index() / down;    \
        for (int64_t batch = block_index_y(); batch < args.batches; batch += block_count_y())                                  \
            conv_tile(type, &args, batch, row *FAST_ROWS, column *CONV_COLUMNS, rows, columns, (matmul_mark *)taps);           \
    }

CONV_FAST(conv_fast_f16, TYPE_F16)
CONV_FAST(conv_fast_bf16, TYPE_BF16)
CONV_FAST(conv_fast_f32, TYPE_F32)
