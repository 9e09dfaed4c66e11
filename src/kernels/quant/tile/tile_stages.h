/* Moves the operands of a tile into shared memory: codes in stages of 64 bytes of each row and column, with the scales of
 * blocks of 32, and a record for each K block of each row and column. The including file first defines TILE_THREADS.
 *
 * NVIDIA chips copy asynchronously, several stages ahead. AMD chips with waves of 64 lanes have one stage and hold the next in
 * registers. AMD chips with waves of 32 copy synchronously into alternating stages.
 */
#ifndef WW_KERNELS_QUANT_TILE_TILE_STAGES_H
#define WW_KERNELS_QUANT_TILE_TILE_STAGES_H

#include "kernels/simt/matrix_i8.h"

#include "arithmetic/screen.h"
#include "kernels/quant/quant.h"

enum { TILE_SLAB = QUANT_TILE * QUANT_SLAB_ROW_BYTES / 4 /* words */ };

/* Whether codes have the same layout in memory as in shared memory, and records are in planes. */
#define TILE_SLABS(args) (QUANT_LAYOUT_OF((args)->layout) == QUANT_LAYOUT_SLABS)

/* ---- stages -------------------------------------------------------------------------------------------------------------- */

/* What this thread copies into each stage: 16 bytes of two rows of each slab, and the scales of blocks of 32. */
typedef struct tile_source {
    const uint32_t *rows, *columns;
    uint64_t rows_second, columns_second; /* words to the second row */
    uint32_t step;                        /* words from slab to slab */
    const uint32_t *extras;
    uint32_t to, extras_to; /* words of a stage */
    uint32_t extras_step;   /* words from stage to stage */
} tile_source;

/* The first position of this block's classes; the others follow. */
DEVICE uint32_t tile_first_place(const quant_tile_args *args)
{
    return block_index_y() * args->classes * (args->blocks_padded / QUANT_CLASSES);
}

/* Codes in lines, with `row_words` and `column_words` words per block. */
DEVICE void tile_source_lines(const quant_tile_args *args, uint32_t row_words, uint32_t column_words, tile_source *from)
{
    const uint64_t row = (uint64_t)(block_index() / args->across) * QUANT_TILE;
    const uint64_t column = (uint64_t)(block_index() % args->across) * QUANT_TILE;
    const uint32_t line = thread_index() / 4, piece = thread_index() % 4, position = tile_first_place(args);
    from->rows = args->row_codes + ((row + line) * args->blocks_padded + position) * row_words + piece * 4;
    from->columns = args->column_codes + ((column + line) * args->blocks_padded + position) * column_words + piece * 4;
    from->rows_second = (uint64_t)QUANT_TILE / 2 * args->blocks_padded * row_words;
    from->columns_second = (uint64_t)QUANT_TILE / 2 * args->blocks_padded * column_words;
    from->step = QUANT_SLAB_ROW_BYTES / 4;
    from->to = screen_piece(line, piece);
}

/* Slabs are consecutive, with the layout of shared memory. */
DEVICE void tile_source_slabs(const quant_tile_args *args, uint32_t row_words, uint32_t column_words, tile_source *from)
{
    const uint32_t row = block_index() / args->across, column = block_index() % args->across;
    const uint64_t first = (uint64_t)tile_first_place(args) * QUANT_TILE;
    const uint64_t tile = (uint64_t)args->blocks_padded * QUANT_TILE;
    from->to = thread_index() * 4;
    from->rows = args->row_codes + (row * tile + first) * row_words + from->to;
    from->columns = args->column_codes + (column * tile + first) * column_words + from->to;
    from->rows_second = from->columns_second = TILE_SLAB / 2;
    from->step = TILE_SLAB;
}

DEVICE tile_source tile_source_of(const quant_tile_args *args, uint32_t row_words, uint32_t column_words)
{
    const uint64_t row = (uint64_t)(block_index() / args->across) * QUANT_TILE;
    const uint64_t column = (uint64_t)(block_index() % args->across) * QUANT_TILE;
    const uint32_t position = tile_first_place(args);
    const uint32_t which = thread_index() / 64 % 4, half = thread_index() / 32 % 2, four = thread_index() % 32 * 4;
    const uint64_t of_row = quant_scale_index(position + half, row, args->rows_padded) + four;
    const uint64_t of_column = quant_scale_index(position + half, column, (uint64_t)args->across * QUANT_TILE) + four;
    tile_source from;
    if (TILE_SLABS(args))
        tile_source_slabs(args, row_words, column_words, &from);
    else
        tile_source_lines(args, row_words, column_words, &from);
    from.extras = which == 0   ? (const uint32_t *)args->row_factors + of_row
                  : which == 1 ? (const uint32_t *)args->row_mins + of_row
                  : which == 2 ? (const uint32_t *)args->column_factors + of_column
                               : (const uint32_t *)args->column_sums + of_column;
    from.extras_to = (which * 2 + half) * QUANT_TILE + four;
    from.extras_step = 2 * (which < 2 ? args->rows_padded : args->across * QUANT_TILE);
    return from;
}

/* Copies a slab of rows, the next 64 bytes of each. */
DEVICE void tile_fetch_rows(tile_source *from, uint32_t *slab)
{
    copy_16(AT_RANGE(slab, from->to, 4), from->rows);
    copy_16(AT_RANGE(slab, TILE_SLAB / 2 + from->to, 4), from->rows + from->rows_second);
    from->rows += from->step;
}

DEVICE void tile_fetch_columns(tile_source *from, uint32_t *slab)
{
    copy_16(AT_RANGE(slab, from->to, 4), from->columns);
    copy_16(AT_RANGE(slab, TILE_SLAB / 2 + from->to, 4), from->columns + from->columns_second);
    from->columns += from->step;
}

/* ---- records of K blocks ------------------------------------------------------------------------------------------------- */

/* Layout of records in shared memory. Without planes, a record is QUANT_RECORD words. With planes, one plane has 8 bytes of the
 * minima of each row and of the low bytes of the sums of each column, and another has the other 8. High bytes of columns are
 * stored the same way, and factors are adjacent, so there are no bank conflicts. */
enum {
    TILE_PLANE = 2 * 2 * QUANT_TILE,     /* 8 bytes of each row and column */
    TILE_HIGH_SUMS = 2 * TILE_PLANE,     /* of columns */
    TILE_PLANE_FACTORS = 3 * TILE_PLANE, /* of both */
    TILE_LINES = 2 * QUANT_TILE          /* rows, then columns */
};

DEVICE matrix_lines tile_lines(bool planes)
{
    matrix_lines lie;
    lie.stride = planes ? 2 : QUANT_RECORD;
    lie.half = planes ? TILE_PLANE : 2;
    return lie;
}

/* The first factor of a line, or the second if which = 1. */
DEVICE float tile_record_factor(bool planes, const uint32_t *records, uint32_t line, uint32_t which)
{
    return AT((const float *)records, planes ? TILE_PLANE_FACTORS + line * 2 + which : line * QUANT_RECORD + 8 + which);
}

DEVICE void tile_fetch_record_words(const quant_tile_args *args, uint32_t position, uint32_t *records)
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

/* A line's record before it is stored in planes. Each thread has one of TILE_LINES. */
typedef struct tile_record {
    u32x4 low, high;
    u32x2 factors;
} tile_record;

DEVICE tile_record tile_take_record(bool has_min, const quant_tile_args *args, uint32_t position)
{
    const bool of_columns = thread_index() >= QUANT_TILE;
    const uint32_t tile = of_columns ? block_index() % args->across : block_index() / args->across;
    const uint32_t *from =
        (of_columns ? args->column_records : args->row_records) +
        quant_slab_record((uint64_t)tile * QUANT_TILE + thread_index() % QUANT_TILE, position, args->blocks_padded, 0) * 4;
    tile_record record = {{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0}};
    record.factors = load_u32x2_readonly(from + 2 * QUANT_TILE * 4);
    if (has_min)
        record.low = load_u32x4(from);
    if (has_min && of_columns)
        record.high = load_u32x4(from + QUANT_TILE * 4);
    return record;
}

DEVICE void tile_put_two(uint32_t *to, uint32_t x, uint32_t y)
{
    const u32x2 two = {x, y};
    *(u32x2 *)AT_RANGE(to, 0, 2) = two;
}

DEVICE void tile_put_record(bool has_min, const tile_record *record, uint32_t *records)
{
    const uint32_t line = thread_index();
    tile_put_two(AT_RANGE(records, TILE_PLANE_FACTORS + line * 2, 2), record->factors.x, record->factors.y);
    if (!has_min)
        return;
    tile_put_two(AT_RANGE(records, line * 2, 2), record->low.x, record->low.y);
    tile_put_two(AT_RANGE(records, TILE_PLANE + line * 2, 2), record->low.z, record->low.w);
    if (line < QUANT_TILE)
        return;
    uint32_t *high = AT_RANGE(records, TILE_HIGH_SUMS + (line - QUANT_TILE) * 2, TILE_PLANE / 2 + 2);
    tile_put_two(high, record->high.x, record->high.y);
    tile_put_two(high + TILE_PLANE / 2, record->high.z, record->high.w);
}

DEVICE void tile_fetch_records(bool has_min, const quant_tile_args *args, uint32_t position, uint32_t *records)
{
    if (!TILE_SLABS(args)) {
        tile_fetch_record_words(args, position, records);
        return;
    }
    const tile_record record = tile_take_record(has_min, args, position);
    tile_put_record(has_min, &record, records);
}

/* ---- scales of blocks of 32 ---------------------------------------------------------------------------------------------- */

/* The scales of block `half` of a stage of blocks of 32: factors and minima of rows, factors and sums of columns. */
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

/* ---- one stage ----------------------------------------------------------------------------------------------------------- */

/* On AMD chips with waves of 64 lanes, the next stage waits in registers while threads work on the current one: copies are not
 * asynchronous, and with shared memory for one stage only, another thread block fits. */
#if defined(__AMDGCN__)
#define TILE_ONE_STAGE(args) (wave_size() == 64)
#elif defined(__NVPTX__)
#define TILE_ONE_STAGE(args) false
#else
#define TILE_ONE_STAGE(args) ((args)->stages == 1)
#endif

/* A thread's part of the next stage: two pieces of each slab, and scales. */
typedef struct tile_next {
    u32x4 codes[3][2], extras;
} tile_next;

DEVICE void tile_take_slab(const uint32_t *from, uint64_t second, u32x4 *two)
{
    two[0] = load_u32x4(from);
    two[1] = load_u32x4(from + second);
}

/* Loads `slabs` slabs of rows, and those of columns. */
DEVICE void tile_take(const uint32_t slabs, tile_source *from, tile_next *next)
{
    UNROLL
    for (uint32_t i = 0; i < slabs; i++) {
        tile_take_slab(from->rows, from->rows_second, next->codes[i]);
        from->rows += from->step;
    }
    tile_take_slab(from->columns, from->columns_second, next->codes[slabs]);
    from->columns += from->step;
}

/* Formats without minima skip the scales that only minima need. */
DEVICE bool tile_wants_extras(bool has_min)
{
    return has_min || wave_index() * wave_size() / 64 % 2 == 0;
}

DEVICE void tile_take_extras(bool has_min, tile_source *from, tile_next *next)
{
    if (tile_wants_extras(has_min))
        next->extras = load_u32x4(from->extras);
    from->extras += from->extras_step;
}

DEVICE void tile_put_16(uint32_t *to, u32x4 words)
{
    *(u32x4 *)AT_RANGE(to, 0, 4) = words;
}

DEVICE void tile_put_codes(const uint32_t slabs, const tile_source *from, const tile_next *next, uint32_t *stage)
{
    UNROLL
    for (uint32_t i = 0; i < 2 * slabs + 2; i++)
        tile_put_16(AT_RANGE(stage, i * (TILE_SLAB / 2) + from->to, 4), next->codes[i / 2][i % 2]);
}

#if defined(MATRIX_BY_FOUR)
/* Stores two blocks of 32 of each row. Eight bytes of one block and the same eight of the other are adjacent, so that one read
 * of 16 bytes gives a lane its operands for both. */
DEVICE void tile_put_pairs(const tile_next *next, uint32_t *stage)
{
    const uint32_t line = thread_index() / 4, piece = thread_index() % 4 ^ (line >> 1 & 3);
    const uint32_t first = screen_piece(line, piece % 2 * 2) + piece / 2 * 2;
    const uint32_t second = screen_piece(line, piece % 2 * 2 + 1) + piece / 2 * 2;
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        const u32x4 words = next->codes[i / 2][i % 2];
        tile_put_two(stage + i * (TILE_SLAB / 2) + first, words.x, words.y);
        tile_put_two(stage + i * (TILE_SLAB / 2) + second, words.z, words.w);
    }
}
#endif

DEVICE void tile_put_extras(bool has_min, const tile_source *from, const tile_next *next, uint32_t *stage)
{
    if (tile_wants_extras(has_min))
        tile_put_16(AT_RANGE(stage, QUANT_TILE_STAGE_WORDS + from->extras_to, 4), next->extras);
}

#endif
