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

/* ---- stages -------------------------------------------------------------------------------------------------------------- */

/* What this thread copies into each stage: 16 bytes of a row and of a column, and what belongs to small blocks. */
typedef struct tile_source {
    const uint32_t *rows, *columns;
    const uint32_t *extras;
    uint32_t to, extras_to; /* words of a stage */
    uint32_t extras_step;   /* words from stage to stage */
} tile_source;

/* The first place of this block's classes; the others follow. */
DEVICE uint32_t tile_first_place(const quant_tile_args *args)
{
    return block_index_y() * args->classes * (args->blocks_kept / QUANT_CLASSES);
}

DEVICE tile_source tile_source_of(const quant_tile_args *args, uint32_t elements)
{
    const uint64_t row = (uint64_t)(block_index() / args->across) * QUANT_TILE;
    const uint64_t column = (uint64_t)(block_index() % args->across) * QUANT_TILE;
    const uint32_t line = thread_index() / 4, piece = thread_index() % 4, place = tile_first_place(args);
    const uint32_t row_words = args->blocks_kept * (elements / 4), word = place * (elements / 4) + piece * 4;
    const uint32_t which = thread_index() / 64 % 4, four = thread_index() % 64 * 4;
    const uint64_t of_row = quant_beside(place, row, args->row_places) + four;
    const uint64_t of_column = quant_beside(place, column, (uint64_t)args->across * QUANT_TILE) + four;
    tile_source from;
    from.rows = args->row_codes + (row + line) * row_words + word;
    from.columns = args->column_codes + (column + line) * row_words + word;
    from.extras = which == 0   ? (const uint32_t *)args->row_factors + of_row
                  : which == 1 ? (const uint32_t *)args->row_mins + of_row
                  : which == 2 ? (const uint32_t *)args->column_factors + of_column
                               : args->column_sums + of_column;
    from.to = tile_piece(line, piece);
    from.extras_to = QUANT_TILE_STAGE_WORDS + which * 2 * QUANT_TILE + four;
    from.extras_step = 2 * (which < 2 ? args->row_places : args->across * QUANT_TILE);
    return from;
}

DEVICE void tile_fetch_codes(tile_source *from, uint32_t *stage)
{
    copy_16(AT_RANGE(stage, from->to, 4), from->rows);
    copy_16(AT_RANGE(stage, QUANT_TILE * 16 + from->to, 4), from->columns);
    from->rows += QUANT_TILE_RUN / 4;
    from->columns += QUANT_TILE_RUN / 4;
}

DEVICE uint32_t tile_steps_of_class(const quant_tile_args *args, uint32_t elements)
{
    return args->blocks_kept / QUANT_CLASSES * elements / QUANT_TILE_RUN;
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
    for (; done >> level & 1; level++) {
        UNROLL
        for (uint32_t i = 0; i < QUANT_TILE_SUMS; i++)
            acc[i] = args->parked[tile_slot(block * 3 + level, i)] + acc[i];
    }
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

/* Block `half` of a stage, `rows` of the team's and 16 columns of them. */
DEVICE void tile_block_small(bool has_min, tile_words rows, const uint32_t *stage, const uint32_t *extras, uint32_t half,
                             tile_place here, const float *d, uint32_t pair, float *acc)
{
    int32_t sums[16];
    UNROLL
    for (uint32_t i = 0; i < 16; i++)
        sums[i] = TILE_ONE_AND_A_HALF;
    tile_multiply_32(rows, tile_take_columns(stage + QUANT_TILE * 16, here.column + pair * 16, half, here.thread), sums);
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t line = here.column + tile_column(here.thread, pair * 4 + i);
        const float da = AT((const float *)extras, (2 * QUANT_TILE + line) * 2 + half);
        const uint32_t both = has_min ? AT(extras, (3 * QUANT_TILE + line) * 2 + half) : 0;
        UNROLL
        for (uint32_t r = 0; r < 4; r++) {
            float *to = acc + r * 8 + pair * 4 + i;
            *to = fma_f32(d[r] * da, canon_bits_float((uint32_t)sums[r * 4 + i]) - 12582912.0f, *to);
            if (has_min) {
                const uint32_t row = here.row + r * 8 + here.thread / 4;
                *to = fma_f32(AT((const float *)extras, (QUANT_TILE + row) * 2 + half) * da,
                              (float)((int16_t)both + (int16_t)(both >> 16)), *to);
            }
        }
    }
}

/* Not unrolled: that is what lets it do without spilling. */
DEVICE void tile_stage_small(bool has_min, const uint32_t *stage, tile_place here, float *acc)
{
    const uint32_t *extras = stage + QUANT_TILE_STAGE_WORDS;
    UNROLL_BY(1)
    for (uint32_t half = 0; half < 2; half++) {
        const tile_words rows = tile_take_rows(stage, here.row, half, here.thread);
        float d[4];
        UNROLL
        for (uint32_t r = 0; r < 4; r++)
            d[r] = AT((const float *)extras, (here.row + r * 8 + here.thread / 4) * 2 + half);
        UNROLL
        for (uint32_t pair = 0; pair < 2; pair++)
            tile_block_small(has_min, rows, stage, extras, half, here, d, pair, acc);
    }
}

DEVICE void tile_run_small(bool has_min, const quant_tile_args *args, uint32_t *shared)
{
    const uint32_t steps_of_class = tile_steps_of_class(args, BLOCK_SMALL), steps = steps_of_class * args->classes;
    const uint32_t stage_words = QUANT_TILE_STAGE_WORDS + QUANT_TILE_SMALL_WORDS;
    const tile_place here = tile_here();
    tile_source from = tile_source_of(args, BLOCK_SMALL);
    float acc[QUANT_TILE_SUMS];
    tile_clear(acc);
    uint32_t filled = 0, now = 0, left = steps_of_class, done = 0;
    UNROLL_BY(1)
    for (uint32_t step = 0; step < steps + args->stages - 1; step++) {
        if (step + 1 >= args->stages)
            copies_wait((int32_t)args->stages - 2);
        barrier();
        if (step < steps) {
            uint32_t *stage = AT_RANGE(shared, filled * stage_words, stage_words);
            tile_fetch_codes(&from, stage);
            if (thread_index() < 4 * QUANT_TILE / 2)
                copy_16(AT_RANGE(stage, from.extras_to, 4), from.extras);
            from.extras += from.extras_step;
        }
        copies_commit();
        filled = filled + 1 == args->stages ? 0 : filled + 1;
        if (step + 1 < args->stages)
            continue;
        tile_stage_small(has_min, AT_RANGE(shared, now * stage_words, stage_words), here, acc);
        now = now + 1 == args->stages ? 0 : now + 1;
        if (--left == 0) {
            tile_park(args, done++, acc);
            left = steps_of_class;
        }
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

DEVICE void tile_fetch_records(const quant_tile_args *args, uint32_t place, uint32_t *records)
{
    const uint64_t row = (uint64_t)(block_index() / args->across) * QUANT_TILE;
    const uint64_t column = (uint64_t)(block_index() % args->across) * QUANT_TILE;
    for (uint32_t i = thread_index(); i < 2 * QUANT_TILE * 3; i += QUANT_TILE_THREADS) {
        const uint32_t line = i / 3, part = i % 3;
        const uint32_t *from = line < QUANT_TILE ? args->row_records : args->column_records;
        const uint64_t block = ((line < QUANT_TILE ? row : column) + line % QUANT_TILE) * args->blocks_kept + place;
        copy_16(AT_RANGE(records, line * QUANT_RECORD + part * 4, 4), from + block * QUANT_RECORD + (size_t)part * 4);
    }
}

/* The records of a block come with its first quarter; those of the block before are in use then, so there is room for two. */
DEVICE void tile_run_large(bool runs_of_16, bool has_min, const quant_tile_args *args, uint32_t *shared)
{
    const uint32_t steps_of_class = tile_steps_of_class(args, BLOCK_LARGE), steps = steps_of_class * args->classes;
    uint32_t *stages = shared + 2 * QUANT_TILE_RECORD_WORDS;
    const tile_place here = tile_here();
    tile_source from = tile_source_of(args, BLOCK_LARGE);
    float acc[QUANT_TILE_SUMS];
    int32_t j[QUANT_TILE_SUMS];
    tile_clear(acc);
    UNROLL
    for (uint32_t i = 0; i < QUANT_TILE_SUMS; i++)
        j[i] = 0;
    uint32_t filled = 0, now = 0, left = steps_of_class, done = 0, worked = 0;
    UNROLL_BY(1)
    for (uint32_t step = 0; step < steps + args->stages - 1; step++) {
        if (step + 1 >= args->stages)
            copies_wait((int32_t)args->stages - 2);
        barrier();
        if (step < steps) {
            tile_fetch_codes(&from, AT_RANGE(stages, filled * QUANT_TILE_STAGE_WORDS, QUANT_TILE_STAGE_WORDS));
            if (step % 4 == 0)
                tile_fetch_records(args, tile_first_place(args) + step / 4,
                                   AT_RANGE(shared, step / 4 % 2 * QUANT_TILE_RECORD_WORDS, QUANT_TILE_RECORD_WORDS));
        }
        copies_commit();
        filled = filled + 1 == args->stages ? 0 : filled + 1;
        if (step + 1 < args->stages)
            continue;
        const uint32_t *records = AT_RANGE(shared, worked / 4 % 2 * QUANT_TILE_RECORD_WORDS, QUANT_TILE_RECORD_WORDS);
        tile_quarter(runs_of_16, AT_RANGE(stages, now * QUANT_TILE_STAGE_WORDS, QUANT_TILE_STAGE_WORDS), records, worked % 4,
                     here, j);
        if (worked % 4 == 3)
            tile_block_large(has_min, records, here, j, acc);
        worked++;
        now = now + 1 == args->stages ? 0 : now + 1;
        if (--left == 0) {
            tile_park(args, done++, acc);
            left = steps_of_class;
        }
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
