/* An octet taken apart: the codes of eight blocks as words, the same word of all side by side, and what multiplies them.
 *
 * The eight lanes are eight blocks of a row, as octets lie in memory, or the same block of eight rows, as panels turn them.
 * Codes are from 0 up, as they are stored, but for the q8 formats; scales have their sign, and the offset of the codes is not
 * in them.
 */
#ifndef WW_CPU_QUANT_QUANT_UNPACK_H
#define WW_CPU_QUANT_QUANT_UNPACK_H

#include "cpu/quant/quant_layout.h"
#include "cpu/quant/quant_words.h"

/* Runs of a block that have a scale of their own. */
DOT_FUNCTION int32_t runs_of(int32_t type)
{
    return type == BLOCK_Q4_K || type == BLOCK_Q5_K                         ? 8
           : type == BLOCK_Q2_K || type == BLOCK_Q3_K || type == BLOCK_Q6_K ? 16
                                                                            : 1;
}

DOT_FUNCTION int codes_signed(int32_t type)
{
    return type == BLOCK_Q8_0 || type == BLOCK_Q8_1 || type == BLOCK_Q8_K;
}

/* Word i of the blocks of an octet. */
DOT_FUNCTION dot_words octet_word(int32_t type, const char *octet, int32_t i)
{
    return (dot_words)dot_take(octet + OCTET * (2 * halves_before(type) + 4 * i));
}

DOT_FUNCTION dot_floats octet_half(int32_t type, const char *octet, int32_t h)
{
    return dot_halves(octet + OCTET * half_offset(type, h));
}

/* The factors of J and M (arithmetic/blocks/dot.h). */
DOT_FUNCTION dot_floats octet_factor(int32_t type, const char *octet)
{
    return type == BLOCK_Q8_K ? dot_take_floats(octet) : octet_half(type, octet, 0);
}

DOT_FUNCTION dot_floats octet_min_factor(int32_t type, const char *octet)
{
    if (type == BLOCK_Q4_1 || type == BLOCK_Q5_1)
        return octet_half(type, octet, 1);
    return -octet_half(type, octet, 1);
}

/* ---- codes: word i of piece p, 32 elements --------------------------------------------------------------------------------
 */

/* Four bits from bit `first` on to bit 4 of four bytes: each product below has one of them where it is wanted. */
DOT_FUNCTION dot_words fifth_spread(dot_words bits, int32_t first)
{
    return (bits >> first & 15u) * 0x02040810u & 0x10101010u;
}

DOT_FUNCTION dot_lanes octet_codes(int32_t type, const char *octet, int32_t p, int32_t i)
{
    dot_words word;
    switch (type) {
    case BLOCK_Q4_0:
    case BLOCK_Q4_1:
        word = octet_word(type, octet, i % 4) >> 4 * (i / 4) & 0x0f0f0f0fu;
        break;
    case BLOCK_Q5_0:
    case BLOCK_Q5_1:
        word =
            (octet_word(type, octet, 1 + i % 4) >> 4 * (i / 4) & 0x0f0f0f0fu) | fifth_spread(octet_word(type, octet, 0), 4 * i);
        break;
    case BLOCK_Q2_K:
        word = octet_word(type, octet, 4 + 8 * (p / 4) + i) >> 2 * (p % 4) & 0x03030303u;
        break;
    case BLOCK_Q3_K:
        word = (octet_word(type, octet, 8 + 8 * (p / 4) + i) >> 2 * (p % 4) & 0x03030303u) |
               (octet_word(type, octet, i) >> p & 0x01010101u) << 2;
        break;
    case BLOCK_Q4_K:
        word = octet_word(type, octet, 3 + 8 * (p / 2) + i) >> 4 * (p % 2) & 0x0f0f0f0fu;
        break;
    case BLOCK_Q5_K:
        word = (octet_word(type, octet, 11 + 8 * (p / 2) + i) >> 4 * (p % 2) & 0x0f0f0f0fu) |
               (octet_word(type, octet, 3 + i) >> p & 0x01010101u) << 4;
        break;
    case BLOCK_Q6_K:
        word = (octet_word(type, octet, 16 * (p / 4) + 8 * (p % 2) + i) >> 4 * (p % 4 / 2) & 0x0f0f0f0fu) |
               (octet_word(type, octet, 32 + 8 * (p / 4) + i) >> 2 * (p % 4) & 0x03030303u) << 4;
        break;
    case BLOCK_Q8_K:
        word = octet_word(type, octet, 1 + 8 * p + i);
        break;
    default: /* q8_0, q8_1 */
        word = octet_word(type, octet, i);
        break;
    }
    return (dot_lanes)word;
}

/* ---- scales and minima of run r -------------------------------------------------------------------------------------------
 */

/* Byte `at` of those that begin at word `first`. */
DOT_FUNCTION dot_words octet_byte(int32_t type, const char *octet, int32_t first, int32_t at)
{
    return octet_word(type, octet, first + at / 4) >> 8 * (at % 4) & 255u;
}

DOT_FUNCTION dot_lanes octet_scale(int32_t type, const char *octet, int32_t r)
{
    switch (type) {
    case BLOCK_Q2_K:
        return (dot_lanes)(octet_byte(type, octet, 0, r) & 15u);
    case BLOCK_Q3_K:
        return (dot_lanes)((octet_byte(type, octet, 24, r % 8) >> 4 * (r / 8) & 15u) |
                           (octet_byte(type, octet, 24, 8 + r % 4) >> 2 * (r / 4) & 3u) << 4) -
               32;
    case BLOCK_Q4_K:
    case BLOCK_Q5_K:
        return (dot_lanes)(r < 4 ? octet_byte(type, octet, 0, r) & 63u
                                 : (octet_byte(type, octet, 0, r + 4) & 15u) | octet_byte(type, octet, 0, r - 4) >> 6 << 4);
    default: /* q6_k */
        return (dot_lanes)octet_word(type, octet, 48 + r / 4) << (24 - 8 * (r % 4)) >> 24;
    }
}

DOT_FUNCTION dot_lanes octet_min(int32_t type, const char *octet, int32_t r)
{
    if (type == BLOCK_Q2_K)
        return (dot_lanes)(octet_byte(type, octet, 0, r) >> 4);
    return (dot_lanes)(r < 4 ? octet_byte(type, octet, 0, r + 4) & 63u
                             : octet_byte(type, octet, 0, r + 4) >> 4 | octet_byte(type, octet, 0, r) >> 6 << 4);
}

#endif
