/* Encodes blocks of 32 floats with NEON, replacing parts of cpu/quant/activations.h. The conversion that rounds ties away from
 * 0 equals block_round_away() and turns NaN into 0. */
#ifndef WW_CPU_ISA_NEON_QUANT_ENCODE_H
#define WW_CPU_ISA_NEON_QUANT_ENCODE_H

#include <arm_neon.h>
#include <string.h>

#include "arithmetic/blocks/encode.h"

#define SMALL_ENCODE_BY_SET

enum { ENCODE_VECTORS = BLOCK32_ELEMENTS / 4 };

static inline uint32_t small_half(float value)
{
    const __fp16 half = (__fp16)value;
    uint16_t bits;
    memcpy(&bits, &half, sizeof bits);
    return bits;
}

static inline int32x4_t encode_round(float32x4_t x)
{
    return vcvtaq_s32_f32(vminq_f32(vmaxq_f32(x, vdupq_n_f32(-127.0f)), vdupq_n_f32(127.0f)));
}

static inline int8x16_t encode_bytes(const int32x4_t codes[4])
{
    const int16x8_t low = vuzp1q_s16(vreinterpretq_s16_s32(codes[0]), vreinterpretq_s16_s32(codes[1]));
    const int16x8_t high = vuzp1q_s16(vreinterpretq_s16_s32(codes[2]), vreinterpretq_s16_s32(codes[3]));
    return vuzp1q_s8(vreinterpretq_s8_s16(low), vreinterpretq_s8_s16(high));
}

static inline int small_encode(const float *x, int8_t *codes, block_f16 *d, float *exact, int32_t *sum)
{
    float32x4_t all[ENCODE_VECTORS];
    int32x4_t magnitudes = vdupq_n_s32(0), sums = magnitudes, made[ENCODE_VECTORS];
    _Pragma("GCC unroll 8") for (int32_t p = 0; p < ENCODE_VECTORS; p++)
    {
        all[p] = vld1q_f32(x + (int64_t)4 * p);
        magnitudes = vmaxq_s32(magnitudes, vreinterpretq_s32_f32(vabsq_f32(all[p])));
    }
    const int32_t largest = vmaxvq_s32(magnitudes);
    const float scale = canon_bits_float((uint32_t)largest) / 127.0f, inverse = block_inverse(scale);
    _Pragma("GCC unroll 8") for (int32_t p = 0; p < ENCODE_VECTORS; p++)
    {
        made[p] = encode_round(vmulq_n_f32(all[p], inverse));
        sums = vaddq_s32(sums, made[p]);
    }
    vst1q_s8(codes, encode_bytes(made));
    vst1q_s8(codes + 16, encode_bytes(made + 4));
    *d = (block_f16)small_half(scale);
    *exact = scale;
    *sum = vaddvq_s32(sums);
    return (largest >= BLOCK_INFINITE) | block_f16_bad(*d);
}

#endif
