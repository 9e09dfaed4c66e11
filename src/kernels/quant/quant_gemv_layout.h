/* The layout of a gemv's stages in shared memory: 16 rows x some blocks, and the activations for them. Sizes and offsets, for
 * the kernels and for the host, which allocates the shared memory.
 *
 * A stage has rounds of eight blocks of each row, one per team. Eight blocks of any format are a multiple of 16 bytes. So rows
 * are copied 16 bytes at a time, from their first byte rounded down to a multiple of 16, and a row starts at the same offset of
 * its slot in every stage. A slot is an odd multiple of 16 bytes, so that eight rows are in different banks. After the rows
 * come the factors of the columns, their sums if the format has minima, and their codes.
 *
 * If a chunk waits in registers, the last eight rows are moved by eight bytes: then two words of each of sixteen rows are in
 * different banks.
 */
#ifndef WW_KERNELS_QUANT_QUANT_GEMV_LAYOUT_H
#define WW_KERNELS_QUANT_QUANT_GEMV_LAYOUT_H

#include "arithmetic/blocks/dot.h"
#include "kernels/quant/quant.h"

#define STAGE_ROWS 16
#define STAGES_MAX 8 /* copies_wait counts to 6 */

/* Bytes by which the last eight rows are moved. AMD chips read 16 bytes of a row as two times eight, aligned to eight
 * (words_head()). The host allocates shared memory without knowing the chip, and leaves room for it. */
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

/* Rounds per stage: about 1000 to 2300 bytes of each row. */
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

/* Offsets of the sections of a stage, in bytes. */
CANON_FUNCTION uint32_t stage_factors_at(int32_t type)
{
    return STAGE_ROWS * stage_slot_bytes(type) + STAGE_ROOM; /* the next section starts at a multiple of 16 */
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

/* Offsets in bytes. Stages have only rows here. Before them, shared memory has two times eight sums of 16 rows, the
 * accumulators of a norm, and the column: factors, sums if the format has minima, and codes. */
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
