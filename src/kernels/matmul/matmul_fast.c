/* Products of f16 and bf16 in fast mode on AMD's matrix units, where rocBLAS is not there or refuses (src/gpu/tensor/matmul.c).
 *
 * A block makes 128 x 128 results, a wave 64 rows of as many columns as it has lanes. Slabs of 32 steps of k pass through
 * shared memory (matrix_f16.h), with k along rows and columns. The next slab is on its way to registers while one is
 * multiplied: 16 bytes along k where the matrix lies so, or eight steps of two neighbours across it, which are then put in
 * order.
 */
#include "kernels/matmul/matmul_f32.h"

#include "kernels/simt/matrix_f16.h"

enum {
    FAST_SIDE = 128, /* rows and columns of a block */
    FAST_STEPS = 32, /* of k in a slab */
    FAST_SLAB_WORDS = FAST_SIDE * FAST_WORDS,
};

/* The rows of a, or the columns of b. */
typedef struct fast_side {
    const uint16_t *data;
    int32_t first, count, k; /* of the block's lines; of all lines; steps */
    int32_t layout;          /* MATMUL_ALONG_K: k_stride is 1; MATMUL_ACROSS_K: line_stride is; both aligned */
    int64_t line_stride, k_stride;
} fast_side;

/* What a thread brings of a slab: two pieces of 16 bytes. */
typedef struct fast_fetched {
    u32x4 piece[2];
} fast_fetched;

/* Piece and line of the slab that fetched piece i goes to. Along k four threads share a line; across k each has two lines. */
DEVICE uint32_t fetched_line(const fast_side *side, uint32_t i)
{
    return side->layout == MATMUL_ACROSS_K ? thread_index() % 64 * 2 + i : thread_index() / 4 + 64 * i;
}

DEVICE uint32_t fetched_piece(const fast_side *side)
{
    return side->layout == MATMUL_ACROSS_K ? thread_index() / 64 : thread_index() % 4;
}

/* Eight steps of two lines that lie side by side. */
DEVICE fast_fetched fetch_across(const fast_side *side, int32_t line, int32_t k)
{
    uint32_t both[8];
    const uint16_t *from = side->data + line + k * side->k_stride;
    UNROLL for (int32_t i = 0; i < 8; i++) both[i] = *(const uint32_t *)(const void *)(from + i * side->k_stride);
    fast_fetched fetched;
    const u32x4 first = {both[0] << 16 >> 16 | both[1] << 16, both[2] << 16 >> 16 | both[3] << 16,
                         both[4] << 16 >> 16 | both[5] << 16, both[6] << 16 >> 16 | both[7] << 16};
    const u32x4 second = {both[0] >> 16 | both[1] >> 16 << 16, both[2] >> 16 | both[3] >> 16 << 16,
                          both[4] >> 16 | both[5] >> 16 << 16, both[6] >> 16 | both[7] >> 16 << 16};
    fetched.piece[0] = first;
    fetched.piece[1] = second;
    return fetched;
}

/* Lines behind the last are the last, and their results are nobody's; steps behind the last are +0. */
DEVICE fast_fetched fetch(const fast_side *side, int32_t slab)
{
    const int32_t step = slab * FAST_STEPS + (int32_t)fetched_piece(side) * 8, k = step < side->k ? step : side->k - 8;
    const int32_t line = side->first + (int32_t)fetched_line(side, 0), next = side->first + (int32_t)fetched_line(side, 1);
    const uint32_t mask = step < side->k ? UINT32_MAX : 0;
    fast_fetched fetched;
    if (side->layout == MATMUL_ACROSS_K) {
        fetched = fetch_across(side, line < side->count - 2 ? line : side->count - 2, k);
    } else {
        const int64_t first = line < side->count ? line : side->count - 1, second = next < side->count ? next : side->count - 1;
        fetched.piece[0] = load_u32x4((const uint32_t *)(const void *)(side->data + first * side->line_stride + k));
        fetched.piece[1] = load_u32x4((const uint32_t *)(const void *)(side->data + second * side->line_stride + k));
    }
    UNROLL
    for (int32_t i = 0; i < 2; i++) {
        const u32x4 own = fetched.piece[i], masked = {own.x & mask, own.y & mask, own.z & mask, own.w & mask};
        fetched.piece[i] = masked;
    }
    return fetched;
}

DEVICE void lay(const fast_side *side, const fast_fetched *fetched, uint32_t *slab)
{
    UNROLL for (uint32_t i = 0; i < 2; i++) *
        (u32x4 *)AT_RANGE(slab, fast_piece(fetched_line(side, i), fetched_piece(side)), 4) = fetched->piece[i];
}

/* All slabs into `sums`. `rows` and `columns` are two slabs each, alternating. */
DEVICE void sum_slabs(int32_t type, const fast_side *a, const fast_side *b, uint32_t *rows, uint32_t *columns, float *sums)
{
    const uint32_t across = FAST_SIDE / wave_size(), first_row = wave_index() / across * FAST_ROWS;
    uint32_t places[FAST_PLACES];
    UNROLL for (uint32_t i = 0; i < FAST_PLACES; i++) places[i] = wave_index() % across * wave_size() + fast_place_column(i);
    const int32_t slabs = (a->k + FAST_STEPS - 1) / FAST_STEPS;
    fast_fetched of_a = fetch(a, 0), of_b = fetch(b, 0);
    lay(a, &of_a, rows);
    lay(b, &of_b, columns);
    barrier();
    UNROLL_BY(1)
    for (int32_t slab = 0; slab < slabs; slab++) {
        const uint32_t now = (uint32_t)slab % 2 * FAST_SLAB_WORDS, then = FAST_SLAB_WORDS - now;
        const int32_t next = slab + 1 < slabs ? slab + 1 : slab; /* the last comes twice: nothing here depends on which it is */
        of_a = fetch(a, next);
        of_b = fetch(b, next);
        FAST_HALVES
        for (uint32_t half = 0; half < 2; half++)
            fast_multiply(type, rows + now + first_row * FAST_WORDS, columns + now, places, half, sums);
        lay(a, &of_a, rows + then);
        lay(b, &of_b, columns + then);
        barrier();
    }
}

DEVICE void multiply_tile(int32_t type, const matmul_args *args, int64_t batch, int32_t first_row, int32_t first_column,
                          uint32_t *rows, uint32_t *columns)
{
    int64_t a_begin, b_begin, c_begin;
    matmul_begin(args, batch, &a_begin, &b_begin, &c_begin);
    const fast_side a = {
        (const uint16_t *)args->a + a_begin, first_row, args->m, args->k, args->a_layout, args->a_row, args->a_column};
    const fast_side b = {
        (const uint16_t *)args->b + b_begin, first_column, args->n, args->k, args->b_layout, args->b_column, args->b_row};
    float sums[FAST_SUMS];
    UNROLL for (int32_t i = 0; i < FAST_SUMS; i++) sums[i] = 0.0f;
    sum_slabs(type, &a, &b, rows, columns, sums);
    const uint32_t across = FAST_SIDE / wave_size();
    const int32_t row_begin = first_row + (int32_t)(wave_index() / across * FAST_ROWS),
                  column_begin = first_column + (int32_t)(wave_index() % across * wave_size());
    UNROLL for (uint32_t c = 0; c < FAST_LANE_COLUMNS; c++)
    {
        const int32_t column = column_begin + (int32_t)fast_column(c);
        int32_t rows_left = args->m - row_begin;
        SETTLE(rows_left); /* else the conditions of all rows are kept for the next column, in more scalars than there are */
        UNROLL for (uint32_t r = 0; r < FAST_LANE_ROWS; r++)
        {
            const float sum = sums[r * FAST_LANE_COLUMNS + c] + 0.0f;
            const int64_t at = c_begin + (row_begin + (int32_t)fast_row(r)) * args->c_row + column;
            if ((int32_t)fast_row(r) < rows_left && column < args->n)
                ((uint16_t *)args->c)[at] = type == TYPE_F16 ? narrow_f16(sum) : narrow_bf16(sum);
        }
    }
}

#define MATMUL_FAST(name, type)                                                                                                \
    KERNEL_RESIDENT(name, matmul_args, MATMUL_THREADS, 2)                                                                      \
    {                                                                                                                          \
        SHARED(uint32_t, rows, 2 * FAST_SLAB_WORDS);                                                                           \
        SHARED(uint32_t, columns, 2 * FAST_SLAB_WORDS);                                                                        \
        const int32_t down = args.blocks_down, row = (int32_t)block_index() % down, column = (int32_t)block_index() / down;    \
        for (int64_t batch = block_index_y(); batch < args.batches; batch += block_count_y())                                  \
            multiply_tile(type, &args, batch, row *FAST_SIDE, column *FAST_SIDE, rows, columns);                               \
    }

MATMUL_FAST(matmul_fast_f16, TYPE_F16)
MATMUL_FAST(matmul_fast_bf16, TYPE_BF16)
