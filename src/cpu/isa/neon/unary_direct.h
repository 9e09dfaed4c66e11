/* Operations on f32 that compilers do not vectorize: gelu by the normal distribution, whose coefficients come from a table.
 *
 * The table of normal_f32.h has a column per coefficient. This code needs a row per interval, so that two loads bring all
 * coefficients of an element; four elements are then transposed in registers. Each call transposes the table, which takes
 * little time compared with a tensor.
 */
#ifndef WW_CPU_ISA_NEON_UNARY_DIRECT_H
#define WW_CPU_ISA_NEON_UNARY_DIRECT_H

#include <arm_neon.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "arithmetic/math/normal_f32.h"
#include "arithmetic/operations.h"
#include "arithmetic/types.h"

enum { NORMAL_ROW = 8, DIRECT_MIN = 64 /* elements; for fewer, the table would be most of the work */ };

typedef struct normal_rows {
    _Alignas(32) float of[MATH_NORMAL_COLUMN][NORMAL_ROW];
} normal_rows;

static inline void normal_turn(normal_rows *rows)
{
    const float *table = math_normal_table_f32();
    for (int i = 0; i < MATH_NORMAL_COLUMN; i++) {
        for (int t = 0; t < MATH_NORMAL_TERMS; t++)
            rows->of[i][t] = table[t * MATH_NORMAL_COLUMN + i];
        rows->of[i][MATH_NORMAL_TERMS] = 0.0f;
    }
}

/* Loads four of the coefficients of four intervals, from number `first` on, into one vector per coefficient. */
static inline void normal_take(const normal_rows *rows, const uint32_t intervals[4], int first, float32x4_t to[4])
{
    const float32x4_t a = vld1q_f32(rows->of[intervals[0]] + first), b = vld1q_f32(rows->of[intervals[1]] + first);
    const float32x4_t c = vld1q_f32(rows->of[intervals[2]] + first), d = vld1q_f32(rows->of[intervals[3]] + first);
    const float32x4_t ac0 = vzip1q_f32(a, c), ac1 = vzip2q_f32(a, c), bd0 = vzip1q_f32(b, d), bd1 = vzip2q_f32(b, d);
    to[0] = vzip1q_f32(ac0, bd0);
    to[1] = vzip2q_f32(ac0, bd0);
    to[2] = vzip1q_f32(ac1, bd1);
    to[3] = vzip2q_f32(ac1, bd1);
}

/* Same as math_exp_tail_f32(). */
static inline float32x4_t exp_tail_four(float32x4_t r)
{
    static const float tail[] = {0x1.6d2e4cp-10f, 0x1.1155a6p-7f, 0x1.555502p-5f, 0x1.55552cp-3f, 0.5f};
    float32x4_t q = vdupq_n_f32(0x1.3b90ccp-13f);
    for (int i = 0; i < 5; i++)
        q = vfmaq_f32(vdupq_n_f32(tail[i]), q, r);
    return q;
}

/* Same as canon_gelu_erf_f32(), step by step. */
static inline float32x4_t gelu_erf_four(float32x4_t x, const normal_rows *rows)
{
    const float32x4_t limit = vdupq_n_f32(14.75f), halves = vdupq_n_f32(0x1.8p22f), rounder = vdupq_n_f32(MATH_ROUNDER_F32);
    const float32x4_t size = vabsq_f32(x), h = vbslq_f32(vcltq_f32(size, limit), size, limit);
    const float32x4_t nearest = vaddq_f32(h, halves), t = vsubq_f32(h, vsubq_f32(nearest, halves));
    uint32_t intervals[4];
    vst1q_u32(intervals, vandq_u32(vreinterpretq_u32_f32(nearest), vdupq_n_u32(31)));
    float32x4_t c[NORMAL_ROW];
    normal_take(rows, intervals, 0, c);
    normal_take(rows, intervals, 4, c + 4);
    float32x4_t p = c[6];
    for (int i = 5; i > 0; i--)
        p = vfmaq_f32(c[i], p, t);
    const float32x4_t rest = vfmaq_f32(vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_f32(c[6]), 16)), p, t);

    const float32x4_t square = vmulq_f32(h, h), square_lo = vfmaq_f32(vnegq_f32(square), h, h);
    const float32x4_t shifted = vfmaq_f32(rounder, square, vdupq_n_f32(-0x1.715476p-1f)), k = vsubq_f32(shifted, rounder);
    float32x4_t r = vfmaq_f32(vmulq_f32(vdupq_n_f32(-0.5f), square), k, vdupq_n_f32(-0x1.62e43p-1f));
    r = vfmaq_f32(r, k, vdupq_n_f32(0x1.05c610p-29f));
    r = vfmaq_f32(r, square_lo, vdupq_n_f32(-0.5f));
    const float32x4_t g = vfmaq_f32(r, vmulq_f32(r, r), exp_tail_four(r));
    const uint32x4_t power =
        vaddq_u32(vshlq_n_u32(vreinterpretq_u32_f32(shifted), 23), vdupq_n_u32(0x5f800000u)); /* 2^(k+64) */
    const float32x4_t n = vmulq_f32(h, vreinterpretq_f32_u32(power));
    const float32x4_t product = vfmaq_f32(vmulq_f32(n, vfmaq_f32(rest, vaddq_f32(c[0], rest), g)), n, c[0]);
    const float32x4_t zero = vdupq_n_f32(-0.0f), positive = vbslq_f32(vcltq_f32(x, zero), zero, x);
    return vfmaq_f32(positive, product, vdupq_n_f32(-0x1p-64f));
}

static inline float32x4_t one_nan_four(float32x4_t v)
{
    return vbslq_f32(vceqq_f32(v, v), v, vreinterpretq_f32_u32(vdupq_n_u32(0x7fc00000u)));
}

static bool unary_direct(int32_t op, int32_t type, void *to, const void *from, int64_t count)
{
    if (op != UNARY_GELU_ERF || type != TYPE_F32 || count < DIRECT_MIN)
        return false;
    normal_rows rows;
    normal_turn(&rows);
    const float *x = from;
    float *y = to;
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        vst1q_f32(y + i, one_nan_four(gelu_erf_four(vld1q_f32(x + i), &rows)));
    if (i < count) {
        float last[4] = {0};
        memcpy(last, x + i, (size_t)(count - i) * sizeof *last);
        vst1q_f32(last, one_nan_four(gelu_erf_four(vld1q_f32(last), &rows)));
        memcpy(y + i, last, (size_t)(count - i) * sizeof *last);
    }
    return true;
}

#endif
