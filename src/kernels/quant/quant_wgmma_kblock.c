/* Products of unpacked K blocks with many columns for chips that multiply from shared memory (matrix_wgmma.h): the tiles and
 * classes of quant_tile.c. Two teams of 128 threads own 64 rows x 128 columns each, with separate sums for upper and lower
 * bytes. A third team loads stages with the copy engine, from memory in which they are laid out as in shared memory (quant.h).
 */
#define WGMMA_TEAMS QUANT_WGMMA_KBLOCK_TEAMS
#include "kernels/quant/quant_wgmma.h"

/* ---- stages: a quarter of a block each; and records of a block ----------------------------------------------------------- */

enum { TILE_SLAB = QUANT_TILE * QUANT_SLAB_ROW_BYTES / 4 /* words */, TILE_RECORDS = QUANT_TILE * QUANT_RECORD };

DEVICE uint32_t tile_first_place(const quant_tile_args *args)
{
    return block_index_y() * args->classes * (args->blocks_padded / QUANT_CLASSES);
}

/* Index of the tile's rows and columns at `position`, in blocks. */
DEVICE uint64_t tile_of_rows(const quant_tile_args *args, uint32_t position)
{
    return (uint64_t)(block_index() / args->across) * args->blocks_padded + tile_first_place(args) + position;
}

DEVICE uint64_t tile_of_columns(const quant_tile_args *args, uint32_t position)
{
    return (uint64_t)(block_index() % args->across) * args->blocks_padded + tile_first_place(args) + position;
}

/* Four threads fill stages. Each brings one share: codes of rows, codes of columns, records of rows, or records of columns. */
typedef struct tile_share {
    const uint32_t *from;
    uint32_t words, to; /* words per stage, and their offset in it */
    uint32_t stage_words;
} tile_share;

enum { TILE_SHARES = 2 /* of codes, and of records */ };

DEVICE tile_share tile_share_of(const quant_tile_args *args, uint32_t number)
{
    tile_share share;
    if (number < TILE_SHARES) {
        share.from = number == 0 ? args->row_codes + tile_of_rows(args, 0) * 8 * TILE_SLAB
                                 : args->column_codes + tile_of_columns(args, 0) * 4 * TILE_SLAB;
        share.words = number == 0 ? 2 * TILE_SLAB : TILE_SLAB;
        share.to = number == 0 ? 0 : 2 * TILE_SLAB;
        share.stage_words = QUANT_TILE_KBLOCK_WORDS;
    } else {
        share.from = number == 2 ? args->row_records + tile_of_rows(args, 0) * TILE_RECORDS
                                 : args->column_records + tile_of_columns(args, 0) * TILE_RECORDS;
        share.words = TILE_RECORDS;
        share.to = number == 2 ? 0 : TILE_RECORDS;
        share.stage_words = QUANT_TILE_RECORD_WORDS;
    }
    return share;
}

/* Loads the next stage. */
DEVICE void tile_bring(tile_share *share, const ring *to, ring_cursor at, uint32_t *stages)
{
    ring_acquire(to, at);
    ring_expect(to, at, share->words * 4);
    ring_copy(to, at, stages + at.stage * share->stage_words + share->to, share->from, share->words * 4);
    share->from += share->words;
}

/* ---- blocks -------------------------------------------------------------------------------------------------------------- */

/* Adds the products of a block's codes to all results. */
DEVICE void tile_codes_kblock(const uint32_t *records, const int32_t *upper, const int32_t *lower, float *acc)
{
    UNROLL
    for (uint32_t i = 0; i < TILE_SUMS; i++) {
        const float d = AT((const float *)records, tile_row(i) * QUANT_RECORD + 8);
        const float da = AT((const float *)records, (QUANT_TILE + tile_column(i)) * QUANT_RECORD + 8);
        acc[i] = fma_f32(d * da, (float)(lower[i] + 128 * upper[i]), acc[i]);
        SETTLE(acc[i]);
    }
}

/* Adds the products of its minima. */
DEVICE void tile_mins_kblock(const uint32_t *records, float *acc)
{
    const uint32_t *of_rows = AT_RANGE(records, tile_first_row() * QUANT_RECORD, QUANT_RECORD);
    const uint32_t *of_columns = AT_RANGE(records, QUANT_TILE * QUANT_RECORD, QUANT_RECORD);
    UNROLL
    for (uint32_t n = 0; n < TILE_SUMS; n += 4) {
        const uint32_t *eight = of_columns + n * 2 * QUANT_RECORD;
        int32_t low[4] = {0, 0, 0, 0}, high[4] = {0, 0, 0, 0};
        wgmma_multiply_16(of_rows, eight, QUANT_RECORD, low);
        wgmma_multiply_16(of_rows, eight + 4, QUANT_RECORD, high);
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            const float dm = AT((const float *)records, tile_row(i) * QUANT_RECORD + 9);
            const float da = AT((const float *)eight, wgmma_row(0, i % 2) * QUANT_RECORD + 8);
            acc[n + i] = fma_f32(dm * da, (float)(low[i] + 128 * high[i]), acc[n + i]);
            SETTLE(acc[n + i]);
        }
    }
}

/* Starts to multiply a quarter of a block. */
DEVICE void tile_quarter(const uint32_t *stage, bool more, int32_t *upper, int32_t *lower)
{
    const uint32_t *rows = stage + tile_first_row() * (QUANT_SLAB_ROW_BYTES / 4), *columns = stage + 2 * TILE_SLAB;
    wgmma_multiply(rows, columns, more, upper);
    wgmma_multiply(rows + TILE_SLAB, columns, more, lower);
}

/* The two rings: codes in quarters of blocks, and records of blocks. */
typedef struct tile_rings {
    ring codes, scales;
    uint32_t *stages, *records;
} tile_rings;

/* The last team fills both rings. */
DEVICE void tile_feed(const quant_tile_args *args, uint32_t blocks, const tile_rings *to)
{
    const uint32_t number = (thread_index() - TILE_THREADS) / 32;
    const bool codes = thread_index() % 32 == 0 && number < TILE_SHARES, records = thread_index() % 32 == 0 && !codes;
    tile_share share = tile_share_of(args, number);
    ring_cursor at = {0, 0}, of_block = {0, 0};
    UNROLL_BY(1)
    for (uint32_t block = 0; block < blocks; block++) {
        if (records)
            tile_bring(&share, &to->scales, of_block, to->records);
        UNROLL_BY(1)
        for (uint32_t quarter = 0; quarter < 4; quarter++) {
            if (codes)
                tile_bring(&share, &to->codes, at, to->stages);
            ring_pass(&to->codes);
            ring_next(&to->codes, &at);
        }
        ring_pass(&to->scales);
        ring_next(&to->scales, &of_block);
    }
}

/* The other teams multiply. */
DEVICE void tile_work(bool has_min, const quant_tile_args *args, uint32_t blocks_of_class, const tile_rings *from)
{
    float *shared_sums = (float *)from->records + args->records * QUANT_TILE_RECORD_WORDS;
    ring_cursor now = {0, 0}, of_block = {0, 0};
    float acc[TILE_SUMS];
    int32_t upper[TILE_SUMS], lower[TILE_SUMS];
    tile_clear(acc);
    UNROLL_BY(1)
    for (uint32_t block = 1; block <= blocks_of_class * args->classes; block++) {
        UNROLL
        for (uint32_t quarter = 0; quarter < 4; quarter++) {
            ring_await(&from->codes, now);
            tile_quarter(AT_RANGE(from->stages, now.stage * QUANT_TILE_KBLOCK_WORDS, QUANT_TILE_KBLOCK_WORDS), quarter > 0,
                         upper, lower);
            if (quarter > 0)
                wgmma_wait_but_two();
            ring_release_late(&from->codes, now, quarter > 0);
            ring_next(&from->codes, &now);
        }
        wgmma_wait(upper);
        wgmma_wait(lower);
        ring_release_last(&from->codes, now);
        ring_await(&from->scales, of_block);
        const uint32_t *record = AT_RANGE(from->records, of_block.stage * QUANT_TILE_RECORD_WORDS, QUANT_TILE_RECORD_WORDS);
        tile_codes_kblock(record, upper, lower, acc);
        wave_barrier(); /* keeps the loads for minima after this point; earlier there are not enough registers */
        if (has_min)
            tile_mins_kblock(record, acc);
        ring_release(&from->scales, of_block);
        ring_next(&from->scales, &of_block);
        if (block % blocks_of_class == 0)
            tile_park(args, block / blocks_of_class - 1, args->sums_in_shared, shared_sums, acc);
    }
    tile_finish(args, acc);
}

DEVICE void tile_run_kblock(bool has_min, const quant_tile_args *args, uint32_t *shared, uint64_t *arrivals)
{
    const uint32_t blocks_of_class = args->blocks_padded / QUANT_CLASSES;
    uint32_t *stages = wgmma_aligned(shared);
    uint64_t *of_records = arrivals + 2 * QUANT_WGMMA_KBLOCK_STAGES;
    const tile_rings all = {{arrivals, arrivals + QUANT_WGMMA_KBLOCK_STAGES, args->stages},
                            {of_records, of_records + QUANT_WGMMA_KBLOCK_RECORDS, args->records},
                            stages,
                            stages + args->stages * QUANT_TILE_KBLOCK_WORDS};
    ring_begin(&all.codes, TILE_SHARES, TILE_THREADS / 32);
    ring_begin(&all.scales, TILE_SHARES, TILE_THREADS / 32);
    if (thread_index() >= TILE_THREADS) {
        RING_REGISTERS_FEWER(40);
        tile_feed(args, blocks_of_class * args->classes, &all);
    } else {
        RING_REGISTERS_MORE(232); /* up from the 168 that each of 384 threads has */
        tile_work(has_min, args, blocks_of_class, &all);
    }
}

/* Separate kernels with and without minima: both in one are 100 KB of code, and such a kernel starts 10 us later on an H200,
 * which is 10% of a small model's prompt. */
#define KBLOCK_KERNEL(name, has_min)                                                                                           \
    KERNEL_RESIDENT(name, quant_tile_args, QUANT_WGMMA_KBLOCK_THREADS, 1)                                                      \
    {                                                                                                                          \
        SHARED_DYNAMIC(uint32_t, shared);                                                                                      \
        SHARED(uint64_t, arrivals, 2 * (QUANT_WGMMA_KBLOCK_STAGES + QUANT_WGMMA_KBLOCK_RECORDS));                              \
        tile_run_kblock(has_min, &args, shared, arrivals);                                                                     \
    }
KBLOCK_KERNEL(quant_wgmma_kblock, false)
KBLOCK_KERNEL(quant_wgmma_kblock_min, true)
