/* Products of unpacked weights with many columns (blocks_dot.h says what they are, quant.h how both lie): tiles of 128 x 128.
 *
 * Eight accumulators for each result would not fit into registers, so a block of threads takes one class of blocks after the
 * other, those that go to the same accumulator; what a class adds up to is parked in memory until the one it is added to is
 * there. Teams of 32 threads own 32 x 32 results. Rows and columns come in stages of 64 bytes each, ahead of the work.
 *
 * Small blocks: an exact integer for each 32 elements becomes a float, is multiplied with both factors and added: three
 * operations beside each 32 multiplications of bytes, and they, not the tensor cores, take the time. The integer is below 2^20;
 * started at the bits of 1.5 * 2^23 it is a float already, and one subtraction takes that off again.
 * Large blocks: integers of each 32 or 16 elements are multiplied with their scale and added up over 256. Minima times sums of
 * codes are 16 products of bytes, twice, the sums being two bytes each.
 */
#include "kernels/quant_tile.h"
#include "kernels/quant.h"

typedef struct tile_place {
    uint32_t row, column; /* of the team's results in the tile */
    uint32_t thread;      /* of the team */
} tile_place;

DEVICE tile_place tile_here(void)
{
    const uint32_t team = thread_index() / QUANT_TEAM;
    tile_place here;
    here.row = team / 4 * 32;
    here.column = team % 4 * 32;
    here.thread = thread_index() % QUANT_TEAM;
    return here;
}

/* The order in which classes are added up: as a tree over 0 4 2 6 1 5 3 7. */
DEVICE uint32_t tile_class(uint32_t i)
{
    return (i & 1) << 2 | (i & 2) | i >> 2;
}

/* ---- stages -------------------------------------------------------------------------------------------------------------- */

/* A step of a block's work: 64 bytes of each row and column. Where they begin in each, in words, and the place of the first
 * block there. */
typedef struct tile_step {
    uint64_t row, column;
    uint32_t word, place;
} tile_step;

DEVICE uint32_t tile_steps_of_class(const quant_tile_args *args, uint32_t elements)
{
    return args->blocks_kept / QUANT_CLASSES * elements / QUANT_TILE_RUN;
}

DEVICE tile_step tile_step_of(const quant_tile_args *args, uint32_t elements, uint32_t step)
{
    const uint32_t steps = tile_steps_of_class(args, elements);
    const uint32_t number = tile_class(block_index_y() * args->classes + step / steps);
    tile_step at;
    at.row = (uint64_t)(block_index() / args->across) * QUANT_TILE;
    at.column = (uint64_t)(block_index() % args->across) * QUANT_TILE;
    at.word = (number * steps + step % steps) * (QUANT_TILE_RUN / 4);
    at.place = at.word * 4 / elements;
    return at;
}

DEVICE void tile_fetch_codes(const quant_tile_args *args, tile_step at, uint32_t row_words, uint32_t *stage)
{
    const uint32_t line = thread_index() / 4, piece = thread_index() % 4, from = at.word + piece * 4;
    copy_16(AT_RANGE(stage, tile_piece(line, piece), 4), args->row_codes + (at.row + line) * row_words + from);
    copy_16(AT_RANGE(stage, QUANT_TILE * 16 + tile_piece(line, piece), 4),
            args->column_codes + (at.column + line) * row_words + from);
}

DEVICE void tile_clear(float *acc)
{
    UNROLL
    for (uint32_t i = 0; i < QUANT_TILE_SUMS; i++)
        acc[i] = 0.0f;
}

/* ---- the end of a class -------------------------------------------------------------------------------------------------- */

DEVICE uint64_t tile_slot(uint64_t tile, uint32_t i)
{
    return (tile * QUANT_TILE_SUMS + i) * QUANT_TILE_THREADS + thread_index();
}

/* Class number `done` of this block is complete: it is added to those before it that wait for it, then waits itself. */
DEVICE void tile_park(const quant_tile_args *args, uint32_t done, float *acc)
{
    const uint64_t block = (uint64_t)block_index_y() * block_count() + block_index();
    uint32_t level = 0;
    for (; done >> level & 1; level++)
        UNROLL
    for (uint32_t i = 0; i < QUANT_TILE_SUMS; i++)
        acc[i] = args->parked[tile_slot(block * 3 + level, i)] + acc[i];
    if (done + 1 == args->classes)
        return;
    UNROLL
    for (uint32_t i = 0; i < QUANT_TILE_SUMS; i++) {
        args->parked[tile_slot(block * 3 + level, i)] = acc[i];
        acc[i] = 0.0f;
    }
}

/* Result i of this thread goes to y. */
DEVICE void tile_put(float *y, uint64_t y_stride, uint32_t rows, uint32_t columns, uint32_t across, uint32_t i, float value)
{
    const tile_place here = tile_here();
    const uint32_t row = block_index() / across * QUANT_TILE + here.row + tile_row(here.thread, i);
    const uint32_t column = block_index() % across * QUANT_TILE + here.column + tile_column(here.thread, i);
    if (row < rows && column < columns)
        y[column * y_stride + row] = value;
}

DEVICE void tile_finish(const quant_tile_args *args, const float *acc)
{
    const uint64_t block = (uint64_t)block_index_y() * block_count() + block_index();
    UNROLL
    for (uint32_t i = 0; i < QUANT_TILE_SUMS; i++)
        if (args->partial)
            args->partial[tile_slot(block, i)] = acc[i];
        else
            tile_put(args->y, args->y_stride, args->rows, args->columns, args->across, i, acc[i]);
}

/* ---- small blocks -------------------------------------------------------------------------------------------------------- */

#define TILE_ONE_AND_A_HALF 0x4b400000 /* the bits of 1.5 * 2^23 */

/* Block `half` of a stage. */
DEVICE void tile_block_small(bool has_min, const uint32_t *stage, const uint32_t *extras, uint32_t half, tile_place here,
                             float *acc)
{
    const float *factors = (const float *)extras;
    const tile_words rows = tile_take_rows(stage, here.row, half, here.thread);
    float d[4], dm[4];
    UNROLL
    for (uint32_t r = 0; r < 4; r++) {
        const uint32_t line = here.row + r * 8 + here.thread / 4;
        d[r] = AT(factors, line * 2 + half);
        dm[r] = has_min ? AT(factors, (QUANT_TILE + line) * 2 + half) : 0.0f;
    }
    UNROLL
    for (uint32_t pair = 0; pair < 2; pair++) {
        int32_t sums[16];
        float da[4], of_codes[4];
        UNROLL
        for (uint32_t i = 0; i < 16; i++)
            sums[i] = TILE_ONE_AND_A_HALF;
        tile_multiply_32(rows, tile_take_columns(stage + QUANT_TILE * 16, here.column + pair * 16, half, here.thread), sums);
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t line = here.column + tile_column(here.thread, pair * 4 + i);
            da[i] = AT(factors, (2 * QUANT_TILE + line) * 2 + half);
            const uint32_t both = has_min ? AT(extras, (3 * QUANT_TILE + line) * 2 + half) : 0;
            of_codes[i] = (float)((int16_t)both + (int16_t)(both >> 16));
        }
        UNROLL
        for (uint32_t i = 0; i < 16; i++) {
            float *to = acc + i / 4 * 8 + pair * 4 + i % 4;
            *to = fma_f32(d[i / 4] * da[i % 4], canon_bits_float((uint32_t)sums[i]) - 12582912.0f, *to);
            if (has_min)
                *to = fma_f32(dm[i / 4] * da[i % 4], of_codes[i % 4], *to);
        }
    }
}

/* Two of each for a stage: factors and minima of rows, factors and sums of columns. */
DEVICE void tile_fetch_small(const quant_tile_args *args, tile_step at, uint32_t *extras)
{
    const uint32_t line = thread_index() % QUANT_TILE, which = thread_index() / QUANT_TILE;
    const uint64_t row = (at.row + line) * args->blocks_kept + at.place;
    const uint64_t column = (at.column + line) * args->blocks_kept + at.place;
    const void *from = which == 0   ? (const void *)(args->row_factors + row)
                       : which == 1 ? (const void *)(args->row_mins + row)
                       : which == 2 ? (const void *)(args->column_factors + column)
                                    : (const void *)(args->column_sums + column);
    copy_8((uint64_t *)(void *)AT_RANGE(extras, (which * QUANT_TILE + line) * 2, 2), (const uint64_t *)from);
}

DEVICE void tile_run_small(bool has_min, const quant_tile_args *args, uint32_t *shared)
{
    const uint32_t steps_of_class = tile_steps_of_class(args, BLOCK_SMALL), steps = steps_of_class * args->classes;
    const uint32_t stage_words = QUANT_TILE_STAGE_WORDS + QUANT_TILE_SMALL_WORDS;
    const tile_place here = tile_here();
    float acc[QUANT_TILE_SUMS];
    tile_clear(acc);
    uint32_t filled = 0, now = 0;
    for (uint32_t step = 0; step < steps + args->stages - 1; step++) {
        const bool works = step + 1 >= args->stages;
        if (works)
            copies_wait((int32_t)args->stages - 2);
        barrier();
        if (step < steps) {
            uint32_t *stage = AT_RANGE(shared, filled * stage_words, stage_words);
            const tile_step at = tile_step_of(args, BLOCK_SMALL, step);
            tile_fetch_codes(args, at, args->blocks_kept * 8, stage);
            tile_fetch_small(args, at, stage + QUANT_TILE_STAGE_WORDS);
            filled = filled + 1 == args->stages ? 0 : filled + 1;
        }
        copies_commit();
        if (!works)
            continue;
        const uint32_t *stage = AT_RANGE(shared, now * stage_words, stage_words), done = step + 1 - args->stages;
        now = now + 1 == args->stages ? 0 : now + 1;
        UNROLL_BY(1)
        for (uint32_t half = 0; half < 2; half++)
            tile_block_small(has_min, stage, stage + QUANT_TILE_STAGE_WORDS, half, here, acc);
        if ((done + 1) % steps_of_class == 0)
            tile_park(args, done / steps_of_class, acc);
    }
    tile_finish(args, acc);
}

/* ---- large blocks -------------------------------------------------------------------------------------------------------- */

/* A quarter of a block: 64 elements of each row and column. */
DEVICE void tile_quarter(bool runs_of_16, const uint32_t *stage, const uint32_t *records, uint32_t quarter, tile_place here,
                         int32_t *j)
{
    uint32_t scales[4];
    UNROLL
    for (uint32_t r = 0; r < 4; r++)
        scales[r] = AT(records, (here.row + r * 8 + here.thread / 4) * QUANT_RECORD + quarter);
    UNROLL_BY(1)
    for (uint32_t half = 0; half < 2; half++) {
        const tile_words rows = tile_take_rows(stage, here.row, half, here.thread);
        UNROLL
        for (uint32_t pair = 0; pair < 2; pair++) {
            const tile_words_columns columns =
                tile_take_columns(stage + QUANT_TILE * 16, here.column + pair * 16, half, here.thread);
            UNROLL
            for (uint32_t run = 0; run < (runs_of_16 ? 2 : 1); run++) {
                int32_t sums[16];
                UNROLL
                for (uint32_t i = 0; i < 16; i++)
                    sums[i] = 0;
                if (runs_of_16)
                    tile_multiply_16(rows, columns, run, sums);
                else
                    tile_multiply_32(rows, columns, sums);
                UNROLL
                for (uint32_t i = 0; i < 16; i++)
                    j[i / 4 * 8 + pair * 4 + i % 4] += (int8_t)(scales[i / 4] >> (16 * half + 8 * run)) * sums[i];
            }
        }
    }
}

/* What a block adds to all results. */
DEVICE void tile_block_large(bool has_min, const uint32_t *records, tile_place here, int32_t *j, float *acc)
{
    const float *numbers = (const float *)records;
    float d[4], dm[4];
    UNROLL
    for (uint32_t r = 0; r < 4; r++) {
        const uint32_t line = here.row + r * 8 + here.thread / 4;
        d[r] = AT(numbers, line * QUANT_RECORD + 8);
        dm[r] = has_min ? AT(numbers, line * QUANT_RECORD + 9) : 0.0f;
    }
    UNROLL
    for (uint32_t pair = 0; pair < 2; pair++) {
        int32_t low[16], high[16];
        UNROLL
        for (uint32_t i = 0; i < 16; i++)
            low[i] = high[i] = 0;
        if (has_min)
            tile_multiply_records(records, here.row, QUANT_TILE + here.column + pair * 16, here.thread, low, high);
        UNROLL
        for (uint32_t i = 0; i < 16; i++) {
            const uint32_t at = i / 4 * 8 + pair * 4 + i % 4, line = here.column + tile_column(here.thread, at);
            const float da = AT(numbers, (QUANT_TILE + line) * QUANT_RECORD + 8);
            acc[at] = fma_f32(d[i / 4] * da, (float)j[at], acc[at]);
            if (has_min)
                acc[at] = fma_f32(dm[i / 4] * da, (float)(low[i] + 128 * high[i]), acc[at]);
            j[at] = 0;
        }
    }
}

DEVICE void tile_fetch_records(const quant_tile_args *args, tile_step at, uint32_t *records)
{
    for (uint32_t i = thread_index(); i < 2 * QUANT_TILE * 3; i += QUANT_TILE_THREADS) {
        const uint32_t line = i / 3, part = i % 3;
        const uint32_t *from = line < QUANT_TILE ? args->row_records : args->column_records;
        const uint64_t block = ((line < QUANT_TILE ? at.row : at.column) + line % QUANT_TILE) * args->blocks_kept + at.place;
        copy_16(AT_RANGE(records, line * QUANT_RECORD + part * 4, 4), from + block * QUANT_RECORD + (size_t)part * 4);
    }
}

/* The records of a block come with its first quarter; those of the block before are in use then, so there is room for two. */
DEVICE void tile_run_large(bool runs_of_16, bool has_min, const quant_tile_args *args, uint32_t *shared)
{
    const uint32_t steps_of_class = tile_steps_of_class(args, BLOCK_LARGE), steps = steps_of_class * args->classes;
    uint32_t *stages = shared + 2 * QUANT_TILE_RECORD_WORDS;
    const tile_place here = tile_here();
    float acc[QUANT_TILE_SUMS];
    int32_t j[QUANT_TILE_SUMS];
    tile_clear(acc);
    UNROLL
    for (uint32_t i = 0; i < QUANT_TILE_SUMS; i++)
        j[i] = 0;
    uint32_t filled = 0, now = 0;
    for (uint32_t step = 0; step < steps + args->stages - 1; step++) {
        const bool works = step + 1 >= args->stages;
        if (works)
            copies_wait((int32_t)args->stages - 2);
        barrier();
        if (step < steps) {
            const tile_step at = tile_step_of(args, BLOCK_LARGE, step);
            tile_fetch_codes(args, at, args->blocks_kept * 64,
                             AT_RANGE(stages, filled * QUANT_TILE_STAGE_WORDS, QUANT_TILE_STAGE_WORDS));
            if (step % 4 == 0)
                tile_fetch_records(args, at, AT_RANGE(shared, step / 4 % 2 * QUANT_TILE_RECORD_WORDS, QUANT_TILE_RECORD_WORDS));
            filled = filled + 1 == args->stages ? 0 : filled + 1;
        }
        copies_commit();
        if (!works)
            continue;
        const uint32_t done = step + 1 - args->stages;
        const uint32_t *stage = AT_RANGE(stages, now * QUANT_TILE_STAGE_WORDS, QUANT_TILE_STAGE_WORDS);
        const uint32_t *records = AT_RANGE(shared, done / 4 % 2 * QUANT_TILE_RECORD_WORDS, QUANT_TILE_RECORD_WORDS);
        now = now + 1 == args->stages ? 0 : now + 1;
        tile_quarter(runs_of_16, stage, records, done % 4, here, j);
        if (done % 4 == 3)
            tile_block_large(has_min, records, here, j, acc);
        if ((done + 1) % steps_of_class == 0)
            tile_park(args, done / steps_of_class, acc);
    }
    tile_finish(args, acc);
}

#define TILE_KERNEL(name, run)                                                                                                 \
    KERNEL(quant_tile_##name, quant_tile_args, QUANT_TILE_THREADS)                                                             \
    {                                                                                                                          \
        SHARED_DYNAMIC(uint32_t, shared);                                                                                      \
        run;                                                                                                                   \
    }
TILE_KERNEL(small, tile_run_small(false, &args, shared))
TILE_KERNEL(small_min, tile_run_small(true, &args, shared))
TILE_KERNEL(large_32, tile_run_large(false, true, &args, shared))
TILE_KERNEL(large_16, tile_run_large(true, false, &args, shared))
TILE_KERNEL(large_16_min, tile_run_large(true, true, &args, shared))

/* ---- blocks of threads that shared a tile -------------------------------------------------------------------------------- */

KERNEL(quant_fold, quant_fold_args, QUANT_TILE_THREADS)
{
    UNROLL_BY(4)
    for (uint32_t i = 0; i < QUANT_TILE_SUMS; i++) {
        float part[QUANT_CLASSES];
        UNROLL
        for (uint32_t p = 0; p < QUANT_CLASSES; p++)
            part[p] = p < args.parts ? args.partial[tile_slot((uint64_t)p * block_count() + block_index(), i)] : 0.0f;
        const float two = part[0] + part[1], four = two + (part[2] + part[3]);
        const float eight = four + ((part[4] + part[5]) + (part[6] + part[7]));
        tile_put(args.y, args.y_stride, args.rows, args.columns, args.across, i,
                 args.parts == 2   ? two
                 : args.parts == 4 ? four
                                   : eight);
    }
}
