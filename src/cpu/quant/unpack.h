/* Unpacks a block group: the codes of eight blocks as words, with the same word of all blocks adjacent, and their factors.
 *
 * The eight lanes are eight blocks of a row, as stored in groups, or the same block of eight rows, as panels transpose them.
 * Codes are unsigned, as stored, except for the q8 formats, and for those with a codebook, which give its numbers. Scales have
 * their sign, and do not include the offset of the codes.
 */
#ifndef WW_CPU_QUANT_UNPACK_H
#define WW_CPU_QUANT_UNPACK_H

#include "cpu/quant/dot_types.h"
#include "cpu/quant/layout.h"

/* Returns how many sub-blocks of a block have a scale of their own. */
DOT_FUNCTION int32_t sub_blocks(int32_t type)
{
    return type == BLOCK_Q4_K || type == BLOCK_Q5_K || type == BLOCK_IQ4_XS ? 8
           : type == BLOCK_Q2_K || type == BLOCK_Q3_K || type == BLOCK_Q6_K ? 16
                                                                            : 1;
}

DOT_FUNCTION int codes_signed(int32_t type)
{
    return type == BLOCK_Q8_0 || type == BLOCK_Q8_1 || type == BLOCK_Q8_K || block_has_codebook(type);
}

/* Word i of the blocks of a group. */
DOT_FUNCTION dot_words group_word(int32_t type, const char *group, int32_t i)
{
    return (dot_words)dot_load_lanes(group + BLOCK_GROUP * (words_begin(type) + 4 * i));
}

DOT_FUNCTION dot_floats group_half(int32_t type, const char *group, int32_t h)
{
    return dot_halves(group + BLOCK_GROUP * half_offset(type, h));
}

/* The factors of J and M (arithmetic/blocks/dot.h). */
DOT_FUNCTION dot_floats group_factor(int32_t type, const char *group)
{
    if (type == BLOCK_MXFP4) { /* same as block_e8m0_half() */
        typedef uint8_t eight_bytes __attribute__((vector_size(8)));
        eight_bytes bytes;
        memcpy(&bytes, group, sizeof bytes);
        const dot_words e = __builtin_convertvector(bytes, dot_words), denormal = (dot_words)(e < 2);
        return (dot_floats)((((e << 21) + 0x00200000u) & denormal) | (((e - 1) << 23) & ~denormal));
    }
    return type == BLOCK_Q8_K ? dot_load_floats(group) : group_half(type, group, 0);
}

DOT_FUNCTION dot_floats group_min_factor(int32_t type, const char *group)
{
    if (type == BLOCK_Q4_1 || type == BLOCK_Q5_1)
        return group_half(type, group, 1);
    return -group_half(type, group, 1);
}

/* ---- codes: word i of piece p, 32 elements ------------------------------------------------------------------------------- */

/* Moves four bits, from bit `first` on, to bit 4 of four bytes: each product below puts one of them in its place. */
DOT_FUNCTION dot_words fifth_spread(dot_words bits, int32_t first)
{
    return (bits >> first & 15u) * 0x02040810u & 0x10101010u;
}

/* Looks up codes in the codebook. */
DOT_FUNCTION dot_words codebook_words(int32_t type, dot_words codes)
{
    const uint32_t table[4] = {codebook_word(type, 0), codebook_word(type, 1), codebook_word(type, 2), codebook_word(type, 3)};
    return dot_lookup(codes, table);
}

DOT_FUNCTION dot_lanes group_codes(int32_t type, const char *group, int32_t p, int32_t i)
{
    dot_words word;
    switch (type) {
    case BLOCK_Q4_0:
    case BLOCK_Q4_1:
        word = group_word(type, group, i % 4) >> 4 * (i / 4) & 0x0f0f0f0fu;
        break;
    case BLOCK_Q5_0:
    case BLOCK_Q5_1:
        word =
            (group_word(type, group, 1 + i % 4) >> 4 * (i / 4) & 0x0f0f0f0fu) | fifth_spread(group_word(type, group, 0), 4 * i);
        break;
    case BLOCK_Q2_K:
        word = group_word(type, group, 4 + 8 * (p / 4) + i) >> 2 * (p % 4) & 0x03030303u;
        break;
    case BLOCK_Q3_K:
        word = (group_word(type, group, 8 + 8 * (p / 4) + i) >> 2 * (p % 4) & 0x03030303u) |
               (group_word(type, group, i) >> p & 0x01010101u) << 2;
        break;
    case BLOCK_Q4_K:
        word = group_word(type, group, 3 + 8 * (p / 2) + i) >> 4 * (p % 2) & 0x0f0f0f0fu;
        break;
    case BLOCK_Q5_K:
        word = (group_word(type, group, 11 + 8 * (p / 2) + i) >> 4 * (p % 2) & 0x0f0f0f0fu) |
               (group_word(type, group, 3 + i) >> p & 0x01010101u) << 4;
        break;
    case BLOCK_Q6_K:
        word = (group_word(type, group, 16 * (p / 4) + 8 * (p % 2) + i) >> 4 * (p % 4 / 2) & 0x0f0f0f0fu) |
               (group_word(type, group, 32 + 8 * (p / 4) + i) >> 2 * (p % 4) & 0x03030303u) << 4;
        break;
    case BLOCK_Q8_K:
        word = group_word(type, group, 1 + 8 * p + i);
        break;
    case BLOCK_IQ4_NL:
    case BLOCK_MXFP4:
        word = codebook_words(type, group_word(type, group, i % 4) >> 4 * (i / 4) & 0x0f0f0f0fu);
        break;
    case BLOCK_IQ4_XS:
        word = codebook_words(type, group_word(type, group, 1 + 4 * p + i % 4) >> 4 * (i / 4) & 0x0f0f0f0fu);
        break;
    default: /* q8_0, q8_1 */
        word = group_word(type, group, i);
        break;
    }
    return (dot_lanes)word;
}

/* ---- scales and minima of sub-block r ------------------------------------------------------------------------------------ */

/* Returns byte `at` of the bytes that start at word `first`. */
DOT_FUNCTION dot_words group_byte(int32_t type, const char *group, int32_t first, int32_t at)
{
    return group_word(type, group, first + at / 4) >> 8 * (at % 4) & 255u;
}

DOT_FUNCTION dot_lanes group_scale(int32_t type, const char *group, int32_t r)
{
    switch (type) {
    case BLOCK_Q2_K:
        return (dot_lanes)(group_byte(type, group, 0, r) & 15u);
    case BLOCK_Q3_K:
        return (dot_lanes)((group_byte(type, group, 24, r % 8) >> 4 * (r / 8) & 15u) |
                           (group_byte(type, group, 24, 8 + r % 4) >> 2 * (r / 4) & 3u) << 4) -
               32;
    case BLOCK_Q4_K:
    case BLOCK_Q5_K:
        return (dot_lanes)(r < 4 ? group_byte(type, group, 0, r) & 63u
                                 : (group_byte(type, group, 0, r + 4) & 15u) | group_byte(type, group, 0, r - 4) >> 6 << 4);
    case BLOCK_IQ4_XS: {
        group_halves high;
        memcpy(&high, group + BLOCK_GROUP * half_offset(type, 1), sizeof high);
        return (dot_lanes)((group_word(type, group, 0) >> 4 * r & 15u) |
                           (__builtin_convertvector(high, dot_words) >> 2 * r & 3u) << 4) -
               32;
    }
    default: /* q6_k */
        return (dot_lanes)group_word(type, group, 48 + r / 4) << (24 - 8 * (r % 4)) >> 24;
    }
}

DOT_FUNCTION dot_lanes group_min(int32_t type, const char *group, int32_t r)
{
    if (type == BLOCK_Q2_K)
        return (dot_lanes)(group_byte(type, group, 0, r) >> 4);
    return (dot_lanes)(r < 4 ? group_byte(type, group, 0, r + 4) & 63u
                             : group_byte(type, group, 0, r + 4) >> 4 | group_byte(type, group, 0, r) >> 6 << 4);
}

#endif
