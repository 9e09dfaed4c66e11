/* The screen of an instruction set, written once with the vectors that its vec.h defines; score_template.h includes it. It
 * makes codes of rows and tests products: first with bounds of strips (screen_filter.h), then row by row in the remaining
 * strips.
 */
#ifndef WW_CPU_ISA_SCREEN_TEMPLATE_H
#define WW_CPU_ISA_SCREEN_TEMPLATE_H

#include "cpu/isa/screen_filter.h"

enum {
    STRIP_VECS = SCREEN_STRIP / VEC_LANES,
    BY_COLUMNS_MAX = 4, /* up to this many queries are tested one by one; more are tested row by row */
};

/* ---- codes --------------------------------------------------------------------------------------------------------------- */

INLINE float largest_of_four(const vec largest[4])
{
    return vec_largest(vec_max(vec_max(largest[0], largest[1]), vec_max(largest[2], largest[3])));
}

INLINE float largest_of(const float *row, int32_t padded)
{
    vec largest[4] = {vec_zero(), vec_zero(), vec_zero(), vec_zero()};
    for (int32_t i = 0; i < padded; i += 4 * VEC_LANES)
        UNROLL for (int v = 0; v < 4; v++) largest[v] = vec_max(vec_abs(vec_load(row + i + v * VEC_LANES)), largest[v]);
    return largest_of_four(largest);
}

/* Copies 64 elements of a row, adds their squares, and updates the largest magnitudes. */
INLINE void store_64(float *row, const float *from, vec acc[VECS], vec largest[4])
{
    UNROLL for (int v = 0; v < VECS; v++)
    {
        const vec x = vec_load(from + v * VEC_LANES);
        vec_store(row + v * VEC_LANES, x);
        acc[v] = vec_fma(x, x, acc[v]);
        largest[v % 4] = vec_max(vec_abs(x), largest[v % 4]);
    }
}

/* Makes the codes of a row; `largest` is its largest magnitude. */
INLINE screen_vector code_by(float largest, const float *row, int32_t padded, int8_t *codes)
{
    screen_vector made = {.scale = screen_scale(largest)};
    const vec inverse = vec_set(screen_inverse(largest)), scale = vec_set(-made.scale);
    vec acc[VECS];
    clear(acc);
    for (int32_t i = 0; i < padded; i += CANON_LANES) {
        ivec n[VECS];
        UNROLL for (int v = 0; v < VECS; v++)
        {
            const vec x = vec_load(row + i + v * VEC_LANES);
            n[v] = ivec_nearest(vec_mul(x, inverse));
            const vec rest = vec_fma(scale, vec_of(n[v]), x);
            acc[v] = vec_fma(rest, rest, acc[v]);
        }
        ivec_store_bytes(codes + i, n);
    }
    made.residual = screen_residual(fold(acc), padded);
    return made;
}

static screen_vector encode(const float *row, int32_t padded, int8_t *codes)
{
    return code_by(largest_of(row, padded), row, padded, codes);
}

/* Copying the row also finds its largest magnitude; the copy is then read from the first-level cache. */
static float store_encoded(float *row, const float *from, int32_t n, int8_t *codes, screen_vector *made)
{
    vec acc[VECS], largest[4] = {vec_zero(), vec_zero(), vec_zero(), vec_zero()};
    clear(acc);
    int32_t i = 0;
    for (; i + CANON_LANES <= n; i += CANON_LANES)
        store_64(row + i, from + i, acc, largest);
    if (i < n) {
        float rest[CANON_LANES] = {0};
        memcpy(rest, from + i, (size_t)(n - i) * sizeof *rest);
        store_64(row + i, rest, acc, largest);
        i += CANON_LANES;
    }
    *made = code_by(largest_of_four(largest), row, i, codes);
    return fold(acc);
}

/* ---- the test ------------------------------------------------------------------------------------------------------------ */

static void bound_strips(const screen_rows *rows, int32_t row_count, strip_bounds *bounds)
{
    for (int32_t strip = 0; strip < row_count / SCREEN_STRIP; strip++) {
        const int32_t at = strip * SCREEN_STRIP;
        float residual = rows->residuals[at], min = rows->norms[at], max = rows->norms[at];
        for (int32_t r = at + 1; r < at + SCREEN_STRIP; r++) {
            residual = rows->residuals[r] > residual ? rows->residuals[r] : residual;
            min = rows->norms[r] < min ? rows->norms[r] : min;
            max = rows->norms[r] > max ? rows->norms[r] : max;
        }
        for (int32_t four = 0; four < SCREEN_STRIP / SCREEN_FOUR; four++) {
            const float *s = rows->scales + at + four * SCREEN_FOUR;
            const float low = s[0] > s[1] ? s[0] : s[1], high = s[2] > s[3] ? s[2] : s[3];
            bounds->scale_max[strip][four] = low > high ? low : high;
        }
        bounds->residual_max[strip] = residual;
        bounds->norm_min[strip] = min;
        bounds->norm_max[strip] = max;
        bounds->square_min[strip] = min * min < FLT_MAX ? min * min : FLT_MAX;
    }
}

/* Tests one query with the rows of one strip; products of neighbouring rows are `stride` apart. */
INLINE uint64_t keep_rows(const int32_t *products, int stride, const screen_rows *rows, int32_t first,
                          const screen_limits *limits, int32_t q)
{
    const vec a = vec_set(limits->a[q]), b = vec_set(limits->b_above[q] + limits->b_below[q]);
    const vec g = vec_set(limits->g[q]), h = vec_set(limits->h[q]);
    uint64_t keep = 0;
    UNROLL for (int v = 0; v < STRIP_VECS; v++)
    {
        const int32_t at = first + v * VEC_LANES, *from = products + v * VEC_LANES * stride;
        const vec norm = vec_load(rows->norms + at);
        const vec rest = vec_fma(vec_fma(g, norm, b), norm, vec_mul(a, vec_load(rows->residuals + at)));
        const vec product = vec_of(stride == 1 ? ivec_load(from) : ivec_load_apart(from, stride));
        keep |= (uint64_t)kept(product, vec_load(rows->scales + at), rest, h) << (v * VEC_LANES);
    }
    return keep << first;
}

/* Tests one row with the queries of a group. */
INLINE uint32_t keep_queries(const int32_t *products, const screen_rows *rows, int32_t row, const screen_limits *limits)
{
    const vec norm = vec_set(rows->norms[row]), residual = vec_set(rows->residuals[row]), scale = vec_set(rows->scales[row]);
    uint32_t keep = 0;
    UNROLL for (int v = 0; v < GROUP_VECS; v++)
    {
        const int at = v * VEC_LANES;
        const vec b = vec_add(vec_load(limits->b_above + at), vec_load(limits->b_below + at));
        vec rest = vec_mul(vec_load(limits->a + at), residual);
        rest = vec_fma(vec_fma(vec_load(limits->g + at), norm, b), norm, rest);
        keep |= kept(vec_of(ivec_load(products + at)), scale, rest, vec_load(limits->h + at)) << at;
    }
    return keep;
}

/* Adds rows to keep[q], which is undefined unless `any` has bit q. */
INLINE uint32_t keep_more(uint64_t keep[GROUP], uint32_t any, int32_t q, uint64_t rows)
{
    keep[q] = rows | (any >> q & 1 ? keep[q] : 0);
    return any | UINT32_C(1) << q;
}

/* Adds to `keep` the rows of a strip that `queries` keep. Returns `any` and the queries that keep one. Usually there is only
 * one such query. */
static uint32_t filter_closely(const int32_t *products, const screen_rows *rows, int32_t first, const screen_limits *limits,
                               uint32_t queries, uint64_t keep[GROUP], uint32_t any)
{
    if (__builtin_popcount(queries) <= BY_COLUMNS_MAX) {
        for (; queries != 0; queries &= queries - 1) {
            const int32_t q = __builtin_ctz(queries);
            const uint64_t some = keep_rows(products + q, GROUP, rows, first, limits, q);
            if (some != 0)
                any = keep_more(keep, any, q, some);
        }
        return any;
    }
    for (int32_t r = 0; r < SCREEN_STRIP; r++) {
        uint32_t some = queries & keep_queries(products + r * GROUP, rows, first + r, limits);
        for (; some != 0; some &= some - 1)
            any = keep_more(keep, any, __builtin_ctz(some), UINT64_C(1) << (first + r));
    }
    return any;
}

static void filter_strips(const int32_t *products, const strip_bounds *bounds, int32_t row_count, const screen_limits *limits,
                          uint16_t candidates[SCREEN_STRIPS])
{
    for (int32_t strip = 0; strip < row_count / SCREEN_STRIP; strip++)
        candidates[strip] = filter_strip(products + strip * SCREEN_STRIP * GROUP, bounds, strip, limits);
}

static bool filter_leads(const int32_t *products, const strip_bounds *bounds, const float rests[SCREEN_STRIPS],
                         int32_t row_count, const screen_limits *limits, const float tails[GROUP])
{
    uint32_t queries = 0;
    for (int32_t strip = 0; strip < row_count / SCREEN_STRIP && queries == 0; strip++) {
        const int32_t *of_strip = products + strip * SCREEN_STRIP * GROUP;
        UNROLL for (int at = 0; at < GROUP; at += VEC_LANES)
        {
            const vec more = vec_mul(vec_load(tails + at), vec_set(rests[strip]));
            queries |= keep_strip(largest_of_strip(of_strip + at, bounds->scale_max[strip]), more, bounds, strip, limits, at);
        }
    }
    return queries != 0;
}

static uint32_t filter_rows(const int32_t *products, const screen_rows *rows, int32_t row_count, const screen_limits *limits,
                            const uint16_t candidates[SCREEN_STRIPS], uint64_t keep[GROUP])
{
    uint32_t any = 0;
    for (int32_t strip = 0; strip < row_count / SCREEN_STRIP; strip++) {
        const int32_t first = strip * SCREEN_STRIP;
        if (candidates[strip] != 0)
            any = filter_closely(products + first * GROUP, rows, first, limits, candidates[strip], keep, any);
    }
    return any;
}

static uint64_t filter_one(const int32_t *products, const screen_rows *rows, int32_t row_count, const screen_limits *limits,
                           int32_t q)
{
    uint64_t keep = 0;
    for (int32_t first = 0; first < row_count; first += SCREEN_STRIP)
        keep |= keep_rows(products + first, 1, rows, first, limits, q);
    return keep;
}

#endif
