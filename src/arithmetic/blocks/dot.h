/* Products of quantized weights and quantized activations: defines the bits of a result. Shared by all backends.
 *
 * A row of weights is multiplied by a row of activations encoded as q8_1 (for weights in blocks of 32) or q8_k (blocks of 256).
 * For each block, with codes w and a, sub-block scales s and minima m, and offset o (8 in q4_0, 16 in q5_0, 4 in q3_k, 32 in
 * q6_k, else 0):
 *
 * (In formats with a codebook, w is the codebook value.)
 *
 *     J = sum over sub-blocks of s * sum((w - o) * a)        exact: at most 128 * 63 * 127 * 256 < 2^29
 *     M = sum over sub-blocks of m * sum(a)                  exact; s and m are 1 in blocks of 32
 *     acc[b mod 8] = fma(d * da, (float)J, acc[b mod 8])                 for block b, in increasing b, from acc = +0
 *     acc[b mod 8] = fma(dm * da, (float)M, acc[b mod 8])    in formats with minima; dm is -dmin, or m of blocks of 32
 *
 * and then acc[j] = acc[j] + acc[j + s] for j < s, s = 4, 2, 1. J and M are integers, so their sums are the same in any order;
 * only the fma's have an order. With f32, f16 and bf16 weights the activations stay f32 and the result is the canonical dot
 * product.
 *
 * A block is processed in pieces of 32 elements: eight words of four codes each. The first four words share a scale and so do
 * the last four.
 */
#ifndef WW_ARITHMETIC_BLOCKS_DOT_H
#define WW_ARITHMETIC_BLOCKS_DOT_H

#include "arithmetic/blocks/decode.h"

#ifndef DOT_FUNCTION
#define DOT_FUNCTION CANON_FUNCTION
#endif

#define DOT_ACCUMULATORS 8

typedef struct dot_piece {
    uint32_t words[8];
    int32_t scale[2], min[2]; /* for words 0..3 and 4..7; without the offset */
} dot_piece;

/* Properties of a format: pieces per block, offset of the codes, whether it has minima. */
DOT_FUNCTION int32_t dot_pieces(int32_t type)
{
    return block_elements(type) / 32;
}

DOT_FUNCTION int32_t dot_offset(int32_t type)
{
    return type == BLOCK_Q4_0 ? 8 : type == BLOCK_Q5_0 ? 16 : type == BLOCK_Q3_K ? 4 : type == BLOCK_Q6_K ? 32 : 0;
}

DOT_FUNCTION int dot_has_min(int32_t type)
{
    return type == BLOCK_Q4_1 || type == BLOCK_Q5_1 || type == BLOCK_Q2_K || type == BLOCK_Q4_K || type == BLOCK_Q5_K;
}

/* The activation format for a weight type; -1 if activations stay floats. */
DOT_FUNCTION int32_t dot_activations(int32_t type)
{
    const int32_t elements = block_elements(type);
    return elements == 1 ? -1 : elements == BLOCK32_ELEMENTS ? BLOCK_Q8_1 : BLOCK_Q8_K;
}

/* The factors of J and M. */
typedef struct dot_factors {
    float d, min;
} dot_factors;

DOT_FUNCTION dot_factors dot_factors_of(int32_t type, const void *block)
{
    const block_f16 *first = (const block_f16 *)block;
    dot_factors factors;
    factors.min = 0.0f;
    switch (type) {
    case BLOCK_Q4_1:
    case BLOCK_Q5_1:
        factors.min = block_f32_from_f16(first[1]);
        factors.d = block_f32_from_f16(first[0]);
        break;
    case BLOCK_Q4_K:
    case BLOCK_Q5_K:
        factors.min = -block_f32_from_f16(first[1]);
        factors.d = block_f32_from_f16(first[0]);
        break;
    case BLOCK_Q2_K:
        factors.min = -block_f32_from_f16(((const block_q2_k *)block)->dmin);
        factors.d = block_f32_from_f16(((const block_q2_k *)block)->d);
        break;
    case BLOCK_Q3_K:
        factors.d = block_f32_from_f16(((const block_q3_k *)block)->d);
        break;
    case BLOCK_Q6_K:
        factors.d = block_f32_from_f16(((const block_q6_k *)block)->d);
        break;
    case BLOCK_Q8_K:
        factors.d = ((const block_q8_k *)block)->d;
        break;
    case BLOCK_MXFP4:
        factors.d = block_e8m0_half(((const block_mxfp4 *)block)->e);
        break;
    default: /* q4_0, q5_0, q8_0, q8_1, iq4_nl, iq4_xs */
        factors.d = block_f32_from_f16(first[0]);
        break;
    }
    return factors;
}

/* ---- words: four codes at a time. Blocks are two-byte aligned ------------------------------------------------------------ */

DOT_FUNCTION uint32_t dot_word(const uint8_t *bytes, int32_t at)
{
    const uint8_t *from = bytes + at;
#if defined(__AMDGCN__) || defined(__NVPTX__)
    const uint16_t *halves = (const uint16_t *)from;
    return halves[0] | (uint32_t)halves[1] << 16;
#else
    uint32_t word;
    __builtin_memcpy(&word, from, sizeof word);
    return word;
#endif
}

/* Four bits to the lowest bit of four bytes: bit i of `bits` to byte i. */
DOT_FUNCTION uint32_t dot_spread(uint32_t bits)
{
    return (bits & 1u) | (bits & 2u) << 7 | (bits & 4u) << 14 | (bits & 8u) << 21;
}

DOT_FUNCTION void dot_scales(dot_piece *piece, int32_t first, int32_t second, int32_t min_first, int32_t min_second)
{
    piece->scale[0] = first;
    piece->scale[1] = second;
    piece->min[0] = min_first;
    piece->min[1] = min_second;
}

/* Words 0..3 take the low nibbles, 4..7 the high ones; the fifth bits are added if the format has them. */
DOT_FUNCTION void dot_words_small(const uint8_t *codes, uint32_t fifth, dot_piece *piece)
{
    for (int32_t i = 0; i < 4; i++) {
        const uint32_t word = dot_word(codes, 4 * i);
        piece->words[i] = (word & 0x0f0f0f0fu) | dot_spread(fifth >> 4 * i) << 4;
        piece->words[i + 4] = (word >> 4 & 0x0f0f0f0fu) | dot_spread(fifth >> (4 * i + 16)) << 4;
    }
    dot_scales(piece, 1, 1, 1, 1);
}

DOT_FUNCTION void dot_words_bytes(const int8_t *codes, dot_piece *piece)
{
    for (int32_t i = 0; i < 8; i++)
        piece->words[i] = dot_word((const uint8_t *)codes, 4 * i);
    dot_scales(piece, 1, 1, 0, 0);
}

/* Sixteen bytes as in q4_0; the nibbles are indices into a codebook. */
DOT_FUNCTION void dot_words_codebook(int32_t type, const uint8_t *codes, int32_t scale, dot_piece *piece)
{
    for (int32_t i = 0; i < 16; i++) {
        const int32_t at = i / 4, shift = 8 * (i % 4);
        const uint32_t low = (uint32_t)(codebook_value(type, codes[i] & 15) & 255) << shift;
        const uint32_t high = (uint32_t)(codebook_value(type, codes[i] >> 4) & 255) << shift;
        piece->words[at] = (shift ? piece->words[at] : 0) | low;
        piece->words[at + 4] = (shift ? piece->words[at + 4] : 0) | high;
    }
    dot_scales(piece, scale, scale, 0, 0);
}

DOT_FUNCTION void dot_words_q2_k(const block_q2_k *b, int32_t p, dot_piece *piece)
{
    for (int32_t i = 0; i < 8; i++)
        piece->words[i] = dot_word(b->codes, 32 * (p / 4) + 4 * i) >> 2 * (p % 4) & 0x03030303u;
    const int32_t first = b->scales[p + p], second = b->scales[2 * p + 1];
    dot_scales(piece, first & 15, second & 15, first >> 4, second >> 4);
}

DOT_FUNCTION void dot_words_q3_k(const block_q3_k *b, int32_t p, dot_piece *piece)
{
    for (int32_t i = 0; i < 8; i++)
        piece->words[i] = (dot_word(b->codes, 32 * (p / 4) + 4 * i) >> 2 * (p % 4) & 0x03030303u) |
                          (dot_word(b->third, 4 * i) >> p & 0x01010101u) << 2;
    dot_scales(piece, scale_q3_k(b, 2 * p), scale_q3_k(b, 2 * p + 1), 0, 0);
}

DOT_FUNCTION void dot_words_q4_k(const block_q4_k *b, int32_t p, dot_piece *piece)
{
    for (int32_t i = 0; i < 8; i++)
        piece->words[i] = dot_word(b->codes, 32 * (p / 2) + 4 * i) >> 4 * (p % 2) & 0x0f0f0f0fu;
    const int32_t scale = scale_q4_k(b->scales, p), min = min_q4_k(b->scales, p);
    dot_scales(piece, scale, scale, min, min);
}

DOT_FUNCTION void dot_words_q5_k(const block_q5_k *b, int32_t p, dot_piece *piece)
{
    for (int32_t i = 0; i < 8; i++)
        piece->words[i] = (dot_word(b->codes, 32 * (p / 2) + 4 * i) >> 4 * (p % 2) & 0x0f0f0f0fu) |
                          (dot_word(b->fifth, 4 * i) >> p & 0x01010101u) << 4;
    const int32_t scale = scale_q4_k(b->scales, p), min = min_q4_k(b->scales, p);
    dot_scales(piece, scale, scale, min, min);
}

/* In each half of the block, pieces 0 and 1 are the low nibbles of bytes 0..31 and 32..63, pieces 2 and 3 the high nibbles. */
DOT_FUNCTION void dot_words_q6_k(const block_q6_k *b, int32_t p, dot_piece *piece)
{
    const int32_t half = p / 4, part = p % 4;
    for (int32_t i = 0; i < 8; i++)
        piece->words[i] = (dot_word(b->low, 64 * half + 32 * (part % 2) + 4 * i) >> 4 * (part / 2) & 0x0f0f0f0fu) |
                          (dot_word(b->high, 32 * half + 4 * i) >> 2 * part & 0x03030303u) << 4;
    dot_scales(piece, b->scales[p + p], b->scales[2 * p + 1], 0, 0);
}

/* Piece p of a block. */
DOT_FUNCTION void dot_load(int32_t type, const void *block, int32_t p, dot_piece *piece)
{
    switch (type) {
    case BLOCK_Q4_0:
        dot_words_small(((const block_q4_0 *)block)->codes, 0, piece);
        break;
    case BLOCK_Q4_1:
        dot_words_small(((const block_q4_1 *)block)->codes, 0, piece);
        break;
    case BLOCK_Q5_0:
        dot_words_small(((const block_q5_0 *)block)->codes, fifth_bits(((const block_q5_0 *)block)->fifth), piece);
        break;
    case BLOCK_Q5_1:
        dot_words_small(((const block_q5_1 *)block)->codes, fifth_bits(((const block_q5_1 *)block)->fifth), piece);
        break;
    case BLOCK_Q8_0:
        dot_words_bytes(((const block_q8_0 *)block)->codes, piece);
        break;
    case BLOCK_Q8_1:
        dot_words_bytes(((const block_q8_1 *)block)->codes, piece);
        break;
    case BLOCK_Q2_K:
        dot_words_q2_k((const block_q2_k *)block, p, piece);
        break;
    case BLOCK_Q3_K:
        dot_words_q3_k((const block_q3_k *)block, p, piece);
        break;
    case BLOCK_Q4_K:
        dot_words_q4_k((const block_q4_k *)block, p, piece);
        break;
    case BLOCK_Q5_K:
        dot_words_q5_k((const block_q5_k *)block, p, piece);
        break;
    case BLOCK_Q6_K:
        dot_words_q6_k((const block_q6_k *)block, p, piece);
        break;
    case BLOCK_IQ4_NL:
        dot_words_codebook(type, ((const block_iq4_nl *)block)->codes, 1, piece);
        break;
    case BLOCK_MXFP4:
        dot_words_codebook(type, ((const block_mxfp4 *)block)->codes, 1, piece);
        break;
    case BLOCK_IQ4_XS:
        dot_words_codebook(type, ((const block_iq4_xs *)block)->codes + (int64_t)16 * p,
                           scale_iq4_xs((const block_iq4_xs *)block, p), piece);
        break;
    default: /* q8_k */
        dot_words_bytes(((const block_q8_k *)block)->codes + (int64_t)32 * p, piece);
        break;
    }
}

/* ---- activations --------------------------------------------------------------------------------------------------------- */

/* The codes of piece p of an activation block, word-aligned, and its factor. */
DOT_FUNCTION const uint32_t *dot_activation_words(int32_t type, const void *block, int32_t p)
{
    const int8_t *codes =
        type == BLOCK_Q8_1 ? ((const block_q8_1 *)block)->codes : ((const block_q8_k *)block)->codes + (int64_t)32 * p;
    return (const uint32_t *)(const void *)codes;
}

DOT_FUNCTION float dot_activation_factor(int32_t type, const void *block)
{
    return type == BLOCK_Q8_1 ? block_f32_from_f16(((const block_q8_1 *)block)->d) : ((const block_q8_k *)block)->d;
}

/* Adds one block's part to a result. */
DOT_FUNCTION float dot_add(dot_factors weights, float activations, int32_t j, int32_t m, int has_min, float acc)
{
    acc = __builtin_fmaf(weights.d * activations, (float)j, acc);
    return has_min ? __builtin_fmaf(weights.min * activations, (float)m, acc) : acc;
}

#endif
