/* The screen: int8 codes of a row, and the bound that decides which rows need no exact score. Shared by all backends.
 *
 * A row x of D padded elements is coded as xhat = scale * c with c in -127..127, and with a number R >= |x - xhat|. A query is
 * coded in the same way. For a query q, a row x and the exact integer I = sum(e_i * c_i) of their codes,
 *
 *     value = q.scale * x.scale * I + a * x.R + b * x.norm + (g * x.norm) * x.norm  <  h
 *
 * proves that the canonical score (canon.h) of x is strictly worse than a threshold t, with a, b, g, h from screen_limit_for().
 * Only then may the row be left out. Written as !(value < h), a NaN or an infinity keeps the row. docs/design/exactness.md
 * derives all this; in short, with u = 2^-24, m = D/64 + 6 roundings in a canonical sum, and gamma = m u / (1 - m u):
 *
 *     q.x <= qhat.xhat + |qhat| R_x + R_q |x|                            Cauchy-Schwarz, for both errors of coding
 *     |canonical dot - q.x| <= gamma |q||x| + D 2^-149                   rounding of the score itself, and its underflow
 *     |norm - |x|| <= SLACK |x| + 2^-64,  |value as computed - value| <= 16 u (|q||x| + the other terms)
 *
 * SLACK = (D/64 + 64) 2^-23 = 2 (D/64 + 64) u is more than 2 gamma + 115 u, and stands in for all relative errors.
 *
 * The operations of `value` may be in any order in which no term has more than 8 roundings, but g * norm is computed before it
 * is multiplied by the norm again. This file is compiled by the host's C compiler and as device code, like canon.h.
 */
#ifndef WW_ARITHMETIC_SCREEN_H
#define WW_ARITHMETIC_SCREEN_H

#include "arithmetic/canon.h"

#define SCREEN_CODE_MAX 127

/* The smallest magnitude that is coded: a row whose elements are all smaller has scale 0 and codes 0. So a scale is 0 or at
 * least 2^-107, and 127 / 2^-100 is finite. */
#define SCREEN_SMALLEST 0x1p-100f

/* Absolute errors. Squares below 2^-149 vanish; for D <= 2^16 elements the root of their sum is below sqrt(2^16 * 2^-149) <
 * 2^-66. */
#define SCREEN_VANISHED 0x1p-64f
/* Products that underflow: an error of at most 2^-150 per element or step, times an integer below 2^30. */
#define SCREEN_UNDERFLOW 0x1p-110f

/* A query whose norm is outside these bounds keeps every row. Inside, nothing below overflows, and a norm's relative error is
 * small. */
#define SCREEN_NORM_MIN 0x1p-40f
#define SCREEN_NORM_MAX 0x1p60f

CANON_FUNCTION float screen_slack(int32_t padded)
{
    const int32_t chunks = padded / CANON_LANES;
    return (float)(chunks + 64) * 0x1p-23f;
}

/* ---- codes ------------------------------------------------------------------------------------------------------------------
 * All are computed from the largest magnitude of the row's elements. |x * inverse| <= 127 (1+u)^2, so codes need no clamping.
 */

CANON_FUNCTION float screen_scale(float largest)
{
    return largest < SCREEN_SMALLEST ? 0.0f : largest / 127.0f;
}

CANON_FUNCTION float screen_inverse(float largest)
{
    return largest < SCREEN_SMALLEST ? 0.0f : 127.0f / largest;
}

/* x * inverse, rounded, then rounded to the nearest integer, ties to even. The last bits of 1.5 * 2^23 + n are the integer
 * n. */
CANON_FUNCTION int32_t screen_code(float x, float inverse)
{
    const float scaled = x * inverse;
    return (int32_t)(canon_float_bits(scaled + 0x1.8p23f) - canon_float_bits(0x1.8p23f));
}

/* The coding error of one element, rounded once. */
CANON_FUNCTION float screen_rest(float x, float scale, int32_t code)
{
    return __builtin_fmaf(-scale, (float)code, x);
}

/* R from `squares`, the canonical sum of the squares of all rests (64 accumulators, fma, fold, as for a dot product): relative
 * to their values, the root is at most u too small, the sum gamma, and the rests u; vanished squares are added. */
CANON_FUNCTION float screen_residual(float squares, int32_t padded)
{
    return __builtin_fmaf(__builtin_sqrtf(squares), 1.0f + screen_slack(padded), SCREEN_VANISHED);
}

/* The high plane of a row's codes has four bits of each code c: h in -8..7, where 16 h is the multiple of 16 nearest to c. Byte
 * i of a plane has h of code i in its upper half and h of code D/2 + i in its lower half. The numbers 16 h are another coding
 * of the row, with the same scale and their own residual, so the bound below also holds for them. A single query reads planes
 * first, because they are half as long. */
CANON_FUNCTION int32_t screen_high(int32_t code)
{
    const int32_t h = (code + 136) / 16 - 8;
    return h < 7 ? h : 7;
}

/* An upper bound of |x - scale * 16 h|, from the row's residual and the sum of (c - 16 h)^2, which is at most 65536 * 15^2, so
 * a float holds it exactly; four roundings. */
CANON_FUNCTION float screen_high_residual(float scale, float residual, int32_t squares)
{
    return __builtin_fmaf(scale, __builtin_sqrtf((float)squares), residual) * (1.0f + 0x1p-20f);
}

/* The layout of codes on a GPU. Rows are in words of 64. A word has the first 64 bytes of all its rows, then the next 64 bytes
 * of each, and so on, so that the copy engine can copy a contiguous slab of 4 KiB. The four pieces of 16 bytes of a row are
 * swizzled for matrix units, so that the same piece of eight rows is in different banks. Offsets are in words of four codes. */
#define SCREEN_SLAB 1024u

CANON_FUNCTION uint32_t screen_piece(uint32_t row, uint32_t piece)
{
    return row * 16 + (piece ^ (row >> 1 & 3)) * 4;
}

CANON_FUNCTION uint64_t screen_code_at(int32_t chunks, uint64_t row, int32_t chunk, uint32_t piece)
{
    return (row / 64 * (uint64_t)chunks + (uint64_t)chunk) * SCREEN_SLAB + screen_piece((uint32_t)(row % 64), piece);
}

/* On a GPU, a row's plane is laid out like its codes, with half as many chunks: the upper half of byte i of chunk p is h of
 * code i of chunk 2p, the lower half h of code i of chunk 2p + 1, or 0 if there is no such chunk. */
CANON_FUNCTION int32_t screen_plane_chunks(int32_t chunks)
{
    return (chunks + 1) / 2;
}

/* ---- the bound ----------------------------------------------------------------------------------------------------------- */

typedef struct screen_vector {
    float scale;
    float residual; /* R */
    float norm;     /* canonical: sqrt(dot(x,x)) */
} screen_vector;

typedef struct screen_limit {
    float scale; /* of the query */
    float a, b, g, h;
} screen_limit;

/* Makes the limit that discards rows that are certainly worse than the score `threshold`; -inf, or for l2 +inf, discards none.
 */
CANON_FUNCTION screen_limit screen_limit_for(int32_t metric, int32_t padded, screen_vector query, float threshold)
{
    const float slack = screen_slack(padded);
    const float more = 1.0f + slack;
    /* |qhat| <= |q| + R_q; and |q||x| <= reach * |x| bounds every product below */
    const float reach = query.norm * more + SCREEN_VANISHED + query.residual;
    const float tiny = reach * 0x1p-62f + SCREEN_UNDERFLOW;
    screen_limit limit;
    limit.scale = query.scale;
    limit.a = reach * more;
    limit.b = (query.residual + slack * reach) * more;
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
    if (!(query.norm >= SCREEN_NORM_MIN && query.norm < SCREEN_NORM_MAX))
        limit.h = -__builtin_inff();
    return limit;
}

/* The limit for codes that are smaller than the numbers of their rows by `less`, such as those of u8 (row_types.h), with scale
 * 1. A product I' of such codes lacks less * sum(e_i); `offset` is that times the query's scale, rounded once. Subtracting it
 * from h gives the same test except for roundings: |xhat' - xhat| <= less sqrt(D), so the terms of I' and of the offset are at
 * most |qhat| less sqrt(D) longer, with 10 roundings, and h has two more. 64 u and 8 u are more than that. */
CANON_FUNCTION screen_limit screen_limit_offset(screen_limit limit, int32_t padded, screen_vector query, int32_t less,
                                                float offset)
{
    const float reach = query.norm * (1.0f + screen_slack(padded)) + SCREEN_VANISHED + query.residual;
    const float longer = reach * (float)less * __builtin_sqrtf((float)padded);
    limit.h -= offset + (0x1p-18f * longer + 0x1p-21f * __builtin_fabsf(limit.h));
    return limit;
}

/* Returns whether the row is certainly worse than the limit's threshold. `product` is the sum of the products of the codes, an
 * exact integer: 65536 * 127^2 < 2^31. */
CANON_FUNCTION int screen_discards(screen_limit limit, screen_vector row, int32_t product)
{
    const float value =
        (float)product * row.scale * limit.scale + limit.a * row.residual + limit.b * row.norm + limit.g * row.norm * row.norm;
    return value < limit.h;
}

/* ---- the same bound for matrix units ------------------------------------------------------------------------------------- */

/* Solved for the product, the test discards a row if product < T with
 *
 *     T = (h - a R - b N - g N^2) / (query's scale * row's scale).
 *
 * T is a sum of few products, each of a number of the query (the gate) and a number of the row (the measure), which are
 * computed before. So a pair takes two or three fused multiply-adds and a comparison. T is computed in units of 2^-149, the
 * last place of a denormal float: its bits are T rounded to an integer, and are compared with the product as integers, without
 * a conversion. From 2^24 on the float's bits are smaller than that integer, and for a negative T they are smaller than every
 * product. In both cases more rows are kept, never fewer.
 *
 * Everything that affects T is rounded so that more rows are kept. Each number of a gate is 2^-18 too small, which is more than
 * the relative error of all terms (their numbers have at most 8 roundings, the sum has 3, 11 * 2^-24 in all), and 4 units are
 * subtracted for what the sum itself loses near 0 (three roundings of half a unit). Numbers stay between 2^-40 and 2^40, so
 * that nothing overflows: a row outside is kept, and a query outside keeps all rows.
 *
 *   dot:    T = h/sq * 1/s          - a/sq * (R + rho N)/s               with rho at least b/a, for all queries of the search
 *   cosine: T = -b'/sq * N/s        - a/sq * R/s                         b' includes h/N: N is at least 2^-41
 *   l2:     T = h/sq * 1/s          - a/sq * (R + rho N)/s  + 1/sq * -g N^2/s */
typedef struct screen_gate {
    float first, second, third;
} screen_gate;

typedef struct screen_measure {
    float first, second, third;
} screen_measure;

/* 2^-149 is divided equally between the gate and the measure. */
#define SCREEN_GATE_UNIT    0x1p-75f
#define SCREEN_MEASURE_UNIT 0x1p-74f
#define SCREEN_GATE_OFF     (-0x1p-147f)
#define SCREEN_WITHIN_MIN   0x1p-40f
#define SCREEN_WITHIN_MAX   0x1p40f

/* A gate that no row passes: for a slot without a query, and for a query whose list is full. */
CANON_FUNCTION screen_gate screen_gate_closed(void)
{
    const screen_gate gate = {0x1p15f, -0x1p-68f, 0.0f};
    return gate;
}

/* b/a of a limit for dot or l2; 0 for cosine, which does not need it. */
CANON_FUNCTION float screen_rho(int32_t metric, int32_t padded, screen_vector query)
{
    const screen_limit limit = screen_limit_for(metric, padded, query, 0.0f);
    return metric == CANON_COSINE || !(limit.a > 0.0f) ? 0.0f : limit.b / limit.a * (1.0f + 0x1p-20f);
}

CANON_FUNCTION screen_gate screen_gate_for(int32_t metric, screen_limit limit)
{
    const float less = 1.0f - 0x1p-18f, more = 1.0f + 0x1p-18f;
    /* cosine: 2^41 tiny, and tiny is -h */
    const float first = (metric == CANON_COSINE ? limit.h * 0x1p41f - limit.b : limit.h) / limit.scale;
    const float second = limit.a / limit.scale, third = 1.0f / limit.scale;
    screen_gate gate;
    gate.first = first * (first < 0.0f ? more : less) * SCREEN_GATE_UNIT;
    gate.second = -second * more * SCREEN_GATE_UNIT;
    gate.third = third * less * SCREEN_GATE_UNIT;
    if (!(limit.scale > SCREEN_WITHIN_MIN && limit.scale < SCREEN_WITHIN_MAX && first > -SCREEN_WITHIN_MAX &&
          first < SCREEN_WITHIN_MAX && second < SCREEN_WITHIN_MAX)) { /* keeps all rows */
        gate.first = -SCREEN_WITHIN_MAX * SCREEN_GATE_UNIT;
        gate.second = -0x1p-68f;
        gate.third = 0.0f;
    }
    return gate;
}

/* The measure of a row. A row that is not admitted gets one that almost no threshold keeps; it is checked again when rows are
 * listed. */
CANON_FUNCTION screen_measure screen_measure_of(int32_t metric, int32_t padded, screen_vector row, float rho, int counts)
{
    screen_measure measure = {0.0f, counts ? 0x1p16f : -0x1p16f, 0.0f};
    const float widest = row.norm * row.norm;
    if (!counts || !(row.scale > SCREEN_WITHIN_MIN && row.scale < SCREEN_WITHIN_MAX && row.norm < SCREEN_WITHIN_MAX &&
                     row.norm > SCREEN_WITHIN_MIN && rho < SCREEN_WITHIN_MAX))
        return measure;
    const float inverse = SCREEN_MEASURE_UNIT / row.scale;
    measure.first = metric == CANON_COSINE ? row.norm * inverse : inverse;
    measure.second = (metric == CANON_COSINE ? row.residual : row.residual + rho * row.norm) * inverse;
    measure.third = metric == CANON_L2 ? 0.5f * (1.0f - 2.0f * screen_slack(padded)) * widest * inverse : 0.0f;
    return measure;
}

/* Returns T as an integer: the smallest product with which the row is kept. */
CANON_FUNCTION int32_t screen_product_min(screen_gate gate, screen_measure measure, int third)
{
    float product = __builtin_fmaf(gate.second, measure.second, SCREEN_GATE_OFF);
    if (third)
        product = __builtin_fmaf(gate.third, measure.third, product);
    product = __builtin_fmaf(gate.first, measure.first, product);
    return (int32_t)canon_float_bits(product);
}

#endif
