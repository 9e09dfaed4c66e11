/* Products of unpacked small blocks with many columns for chips that multiply from shared memory (matrix_wide.h): the tiles,
 * classes and planes of quant_tile.c, but a team of 128 threads owns a quarter of the tile, 64 x 64.
 *
 * Integers become floats, are multiplied with both factors and added, three operations for each 32
 * multiplications of bytes, and they take the time: while one team waits for the tensor cores, three others are at that.
 */
#include "kernels/matrix_wide.h"

#include "kernels/quant.h"

enum { TILE_THREADS = QUANT_WIDE_THREADS, TILE_ROWS = QUANT_TILE, TILE_SUMS = WIDE_SUMS / 2, TILE_SIDE = 64 };

/* Of this team's results in the tile. */
DEVICE uint32_t tile_first_row(void)
{
    return thread_index() / WIDE_TEAM % 2 * TILE_SIDE;
}

DEVICE uint32_t tile_first_column(void)
{
    return thread_index() / WIDE_TEAM / 2 * TILE_SIDE;
}

/* Number j * 4 + i * 2 + c. */
DEVICE uint32_t tile_row(uint32_t i)
{
    return tile_first_row() + wide_query(i / 2 % 2);
}

DEVICE uint32_t tile_column(uint32_t i)
{
    return tile_first_column() + wide_row(i / 4, i % 2);
}

#include "kernels/quant_tile.h"

/* This team's lines of a slab. */
DEVICE const uint32_t *tile_rows(const uint32_t *slab)
{
    return slab + tile_first_row() * (QUANT_TILE_RUN / 4);
}

DEVICE const uint32_t *tile_columns(const uint32_t *slab)
{
    return slab + tile_first_column() * (QUANT_TILE_RUN / 4);
}

/* ---- stages: two are worked on, the others are on their way ----------------------------------------------------------------
 */

typedef struct tile_ring {
    tile_source from;
    uint32_t *stages;
    uint32_t stage_words, count; /* count: of stages, 2, 4 or 6 */
    uint32_t slabs;              /* of rows: 1 for small blocks, 2 for large ones */
    uint32_t filled, now, left;  /* the next to be set out, the next to be worked on, and how many are to be set out */
} tile_ring;

/* Sets out the next two stages, if there are any. */
DEVICE void tile_set_out(tile_ring *ring)
{
    UNROLL
    for (uint32_t i = 0; i < 2; i++) {
        if (ring->left > 0) {
            uint32_t *stage = AT_RANGE(ring->stages, ring->filled * ring->stage_words, ring->stage_words);
            tile_source *from = &ring->from;
            UNROLL
            for (uint32_t slab = 0; slab < ring->slabs; slab++)
                from->rows = tile_fetch(from->rows, from->rows_more, from->to, stage + slab * TILE_SLAB);
            from->columns = tile_fetch(from->columns, from->columns_more, from->to, stage + ring->slabs * TILE_SLAB);
            if (ring->slabs == 1)
                tile_fetch_extras(from, stage);
            ring->left--;
            ring->filled = ring->filled + 1 == ring->count ? 0 : ring->filled + 1;
        }
        copies_commit();
    }
}

/* All copies but those of the last `groups` are there for all, and what all worked on before is not wanted any more. */
DEVICE void tile_meet(int32_t groups)
{
    copies_wait(groups);
    wide_copied();
    barrier();
}

/* The next two stages, and two more are set out; with the first of those the record of a block, if `records` is not NULL. Where
 * there is no room for more than two, as in the emulator, all waits for them. */
DEVICE const uint32_t *tile_advance(tile_ring *ring, int32_t groups, const quant_tile_args *args, uint32_t place,
                                    uint32_t *records)
{
    if (ring->count == 2)
        barrier();
    else
        tile_meet(groups);
    if (records)
        tile_fetch_records(args, place, records);
    tile_set_out(ring);
    if (ring->count == 2)
        tile_meet(0);
    const uint32_t *first = AT_RANGE(ring->stages, ring->now * ring->stage_words, 2 * ring->stage_words);
    ring->now = ring->now + 2 == ring->count ? 0 : ring->now + 2;
    return first;
}

DEVICE tile_ring tile_ring_of(const quant_tile_args *args, uint32_t *stages, uint32_t slabs, uint32_t steps)
{
    const uint32_t words = slabs == 1 ? QUANT_TILE_STAGE_WORDS + QUANT_TILE_SMALL_WORDS : QUANT_TILE_LARGE_WORDS;
    const uint32_t block_words = (slabs == 1 ? BLOCK_SMALL : BLOCK_LARGE) / 4;
    tile_ring ring = {tile_source_of(args, slabs * block_words, block_words), stages, words, args->stages, slabs, 0, 0, steps};
    UNROLL_BY(1)
    for (uint32_t i = 2; i < args->stages; i += 2)
        tile_set_out(&ring);
    return ring;
}

/* Behind the stages, if args->room says that there is any. */
DEVICE float *tile_room(const tile_ring *ring)
{
    return (float *)ring->stages + ring->count * ring->stage_words;
}

/* ---- small blocks -------------------------------------------------------------------------------------------------------- */

/* |j| < 2^20. There are two ways to make a float of it, for two parts of a chip that work side by side: one of four goes the
 * way that has one more step. */
DEVICE float tile_float(int32_t j, uint32_t i)
{
    return i % 4 == 3 ? canon_bits_float((uint32_t)j + 0x4b400000u) - 12582912.0f : (float)j; /* the bits of 1.5 * 2^23 */
}

DEVICE void tile_add_small(bool has_min, const uint32_t *stage, uint32_t half, const int32_t *j, float *acc)
{
    const float *factors = tile_extras(stage, TILE_FACTORS, half), *mins = tile_extras(stage, TILE_MINS, half);
    const float *of_columns = tile_extras(stage, TILE_COLUMN_FACTORS, half), *sums = tile_extras(stage, TILE_COLUMN_SUMS, half);
    float d[2], m[2];
    UNROLL
    for (uint32_t i = 0; i < 2; i++) {
        d[i] = AT(factors, tile_row(2 * i));
        m[i] = has_min ? AT(mins, tile_row(2 * i)) : 0.0f;
    }
    UNROLL
    for (uint32_t n = 0; n < TILE_SUMS; n += 4) {
        const f32x2 da = load_f32x2(AT_RANGE(of_columns, tile_column(n), 2));
        f32x2 sum = {0.0f, 0.0f};
        if (has_min)
            sum = load_f32x2(AT_RANGE(sums, tile_column(n), 2));
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            const float a = i % 2 ? da.y : da.x;
            acc[n + i] = fma_f32(d[i / 2] * a, tile_float(j[n + i], i), acc[n + i]);
            if (has_min)
                acc[n + i] = fma_f32(m[i / 2] * a, i % 2 ? sum.y : sum.x, acc[n + i]);
        }
    }
}

DEVICE void tile_run_small(bool has_min, const quant_tile_args *args, uint32_t *shared)
{
    const uint32_t steps_of_class = args->blocks_kept / QUANT_CLASSES / 2, steps = steps_of_class * args->classes;
    tile_ring ring = tile_ring_of(args, wide_aligned(shared), 1, steps);
    float acc[TILE_SUMS];
    tile_clear(acc);
    uint32_t left = steps_of_class, done = 0;
    UNROLL_BY(1)
    for (uint32_t step = 0; step < steps; step += 2) {
        const uint32_t *first = tile_advance(&ring, 2, args, 0, NULL);
        UNROLL
        for (uint32_t block = 0; block < 4; block++) {
            const uint32_t *stage = first + block / 2 * ring.stage_words;
            int32_t j[TILE_SUMS];
            wide_half_multiply(tile_rows(stage), tile_columns(stage + TILE_SLAB), block % 2, false, j);
            wide_half_wait(j);
            tile_add_small(has_min, stage, block % 2, j, acc);
        }
        left -= 2;
        if (left == 0) {
            tile_park(args, done++, args->room, tile_room(&ring), acc);
            left = steps_of_class;
        }
    }
    tile_finish(args, acc);
}

TILE_KERNEL(quant_wide_small, tile_run_small(false, &args, shared))
TILE_KERNEL(quant_wide_small_min, tile_run_small(true, &args, shared))
TILE_FOLD_KERNEL(quant_wide_fold)
