/* Unpacks quantized weights for tiles: codes become signed bytes, in the order of quant_position() (quant.h). Memory-bound.
 *
 * A thread block takes unit after unit, each 1024 elements of eight rows. It copies their bytes unchanged to shared memory, and
 * loads the next units while it works on one. A thread has 16 elements at a time, and neighbouring threads write adjacent
 * memory: for blocks of 32 those of one accumulator, for K blocks the same quarter of a block of all rows.
 */
#include "kernels/quant/quant.h"
#include "kernels/quant/quant_words.h"

/* ---- units --------------------------------------------------------------------------------------------------------------- */

/* The first row and block. */
typedef struct unpack_unit {
    uint32_t row, block;
} unpack_unit;

/* Blocks of a row in a unit. */
DEVICE uint32_t unpack_blocks(int32_t type)
{
    return QUANT_UNPACK_ELEMENTS / (uint32_t)block_elements(type);
}

/* Bytes of a row in a stage. */
DEVICE uint32_t unpack_row_bytes(int32_t type)
{
    return quant_unpack_stage((uint32_t)block_bytes(type), (uint32_t)block_elements(type)) / QUANT_UNPACK_ROWS;
}

/* Offset of a row of a unit from a multiple of 16 bytes. */
DEVICE uint32_t unpack_skew(int32_t type, const quant_unpack_args *args, unpack_unit unit, uint32_t in_unit)
{
    const uint32_t weights = (uint32_t)(uintptr_t)args->weights, stride = (uint32_t)args->weights_stride;
    return (weights + (unit.row + in_unit) * stride + unit.block * (uint32_t)block_bytes(type)) & 15;
}

/* Block `local` of a row in a stage. */
DEVICE const uint8_t *unpack_block(int32_t type, const quant_unpack_args *args, unpack_unit unit, uint32_t in_unit,
                                   uint32_t local, const uint8_t *stage)
{
    const uint32_t size = (uint32_t)block_bytes(type);
    return AT_RANGE(stage, in_unit * unpack_row_bytes(type) + unpack_skew(type, args, unit, in_unit) + local * size, size);
}

DEVICE bool unpack_exists(const quant_unpack_args *args, unpack_unit unit, uint32_t in_unit, uint32_t local)
{
    return unit.row + in_unit < args->rows && unit.block + local < args->blocks;
}

/* Loads the blocks of each row that are left, one team per row. */
DEVICE void unpack_fetch(int32_t type, const quant_unpack_args *args, unpack_unit unit, uint32_t *stage)
{
    const uint32_t team = thread_index() / QUANT_TEAM, size = (uint32_t)block_bytes(type);
    if (!unpack_exists(args, unit, team, 0))
        return;
    const uint32_t left = args->blocks - unit.block, count = left < unpack_blocks(type) ? left : unpack_blocks(type);
    const uint32_t skew = unpack_skew(type, args, unit, team), bytes = skew + count * size;
    const uint8_t *begin = args->weights + (unit.row + team) * args->weights_stride + (uint64_t)unit.block * size - skew;
    UNROLL
    for (uint32_t i = 0; i < unpack_row_bytes(type); i += QUANT_TEAM * 16) {
        const uint32_t at = i + thread_index() % QUANT_TEAM * 16;
        if (at < bytes)
            copy_16(AT_RANGE(stage, (team * unpack_row_bytes(type) + at) / 4, 4), (const uint32_t *)(const void *)(begin + at));
    }
}

/* Half of a piece, 16 codes. Zeros for a block that does not exist; its bytes can still be read. */
DEVICE u32x4 unpack_words(int32_t type, const uint8_t *block, bool exists, uint32_t p, uint32_t half)
{
    uint32_t words[4];
    UNROLL
    for (int32_t i = 0; i < 4; i++)
        words[i] = words_of_aligned(type, WORDS_PAIRED, block, (int32_t)p, (int32_t)half, i);
    const u32x4 four = {exists ? words[0] : 0, exists ? words[1] : 0, exists ? words[2] : 0, exists ? words[3] : 0};
    return four;
}

/* ---- K blocks ------------------------------------------------------------------------------------------------------------ */

/* The scale of half a piece. */
DEVICE int32_t unpack_scale(int32_t type, const uint8_t *block, uint32_t p, uint32_t half)
{
    const int32_t sub_block = (int32_t)(words_sub_blocks_of_16(type) ? 2 * p + half : p);
    switch (type) {
    case BLOCK_Q2_K:
        return ((const block_q2_k *)block)->scales[sub_block] & 15;
    case BLOCK_Q3_K:
        return scale_q3_k((const block_q3_k *)block, sub_block);
    case BLOCK_Q4_K:
        return scale_q4_k(((const block_q4_k *)block)->scales, sub_block);
    case BLOCK_Q5_K:
        return scale_q4_k(((const block_q5_k *)block)->scales, sub_block);
    case BLOCK_Q6_K:
        return ((const block_q6_k *)block)->scales[sub_block];
    case BLOCK_IQ4_XS:
        return scale_iq4_xs((const block_iq4_xs *)block, sub_block);
    default: /* q8_k */
        return 1;
    }
}

/* Interleaves the lowest bytes of the halves of two words, `even` first. */
DEVICE uint32_t unpack_weave(uint32_t even, uint32_t odd)
{
    return (even & 0x00ff00ffu) | (odd << 8 & 0xff00ff00u);
}

/* Multiplies four codes by their scale, |code * scale| <= 4096, and splits the products into upper and lower bytes. Works on
 * two codes per word. Adding 128 to codes and 32768 to products keeps both from being negative, so no half of a word borrows
 * from the other, and bits 7 to 14 of each product are the upper byte with its sign. */
DEVICE void unpack_split(uint32_t codes, int32_t scale, uint32_t *upper, uint32_t *lower)
{
    const uint32_t s = (uint32_t)scale, back = (32768u - 128u * s) * 0x00010001u, word = codes ^ 0x80808080u;
    const uint32_t even = (word & 0x00ff00ffu) * s + back, odd = (word >> 8 & 0x00ff00ffu) * s + back;
    *lower = unpack_weave(even, odd) & 0x7f7f7f7fu;
    *upper = unpack_weave(even >> 7, odd >> 7);
}

/* Writes records, three threads each: the minima of all sub-blocks, zeros, and the factors of a block. */
DEVICE void unpack_records(int32_t type, const quant_unpack_args *args, unpack_unit unit, const uint8_t *stage)
{
    const uint32_t number = thread_index() / 3, part = thread_index() % 3;
    const uint32_t in_unit = number % QUANT_UNPACK_ROWS, local = number / QUANT_UNPACK_ROWS;
    if (local >= unpack_blocks(type))
        return;
    u32x4 words = {0, 0, 0, 0};
    if (unpack_exists(args, unit, in_unit, local)) {
        const uint8_t *block = unpack_block(type, args, unit, in_unit, local, stage);
        if (part == 0 && dot_has_min(type)) {
            const words_scales s = words_scales_of(type, block);
            words.x = words_mins(type, &s, 0);
            words.y = words_mins(type, &s, 1);
            words.z = words_mins(type, &s, 2);
            words.w = words_mins(type, &s, 3);
        }
        if (part == 2) {
            const dot_factors factors = words_factors(type, block);
            words.x = canon_float_bits(factors.d);
            words.y = canon_float_bits(factors.min);
        }
    }
    const uint32_t position = quant_position(unit.block + local, args->blocks_padded), row = unit.row + in_unit;
    ((u32x4 *)args->records)[quant_record_part(args->layout, row, position, args->blocks_padded, part)] = words;
}

/* The two pieces of a block that a thread has half of. Both come from the same bytes, which are read once. */
DEVICE uint32_t unpack_piece(int32_t type, uint32_t n)
{
    const uint32_t a = thread_index() / 2 % 2, b = thread_index() / 32 % 2;
    return type == BLOCK_Q4_K || type == BLOCK_Q5_K ? b * 4 + a * 2 + n : b * 4 + n * 2 + a;
}

DEVICE void unpack_kblock(int32_t type, const quant_unpack_args *args, unpack_unit unit, const uint8_t *stage)
{
    const uint32_t half = thread_index() % 2, in_unit = thread_index() / 4 % QUANT_UNPACK_ROWS, local = thread_index() / 64;
    const uint32_t row = unit.row + in_unit, position = quant_position(unit.block + local, args->blocks_padded);
    const bool exists = unpack_exists(args, unit, in_unit, local);
    const bool slabs = QUANT_LAYOUT_OF(args->layout) != QUANT_LAYOUT_TILES;
    const uint8_t *block = unpack_block(type, args, unit, in_unit, local, stage);
    UNROLL
    for (uint32_t n = 0; n < 2; n++) {
        const uint32_t p = unpack_piece(type, n);
        const u32x4 codes = unpack_words(type, block, exists, p, half);
        const int32_t scale = unpack_scale(type, block, p, half);
        u32x4 upper, lower;
        unpack_split(codes.x, scale, &upper.x, &lower.x);
        unpack_split(codes.y, scale, &upper.y, &lower.y);
        unpack_split(codes.z, scale, &upper.z, &lower.z);
        unpack_split(codes.w, scale, &upper.w, &lower.w);
        u32x4 *to =
            slabs ? (u32x4 *)(args->codes + quant_wgmma_kblock_word(row, position, args->blocks_padded, 2, p * 8 + half * 4))
                  : (u32x4 *)args->codes + ((uint64_t)row * args->blocks_padded + position) * 32 + p / 2 * 8 + p % 2 * 2 + half;
        to[0] = upper;
        to[slabs ? QUANT_TILE * QUANT_SLAB_ROW_BYTES / 16 : 4] = lower;
    }
    unpack_records(type, args, unit, stage);
}

/* ---- blocks of 32 -------------------------------------------------------------------------------------------------------- */

/* Eight threads write the factors of eight rows, which are adjacent. */
DEVICE void unpack_factors(int32_t type, const quant_unpack_args *args, unpack_unit unit, const uint8_t *stage)
{
    const uint32_t in_unit = thread_index() % QUANT_UNPACK_ROWS, local = thread_index() / QUANT_UNPACK_ROWS;
    const uint32_t position = quant_position(unit.block + local, args->blocks_padded);
    const uint64_t at = QUANT_LAYOUT_OF(args->layout) == QUANT_LAYOUT_WGMMA
                            ? quant_tiled_index(unit.row + in_unit, position, args->blocks_padded, QUANT_TILE)
                            : quant_scale_index(position, unit.row + in_unit, args->rows_padded);
    dot_factors factors = {0.0f, 0.0f};
    if (unpack_exists(args, unit, in_unit, local))
        factors = words_factors(type, unpack_block(type, args, unit, in_unit, local, stage));
    args->factors[at] = factors.d;
    if (dot_has_min(type))
        args->mins[at] = factors.min;
}

DEVICE void unpack_block32(int32_t type, const quant_unpack_args *args, unpack_unit unit, const uint8_t *stage)
{
    UNROLL
    for (uint32_t n = 0; n < 2; n++) {
        const bool slabs = QUANT_LAYOUT_OF(args->layout) != QUANT_LAYOUT_TILES; /* two blocks of each row are adjacent */
        const uint32_t i = n * QUANT_THREADS + thread_index(), half = i % 2;
        const uint32_t local = slabs ? i / 2 % 2 * 8 + i / 32 % 2 * 16 + i / 64 : i / 2 % 4 * 8 + i / 8 % 8;
        const uint32_t in_unit = slabs ? i / 4 % 8 : i / 64, row = unit.row + in_unit;
        const uint32_t position = quant_position(unit.block + local, args->blocks_padded);
        const u32x4 words = unpack_words(type, unpack_block(type, args, unit, in_unit, local, stage),
                                         unpack_exists(args, unit, in_unit, local), 0, half);
        if (slabs)
            *(u32x4 *)(args->codes + quant_wgmma_block32_word(row, position, args->blocks_padded, half * 4)) = words;
        else
            ((u32x4 *)args->codes)[((uint64_t)row * args->blocks_padded + position) * 2 + half] = words;
    }
    unpack_factors(type, args, unit, stage);
}

/* ---- all of it ----------------------------------------------------------------------------------------------------------- */

DEVICE void unpack_all(int32_t type, const quant_unpack_args *args, uint32_t *shared, const uint8_t *bytes)
{
    const uint32_t room = unpack_row_bytes(type) * QUANT_UNPACK_ROWS, more = block_count() * unpack_blocks(type);
    const uint32_t ahead = args->stages - 1;
    unpack_unit unit = {block_index_y() * QUANT_UNPACK_ROWS, block_index() * unpack_blocks(type)};
    UNROLL_BY(1)
    for (uint32_t i = 0; i < ahead; i++) {
        const unpack_unit next = {unit.row, unit.block + i * more};
        unpack_fetch(type, args, next, AT_RANGE(shared, i * (room / 4), room / 4));
        copies_commit();
    }
    if (!args->independent)
        launches_wait();
    uint32_t now = 0;
    UNROLL_BY(1)
    for (; unit.block < args->blocks_padded; unit.block += more) {
        if (ahead > 1)
            copies_wait(1);
        else
            copies_wait(0);
        barrier(); /* also: no thread still reads the previous stage */
        const unpack_unit next = {unit.row, unit.block + ahead * more};
        unpack_fetch(type, args, next, AT_RANGE(shared, (now == 0 ? ahead : now - 1) * (room / 4), room / 4));
        copies_commit();
        if (dot_pieces(type) == 1)
            unpack_block32(type, args, unit, AT_RANGE(bytes, now * room, room));
        else
            unpack_kblock(type, args, unit, AT_RANGE(bytes, now * room, room));
        now = now == ahead ? 0 : now + 1;
    }
    if (args->independent)
        launches_wait();
}

/* Separate kernels for blocks of 32 and for K blocks, which need more registers. */
#define UNPACK_KERNEL(kernel, pieces)                                                                                          \
    KERNEL(kernel, quant_unpack_args, QUANT_THREADS)                                                                           \
    {                                                                                                                          \
        SHARED_DYNAMIC(uint32_t, shared);                                                                                      \
        SHARED_DYNAMIC(uint8_t, bytes); /* the same */                                                                         \
        launches_next();                                                                                                       \
        switch (args.type) {                                                                                                   \
            BLOCK_FORMATS(pieces)                                                                                              \
        default:                                                                                                               \
            break;                                                                                                             \
        }                                                                                                                      \
    }
#define UNPACK_FORMAT(type, pieces)                                                                                            \
    case type:                                                                                                                 \
        if (dot_pieces(type) == (pieces))                                                                                      \
            unpack_all(type, &args, shared, bytes);                                                                            \
        break;
#define UNPACK_BLOCK32(name, type, ...) UNPACK_FORMAT(type, 1)
#define UNPACK_KBLOCK(name, type, ...)  UNPACK_FORMAT(type, 8)

UNPACK_KERNEL(quant_unpack_block32, UNPACK_BLOCK32)
UNPACK_KERNEL(quant_unpack_kblock, UNPACK_KBLOCK)
