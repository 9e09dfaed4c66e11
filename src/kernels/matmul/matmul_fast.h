/* Matrix products of f16, bf16 and f32 in fast mode, on the matrix units: shared by matmul_fast.c, matmul_fast_bf16.c and
 * matmul_fast_f32.c.
 *
 * A block of 256 threads computes 128 x 128 results; a wave computes 64 rows of one column per lane. Slabs of 64 bytes of k of
 * 128 rows and 128 columns pass through shared memory (matrix_f16.h), two at a time: a thread loads 32 bytes of each side of
 * the next slab into registers, then the wave multiplies the current slab, then the thread stores what it loaded beside it. So
 * a slab needs one barrier, and multiplying hides the memory's latency.
 *
 * A side, rows of a or columns of b, is loaded in its own layout; there is a loop for each combination, n and t as in BLAS for
 * row-major matrices.
 *   along k    (a is n, b is t)    16 bytes of two lines; four threads load a line's slab
 *   across k   (a is t, b is n)    four neighbouring lines at once, at the 4 (f32: 2) steps of k of half a piece, which are
 *                                  transposed in registers
 * Both need 16 bytes (across k: four elements) aligned, k in whole slabs and, across k, lines in fours; matmul_pack first
 * copies any other layout (src/gpu/tensor/matmul_fast.c). Lines beyond the last repeat the last one; their results are not
 * written.
 *
 * The matrix units are the limit: docs/evidence/amd-performance.md has the count.
 */
#ifndef WW_KERNELS_MATMUL_MATMUL_FAST_H
#define WW_KERNELS_MATMUL_MATMUL_FAST_H

#include "kernels/matmul/matmul_f32.h"

#include "kernels/simt/matrix_f16.h"

enum {
    FAST_SIDE = MATMUL_FAST_SIDE,
    FAST_SLAB = FAST_SIDE * FAST_WORDS, /* words of a side's slab */
    FAST_HELD = 8,                      /* words of it that a thread loads */
    FAST_GROUP = 8, /* rows of tiles processed together, column by column: nearly square areas use caches best */
};

/* Steps of k in a piece of 16 bytes. */
DEVICE int32_t fast_piece_steps(int32_t type)
{
    return type == TYPE_F32 ? 4 : 8;
}

/* Compile-time constants of a side. */
typedef struct fast_kind {
    int32_t type;
    bool across;
} fast_kind;

/* The part of a side that a thread loads. */
typedef struct fast_side {
    const char *data; /* address of the tile's first line in the next slab; equal in all threads */
    int64_t k_bytes;  /* from one step of k to the next */
    uint32_t at[2];   /* offsets of the thread's elements from there, in bytes */
} fast_side;

typedef struct fast_held {
    uint32_t words[FAST_HELD];
} fast_held;

/* The four lines and the half piece of a thread: eight neighbouring fours with one half of a piece, then the same with the
 * other, so 16 lanes write to all banks. */
DEVICE uint32_t fast_quad(void)
{
    return thread_index() / 2 % 32;
}

DEVICE uint32_t fast_quad_piece(void)
{
    return thread_index() / 64;
}

/* `begin` and strides are in elements; the tile's lines start at line `first` of `count`. */
DEVICE fast_side fast_side_of(fast_kind kind, const void *data, int64_t begin, int64_t line_stride, int64_t k_stride,
                              int32_t first, int32_t count)
{
    const int64_t bytes = element_bytes(kind.type);
    const uint32_t line_bytes = (uint32_t)(line_stride * bytes), last = (uint32_t)(count - 1 - first);
    const uint32_t steps = (uint32_t)fast_piece_steps(kind.type);
    fast_side side;
    side.data = (const char *)data + (begin + first * line_stride) * bytes;
    side.k_bytes = k_stride * bytes;
    if (kind.across) {
        const uint32_t line = fast_quad() * 4, k = fast_quad_piece() * steps + thread_index() % 2 * (steps / 2);
        side.at[0] = side.at[1] = (line <= last ? line : last / 4 * 4) * line_bytes + k * (uint32_t)side.k_bytes;
        return side;
    }
    UNROLL for (uint32_t i = 0; i < 2; i++)
    {
        const uint32_t line = fast_line(thread_index() / 4 + 64 * i);
        side.at[i] = (line <= last ? line : last) * line_bytes + thread_index() % 4 * 16;
    }
    return side;
}

/* Loads the thread's part of the next slab, and advances to the one after it. */
DEVICE fast_held fast_bring(fast_kind kind, fast_side *side)
{
    fast_held held;
    UNROLL for (uint32_t i = 0; i < 2; i++) SETTLE(side->at[i]); /* a 32-bit offset from a pointer that all lanes share */
    if (kind.across && kind.type != TYPE_F32) {
        UNROLL for (uint32_t i = 0; i < 4; i++)
        {
            const u32x2 two = load_u32x2_readonly((const uint32_t *)(side->data + i * side->k_bytes + side->at[0]));
            held.words[2 * i] = two.x;
            held.words[2 * i + 1] = two.y;
        }
    } else {
        UNROLL for (uint32_t i = 0; i < 2; i++)
        {
            const char *from = side->data + (kind.across ? i * side->k_bytes : 0) + side->at[i];
            const u32x4 four = load_u32x4((const uint32_t *)from);
            held.words[4 * i] = four.x;
            held.words[4 * i + 1] = four.y;
            held.words[4 * i + 2] = four.z;
            held.words[4 * i + 3] = four.w;
        }
    }
    side->data += 4 * fast_piece_steps(kind.type) * side->k_bytes;
    return held;
}

/* Line `line` of four that were loaded across k: its half piece, two words. */
DEVICE u32x2 fast_transposed(int32_t type, const uint32_t *words, uint32_t line)
{
    u32x2 two;
    if (type == TYPE_F32) {
        two.x = fast_round(words[line]);
        two.y = fast_round(words[4 + line]);
        return two;
    }
    const uint32_t *from = words + line / 2;
    two.x = fast_pair(from[0], from[2], line % 2);
    two.y = fast_pair(from[4], from[6], line % 2);
    return two;
}

DEVICE void fast_lay(fast_kind kind, const fast_held *held, uint32_t *slab)
{
    const uint32_t *w = held->words;
    if (kind.across) {
        UNROLL for (uint32_t line = 0; line < 4; line++)
        {
            const uint32_t place = fast_place(fast_quad() * 4 + line);
            uint32_t *to = AT_RANGE(slab, fast_piece(place, fast_quad_piece()) + thread_index() % 2 * 2, 2);
            *(u32x2 *)to = fast_transposed(kind.type, w, line);
        }
        return;
    }
    UNROLL for (uint32_t i = 0; i < 2; i++)
    {
        u32x4 piece = {w[4 * i], w[4 * i + 1], w[4 * i + 2], w[4 * i + 3]};
        if (kind.type == TYPE_F32) {
            piece.x = fast_round(piece.x);
            piece.y = fast_round(piece.y);
            piece.z = fast_round(piece.z);
            piece.w = fast_round(piece.w);
        }
        *(u32x4 *)AT_RANGE(slab, fast_piece(thread_index() / 4 + 64 * i, thread_index() % 4), 4) = piece;
    }
}

/* The position of the wave's tile in the block's. */
DEVICE uint32_t fast_wave_row(void)
{
    return wave_index() % 2 * FAST_ROWS;
}

DEVICE uint32_t fast_wave_column(void)
{
    return wave_index() / 2 * wave_size();
}

/* The sides of a product. */
typedef struct fast_sides {
    fast_side a, b;
} fast_sides;

DEVICE void fast_multiply_slab(int32_t type, const uint32_t *rows, const uint32_t *columns, const uint32_t *places, float *sums)
{
    UNROLL for (uint32_t part = 0; part < FAST_PARTS; part++)
        fast_multiply(type, rows + fast_wave_row() * FAST_WORDS, columns, places, part, sums);
}

/* Adds all `slabs` to `sums`. `rows` and `columns` are two alternating slabs each. */
DEVICE void fast_sum_slabs(fast_kind a, fast_kind b, fast_sides *sides, int32_t slabs, uint32_t *rows, uint32_t *columns,
                           float *sums)
{
    uint32_t places[FAST_PLACES], slot = 0;
    UNROLL for (uint32_t i = 0; i < FAST_PLACES; i++) places[i] = fast_wave_column() + fast_place_column(i);
    fast_held of_a = fast_bring(a, &sides->a), of_b = fast_bring(b, &sides->b);
    fast_lay(a, &of_a, rows);
    fast_lay(b, &of_b, columns);
    UNROLL_BY(1)
    for (int32_t slab = 1; slab < slabs; slab++) {
        barrier_shared();
        of_a = fast_bring(a, &sides->a);
        of_b = fast_bring(b, &sides->b);
        fast_multiply_slab(a.type, rows + slot, columns + slot, places, sums);
        SCHEDULE_APART(); /* nothing before here waits for the loads */
        slot ^= FAST_SLAB;
        fast_lay(a, &of_a, rows + slot);
        fast_lay(b, &of_b, columns + slot);
    }
    barrier_shared();
    fast_multiply_slab(a.type, rows + slot, columns + slot, places, sums);
}

/* One loop per combination of layouts, so no loop has a branch. */
DEVICE void fast_sum_layouts(fast_kind a, fast_kind b, fast_sides *sides, int32_t slabs, uint32_t *rows, uint32_t *columns,
                             float *sums)
{
    const fast_kind along = {a.type, false}, across = {a.type, true};
    if (!a.across && b.across)
        fast_sum_slabs(along, across, sides, slabs, rows, columns, sums);
    else if (!a.across)
        fast_sum_slabs(along, along, sides, slabs, rows, columns, sums);
    else if (b.across)
        fast_sum_slabs(across, across, sides, slabs, rows, columns, sums);
    else
        fast_sum_slabs(across, along, sides, slabs, rows, columns, sums);
}

DEVICE uint32_t fast_narrow(int32_t type, float x)
{
    return type == TYPE_F16 ? narrow_f16(x) : narrow_bf16(x);
}

/* FAST_ADJACENT adjacent results of a row. */
DEVICE void fast_put_adjacent(int32_t type, void *c, int64_t at, const float *x)
{
    typedef struct __attribute__((aligned(sizeof(float) * FAST_ADJACENT))) floats {
        float of[FAST_ADJACENT];
    } floats;
    typedef struct __attribute__((aligned(sizeof(uint16_t) * FAST_ADJACENT))) halves {
        uint16_t of[FAST_ADJACENT];
    } halves;
    floats wide;
    halves narrow;
    UNROLL for (uint32_t i = 0; i < FAST_ADJACENT; i++)
    {
        wide.of[i] = one_nan_f32(x[i]);
        narrow.of[i] = (uint16_t)fast_narrow(type, x[i]);
    }
    if (type == TYPE_F32)
        *(floats *)((float *)c + at) = wide;
    else
        *(halves *)((uint16_t *)c + at) = narrow;
}

DEVICE void fast_put_one(int32_t type, void *c, int64_t at, float x)
{
    if (type == TYPE_F32)
        ((float *)c)[at] = one_nan_f32(x);
    else
        ((uint16_t *)c)[at] = (uint16_t)fast_narrow(type, x);
}

/* Writes the lane's sums as results of `type`. */
DEVICE void fast_put(int32_t type, const matmul_args *args, int64_t begin, int32_t first_row, int32_t first_column,
                     const float *sums)
{
    UNROLL for (uint32_t r = 0; r < FAST_LANE_ROWS; r++)
    {
        const int32_t row = first_row + (int32_t)fast_line(fast_wave_row() + fast_row(r));
        if (row >= args->m)
            continue;
        UNROLL for (uint32_t c = 0; c < FAST_LANE_COLUMNS; c += FAST_ADJACENT)
        {
            const int32_t column = first_column + (int32_t)fast_line(fast_wave_column() + fast_column(c));
            const int64_t at = begin + row * args->c_row + column;
            float x[FAST_ADJACENT];
            UNROLL for (uint32_t i = 0; i < FAST_ADJACENT; i++) x[i] = sums[fast_sum(r, c + i)] + 0.0f;
            if (FAST_ADJACENT > 1 && args->c_quads && column + FAST_ADJACENT <= args->n) {
                fast_put_adjacent(type, args->c, at, x);
                continue;
            }
            UNROLL for (uint32_t i = 0; i < FAST_ADJACENT; i++) if (column + (int32_t)i < args->n)
                fast_put_one(type, args->c, at + i, x[i]);
        }
    }
}

/* The first row and column of tile `tile` of a matrix. */
DEVICE void fast_tile_at(const matmul_args *args, int32_t *row, int32_t *column)
{
    const int32_t down = args->blocks_down, across = (int32_t)block_count() / down;
    const int32_t tile = (int32_t)fast_tile(block_index(), block_count()), group = tile / (FAST_GROUP * across);
    const int32_t rest = tile - group * FAST_GROUP * across, left = down - group * FAST_GROUP;
    const int32_t rows = left < FAST_GROUP ? left : FAST_GROUP;
    *row = (group * FAST_GROUP + rest % rows) * FAST_SIDE;
    *column = rest / rows * FAST_SIDE;
}

DEVICE void fast_product(const int32_t type, const matmul_args *args, int64_t batch, uint32_t *rows, uint32_t *columns)
{
    const fast_kind a = {type, args->a_layout == MATMUL_ACROSS_K}, b = {type, args->b_layout == MATMUL_ACROSS_K};
    int64_t a_begin, b_begin, c_begin;
    int32_t row, column;
    fast_sides sides;
    float sums[FAST_SUMS];
    matmul_begin(args, batch, &a_begin, &b_begin, &c_begin);
    fast_tile_at(args, &row, &column);
    sides.a = fast_side_of(a, args->a, a_begin, a.across ? 1 : args->a_row, a.across ? args->a_column : 1, row, args->m);
    sides.b = fast_side_of(b, args->b, b_begin, b.across ? 1 : args->b_column, b.across ? args->b_row : 1, column, args->n);
    UNROLL for (int32_t i = 0; i < FAST_SUMS; i++) sums[i] = 0.0f;
    fast_sum_layouts(a, b, &sides, args->k / (4 * fast_piece_steps(type)), rows, columns, sums);
    if (type == TYPE_BF16 && args->type == TYPE_F32)
        fast_put(TYPE_F32, args, c_begin, row, column, sums);
    else
        fast_put(type, args, c_begin, row, column, sums);
}

/* `type` is the type of a, b and the results. With bf16 the results may also be f32 (args.type), for products of quantized
 * matrices. */
#define MATMUL_FAST(name, type)                                                                                                \
    KERNEL_RESIDENT(name, matmul_args, MATMUL_THREADS, 2)                                                                      \
    {                                                                                                                          \
        SHARED(uint32_t, rows, 2 * FAST_SLAB);                                                                                 \
        SHARED(uint32_t, columns, 2 * FAST_SLAB);                                                                              \
        for (int64_t batch = block_index_y(); batch < args.batches; batch += block_count_y()) {                                \
            fast_product(type, &args, batch, rows, columns);                                                                   \
            barrier_shared();                                                                                                  \
        }                                                                                                                      \
    }

#endif
