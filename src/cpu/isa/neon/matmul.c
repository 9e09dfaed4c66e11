/* Matrix products for NEON: tiles of 8 rows by three vectors use 24 of the 32 registers for sums. */
#include <arm_neon.h>

#define MATMUL_TILE_F32(...) /* defined below */
#include "cpu/matmul/tile_template.h"

typedef float64x2_t f64_vector;
typedef int32x4_t i8_vector;

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

/* Same as MATMUL_TILE except for the rows: two registers hold the eight numbers of a step, and the instruction takes them lane
 * by lane. MATMUL_TILE would load each of the eight into a register of its own. */
enum { TILE_ROWS = 8, TILE_VECTORS = 3 };

#define FMA_ROW(r)                                                                                                             \
    MATMUL_UNROLL for (int v = 0; v < TILE_VECTORS; v++) acc[r][v] =                                                           \
        vfmaq_laneq_f32(acc[r][v], column[v], rows[(r) / 4], (r) % 4)

static void tile_f32(const float *a, const float *b, int64_t k, float *c, int64_t stride, int32_t which)
{
    float32x4_t acc[TILE_ROWS][TILE_VECTORS];
    MATMUL_UNROLL for (int r = 0; r < TILE_ROWS; r++) MATMUL_UNROLL for (int v = 0; v < TILE_VECTORS; v++)
    {
        acc[r][v] = vdupq_n_f32(0.0f);
        __builtin_prefetch(c + r * stride + (int64_t)4 * v, 1, 2);
    }
    for (int64_t i = 0; i < k; i++, a += TILE_ROWS, b += 4 * TILE_VECTORS) {
        float32x4_t column[TILE_VECTORS], rows[2];
        MATMUL_UNROLL for (int v = 0; v < TILE_VECTORS; v++) column[v] = vld1q_f32(b + (int64_t)4 * v);
        rows[0] = vld1q_f32(a);
        rows[1] = vld1q_f32(a + 4);
        __builtin_prefetch(b + (int64_t)16 * 4 * TILE_VECTORS);
        __builtin_prefetch(a + (int64_t)24 * TILE_ROWS);
        FMA_ROW(0);
        FMA_ROW(1);
        FMA_ROW(2);
        FMA_ROW(3);
        FMA_ROW(4);
        FMA_ROW(5);
        FMA_ROW(6);
        FMA_ROW(7);
    }
    MATMUL_UNROLL for (int r = 0; r < TILE_ROWS; r++) MATMUL_UNROLL for (int v = 0; v < TILE_VECTORS; v++)
    {
        float *at = c + r * stride + (int64_t)4 * v;
        float32x4_t total = vaddq_f32(which & MATMUL_FIRST ? vdupq_n_f32(0.0f) : vld1q_f32(at), acc[r][v]);
        if (which & MATMUL_LAST)
            total = f32_one_nan(total);
        vst1q_f32(at, total);
    }
}

MATMUL_TILES(matmul_tiles_neon, TILE_ROWS, TILE_VECTORS, 4, .fast_present = NULL)
