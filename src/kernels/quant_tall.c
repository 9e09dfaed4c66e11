/* Products of unpacked small blocks with many columns for chips that multiply from shared memory: tiles of 256 x 128, of which
 * each of four teams of 128 threads owns 64 rows.
 *
 * What takes the time of such products is not the tensor cores: each 32 multiplications end in an integer that becomes a float,
 * a product of two factors, and an fma. So the first of the three is left to the tensor cores. Codes of columns are f16 here,
 * those of rows become f16 on their way to registers, and what tensor cores add up in f32 are integers below 2^20 at any time,
 * whatever the order: exact. The classes of accumulators follow each other as in quant_tile.c. A stage is one block.
 */
#include "kernels/matrix_tall.h"

#include "kernels/quant.h"

enum { TILE_THREADS = QUANT_WIDE_THREADS, TILE_ROWS = QUANT_TALL_ROWS, TILE_SUMS = 2 * TALL_SUMS };

DEVICE uint32_t tile_row(uint32_t i)
{
    return thread_index() / WIDE_TEAM * 64 + wide_query(i / 2 % 2);
}

/* Number half * 32 + j * 4 + i * 2 + c. */
DEVICE uint32_t tile_column(uint32_t i)
{
    return i / TALL_SUMS * 64 + wide_row(i % TALL_SUMS / 4, i % 2);
}

#include "kernels/quant_sums.h"

/* ---- stages -------------------------------------------------------------------------------------------------------------- */

/* Words of a stage: codes of columns, which want to be aligned, codes of rows, and what belongs to them. */
enum {
    TALL_CODES = QUANT_TALL_COLUMNS_WORDS,
    TALL_FACTORS = TALL_CODES + QUANT_TALL_CODES_WORDS,
    TALL_MINS = TALL_FACTORS + QUANT_TALL_ROWS,
    TALL_COLUMN_FACTORS = TALL_MINS + QUANT_TALL_ROWS,
    TALL_COLUMN_SUMS = TALL_COLUMN_FACTORS + QUANT_TILE
};

/* What this thread copies into each stage: 16 bytes of a row, of a column, and of what belongs to them. */
typedef struct tall_source {
    const uint32_t *row, *column, *extra;
    uint32_t column_to, extra_to;
    uint32_t extra_step; /* words from stage to stage; 0: nothing */
} tall_source;

DEVICE tall_source tall_source_of(bool has_min, const quant_tile_args *args)
{
    const uint64_t row = (uint64_t)(block_index() / args->across) * QUANT_TALL_ROWS;
    const uint64_t column = (uint64_t)(block_index() % args->across) * QUANT_TILE;
    const uint32_t place = block_index_y() * args->classes * (args->blocks_kept / QUANT_CLASSES), t = thread_index();
    const uint32_t columns = args->across * QUANT_TILE;
    tall_source from;
    from.row = args->row_codes + ((row + t / 2) * args->blocks_kept + place) * TALL_ROW_WORDS + t % 2 * 4;
    from.column = args->column_codes + ((column + t / 4) * args->blocks_kept + place) * TALL_COLUMN_WORDS + t % 4 * 4;
    from.column_to = screen_piece(t / 4, t % 4);
    from.extra_to = TALL_FACTORS + t * 4; /* 64 threads for factors, 64 for minima, 32 for factors, 32 for sums */
    from.extra_step = t < 128 ? args->row_places : columns;
    if (t < 128)
        from.extra = (const uint32_t *)(t < 64 ? args->row_factors : args->row_mins) +
                     quant_beside(place, row, args->row_places) + t % 64 * 4;
    else
        from.extra = (const uint32_t *)(t < 160 ? args->column_factors : args->column_sums) +
                     quant_beside(place, column, columns) + t % 32 * 4;
    if (t >= 192 || (!has_min && (t / 64 == 1 || t / 32 == 5)))
        from.extra_step = 0;
    return from;
}

DEVICE void tall_fetch(tall_source *from, uint32_t *stage)
{
    copy_16(AT_RANGE(stage, TALL_CODES + thread_index() * 4, 4), from->row);
    copy_16(AT_RANGE(stage, from->column_to, 4), from->column);
    if (from->extra_step > 0)
        copy_16(AT_RANGE(stage, from->extra_to, 4), from->extra);
    from->row += TALL_ROW_WORDS;
    from->column += TALL_COLUMN_WORDS;
    from->extra += from->extra_step;
}

/* ---- a block ------------------------------------------------------------------------------------------------------------- */

DEVICE void tall_add(bool has_min, const float *stage, const float *d, const float *m, const float *j, float *acc)
{
    UNROLL
    for (uint32_t n = 0; n < TALL_SUMS; n += 4) {
        const uint32_t column = wide_row(n / 4, 0);
        const f32x2 da = load_f32x2(AT_RANGE(stage, TALL_COLUMN_FACTORS + column, 2));
        f32x2 sum = {0.0f, 0.0f};
        if (has_min)
            sum = load_f32x2(AT_RANGE(stage, TALL_COLUMN_SUMS + column, 2));
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            const float a = i % 2 ? da.y : da.x;
            acc[n + i] = fma_f32(d[i / 2] * a, j[n + i], acc[n + i]);
            if (has_min)
                acc[n + i] = fma_f32(m[i / 2] * a, i % 2 ? sum.y : sum.x, acc[n + i]);
        }
    }
}

DEVICE void tall_block(bool has_min, const uint32_t *stage, float *acc)
{
    const float *extras = (const float *)stage;
    const tall_rows rows = tall_take(stage + TALL_CODES + thread_index() / WIDE_TEAM * 64 * TALL_ROW_WORDS);
    float d[2], m[2];
    UNROLL
    for (uint32_t i = 0; i < 2; i++) {
        d[i] = AT(extras, TALL_FACTORS + tile_row(2 * i));
        m[i] = has_min ? AT(extras, TALL_MINS + tile_row(2 * i)) : 0.0f;
    }
    UNROLL
    for (uint32_t half = 0; half < 2; half++) {
        float j[TALL_SUMS];
        tall_multiply(&rows, stage + half * 64 * TALL_COLUMN_WORDS, j);
        tall_wait(j);
        tall_add(has_min, extras + half * 64, d, m, j, acc + half * TALL_SUMS);
    }
}

DEVICE void tall_run(bool has_min, const quant_tile_args *args, uint32_t *shared)
{
    const uint32_t blocks_of_class = args->blocks_kept / QUANT_CLASSES, steps = blocks_of_class * args->classes;
    uint32_t *stages = wide_aligned(shared);
    float *room = (float *)stages + args->stages * QUANT_TALL_WORDS;
    tall_source from = tall_source_of(has_min, args);
    float acc[TILE_SUMS];
    tile_clear(acc);
    uint32_t filled = 0, now = 0, left = blocks_of_class, done = 0;
    UNROLL_BY(1)
    for (uint32_t step = 0; step < steps + args->stages - 1; step++) {
        if (step + 1 >= args->stages)
            copies_wait((int32_t)args->stages - 2);
        wide_copied();
        barrier();
        if (step < steps)
            tall_fetch(&from, AT_RANGE(stages, filled * QUANT_TALL_WORDS, QUANT_TALL_WORDS));
        copies_commit();
        filled = filled + 1 == args->stages ? 0 : filled + 1;
        if (step + 1 < args->stages)
            continue;
        tall_block(has_min, AT_RANGE(stages, now * QUANT_TALL_WORDS, QUANT_TALL_WORDS), acc);
        now = now + 1 == args->stages ? 0 : now + 1;
        if (--left == 0) {
            tile_park(args, done++, args->room, room, acc);
            left = blocks_of_class;
        }
    }
    tile_finish(args, acc);
}

TILE_KERNEL(quant_tall, tall_run(false, &args, shared))
TILE_KERNEL(quant_tall_min, tall_run(true, &args, shared))
TILE_FOLD_KERNEL(quant_tall_fold)
