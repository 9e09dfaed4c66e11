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
#include "kernels/ring.h"

enum { TILE_THREADS = QUANT_WIDE_TEAMS * WIDE_TEAM, TILE_ROWS = QUANT_TALL_ROWS, TILE_SUMS = 4 * TALL_SUMS };

/* Number part * 32 + j * 4 + i * 2 + c: the second half of the parts are of other rows, and every second of other columns. */
DEVICE uint32_t tile_row(uint32_t i)
{
    return thread_index() / WIDE_TEAM * 128 + i / (2 * TALL_SUMS) * 64 + wide_query(i / 2 % 2);
}

DEVICE uint32_t tile_column(uint32_t i)
{
    return i / TALL_SUMS % 2 * 64 + wide_row(i % TALL_SUMS / 4, i % 2);
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

/* What the tile wants of a place goes into a stage. By one thread. */
DEVICE void tall_fetch(bool has_min, const quant_tile_args *args, uint32_t place, const ring *to, ring_cursor at,
                       uint32_t *stage)
{
    const uint32_t row = block_index() / args->across, column = block_index() % args->across;
    const uint64_t of_row = quant_beside(place, (uint64_t)row * QUANT_TALL_ROWS, args->row_places);
    const uint64_t of_column = quant_beside(place, (uint64_t)column * QUANT_TILE, (uint64_t)args->across * QUANT_TILE);
    ring_open(to, at);
    ring_expect(to, at, (QUANT_TALL_WORDS - (has_min ? 0 : QUANT_TALL_ROWS + QUANT_TILE)) * 4);
    ring_copy(to, at, stage, args->column_codes + ((uint64_t)column * args->blocks_kept + place) * QUANT_TALL_COLUMNS_WORDS,
              QUANT_TALL_COLUMNS_WORDS * 4);
    ring_copy(to, at, stage + TALL_CODES,
              args->row_codes + ((uint64_t)row * args->blocks_kept + place) * QUANT_TALL_CODES_WORDS,
              QUANT_TALL_CODES_WORDS * 4);
    ring_copy(to, at, stage + TALL_FACTORS, args->row_factors + of_row, QUANT_TALL_ROWS * 4);
    ring_copy(to, at, stage + TALL_COLUMN_FACTORS, args->column_factors + of_column, QUANT_TILE * 4);
    if (has_min) {
        ring_copy(to, at, stage + TALL_MINS, args->row_mins + of_row, QUANT_TALL_ROWS * 4);
        ring_copy(to, at, stage + TALL_COLUMN_SUMS, args->column_sums + of_column, QUANT_TILE * 4);
    }
}

/* ---- a block ------------------------------------------------------------------------------------------------------------- */

/* What belongs to 64 x 64 results, but for sums of codes. */
typedef struct tall_factors {
    float d[2], m[2];
    f32x2 da[TALL_SUMS / 4];
} tall_factors;

DEVICE tall_factors tall_factors_of(bool has_min, const float *stage, uint32_t part)
{
    tall_factors f;
    UNROLL
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t row = tile_row(part * TALL_SUMS + 2 * i);
        f.d[i] = AT(stage, TALL_FACTORS + row);
        f.m[i] = has_min ? AT(stage, TALL_MINS + row) : 0.0f;
    }
    UNROLL
    for (uint32_t n = 0; n < TALL_SUMS; n += 4)
        f.da[n / 4] = load_f32x2(AT_RANGE(stage, TALL_COLUMN_FACTORS + part % 2 * 64 + wide_row(n / 4, 0), 2));
    return f;
}

DEVICE void tall_add(bool has_min, const float *stage, const tall_factors *f, const float *j, float *acc)
{
    UNROLL
    for (uint32_t n = 0; n < TALL_SUMS; n += 4) {
        const f32x2 da = f->da[n / 4];
        f32x2 sum = {0.0f, 0.0f};
        if (has_min)
            sum = load_f32x2(AT_RANGE(stage, TALL_COLUMN_SUMS + wide_row(n / 4, 0), 2));
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            const float a = i % 2 ? da.y : da.x;
            acc[n + i] = fma_f32(f->d[i / 2] * a, j[n + i], acc[n + i]);
            if (has_min)
                acc[n + i] = fma_f32(f->m[i / 2] * a, i % 2 ? sum.y : sum.x, acc[n + i]);
            SETTLE(acc[n + i]); /* or the compiler would do it later, and keep `j` until then */
        }
    }
}

/* Four parts, of which the next is multiplied while one is added. */
DEVICE void tall_block(bool has_min, const uint32_t *stage, float *acc)
{
    const float *extras = (const float *)stage;
    const uint32_t *codes = stage + TALL_CODES + thread_index() / WIDE_TEAM * 128 * TALL_ROW_WORDS;
    tall_rows rows[2];
    float j[2][TALL_SUMS];
    rows[0] = tall_take(codes);
    tall_multiply(&rows[0], stage, j[0]);
    rows[1] = tall_take(codes + 64 * TALL_ROW_WORDS);
    UNROLL
    for (uint32_t part = 0; part < 4; part++) {
        if (part < 3)
            tall_multiply(&rows[(part + 1) / 2], stage + (part + 1) % 2 * 64 * TALL_COLUMN_WORDS, j[(part + 1) % 2]);
        tall_factors f;
        if (!has_min) /* before the wait, if there are registers enough */
            f = tall_factors_of(has_min, extras, part);
        if (part < 3)
            tall_wait_but_last(j[part % 2]);
        else
            tall_wait(j[part % 2]);
        if (has_min)
            f = tall_factors_of(has_min, extras, part);
        tall_add(has_min, extras + part % 2 * 64, &f, j[part % 2], acc + part * TALL_SUMS);
    }
}

/* The last team brings all stages. */
DEVICE void tall_feed(bool has_min, const quant_tile_args *args, uint32_t steps, const ring *to, uint32_t *stages)
{
    const uint32_t first = block_index_y() * args->classes * (args->blocks_kept / QUANT_CLASSES);
    ring_cursor at = {0, 0};
    UNROLL_BY(1)
    for (uint32_t step = 0; step < steps; step++) {
        if (thread_index() == TILE_THREADS)
            tall_fetch(has_min, args, first + step, to, at, stages + at.stage * QUANT_TALL_WORDS);
        ring_pass(to);
        ring_next(to, &at);
    }
}

/* The others work. */
DEVICE void tall_work(bool has_min, const quant_tile_args *args, uint32_t blocks_of_class, const ring *from, uint32_t *stages)
{
    float *room = (float *)stages + args->stages * QUANT_TALL_WORDS;
    ring_cursor now = {0, 0};
    float acc[TILE_SUMS];
    tile_clear(acc);
    UNROLL_BY(1)
    for (uint32_t done = 0; done < args->classes; done++) {
        UNROLL_BY(1)
        for (uint32_t block = 0; block < blocks_of_class; block++) {
            ring_take(from, now);
            tall_block(has_min, AT_RANGE(stages, now.stage * QUANT_TALL_WORDS, QUANT_TALL_WORDS), acc);
            ring_give(from, now);
            ring_next(from, &now);
        }
        tile_park(args, done, args->room, room, acc);
    }
    tile_finish(args, acc);
}

DEVICE void tall_run(bool has_min, const quant_tile_args *args, uint32_t *shared, uint64_t *arrivals)
{
    const uint32_t blocks_of_class = args->blocks_kept / QUANT_CLASSES;
    uint32_t *stages = wide_aligned(shared);
    const ring all = {arrivals, arrivals + QUANT_TALL_STAGES, args->stages};
    ring_begin(&all, 1, TILE_THREADS / 32);
    if (thread_index() >= TILE_THREADS) {
        RING_REGISTERS_FEWER(24);
        tall_feed(has_min, args, blocks_of_class * args->classes, &all, stages);
    } else {
        RING_REGISTERS_MORE(240); /* of 168 that each of 384 threads has */
        tall_work(has_min, args, blocks_of_class, &all, stages);
    }
}

#define TALL_KERNEL(name, has_min)                                                                                             \
    KERNEL_RESIDENT(name, quant_tile_args, QUANT_WIDE_THREADS, 1)                                                              \
    {                                                                                                                          \
        SHARED_DYNAMIC(uint32_t, shared);                                                                                      \
        SHARED(uint64_t, arrivals, 2 * QUANT_TALL_STAGES);                                                                     \
        tall_run(has_min, &args, shared, arrivals);                                                                            \
    }
TALL_KERNEL(quant_tall, false)
TALL_KERNEL(quant_tall_min, true)
TILE_FOLD_KERNEL(quant_tall_fold)
