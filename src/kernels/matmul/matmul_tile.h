/* Canonical matrix products by tiles: a block computes 128 x 128 or 64 x 64 results, a thread 8 x 8 or 4 x 4 of them.
 *
 * Bound by arithmetic. Sixteen steps of k at a time pass through shared memory. There each step of a and b is contiguous, so a
 * thread reads four rows or columns at once. The next sixteen are loaded into registers meanwhile, widened to the type of the
 * arithmetic. At the end of each chunk the sums are added to the totals in memory. That takes a few percent of a chunk's time
 * and keeps the registers for sums.
 *
 * Each kernel file includes this once and first defines its arithmetic: NUMBER is the type, FOUR has four of them in `v`, and
 * NUMBER_TYPE is the element type that needs no conversion. number_take(type, data, at) and four_take(..) read elements;
 * number_put(args, at, first, last, sum) and four_put(..) add to totals or write results; four_load and four_store are for
 * shared memory; also number_step(a, b, sum) and element_bytes(type).
 */
#ifndef WW_KERNELS_MATMUL_MATMUL_TILE_H
#define WW_KERNELS_MATMUL_MATMUL_TILE_H

#include "kernels/matmul/matmul_common.h"

/* ---- from memory into registers ------------------------------------------------------------------------------------------ */

/* Loads the first `left` of four adjacent elements; +0 for the others. */
DEVICE FOUR side_four(int32_t type, const void *data, int64_t at, int32_t left)
{
    FOUR four;
    if (left >= 4)
        return four_take(type, data, at);
    UNROLL
    for (int32_t i = 0; i < 4; i++)
        four.v[i] = i < left ? number_take(type, data, at + i) : (NUMBER)0;
    return four;
}

/* Loads this thread's elements of the next slice; `left` steps of k are left. */
DEVICE void side_bring_of(int32_t type, int32_t side_count, const matmul_side *side, int32_t left, NUMBER *fetched)
{
    const int32_t count = matmul_fetched(side_count), mine = left - side->k;
    if (side->layout == MATMUL_STRIDED) {
        int32_t none = 0;
        SETTLE(none); /* otherwise all distances would be kept in registers from before the loop over k */
        UNROLL
        for (int32_t i = 0; i < count; i++)
            fetched[i] = i < mine && side->across > 0 ? number_take(type, side->data, side->at + (none + i) * side->k_stride)
                                                      : (NUMBER)0;
    } else {
        const bool along = side->layout == MATMUL_ALONG_K;
        UNROLL
        for (int32_t i = 0; i < count / 4; i++) {
            const int32_t some = along ? (side->across > 0 ? mine - i * 4 : 0) : (mine > 0 ? side->across - i * 64 : 0);
            const FOUR four = side_four(type, side->data, side->at + i * (along ? 4 : 64), some);
            UNROLL
            for (int32_t j = 0; j < 4; j++)
                fetched[i * 4 + j] = four.v[j];
        }
    }
}

DEVICE void side_bring(int32_t side_count, matmul_side *side, int32_t left, NUMBER *fetched)
{
    if (side->type == NUMBER_TYPE)
        side_bring_of(NUMBER_TYPE, side_count, side, left, fetched);
    else
        side_bring_of(side->type, side_count, side, left, fetched);
    side->at += side->k_step;
}

/* The same through a window. `type` is a constant for the usual type. */
DEVICE void window_bring_of(int32_t type, matmul_shape shape, const matmul_args *args, const void *data,
                            const matmul_look *look, const matmul_tap *taps, NUMBER *fetched)
{
    UNROLL
    for (int32_t i = 0; i < matmul_fetched(shape.columns); i++) {
        const matmul_tap tap = AT(taps, look->k + i);
        const bool inside = look->exists && (uint32_t)(look->y + tap.y) < (uint32_t)args->window.in_y &&
                            (uint32_t)(look->x + tap.x) < (uint32_t)args->window.in_x;
        fetched[i] = inside ? number_take(type, data, look->at + tap.at) : (NUMBER)0;
    }
}

/* The same if taps have marks; `from` is the origin of the thread's column. */
DEVICE void marked_bring_of(int32_t type, matmul_shape shape, const char *from, uint32_t bits, const matmul_mark *marks,
                            NUMBER *fetched)
{
    UNROLL
    for (int32_t i = 0; i < matmul_fetched(shape.columns); i += 2) {
        const matmul_marks two = matmul_two_marks(marks, i);
        UNROLL
        for (int32_t j = 0; j < 2; j++)
            fetched[i + j] =
                (bits & two.mark[j].bits) == two.mark[j].bits ? number_take(type, from, two.mark[j].at) : (NUMBER)0;
    }
}

DEVICE void window_bring(matmul_shape shape, const matmul_args *args, const void *data, const matmul_look *look,
                         const matmul_tap *taps, NUMBER *fetched)
{
    if (shape.marked) {
        const char *from = (const char *)data; /* the origin of the thread's column */
        const matmul_mark *marks = (const matmul_mark *)taps + look->k;
        if (args->type == NUMBER_TYPE)
            marked_bring_of(NUMBER_TYPE, shape, from, (uint32_t)look->y, marks, fetched);
        else
            marked_bring_of(args->type, shape, from, (uint32_t)look->y, marks, fetched);
    } else if (args->type == NUMBER_TYPE) {
        window_bring_of(NUMBER_TYPE, shape, args, data, look, taps, fetched);
    } else {
        window_bring_of(args->type, shape, args, data, look, taps, fetched);
    }
}

/* Lists the steps that window_bring() needs for the slice from step k on. */
DEVICE void window_list(matmul_shape shape, const matmul_args *args, int32_t k, matmul_tap *taps)
{
    if (shape.marked)
        matmul_list_marks(args, k, MATMUL_STEPS, (matmul_mark *)taps);
    else
        matmul_list_taps(args, k, taps);
}

/* Stores registers in a slice. */
DEVICE void slice_lay(int32_t side_count, int32_t layout, const NUMBER *fetched, NUMBER *slice)
{
    const int32_t thread = (int32_t)thread_index(), count = matmul_fetched(side_count), stride = matmul_stride(side_count);
    if (layout == MATMUL_ACROSS_K) {
        UNROLL
        for (int32_t i = 0; i < count / 4; i++) {
            FOUR four;
            UNROLL
            for (int32_t j = 0; j < 4; j++)
                four.v[j] = fetched[i * 4 + j];
            four_store(AT_RANGE(slice, thread / 16 * stride + i * 64 + thread % 16 * 4, 4), four);
        }
        return;
    }
    UNROLL
    for (int32_t i = 0; i < count; i++)
        AT(slice, (thread / side_count * count + i) * stride + thread % side_count) = fetched[i];
}

/* ---- sums ---------------------------------------------------------------------------------------------------------------- */

/* One step of the thread's results, kept row by row. */
DEVICE void step_sum(matmul_shape shape, const NUMBER *a, const NUMBER *b, NUMBER *sums)
{
    const int32_t rows = shape.rows / matmul_down(shape), columns = shape.columns / shape.across;
    FOUR x[MATMUL_FOURS_MAX], y[MATMUL_FOURS_MAX];
    UNROLL
    for (int32_t i = 0; i < rows / 4; i++)
        x[i] = four_load(AT_RANGE(a, i * matmul_down(shape) * 4, 4));
    UNROLL
    for (int32_t i = 0; i < columns / 4; i++)
        y[i] = four_load(AT_RANGE(b, i * shape.across * 4, 4));
    UNROLL
    for (int32_t i = 0; i < rows; i++) {
        UNROLL
        for (int32_t j = 0; j < columns; j++)
            sums[i * columns + j] = number_step(x[i / 4].v[i % 4], y[j / 4].v[j % 4], sums[i * columns + j]);
    }
}

/* All steps of a slice. Large tiles have no registers for more than two steps at a time. */
DEVICE void slice_sum(matmul_shape shape, const NUMBER *a, const NUMBER *b, NUMBER *sums)
{
    const int32_t a_stride = matmul_stride(shape.rows), b_stride = matmul_stride(shape.columns);
    a += (int32_t)thread_index() / shape.across * 4;
    b += (int32_t)thread_index() % shape.across * 4;
    if (shape.columns > 64) {
        UNROLL_BY(2)
        for (int32_t step = 0; step < MATMUL_STEPS; step++)
            step_sum(shape, a + step * a_stride, b + step * b_stride, sums);
    } else {
        UNROLL_BY(8)
        for (int32_t step = 0; step < MATMUL_STEPS; step++)
            step_sum(shape, a + step * a_stride, b + step * b_stride, sums);
    }
}

/* Ends a chunk: adds sums to the totals, or writes results after the last chunk. */
DEVICE void chunk_end(matmul_shape shape, const matmul_args *args, int64_t begin, int32_t first_row, int32_t first_column,
                      bool first, bool last, NUMBER *sums)
{
    const int32_t down = matmul_down(shape), own_rows = shape.rows / down, own_columns = shape.columns / shape.across;
    int32_t thread = (int32_t)thread_index();
    SETTLE(thread); /* otherwise all addresses would be kept in registers from before the loop over k */
    UNROLL
    for (int32_t j = 0; j < own_columns; j += 4) {
        const int32_t column = first_column + matmul_mine(thread % shape.across, shape.across, j);
        const bool at_once = !shape.window && args->c_quads && column + 4 <= args->n;
        UNROLL
        for (int32_t i = 0; i < own_rows; i++) {
            int32_t row = first_row + matmul_mine(thread / shape.across, down, i);
            SETTLE(row);
            if (at_once && row < args->m)
                four_put(args, begin + row * args->c_row + column, first, last, sums + i * own_columns + j);
        }
        UNROLL
        for (int32_t c = 0; c < 4; c++) {
            int32_t one = column + c;
            SETTLE(one);
            const int64_t at = begin + matmul_column_at(shape, args, one);
            UNROLL
            for (int32_t i = 0; i < own_rows; i++) {
                int32_t row = first_row + matmul_mine(thread / shape.across, down, i);
                SETTLE(row);
                if (!at_once && one < args->n && row < args->m)
                    number_put(args, at + row * args->c_row, first, last, sums[i * own_columns + j + c]);
            }
        }
    }
    UNROLL
    for (int32_t i = 0; i < own_rows * own_columns; i++)
        sums[i] = (NUMBER)0;
}

/* Whether a and b have two alternating slices each. A second slice saves a barrier. But with half of the shared memory, three
 * blocks of a large convolution tile fit in a compute unit of GCN or CDNA and hide each other's barriers. RDNA has more shared
 * memory. */
DEVICE int32_t matmul_slots(matmul_shape shape)
{
#if defined(__GFX9__)
    return shape.window && shape.columns > 64 ? 1 : 2;
#else
    (void)shape;
    return 2;
#endif
}

/* One tile of one matrix. `slices` are matmul_slots() of a and then as many of b; the `taps` of a window are two alternating
 * lists. */
DEVICE void matmul_tile(matmul_shape shape, const matmul_args *args, int64_t batch, int32_t first_row, int32_t first_column,
                        NUMBER *slices, matmul_tap *taps)
{
    NUMBER *const b_slices = slices + matmul_slots(shape) * matmul_slice(shape.rows);
    const bool one_slot = matmul_slots(shape) == 1;
    int64_t a_begin, b_begin, c_begin;
    matmul_begin(args, batch, &a_begin, &b_begin, &c_begin);
    const char *a_data = (const char *)args->a + a_begin * element_bytes(args->type);
    const char *b_data = (const char *)args->b + b_begin * element_bytes(args->type);
    matmul_side a =
        matmul_side_of(shape.rows, args->type, a_data, args->a_row, args->a_column, args->a_layout, first_row, args->m);
    matmul_side b = a;
    matmul_look look = {0, 0, 0, 0, false};
    if (shape.window) {
        int32_t column = first_column;
        SETTLE(column); /* otherwise column origins would stay in registers between batch elements */
        look = matmul_look_at(shape, (const matmul_args *)arguments_again(args), column, args->n);
        if (shape.marked)
            b_data += look.at * element_bytes(args->type);
        window_list(shape, (const matmul_args *)arguments_again(args), 0, taps);
        barrier();
    } else {
        b = matmul_side_of(shape.columns, args->type, b_data, args->b_column, args->b_row, args->b_layout, first_column,
                           args->n);
    }
    NUMBER sums[MATMUL_SUMS_MAX], a_fetched[MATMUL_HELD_MAX], b_fetched[MATMUL_HELD_MAX];
    UNROLL
    for (int32_t i = 0; i < shape.rows * shape.columns / MATMUL_THREADS; i++)
        sums[i] = (NUMBER)0;
    const int32_t steps = args->k > 0 ? args->k : 1;
    int32_t slot = 0;
    UNROLL_BY(1)
    for (int32_t next = 0; next < steps + MATMUL_STEPS; next += MATMUL_STEPS) {
        if (next < steps) {
            side_bring(shape.rows, &a, args->k - next, a_fetched);
            if (shape.window)
                window_bring(shape, args, b_data, &look, taps + slot * MATMUL_STEPS, b_fetched);
            else
                side_bring(shape.columns, &b, args->k - next, b_fetched);
        }
        if (next > 0) {
            slice_sum(shape, slices + (one_slot ? 0 : slot ^ 1) * matmul_slice(shape.rows),
                      b_slices + (one_slot ? 0 : slot ^ 1) * matmul_slice(shape.columns), sums);
            if (next % MATMUL_CHUNK == 0 || next >= steps)
                chunk_end(shape, (const matmul_args *)arguments_again(args), c_begin, first_row, first_column,
                          next <= MATMUL_CHUNK, next >= steps, sums);
        }
        if (next < steps) {
            if (one_slot)
                barrier();
            slice_lay(shape.rows, a.layout, a_fetched, slices + (one_slot ? 0 : slot) * matmul_slice(shape.rows));
            slice_lay(shape.columns, shape.window ? MATMUL_STRIDED : b.layout, b_fetched,
                      b_slices + (one_slot ? 0 : slot) * matmul_slice(shape.columns));
            if (shape.window)
                window_list(shape, (const matmul_args *)arguments_again(args), next + MATMUL_STEPS,
                            taps + (slot ^ 1) * MATMUL_STEPS);
        }
        slot ^= 1;
        barrier();
    }
}

/* Blocks walk down eight rows of tiles before they go on to the right, so blocks that run together share what they read. */
DEVICE void matmul_block(matmul_shape shape, const matmul_args *args, NUMBER *slices, matmul_tap *taps)
{
    const int32_t down = args->blocks_down, across = (int32_t)block_count() / down;
    const int32_t band = (int32_t)block_index() / (8 * across), within = (int32_t)block_index() % (8 * across);
    const int32_t rows = down - band * 8 < 8 ? down - band * 8 : 8;
    const int32_t row = (band * 8 + within % rows) * shape.rows, column = within / rows * shape.columns;
    for (int64_t batch = block_index_y(); batch < args->batches; batch += block_count_y())
        matmul_tile(shape, shape.window ? (const matmul_args *)arguments_again(args) : args, batch, row, column, slices, taps);
}

#define MATMUL_KERNEL(name, rows, columns, across)                                                                             \
    KERNEL_RESIDENT(name, matmul_args, MATMUL_THREADS, 2)                                                                      \
    {                                                                                                                          \
        SHARED(NUMBER, slices, MATMUL_SHARED(rows, columns));                                                                  \
        const matmul_shape shape = {rows, columns, across, false, false};                                                      \
        matmul_block(shape, &args, slices, 0);                                                                                 \
    }

/* Numbers of all slices of a convolution: matmul_slots(). */
#if defined(__GFX9__)
#define CONV_NUMBERS(rows, columns) (MATMUL_SHARED(rows, columns) / ((columns) > 64 ? 2 : 1))
#else
#define CONV_NUMBERS(rows, columns) MATMUL_SHARED(rows, columns)
#endif

#define CONV_KERNEL(name, rows, columns, across, marked)                                                                       \
    KERNEL_RESIDENT(name, matmul_args, MATMUL_THREADS, 2)                                                                      \
    {                                                                                                                          \
        SHARED(NUMBER, slices, CONV_NUMBERS(rows, columns));                                                                   \
        SHARED(matmul_tap, taps, 2 * MATMUL_STEPS);                                                                            \
        const matmul_shape shape = {rows, columns, across, true, marked};                                                      \
        matmul_block(shape, &args, slices, taps);                                                                              \
    }

#endif
