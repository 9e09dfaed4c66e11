/* Decodes a block group to floats, as arithmetic/blocks/decode.h does, for eight blocks at a time.
 *
 * Codes are unpacked as for products, the same word of eight blocks at once. Four such words, transposed, give 16 consecutive
 * codes of each block. Then scale times code, and the minimum, are each rounded, as for a single block.
 */
#ifndef WW_CPU_QUANT_DECODE_H
#define WW_CPU_QUANT_DECODE_H

#include "cpu/quant/lanes16.h"
#include "cpu/quant/unpack.h"

/* Converts sixteen bytes to integers; compilers would convert byte by byte. */
DOT_FUNCTION void sixteen_codes(const void *from, lanes_mask codes[LANES_REGISTERS])
{
#if LANES_REGISTERS == 1
    codes[0] = (lanes_mask)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)from));
#elif LANES_REGISTERS == 2
    codes[0] = (lanes_mask)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)from));
    codes[1] = (lanes_mask)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)((const char *)from + 8)));
#else
    const int8x16_t bytes = vld1q_s8(from);
    const int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_s8(vget_high_s8(bytes));
    codes[0] = (lanes_mask)vmovl_s16(vget_low_s16(low));
    codes[1] = (lanes_mask)vmovl_s16(vget_high_s16(low));
    codes[2] = (lanes_mask)vmovl_s16(vget_low_s16(high));
    codes[3] = (lanes_mask)vmovl_s16(vget_high_s16(high));
#endif
}

/* Scales and minima of the sub-blocks of each block, as floats. A block of 32 is one sub-block. */
typedef struct group_factors {
    float scales[16][BLOCK_GROUP], mins[16][BLOCK_GROUP];
} group_factors;

DOT_FUNCTION void group_take_factors(int32_t type, const char *group, group_factors *lines)
{
    const dot_floats d = group_factor(type, group);
    for (int32_t r = 0; r < sub_blocks(type); r++) {
        dot_floats scale = d;
        if (sub_blocks(type) > 1)
            scale = d * __builtin_convertvector(group_scale(type, group, r), dot_floats);
        memcpy(lines->scales[r], &scale, sizeof scale);
        if (!dot_has_min(type))
            continue;
        dot_floats min = group_min_factor(type, group);
        if (sub_blocks(type) > 1)
            min = min * __builtin_convertvector(group_min(type, group, r), dot_floats);
        memcpy(lines->mins[r], &min, sizeof min);
    }
}

/* Decodes sixteen elements of sub-block r of block l. */
DOT_FUNCTION void sixteen_decode(int32_t type, const void *codes, const group_factors *lines, int32_t r, int32_t l, float *to)
{
    lanes_mask numbers[LANES_REGISTERS];
    sixteen_codes(codes, numbers);
    for (int32_t p = 0; p < LANES_REGISTERS; p++) {
        lanes x = __builtin_convertvector(numbers[p] - dot_offset(type), lanes) * lines->scales[r][l];
        if (dot_has_min(type))
            x = x + lines->mins[r][l];
        memcpy(to + p * REGISTER_LANES, &x, sizeof x);
    }
}

DOT_FUNCTION void group_decode(int32_t type, const char *group, float *to)
{
    group_factors lines;
    group_take_factors(type, group, &lines);
    for (int32_t h = 0; h < block_elements(type) / 16; h++) { /* halves of pieces */
        group_words words[4];
        for (int32_t i = 0; i < 4; i++)
            words[i] = (group_words)group_codes(type, group, h / 2, 4 * (h % 2) + i);
        words_transpose(words);
        for (int32_t l = 0; l < BLOCK_GROUP; l++)
            sixteen_decode(type, (const char *)&words[l % 4] + l / 4 * 16, &lines,
                           h * sub_blocks(type) * 16 / block_elements(type), l,
                           to + l * block_elements(type) + (int64_t)16 * h);
    }
}

#endif
