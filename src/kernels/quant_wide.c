/* Products of unpacked small blocks with many columns for chips that multiply from shared memory (matrix_wide.h): the tiles,
 * classes and planes of quant_tile.c. Two teams of 128 threads own 64 rows x 128 columns each; a third brings stages by the
 * copy engine, from where codes lie as they will in shared memory (quant.h).
 *
 * A block of 32 gives an integer to each result, which becomes a float and is multiplied with both factors and added: that
 * takes the time, not the multiplication of bytes. While one block's integers are at that, those of the next are made, and the
 * product of the factors, which is exact, is left to the tensor cores, too.
 */
#include "kernels/matrix_wide.h"

#include "kernels/blocks.h"
#include "kernels/quant.h"
#include "kernels/ring.h"

enum { TILE_THREADS = QUANT_WIDE_TEAMS * WIDE_TEAM, TILE_ROWS = QUANT_TILE, TILE_SUMS = WIDE_SUMS };

/* Of this team's results in the tile. */
DEVICE uint32_t tile_first_row(void)
{
    return thread_index() / WIDE_TEAM * WIDE_QUERIES;
}

/* Number j * 4 + i * 2 + c. */
DEVICE uint32_t tile_row(uint32_t i)
{
    return tile_first_row() + wide_query(i / 2 % 2);
}

DEVICE uint32_t tile_column(uint32_t i)
{
    return wide_row(i / 4, i % 2);
}

#include "kernels/quant_sums.h"

/* ---- stages: two blocks of all rows and columns, and what belongs to them -------------------------------------------------
 */

enum { TILE_SLAB = QUANT_TILE * QUANT_TILE_RUN / 4 /* words */ };

/* What belongs to block `half` of a stage: factors, minima, factors of columns, and their sums. */
enum { TILE_FACTORS, TILE_MINS, TILE_COLUMN_FACTORS, TILE_COLUMN_SUMS };

DEVICE uint32_t tile_extras_at(uint32_t which, uint32_t half)
{
    return QUANT_TILE_STAGE_WORDS + (which * 2 + half) * QUANT_TILE;
}

DEVICE const float *tile_extras(const uint32_t *stage, uint32_t which, uint32_t half)
{
    return (const float *)stage + tile_extras_at(which, half);
}

DEVICE uint32_t tile_first_place(const quant_tile_args *args)
{
    return block_index_y() * args->classes * (args->blocks_kept / QUANT_CLASSES);
}

/* Four threads bring stages, each its share: codes of rows, of columns, what belongs to rows, to columns. */
typedef struct tile_share {
    const uint32_t *from, *more; /* `more`: minima or sums */
    uint64_t step, apart;        /* words from stage to stage, and from block to block in one */
    uint32_t to, more_to;        /* words of a stage */
} tile_share;

enum { TILE_SHARES = 4 };

DEVICE tile_share tile_share_of(const quant_tile_args *args, uint32_t number)
{
    const bool rows = number % 2 == 0;
    const uint32_t tile = rows ? block_index() / args->across : block_index() % args->across, place = tile_first_place(args);
    const uint32_t lines = rows ? args->row_places : args->across * QUANT_TILE;
    const uint64_t beside = quant_beside(place, (uint64_t)tile * QUANT_TILE, lines);
    tile_share share = {NULL, NULL, 0, 0, 0, 0};
    if (number < 2) {
        share.from =
            (rows ? args->row_codes : args->column_codes) + ((uint64_t)tile * args->blocks_kept + place) / 2 * TILE_SLAB;
        share.step = TILE_SLAB;
        share.to = rows ? 0 : TILE_SLAB;
    } else {
        share.from = (const uint32_t *)(rows ? args->row_factors : args->column_factors) + beside;
        share.more = (const uint32_t *)(rows ? args->row_mins : args->column_sums) + beside;
        share.apart = lines;
        share.step = 2 * (uint64_t)lines;
        share.to = tile_extras_at(rows ? TILE_FACTORS : TILE_COLUMN_FACTORS, 0);
        share.more_to = tile_extras_at(rows ? TILE_MINS : TILE_COLUMN_SUMS, 0);
    }
    return share;
}

/* Into the next stage. */
DEVICE void tile_bring(bool has_min, const tile_share *share, const ring *to, ring_cursor at, uint32_t *stage)
{
    ring_open(to, at);
    if (share->apart == 0) {
        ring_expect(to, at, TILE_SLAB * 4);
        ring_copy(to, at, stage + share->to, share->from, TILE_SLAB * 4);
        return;
    }
    ring_expect(to, at, (has_min ? 4 : 2) * QUANT_TILE * 4);
    UNROLL
    for (uint32_t half = 0; half < 2; half++) {
        ring_copy(to, at, stage + share->to + half * QUANT_TILE, share->from + half * share->apart, QUANT_TILE * 4);
        if (has_min)
            ring_copy(to, at, stage + share->more_to + half * QUANT_TILE, share->more + half * share->apart, QUANT_TILE * 4);
    }
}

/* ---- blocks -------------------------------------------------------------------------------------------------------------- */

/* Begins the products of block `half`. */
DEVICE void tile_multiply(const uint32_t *stage, uint32_t half, int32_t *j)
{
    wide_multiply_32(stage + tile_first_row() * (QUANT_TILE_RUN / 4), stage + TILE_SLAB, half, j);
}

/* And adds what they came to. The sum of codes times the factor of their column is exact, as the product of factors is. */
DEVICE void tile_add(bool has_min, const uint32_t *stage, uint32_t half, const int32_t *j, float *acc)
{
    const float *of_columns = tile_extras(stage, TILE_COLUMN_FACTORS, half), *sums = tile_extras(stage, TILE_COLUMN_SUMS, half);
    const wide_factors of_rows = wide_factors_of(tile_extras(stage, TILE_FACTORS, half) + tile_first_row());
    float m[2] = {0.0f, 0.0f};
    UNROLL
    for (uint32_t i = 0; has_min && i < 2; i++)
        m[i] = AT(tile_extras(stage, TILE_MINS, half), tile_row(2 * i));
    UNROLL
    for (uint32_t n = 0; n < TILE_SUMS; n += 4) {
        float both[4];
        wide_products(of_rows, of_columns + n * 2, both);
        UNROLL
        for (uint32_t i = 0; i < 4; i++)
            acc[n + i] = fma_f32(both[i], (float)j[n + i], acc[n + i]);
        if (has_min) {
            const f32x2 sum = load_f32x2(AT_RANGE(sums, tile_column(n), 2)),
                        a = load_f32x2(AT_RANGE(of_columns, tile_column(n), 2));
            const float left = sum.x * a.x, right = sum.y * a.y;
            UNROLL
            for (uint32_t i = 0; i < 4; i++)
                acc[n + i] = fma_f32(m[i / 2], i % 2 ? right : left, acc[n + i]);
        }
    }
}

/* ---- teams --------------------------------------------------------------------------------------------------------------- */

/* The last brings all. */
DEVICE void tile_feed(bool has_min, const quant_tile_args *args, uint32_t steps, const ring *to, uint32_t *stages)
{
    const uint32_t number = (thread_index() - TILE_THREADS) / 32;
    const bool brings = (thread_index() - TILE_THREADS) % 32 == 0;
    tile_share share = tile_share_of(args, number);
    ring_cursor at = {0, 0};
    UNROLL_BY(1)
    for (uint32_t step = 0; step < steps; step++) {
        if (brings)
            tile_bring(has_min, &share, to, at, stages + at.stage * (QUANT_TILE_STAGE_WORDS + QUANT_TILE_SMALL_WORDS));
        share.from += share.step;
        share.more += share.step;
        ring_pass(to);
        ring_next(to, &at);
    }
}

/* The others work. */
DEVICE void tile_work(bool has_min, const quant_tile_args *args, uint32_t steps_of_class, const ring *from, uint32_t *stages)
{
    float *room = (float *)stages + args->stages * (QUANT_TILE_STAGE_WORDS + QUANT_TILE_SMALL_WORDS);
    ring_cursor now = {0, 0};
    float acc[TILE_SUMS];
    int32_t first[TILE_SUMS], second[TILE_SUMS];
    tile_clear(acc);
    UNROLL_BY(1)
    for (uint32_t done = 0; done < args->classes; done++) {
        UNROLL_BY(1)
        for (uint32_t step = 0; step < steps_of_class; step++) {
            const uint32_t *stage = AT_RANGE(stages, now.stage * (QUANT_TILE_STAGE_WORDS + QUANT_TILE_SMALL_WORDS),
                                             QUANT_TILE_STAGE_WORDS + QUANT_TILE_SMALL_WORDS);
            ring_take(from, now);
            tile_multiply(stage, 0, first);
            tile_multiply(stage, 1, second);
            wide_wait_but_one(first);
            tile_add(has_min, stage, 0, first, acc);
            wide_wait(second);
            tile_add(has_min, stage, 1, second, acc);
            ring_give(from, now);
            ring_next(from, &now);
        }
        tile_park(args, done, args->room, room, acc);
    }
    tile_finish(args, acc);
}

DEVICE void tile_run_small(bool has_min, const quant_tile_args *args, uint32_t *shared, uint64_t *arrivals)
{
    const uint32_t steps_of_class = args->blocks_kept / QUANT_CLASSES / 2;
    uint32_t *stages = wide_aligned(shared);
    const ring all = {arrivals, arrivals + QUANT_WIDE_STAGES, args->stages};
    ring_begin(&all, TILE_SHARES, TILE_THREADS / 32);
    if (thread_index() >= TILE_THREADS) {
        RING_REGISTERS_FEWER(40);
        tile_feed(has_min, args, steps_of_class * args->classes, &all, stages);
    } else {
        RING_REGISTERS_MORE(232); /* of 168 that each of 384 threads has */
        tile_work(has_min, args, steps_of_class, &all, stages);
    }
}

#define WIDE_KERNEL(name, has_min)                                                                                             \
    KERNEL_RESIDENT(name, quant_tile_args, QUANT_WIDE_THREADS, 1)                                                              \
    {                                                                                                                          \
        SHARED_DYNAMIC(uint32_t, shared);                                                                                      \
        SHARED(uint64_t, arrivals, 2 * QUANT_WIDE_STAGES);                                                                     \
        tile_run_small(has_min, &args, shared, arrivals);                                                                      \
    }
WIDE_KERNEL(quant_wide_small, false)
WIDE_KERNEL(quant_wide_small_min, true)
TILE_FOLD_KERNEL(quant_wide_fold)
