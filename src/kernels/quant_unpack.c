/* Quantized weights unpacked for tiles: codes become signed bytes, in the order of classes (quant.h). Bound by memory; a thread
 * has 32 elements, and the threads of a row are neighbours.
 */
#include "kernels/quant.h"
#include "kernels/quant_words.h"

/* Piece p of a block, whose scales and minima are bytes 2p and 2p + 1 of a record. */
DEVICE void unpack_scales(int32_t type, const uint8_t *block, uint32_t p, uint32_t *record)
{
    const words_scales s = words_scales_of(type, block);
    const dot_factors factors = words_factors(type, block);
    uint32_t scales = 0x0101, mins = 0;
    if (words_runs_of_16(type)) {
        const uint32_t word = p / 2, shift = p % 2 * 16;
        scales = (word == 0 ? s.scales[0] : word == 1 ? s.scales[1] : word == 2 ? s.scales[2] : s.scales[3]) >> shift;
        mins = (word == 0 ? s.mins[0] : word == 1 ? s.mins[1] : word == 2 ? s.mins[2] : s.mins[3]) >> shift;
    } else if (type != BLOCK_Q8_K) {
        scales = ((p < 4 ? s.scales[0] : s.scales[1]) >> p % 4 * 8 & 255) * 0x0101;
        mins = ((p < 4 ? s.mins[0] : s.mins[1]) >> p % 4 * 8 & 255) * 0x0101;
    }
    ((uint16_t *)record)[p] = (uint16_t)scales;
    ((uint16_t *)record)[8 + p] = (uint16_t)mins;
    if (p == 0) {
        ((float *)record)[8] = factors.d;
        ((float *)record)[9] = factors.min;
    }
}

/* One piece at its place; of a row or a block that is not there, zeros. */
DEVICE void unpack_piece(int32_t type, const quant_unpack_args *args, const uint8_t *block, uint64_t place, uint32_t p)
{
    const uint32_t pieces = (uint32_t)dot_pieces(type);
    uint32_t words[8];
    UNROLL
    for (int32_t i = 0; i < 8; i++)
        words[i] = block ? words_of(type, block, (int32_t)p, i / 4, i % 4) : 0;
    u32x4 *to = (u32x4 *)(args->codes + (place * pieces + p) * 8);
    const u32x4 first = {words[0], words[1], words[2], words[3]}, second = {words[4], words[5], words[6], words[7]};
    to[0] = first;
    to[1] = second;
    if (pieces == 1) {
        dot_factors factors = {0.0f, 0.0f};
        if (block)
            factors = words_factors(type, block);
        args->factors[place] = factors.d;
        args->mins[place] = factors.min;
        return;
    }
    uint32_t *record = args->records + place * QUANT_RECORD;
    if (block) {
        unpack_scales(type, block, p, record);
        return;
    }
    record[p] = 0;
    if (p < QUANT_RECORD - 8)
        record[8 + p] = 0;
}

KERNEL(quant_unpack, quant_unpack_args, QUANT_THREADS)
{
    const uint64_t thread = (uint64_t)block_index() * QUANT_THREADS + thread_index();
    const uint32_t pieces = (uint32_t)dot_pieces(args.type), kept = args.blocks_kept * pieces;
    const uint64_t row = thread / kept;
    const uint32_t piece = (uint32_t)(thread % kept), number = piece / pieces, p = piece % pieces;
    if (row >= args.places)
        return;
    const bool there = row < args.rows && number < args.blocks;
    const uint8_t *block =
        there ? args.weights + row * args.weights_stride + (uint64_t)number * (uint64_t)block_bytes(args.type) : NULL;
    const uint64_t place =
        row * args.blocks_kept + number % QUANT_CLASSES * (args.blocks_kept / QUANT_CLASSES) + number / QUANT_CLASSES;
    switch (args.type) {
#define QUANT_FORMAT(name, type)                                                                                               \
    case type:                                                                                                                 \
        unpack_piece(type, &args, block, place, p);                                                                            \
        break;
        QUANT_FORMATS(QUANT_FORMAT)
#undef QUANT_FORMAT
    default:
        break;
    }
}
