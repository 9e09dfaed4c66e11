/* The screen: int8 codes of a row, and the bound that decides which rows need no exact score. Shared by all backends.
 *
 * A row x of D padded elements is coded as xhat = scale * c with c in -127..127, and with a number R >= |x - xhat|. A query is
 * coded in the same way. For a query q, a row x and the exact integer I = sum(e_i * c_i) of their codes,
 *
 *     value = q.scale * x.scale * I + a * x.R + b * x.norm + (g * x.norm) * x.norm  <  h
 *
 * proves that the canonical score (canon.h) of x is strictly worse than a threshold t, with a, b, g, h from screen_limit_for().
 * Only then may the row be left out. Written as !(value < h), a NaN or an infinity keeps the row. docs/exactness.md derives all
 * this; in short, with u = 2^-24, m = D/64 + 6 roundings in a canonical sum, and gamma = m u / (1 - m u):
 *
 *     q.x <= qhat.xhat + |qhat| R_x + R_q |x|                            Cauchy-Schwarz, for both errors of coding
 *     |canonical dot - q.x| <= gamma |q||x| + D 2^-149                   rounding of the score itself, and its underflow
 *     |norm - |x|| <= SLACK |x| + 2^-64,  |value as computed - value| <= 16 u (|q||x| + the other terms)
 *
 * SLACK = (D/64 + 64) 2^-23 = 2 (D/64 + 64) u is more than 2 gamma + 115 u, and stands in for all relative errors.
 *
 * Any order of the operations of `value` will do that puts no more than 8 roundings on a term, g times the norm before the norm
 * again. This file is compiled by the host's C compiler and as device code, as canon.h is.
 */
#ifndef WW_KERNELS_SCREEN_H
#define WW_KERNELS_SCREEN_H

#include "kernels/canon.h"

#define SCREEN_CODE_MAX 127

/* The largest magnitude of a row that is coded at all; a row of smaller ones has scale 0 and codes 0. So a scale is 0 or at
 * least 2^-107, and 127 / 2^-100 is finite. */
#define SCREEN_SMALLEST 0x1p-100f

/* Absolute errors. Squares below 2^-149 vanish: of D <= 2^16 elements they are no more than sqrt(2^16 * 2^-149) < 2^-66. */
#define SCREEN_VANISHED 0x1p-64f
/* Products that underflow: at most 2^-150 for each element or step, times an integer of less than 2^30. */
#define SCREEN_UNDERFLOW 0x1p-110f

/* Queries whose norm is outside keep every row: within, nothing below overflows, and a norm's relative error is small. */
#define SCREEN_NORM_LEAST 0x1p-40f
#define SCREEN_NORM_MOST  0x1p60f

CANON_FUNCTION float screen_slack(int32_t padded)
{
    const int32_t runs = padded / CANON_LANES;
    return (float)(runs + 64) * 0x1p-23f;
}

/* ---- codes ------------------------------------------------------------------------------------------------------------------
 * All from the largest magnitude of the row's elements. |x * inverse| <= 127 (1+u)^2, so codes need no clamping. */

CANON_FUNCTION float screen_scale(float largest)
{
    return largest < SCREEN_SMALLEST ? 0.0f : largest / 127.0f;
}

CANON_FUNCTION float screen_inverse(float largest)
{
    return largest < SCREEN_SMALLEST ? 0.0f : 127.0f / largest;
}

/* x * inverse, rounded; then to the nearest integer, ties to even. In 1.5 * 2^23 + n the integer n stands in the last bits. */
CANON_FUNCTION int32_t screen_code(float x, float inverse)
{
    const float scaled = x * inverse;
    return (int32_t)(canon_float_bits(scaled + 0x1.8p23f) - canon_float_bits(0x1.8p23f));
}

/* What coding threw away of one element, rounded once. */
CANON_FUNCTION float screen_rest(float x, float scale, int32_t code)
{
    return __builtin_fmaf(-scale, (float)code, x);
}

/* R from `squares`, the canonical sum of the squares of all rests (64 accumulators, fma, fold, as for a dot product): the root
 * is at most u, the sum gamma and the rests u too small, relatively, and vanished squares are added. */
CANON_FUNCTION float screen_residual(float squares, int32_t padded)
{
    return __builtin_fmaf(__builtin_sqrtf(squares), 1.0f + screen_slack(padded), SCREEN_VANISHED);
}

/* ---- the bound --------------------------------------------------------------------------------------------------------------
 */

typedef struct screen_vector {
    float scale;
    float residual; /* R */
    float norm;     /* canonical: sqrt(dot(x,x)) */
} screen_vector;

typedef struct screen_limit {
    float scale; /* the query's */
    float a, b, g, h;
} screen_limit;

/* The limit that discards what is certainly worse than `threshold`, a canonical score; -inf, or for l2 +inf, discards nothing.
 * `trust` is 1; less makes the bound wrong, which a test does to see that it is noticed. */
CANON_FUNCTION screen_limit screen_limit_for(int32_t metric, int32_t padded, screen_vector query, float threshold, float trust)
{
    const float slack = screen_slack(padded);
    const float more = 1.0f + slack;
    /* |qhat| <= |q| + R_q; and |q||x| <= reach * |x| bounds every product below */
    const float reach = query.norm * more + SCREEN_VANISHED + query.residual;
    const float tiny = reach * 0x1p-62f + SCREEN_UNDERFLOW;
    screen_limit limit;
    limit.scale = query.scale;
    limit.a = reach * more * trust;
    limit.b = (query.residual + slack * reach) * more * trust;
    limit.g = 0.0f;
    if (metric == CANON_DOT) {
        limit.h = threshold - (tiny + slack * __builtin_fabsf(threshold));
    } else if (metric == CANON_COSINE) { /* dot < threshold |q||x|: a term in |x| */
        limit.b -= query.norm * (threshold - slack * __builtin_fabsf(threshold) - 0x1p-100f);
        limit.h = -tiny;
    } else { /* |q|^2 + |x|^2 - 2 q.x > threshold^2 */
        limit.g = -0.5f * (1.0f - 2.0f * slack);
        limit.h = 0.5f * (1.0f - 2.0f * slack) * query.norm * query.norm -
                  (0.5f * (1.0f + 2.0f * slack) * threshold * threshold + tiny);
    }
    if (!(query.norm >= SCREEN_NORM_LEAST && query.norm < SCREEN_NORM_MOST))
        limit.h = -__builtin_inff();
    return limit;
}

/* Is the row certainly worse than the limit's threshold? `product` is the sum of the products of the codes, an exact integer:
 * 65536 * 127^2 < 2^31. */
CANON_FUNCTION int screen_discards(screen_limit limit, screen_vector row, int32_t product)
{
    const float value =
        (float)product * row.scale * limit.scale + limit.a * row.residual + limit.b * row.norm + limit.g * row.norm * row.norm;
    return value < limit.h;
}

#endif
