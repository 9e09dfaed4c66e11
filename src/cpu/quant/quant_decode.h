/* An octet to floats: what arithmetic/blocks/decode.h computes, for eight blocks at a time.
 *
 * Codes are unpacked as products unpack them, the same word of eight blocks at once; four such words, turned, are 16 codes of
 * each block one behind the other. Scale times code, then the minimum, each rounded, as for a single block.
 */
#ifndef WW_CPU_QUANT_QUANT_DECODE_H
#define WW_CPU_QUANT_QUANT_DECODE_H

#include "cpu/isa/lanes.h"
#include "cpu/quant/quant_unpack.h"

/* Sixteen bytes as whole numbers; what compilers make of a plain conversion goes byte by byte. */
DOT_FUNCTION void run_codes(const void *from, lanes_mask codes[LANES_PARTS])
{
#if LANES_PARTS == 1
    codes[0] = (lanes_mask)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)from));
#elif LANES_PARTS == 2
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

/* Scales and minima of the runs of each block, as floats; a block of 32 is one run. */
typedef struct octet_lines {
    float scales[16][OCTET], mins[16][OCTET];
} octet_lines;

DOT_FUNCTION void octet_take_lines(int32_t type, const char *octet, octet_lines *lines)
{
    const dot_floats d = octet_factor(type, octet);
    for (int32_t r = 0; r < runs_of(type); r++) {
        dot_floats scale = d;
        if (runs_of(type) > 1)
            scale = d * __builtin_convertvector(octet_scale(type, octet, r), dot_floats);
        memcpy(lines->scales[r], &scale, sizeof scale);
        if (!dot_has_min(type))
            continue;
        dot_floats min = octet_min_factor(type, octet);
        if (runs_of(type) > 1)
            min = min * __builtin_convertvector(octet_min(type, octet, r), dot_floats);
        memcpy(lines->mins[r], &min, sizeof min);
    }
}

/* Sixteen elements of run r of block l. */
DOT_FUNCTION void run_decode(int32_t type, const void *codes, const octet_lines *lines, int32_t r, int32_t l, float *to)
{
    lanes_mask numbers[LANES_PARTS];
    run_codes(codes, numbers);
    for (int32_t p = 0; p < LANES_PARTS; p++) {
        lanes x = __builtin_convertvector(numbers[p] - dot_offset(type), lanes) * lines->scales[r][l];
        if (dot_has_min(type))
            x = x + lines->mins[r][l];
        memcpy(to + p * PART_LANES, &x, sizeof x);
    }
}

DOT_FUNCTION void octet_decode(int32_t type, const char *octet, float *to)
{
    octet_lines lines;
    octet_take_lines(type, octet, &lines);
    for (int32_t h = 0; h < block_elements(type) / 16; h++) { /* halves of pieces */
        octet_words words[4];
        for (int32_t i = 0; i < 4; i++)
            words[i] = (octet_words)octet_codes(type, octet, h / 2, 4 * (h % 2) + i);
        words_transpose(words);
        for (int32_t l = 0; l < OCTET; l++)
            run_decode(type, (const char *)&words[l % 4] + l / 4 * 16, &lines, h * runs_of(type) * 16 / block_elements(type), l,
                       to + l * block_elements(type) + (int64_t)16 * h);
    }
}

#endif
