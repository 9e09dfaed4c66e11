/* The stages of a gemv in shared memory: 16 rows x some blocks, and the activations that they meet. Sizes and offsets, for the
 * kernels and for the host, which asks for the shared memory.
 *
 * A stage has rounds of eight blocks of each row, one a team. Eight blocks of any format are a multiple of 16 bytes, so rows
 * are copied 16 bytes at a time from the last multiple of 16 before their first byte, and where a row begins in its slot is the
 * same in every stage. Slots are an odd number of 16 bytes, so that eight rows are in different banks. The rows are followed by
 * the factors of the columns, their sums where the format has minima, and their codes.
 *
 * Where a chunk waits in registers, the last eight rows are eight bytes further on: sixteen rows are in different banks then,
 * two words of each.
 */
#ifndef WW_KERNELS_QUANT_QUANT_GEMV_LAYOUT_H
#define WW_KERNELS_QUANT_QUANT_GEMV_LAYOUT_H

#include "arithmetic/blocks/dot.h"
#include "kernels/quant/quant.h"

#define STAGE_ROWS 16
#define STAGES_MAX 8 /* copies_wait counts to 6 */

/* By how much the last eight rows are moved: on AMD's chips, which read 16 bytes of a row as two times eight, from a multiple
 * of eight (words_head()). The host, which asks for shared memory without knowing the chip, leaves room for it. */
#if defined(__AMDGCN__)
#define STAGE_MOVED 8
#else
#define STAGE_MOVED 0
#endif
#if defined(__NVPTX__)
#define STAGE_ROOM 0
#else
#define STAGE_ROOM 16
#endif

/* Rounds of a stage: some 1000 to 2300 bytes of each row. */
CANON_FUNCTION uint32_t stage_rounds(int32_t type)
{
    return block_elements(type) == KBLOCK_ELEMENTS ? 1 : block_bytes(type) < BLOCK32_ELEMENTS ? 8 : 4;
}

CANON_FUNCTION uint32_t stage_blocks(int32_t type)
{
    return stage_rounds(type) * 8;
}

CANON_FUNCTION uint32_t stage_chunk_bytes(int32_t type)
{
    return stage_blocks(type) * (uint32_t)block_bytes(type);
}

CANON_FUNCTION uint32_t stage_slot_bytes(int32_t type)
{
    return ((stage_chunk_bytes(type) / 16 + 1) | 1) * 16;
}

/* Where the sections of a stage begin, in bytes. */
CANON_FUNCTION uint32_t stage_factors_at(int32_t type)
{
    return STAGE_ROWS * stage_slot_bytes(type) + STAGE_ROOM; /* what is behind begins at a multiple of 16 */
}

CANON_FUNCTION uint32_t stage_sums_at(int32_t type)
{
    return stage_factors_at(type) + stage_blocks(type) * QUANT_GEMV_COLUMNS * 4;
}

CANON_FUNCTION uint32_t stage_codes_at(int32_t type)
{
    return stage_sums_at(type) +
           (dot_has_min(type) ? stage_blocks(type) * (uint32_t)dot_pieces(type) * QUANT_GEMV_COLUMNS * 4 : 0);
}

CANON_FUNCTION uint32_t stage_bytes(int32_t type, uint32_t width)
{
    return stage_codes_at(type) + stage_blocks(type) * (uint32_t)dot_pieces(type) * width * 32;
}

/* The order of the codes of columns. */
CANON_FUNCTION uint32_t stage_rotation(int32_t type)
{
    return type == BLOCK_Q4_0 ? QUANT_ROTATE_16 : type == BLOCK_Q8_0 ? QUANT_ROTATE_32 : QUANT_ROTATE_NONE;
}

/* ---- thread blocks that stay (quant_gemv_stay.h) ------------------------------------------------------------------------- */

/* In front of the stages, which are rows alone, shared memory has two times eight sums of 16 rows, the accumulators of a norm,
 * and the column: factors, sums where the format has minima, codes. In bytes. */
enum { STEP_LANES_AT = 2 * QUANT_CLASSES * STAGE_ROWS * 4, STEP_FACTORS_AT = STEP_LANES_AT + QUANT_NORM_LANES * 4 };

CANON_FUNCTION uint32_t step_sums_at(uint32_t blocks_padded)
{
    return STEP_FACTORS_AT + blocks_padded * QUANT_GEMV_COLUMNS * 4;
}

CANON_FUNCTION uint32_t step_codes_at(int32_t type, uint32_t blocks_padded)
{
    return step_sums_at(blocks_padded) +
           (dot_has_min(type) ? blocks_padded * (uint32_t)dot_pieces(type) * QUANT_GEMV_COLUMNS * 4 : 0);
}

CANON_FUNCTION uint32_t step_columns_bytes(int32_t type, uint32_t blocks_padded)
{
    return (step_codes_at(type, blocks_padded) + blocks_padded * (uint32_t)dot_pieces(type) * 32 + 127) / 128 * 128;
}

CANON_FUNCTION uint32_t step_stage_bytes(int32_t type)
{
    return stage_factors_at(type);
}

#endif
