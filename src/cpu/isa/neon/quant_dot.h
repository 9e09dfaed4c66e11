/* Eight lanes of products of codes with NEON, or with SDOT if QUANT_DOTPROD is defined (cpu/quant/dot_types.h). */
#ifndef WW_CPU_ISA_NEON_QUANT_DOT_H
#define WW_CPU_ISA_NEON_QUANT_DOT_H

#include <arm_neon.h>

#include "cpu/quant/dot_types.h"

DOT_FUNCTION int32x4_t dot_four(int32x4_t sum, int8x16_t w, int8x16_t a)
{
#if defined(QUANT_DOTPROD)
    return vdotq_s32(sum, w, a);
#else
    const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(w), vget_low_s8(a)));
    const int32x4_t high = vpaddlq_s16(vmull_s8(vget_high_s8(w), vget_high_s8(a)));
    return vaddq_s32(sum, vpaddq_s32(low, high));
#endif
}

DOT_FUNCTION dot_floats dot_fma(dot_floats a, dot_floats b, dot_floats c)
{
    float32x4_t x[2], y[2], z[2];
    memcpy(x, &a, sizeof x);
    memcpy(y, &b, sizeof y);
    memcpy(z, &c, sizeof z);
    for (int i = 0; i < 2; i++)
        z[i] = vfmaq_f32(z[i], x[i], y[i]);
    memcpy(&c, z, sizeof z);
    return c;
}

DOT_FUNCTION dot_floats dot_halves(const void *from)
{
    float16x8_t halves;
    memcpy(&halves, from, sizeof halves);
    const float32x4_t both[2] = {vcvt_f32_f16(vget_low_f16(halves)), vcvt_f32_f16(vget_high_f16(halves))};
    return dot_load_floats(both);
}

/* Looks up bytes 0..15 in a table of 16 bytes. */
DOT_FUNCTION dot_words dot_lookup(dot_words codes, const uint32_t table[4])
{
    uint8x16_t c[2];
    const uint8x16_t entries = vreinterpretq_u8_u32(vld1q_u32(table));
    memcpy(c, &codes, sizeof c);
    for (int i = 0; i < 2; i++)
        c[i] = vqtbl1q_u8(entries, c[i]);
    memcpy(&codes, c, sizeof c);
    return codes;
}

DOT_FUNCTION dot_lanes dot_signed(dot_lanes sum, dot_lanes weights, dot_lanes activations)
{
    int32x4_t s[2];
    int8x16_t w[2], a[2];
    memcpy(s, &sum, sizeof s);
    memcpy(w, &weights, sizeof w);
    memcpy(a, &activations, sizeof a);
    for (int i = 0; i < 2; i++)
        s[i] = dot_four(s[i], w[i], a[i]);
    memcpy(&sum, s, sizeof s);
    return sum;
}
DOT_FUNCTION dot_lanes dot_unsigned(dot_lanes sum, dot_lanes weights, dot_lanes activations)
{
    return dot_signed(sum, weights, activations);
}

DOT_FUNCTION dot_lanes dot_pairs(dot_lanes sum, dot_lanes a, dot_lanes b)
{
    return sum + (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
}

#endif
