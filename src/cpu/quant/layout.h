/* How rows of blocks are stored in the memory of a CPU: eight blocks at a time, a block group, are interleaved unit by unit.
 *
 * A block consists of units: four-byte words and, before or after them, f16 numbers; mxfp4 has a byte instead of these. In a
 * group, the same unit of all eight blocks is contiguous: byte o of a block becomes, for block l, byte 8 o + (bytes of the
 * unit) l. So one load reads the same word of eight blocks, products of eight blocks add up in eight lanes, and the eight
 * accumulators of a canonical product (arithmetic/blocks/dot.h) are one vector. The blocks after the last whole group of a row
 * are not interleaved, nor are f32, f16 and bf16. Nothing moves between rows, so rows can be views, and the layout can be
 * undone.
 */
#ifndef WW_CPU_QUANT_LAYOUT_H
#define WW_CPU_QUANT_LAYOUT_H

#include <string.h>

#include "arithmetic/blocks/blocks.h"

enum { BLOCK_GROUP = 8, GROUP_BYTES_MAX = BLOCK_GROUP * (int)sizeof(block_q8_k) };

#define LAYOUT_FUNCTION static inline __attribute__((always_inline))

typedef uint32_t group_words __attribute__((vector_size(32)));
typedef uint16_t group_halves __attribute__((vector_size(16)));

/* f16 numbers before the words of a block, and after them. */
LAYOUT_FUNCTION int32_t halves_before(int32_t type)
{
    switch (type) {
    case BLOCK_Q4_0:
    case BLOCK_Q5_0:
    case BLOCK_Q8_0:
    case BLOCK_IQ4_NL:
        return 1;
    case BLOCK_Q4_1:
    case BLOCK_Q5_1:
    case BLOCK_Q8_1:
    case BLOCK_Q4_K:
    case BLOCK_Q5_K:
    case BLOCK_IQ4_XS: /* the second is half of its scales */
        return 2;
    default:
        return 0;
    }
}

/* Returns the number of bytes before the words. */
LAYOUT_FUNCTION int32_t bytes_before(int32_t type)
{
    return type == BLOCK_MXFP4 ? 1 : 0;
}

/* Returns where the words of a block start. */
LAYOUT_FUNCTION int32_t words_begin(int32_t type)
{
    return bytes_before(type) + 2 * halves_before(type);
}

LAYOUT_FUNCTION int32_t halves_after(int32_t type)
{
    return type == BLOCK_Q2_K ? 2 : type == BLOCK_Q3_K || type == BLOCK_Q6_K ? 1 : 0;
}

LAYOUT_FUNCTION int32_t words_of(int32_t type)
{
    return (block_bytes(type) - words_begin(type) - 2 * halves_after(type)) / 4;
}

/* Returns the offset of half h of a block. Halves after the words are numbered after those before. */
LAYOUT_FUNCTION int32_t half_offset(int32_t type, int32_t h)
{
    return 2 * h + (h < halves_before(type) ? 0 : 4 * words_of(type));
}

/* ---- four words of eight blocks: 16 bytes of each block, or four vectors of eight words ---------------------------------- */

/* Transposes the two halves of four vectors, each as four times four words. Doing it twice restores the vectors. If registers
 * have 16 bytes, compilers make slow code of shuffles of 32 bytes. */
#if defined(__AVX2__)
LAYOUT_FUNCTION void words_transpose(group_words v[4])
{
    const group_words a = __builtin_shufflevector(v[0], v[1], 0, 8, 1, 9, 4, 12, 5, 13);
    const group_words b = __builtin_shufflevector(v[0], v[1], 2, 10, 3, 11, 6, 14, 7, 15);
    const group_words c = __builtin_shufflevector(v[2], v[3], 0, 8, 1, 9, 4, 12, 5, 13);
    const group_words d = __builtin_shufflevector(v[2], v[3], 2, 10, 3, 11, 6, 14, 7, 15);
    v[0] = __builtin_shufflevector(a, c, 0, 1, 8, 9, 4, 5, 12, 13);
    v[1] = __builtin_shufflevector(a, c, 2, 3, 10, 11, 6, 7, 14, 15);
    v[2] = __builtin_shufflevector(b, d, 0, 1, 8, 9, 4, 5, 12, 13);
    v[3] = __builtin_shufflevector(b, d, 2, 3, 10, 11, 6, 7, 14, 15);
}
#else
LAYOUT_FUNCTION void words_transpose(group_words v[4])
{
    typedef uint32_t four_words __attribute__((vector_size(16)));
    for (int32_t half = 0; half < 2; half++) {
        four_words w[4];
        for (int32_t i = 0; i < 4; i++)
            memcpy(&w[i], (const char *)&v[i] + 16 * half, sizeof w[i]);
        const four_words a = __builtin_shufflevector(w[0], w[1], 0, 4, 1, 5);
        const four_words b = __builtin_shufflevector(w[0], w[1], 2, 6, 3, 7);
        const four_words c = __builtin_shufflevector(w[2], w[3], 0, 4, 1, 5);
        const four_words d = __builtin_shufflevector(w[2], w[3], 2, 6, 3, 7);
        w[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
        w[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
        w[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
        w[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
        for (int32_t i = 0; i < 4; i++)
            memcpy((char *)&v[i] + 16 * half, &w[i], sizeof w[i]);
    }
}
#endif

LAYOUT_FUNCTION void four_words_interleave(const char *blocks, int32_t bytes, char *group)
{
    group_words v[4];
    for (int32_t l = 0; l < 4; l++) {
        memcpy(&v[l], blocks + l * bytes, 16);
        memcpy((char *)&v[l] + 16, blocks + (l + 4) * bytes, 16);
    }
    words_transpose(v);
    memcpy(group, v, sizeof v);
}

LAYOUT_FUNCTION void four_words_deinterleave(const char *group, char *blocks, int32_t bytes)
{
    group_words v[4];
    memcpy(v, group, sizeof v);
    words_transpose(v);
    for (int32_t l = 0; l < 4; l++) {
        memcpy(blocks + l * bytes, &v[l], 16);
        memcpy(blocks + (l + 4) * bytes, (const char *)&v[l] + 16, 16);
    }
}

/* ---- groups -------------------------------------------------------------------------------------------------------------- */

/* Interleaves eight contiguous blocks into a group elsewhere. */
LAYOUT_FUNCTION void group_interleave(int32_t type, const char *blocks, char *group)
{
    const int32_t bytes = block_bytes(type), first = words_begin(type), words = words_of(type);
    for (int32_t w = 0; w + 4 <= words; w += 4)
        four_words_interleave(blocks + first + 4 * w, bytes, group + BLOCK_GROUP * (first + 4 * w));
    for (int32_t w = words / 4 * 4; w < words; w++)
        for (int32_t l = 0; l < BLOCK_GROUP; l++)
            memcpy(group + BLOCK_GROUP * (first + 4 * w) + 4 * l, blocks + l * bytes + first + 4 * w, 4);
    for (int32_t h = 0; h < halves_before(type) + halves_after(type); h++)
        for (int32_t l = 0; l < BLOCK_GROUP; l++)
            memcpy(group + BLOCK_GROUP * half_offset(type, h) + 2 * l, blocks + l * bytes + half_offset(type, h), 2);
    for (int32_t l = 0; l < BLOCK_GROUP && bytes_before(type); l++)
        group[l] = blocks[l * bytes];
}

/* The reverse. */
LAYOUT_FUNCTION void group_deinterleave(int32_t type, const char *group, char *blocks)
{
    const int32_t bytes = block_bytes(type), first = words_begin(type), words = words_of(type);
    for (int32_t w = 0; w + 4 <= words; w += 4)
        four_words_deinterleave(group + BLOCK_GROUP * (first + 4 * w), blocks + first + 4 * w, bytes);
    for (int32_t w = words / 4 * 4; w < words; w++)
        for (int32_t l = 0; l < BLOCK_GROUP; l++)
            memcpy(blocks + l * bytes + first + 4 * w, group + BLOCK_GROUP * (first + 4 * w) + 4 * l, 4);
    for (int32_t h = 0; h < halves_before(type) + halves_after(type); h++)
        for (int32_t l = 0; l < BLOCK_GROUP; l++)
            memcpy(blocks + l * bytes + half_offset(type, h), group + BLOCK_GROUP * half_offset(type, h) + 2 * l, 2);
    for (int32_t l = 0; l < BLOCK_GROUP && bytes_before(type); l++)
        blocks[l * bytes] = group[l];
}

/* Makes a group of the last blocks of a row, fewer than eight, and blocks of zeros. */
LAYOUT_FUNCTION void group_of_rest(int32_t type, const char *blocks, int64_t count, char *group)
{
    _Alignas(32) char whole[GROUP_BYTES_MAX];
    memset(whole, 0, (size_t)BLOCK_GROUP * (size_t)block_bytes(type));
    memcpy(whole, blocks, (size_t)(count * block_bytes(type)));
    group_interleave(type, whole, group);
}

/* ---- rows of `count` blocks ---------------------------------------------------------------------------------------------- */

LAYOUT_FUNCTION void row_arrange(int32_t type, char *row, int64_t count)
{
    const int32_t bytes = BLOCK_GROUP * block_bytes(type);
    for (int64_t e = 0; e < count / BLOCK_GROUP; e++, row += bytes) {
        _Alignas(32) char group[GROUP_BYTES_MAX];
        group_interleave(type, row, group);
        memcpy(row, group, (size_t)bytes);
    }
}

LAYOUT_FUNCTION void row_restore(int32_t type, const char *row, char *blocks, int64_t count)
{
    const int64_t bytes = (int64_t)BLOCK_GROUP * block_bytes(type), whole = count / BLOCK_GROUP;
    for (int64_t e = 0; e < whole; e++)
        group_deinterleave(type, row + e * bytes, blocks + e * bytes);
    memcpy(blocks + whole * bytes, row + whole * bytes, (size_t)(count % BLOCK_GROUP * block_bytes(type)));
}

#endif
