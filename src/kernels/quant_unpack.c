/* Quantized weights unpacked for tiles: codes become signed bytes, in the order of their places (quant.h). Bound by memory.
 *
 * A thread has 32 elements. Small blocks go through shared memory, read as they lie and written as they will lie: 256 of a row,
 * those of one accumulator by the threads of one team.
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

/* One piece at its place; of a row or a block that is not there, zeros. `block` can be read in any case. */
DEVICE void unpack_piece(int32_t type, const quant_unpack_args *args, const uint8_t *block, bool there, uint32_t row,
                         uint32_t number, uint32_t p)
{
    const uint32_t pieces = (uint32_t)dot_pieces(type), in_row = quant_place(number, args->blocks_kept);
    const uint64_t place = (uint64_t)row * args->blocks_kept + in_row;
    uint32_t words[8];
    UNROLL
    for (int32_t i = 0; i < 8; i++)
        words[i] = there ? words_of(type, block, (int32_t)p, i / 4, i % 4) : 0;
    u32x4 *to = (u32x4 *)(args->codes + (place * pieces + p) * 8);
    const u32x4 first = {words[0], words[1], words[2], words[3]}, second = {words[4], words[5], words[6], words[7]};
    to[0] = first;
    to[1] = second;
    if (pieces == 1) {
        dot_factors factors = {0.0f, 0.0f};
        if (there)
            factors = words_factors(type, block);
        args->factors[quant_beside(in_row, row, args->places)] = factors.d;
        if (dot_has_min(type))
            args->mins[quant_beside(in_row, row, args->places)] = factors.min;
        return;
    }
    uint32_t *record = args->records + place * QUANT_RECORD;
    if (there) {
        unpack_scales(type, block, p, record);
        return;
    }
    record[p] = 0;
    if (p < QUANT_RECORD - 8)
        record[8 + p] = 0;
}

/* Bytes of a row from number `from` on, QUANT_THREADS small blocks or what is left of it, in shared memory from `skew` on. */
DEVICE uint32_t unpack_fetch(const quant_unpack_args *args, uint32_t row, uint32_t from, uint32_t bytes, uint32_t *shared)
{
    const uint8_t *begin = args->weights + row * args->weights_stride + from;
    const uint32_t skew = (uint32_t)((uintptr_t)begin & 15), left = (uint32_t)args->weights_stride - from;
    const uint32_t wanted = skew + (bytes < left ? bytes : left);
    for (uint32_t i = thread_index() * 16; i < wanted; i += QUANT_THREADS * 16)
        *(u32x4 *)AT_RANGE(shared, i / 4, 4) = load_u32x4((const uint32_t *)(const void *)(begin - skew + i));
    return skew;
}

DEVICE void unpack_small(int32_t type, const quant_unpack_args *args, uint32_t row, uint32_t *shared, const uint8_t *bytes)
{
    const uint32_t team = thread_index() / QUANT_TEAM, local = thread_index() % QUANT_TEAM * 8 + team;
    const uint32_t first = block_index() * QUANT_THREADS, size = (uint32_t)block_bytes(type), block = first + local;
    const bool row_there = row < args->rows;
    const uint32_t skew =
        row_there && first < args->blocks ? unpack_fetch(args, row, first * size, QUANT_THREADS * size, shared) : 0;
    barrier();
    if (block >= args->blocks_kept)
        return;
    unpack_piece(type, args, AT_RANGE(bytes, skew + local * size, size), row_there && block < args->blocks, row, block, 0);
}

DEVICE void unpack_large(int32_t type, const quant_unpack_args *args, uint32_t row)
{
    const uint32_t piece = block_index() * QUANT_THREADS + thread_index(), block = piece / 8;
    if (block >= args->blocks_kept)
        return;
    const bool there = row < args->rows && block < args->blocks;
    const uint8_t *from = args->weights;
    if (there)
        from += row * args->weights_stride + (uint64_t)block * (uint32_t)block_bytes(type);
    unpack_piece(type, args, from, there, row, block, piece % 8);
}

KERNEL(quant_unpack, quant_unpack_args, QUANT_THREADS)
{
    SHARED_DYNAMIC(uint32_t, shared);
    SHARED_DYNAMIC(uint8_t, bytes); /* the same */
    const uint32_t row = args.first_row + block_index_y();
    switch (args.type) {
#define QUANT_FORMAT(name, type)                                                                                               \
    case type:                                                                                                                 \
        if (dot_pieces(type) == 1)                                                                                             \
            unpack_small(type, &args, row, shared, bytes);                                                                     \
        else                                                                                                                   \
            unpack_large(type, &args, row);                                                                                    \
        break;
        QUANT_FORMATS(QUANT_FORMAT)
#undef QUANT_FORMAT
    default:
        break;
    }
}
