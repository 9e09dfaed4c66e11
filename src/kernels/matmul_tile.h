/* Canonical matrix products by tiles: a block makes 128 x 128 or 64 x 64 of the results, a thread 8 x 8 or 4 x 4 of them.
 *
 * Bound by arithmetic. Sixteen steps of k at a time pass through shared memory, where both a and b lie with k across, so that a
 * thread reads four rows or columns at once; the next sixteen are on their way in registers meanwhile, widened to what is
 * computed in. At the end of each chunk the sums are added to the totals in memory, which keeps the registers for sums: it is
 * a few percent of a chunk's time.
 *
 * Included once by each file of kernels, which says before what it computes in: NUMBER is the type, FOUR four of them in `v`;
 * number_take(type, data, at), four_take(..) read elements, number_put(args, at, first, last, sum), four_put(..) add to totals
 * or write results; four_load, four_store are for shared memory; number_step(a, b, sum); element_bytes(type).
 */
#ifndef WW_KERNELS_MATMUL_TILE_H
#define WW_KERNELS_MATMUL_TILE_H

#include "kernels/matmul_common.h"

/* ---- from memory into registers ------------------------------------------------------------------------------------------ */

/* Four neighbours, the first `there` of them; +0 where there are none. */
DEVICE FOUR side_four(const matmul_side *side, int64_t at, int32_t there)
{
    FOUR four;
    if (there >= 4)
        return four_take(side->type, side->data, at);
    UNROLL
    for (int32_t i = 0; i < 4; i++)
        four.v[i] = i < there ? number_take(side->type, side->data, at + i) : (NUMBER)0;
    return four;
}

/* The elements of the next slice that this thread brings; `left` steps of k are left. */
DEVICE void side_bring(matmul_shape shape, matmul_side *side, int32_t left, NUMBER *held)
{
    const int32_t count = matmul_held(shape), mine = left - side->k;
    if (side->lies == MATMUL_LIES_APART) {
        int32_t none = 0;
        SETTLE(none); /* or all of the distances would be kept in registers from before the loop over k */
        UNROLL
        for (int32_t i = 0; i < count; i++)
            held[i] = i < mine && side->across > 0 ? number_take(side->type, side->data, side->at + (none + i) * side->k_stride)
                                                   : (NUMBER)0;
    } else {
        const bool along = side->lies == MATMUL_LIES_ALONG_K;
        UNROLL
        for (int32_t i = 0; i < count / 4; i++) {
            const int32_t there = along ? (side->across > 0 ? mine - i * 4 : 0) : (mine > 0 ? side->across - i * 64 : 0);
            const FOUR four = side_four(side, side->at + i * (along ? 4 : 64), there);
            UNROLL
            for (int32_t j = 0; j < 4; j++)
                held[i * 4 + j] = four.v[j];
        }
    }
    side->at += side->k_step;
}

/* The same through a window: steps of k follow each other by taps, then by channels. */
DEVICE void window_bring(matmul_shape shape, const matmul_args *args, const void *data, const matmul_look *look, int32_t k,
                         NUMBER *held)
{
    const matmul_seen *w = &args->window;
    const int32_t count = matmul_held(shape), first = k + look->k;
    const uint32_t taps_x = (uint32_t)w->taps_x, taps_y = (uint32_t)w->taps_y;
    uint32_t tap_x = (uint32_t)first % taps_x, tap_y = (uint32_t)first / taps_x % taps_y;
    uint32_t channel = (uint32_t)first / taps_x / taps_y;
    UNROLL
    for (int32_t i = 0; i < count; i++) {
        const int32_t y = look->y + (int32_t)tap_y * w->tap_y, x = look->x + (int32_t)tap_x * w->tap_x;
        const bool inside =
            look->there && first + i < args->k && (uint32_t)y < (uint32_t)w->in_y && (uint32_t)x < (uint32_t)w->in_x;
        const int64_t at = look->at + channel * w->channel_stride + (y - look->y) * w->y_stride + (x - look->x) * w->x_stride;
        held[i] = inside ? number_take(args->type, data, at) : (NUMBER)0;
        tap_x++;
        tap_y += tap_x == taps_x ? 1 : 0;
        tap_x = tap_x == taps_x ? 0 : tap_x;
        channel += tap_y == taps_y ? 1 : 0;
        tap_y = tap_y == taps_y ? 0 : tap_y;
    }
}

/* From registers into a slice. */
DEVICE void slice_lay(matmul_shape shape, int32_t lies, const NUMBER *held, NUMBER *slice)
{
    const int32_t thread = (int32_t)thread_index(), count = matmul_held(shape), stride = matmul_row_stride(shape);
    if (lies == MATMUL_LIES_ACROSS_K) {
        UNROLL
        for (int32_t i = 0; i < count / 4; i++) {
            FOUR four;
            UNROLL
            for (int32_t j = 0; j < 4; j++)
                four.v[j] = held[i * 4 + j];
            four_store(AT_RANGE(slice, thread / 16 * stride + i * 64 + thread % 16 * 4, 4), four);
        }
        return;
    }
    UNROLL
    for (int32_t i = 0; i < count; i++)
        AT(slice, (thread / shape.side * count + i) * stride + thread % shape.side) = held[i];
}

/* ---- sums ---------------------------------------------------------------------------------------------------------------- */

/* One step of the thread's results, held as rows of `side`/16 sums. */
DEVICE void step_sum(matmul_shape shape, const NUMBER *a, const NUMBER *b, NUMBER *sums)
{
    const int32_t per = shape.side / 16;
    FOUR x[2], y[2];
    UNROLL
    for (int32_t i = 0; i < per / 4; i++) {
        x[i] = four_load(AT_RANGE(a, i * 64, 4));
        y[i] = four_load(AT_RANGE(b, i * 64, 4));
    }
    UNROLL
    for (int32_t i = 0; i < per; i++) {
        UNROLL
        for (int32_t j = 0; j < per; j++)
            sums[i * per + j] = number_step(x[i / 4].v[i % 4], y[j / 4].v[j % 4], sums[i * per + j]);
    }
}

/* All steps of a slice. Large tiles have no registers for more than two steps at a time. */
DEVICE void slice_sum(matmul_shape shape, const NUMBER *a, const NUMBER *b, NUMBER *sums)
{
    const int32_t stride = matmul_row_stride(shape);
    a += (int32_t)thread_index() / 16 * 4;
    b += (int32_t)thread_index() % 16 * 4;
    if (shape.side == MATMUL_SIDE_MAX) {
        UNROLL_BY(2)
        for (int32_t step = 0; step < MATMUL_STEPS; step++)
            step_sum(shape, a + step * stride, b + step * stride, sums);
    } else {
        UNROLL_BY(8)
        for (int32_t step = 0; step < MATMUL_STEPS; step++)
            step_sum(shape, a + step * stride, b + step * stride, sums);
    }
}

/* The end of a chunk: sums are added to the totals, and after the last chunk written as results. */
DEVICE void chunk_end(matmul_shape shape, const matmul_args *args, int64_t begin, int32_t first_row, int32_t first_column,
                      bool first, bool last, NUMBER *sums)
{
    const int32_t per = shape.side / 16, rows = args->m, columns = args->n;
    int32_t thread = (int32_t)thread_index();
    SETTLE(thread); /* or all of the places would be known, and kept in registers, from before the loop over k */
    UNROLL
    for (int32_t j = 0; j < per; j += 4) {
        const int32_t column = first_column + matmul_mine(thread % 16, j);
        const bool at_once = !shape.window && args->c_fours && column + 4 <= columns;
        UNROLL
        for (int32_t i = 0; i < per; i++) {
            int32_t row = first_row + matmul_mine(thread / 16, i);
            SETTLE(row);
            if (at_once && row < rows)
                four_put(args, begin + row * args->c_row + column, first, last, sums + i * per + j);
        }
        UNROLL
        for (int32_t c = 0; c < 4; c++) {
            int32_t one = column + c;
            SETTLE(one);
            const int64_t at = begin + matmul_column_at(shape, args, one);
            UNROLL
            for (int32_t i = 0; i < per; i++) {
                int32_t row = first_row + matmul_mine(thread / 16, i);
                SETTLE(row);
                if (!at_once && one < columns && row < rows)
                    number_put(args, at + row * args->c_row, first, last, sums[i * per + j + c]);
            }
        }
    }
    UNROLL
    for (int32_t i = 0; i < per * per; i++)
        sums[i] = (NUMBER)0;
}

/* One tile of one matrix. `slices` are two of a and two of b, taking turns. */
DEVICE void matmul_tile(matmul_shape shape, const matmul_args *args, int64_t batch, int32_t first_row, int32_t first_column,
                        NUMBER *slices)
{
    const int32_t per = shape.side / 16, slice = matmul_slice(shape);
    int64_t a_begin, b_begin, c_begin;
    matmul_begin(args, batch, &a_begin, &b_begin, &c_begin);
    const char *a_data = (const char *)args->a + a_begin * element_bytes(args->type);
    const char *b_data = (const char *)args->b + b_begin * element_bytes(args->type);
    matmul_side a = matmul_side_of(shape, args->type, a_data, args->a_row, args->a_column, args->a_lies, first_row, args->m);
    matmul_side b = a;
    matmul_look look = {0, 0, 0, 0, false};
    if (shape.window)
        look = matmul_look_at(shape, &args->window, first_column, args->n);
    else
        b = matmul_side_of(shape, args->type, b_data, args->b_column, args->b_row, args->b_lies, first_column, args->n);
    NUMBER sums[MATMUL_HELD_MAX * MATMUL_HELD_MAX], a_held[MATMUL_HELD_MAX], b_held[MATMUL_HELD_MAX];
    UNROLL
    for (int32_t i = 0; i < per * per; i++)
        sums[i] = (NUMBER)0;
    const int32_t steps = args->k > 0 ? args->k : 1;
    int32_t turn = 0;
    UNROLL_BY(1)
    for (int32_t next = 0; next < steps + MATMUL_STEPS; next += MATMUL_STEPS) {
        if (next < steps) {
            side_bring(shape, &a, args->k - next, a_held);
            if (shape.window)
                window_bring(shape, args, b_data, &look, next, b_held);
            else
                side_bring(shape, &b, args->k - next, b_held);
        }
        if (next > 0) {
            slice_sum(shape, slices + (turn ^ 1) * slice, slices + (2 + (turn ^ 1)) * slice, sums);
            if (next % MATMUL_CHUNK == 0 || next >= steps)
                chunk_end(shape, args, c_begin, first_row, first_column, next <= MATMUL_CHUNK, next >= steps, sums);
        }
        if (next < steps) {
            slice_lay(shape, a.lies, a_held, slices + turn * slice);
            slice_lay(shape, shape.window ? MATMUL_LIES_APART : b.lies, b_held, slices + (2 + turn) * slice);
        }
        turn ^= 1;
        barrier();
    }
}

/* Blocks walk down eight rows of tiles before they go on to the right: neighbours in time share what they read. */
DEVICE void matmul_block(matmul_shape shape, const matmul_args *args, NUMBER *slices)
{
    const int32_t down = args->blocks_down, across = (int32_t)block_count() / down;
    const int32_t band = (int32_t)block_index() / (8 * across), within = (int32_t)block_index() % (8 * across);
    const int32_t rows = down - band * 8 < 8 ? down - band * 8 : 8;
    const int32_t row = (band * 8 + within % rows) * shape.side, column = within / rows * shape.side;
    for (int64_t batch = block_index_y(); batch < args->batches; batch += block_count_y())
        matmul_tile(shape, args, batch, row, column, slices);
}

#endif
