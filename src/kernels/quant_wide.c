/* Products of unpacked large blocks with many columns for chips that multiply from shared memory (matrix_wide.h): the tiles,
 * classes and planes of quant_tile.c, but a team of 128 threads owns a quarter of the tile, 64 x 64, and upper and lower bytes
 * add up in registers of their own. Small blocks have tiles of another shape (quant_tall.c).
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
    uint32_t count;             /* of stages, 2, 4 or 6 */
    uint32_t filled, now, left; /* the next to be set out, the next to be worked on, and how many are to be set out */
} tile_ring;

/* Sets out the next two stages, if there are any. */
DEVICE void tile_set_out(tile_ring *ring)
{
    UNROLL
    for (uint32_t i = 0; i < 2; i++) {
        if (ring->left > 0) {
            uint32_t *stage = AT_RANGE(ring->stages, ring->filled * QUANT_TILE_LARGE_WORDS, QUANT_TILE_LARGE_WORDS);
            tile_source *from = &ring->from;
            from->rows = tile_fetch(from->rows, from->rows_more, from->to, stage);
            from->rows = tile_fetch(from->rows, from->rows_more, from->to, stage + TILE_SLAB);
            from->columns = tile_fetch(from->columns, from->columns_more, from->to, stage + 2 * TILE_SLAB);
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
    const uint32_t *first = AT_RANGE(ring->stages, ring->now * QUANT_TILE_LARGE_WORDS, 2 * QUANT_TILE_LARGE_WORDS);
    ring->now = ring->now + 2 == ring->count ? 0 : ring->now + 2;
    return first;
}

DEVICE tile_ring tile_ring_of(const quant_tile_args *args, uint32_t *stages, uint32_t steps)
{
    tile_ring ring = {tile_source_of(args, 2 * BLOCK_LARGE / 4, BLOCK_LARGE / 4), stages, args->stages, 0, 0, steps};
    UNROLL_BY(1)
    for (uint32_t i = 2; i < args->stages; i += 2)
        tile_set_out(&ring);
    return ring;
}

/* ---- blocks -------------------------------------------------------------------------------------------------------------- */

/* What the codes of a block add to all results. */
DEVICE void tile_codes_large(const uint32_t *records, const int32_t *upper, const int32_t *lower, float *acc)
{
    UNROLL
    for (uint32_t i = 0; i < TILE_SUMS; i++) {
        const float d = AT((const float *)records, tile_row(i) * QUANT_RECORD + 8);
        const float da = AT((const float *)records, (QUANT_TILE + tile_column(i)) * QUANT_RECORD + 8);
        acc[i] = fma_f32(d * da, (float)(lower[i] + 128 * upper[i]), acc[i]);
    }
}

/* And its minima. */
DEVICE void tile_mins_large(const uint32_t *records, float *acc)
{
    const uint32_t *of_rows = AT_RANGE(records, tile_first_row() * QUANT_RECORD, QUANT_RECORD);
    const uint32_t *of_columns = AT_RANGE(records, (QUANT_TILE + tile_first_column()) * QUANT_RECORD, QUANT_RECORD);
    UNROLL
    for (uint32_t n = 0; n < TILE_SUMS; n += 4) {
        const uint32_t *eight = of_columns + n * 2 * QUANT_RECORD;
        int32_t low[4] = {0, 0, 0, 0}, high[4] = {0, 0, 0, 0};
        wide_multiply_16(of_rows, eight, QUANT_RECORD, low);
        wide_multiply_16(of_rows, eight + 4, QUANT_RECORD, high);
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            const float dm = AT((const float *)records, tile_row(i) * QUANT_RECORD + 9);
            const float da = AT((const float *)eight, wide_row(0, i % 2) * QUANT_RECORD + 8);
            acc[n + i] = fma_f32(dm * da, (float)(low[i] + 128 * high[i]), acc[n + i]);
        }
    }
}

/* A quarter of a block. */
DEVICE void tile_quarter(const uint32_t *stage, bool more, int32_t *upper, int32_t *lower)
{
    const uint32_t *columns = tile_columns(stage + 2 * TILE_SLAB);
    UNROLL
    for (uint32_t half = 0; half < 2; half++) {
        wide_half_multiply(tile_rows(stage), columns, half, more || half, upper);
        wide_half_multiply(tile_rows(stage + TILE_SLAB), columns, half, more || half, lower);
    }
}

/* The records of a block lie in front of the stages; they set out with its first half, when those of the block before are not
 * in use any more, and are there with its second. */
DEVICE void tile_run_large(bool has_min, const quant_tile_args *args, uint32_t *shared)
{
    const uint32_t blocks_of_class = args->blocks_kept / QUANT_CLASSES, blocks = blocks_of_class * args->classes;
    uint32_t *records = wide_aligned(shared);
    tile_ring ring = tile_ring_of(args, records + QUANT_TILE_RECORD_WORDS, blocks * 4);
    float *room = (float *)ring.stages + args->stages * QUANT_TILE_LARGE_WORDS;
    float acc[TILE_SUMS];
    int32_t upper[TILE_SUMS], lower[TILE_SUMS];
    tile_clear(acc);
    uint32_t left = blocks_of_class, done = 0;
    UNROLL_BY(1)
    for (uint32_t block = 0; block < blocks; block++) {
        UNROLL
        for (uint32_t half = 0; half < 2; half++) {
            const uint32_t *first =
                tile_advance(&ring, half ? 1 : 2, args, tile_first_place(args) + block, half ? NULL : records);
            tile_quarter(first, half > 0, upper, lower);
            tile_quarter(first + QUANT_TILE_LARGE_WORDS, true, upper, lower);
            wide_half_wait(upper);
            wide_half_wait(lower);
        }
        tile_codes_large(records, upper, lower, acc);
        if (has_min)
            tile_mins_large(records, acc);
        if (--left == 0) {
            tile_park(args, done++, args->room, room, acc);
            left = blocks_of_class;
        }
    }
    tile_finish(args, acc);
}

TILE_KERNEL(quant_wide_large, tile_run_large(false, &args, shared))
TILE_KERNEL(quant_wide_large_min, tile_run_large(true, &args, shared))
TILE_FOLD_KERNEL(quant_wide_fold)
