/* Formats whose four-bit codes are indices into a codebook of 16 small integers: iq4_nl, iq4_xs and mxfp4.
 *
 *     iq4_nl, iq4_xs   -127 -104 -83 -65 -49 -35 -22 -10 1 13 25 38 53 69 89 113
 *     mxfp4            0 1 2 3 4 6 8 12 0 -1 -2 -3 -4 -6 -8 -12: twice the values of e2m1; the scale is halved
 *
 * A codebook is four words of four signed bytes, the first byte lowest. Every target has an instruction that looks up bytes in
 * this layout.
 */
#ifndef WW_ARITHMETIC_BLOCKS_CODEBOOK_H
#define WW_ARITHMETIC_BLOCKS_CODEBOOK_H

#include "arithmetic/blocks/encode.h"

CANON_FUNCTION int block_has_codebook(int32_t type)
{
    return type == BLOCK_IQ4_NL || type == BLOCK_IQ4_XS || type == BLOCK_MXFP4;
}

/* Word i of a format's codebook. */
CANON_FUNCTION uint32_t codebook_word(int32_t type, int32_t i)
{
    if (type == BLOCK_MXFP4)
        return i == 0 ? 0x03020100u : i == 1 ? 0x0c080604u : i == 2 ? 0xfdfeff00u : 0xf4f8fafcu;
    return i == 0 ? 0xbfad9881u : i == 1 ? 0xf6eaddcfu : i == 2 ? 0x26190d01u : 0x71594535u;
}

CANON_FUNCTION int32_t codebook_value(int32_t type, int32_t code)
{
    return (int8_t)(codebook_word(type, code / 4) >> 8 * (code % 4));
}

/* Looks up four codes, one per byte. */
CANON_FUNCTION uint32_t codebook_lookup(int32_t type, uint32_t codes)
{
    uint32_t word = 0;
    for (int32_t i = 0; i < 4; i++)
        word |= (uint32_t)(codebook_value(type, (int32_t)(codes >> 8 * i & 15u)) & 255) << 8 * i;
    return word;
}

/* Half the value of an e8m0 byte, which is 2^(e - 127). The lowest two results are denormal. 255 is NaN in e8m0 but 2^127 here,
 * as in ggml. */
CANON_FUNCTION float block_e8m0_half(uint32_t e)
{
    return canon_bits_float(e < 2 ? 0x00200000u << e : (e - 1u) << 23);
}

/* The scale of sub-block r of iq4_xs. */
CANON_FUNCTION int32_t scale_iq4_xs(const block_iq4_xs *b, int32_t r)
{
    return ((b->scales_low[r / 2] >> 4 * (r % 2) & 15) | (b->scales_high >> 2 * r & 3) << 4) - 32;
}

/* ---- numbers to codes, for one block at a time --------------------------------------------------------------------------- */

/* The code of the nearest iq4_nl value. A tie goes to the larger value. */
CANON_FUNCTION int32_t codebook_nearest(float x)
{
    int32_t code = 0;
    for (int32_t i = 1; i < 16; i++) {
        const int32_t two = codebook_value(BLOCK_IQ4_NL, i - 1) + codebook_value(BLOCK_IQ4_NL, i);
        code += x >= 0.5f * (float)two ? 1 : 0;
    }
    return code;
}

/* Finds a scale for 32 elements, 0 if all are zero. Maps the element of the largest magnitude (the first of equals) to several
 * values around -127. Each time it rounds all elements to codes and fits the scale to them: sum(q x) / sum(q q), both summed in
 * order by fma. Returns the fit with the largest gain, which is the smallest error. */
CANON_FUNCTION float codebook_fit(const float *x, int32_t largest)
{
    const float inverse = block_inverse(block_extreme(x, BLOCK32_ELEMENTS, largest));
    float best = 0.0f, best_gain = -1.0f;
    for (int32_t level = -135; level <= -115; level += 2) {
        const float scaled = inverse * (float)level;
        float qx = 0.0f, qq = 0.0f;
        for (int32_t i = 0; i < BLOCK32_ELEMENTS; i++) {
            const float q = (float)codebook_value(BLOCK_IQ4_NL, codebook_nearest(x[i] * scaled));
            qx = __builtin_fmaf(q, x[i], qx);
            qq = __builtin_fmaf(q, q, qq);
        }
        const float scale = qx / qq, gain = scale * qx; /* no value in the codebook is 0 */
        best = gain > best_gain ? scale : best;
        best_gain = gain > best_gain ? gain : best_gain;
    }
    return best;
}

/* Packs elements 0..15 into the low nibbles and 16..31 into the high nibbles. */
CANON_FUNCTION void codebook_pack(const float *x, float inverse, uint8_t *codes)
{
    for (int32_t l = 0; l < 16; l++)
        codes[l] = (uint8_t)(codebook_nearest(x[l] * inverse) | codebook_nearest(x[l + 16] * inverse) << 4);
}

CANON_FUNCTION int encode_iq4_nl(const float *x, block_iq4_nl *b)
{
    const int32_t largest = block_largest(x, BLOCK32_ELEMENTS);
    b->d = (block_f16)block_f16_from_f32(codebook_fit(x, largest));
    codebook_pack(x, block_inverse(block_f32_from_f16(b->d)), b->codes);
    return (largest >= BLOCK_INFINITE) | block_f16_bad(b->d);
}

/* The scale of the largest magnitude (the first of equals) becomes -32. Scales are fitted twice because a GPU thread has no
 * room to keep all eight. */
CANON_FUNCTION int encode_iq4_xs(const float *x, block_iq4_xs *b)
{
    float extreme = 0.0f;
    int32_t largest = 0;
    for (int32_t r = 0; r < 8; r++) {
        const int32_t here = block_largest(x + (int64_t)BLOCK32_ELEMENTS * r, BLOCK32_ELEMENTS);
        const float scale = codebook_fit(x + (int64_t)BLOCK32_ELEMENTS * r, here);
        extreme = magnitude_bits(scale) > magnitude_bits(extreme) ? scale : extreme;
        largest = here > largest ? here : largest;
    }
    b->d = (block_f16)block_f16_from_f32(extreme / -32.0f);
    const float d = block_f32_from_f16(b->d), inverse = block_inverse(d);
    uint32_t low = 0, high = 0;
    for (int32_t r = 0; r < 8; r++) {
        const float *from = x + (int64_t)BLOCK32_ELEMENTS * r;
        const int32_t nearest = block_round_away(codebook_fit(from, block_largest(from, BLOCK32_ELEMENTS)) * inverse);
        const int32_t capped = nearest < 31 ? nearest : 31, scale = capped > -32 ? capped : -32;
        low |= (uint32_t)((scale + 32) & 15) << 4 * r;
        high |= (uint32_t)((scale + 32) >> 4) << 2 * r;
        codebook_pack(from, block_inverse(d * (float)scale), b->codes + (int64_t)16 * r);
    }
    b->scales_high = (uint16_t)high;
    for (int32_t i = 0; i < 4; i++)
        b->scales_low[i] = (uint8_t)(low >> 8 * i);
    return (largest >= BLOCK_INFINITE) | block_f16_bad(b->d);
}

/* The code of the nearest mxfp4 value with a scale of 2 d. A tie goes to the smaller magnitude. The thresholds are exact: d is
 * a power of two, at least 2^-128. */
CANON_FUNCTION int32_t e2m1_nearest(float x, float d)
{
    const float magnitude = canon_bits_float((uint32_t)magnitude_bits(x));
    const int32_t code = (magnitude > 0.5f * d) + (magnitude > 1.5f * d) + (magnitude > 2.5f * d) + (magnitude > 3.5f * d) +
                         (magnitude > 5.0f * d) + (magnitude > 7.0f * d) + (magnitude > 10.0f * d);
    return code > 0 && x < 0.0f ? code | 8 : code;
}

/* The scale puts the largest magnitude in [4, 8); the largest representable value is 6. */
CANON_FUNCTION int encode_mxfp4(const float *x, block_mxfp4 *b)
{
    const int32_t largest = block_largest(x, BLOCK32_ELEMENTS), exponent = largest >> 23;
    b->e = (uint8_t)(exponent > 2 ? exponent - 2 : 0);
    const float d = block_e8m0_half(b->e);
    for (int32_t l = 0; l < 16; l++)
        b->codes[l] = (uint8_t)(e2m1_nearest(x[l], d) | e2m1_nearest(x[l + 16], d) << 4);
    return largest >= BLOCK_INFINITE;
}

#endif
