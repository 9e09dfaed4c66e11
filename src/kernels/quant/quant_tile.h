/* What the kernels for tiles of quantized products have in common: bringing stages, and their sums (quant_tile_sums.h). */
#ifndef WW_KERNELS_QUANT_QUANT_TILE_H
#define WW_KERNELS_QUANT_QUANT_TILE_H

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

#endif
