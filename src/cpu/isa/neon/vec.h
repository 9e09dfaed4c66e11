/* NEON: four floats per register, thirty-two registers. */
#ifndef WW_CPU_ISA_NEON_VEC_H
#define WW_CPU_ISA_NEON_VEC_H

#include <arm_neon.h>
#include <stdbool.h>
#include <stdint.h>

#define VEC_LANES     4
#define VEC_TILE_VECS 4 /* 24 registers hold 16 of the 64 lanes of six pairs */

typedef float32x4_t vec;

static inline bool vec_present(void)
{
    return true; /* part of every 64-bit Arm */
}

static inline vec vec_zero(void)
{
    return vdupq_n_f32(0.0f);
}

static inline vec vec_set(float value)
{
    return vdupq_n_f32(value);
}

static inline vec vec_load(const float *from)
{
    return vld1q_f32(from);
}

static inline void vec_store(float *to, vec v)
{
    vst1q_f32(to, v);
}

/* Keeps a loaded vector in its register: otherwise a compiler may load it again for each use, or hoist many loads and spill
 * accumulators. */
static inline vec vec_keep(vec v)
{
    __asm__ volatile("" : "+w"(v));
    return v;
}

static inline vec vec_add(vec a, vec b)
{
    return vaddq_f32(a, b);
}

static inline vec vec_sub(vec a, vec b)
{
    return vsubq_f32(a, b);
}

static inline vec vec_mul(vec a, vec b)
{
    return vmulq_f32(a, b);
}

static inline vec vec_fma(vec a, vec b, vec c)
{
    return vfmaq_f32(c, a, b);
}

static inline vec vec_min(vec a, vec b)
{
    return vminq_f32(a, b);
}

static inline vec vec_max(vec a, vec b)
{
    return vmaxq_f32(a, b);
}

static inline vec vec_abs(vec a)
{
    return vabsq_f32(a);
}

/* Returns the largest lane; below, the lanes folded 2, 1. */
static inline float vec_largest(vec v)
{
    return vmaxvq_f32(v);
}

static inline float vec_fold_lanes(vec v)
{
    const float32x2_t two = vadd_f32(vget_low_f32(v), vget_high_f32(v));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

/* Integers in lanes. In this order: round to the nearest, ties to even; convert back; load; maximum; store 64 as bytes, if they
 * fit. */
typedef int32x4_t ivec;

static inline ivec ivec_nearest(vec v)
{
    return vcvtnq_s32_f32(v);
}

static inline vec vec_of(ivec v)
{
    return vcvtq_f32_s32(v);
}

static inline ivec ivec_load(const int32_t *from)
{
    return vld1q_s32(from);
}

/* Loads lane i from from[i * stride]. */
static inline ivec ivec_load_apart(const int32_t *from, int stride)
{
    ivec v = vld1q_dup_s32(from);
    v = vld1q_lane_s32(from + stride, v, 1);
    v = vld1q_lane_s32(from + 2 * stride, v, 2);
    return vld1q_lane_s32(from + 3 * stride, v, 3);
}

static inline ivec ivec_max(ivec a, ivec b)
{
    return vmaxq_s32(a, b);
}

static inline void ivec_store_bytes(int8_t *to, const ivec v[16])
{
    for (int i = 0; i < 16; i += 4, to += 16) {
        const int16x8_t low = vcombine_s16(vmovn_s32(v[i]), vmovn_s32(v[i + 1]));
        const int16x8_t high = vcombine_s16(vmovn_s32(v[i + 2]), vmovn_s32(v[i + 3]));
        vst1q_s8(to, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
    }
}

/* Loads elements of other types as floats: one vector of them, or 16. */
static inline vec vec_load_f16(const uint16_t *from)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from)));
}

static inline vec vec_load_bf16(const uint16_t *from)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(from), 16));
}

static inline void vec_widen_f16(const uint16_t *from, vec to[4])
{
    const float16x8_t low = vreinterpretq_f16_u16(vld1q_u16(from)), high = vreinterpretq_f16_u16(vld1q_u16(from + 8));
    to[0] = vcvt_f32_f16(vget_low_f16(low));
    to[1] = vcvt_high_f32_f16(low);
    to[2] = vcvt_f32_f16(vget_low_f16(high));
    to[3] = vcvt_high_f32_f16(high);
}

static inline void vec_widen_bf16(const uint16_t *from, vec to[4])
{
    const uint16x8_t low = vld1q_u16(from), high = vld1q_u16(from + 8);
    to[0] = vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(low), 16));
    to[1] = vreinterpretq_f32_u32(vshll_high_n_u16(low, 16));
    to[2] = vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(high), 16));
    to[3] = vreinterpretq_f32_u32(vshll_high_n_u16(high, 16));
}

static inline void vec_widen_bytes(const int8_t *from, int32_t offset, vec to[4])
{
    const int8x16_t bytes = vld1q_s8(from);
    const int16x8_t more = vdupq_n_s16((int16_t)offset);
    const int16x8_t low = vaddw_s8(more, vget_low_s8(bytes)), high = vaddw_high_s8(more, bytes);
    to[0] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(low)));
    to[1] = vcvtq_f32_s32(vmovl_high_s16(low));
    to[2] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(high)));
    to[3] = vcvtq_f32_s32(vmovl_high_s16(high));
}

/* Bit i is set if a > b in lane i. */
static inline uint32_t vec_greater(vec a, vec b)
{
    static const uint32_t bits[4] = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(vcgtq_f32(a, b), vld1q_u32(bits)));
}

/* Folds a vector of 16 lanes, 8 then 4, into one register. */
static inline float32x4_t vec_fold_one(const float *v)
{
    const float32x4_t even = vaddq_f32(vld1q_f32(v), vld1q_f32(v + 8));
    const float32x4_t odd = vaddq_f32(vld1q_f32(v + 4), vld1q_f32(v + 12));
    return vaddq_f32(even, odd);
}

/* Folds two registers by 2: a pair of lanes for each. */
static inline float32x4_t vec_fold_halves(float32x4_t a, float32x4_t b)
{
    return vaddq_f32(vcombine_f32(vget_low_f32(a), vget_low_f32(b)), vcombine_f32(vget_high_f32(a), vget_high_f32(b)));
}

/* Folds 16 vectors of 16 lanes, stored one after the other, to one float each: 8, 4, 2, 1, the end of the canonical order. */
static inline void vec_fold(const float *v, float *out)
{
    for (int quarter = 0; quarter < 4; quarter++, v += 4 * 16, out += 4) {
        const float32x4_t x = vec_fold_halves(vec_fold_one(v), vec_fold_one(v + 16));
        const float32x4_t y = vec_fold_halves(vec_fold_one(v + 32), vec_fold_one(v + 48));
        vst1q_f32(out, vpaddq_f32(x, y));
    }
}

/* Folds the lanes of each of four vectors 2, 1 and multiplies the four results by `scale`. */
#define VEC_FOLDS_FOUR
static inline void vec_fold_four(const vec v[4], float scale, float *out)
{
    const float32x4_t both = vpaddq_f32(vec_fold_halves(v[0], v[1]), vec_fold_halves(v[2], v[3]));
    vst1q_f32(out, vmulq_n_f32(both, scale));
}

#endif
