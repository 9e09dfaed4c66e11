/* Shared by all kernels of matrix products, whatever type they compute in: shapes, addresses, windows. matmul_tile.h
 * multiplies. */
#ifndef WW_KERNELS_MATMUL_MATMUL_COMMON_H
#define WW_KERNELS_MATMUL_MATMUL_COMMON_H

#include "kernels/simt/simt.h"

#include "arithmetic/convert.h"
#include "kernels/matmul/matmul.h"

/* Compile-time constants of a kernel. A thread computes rows/down x columns/across results, in quads. */
typedef struct matmul_shape {
    int32_t rows, columns; /* of a tile: 128 x 128, 64 x 256 or 64 x 64 */
    int32_t across;        /* threads per row of threads: 16 or 32 */
    bool window;           /* b is seen through a window */
    bool marked;           /* and its taps have marks */
} matmul_shape;

enum {
    MATMUL_PAD = 4,       /* between the steps of a tile: keeps 16-byte alignment and spreads them over the banks */
    MATMUL_HELD_MAX = 16, /* max elements of a slice that a thread loads */
    MATMUL_SUMS_MAX = 64, /* max per thread */
    MATMUL_FOURS_MAX = 2, /* max quads of a thread's rows, or columns */
};

/* Numbers of the two slices of a and the two of b. */
#define MATMUL_SHARED(rows, columns) (2 * MATMUL_STEPS * ((rows) + (columns) + 2 * MATMUL_PAD))

DEVICE int32_t matmul_down(matmul_shape shape)
{
    return MATMUL_THREADS / shape.across;
}

/* For a side of `side` rows or columns: elements of a slice that a thread loads, numbers from one step to the next, and all
 * numbers. */
DEVICE int32_t matmul_fetched(int32_t side)
{
    return side * MATMUL_STEPS / MATMUL_THREADS;
}

DEVICE int32_t matmul_stride(int32_t side)
{
    return side + MATMUL_PAD;
}

DEVICE int32_t matmul_slice(int32_t side)
{
    return MATMUL_STEPS * matmul_stride(side);
}

/* Row or column `i` of thread `thread` of `threads` in that direction. Its quads are far apart, so neighbouring threads read
 * neighbouring quads. */
DEVICE int32_t matmul_mine(int32_t thread, int32_t threads, int32_t i)
{
    return i / 4 * threads * 4 + thread * 4 + i % 4;
}

/* The elements of a matrix that a thread loads. Rows of a, or columns of b, run across. */
typedef struct matmul_side {
    const void *data;
    int64_t at;     /* index of the thread's first element in the next slice */
    int64_t k_step; /* from one slice to the next */
    int64_t k_stride;
    int32_t type, layout;
    int32_t k;      /* of the first element */
    int32_t across; /* rows or columns that exist from the thread's own on; none if 0 or less */
} matmul_side;

/* `count` rows or columns exist; the tile's start at `first`. */
DEVICE matmul_side matmul_side_of(int32_t side_count, int32_t type, const void *data, int64_t stride, int64_t k_stride,
                                  int32_t layout, int32_t first, int32_t count)
{
    const int32_t thread = (int32_t)thread_index();
    const bool across_k = layout == MATMUL_ACROSS_K;
    const int32_t mine = across_k ? thread % 16 * 4 : thread % side_count;
    const int32_t k = across_k ? thread / 16 : thread / side_count * matmul_fetched(side_count);
    const matmul_side side = {data,
                              (first + (int64_t)mine) * stride + k * k_stride,
                              MATMUL_STEPS * k_stride,
                              k_stride,
                              type,
                              layout,
                              k,
                              count - first - mine};
    return side;
}

/* Where a column of b reads, for a thread that loads elements of that column. */
typedef struct matmul_look {
    int64_t at;   /* index of tap 0 and channel 0, as if it were inside */
    int32_t y, x; /* if taps have marks, y has the marks of the column */
    int32_t k;    /* of the thread's first element */
    bool exists;
} matmul_look;

DEVICE int32_t matmul_image_of(const matmul_window_32 *w, int32_t n, int32_t *y, int32_t *x)
{
    const uint32_t row = (uint32_t)n / (uint32_t)w->outs_x;
    *x = (int32_t)((uint32_t)n - row * (uint32_t)w->outs_x);
    *y = (int32_t)(row % (uint32_t)w->outs_y);
    return (int32_t)(row / (uint32_t)w->outs_y);
}

/* ---- windows whose taps have marks --------------------------------------------------------------------------------------- */
/* Which taps of an output are inside the image is the same for all channels: one bit per row of taps and one per column, known
 * before the loop over k. For windows of at most MATMUL_MARKED_TAPS rows and columns, and distances that fit in 32 bits. */

enum { MATMUL_NO_TAP = 1 << MATMUL_MARKED_TAPS }; /* no output has this mark */

/* A step of k: the distance from an output's origin, and the marks of its row and column. */
typedef struct __attribute__((aligned(8))) matmul_mark {
    int32_t at;
    uint32_t bits;
} matmul_mark;

/* Loads steps i and i + 1, i even, from a list aligned to 16 bytes. */
typedef struct matmul_marks {
    matmul_mark mark[2];
} matmul_marks;

DEVICE matmul_marks matmul_two_marks(const matmul_mark *marks, int32_t i)
{
    const u32x4 words = load_u32x4((const uint32_t *)AT_RANGE(marks, i, 2));
    const matmul_marks two = {{{(int32_t)words.x, words.y}, {(int32_t)words.z, words.w}}};
    return two;
}

/* Lists `steps` steps in shared memory, starting at step k. */
DEVICE void matmul_list_marks(const matmul_args *args, int32_t k, uint32_t steps, matmul_mark *marks)
{
    const matmul_window_32 *w = &args->window;
    const uint32_t step = (uint32_t)k + thread_index();
    if (thread_index() >= steps)
        return;
    const uint32_t row = step / (uint32_t)w->taps_x, channel = row / (uint32_t)w->taps_y;
    const uint32_t x = step - row * (uint32_t)w->taps_x, y = row - channel * (uint32_t)w->taps_y;
    matmul_mark mark;
    mark.at =
        (int32_t)(channel * w->channel_stride + (int32_t)y * w->tap_y * w->y_stride + (int32_t)x * w->tap_x * w->x_stride);
    mark.bits = step < (uint32_t)args->k ? 1u << y | 0x10000u << x : (uint32_t)MATMUL_NO_TAP;
    AT(marks, thread_index()) = mark;
}

/* The origin of output n, as if it were inside, and its marks; no marks if the output does not exist. */
DEVICE uint32_t matmul_marks_of(const matmul_args *args, int32_t n, int64_t *at)
{
    const matmul_window_32 *w = &args->window;
    int32_t out_y = 0, out_x = 0;
    uint32_t bits = 0;
    *at = 0;
    if (n >= args->n)
        return 0;
    const int64_t image = matmul_image_of(w, n, &out_y, &out_x);
    const int32_t y = w->first_y + out_y * w->step_y, x = w->first_x + out_x * w->step_x;
    *at = image * w->image_stride + y * w->y_stride + x * w->x_stride;
    UNROLL_BY(1)
    for (int32_t t = 0; t < w->taps_y; t++)
        bits |= (uint32_t)(y + t * w->tap_y) < (uint32_t)w->in_y ? 1u << t : 0u;
    UNROLL_BY(1)
    for (int32_t t = 0; t < w->taps_x; t++)
        bits |= (uint32_t)(x + t * w->tap_x) < (uint32_t)w->in_x ? 0x10000u << t : 0u;
    return bits;
}

DEVICE matmul_look matmul_look_at(matmul_shape shape, const matmul_args *args, int32_t first, int32_t count)
{
    const matmul_window_32 *w = &args->window;
    const int32_t thread = (int32_t)thread_index(), n = first + thread % shape.columns;
    matmul_look look;
    int32_t y = 0, x = 0;
    look.exists = n < count;
    look.k = thread / shape.columns * matmul_fetched(shape.columns);
    if (shape.marked) {
        look.x = 0;
        look.y = (int32_t)matmul_marks_of(args, n, &look.at);
        return look;
    }
    const int64_t image = look.exists ? matmul_image_of(w, n, &y, &x) : 0;
    look.y = w->first_y + y * w->step_y;
    look.x = w->first_x + x * w->step_x;
    look.at = image * w->image_stride + look.y * w->y_stride + look.x * w->x_stride;
    return look;
}

/* A step of k through a window, the same for all columns: the distance from the column's origin. */
typedef struct __attribute__((aligned(16))) matmul_tap {
    int64_t at;
    int32_t y, x;
} matmul_tap;

/* Lists the taps of the slice from step k on in shared memory: steps follow each other by taps, then by channels. A tap past
 * the last is outside every image. */
DEVICE void matmul_list_taps(const matmul_args *args, int32_t k, matmul_tap *taps)
{
    const matmul_window_32 *w = &args->window;
    const uint32_t step = (uint32_t)k + thread_index();
    if (thread_index() >= MATMUL_STEPS)
        return;
    const uint32_t row = step / (uint32_t)w->taps_x, channel = row / (uint32_t)w->taps_y;
    const bool exists = step < (uint32_t)args->k;
    matmul_tap tap;
    tap.x = (int32_t)(step - row * (uint32_t)w->taps_x) * w->tap_x;
    tap.y = exists ? (int32_t)(row - channel * (uint32_t)w->taps_y) * w->tap_y : INT32_MIN / 2;
    tap.at = channel * w->channel_stride + tap.y * w->y_stride + tap.x * w->x_stride;
    AT(taps, thread_index()) = tap;
}

/* The index of the first result of a column in its matrix. */
DEVICE int64_t matmul_column_at(matmul_shape shape, const matmul_args *args, int32_t column)
{
    if (!shape.window)
        return column;
    int32_t y, x;
    const int64_t image = matmul_image_of(&args->window, column, &y, &x);
    return image * args->window.out_image_stride + y * args->window.out_y_stride + x * args->window.out_x_stride;
}

/* Where the matrices of a batch element start. */
DEVICE void matmul_begin(const matmul_args *args, int64_t number, int64_t *a, int64_t *b, int64_t *c)
{
    *a = *b = *c = 0;
    UNROLL_BY(1)
    for (int32_t i = args->batch_rank - 1; i >= 0; i--) {
        const int64_t at = number % args->batch[i];
        number /= args->batch[i];
        *a += at * args->a_batch[i];
        *b += at * args->b_batch[i];
        *c += at * args->c_batch[i];
    }
}

#endif
