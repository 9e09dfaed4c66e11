/* Convolutions of f16, bf16 and f32 in fast mode: the weights times the image seen through a window, on the matrix units.
 *
 * A block makes 64 channels of 256 outputs. Slabs of 64 bytes of k pass through shared memory (matrix_f16.h): a thread brings
 * the elements that its output sees, and a piece of the weights, while the slab before is multiplied. Which taps of the window
 * lie inside of the image is the same for all channels: a bit for each row and column of taps, known before the loop.
 */
#include "kernels/matmul_f32.h"

#include "kernels/matrix_f16.h"

enum {
    SLAB_STEPS_MAX = 32, /* of k, of 16-bit elements; half of it of f32 */
    COLUMNS = MATMUL_THREADS,
    ROWS_WORDS = FAST_ROWS * FAST_WORDS,
    COLUMNS_WORDS = COLUMNS * FAST_WORDS,
    NO_TAP = 1 << 15, /* no output has this bit: a window has fewer rows than that */
};

/* A step of k: how far from where an output looks, and the bits of its row and column of taps. */
typedef struct __attribute__((aligned(8))) fast_tap {
    int32_t at;
    uint32_t bits;
} fast_tap;

DEVICE int32_t slab_steps(int32_t type)
{
    return type == TYPE_F32 ? SLAB_STEPS_MAX / 2 : SLAB_STEPS_MAX;
}

DEVICE void list_taps(const matmul_args *args, int32_t k, fast_tap *taps)
{
    const matmul_seen *w = &args->window;
    const uint32_t step = (uint32_t)k + thread_index();
    if (thread_index() >= SLAB_STEPS_MAX)
        return;
    const uint32_t row = step / (uint32_t)w->taps_x, channel = row / (uint32_t)w->taps_y;
    const uint32_t x = step - row * (uint32_t)w->taps_x, y = row - channel * (uint32_t)w->taps_y;
    fast_tap tap;
    tap.at = (int32_t)(channel * w->channel_stride + (int32_t)y * w->tap_y * w->y_stride + (int32_t)x * w->tap_x * w->x_stride);
    tap.bits = step < (uint32_t)args->k ? 1u << y | 0x10000u << x : (uint32_t)NO_TAP;
    AT(taps, thread_index()) = tap;
}

/* Where the thread's output looks, and which taps it sees. */
typedef struct fast_look {
    int64_t at;
    uint32_t bits;
} fast_look;

DEVICE fast_look look_of(const matmul_args *args, int32_t n)
{
    const matmul_seen *w = &args->window;
    int32_t out_y = 0, out_x = 0;
    fast_look look = {0, 0};
    if (n >= args->n)
        return look;
    const int64_t image = matmul_image_of(w, n, &out_y, &out_x);
    const int32_t y = w->first_y + out_y * w->step_y, x = w->first_x + out_x * w->step_x;
    look.at = image * w->image_stride + y * w->y_stride + x * w->x_stride;
    for (int32_t t = 0; t < w->taps_y; t++)
        look.bits |= (uint32_t)(y + t * w->tap_y) < (uint32_t)w->in_y ? 1u << t : 0u;
    for (int32_t t = 0; t < w->taps_x; t++)
        look.bits |= (uint32_t)(x + t * w->tap_x) < (uint32_t)w->in_x ? 0x10000u << t : 0u;
    return look;
}

/* What a thread brings of a slab: elements as they are, each in a word of its own, and 16 bytes of a row of weights. */
typedef struct slab_held {
    uint32_t seen[SLAB_STEPS_MAX];
    uint32_t weights[4];
} slab_held;

DEVICE uint32_t element_word(int32_t type, const void *data, int64_t at)
{
    return type == TYPE_F32 ? canon_float_bits(((const float *)data)[at]) : ((const uint16_t *)data)[at];
}

/* 16 bytes of row `row` of the weights from step k on; +0 beyond the last. */
DEVICE void bring_weights(int32_t type, const matmul_args *args, const char *a, int32_t row, int32_t k, uint32_t *weights)
{
    const int32_t each = type == TYPE_F32 ? 4 : 8;
    const int64_t at = row * args->a_row + k;
    UNROLL for (int32_t i = 0; i < 4; i++) weights[i] = 0;
    if (row >= args->m)
        return;
    if (args->a_lies == MATMUL_LIES_ALONG_K && args->a_row % each == 0 && k + each <= args->k) {
        const u32x4 four = load_u32x4((const uint32_t *)(a + at * element_bytes(type)));
        weights[0] = four.x;
        weights[1] = four.y;
        weights[2] = four.z;
        weights[3] = four.w;
        return;
    }
    UNROLL for (int32_t i = 0; i < each; i++) if (k + i < args->k) weights[type == TYPE_F32 ? i % 4 : i / 2] |=
        element_word(type, a, at + i) << (type == TYPE_F32 ? 0 : 16 * (i % 2));
}

DEVICE void bring(int32_t type, const matmul_args *args, const char *a, const char *b, int32_t first_row, int32_t k,
                  fast_look look, const fast_tap *taps, slab_held *held)
{
    const char *from = b + look.at * element_bytes(type);
    UNROLL for (int32_t i = 0; i < slab_steps(type); i++)
    {
        const fast_tap tap = AT(taps, i);
        held->seen[i] = (look.bits & tap.bits) == tap.bits ? element_word(type, from, tap.at) : 0u;
    }
    const int32_t thread = (int32_t)thread_index();
    bring_weights(type, args, a, first_row + thread / 4, k + thread % 4 * (slab_steps(type) / 4), held->weights);
}

DEVICE void lay(int32_t type, const slab_held *held, uint32_t *rows, uint32_t *columns)
{
    const uint32_t thread = thread_index();
    UNROLL for (uint32_t piece = 0; piece < 4; piece++)
    {
        uint32_t *to = AT_RANGE(columns, fast_piece(thread, piece), 4);
        u32x4 words;
        const uint32_t *seen = held->seen + (type == TYPE_F32 ? 4 : 8) * piece;
        if (type == TYPE_F32) {
            const u32x4 rounded = {fast_round(seen[0]), fast_round(seen[1]), fast_round(seen[2]), fast_round(seen[3])};
            words = rounded;
        } else {
            const u32x4 pairs = {seen[0] | seen[1] << 16, seen[2] | seen[3] << 16, seen[4] | seen[5] << 16,
                                 seen[6] | seen[7] << 16};
            words = pairs;
        }
        *(u32x4 *)to = words;
    }
    const uint32_t *w = held->weights;
    const u32x4 plain = {w[0], w[1], w[2], w[3]};
    const u32x4 rounded = {fast_round(w[0]), fast_round(w[1]), fast_round(w[2]), fast_round(w[3])};
    *(u32x4 *)AT_RANGE(rows, fast_piece(thread / 4, thread % 4), 4) = type == TYPE_F32 ? rounded : plain;
}

/* One tile. `rows` and `columns` are two slabs each, taking turns; so do the `taps`. */
DEVICE void conv_tile(int32_t type, const matmul_args *args, int64_t batch, int32_t first_row, int32_t first_column,
                      uint32_t *rows, uint32_t *columns, fast_tap *taps)
{
    int64_t a_begin, b_begin, c_begin;
    matmul_begin(args, batch, &a_begin, &b_begin, &c_begin);
    const char *a = (const char *)args->a + a_begin * element_bytes(type);
    const char *b = (const char *)args->b + b_begin * element_bytes(type);
    const fast_look look = look_of(args, first_column + (int32_t)thread_index());
    const int32_t steps = slab_steps(type), slabs = (args->k + steps - 1) / steps;
    const uint32_t wave_first = wave_index() * wave_size();
    float sums[FAST_SUMS];
    slab_held held;
    UNROLL for (int32_t i = 0; i < FAST_SUMS; i++) sums[i] = 0.0f;
    list_taps(args, 0, taps);
    barrier();
    UNROLL_BY(1)
    for (int32_t slab = 0; slab <= slabs; slab++) {
        const int32_t turn = slab % 2;
        if (slab < slabs)
            bring(type, args, a, b, first_row, slab * steps, look, taps + turn * SLAB_STEPS_MAX, &held);
        if (slab > 0)
            fast_multiply(type, rows + (turn ^ 1) * ROWS_WORDS, columns + (turn ^ 1) * COLUMNS_WORDS + wave_first * FAST_WORDS,
                          sums);
        if (slab < slabs) {
            lay(type, &held, rows + turn * ROWS_WORDS, columns + turn * COLUMNS_WORDS);
            list_taps(args, (slab + 1) * steps, taps + (turn ^ 1) * SLAB_STEPS_MAX);
        }
        barrier();
    }
    const matmul_shape shape = {FAST_ROWS, COLUMNS, 32, true};
    UNROLL for (uint32_t c = 0; c < 8; c++)
    {
        const int32_t column = first_column + (int32_t)(wave_first + fast_column(c));
        const int64_t at = c_begin + (column < args->n ? matmul_column_at(shape, args, column) : 0);
        UNROLL for (uint32_t r = 0; r < 8; r++)
        {
            const int32_t row = first_row + (int32_t)fast_row(r);
            if (column < args->n && row < args->m)
                number_put(args, at + row * args->c_row, true, true, sums[r * 8 + c]);
        }
    }
}

#define CONV_FAST(name, type)                                                                                                  \
    KERNEL(name, matmul_args, MATMUL_THREADS)                                                                                  \
    {                                                                                                                          \
        SHARED(uint32_t, rows, 2 * ROWS_WORDS);                                                                                \
        SHARED(uint32_t, columns, 2 * COLUMNS_WORDS);                                                                          \
        SHARED(fast_tap, taps, 2 * SLAB_STEPS_MAX);                                                                            \
        const int32_t down = args.blocks_down, row = (int32_t)block_index() % down, column = (int32_t)block_index() / down;    \
        for (int64_t batch = block_index_y(); batch < args.batches; batch += block_count_y())                                  \
            conv_tile(type, &args, batch, row *FAST_ROWS, column *COLUMNS, rows, columns, taps);                               \
    }

CONV_FAST(conv_fast_f16, TYPE_F16)
CONV_FAST(conv_fast_bf16, TYPE_BF16)
CONV_FAST(conv_fast_f32, TYPE_F32)
