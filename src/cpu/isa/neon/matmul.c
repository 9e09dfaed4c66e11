/* Matrix products for NEON: tiles of 8 rows by three vectors use 24 of the 32 registers for sums. */
#include <arm_neon.h>

#include "cpu/matmul/tile_template.h"

typedef float32x4_t f32_vector;
typedef float64x2_t f64_vector;
typedef int32x4_t i8_vector;

static inline float32x4_t f32_zero(void)
{
    return vdupq_n_f32(0.0f);
}
static inline float32x4_t f32_load(const float *from)
{
    return vld1q_f32(from);
}
static inline float32x4_t f32_load_panel(const float *from)
{
    return vld1q_f32(from);
}
static inline float32x4_t f32_set(const float *from)
{
    return vld1q_dup_f32(from);
}
static inline float32x4_t f32_fma(float32x4_t a, float32x4_t b, float32x4_t c)
{
    return vfmaq_f32(c, a, b);
}
static inline float32x4_t f32_add(float32x4_t a, float32x4_t b)
{
    return vaddq_f32(a, b);
}
static inline void f32_store(float *to, float32x4_t v)
{
    vst1q_f32(to, v);
}
static inline float32x4_t f32_one_nan(float32x4_t v)
{
    return vbslq_f32(vceqq_f32(v, v), v, vreinterpretq_f32_u32(vdupq_n_u32(0x7fc00000u)));
}

static inline float64x2_t f64_zero(void)
{
    return vdupq_n_f64(0.0);
}
static inline float64x2_t f64_load(const double *from)
{
    return vld1q_f64(from);
}
static inline float64x2_t f64_load_panel(const double *from)
{
    return vld1q_f64(from);
}
static inline float64x2_t f64_set(const double *from)
{
    return vld1q_dup_f64(from);
}
static inline float64x2_t f64_fma(float64x2_t a, float64x2_t b, float64x2_t c)
{
    return vfmaq_f64(c, a, b);
}
static inline float64x2_t f64_add(float64x2_t a, float64x2_t b)
{
    return vaddq_f64(a, b);
}
static inline void f64_store(double *to, float64x2_t v)
{
    vst1q_f64(to, v);
}
static inline float64x2_t f64_one_nan(float64x2_t v)
{
    return vbslq_f64(vceqq_f64(v, v), v, vreinterpretq_f64_u64(vdupq_n_u64(0x7ff8000000000000u)));
}

/* A pair of i16 in each 32-bit lane. */
static inline int32x4_t i8_zero(void)
{
    return vdupq_n_s32(0);
}
static inline int32x4_t i8_load(const int32_t *from)
{
    return vld1q_s32(from);
}
static inline int32x4_t i8_load_panel(const int16_t *from)
{
    return vreinterpretq_s32_s16(vld1q_s16(from));
}
static inline int32x4_t i8_set(const int16_t *from)
{
    return vreinterpretq_s32_s16(vzip1q_s16(vld1q_dup_s16(from), vld1q_dup_s16(from + 1)));
}
static inline int32x4_t i8_fma(int32x4_t a, int32x4_t b, int32x4_t c)
{
    const int16x8_t x = vreinterpretq_s16_s32(a), y = vreinterpretq_s16_s32(b);
    const int32x4_t low = vmull_s16(vget_low_s16(x), vget_low_s16(y)), high = vmull_high_s16(x, y);
    return vaddq_s32(c, vpaddq_s32(low, high));
}
static inline int32x4_t i8_add(int32x4_t a, int32x4_t b)
{
    return vaddq_s32(a, b);
}
static inline void i8_store(int32_t *to, int32x4_t v)
{
    vst1q_s32(to, v);
}
static inline int32x4_t i8_one_nan(int32x4_t v)
{
    return v;
}

MATMUL_TILES(matmul_tiles_neon, 8, 3, 4, .fast_present = NULL)
