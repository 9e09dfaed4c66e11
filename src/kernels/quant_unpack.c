/* Quantized weights unpacked for tiles: codes become signed bytes, in the order of their places (quant.h). Bound by memory.
 *
 * A thread has 16 elements at a time, so that neighbours write without gaps. Small blocks go through shared memory, read as
 * they lie and written as they will lie: 256 of a row, those of one accumulator by the threads of one team.
 */
#include "kernels/quant.h"
#include "kernels/quant_words.h"

/* Half of a piece, 16 codes; of one that is not there, zeros. */
DEVICE u32x4 unpack_words(int32_t type, const uint8_t *block, bool there, uint32_t p, uint32_t half)
{
    uint32_t words[4];
    UNROLL
    for (int32_t i = 0; i < 4; i++)
        words[i] = there ? words_of(type, block, (int32_t)p, (int32_t)half, i) : 0;
    const u32x4 four = {words[0], words[1], words[2], words[3]};
    return four;
}

/* ---- large blocks -------------------------------------------------------------------------------------------------------- */

/* Minima of runs 2p and 2p + 1, and the factors of a block. */
DEVICE void unpack_record(int32_t type, const uint8_t *block, const words_scales *s, uint32_t p, uint32_t *record)
{
    const dot_factors factors = words_factors(type, block);
    ((uint16_t *)record)[p] = (uint16_t)(words_mins(type, s, p / 2) >> p % 2 * 16);
    if (p == 0) {
        ((float *)record)[8] = factors.d;
        ((float *)record)[9] = factors.min;
    }
}

/* The scale of half a piece. */
DEVICE int32_t unpack_scale(int32_t type, const words_scales *s, uint32_t p, uint32_t half)
{
    if (type == BLOCK_Q8_K)
        return 1;
    const uint32_t run = words_runs_of_16(type) ? 2 * p + half : p, word = run / 4;
    const uint32_t four = word == 0 ? s->scales[0] : word == 1 ? s->scales[1] : word == 2 ? s->scales[2] : s->scales[3];
    return (int8_t)(four >> run % 4 * 8);
}

/* Four codes times their scale, |code * scale| <= 4096, as upper and lower bytes. Two codes at a time, 128 too large, so that
 * they are not negative, nor, 8192 too large, are the products: no half of a word borrows from the other. */
DEVICE void unpack_split(uint32_t codes, int32_t scale, uint32_t *upper, uint32_t *lower)
{
    const uint32_t s = (uint32_t)scale, back = (8192u - 128u * s) * 0x00010001u, word = codes ^ 0x80808080u;
    const uint32_t even = (word & 0x00ff00ffu) * s + back, odd = (word >> 8 & 0x00ff00ffu) * s + back;
    *lower = (even & 0x007f007fu) | (odd & 0x007f007fu) << 8;
    *upper = words_less((even >> 7 & 0x007f007fu) | (odd >> 7 & 0x007f007fu) << 8, 64);
}

DEVICE void unpack_large(int32_t type, const quant_unpack_args *args, uint32_t row)
{
    const uint32_t number = block_index() * QUANT_THREADS + thread_index(), half = number % 2, p = number / 2 % 8;
    const uint32_t block = number / 16;
    if (block >= args->blocks_kept)
        return;
    const bool there = row < args->rows && block < args->blocks;
    const uint8_t *from = args->weights;
    if (there)
        from += row * args->weights_stride + (uint64_t)block * (uint32_t)block_bytes(type);
    const uint64_t place = (uint64_t)row * args->blocks_kept + quant_place(block, args->blocks_kept);
    const words_scales s = words_scales_of(type, from);
    const u32x4 codes = unpack_words(type, from, there, p, half);
    const int32_t scale = unpack_scale(type, &s, p, half);
    u32x4 upper, lower;
    unpack_split(codes.x, scale, &upper.x, &lower.x);
    unpack_split(codes.y, scale, &upper.y, &lower.y);
    unpack_split(codes.z, scale, &upper.z, &lower.z);
    unpack_split(codes.w, scale, &upper.w, &lower.w);
    const bool wide = args->tiles == QUANT_FOR_LARGE_TILES;
    const uint32_t at = quant_place(block, args->blocks_kept);
    u32x4 *to = wide ? (u32x4 *)(args->codes + quant_large_word(row, at, args->blocks_kept, 2, p * 8 + half * 4))
                     : (u32x4 *)args->codes + place * 32 + p / 2 * 8 + p % 2 * 2 + half;
    to[0] = upper;
    to[wide ? QUANT_TILE * QUANT_TILE_RUN / 16 : 4] = lower;
    uint32_t *record = args->records + (wide ? quant_together(row, at, args->blocks_kept, QUANT_TILE) : place) * QUANT_RECORD;
    if (half == 0 && there)
        unpack_record(type, from, &s, p, record);
    if (half == 0 && !there) {
        record[p] = 0;
        if (p < QUANT_RECORD - 8)
            record[8 + p] = 0;
    }
}

/* ---- small blocks -------------------------------------------------------------------------------------------------------- */

/* Bytes that a row of blocks takes in shared memory, wherever it begins; a multiple of 16. */
DEVICE uint32_t unpack_room(int32_t type)
{
    return ((uint32_t)block_bytes(type) * QUANT_UNPACK_BLOCKS + 15 + 15) / 16 * 16;
}

DEVICE const uint8_t *unpack_begin(int32_t type, const quant_unpack_args *args, uint32_t row)
{
    return args->weights + row * args->weights_stride + block_index() * QUANT_UNPACK_BLOCKS * (uint32_t)block_bytes(type);
}

/* Where in their 16 bytes the blocks of a row begin. */
DEVICE uint32_t unpack_skew(int32_t type, const quant_unpack_args *args, uint32_t row)
{
    return (uint32_t)((uintptr_t)unpack_begin(type, args, row) & 15);
}

/* A team for each row brings its blocks, or what is left of it. */
DEVICE void unpack_fetch(int32_t type, const quant_unpack_args *args, uint32_t first_row, uint32_t *shared)
{
    const uint32_t team = thread_index() / QUANT_TEAM, row = first_row + team, size = (uint32_t)block_bytes(type);
    const uint32_t first = block_index() * QUANT_UNPACK_BLOCKS;
    if (row >= args->rows || first >= args->blocks)
        return;
    const uint32_t left = args->blocks - first, count = left < QUANT_UNPACK_BLOCKS ? left : QUANT_UNPACK_BLOCKS;
    const uint32_t skew = unpack_skew(type, args, row), room = unpack_room(type) / 4;
    const uint8_t *begin = unpack_begin(type, args, row) - skew;
    for (uint32_t i = thread_index() % QUANT_TEAM * 16; i < skew + count * size; i += QUANT_TEAM * 16)
        *(u32x4 *)AT_RANGE(shared, team * room + i / 4, 4) = load_u32x4((const uint32_t *)(const void *)(begin + i));
}

/* By eight threads those of eight rows, which lie side by side. */
DEVICE void unpack_factors(int32_t type, const quant_unpack_args *args, uint32_t first_row, const uint8_t *bytes)
{
    const uint32_t in_rows = thread_index() % QUANT_UNPACK_ROWS, local = thread_index() / QUANT_UNPACK_ROWS;
    const uint32_t row = first_row + in_rows, block = block_index() * QUANT_UNPACK_BLOCKS + local;
    const uint32_t size = (uint32_t)block_bytes(type);
    const uint64_t at = quant_beside(quant_place(block, args->blocks_kept), row, args->places);
    dot_factors factors = {0.0f, 0.0f};
    if (row < args->rows && block < args->blocks)
        factors = words_factors(
            type, AT_RANGE(bytes, in_rows * unpack_room(type) + unpack_skew(type, args, row) + local * size, size));
    args->factors[at] = factors.d;
    if (dot_has_min(type))
        args->mins[at] = factors.min;
}

DEVICE void unpack_small(int32_t type, const quant_unpack_args *args, uint32_t *shared, const uint8_t *bytes)
{
    const uint32_t first_row = args->first_row + block_index_y() * QUANT_UNPACK_ROWS, size = (uint32_t)block_bytes(type);
    unpack_fetch(type, args, first_row, shared);
    barrier();
    UNROLL
    for (uint32_t i = thread_index(); i < 2 * QUANT_THREADS; i += QUANT_THREADS) {
        const uint32_t half = i % 2, local = i / 2 % 4 * 8 + i / 8 % 8, in_rows = i / 64, row = first_row + in_rows;
        const uint32_t block = block_index() * QUANT_UNPACK_BLOCKS + local, place = quant_place(block, args->blocks_kept);
        const bool there = row < args->rows && block < args->blocks;
        const uint32_t at = in_rows * unpack_room(type) + unpack_skew(type, args, row) + local * size;
        ((u32x4 *)args->codes)[((uint64_t)row * args->blocks_kept + place) * 2 + half] =
            unpack_words(type, AT_RANGE(bytes, at, size), there, 0, half);
    }
    unpack_factors(type, args, first_row, bytes);
}

KERNEL(quant_unpack, quant_unpack_args, QUANT_THREADS)
{
    SHARED_DYNAMIC(uint32_t, shared);
    SHARED_DYNAMIC(uint8_t, bytes); /* the same */
    switch (args.type) {
#define QUANT_FORMAT(name, type)                                                                                               \
    case type:                                                                                                                 \
        if (dot_pieces(type) == 1)                                                                                             \
            unpack_small(type, &args, shared, bytes);                                                                          \
        else                                                                                                                   \
            unpack_large(type, &args, args.first_row + block_index_y());                                                       \
        break;
        QUANT_FORMATS(QUANT_FORMAT)
#undef QUANT_FORMAT
    default:
        break;
    }
}
