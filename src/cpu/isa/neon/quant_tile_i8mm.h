/* Sums of products for cpu/quant/tile_vectors.h with SMMLA. */
#ifndef WW_CPU_ISA_NEON_QUANT_TILE_I8MM_H
#define WW_CPU_ISA_NEON_QUANT_TILE_I8MM_H

#include <arm_neon.h>

#include "cpu/quant/dot_types.h"

#define TILE_SUMS_BY_SET
#define TILE_TOGETHER 4

/* Eight codes of two rows against eight of two columns in one instruction. */
DOT_FUNCTION void tile_sums(const int32_t (*weights)[16], int32_t words, int any_sign, const int8_t *codes, int64_t stride,
                            tile_lanes j[TILE_TOGETHER])
{
    int32x4_t sums[TILE_TOGETHER / 2][8];
    (void)any_sign;
    memset(sums, 0, sizeof sums);
    for (int32_t w = 0; w < words; w += 2) {
        int8x16_t two[TILE_TOGETHER / 2];
        for (int32_t k = 0; k < TILE_TOGETHER / 2; k++)
            two[k] = vcombine_s8(vld1_s8(codes + 2 * k * stride + 4 * w), vld1_s8(codes + (2 * k + 1) * stride + 4 * w));
        _Pragma("GCC unroll 4") for (int32_t r = 0; r < 4; r++)
        {
            const int32x4_t a = vld1q_s32(weights[w] + 4 * r), b = vld1q_s32(weights[w + 1] + 4 * r);
            const int8x16_t low = vreinterpretq_s8_s32(vzip1q_s32(a, b)), high = vreinterpretq_s8_s32(vzip2q_s32(a, b));
            for (int32_t k = 0; k < TILE_TOGETHER / 2; k++) {
                sums[k][2 * r] = vmmlaq_s32(sums[k][2 * r], low, two[k]);
                sums[k][2 * r + 1] = vmmlaq_s32(sums[k][2 * r + 1], high, two[k]);
            }
        }
    }
    for (int32_t k = 0; k < TILE_TOGETHER / 2; k++)
        for (int32_t r = 0; r < 4; r++) {
            const int32x4_t first = vuzp1q_s32(sums[k][2 * r], sums[k][2 * r + 1]);
            const int32x4_t second = vuzp2q_s32(sums[k][2 * r], sums[k][2 * r + 1]);
            memcpy((char *)&j[2 * k] + 16 * r, &first, sizeof first);
            memcpy((char *)&j[2 * k + 1] + 16 * r, &second, sizeof second);
        }
}

#endif
