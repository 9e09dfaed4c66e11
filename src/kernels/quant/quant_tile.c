/* Products of unpacked weights with many columns (blocks/dot.h says what they are, quant.h how both are laid out): tiles of 128
 * x 128.
 *
 * Eight accumulators for each result would not fit into registers, so a block of threads takes one class of blocks after the
 * other, those that go to the same accumulator; what a class adds up to is parked in memory until the one it is added to is
 * there. A wave owns 64 rows and as many columns as it has lanes, in strips of 16 rows (matrix_i8.h). Rows and columns come in
 * stages of 64 bytes each, ahead of the work.
 *
 * Small blocks: an exact integer for each 32 elements becomes a float, is multiplied with both factors and added: three
 * operations beside each 32 multiplications of bytes, and they, not the tensor cores, take the time. The integer is below 2^20;
 * started at the bits of 1.5 * 2^23 it is a float already, and one subtraction takes that off again.
 * K blocks: codes were multiplied by the scales of their sub-blocks and cut into two bytes when they were unpacked, so that
 * integers of all 256 elements add up before they become floats. Minima times sums of codes are 16 products of bytes, twice,
 * the sums being two bytes each.
 */
#include "kernels/simt/matrix_i8.h"

#include "kernels/quant/quant.h"

enum {
    TILE_THREADS = QUANT_TILE_THREADS,
    TILE_ROWS = QUANT_TILE,
    TILE_SUMS = MATRIX_SUMS,
    TILE_STRIPS = MATRIX_ROWS / MATRIX_STRIP
};

/* AMD's compiler takes all loads of an unrolled loop together, and has no registers left then. */
#if defined(__NVPTX__)
#define TILE_HALVES UNROLL
#else
#define TILE_HALVES UNROLL_BY(1)
#endif

/* Of this wave's results in the tile. */
DEVICE uint32_t tile_first_row(void)
{
    return wave_index() / (QUANT_TILE / MATRIX_COLUMNS) * MATRIX_ROWS;
}

DEVICE uint32_t tile_first_column(void)
{
    return wave_index() % (QUANT_TILE / MATRIX_COLUMNS) * MATRIX_COLUMNS;
}

DEVICE uint32_t tile_row(uint32_t i)
{
    return tile_first_row() + matrix_row(i / MATRIX_LANE_COLUMNS);
}

DEVICE uint32_t tile_column(uint32_t i)
{
    return tile_first_column() + matrix_column(i % MATRIX_LANE_COLUMNS);
}

#include "kernels/simt/simt.h"

#include "arithmetic/blocks/blocks.h"
#include "arithmetic/screen.h"
#include "kernels/quant/quant.h"
#include "kernels/quant/quant_tile_sums.h"

enum { TILE_SLAB = QUANT_TILE * QUANT_SLAB_ROW_BYTES / 4 /* words */ };

/* ---- stages -------------------------------------------------------------------------------------------------------------- */

/* What this thread copies into each stage: 16 bytes of two rows of each slab, and the scales of blocks of 32. */
typedef struct tile_source {
    const uint32_t *rows, *columns;
    uint64_t rows_second, columns_second; /* words to the second row */
    const uint32_t *extras;
    uint32_t to, extras_to; /* words of a stage */
    uint32_t extras_step;   /* words from stage to stage */
} tile_source;

/* The first position of this block's classes; the others follow. */
DEVICE uint32_t tile_first_place(const quant_tile_args *args)
{
    return block_index_y() * args->classes * (args->blocks_padded / QUANT_CLASSES);
}

/* `row_words` and `column_words` of a block. */
DEVICE tile_source tile_source_of(const quant_tile_args *args, uint32_t row_words, uint32_t column_words)
{
    const uint64_t row = (uint64_t)(block_index() / args->across) * QUANT_TILE;
    const uint64_t column = (uint64_t)(block_index() % args->across) * QUANT_TILE;
    const uint32_t line = thread_index() / 4, piece = thread_index() % 4, position = tile_first_place(args);
    const uint32_t which = thread_index() / 64 % 4, half = thread_index() / 32 % 2, four = thread_index() % 32 * 4;
    const uint64_t of_row = quant_scale_index(position + half, row, args->rows_padded) + four;
    const uint64_t of_column = quant_scale_index(position + half, column, (uint64_t)args->across * QUANT_TILE) + four;
    tile_source from;
    from.rows = args->row_codes + ((row + line) * args->blocks_padded + position) * row_words + piece * 4;
    from.columns = args->column_codes + ((column + line) * args->blocks_padded + position) * column_words + piece * 4;
    from.rows_second = (uint64_t)QUANT_TILE / 2 * args->blocks_padded * row_words;
    from.columns_second = (uint64_t)QUANT_TILE / 2 * args->blocks_padded * column_words;
    from.extras = which == 0   ? (const uint32_t *)args->row_factors + of_row
                  : which == 1 ? (const uint32_t *)args->row_mins + of_row
                  : which == 2 ? (const uint32_t *)args->column_factors + of_column
                               : (const uint32_t *)args->column_sums + of_column;
    from.to = screen_piece(line, piece);
    from.extras_to = (which * 2 + half) * QUANT_TILE + four;
    from.extras_step = 2 * (which < 2 ? args->rows_padded : args->across * QUANT_TILE);
    return from;
}

/* A slab of rows, the next 64 bytes of each. */
DEVICE const uint32_t *tile_fetch(const uint32_t *from, uint64_t second, uint32_t to, uint32_t *slab)
{
    copy_16(AT_RANGE(slab, to, 4), from);
    copy_16(AT_RANGE(slab, TILE_SLAB / 2 + to, 4), from + second);
    return from + QUANT_SLAB_ROW_BYTES / 4;
}

DEVICE void tile_fetch_records(const quant_tile_args *args, uint32_t position, uint32_t *records)
{
    const uint64_t row = (uint64_t)(block_index() / args->across) * QUANT_TILE;
    const uint64_t column = (uint64_t)(block_index() % args->across) * QUANT_TILE;
    UNROLL_BY(1)
    for (uint32_t i = thread_index(); i < 2 * QUANT_TILE * 3; i += TILE_THREADS) {
        const uint32_t line = i / 3, part = i % 3;
        const uint32_t *from = line < QUANT_TILE ? args->row_records : args->column_records;
        const uint64_t block = ((line < QUANT_TILE ? row : column) + line % QUANT_TILE) * args->blocks_padded + position;
        copy_16(AT_RANGE(records, line * QUANT_RECORD + part * 4, 4), from + block * QUANT_RECORD + (size_t)part * 4);
    }
}

/* What belongs to block `half` of a stage of blocks of 32: factors, minima, factors of columns, and their sums. */
enum { TILE_FACTORS, TILE_MINS, TILE_COLUMN_FACTORS, TILE_COLUMN_SUMS };

DEVICE const float *tile_extras(const uint32_t *stage, uint32_t which, uint32_t half)
{
    return AT_RANGE((const float *)stage, QUANT_TILE_STAGE_WORDS + (which * 2 + half) * QUANT_TILE, QUANT_TILE);
}

DEVICE void tile_fetch_extras(tile_source *from, uint32_t *stage)
{
    if (thread_index() < QUANT_TILE_BLOCK32_WORDS / 4)
        copy_16(AT_RANGE(stage, QUANT_TILE_STAGE_WORDS + from->extras_to, 4), from->extras);
    from->extras += from->extras_step;
}

/* ---- blocks of 32 -------------------------------------------------------------------------------------------------------- */

#define TILE_ONE_AND_A_HALF 0x4b400000 /* the bits of 1.5 * 2^23 */

#if defined(MATRIX_BY_FOUR)
/* The same as below where a matrix instruction gives four rows of a column in four registers in a row: factors come for four
 * rows at once, and two rows share each instruction (v_pk_*), which no register has to be moved for. The sums begin in
 * registers that stay as they are. */
DEVICE void tile_strips_by_four(const uint32_t *stage, const float *factors, uint32_t half, const matrix_columns *columns,
                                const float *da, float *acc)
{
    typedef float four_floats __attribute__((ext_vector_type(4)));
    matrix_four begin = {TILE_ONE_AND_A_HALF, TILE_ONE_AND_A_HALF, TILE_ONE_AND_A_HALF, TILE_ONE_AND_A_HALF};
    SETTLE(begin);
    UNROLL
    for (uint32_t strip = 0; strip < TILE_STRIPS; strip++) {
        const uint32_t row = tile_first_row() + strip * MATRIX_STRIP;
        const four_floats d = *(const four_floats *)AT_RANGE(factors, row + matrix_strip_row(0), 4);
        const matrix_two x = matrix_part(stage, row + lane() % 16, half);
        UNROLL
        for (uint32_t c = 0; c < MATRIX_LANE_COLUMNS; c++) {
            const matrix_four j = matrix_mfma_four(x, columns->of[c], begin);
            const four_floats sum = __builtin_bit_cast(four_floats, j) - 12582912.0f;
            float *to = acc + strip * 16 + c;
            four_floats all = {to[0], to[4], to[8], to[12]};
            all = __builtin_elementwise_fma(d * da[c], sum, all);
            to[0] = all.x;
            to[4] = all.y;
            to[8] = all.z;
            to[12] = all.w;
        }
    }
}
#endif

/* Block `half` of a stage: what its codes add. */
DEVICE void tile_codes_small(const uint32_t *stage, uint32_t half, float *acc)
{
    const float *factors = tile_extras(stage, TILE_FACTORS, half);
    const float *of_columns = tile_extras(stage, TILE_COLUMN_FACTORS, half);
    const uint32_t first_row = tile_first_row(), first_column = tile_first_column();
    const matrix_columns columns = matrix_take(stage + TILE_SLAB, first_column, half);
    float da[MATRIX_LANE_COLUMNS];
    UNROLL
    for (uint32_t c = 0; c < MATRIX_LANE_COLUMNS; c++)
        da[c] = AT(of_columns, first_column + matrix_column(c));
#if defined(MATRIX_BY_FOUR)
    tile_strips_by_four(stage, factors, half, &columns, da, acc);
    return;
#endif
    UNROLL
    for (uint32_t strip = 0; strip < TILE_STRIPS; strip++) {
        const uint32_t row = first_row + strip * MATRIX_STRIP;
        int32_t j[16];
        UNROLL
        for (uint32_t i = 0; i < 16; i++)
            j[i] = TILE_ONE_AND_A_HALF;
        matrix_strip(stage, row, half, &columns, j);
        UNROLL
        for (uint32_t i = 0; i < 16; i++) {
            const float d = AT(factors, row + matrix_strip_row(i / MATRIX_LANE_COLUMNS));
            float *to = acc + strip * 16 + i;
            *to = fma_f32(d * da[i % MATRIX_LANE_COLUMNS], canon_bits_float((uint32_t)j[i]) - 12582912.0f, *to);
        }
    }
}

/* And its minima. */
DEVICE void tile_mins_small(const uint32_t *stage, uint32_t half, float *acc)
{
    const float *mins = tile_extras(stage, TILE_MINS, half), *of_columns = tile_extras(stage, TILE_COLUMN_FACTORS, half);
    const float *of_codes = tile_extras(stage, TILE_COLUMN_SUMS, half);
    float da[MATRIX_LANE_COLUMNS], sums[MATRIX_LANE_COLUMNS];
    UNROLL
    for (uint32_t c = 0; c < MATRIX_LANE_COLUMNS; c++) {
        const uint32_t line = tile_first_column() + matrix_column(c);
        da[c] = AT(of_columns, line);
        sums[c] = AT(of_codes, line);
    }
    UNROLL
    for (uint32_t i = 0; i < TILE_SUMS; i++) {
        const uint32_t c = i % MATRIX_LANE_COLUMNS;
        acc[i] = fma_f32(AT(mins, tile_row(i)) * da[c], sums[c], acc[i]);
    }
}

DEVICE void tile_run_block32(bool has_min, const quant_tile_args *args, uint32_t *shared)
{
    const uint32_t steps_of_class = args->blocks_padded / QUANT_CLASSES / 2, steps = steps_of_class * args->classes;
    const uint32_t stage_words = QUANT_TILE_STAGE_WORDS + QUANT_TILE_BLOCK32_WORDS;
    tile_source from = tile_source_of(args, BLOCK32_ELEMENTS / 4, BLOCK32_ELEMENTS / 4);
    float acc[TILE_SUMS];
    tile_clear(acc);
    uint32_t filled = 0, now = 0, left = steps_of_class, done = 0;
    UNROLL_BY(1)
    for (uint32_t step = 0; step < steps + args->stages - 1; step++) {
        if (step + 1 >= args->stages)
            copies_wait((int32_t)args->stages - 2);
        barrier();
        if (step < steps) {
            uint32_t *stage = AT_RANGE(shared, filled * stage_words, stage_words);
            from.rows = tile_fetch(from.rows, from.rows_second, from.to, stage);
            from.columns = tile_fetch(from.columns, from.columns_second, from.to, stage + TILE_SLAB);
            tile_fetch_extras(&from, stage);
        }
        copies_commit();
        filled = filled + 1 == args->stages ? 0 : filled + 1;
        if (step + 1 < args->stages)
            continue;
        const uint32_t *stage = AT_RANGE(shared, now * stage_words, stage_words);
        TILE_HALVES
        for (uint32_t half = 0; half < 2; half++) {
            tile_codes_small(stage, half, acc);
            if (has_min)
                tile_mins_small(stage, half, acc);
        }
        now = now + 1 == args->stages ? 0 : now + 1;
        if (--left == 0) {
            tile_park(args, done++, false, NULL, acc);
            left = steps_of_class;
        }
    }
    tile_finish(args, acc);
}

/* ---- K blocks ------------------------------------------------------------------------------------------------------------ */

/* A quarter of a block: 64 elements of each row, their upper bytes, then their lower ones, and of each column. */
DEVICE void tile_quarter(const uint32_t *stage, int32_t *j)
{
    const uint32_t first_row = tile_first_row(), first_column = tile_first_column();
    matrix_columns columns[2];
    UNROLL
    for (uint32_t half = 0; half < 2; half++)
        columns[half] = matrix_take(stage + 2 * TILE_SLAB, first_column, half);
    UNROLL
    for (uint32_t strip = 0; strip < TILE_STRIPS; strip++) {
        const uint32_t row = first_row + strip * MATRIX_STRIP;
        int32_t upper[16];
        UNROLL
        for (uint32_t i = 0; i < 16; i++)
            upper[i] = 0;
        UNROLL
        for (uint32_t half = 0; half < 2; half++)
            matrix_strip(stage, row, half, &columns[half], upper);
        UNROLL
        for (uint32_t i = 0; i < 16; i++)
            j[strip * 16 + i] += upper[i] * 128;
        UNROLL
        for (uint32_t half = 0; half < 2; half++)
            matrix_strip(stage + TILE_SLAB, row, half, &columns[half], j + strip * 16);
    }
}

/* What the codes of a block add to all results. */
DEVICE void tile_codes_kblock(const uint32_t *records, int32_t *j, float *acc)
{
    UNROLL
    for (uint32_t i = 0; i < TILE_SUMS; i++) {
        const float d = AT((const float *)records, tile_row(i) * QUANT_RECORD + 8);
        const float da = AT((const float *)records, (QUANT_TILE + tile_column(i)) * QUANT_RECORD + 8);
        acc[i] = fma_f32(d * da, (float)j[i], acc[i]);
        j[i] = 0;
    }
}

/* And its minima. */
DEVICE void tile_mins_kblock(const uint32_t *records, float *acc)
{
    const uint32_t *of_columns = AT_RANGE(records, (QUANT_TILE + tile_first_column()) * QUANT_RECORD, QUANT_RECORD);
    UNROLL
    for (uint32_t strip = 0; strip < TILE_STRIPS; strip++) {
        wave_barrier(); /* loads of one strip wait until the one before has no need of registers any more */
        const uint32_t row = tile_first_row() + strip * MATRIX_STRIP;
        const uint32_t *of_rows = AT_RANGE(records, row * QUANT_RECORD, QUANT_RECORD);
        int32_t low[16], high[16];
        UNROLL
        for (uint32_t i = 0; i < 16; i++)
            low[i] = high[i] = 0;
        matrix_strip_16(of_rows, of_columns, QUANT_RECORD, low);
        matrix_strip_16(of_rows, of_columns + 4, QUANT_RECORD, high);
        UNROLL
        for (uint32_t i = 0; i < 16; i++) {
            const uint32_t at = strip * 16 + i;
            const float dm = AT((const float *)records, tile_row(at) * QUANT_RECORD + 9);
            const float da = AT((const float *)records, (QUANT_TILE + tile_column(at)) * QUANT_RECORD + 8);
            acc[at] = fma_f32(dm * da, (float)(low[i] + 128 * high[i]), acc[at]);
        }
    }
}

/* The records of a block, in front of the stages, are wanted with its last quarter, and set out when its first is worked on:
 * those of the block before are not in use any more then, and there are no more than three groups of copies behind them. */
DEVICE void tile_run_kblock(bool has_min, const quant_tile_args *args, uint32_t *shared)
{
    const uint32_t steps_of_class = args->blocks_padded / QUANT_CLASSES * 4, steps = steps_of_class * args->classes;
    const uint32_t stage_words = QUANT_TILE_KBLOCK_WORDS;
    uint32_t *stages = shared + QUANT_TILE_RECORD_WORDS;
    tile_source from = tile_source_of(args, 2 * KBLOCK_ELEMENTS / 4, KBLOCK_ELEMENTS / 4);
    float acc[TILE_SUMS];
    int32_t j[TILE_SUMS];
    tile_clear(acc);
    UNROLL
    for (uint32_t i = 0; i < TILE_SUMS; i++)
        j[i] = 0;
    uint32_t filled = 0, now = 0, left = steps_of_class, done = 0, worked = 0;
    UNROLL_BY(1)
    for (uint32_t step = 0; step < steps + args->stages - 1; step++) {
        if (step + 1 >= args->stages)
            copies_wait((int32_t)args->stages - 2);
        barrier();
        if (step < steps) {
            uint32_t *stage = AT_RANGE(stages, filled * stage_words, stage_words);
            from.rows = tile_fetch(from.rows, from.rows_second, from.to, stage);
            from.rows = tile_fetch(from.rows, from.rows_second, from.to, stage + TILE_SLAB);
            from.columns = tile_fetch(from.columns, from.columns_second, from.to, stage + 2 * TILE_SLAB);
        }
        if (step + 1 >= args->stages && worked % 4 == 0)
            tile_fetch_records(args, tile_first_place(args) + worked / 4, shared);
        copies_commit();
        filled = filled + 1 == args->stages ? 0 : filled + 1;
        if (step + 1 < args->stages)
            continue;
        tile_quarter(AT_RANGE(stages, now * stage_words, stage_words), j);
        if (worked % 4 == 3) {
            tile_codes_kblock(shared, j, acc);
            if (has_min)
                tile_mins_kblock(shared, acc);
        }
        worked++;
        now = now + 1 == args->stages ? 0 : now + 1;
        if (--left == 0) {
            tile_park(args, done++, false, NULL, acc);
            left = steps_of_class;
        }
    }
    tile_finish(args, acc);
}

TILE_KERNEL(quant_tile_block32, tile_run_block32(false, &args, shared))
TILE_KERNEL(quant_tile_block32_min, tile_run_block32(true, &args, shared))
TILE_KERNEL(quant_tile_kblock, tile_run_kblock(false, &args, shared))
TILE_KERNEL(quant_tile_kblock_min, tile_run_kblock(true, &args, shared))
TILE_FOLD_KERNEL(quant_tile_fold)
