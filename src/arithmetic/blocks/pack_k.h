/* Packs K blocks from their fields: codes of one byte each, scales and mins of sub-blocks, factors. Every byte of a block is
 * independent, so threads can share the work: each writes bytes `first`, `first + step`, ... of each field.
 */
#ifndef WW_ARITHMETIC_BLOCKS_PACK_K_H
#define WW_ARITHMETIC_BLOCKS_PACK_K_H

#include "arithmetic/blocks/blocks.h"

typedef struct block_fields {
    const uint8_t *codes;         /* 256 codes, starting at 0 in every format */
    const uint8_t *scales, *mins; /* one per sub-block; in q3_k scale + 32, in q6_k the byte of the signed number */
    uint32_t d, dmin;             /* f16 */
} block_fields;

/* Packs two bits of four runs of 32 elements into 32 bytes, for each half of the block: q2_k, q3_k and the high bits of q6_k.
 */
CANON_FUNCTION void pack_pairs(const uint8_t *codes, int32_t shift, uint8_t *to, int32_t first, int32_t step)
{
    for (int32_t half = 0; half < 2; half++)
        for (int32_t l = first; l < 32; l += step) {
            const uint8_t *from = codes + 128 * half + l;
            to[32 * half + l] = (uint8_t)((from[0] >> shift & 3) | (from[32] >> shift & 3) << 2 | (from[64] >> shift & 3) << 4 |
                                          (from[96] >> shift & 3) << 6);
        }
}

/* Packs one bit of all eight runs of 32 elements. */
CANON_FUNCTION void pack_bits(const uint8_t *codes, int32_t bit, uint8_t *to, int32_t first, int32_t step)
{
    for (int32_t l = first; l < 32; l += step) {
        const uint8_t *from = codes + l;
        to[l] = (uint8_t)((from[0] >> bit & 1) | (from[32] >> bit & 1) << 1 | (from[64] >> bit & 1) << 2 |
                          (from[96] >> bit & 1) << 3 | (from[128] >> bit & 1) << 4 | (from[160] >> bit & 1) << 5 |
                          (from[192] >> bit & 1) << 6 | (from[224] >> bit & 1) << 7);
    }
}

CANON_FUNCTION void pack_q2_k(const block_fields *fields, block_q2_k *b, int32_t first, int32_t step)
{
    for (int32_t j = first; j < 16; j += step)
        b->scales[j] = (uint8_t)(fields->scales[j] | fields->mins[j] << 4);
    pack_pairs(fields->codes, 0, b->codes, first, step);
    if (first == 0) {
        b->d = (block_f16)fields->d;
        b->dmin = (block_f16)fields->dmin;
    }
}

CANON_FUNCTION void pack_q3_k(const block_fields *fields, block_q3_k *b, int32_t first, int32_t step)
{
    pack_bits(fields->codes, 2, b->third, first, step);
    pack_pairs(fields->codes, 0, b->codes, first, step);
    for (int32_t j = first; j < 8; j += step)
        b->scales[j] = (uint8_t)((fields->scales[j] & 15) | (fields->scales[j + 8] & 15) << 4);
    for (int32_t j = first; j < 4; j += step) {
        uint32_t byte = 0;
        for (int32_t k = 0; k < 4; k++)
            byte |= ((uint32_t)fields->scales[4 * k + j] >> 4) << 2 * k;
        b->scales[8 + j] = (uint8_t)byte;
    }
    if (first == 0)
        b->d = (block_f16)fields->d;
}

/* The twelve bytes of scales and mins of q4_k and q5_k. */
CANON_FUNCTION void pack_six_bits(const block_fields *fields, uint8_t *to, int32_t first, int32_t step)
{
    for (int32_t j = first; j < 4; j += step) {
        to[j] = (uint8_t)(fields->scales[j] | (fields->scales[j + 4] >> 4) << 6);
        to[j + 4] = (uint8_t)(fields->mins[j] | (fields->mins[j + 4] >> 4) << 6);
        to[j + 8] = (uint8_t)((fields->scales[j + 4] & 15) | (fields->mins[j + 4] & 15) << 4);
    }
}

/* Packs four bits each of 2 x `apart` elements into `apart` bytes. */
CANON_FUNCTION void pack_nibbles(const uint8_t *codes, int32_t apart, uint8_t *to, int32_t first, int32_t step)
{
    for (int32_t part = 0; part < KBLOCK_ELEMENTS / 2; part += apart)
        for (int32_t l = first; l < apart; l += step)
            to[part + l] = (uint8_t)((codes[2 * part + l] & 15) | (codes[2 * part + apart + l] & 15) << 4);
}

CANON_FUNCTION void pack_q4_k(const block_fields *fields, block_q4_k *b, int32_t first, int32_t step)
{
    pack_six_bits(fields, b->scales, first, step);
    pack_nibbles(fields->codes, 32, b->codes, first, step);
    if (first == 0) {
        b->d = (block_f16)fields->d;
        b->dmin = (block_f16)fields->dmin;
    }
}

CANON_FUNCTION void pack_q5_k(const block_fields *fields, block_q5_k *b, int32_t first, int32_t step)
{
    pack_six_bits(fields, b->scales, first, step);
    pack_bits(fields->codes, 4, b->fifth, first, step);
    pack_nibbles(fields->codes, 32, b->codes, first, step);
    if (first == 0) {
        b->d = (block_f16)fields->d;
        b->dmin = (block_f16)fields->dmin;
    }
}

CANON_FUNCTION void pack_q6_k(const block_fields *fields, block_q6_k *b, int32_t first, int32_t step)
{
    pack_nibbles(fields->codes, 64, b->low, first, step);
    pack_pairs(fields->codes, 4, b->high, first, step);
    for (int32_t j = first; j < 16; j += step)
        b->scales[j] = (int8_t)fields->scales[j];
    if (first == 0)
        b->d = (block_f16)fields->d;
}

#endif
