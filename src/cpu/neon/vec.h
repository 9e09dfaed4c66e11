/* Sixteen floats as NEON holds them: four registers. */
#ifndef WW_CPU_VEC_H
#define WW_CPU_VEC_H

#include <arm_neon.h>
#include <stdbool.h>
#include <stdint.h>

#define VEC_SET_NAME    "neon"
#define VEC_SET_TABLE   instruction_set_neon
#define VEC_TILE_GROUPS 1 /* 32 registers: 24 hold 16 of the 64 lanes of six pairs */

typedef struct vec {
    float32x4_t q0, q1, q2, q3;
} vec;

static inline bool vec_present(void)
{
    return true; /* part of every 64-bit Arm */
}

static inline vec vec_zero(void)
{
    const float32x4_t zero = vdupq_n_f32(0.0f);
    return (vec){zero, zero, zero, zero};
}

static inline vec vec_load(const float *from)
{
    return (vec){vld1q_f32(from), vld1q_f32(from + 4), vld1q_f32(from + 8), vld1q_f32(from + 12)};
}

static inline void vec_store(float *to, vec v)
{
    vst1q_f32(to, v.q0);
    vst1q_f32(to + 4, v.q1);
    vst1q_f32(to + 8, v.q2);
    vst1q_f32(to + 12, v.q3);
}

static inline vec vec_add(vec a, vec b)
{
    return (vec){vaddq_f32(a.q0, b.q0), vaddq_f32(a.q1, b.q1), vaddq_f32(a.q2, b.q2), vaddq_f32(a.q3, b.q3)};
}

static inline vec vec_sub(vec a, vec b)
{
    return (vec){vsubq_f32(a.q0, b.q0), vsubq_f32(a.q1, b.q1), vsubq_f32(a.q2, b.q2), vsubq_f32(a.q3, b.q3)};
}

static inline vec vec_fma(vec a, vec b, vec c)
{
    return (vec){vfmaq_f32(c.q0, a.q0, b.q0), vfmaq_f32(c.q1, a.q1, b.q1), vfmaq_f32(c.q2, a.q2, b.q2),
                 vfmaq_f32(c.q3, a.q3, b.q3)};
}

static inline vec vec_set(float value)
{
    const float32x4_t all = vdupq_n_f32(value);
    return (vec){all, all, all, all};
}

static inline vec vec_mul(vec a, vec b)
{
    return (vec){vmulq_f32(a.q0, b.q0), vmulq_f32(a.q1, b.q1), vmulq_f32(a.q2, b.q2), vmulq_f32(a.q3, b.q3)};
}

static inline vec vec_min(vec a, vec b)
{
    return (vec){vminq_f32(a.q0, b.q0), vminq_f32(a.q1, b.q1), vminq_f32(a.q2, b.q2), vminq_f32(a.q3, b.q3)};
}

/* Bit i: a > b in lane i. */
static inline uint32_t vec_greater(vec a, vec b)
{
    static const uint32_t bits[4] = {1, 2, 4, 8};
    const uint32x4_t bit = vld1q_u32(bits);
    return vaddvq_u32(vandq_u32(vcgtq_f32(a.q0, b.q0), bit)) | vaddvq_u32(vandq_u32(vcgtq_f32(a.q1, b.q1), bit)) << 4 |
           vaddvq_u32(vandq_u32(vcgtq_f32(a.q2, b.q2), bit)) << 8 | vaddvq_u32(vandq_u32(vcgtq_f32(a.q3, b.q3), bit)) << 12;
}

/* Folds one vector, 8 then 4, into one register. */
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

/* Folds 16 vectors of 16 lanes, one behind the other, each to one float: 8, 4, 2, 1, as the canonical order ends. */
static inline void vec_fold(const float *v, float *out)
{
    for (int quarter = 0; quarter < 4; quarter++, v += 4 * 16, out += 4) {
        const float32x4_t x = vec_fold_halves(vec_fold_one(v), vec_fold_one(v + 16));
        const float32x4_t y = vec_fold_halves(vec_fold_one(v + 32), vec_fold_one(v + 48));
        vst1q_f32(out, vpaddq_f32(x, y));
    }
}

#endif
