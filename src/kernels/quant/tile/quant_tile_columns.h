/* How activations are laid out for products by tiles (quant.h): by what codes them, and by what finds them coded.
 *
 * A team of 32 threads has 1024 elements of a column: eight lanes share each 256 of them, in eight pieces of 32, of which a
 * lane has four elements each. What a piece has in common is found for all eight at once, piece i in lane i. The teams of a
 * block have as many columns next to each other: what belongs to their blocks meets in shared memory, and is written without
 * gaps.
 */
#ifndef WW_KERNELS_QUANT_TILE_QUANT_TILE_COLUMNS_H
#define WW_KERNELS_QUANT_TILE_QUANT_TILE_COLUMNS_H

#include "kernels/quant/quant.h"
#include "kernels/quant/quant_words.h"

#include "arithmetic/blocks/encode.h"

enum { COLUMN_PIECES = 8, COLUMN_BESIDE = QUANT_COLUMNS + 1 /* no two lanes in the same bank */ };

/* Where a thread is. */
typedef struct column_position {
    uint32_t column, unit; /* unit: which 1024 elements of the column */
    uint32_t group, in_group;
    bool exists;
} column_position;

DEVICE column_position column_position_of(const quant_tile_activations_args *args)
{
    const uint32_t column = block_index_y() * QUANT_COLUMNS + thread_index() / QUANT_TEAM;
    const column_position at = {column, block_index(), thread_index() % QUANT_TEAM / 8, thread_index() % 8,
                                column < args->columns};
    return at;
}

/* Which element of a column is a lane's first; and whether that of its piece `i` exists. */
DEVICE uint64_t column_first(const column_position *at)
{
    return (uint64_t)at->unit * 1024 + at->group * 256 + at->in_group * 4;
}

DEVICE bool column_has(const quant_tile_activations_args *args, const column_position *at, uint32_t i)
{
    return at->exists && column_first(at) + i * 32 < args->elements;
}

DEVICE int32_t larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

DEVICE int32_t other_lane(int32_t value, uint32_t mask)
{
    return (int32_t)wave_shuffle_xor_u32((uint32_t)value, mask);
}

DEVICE int32_t column_join(bool sum, int32_t a, int32_t b)
{
    return sum ? a + b : larger(a, b);
}

/* Sums, or largest, of `count` values of a lane over itself and the lane `mask` away: this one has the first half of them then,
 * or the second if it has that bit. */
DEVICE void column_halve(bool sum, int32_t *values, uint32_t count, uint32_t mask)
{
    const bool second = (thread_index() & mask) != 0;
    UNROLL
    for (uint32_t i = 0; i < count / 2; i++) {
        const int32_t a = values[i], b = values[count / 2 + i];
        values[i] = column_join(sum, second ? b : a, other_lane(second ? a : b, mask));
    }
}

/* ---- blocks of 32 ------------------------------------------------------------------------------------------------------- */

/* This lane's word of its piece `i`, a block. */
DEVICE void column_put_block32_word(const quant_tile_activations_args *args, const column_position *at, uint32_t i,
                                    uint32_t word)
{
    const uint32_t position = quant_position(i, args->blocks_padded) + at->unit * 4 + at->group;
    if (at->exists && QUANT_LAYOUT_OF(args->layout) != QUANT_LAYOUT_TILES)
        args->codes[quant_wgmma_block32_word(at->column, position, args->blocks_padded, at->in_group)] = word;
    else if (at->exists)
        args->codes[((uint64_t)at->column * args->blocks_padded + position) * 8 + at->in_group] = word;
}

/* What belongs to block `local` of the unit. */
DEVICE void column_put_block32(const quant_tile_activations_args *args, const column_position *at, float factor, int32_t sum,
                               float *factors, float *sums)
{
    const uint32_t team = thread_index() / QUANT_TEAM, local = thread_index() % QUANT_TEAM;
    AT(factors, local * COLUMN_BESIDE + team) = factor;
    AT(sums, local * COLUMN_BESIDE + team) = (float)sum;
    barrier();
    const uint32_t column = block_index_y() * QUANT_COLUMNS + thread_index() % QUANT_COLUMNS;
    const uint32_t in_unit = thread_index() / QUANT_COLUMNS,
                   position = quant_position(at->unit * 32 + in_unit, args->blocks_padded);
    if (column >= args->columns)
        return;
    const float here = AT(factors, in_unit * COLUMN_BESIDE + thread_index() % QUANT_COLUMNS);
    const float of_codes = AT(sums, in_unit * COLUMN_BESIDE + thread_index() % QUANT_COLUMNS);
    if (QUANT_LAYOUT_OF(args->layout) == QUANT_LAYOUT_WGMMA) {
        ((uint16_t *)args->factors)[quant_wgmma_block32_factor(column, position, args->blocks_padded)] =
            (uint16_t)block_f16_from_f32(here);
        ((float *)args->sums)[quant_tiled_index(column, position, args->blocks_padded, QUANT_TILE)] = of_codes * here;
    } else {
        args->factors[quant_scale_index(position, column, args->columns_padded)] = here;
        ((float *)args->sums)[quant_scale_index(position, column, args->columns_padded)] = of_codes;
    }
}

/* ---- K blocks ------------------------------------------------------------------------------------------------------------ */

/* The sums of 16 codes each, sum = low + 128 * high in two bytes: |sum| <= 16 * 127, so that `high` is within +-16 and `low`
 * within -64..63. `sums` are those of this lane's words, one of each piece. */
DEVICE void column_put_sums(int32_t *sums, uint32_t in_group, int8_t *record)
{
    column_halve(true, sums, 8, 2);
    column_halve(true, sums, 4, 1);
    UNROLL
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t piece = (in_group & 2) * 2 + (in_group & 1) * 2 + i, sub_block = piece * 2 + in_group / 4;
        const int32_t high = (sums[i] + 64) >> 7;
        record[sub_block] = (int8_t)(sums[i] - high * 128);
        record[16 + sub_block] = (int8_t)high;
    }
}

/* Records of four blocks of all columns here, 16 bytes a thread. */
DEVICE void column_put_records(const quant_tile_activations_args *args, uint32_t unit, const u32x4 *records)
{
    const uint32_t number = thread_index() / 3, part = thread_index() % 3;
    const uint32_t column = block_index_y() * QUANT_COLUMNS + number % QUANT_COLUMNS;
    if (number >= 4 * QUANT_COLUMNS || column >= args->columns)
        return;
    const uint32_t position = quant_position(unit * 4 + number / QUANT_COLUMNS, args->blocks_padded);
    ((u32x4 *)args->sums)[quant_record_part(args->layout, column, position, args->blocks_padded, part)] =
        AT(records, thread_index());
}

#endif
