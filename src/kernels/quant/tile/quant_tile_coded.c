/* Activations that are coded already, laid out for products by tiles (quant_tile_columns.h): what the blocks of q8_1 or q8_k
 * have. Blocks are a multiple of four bytes, and so is what is before their codes.
 */
#include "kernels/quant/tile/quant_tile_columns.h"

/* Block `block` of the column of this thread, of a format of `bytes`. One that is not there is told by a flag, not by a null
 * address: clang 19 loads from that on NVIDIA's chips in spite of the test. */
typedef struct coded_block {
    const uint8_t *bytes;
    bool present;
} coded_block;

DEVICE coded_block coded_block_of(const quant_tile_activations_args *args, const column_position *at, uint32_t block,
                                  uint32_t bytes)
{
    const bool present = at->exists && block < args->blocks;
    const uint64_t offset = present ? at->column * args->from_stride + (uint64_t)block * bytes : 0;
    return (coded_block){(const uint8_t *)args->from + offset, present};
}

DEVICE uint32_t coded_word(coded_block block, uint32_t word)
{
    return block.present ? ((const uint32_t *)(const void *)block.bytes)[1 + word] : 0;
}

KERNEL(quant_tile_coded_block32, quant_tile_activations_args, QUANT_THREADS)
{
    SHARED(float, factors, 32 * COLUMN_BESIDE);
    SHARED(float, sums, 32 * COLUMN_BESIDE);
    launches_wait();
    launches_next();
    const column_position at = column_position_of(&args);
    const uint32_t first = at.unit * 32 + at.group * 8;
    int32_t found[COLUMN_PIECES];
    UNROLL
    for (uint32_t i = 0; i < COLUMN_PIECES; i++) {
        const uint32_t word = coded_word(coded_block_of(&args, &at, first + i, sizeof(block_q8_1)), at.in_group);
        found[i] = dot4_i8(word, 0x01010101u, 0);
        column_put_block32_word(&args, &at, i, word);
    }
    column_halve(true, found, 8, 4);
    column_halve(true, found, 4, 2);
    column_halve(true, found, 2, 1);
    const coded_block own = coded_block_of(&args, &at, first + at.in_group, sizeof(block_q8_1));
    column_put_block32(&args, &at, own.present ? words_f16(own.bytes) : 0.0f, found[0], factors, sums);
}

/* This lane's word of piece `i` of the block at `position`. */
DEVICE void coded_put_kblock_word(const quant_tile_activations_args *args, const column_position *at, uint32_t position,
                                  uint32_t i, uint32_t word)
{
    if (!at->exists)
        return;
    if (QUANT_LAYOUT_OF(args->layout) != QUANT_LAYOUT_TILES)
        args->codes[quant_wgmma_kblock_word(at->column, position, args->blocks_padded, 1, i * 8 + at->in_group)] = word;
    else
        args->codes[(((uint64_t)at->column * args->blocks_padded + position) * 8 + i) * 8 + at->in_group] = word;
}

KERNEL(quant_tile_coded_kblock, quant_tile_activations_args, QUANT_THREADS)
{
    SHARED(u32x4, records, 4 * QUANT_COLUMNS * QUANT_RECORD / 4);
    launches_wait();
    launches_next();
    const column_position at = column_position_of(&args);
    const uint32_t number = at.unit * 4 + at.group, position = quant_position(number, args.blocks_padded);
    const coded_block block = coded_block_of(&args, &at, number, sizeof(block_q8_k));
    int32_t sums[COLUMN_PIECES];
    UNROLL
    for (uint32_t i = 0; i < COLUMN_PIECES; i++) {
        const uint32_t word = coded_word(block, i * 8 + at.in_group);
        sums[i] = dot4_i8(word, 0x01010101u, 0);
        coded_put_kblock_word(&args, &at, position, i, word);
    }
    const uint32_t place = at.group * QUANT_COLUMNS + thread_index() / QUANT_TEAM;
    u32x4 *record = AT_RANGE(records, place * (QUANT_RECORD / 4), QUANT_RECORD / 4);
    column_put_sums(sums, at.in_group, (int8_t *)record);
    if (at.in_group < 4)
        ((float *)record)[8 + at.in_group] =
            at.in_group > 0 || !block.present ? 0.0f : *(const float *)(const void *)block.bytes;
    barrier();
    column_put_records(&args, at.unit, records);
}
