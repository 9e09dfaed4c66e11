/* Products of unpacked large blocks with many columns for chips that multiply from shared memory (matrix_wide.h): the tiles and
 * classes of quant_tile.c. Two teams of 128 threads own 64 rows x 128 columns each, and upper and lower bytes add up in
 * registers of their own; a third team brings stages by the copy engine, from where they lie as they will in shared memory
 * (quant.h).
 */
#include "kernels/matrix_wide.h"

#include "kernels/blocks.h"
#include "kernels/quant.h"
#include "kernels/ring.h"

enum { TILE_THREADS = QUANT_LARGE_TEAMS * WIDE_TEAM, TILE_ROWS = QUANT_TILE, TILE_SUMS = WIDE_SUMS };

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

/* ---- stages: a quarter of a block each; and records of a block ------------------------------------------------------------
 */

enum { TILE_SLAB = QUANT_TILE * QUANT_TILE_RUN / 4 /* words */, TILE_RECORDS = QUANT_TILE * QUANT_RECORD };

DEVICE uint32_t tile_first_place(const quant_tile_args *args)
{
    return block_index_y() * args->classes * (args->blocks_kept / QUANT_CLASSES);
}

/* Where the tile's rows and columns have place number `place`, in blocks. */
DEVICE uint64_t tile_of_rows(const quant_tile_args *args, uint32_t place)
{
    return (uint64_t)(block_index() / args->across) * args->blocks_kept + tile_first_place(args) + place;
}

DEVICE uint64_t tile_of_columns(const quant_tile_args *args, uint32_t place)
{
    return (uint64_t)(block_index() % args->across) * args->blocks_kept + tile_first_place(args) + place;
}

/* Quarter `step` of all, into a stage. By one thread. */
DEVICE void tile_fetch(const quant_tile_args *args, uint32_t step, const ring *to, ring_cursor at, uint32_t *stages)
{
    uint32_t *stage = stages + at.stage * QUANT_TILE_LARGE_WORDS;
    ring_open(to, at);
    ring_expect(to, at, QUANT_TILE_LARGE_BYTES);
    ring_copy(to, at, stage, args->row_codes + (tile_of_rows(args, step / 4) * 4 + step % 4) * 2 * TILE_SLAB,
              2 * TILE_SLAB * 4);
    ring_copy(to, at, stage + 2 * TILE_SLAB, args->column_codes + (tile_of_columns(args, step / 4) * 4 + step % 4) * TILE_SLAB,
              TILE_SLAB * 4);
}

/* And the records of a block: of rows, then of columns. */
DEVICE void tile_fetch_records(const quant_tile_args *args, uint32_t block, const ring *to, ring_cursor at, uint32_t *records)
{
    uint32_t *stage = records + at.stage * QUANT_TILE_RECORD_WORDS;
    ring_open(to, at);
    ring_expect(to, at, QUANT_TILE_RECORDS_BYTES);
    ring_copy(to, at, stage, args->row_records + tile_of_rows(args, block) * TILE_RECORDS, TILE_RECORDS * 4);
    ring_copy(to, at, stage + TILE_RECORDS, args->column_records + tile_of_columns(args, block) * TILE_RECORDS,
              TILE_RECORDS * 4);
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
        SETTLE(acc[i]);
    }
}

/* And its minima. */
DEVICE void tile_mins_large(const uint32_t *records, float *acc)
{
    const uint32_t *of_rows = AT_RANGE(records, tile_first_row() * QUANT_RECORD, QUANT_RECORD);
    const uint32_t *of_columns = AT_RANGE(records, QUANT_TILE * QUANT_RECORD, QUANT_RECORD);
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
            SETTLE(acc[n + i]);
        }
    }
}

/* A quarter of a block. */
DEVICE void tile_quarter(const uint32_t *stage, bool more, int32_t *upper, int32_t *lower)
{
    const uint32_t *rows = stage + tile_first_row() * (QUANT_TILE_RUN / 4), *columns = stage + 2 * TILE_SLAB;
    wide_multiply(rows, columns, more, upper);
    wide_multiply(rows + TILE_SLAB, columns, more, lower);
    wide_wait(upper);
    wide_wait(lower);
}

/* What waves share: codes by quarters of blocks, and records of blocks. */
typedef struct tile_rings {
    ring codes, beside;
    uint32_t *stages, *records;
} tile_rings;

/* The last team brings all. */
DEVICE void tile_feed(const quant_tile_args *args, uint32_t blocks, const tile_rings *to)
{
    ring_cursor at = {0, 0}, of_block = {0, 0};
    UNROLL_BY(1)
    for (uint32_t block = 0; block < blocks; block++) {
        if (thread_index() == TILE_THREADS)
            tile_fetch_records(args, block, &to->beside, of_block, to->records);
        UNROLL_BY(1)
        for (uint32_t step = 4 * block; step < 4 * block + 4; step++) {
            if (thread_index() == TILE_THREADS)
                tile_fetch(args, step, &to->codes, at, to->stages);
            ring_pass(&to->codes);
            ring_next(&to->codes, &at);
        }
        ring_pass(&to->beside);
        ring_next(&to->beside, &of_block);
    }
}

/* The others work. */
DEVICE void tile_work(bool has_min, const quant_tile_args *args, uint32_t blocks_of_class, const tile_rings *from)
{
    float *room = (float *)from->records + args->records * QUANT_TILE_RECORD_WORDS;
    ring_cursor now = {0, 0}, of_block = {0, 0};
    float acc[TILE_SUMS];
    int32_t upper[TILE_SUMS], lower[TILE_SUMS];
    tile_clear(acc);
    UNROLL_BY(1)
    for (uint32_t block = 1; block <= blocks_of_class * args->classes; block++) {
        UNROLL_BY(1)
        for (uint32_t quarter = 0; quarter < 4; quarter++) {
            ring_take(&from->codes, now);
            tile_quarter(AT_RANGE(from->stages, now.stage * QUANT_TILE_LARGE_WORDS, QUANT_TILE_LARGE_WORDS), quarter > 0, upper,
                         lower);
            ring_give(&from->codes, now);
            ring_next(&from->codes, &now);
        }
        ring_take(&from->beside, of_block);
        const uint32_t *record = AT_RANGE(from->records, of_block.stage * QUANT_TILE_RECORD_WORDS, QUANT_TILE_RECORD_WORDS);
        tile_codes_large(record, upper, lower, acc);
        wave_barrier(); /* what minima want is not read before, or there would not be registers enough */
        if (has_min)
            tile_mins_large(record, acc);
        ring_give(&from->beside, of_block);
        ring_next(&from->beside, &of_block);
        if (block % blocks_of_class == 0)
            tile_park(args, block / blocks_of_class - 1, args->room, room, acc);
    }
    tile_finish(args, acc);
}

DEVICE void tile_run_large(bool has_min, const quant_tile_args *args, uint32_t *shared, uint64_t *arrivals)
{
    const uint32_t blocks_of_class = args->blocks_kept / QUANT_CLASSES;
    uint32_t *stages = wide_aligned(shared);
    uint64_t *of_records = arrivals + 2 * QUANT_LARGE_STAGES;
    const tile_rings all = {{arrivals, arrivals + QUANT_LARGE_STAGES, args->stages},
                            {of_records, of_records + QUANT_LARGE_RECORDS, args->records},
                            stages,
                            stages + args->stages * QUANT_TILE_LARGE_WORDS};
    ring_begin(&all.codes, 1, TILE_THREADS / 32);
    ring_begin(&all.beside, 1, TILE_THREADS / 32);
    if (thread_index() >= TILE_THREADS) {
        RING_REGISTERS_FEWER(40);
        tile_feed(args, blocks_of_class * args->classes, &all);
    } else {
        RING_REGISTERS_MORE(232); /* of 168 that each of 384 threads has */
        tile_work(has_min, args, blocks_of_class, &all);
    }
}

#define LARGE_KERNEL(name, has_min)                                                                                            \
    KERNEL_RESIDENT(name, quant_tile_args, QUANT_LARGE_THREADS, 1)                                                             \
    {                                                                                                                          \
        SHARED_DYNAMIC(uint32_t, shared);                                                                                      \
        SHARED(uint64_t, arrivals, 2 * (QUANT_LARGE_STAGES + QUANT_LARGE_RECORDS));                                            \
        tile_run_large(has_min, &args, shared, arrivals);                                                                      \
    }
LARGE_KERNEL(quant_large, false)
LARGE_KERNEL(quant_large_min, true)
TILE_FOLD_KERNEL(quant_large_fold)
