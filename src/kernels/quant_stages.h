/* Rows of quantized weights, and the activations they meet, on their way through shared memory: stages of 16 rows x some
 * blocks.
 *
 * A stage has eight blocks of each row, or a multiple of that, an octet: octets of every format are a multiple of 16 bytes, so
 * rows are copied 16 bytes at a time from the last such place before their begin on, and where a row begins in its slot is the
 * same in every stage. Slots are an odd number of 16 bytes, so that eight rows are in different banks. Behind the rows there
 * are the codes of the columns, their factors, and their sums where the format has minima.
 *
 * The sizes are for the host as well, which asks for the shared memory.
 */
#ifndef WW_KERNELS_QUANT_STAGES_H
#define WW_KERNELS_QUANT_STAGES_H

#include "kernels/blocks_dot.h"
#include "kernels/quant.h"

#define STAGE_ROWS 16

/* Octets of blocks in a stage: some 600 to 1700 bytes of each row. */
CANON_FUNCTION uint32_t stage_octets(int32_t type)
{
    return block_elements(type) == BLOCK_LARGE ? 1 : 4;
}

CANON_FUNCTION uint32_t stage_blocks(int32_t type)
{
    return stage_octets(type) * 8;
}

CANON_FUNCTION uint32_t stage_chunk_bytes(int32_t type)
{
    return stage_blocks(type) * (uint32_t)block_bytes(type);
}

CANON_FUNCTION uint32_t stage_slot_bytes(int32_t type)
{
    return ((stage_chunk_bytes(type) / 16 + 1) | 1) * 16;
}

/* Where the parts of a stage begin, in bytes. */
CANON_FUNCTION uint32_t stage_factors_at(int32_t type)
{
    return STAGE_ROWS * stage_slot_bytes(type);
}

CANON_FUNCTION uint32_t stage_sums_at(int32_t type)
{
    return stage_factors_at(type) + stage_blocks(type) * QUANT_FEW_COLUMNS * 4;
}

CANON_FUNCTION uint32_t stage_codes_at(int32_t type)
{
    return stage_sums_at(type) +
           (dot_has_min(type) ? stage_blocks(type) * (uint32_t)dot_pieces(type) * QUANT_FEW_COLUMNS * 4 : 0);
}

CANON_FUNCTION uint32_t stage_bytes(int32_t type, uint32_t width)
{
    return stage_codes_at(type) + stage_blocks(type) * (uint32_t)dot_pieces(type) * width * 32;
}

#ifdef WW_KERNELS_SIMT_H

/* What is fetched: by this thread a part of row thread / 16, and parts of the columns. */
typedef struct stage_source {
    const uint8_t *row;    /* from the last place of 16 bytes before its begin on */
    uint32_t left;         /* bytes of it from there on */
    uint32_t slot;         /* in a stage, in words */
    const uint32_t *codes; /* of the group's columns, as the next two */
    const float *factors;
    const uint32_t *sums;
    uint32_t blocks; /* of a row */
    uint32_t width;
} stage_source;

DEVICE const uint8_t *stage_row_begin(const quant_few_args *args, uint32_t group, uint32_t row)
{
    const uint64_t wanted = (uint64_t)block_index() * STAGE_ROWS + row, at = wanted < args->rows ? wanted : args->rows - 1;
    return args->weights + ((args->first_rows ? args->first_rows[group] : 0) + at) * args->weights_stride;
}

/* Where in a stage a row begins, in bytes. */
DEVICE uint32_t stage_row(int32_t type, const quant_few_args *args, uint32_t group, uint32_t row)
{
    return row * stage_slot_bytes(type) + (uint32_t)((uintptr_t)stage_row_begin(args, group, row) & 15);
}

DEVICE stage_source stage_source_of(int32_t type, const quant_few_args *args, uint32_t group)
{
    const uint32_t row = thread_index() / 16, pieces = args->blocks_kept * (uint32_t)dot_pieces(type);
    const uint8_t *begin = stage_row_begin(args, group, row);
    const uint32_t skew = (uint32_t)((uintptr_t)begin & 15);
    stage_source from;
    from.row = begin - skew;
    from.left = skew + args->blocks * (uint32_t)block_bytes(type);
    from.slot = row * stage_slot_bytes(type) / 4;
    from.codes = args->codes + (uint64_t)group * pieces * args->width * 8;
    from.factors = args->factors + (uint64_t)group * args->blocks_kept * QUANT_FEW_COLUMNS;
    from.sums = args->sums + (uint64_t)group * pieces * QUANT_FEW_COLUMNS;
    from.blocks = args->blocks_kept;
    from.width = args->width;
    return from;
}

/* `words` from the begin of chunk `chunk` of something of which there are `all`; both in fours. */
DEVICE void stage_fetch_words(uint32_t *to, const uint32_t *from, uint32_t chunk, uint32_t words, uint32_t all)
{
    const uint32_t done = chunk * words, left = all - done < words ? all - done : words;
    for (uint32_t i = thread_index() * 4; i < left; i += QUANT_THREADS * 4)
        copy_16(AT_RANGE(to, i, 4), from + done + i);
}

/* Begins to copy chunk number `chunk` into a stage. The last 16 bytes of a row may reach into the next, or into the padding
 * behind the last. */
DEVICE void stage_fetch(int32_t type, const stage_source *from, uint32_t chunk, uint32_t *stage)
{
    const uint32_t pieces = stage_chunk_bytes(type) / 16 + 1, done = chunk * stage_chunk_bytes(type);
    const uint32_t blocks = stage_blocks(type), parts = (uint32_t)dot_pieces(type);
    if (chunk * blocks >= from->blocks)
        return;
    const uint8_t *row = from->row + done;
    const uint32_t left = from->left - done;
    UNROLL
    for (uint32_t m = 0; m < (pieces + 15) / 16; m++) {
        const uint32_t piece = thread_index() % 16 + 16 * m;
        if (piece < pieces && done < from->left && piece * 16 < left)
            copy_16(AT_RANGE(stage, from->slot + piece * 4, 4), (const uint32_t *)(row + piece * 16));
    }
    stage_fetch_words(stage + stage_factors_at(type) / 4, (const uint32_t *)from->factors, chunk, blocks * QUANT_FEW_COLUMNS,
                      from->blocks * QUANT_FEW_COLUMNS);
    if (dot_has_min(type))
        stage_fetch_words(stage + stage_sums_at(type) / 4, from->sums, chunk, blocks * parts * QUANT_FEW_COLUMNS,
                          from->blocks * parts * QUANT_FEW_COLUMNS);
    stage_fetch_words(stage + stage_codes_at(type) / 4, from->codes, chunk, blocks * parts * from->width * 8,
                      from->blocks * parts * from->width * 8);
}

#endif

#endif
