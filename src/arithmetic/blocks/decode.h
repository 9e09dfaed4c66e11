/* Blocks to floats. Each format has a function for the code of an element and one for the scale of a sub-block; decoding
 * multiplies them.
 *
 * An element is addressed by its sub-block and its position in it. A loop over the positions then reads neighbouring bytes with
 * one shift, which compilers vectorize. On a GPU a thread decodes one or four elements.
 */
#ifndef WW_ARITHMETIC_BLOCKS_DECODE_H
#define WW_ARITHMETIC_BLOCKS_DECODE_H

#include "arithmetic/blocks/codebook.h"

/* ---- codes: sub-block r, position l. Sub-blocks have 16 elements, or 32 in q4_k, q5_k and iq4_xs ------------------------- */

CANON_FUNCTION int32_t code_q4_0(const block_q4_0 *b, int32_t r, int32_t l)
{
    return (b->codes[l] >> 4 * r & 15) - 8;
}

CANON_FUNCTION int32_t code_q4_1(const block_q4_1 *b, int32_t r, int32_t l)
{
    return b->codes[l] >> 4 * r & 15;
}

/* The highest code bits of 32 elements as one word, and the bit of one element moved to bit 4. */
CANON_FUNCTION uint32_t fifth_bits(const uint8_t *fifth)
{
    return fifth[0] | (uint32_t)fifth[1] << 8 | (uint32_t)fifth[2] << 16 | (uint32_t)fifth[3] << 24;
}

CANON_FUNCTION int32_t code_fifth(const uint8_t *fifth, int32_t element)
{
    return (int32_t)(fifth_bits(fifth) >> element & 1u) << 4;
}

CANON_FUNCTION int32_t code_q5_0(const block_q5_0 *b, int32_t r, int32_t l)
{
    return ((b->codes[l] >> 4 * r & 15) | code_fifth(b->fifth, 16 * r + l)) - 16;
}

CANON_FUNCTION int32_t code_q5_1(const block_q5_1 *b, int32_t r, int32_t l)
{
    return (b->codes[l] >> 4 * r & 15) | code_fifth(b->fifth, 16 * r + l);
}

CANON_FUNCTION int32_t code_iq4_nl(const block_iq4_nl *b, int32_t r, int32_t l)
{
    return codebook_value(BLOCK_IQ4_NL, b->codes[l] >> 4 * r & 15);
}

CANON_FUNCTION int32_t code_mxfp4(const block_mxfp4 *b, int32_t r, int32_t l)
{
    return codebook_value(BLOCK_MXFP4, b->codes[l] >> 4 * r & 15);
}

CANON_FUNCTION int32_t code_iq4_xs(const block_iq4_xs *b, int32_t r, int32_t l)
{
    return codebook_value(BLOCK_IQ4_XS, b->codes[16 * r + l % 16] >> 4 * (l / 16) & 15);
}

/* Sub-blocks r and r+1 (r even) are the two halves of 32 bytes; four such pairs share the bytes. */
CANON_FUNCTION int32_t code_q2_k(const block_q2_k *b, int32_t r, int32_t l)
{
    return b->codes[32 * (r / 8) + 16 * (r % 2) + l] >> 2 * (r / 2 % 4) & 3;
}

CANON_FUNCTION int32_t code_q3_k(const block_q3_k *b, int32_t r, int32_t l)
{
    const int32_t low = b->codes[32 * (r / 8) + 16 * (r % 2) + l] >> 2 * (r / 2 % 4) & 3;
    return (low | (b->third[16 * (r % 2) + l] >> r / 2 & 1) << 2) - 4;
}

CANON_FUNCTION int32_t code_q4_k(const block_q4_k *b, int32_t r, int32_t l)
{
    return b->codes[32 * (r / 2) + l] >> 4 * (r % 2) & 15;
}

CANON_FUNCTION int32_t code_q5_k(const block_q5_k *b, int32_t r, int32_t l)
{
    return (b->codes[32 * (r / 2) + l] >> 4 * (r % 2) & 15) | (b->fifth[l] >> r & 1) << 4;
}

CANON_FUNCTION int32_t code_q6_k(const block_q6_k *b, int32_t r, int32_t l)
{
    const int32_t half = r / 8, within = r % 8; /* a sub-block of a half: 0,1: elements 0..31, 2,3: 32..63, ... */
    const int32_t low = b->low[64 * half + 16 * (within % 4) + l] >> 4 * (within / 4) & 15;
    return (low | (b->high[32 * half + 16 * (within % 2) + l] >> 2 * (within / 2) & 3) << 4) - 32;
}

/* ---- scales of sub-blocks ------------------------------------------------------------------------------------------------ */

CANON_FUNCTION int32_t scale_q3_k(const block_q3_k *b, int32_t r)
{
    return ((b->scales[r % 8] >> 4 * (r / 8) & 15) | (b->scales[8 + r % 4] >> 2 * (r / 4) & 3) << 4) - 32;
}

/* The packed scales and mins of q4_k and q5_k. */
CANON_FUNCTION int32_t scale_q4_k(const uint8_t *scales, int32_t r)
{
    return r < 4 ? scales[r] & 63 : (scales[r + 4] & 15) | (scales[r - 4] >> 6) << 4;
}

CANON_FUNCTION int32_t min_q4_k(const uint8_t *scales, int32_t r)
{
    return r < 4 ? scales[r + 4] & 63 : scales[r + 4] >> 4 | (scales[r] >> 6) << 4;
}

/* The factor for a sub-block's codes, and the minimum to subtract. */
typedef struct block_line {
    float scale, min;
} block_line;

CANON_FUNCTION block_line line_of(uint32_t d, int32_t scale, uint32_t dmin, int32_t min)
{
    block_line line;
    line.scale = block_f32_from_f16(d) * (float)scale;
    line.min = block_f32_from_f16(dmin) * (float)min;
    return line;
}

CANON_FUNCTION block_line line_q2_k(const block_q2_k *b, int32_t r)
{
    return line_of(b->d, b->scales[r] & 15, b->dmin, b->scales[r] >> 4);
}

CANON_FUNCTION block_line line_q4_k(const block_q4_k *b, int32_t r)
{
    return line_of(b->d, scale_q4_k(b->scales, r), b->dmin, min_q4_k(b->scales, r));
}

CANON_FUNCTION block_line line_q5_k(const block_q5_k *b, int32_t r)
{
    return line_of(b->d, scale_q4_k(b->scales, r), b->dmin, min_q4_k(b->scales, r));
}

CANON_FUNCTION float scale_f32_q3_k(const block_q3_k *b, int32_t r)
{
    return block_f32_from_f16(b->d) * (float)scale_q3_k(b, r);
}

CANON_FUNCTION float scale_f32_iq4_xs(const block_iq4_xs *b, int32_t r)
{
    return block_f32_from_f16(b->d) * (float)scale_iq4_xs(b, r);
}

CANON_FUNCTION float scale_f32_q6_k(const block_q6_k *b, int32_t r)
{
    return block_f32_from_f16(b->d) * (float)b->scales[r];
}

/* ---- one element of a block, for any format ------------------------------------------------------------------------------ */

CANON_FUNCTION float decode_small(int32_t type, const void *block, int32_t i)
{
    const int32_t r = i / 16, l = i % 16;
    switch (type) {
    case BLOCK_Q4_0:
        return (float)code_q4_0((const block_q4_0 *)block, r, l) * block_f32_from_f16(((const block_q4_0 *)block)->d);
    case BLOCK_Q4_1:
        return (float)code_q4_1((const block_q4_1 *)block, r, l) * block_f32_from_f16(((const block_q4_1 *)block)->d) +
               block_f32_from_f16(((const block_q4_1 *)block)->m);
    case BLOCK_Q5_0:
        return (float)code_q5_0((const block_q5_0 *)block, r, l) * block_f32_from_f16(((const block_q5_0 *)block)->d);
    case BLOCK_Q5_1:
        return (float)code_q5_1((const block_q5_1 *)block, r, l) * block_f32_from_f16(((const block_q5_1 *)block)->d) +
               block_f32_from_f16(((const block_q5_1 *)block)->m);
    case BLOCK_Q8_0:
        return (float)((const block_q8_0 *)block)->codes[i] * block_f32_from_f16(((const block_q8_0 *)block)->d);
    case BLOCK_IQ4_NL:
        return (float)code_iq4_nl((const block_iq4_nl *)block, r, l) * block_f32_from_f16(((const block_iq4_nl *)block)->d);
    case BLOCK_MXFP4:
        return (float)code_mxfp4((const block_mxfp4 *)block, r, l) * block_e8m0_half(((const block_mxfp4 *)block)->e);
    default: /* q8_1 */
        return (float)((const block_q8_1 *)block)->codes[i] * block_f32_from_f16(((const block_q8_1 *)block)->d);
    }
}

CANON_FUNCTION float decode_large(int32_t type, const void *block, int32_t i)
{
    block_line line;
    switch (type) {
    case BLOCK_Q2_K:
        line = line_q2_k((const block_q2_k *)block, i / 16);
        return line.scale * (float)code_q2_k((const block_q2_k *)block, i / 16, i % 16) - line.min;
    case BLOCK_Q3_K:
        return scale_f32_q3_k((const block_q3_k *)block, i / 16) * (float)code_q3_k((const block_q3_k *)block, i / 16, i % 16);
    case BLOCK_Q4_K:
        line = line_q4_k((const block_q4_k *)block, i / 32);
        return line.scale * (float)code_q4_k((const block_q4_k *)block, i / 32, i % 32) - line.min;
    case BLOCK_Q5_K:
        line = line_q5_k((const block_q5_k *)block, i / 32);
        return line.scale * (float)code_q5_k((const block_q5_k *)block, i / 32, i % 32) - line.min;
    case BLOCK_Q6_K:
        return scale_f32_q6_k((const block_q6_k *)block, i / 16) * (float)code_q6_k((const block_q6_k *)block, i / 16, i % 16);
    case BLOCK_IQ4_XS:
        return scale_f32_iq4_xs((const block_iq4_xs *)block, i / 32) *
               (float)code_iq4_xs((const block_iq4_xs *)block, i / 32, i % 32);
    default: /* q8_k */
        return ((const block_q8_k *)block)->d * (float)((const block_q8_k *)block)->codes[i];
    }
}

/* Element i of a block of any format. In f32, f16 and bf16 a block is one element. */
CANON_FUNCTION float decode_element(int32_t type, const void *block, int32_t i)
{
    if (type == BLOCK_F32)
        return *(const float *)block;
    if (type == BLOCK_F16)
        return block_f32_from_f16(*(const uint16_t *)block);
    if (type == BLOCK_BF16)
        return block_f32_from_bf16(*(const uint16_t *)block);
    return block_elements(type) == BLOCK32_ELEMENTS ? decode_small(type, block, i) : decode_large(type, block, i);
}

/* ---- whole blocks, for CPUs: loops that compilers vectorize -------------------------------------------------------------- */

#define DECODE_SUB_BLOCKS(name, block_type, sub_blocks, length, prepare, value)                                                \
    CANON_FUNCTION void decode_##name(const block_type *b, float *to)                                                          \
    {                                                                                                                          \
        for (int32_t r = 0; r < (sub_blocks); r++) {                                                                           \
            prepare;                                                                                                           \
            for (int32_t l = 0; l < (length); l++)                                                                             \
                to[r * (length) + l] = value;                                                                                  \
        }                                                                                                                      \
    }
DECODE_SUB_BLOCKS(q4_0, block_q4_0, 2, 16, const float d = block_f32_from_f16(b->d), (float)code_q4_0(b, r, l) * d)
DECODE_SUB_BLOCKS(q4_1, block_q4_1, 2, 16, const float d = block_f32_from_f16(b->d);
                  const float m = block_f32_from_f16(b->m), (float)code_q4_1(b, r, l) * d + m)
DECODE_SUB_BLOCKS(q5_0, block_q5_0, 2, 16, const float d = block_f32_from_f16(b->d), (float)code_q5_0(b, r, l) * d)
DECODE_SUB_BLOCKS(q5_1, block_q5_1, 2, 16, const float d = block_f32_from_f16(b->d);
                  const float m = block_f32_from_f16(b->m), (float)code_q5_1(b, r, l) * d + m)
DECODE_SUB_BLOCKS(q8_0, block_q8_0, 1, 32, const float d = block_f32_from_f16(b->d), (float)b->codes[l] * d)
DECODE_SUB_BLOCKS(q8_1, block_q8_1, 1, 32, const float d = block_f32_from_f16(b->d), (float)b->codes[l] * d)
DECODE_SUB_BLOCKS(q2_k, block_q2_k, 16, 16, const block_line line = line_q2_k(b, r),
                  line.scale *(float)code_q2_k(b, r, l) - line.min)
DECODE_SUB_BLOCKS(q3_k, block_q3_k, 16, 16, const float scale = scale_f32_q3_k(b, r), scale *(float)code_q3_k(b, r, l))
DECODE_SUB_BLOCKS(q4_k, block_q4_k, 8, 32, const block_line line = line_q4_k(b, r),
                  line.scale *(float)code_q4_k(b, r, l) - line.min)
DECODE_SUB_BLOCKS(q5_k, block_q5_k, 8, 32, const block_line line = line_q5_k(b, r),
                  line.scale *(float)code_q5_k(b, r, l) - line.min)
DECODE_SUB_BLOCKS(q6_k, block_q6_k, 16, 16, const float scale = scale_f32_q6_k(b, r), scale *(float)code_q6_k(b, r, l))
DECODE_SUB_BLOCKS(iq4_nl, block_iq4_nl, 2, 16, const float d = block_f32_from_f16(b->d), (float)code_iq4_nl(b, r, l) * d)
DECODE_SUB_BLOCKS(mxfp4, block_mxfp4, 2, 16, const float d = block_e8m0_half(b->e), (float)code_mxfp4(b, r, l) * d)
DECODE_SUB_BLOCKS(iq4_xs, block_iq4_xs, 8, 32, const float scale = scale_f32_iq4_xs(b, r), scale *(float)code_iq4_xs(b, r, l))
DECODE_SUB_BLOCKS(q8_k, block_q8_k, 1, 256, const float d = b->d, d *(float)b->codes[l])
#undef DECODE_SUB_BLOCKS

#endif
