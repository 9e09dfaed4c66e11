/* Products of unpacked blocks of 32 with many columns for chips that multiply from shared memory (matrix_wgmma.h): the tiles
 * and classes of quant_tile.c. Two teams of 128 threads own 64 rows x 128 columns each; a third brings stages by the copy
 * engine, from memory in which codes are laid out as in shared memory (quant.h).
 * A block of 32 gives each result an integer, which is converted to float, multiplied with both factors and added. That, not
 * the multiplication of bytes, takes the time. The product of two f16 factors is exact, so tensor cores compute it as well, and
 * a thread has two operations left per result and block. While threads do these for half a block, tensor cores work on the next
 * half.
 */
#define WGMMA_TEAMS QUANT_WGMMA_BLOCK32_TEAMS
#include "kernels/quant/quant_wgmma.h"

/* ---- stages: four blocks of all rows and columns, and their factors, minima and sums ------------------------------------- */

/* Words of a stage: two slabs of rows and two of columns; for each block the factors and minima of rows and the sums of
 * columns; and the column factors of the 16 blocks that include those of the stage. */
enum {
    TILE_SLAB = QUANT_TILE * QUANT_SLAB_ROW_BYTES / 4,
    TILE_FACTORS = 2 * QUANT_WGMMA_BLOCK32_CODES,
    TILE_MINS = TILE_FACTORS + QUANT_WGMMA_BLOCK32_SCALES,
    TILE_COLUMN_SUMS = TILE_MINS + QUANT_WGMMA_BLOCK32_SCALES,
    TILE_COLUMN_FACTORS = TILE_COLUMN_SUMS + QUANT_WGMMA_BLOCK32_SCALES
};

DEVICE const float *tile_scales(const uint32_t *stage, uint32_t which, uint32_t block)
{
    return (const float *)stage + which + block * QUANT_TILE;
}

DEVICE uint32_t tile_first_place(const quant_tile_args *args)
{
    return block_index_y() * args->classes * (args->blocks_padded / QUANT_CLASSES);
}

/* Four threads fill stages. Each brings one share: codes of rows, codes of columns, scales of rows, or scales of columns. */
typedef struct tile_share {
    const uint32_t *from, *extra; /* of the tile's first position; `extra`: minima or sums */
    uint32_t words, at_once;      /* words per position, and positions brought at once */
    uint32_t to, extra_to;        /* words of a stage */
} tile_share;

enum { TILE_SHARES = 4 };

DEVICE tile_share tile_share_of(const quant_tile_args *args, uint32_t number)
{
    const uint64_t rows = (uint64_t)(block_index() / args->across) * args->blocks_padded;
    const uint64_t columns = (uint64_t)(block_index() % args->across) * args->blocks_padded;
    tile_share share = {NULL, NULL, QUANT_WGMMA_BLOCK32_CODES / QUANT_WGMMA_BLOCK32_BLOCKS, QUANT_WGMMA_BLOCK32_BLOCKS, 0, 0};
    if (number == 0) {
        share.from = args->row_codes + rows * share.words;
    } else if (number == 1) {
        share.from = args->column_codes + columns * share.words;
        share.to = QUANT_WGMMA_BLOCK32_CODES;
    } else if (number == 2) {
        share.words = QUANT_TILE;
        share.from = (const uint32_t *)args->row_factors + rows * QUANT_TILE;
        share.to = TILE_FACTORS;
        share.extra = (const uint32_t *)args->row_mins + rows * QUANT_TILE;
        share.extra_to = TILE_MINS;
    } else {
        share.words = QUANT_WGMMA_BLOCK32_FACTORS / QUANT_WGMMA_BLOCK32_GROUP;
        share.at_once = QUANT_WGMMA_BLOCK32_GROUP;
        share.from = (const uint32_t *)args->column_factors + columns * share.words;
        share.to = TILE_COLUMN_FACTORS;
        share.extra = (const uint32_t *)args->column_sums + columns * QUANT_TILE;
        share.extra_to = TILE_COLUMN_SUMS;
    }
    return share;
}

/* Brings a stage from `position` on. */
DEVICE void tile_bring(bool has_extra, const tile_share *share, uint32_t position, const ring *to, ring_cursor at,
                       uint32_t *stage)
{
    const uint32_t words = share->words * share->at_once;
    ring_acquire(to, at);
    ring_expect(to, at, (words + (has_extra ? QUANT_WGMMA_BLOCK32_SCALES : 0)) * 4);
    ring_copy(to, at, stage + share->to, share->from + (uint64_t)(position / share->at_once) * words, words * 4);
    if (has_extra)
        ring_copy(to, at, stage + share->extra_to, share->extra + (uint64_t)position * QUANT_TILE,
                  QUANT_WGMMA_BLOCK32_SCALES * 4);
}

/* ---- blocks, by halves: 64 rows x 64 columns of a team ------------------------------------------------------------------- */

enum { TILE_HALF = TILE_SUMS / 2 };

/* Results of half a block: integers, and products of factors. */
typedef struct tile_half {
    int32_t j[TILE_HALF];
    float both[TILE_HALF];
} tile_half;

DEVICE void tile_multiply(const uint32_t *stage, uint32_t number, wgmma_factor factor, tile_half *to)
{
    const uint32_t block = number / 2, side = number % 2 * (QUANT_TILE / 2);
    const uint32_t *rows = stage + block / 2 * TILE_SLAB + tile_first_row() * (QUANT_SLAB_ROW_BYTES / 4);
    const uint32_t *columns = stage + QUANT_WGMMA_BLOCK32_CODES + block / 2 * TILE_SLAB + side * (QUANT_SLAB_ROW_BYTES / 4);
    wgmma_half_multiply(rows, columns, block % 2, factor, stage + TILE_COLUMN_FACTORS + side * (QUANT_WGMMA_BLOCK32_GROUP / 2),
                        to->j, to->both);
}

DEVICE void tile_add_mins(const uint32_t *stage, uint32_t number, float *acc)
{
    const float *mins = tile_scales(stage, TILE_MINS, number / 2), *sums = tile_scales(stage, TILE_COLUMN_SUMS, number / 2);
    const float m[2] = {AT(mins, tile_row(0)), AT(mins, tile_row(2))};
    UNROLL
    for (uint32_t n = 0; n < TILE_HALF; n += 4) {
        const f32x2 two = load_f32x2(AT_RANGE(sums, number % 2 * (QUANT_TILE / 2) + wgmma_row(n / 4, 0), 2));
        UNROLL
        for (uint32_t i = 0; i < 4; i++)
            acc[n + i] = fma_f32(m[i / 2], i % 2 ? two.y : two.x, acc[n + i]);
    }
}

DEVICE void tile_add(bool has_min, const uint32_t *stage, uint32_t number, const tile_half *from, float *acc)
{
    UNROLL
    for (uint32_t i = 0; i < TILE_HALF; i++)
        acc[i] = fma_f32(from->both[i], (float)from->j[i], acc[i]);
    if (has_min)
        tile_add_mins(stage, number, acc);
    UNROLL
    for (uint32_t i = 0; i < TILE_HALF; i++)
        SETTLE(acc[i]); /* computed before the next multiplication starts, which needs the same registers */
}

/* Multiplies a stage. `four` says which four of the 16 positions with adjacent factors it has. */
DEVICE void tile_stage(bool has_min, const uint32_t *stage, uint32_t four, tile_half *halves, float *acc)
{
    wgmma_factor factors[2];
    factors[0] = wgmma_factor_of(tile_scales(stage, TILE_FACTORS, 0) + tile_first_row(), four, 0);
    tile_multiply(stage, 0, factors[0], &halves[0]);
    UNROLL
    for (uint32_t number = 0; number < 2 * QUANT_WGMMA_BLOCK32_BLOCKS; number++) {
        const uint32_t next = number + 1, block = next / 2;
        const bool last = next == 2 * QUANT_WGMMA_BLOCK32_BLOCKS;
        if (!last && next % 2 == 0)
            factors[block % 2] = wgmma_factor_of(tile_scales(stage, TILE_FACTORS, block) + tile_first_row(), four, block);
        if (!last)
            tile_multiply(stage, next, factors[block % 2], &halves[next % 2]);
        wgmma_half_wait(last, halves[number % 2].j, halves[number % 2].both);
        tile_add(has_min, stage, number, &halves[number % 2], acc + number % 2 * TILE_HALF);
    }
}

/* ---- teams --------------------------------------------------------------------------------------------------------------- */

/* The last team fills all stages. */
DEVICE void tile_feed(bool has_min, const quant_tile_args *args, uint32_t steps, const ring *to, uint32_t *stages)
{
    const uint32_t number = (thread_index() - TILE_THREADS) / 32;
    const tile_share share = tile_share_of(args, number);
    uint32_t position = tile_first_place(args);
    ring_cursor at = {0, 0};
    UNROLL_BY(1)
    for (uint32_t step = 0; step < steps; step++) {
        if (thread_index() % 32 == 0)
            tile_bring(has_min && number >= 2, &share, position, to, at, stages + at.stage * QUANT_WGMMA_BLOCK32_STAGE_WORDS);
        position += QUANT_WGMMA_BLOCK32_BLOCKS;
        ring_pass(to);
        ring_next(to, &at);
    }
}

DEVICE void tile_clear_half(tile_half *half)
{
    UNROLL
    for (uint32_t i = 0; i < TILE_HALF; i++) {
        half->j[i] = 0;
        half->both[i] = 0.0f;
    }
}

/* The other teams multiply. */
DEVICE void tile_work(bool has_min, const quant_tile_args *args, uint32_t steps_of_class, const ring *from, uint32_t *stages)
{
    float *shared_sums = (float *)stages + args->stages * QUANT_WGMMA_BLOCK32_STAGE_WORDS;
    uint32_t four = tile_first_place(args) / QUANT_WGMMA_BLOCK32_BLOCKS;
    ring_cursor now = {0, 0};
    float acc[TILE_SUMS];
    tile_half halves[2];
    tile_clear(acc);
    tile_clear_half(&halves[0]);
    tile_clear_half(&halves[1]);
    UNROLL_BY(1)
    for (uint32_t done = 0; done < args->classes; done++) {
        UNROLL_BY(1)
        for (uint32_t step = 0; step < steps_of_class; step++) {
            const uint32_t *stage =
                AT_RANGE(stages, now.stage * QUANT_WGMMA_BLOCK32_STAGE_WORDS, QUANT_WGMMA_BLOCK32_STAGE_WORDS);
            ring_await(from, now);
            tile_stage(has_min, stage, four++ % (QUANT_WGMMA_BLOCK32_GROUP / QUANT_WGMMA_BLOCK32_BLOCKS), halves, acc);
            ring_release(from, now);
            ring_next(from, &now);
        }
        tile_park(args, done, args->sums_in_shared, shared_sums, acc);
    }
    tile_finish(args, acc);
}

DEVICE void tile_run_block32(bool has_min, const quant_tile_args *args, uint32_t *shared, uint64_t *arrivals)
{
    const uint32_t steps_of_class = args->blocks_padded / QUANT_CLASSES / QUANT_WGMMA_BLOCK32_BLOCKS;
    uint32_t *stages = wgmma_aligned(shared);
    const ring all = {arrivals, arrivals + QUANT_WGMMA_BLOCK32_STAGES, args->stages};
    ring_begin(&all, TILE_SHARES, TILE_THREADS / 32);
    if (thread_index() >= TILE_THREADS) {
        RING_REGISTERS_FEWER(40);
        tile_feed(has_min, args, steps_of_class * args->classes, &all, stages);
    } else {
        RING_REGISTERS_MORE(232); /* up from the 168 that each of 384 threads has */
        tile_work(has_min, args, steps_of_class, &all, stages);
    }
}

/* Separate kernels with and without minima: both in one are 100 KB of code, and such a kernel starts 10 us later on an H200,
 * which is 10% of a small model's prompt. */
#define BLOCK32_KERNEL(name, has_min)                                                                                          \
    KERNEL_RESIDENT(name, quant_tile_args, QUANT_WGMMA_BLOCK32_THREADS, 1)                                                     \
    {                                                                                                                          \
        SHARED_DYNAMIC(uint32_t, shared);                                                                                      \
        SHARED(uint64_t, arrivals, 2 * QUANT_WGMMA_BLOCK32_STAGES);                                                            \
        tile_run_block32(has_min, &args, shared, arrivals);                                                                    \
    }
BLOCK32_KERNEL(quant_wgmma_block32, false)
BLOCK32_KERNEL(quant_wgmma_block32_min, true)

/* For blocks of 32 and K blocks. */
TILE_FOLD_KERNEL(quant_wgmma_fold)
