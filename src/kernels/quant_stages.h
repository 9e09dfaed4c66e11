/* Rows of quantized weights on their way through shared memory: stages of 16 rows x some blocks, in a ring.
 *
 * A stage has eight blocks of each row, or a multiple of that, an octet: octets of every format are a multiple of 16 bytes, so
 * rows are copied 16 bytes at a time from the last such place before their begin on, and where a row begins in its slot is the
 * same in every stage. Slots are an odd number of 16 bytes, so that eight rows are in different banks.
 *
 * The sizes are for the host as well, which asks for the shared memory.
 */
#ifndef WW_KERNELS_QUANT_STAGES_H
#define WW_KERNELS_QUANT_STAGES_H

#include "kernels/blocks.h"
#include "kernels/quant.h"

#define STAGE_ROWS      16
#define STAGE_BYTES_MAX 60000 /* of all stages: with what else a kernel has, a block fits into 64 KiB */

/* Octets of blocks in a stage: some 1 to 2 KiB of each row. */
CANON_FUNCTION uint32_t stage_octets(int32_t type)
{
    return block_elements(type) == BLOCK_LARGE ? 1 : type == BLOCK_Q4_0 ? 8 : 4;
}

CANON_FUNCTION uint32_t stage_chunk_bytes(int32_t type)
{
    return stage_octets(type) * 8 * (uint32_t)block_bytes(type);
}

CANON_FUNCTION uint32_t stage_slot_bytes(int32_t type)
{
    return ((stage_chunk_bytes(type) / 16 + 1) | 1) * 16;
}

CANON_FUNCTION uint32_t stage_bytes(int32_t type)
{
    return STAGE_ROWS * stage_slot_bytes(type);
}

CANON_FUNCTION uint32_t stage_count(int32_t type)
{
    const uint32_t fit = STAGE_BYTES_MAX / stage_bytes(type);
    return fit < 3 ? fit : 3;
}

#ifdef WW_KERNELS_SIMT_H

/* Sixteen rows; those behind the last are the last. */
typedef struct stage_rows {
    const uint8_t *weights;
    uint64_t stride; /* bytes from row to row */
    uint64_t first, last;
    uint32_t row_bytes;
} stage_rows;

DEVICE const uint8_t *stage_row_begin(const stage_rows *rows, uint32_t row)
{
    const uint64_t at = rows->first + row < rows->last ? rows->first + row : rows->last;
    return rows->weights + at * rows->stride;
}

/* Where in a stage a row begins, in bytes. */
DEVICE uint32_t stage_row(int32_t type, const stage_rows *rows, uint32_t row)
{
    return row * stage_slot_bytes(type) + (uint32_t)((uintptr_t)stage_row_begin(rows, row) & 15);
}

/* Begins to copy chunk number `chunk` of all rows into a stage, as a group of copies of its own, also where there is nothing
 * left. The last 16 bytes of a row may reach into the next, or into the padding behind the last. */
DEVICE void stage_fetch(int32_t type, const stage_rows *rows, uint32_t chunk, uint32_t *stages, uint32_t stage)
{
    const uint32_t pieces = stage_chunk_bytes(type) / 16 + 1, done = chunk * stage_chunk_bytes(type);
    for (uint32_t i = thread_index(); i < STAGE_ROWS * pieces; i += QUANT_THREADS) {
        const uint32_t row = i / pieces, piece = i % pieces;
        const uint8_t *begin = stage_row_begin(rows, row);
        const uint32_t skew = (uint32_t)((uintptr_t)begin & 15);
        if (done + piece * 16 >= skew + rows->row_bytes)
            continue;
        copy_16(AT_RANGE(stages, (stage * stage_bytes(type) + row * stage_slot_bytes(type)) / 4 + piece * 4, 4),
                (const uint32_t *)(begin - skew + done + piece * 16));
    }
    copies_commit();
}

#endif

#endif
